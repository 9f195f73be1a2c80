#include "cli/variable_options.h"

namespace lockstep::cli {

std::vector<Option> variable_rows() {
  return {
      {.name = "env",
       .field = into<&VariableOptions::env>,
       .metavar = "NAME[=VALUE]",
       .help = "a variable; NAME alone takes its value from here; may be given again"},
      {.name = "env-file",
       .field = into<&VariableOptions::env_files>,
       .metavar = "FILE",
       .help = "variables, a NAME=VALUE a line as docker reads them; may be given again"},
      {.name = "secret",
       .field = into<&VariableOptions::secrets>,
       .metavar = "NAME",
       .help = "a variable whose value is taken from here and never written down; may be given "
               "again"},
  };
}

}  // namespace lockstep::cli
