// The variables that a user gives to what runs on hosts: --env, --env-file and --secret. They go
// over the channel; no value of them is printed or logged, and none of a secret is kept.
#pragma once

#include "base/error.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

struct GivenVariables {
  std::vector<std::string> env =
      {};  // "NAME=value"; "NAME" takes the caller's value, if it has one
  std::vector<std::string> files = {};    // of --env-file
  std::vector<std::string> secrets = {};  // names; each must be set here
};

using OwnVariable = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> own_variable(const std::string& name);  // of this process

// "NAME=value", each name once: a secret comes before --env, and --env before a file; of two of one
// kind the last one counts.
Result<std::vector<std::string>> variables_of(const GivenVariables& given, const OwnVariable& own);

// The lines of an env file as docker reads them: NAME=value with the value as it stands (quotes and
// all), NAME for the caller's value, comments behind '#' at the start of a line, blank lines. Pure.
Result<std::vector<std::string>> parse_env_file(std::string_view text, const OwnVariable& own);

}  // namespace lockstep::hosts
