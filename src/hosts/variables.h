// Collects the variables for commands on hosts: --env, --env-file and --secret. Values travel over
// the link. Values are never printed or logged, and secrets are never stored.
#pragma once

#include "base/error.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

struct GivenVariables {
  std::vector<std::string> env = {};      // "NAME=value", or "NAME" for the caller's value, if set
  std::vector<std::string> files = {};    // paths of --env-file
  std::vector<std::string> secrets = {};  // names of variables that must be set here
};

// Returns a variable of the caller; nullopt: not set.
using OwnVariable = std::function<std::optional<std::string>(const std::string& name)>;
// Returns a variable of this process's environment.
std::optional<std::string> own_variable(const std::string& name);

// Returns "NAME=value" entries, each name once. --secret wins over --env, and --env over a file.
// Among equals, the last entry wins. invalid_input names the option at fault, and never a value.
Result<std::vector<std::string>> variables_of(const GivenVariables& given, const OwnVariable& own);

// Parses an env file like docker: NAME=value with the literal value (quotes included), NAME for the
// caller's value, '#' for a comment at the start of a line, blank lines. Errors name the line.
// Pure.
Result<std::vector<std::string>> parse_env_file(std::string_view text, const OwnVariable& own);

}  // namespace lockstep::hosts
