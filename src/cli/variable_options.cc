#include "cli/variable_options.h"

namespace lockstep::cli {

std::vector<Option> variable_rows() {
  return {
      {.name = "env",
       .field = into<&VariableOptions::env>,
       .metavar = "NAME[=VALUE]",
       .help = "a variable; NAME alone takes the value from here; may be given again"},
      {.name = "env-file",
       .field = into<&VariableOptions::env_files>,
       .metavar = "FILE",
       .help = "a file with one NAME=VALUE per line, in docker's format; may be given again"},
      {.name = "secret",
       .field = into<&VariableOptions::secrets>,
       .metavar = "NAME",
       .help =
           "a variable whose value is taken from here and never written down; may be given again"},
  };
}

}  // namespace lockstep::cli
