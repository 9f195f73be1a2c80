// Collects the variables for commands on hosts: --env, --env-file and --secret. Values travel over
// the channel. They are never printed or logged, and secrets are never stored.
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
  std::vector<std::string> files = {};    // of --env-file
  std::vector<std::string> secrets = {};  // names; each must be set here
};

using OwnVariable = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> own_variable(const std::string& name);  // of this process

// "NAME=value", each name once. --secret wins over --env, and --env over a file. Among equals, the
// last one wins.
Result<std::vector<std::string>> variables_of(const GivenVariables& given, const OwnVariable& own);

// Parses an env file like docker: NAME=value with the value taken literally (quotes included), NAME
// for the caller's value, comments after '#' at the start of a line, blank lines. Pure.
Result<std::vector<std::string>> parse_env_file(std::string_view text, const OwnVariable& own);

}  // namespace lockstep::hosts
