// The kind of file system of a path.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace lockstep::io {

// Returns whether no other host can have the same files open. On a shared file system, a program
// running on another host dies if its file is removed here. false if unknown.
bool is_local(const std::string& path);

// type: f_type of statfs().
bool is_local_type(std::uint32_t type);

// Returns the devices of local file systems in /proc/self/mountinfo, as /proc/PID/maps writes them:
// "fe:00". To ask a path for its file system may wait for a file server, and this does not.
using Devices = std::set<std::string, std::less<>>;
Devices local_devices(std::string_view mountinfo);

}  // namespace lockstep::io
