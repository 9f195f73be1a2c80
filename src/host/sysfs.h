// Small readers for /sys, /proc and /dev, where files may be missing, incomplete or vanish.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::host {

// Returns the file's text without surrounding white space. nullopt: unreadable.
std::optional<std::string> read_text(const std::string& path);
std::optional<int> read_number(const std::string& path);

// Returns the names in a folder, sorted. Empty if the folder is unreadable.
std::vector<std::string> list_names(const std::string& path);

// Returns 3 for ("nvidia3", "nvidia"). nullopt: the prefix is not followed by digits only.
std::optional<int> number_after(const std::string& name, const std::string& prefix);

// Returns the sorted numbers of the names in `path` that consist of `prefix` and digits.
std::vector<int> list_numbered(const std::string& path, const std::string& prefix);

// Returns whether this user may read and write the device.
bool may_open(const std::string& device);

}  // namespace lockstep::host
