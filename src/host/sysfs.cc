// Reads small files and folders of the kernel.
#include "host/sysfs.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/folder_names.h"

#include <unistd.h>

#include <algorithm>

namespace lockstep::host {

std::optional<std::string> read_text(const std::string& path) {
  const auto text = io::read_file(path, 1 << 16);
  if (!text) return std::nullopt;
  return std::string(strip(*text));
}

std::optional<int> read_number(const std::string& path) {
  const auto text = read_text(path);
  const auto value = text ? parse_int(*text) : std::nullopt;
  if (!value || *value < INT32_MIN || *value > INT32_MAX) return std::nullopt;
  return static_cast<int>(*value);
}

std::vector<std::string> list_names(const std::string& path) {
  std::vector<std::string> names = io::names_in(path);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<int> number_after(const std::string& name, const std::string& prefix) {
  // At most nine digits, so that stoi() cannot overflow.
  if (!name.starts_with(prefix) || name.size() == prefix.size() || name.size() > prefix.size() + 9)
    return std::nullopt;
  const std::string digits = name.substr(prefix.size());
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return std::stoi(digits);
}

std::vector<int> list_numbered(const std::string& path, const std::string& prefix) {
  std::vector<int> numbers;
  for (const auto& name : list_names(path))
    if (const auto number = number_after(name, prefix)) numbers.push_back(*number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool may_open(const std::string& device) {
  return access(device.c_str(), R_OK | W_OK) == 0;
}

}  // namespace lockstep::host
