// Variables in the environment of this process.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// nullopt: the variable is not set.
inline std::optional<std::string> env_variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Returns the variable's value; `otherwise` if the variable is not set.
inline std::string env_text(std::string_view name, std::string_view otherwise = {}) {
  return env_variable(name).value_or(std::string(otherwise));
}

}  // namespace lockstep
