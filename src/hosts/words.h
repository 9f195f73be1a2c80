// Words for people about hosts. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::hosts {

std::string memory_text(std::int64_t bytes);  // memory, disks: "64 MiB", "1.5 GiB"
// "gpus-0, gpus-2 to gpus-9"; more than a few are counted.
std::string names_text(std::span<const std::string> names);

}  // namespace lockstep::hosts
