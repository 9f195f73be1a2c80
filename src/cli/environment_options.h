// The options that say into which environment on hosts packages go: of `lockstep install`, and of
// `lockstep run --on --install`.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "setup/request.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct EnvironmentOptions {
  std::optional<std::string> venv;
  std::optional<std::string> conda;
  bool system = false;
};

// Rows for a group.
std::vector<Option> environment_rows();

struct ChosenEnvironment {
  setup::SetupRequest::Choice choice = setup::SetupRequest::Choice::project;
  std::string place = {};  // of the venv, or name of the conda environment
};

// Refuses more than one of them, and specs that can't go into it.
Result<ChosenEnvironment> chosen_environment(const EnvironmentOptions& options,
                                             const std::vector<std::string>& specs);

}  // namespace lockstep::cli
