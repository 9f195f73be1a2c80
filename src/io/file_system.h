// On what kind of file system a path lies.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::io {

// Whether no other host can have the same files open: what runs there from a file that is removed
// here dies. false also where it can't be told.
bool is_local(const std::string& path);

// type: statfs's f_type.
bool is_local_type(std::uint32_t type);

}  // namespace lockstep::io
