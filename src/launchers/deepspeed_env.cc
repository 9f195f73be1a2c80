#include "launchers/deepspeed_env.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace lockstep::launchers {
namespace {

bool is_variable_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c == '_' || (c < 128 && std::isalnum(c) != 0); });
}

// Removes quotes around a value. DeepSpeed gives the value to pdsh's shell, which removes them,
// too.
std::string_view without_quotes(std::string_view value) {
  for (const char quote : {'"', '\''})
    if (value.size() >= 2 && value.front() == quote && value.back() == quote)
      return value.substr(1, value.size() - 2);
  return value;
}

}  // namespace

bool deepspeed_exports(std::string_view name) {
  // EXPORT_ENVS of DeepSpeed's launcher.
  constexpr std::string_view kPrefixes[] = {"MLFLOW", "PYTHON", "MV2", "UCX", "NEBULA", "NCCL"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Result<std::vector<std::string>> parse_deepspeed_env(std::string_view text) {
  std::vector<std::string> variables;
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    std::string_view line = strip(raw);
    if (line.empty() || line.front() == '#') continue;
    constexpr std::string_view kExport = "export ";
    if (line.starts_with(kExport)) line = strip(line.substr(kExport.size()));
    const std::size_t equals = line.find('=');
    const std::string_view name = strip(line.substr(0, equals));
    if (equals == line.npos || !is_variable_name(name))
      return fail(Errc::invalid_input,
                  fmt::format("line {}: '{}' is not NAME=value", number, printable(line, 40)));
    const std::string_view value = without_quotes(strip(line.substr(equals + 1)));
    if (value.find('\0') != value.npos)
      return fail(Errc::invalid_input, fmt::format("line {}: the value has a zero byte", number));
    variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

}  // namespace lockstep::launchers
