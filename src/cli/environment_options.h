// The options of `lockstep install` and `lockstep run --on --install` that choose the environment
// for packages on hosts.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "setup/request.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// At most one of the three may be given. "auto" means the project's own environment.
struct EnvironmentOptions {
  std::optional<std::string> venv;
  std::optional<std::string> conda;
  bool system = false;
};

// Returns the rows for an option group.
std::vector<Option> environment_rows();

struct ChosenEnvironment {
  setup::SetupRequest::Choice choice = setup::SetupRequest::Choice::project;
  std::string place = {};  // folder of the venv, or name of the conda environment
};

// Returns the environment that the options choose. Errors: invalid_input (several environments, a
// bad spec, or a spec that the environment cannot take). Asks no host.
Result<ChosenEnvironment> chosen_environment(const EnvironmentOptions& options,
                                             const std::vector<std::string>& specs);

}  // namespace lockstep::cli
