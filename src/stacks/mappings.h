// What lies at an address of a process, by its mapped files. Pure.
#pragma once

#include "io/file_system.h"
#include "stacks/memory.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::stacks {

struct Mapping {
  Address start = 0;
  Address end = 0;
  Address image = 0;      // where the first byte of the file is mapped; 0: not mapped, or no file
  bool code = false;      // readable and executable, of a file or of the kernel's vDSO
  bool far = false;       // of a file that may lie on a file server: to read it may take for ever
  std::string name = {};  // "libcuda.so.1", "[vdso]"; "": no file
  std::string file = {};  // the same for all processes that have mapped this file

  friend bool operator==(const Mapping&, const Mapping&) = default;
};

// Reads /proc/PID/maps. The kernel orders its lines by address. local: of local file systems.
std::vector<Mapping> parse_mappings(std::string_view maps, const io::Devices& local);

// nullptr: nothing is mapped there.
const Mapping* mapping_at(const std::vector<Mapping>& mappings, Address at);

}  // namespace lockstep::stacks
