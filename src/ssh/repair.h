// Removes what a client that was killed has left. What is younger than a minute may be in use, and
// stays. Each returns what it removed, in words for people.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::ssh {

// On a host, in bin_folder (~/.cache/lockstep/bin): parts of the binary, and binaries of other
// versions that no process runs. own_name: of the one that stays.
std::vector<std::string> remove_old_binaries(const std::string& bin_folder,
                                             const std::string& own_name,
                                             std::chrono::system_clock::time_point now);

// The same where own_path is such a binary that was pushed a moment ago, but of what was pushed
// more than a month ago: so many versions do not fill the disk. Else nothing.
void remove_stale_binaries(const std::string& own_path, std::chrono::system_clock::time_point now);

// Here: compressed binaries of other versions.
std::vector<std::string> remove_old_pushes(const std::string& push_folder,
                                           const std::string& own_name,
                                           std::chrono::system_clock::time_point now);
// Control sockets whose masters are gone.
std::vector<std::string> remove_dead_sockets(const std::string& control_folder);

}  // namespace lockstep::ssh
