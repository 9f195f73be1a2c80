#include "setup/venv_config.h"

#include "base/text.h"

namespace lockstep::setup {
namespace {

constexpr std::string_view kKey = "include-system-site-packages";

// Python's site module splits a line at its first '=' and ignores case.
bool has_key(std::string_view line) {
  const std::size_t sign = line.find('=');
  return sign != std::string_view::npos && to_lower(strip(line.substr(0, sign))) == kKey;
}

}  // namespace

bool sees_base_packages(std::string_view config) {
  bool sees = false;
  for (const std::string& line : split(config, '\n'))
    if (has_key(line)) sees = to_lower(strip(line.substr(line.find('=') + 1))) == "true";
  return sees;
}

std::string with_base_packages(std::string_view config) {
  std::string text;
  for (const std::string& line : split(config, '\n'))
    if (!has_key(line) && !strip(line).empty()) text.append(line).append("\n");
  return text.append(kKey).append(" = true\n");
}

}  // namespace lockstep::setup
