// Small readers for /sys, /proc and /dev, whose files may be absent, incomplete or vanish.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::host {

// The file's text without white space at its ends; nullopt if it cannot be read.
std::optional<std::string> read_text(const std::string& path);
std::optional<int> read_number(const std::string& path);

// Names in a folder, sorted; empty if it cannot be read.
std::vector<std::string> list_names(const std::string& path);

// 3 for ("nvidia3", "nvidia"); nullopt where anything but digits follows the prefix.
std::optional<int> number_after(const std::string& name, const std::string& prefix);

// Sorted numbers of the names in `path` that are `prefix` and digits.
std::vector<int> list_numbered(const std::string& path, const std::string& prefix);

// Whether this user may read and write the device.
bool may_open(const std::string& device);

}  // namespace lockstep::host
