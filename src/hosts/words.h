// Words for people about hosts. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::hosts {

// Returns a size of memory or disks with binary units: "64 MiB", "1.5 GiB".
std::string memory_text(std::int64_t bytes);
// Returns the names as ranges: "gpus-0, gpus-2 to gpus-9". After eight ranges, only the number of
// all names follows.
std::string names_text(std::span<const std::string> names);

}  // namespace lockstep::hosts
