// The kind of file system of a path.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::io {

// Returns whether no other host can have the same files open. On a shared file system, a program
// running on another host dies if its file is removed here. false if unknown.
bool is_local(const std::string& path);

// type: f_type of statfs().
bool is_local_type(std::uint32_t type);

}  // namespace lockstep::io
