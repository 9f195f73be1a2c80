// Reads the list of what a process has mapped (/proc/PID/maps), and finds CPython there.
#pragma once

#include "stacks/memory.h"

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::stacks {

// A line of the list. The texts point into it.
struct MapLine {
  Address start = 0;
  Address end = 0;
  Address offset = 0;                 // in the file
  std::string_view permissions = {};  // "r-xp"
  std::string_view device = {};
  std::string_view inode = {};
  std::string_view path = {};  // "/usr/lib/libc.so.6", with " (deleted)" if so; "[vdso]"; "": none
};
std::optional<MapLine> parse_map_line(std::string_view line);

struct MappedFile {
  Address start = 0;  // of the mapping that begins with the file's first byte
  Address end = 0;
  std::string path;      // as the process sees it, without " (deleted)"
  bool deleted = false;  // or replaced by an upgrade
  friend bool operator==(const MappedFile&, const MappedFile&) = default;
};

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version&) const = default;
};

// Returns the mapped files that may hold CPython, in the order in which to ask them: a program
// named like python, the shared library libpython3.N, the program of the process (`exe`), which may
// embed CPython. At most 8.
std::vector<MappedFile> python_files(std::string_view maps, std::string_view exe);

// Returns the version in a file name: libpython3.10.so.1.0, python3.8.
std::optional<Version> version_in_name(std::string_view path);

}  // namespace lockstep::stacks
