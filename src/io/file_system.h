// The kind of file system of a path.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::io {

// Returns whether no other host can have the same files open. On a shared file system, a program
// running on another host dies if its file is removed here. false if unknown.
bool is_local(const std::string& path);

// Returns the same for a path that need not exist, and asks no file system that is not local: a
// file server that does not answer cannot hold up the caller. path: absolute.
bool is_local_without_asking(const std::string& path);

// type: f_type of statfs().
bool is_local_type(std::uint32_t type);

// Returns the devices of local file systems in /proc/self/mountinfo, as /proc/PID/maps writes them:
// "fe:00". To ask a path for its file system may wait for a file server, and this does not. A file
// system below another mount is one of them: no path leads there, but its files may be mapped.
using Devices = std::set<std::string, std::less<>>;
Devices local_devices(std::string_view mountinfo);

// The mounts in /proc/self/mountinfo, in its order.
struct Mount {
  std::int64_t id = 0;
  std::int64_t parent = -1;  // the mount that the point lies on; -1: not listed
  std::string point;
  bool local = false;
};
std::vector<Mount> mounts_of(std::string_view mountinfo);
// Returns whether a path without links, "." and ".." lies on a local file system. false if unknown.
bool is_on_local(const std::vector<Mount>& mounts, std::string_view path);

}  // namespace lockstep::io
