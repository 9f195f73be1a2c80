// Removes the leftovers of killed clients. Files younger than a minute may be in use and stay. Each
// function returns a line for the user per removed file.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::ssh {

// On a host, in bin_folder (~/.cache/lockstep/bin): removes partial binaries, and binaries of other
// versions that no process runs. own_name: the file that stays.
std::vector<std::string> remove_old_binaries(const std::string& bin_folder,
                                             const std::string& own_name,
                                             std::chrono::system_clock::time_point now);

// Removes binaries that were pushed more than a month ago, so that many versions do not fill the
// disk. Does nothing unless own_path is a pushed binary older than a minute.
void remove_stale_binaries(const std::string& own_path, std::chrono::system_clock::time_point now);

// On the client: removes compressed binaries of other versions.
std::vector<std::string> remove_old_pushes(const std::string& push_folder,
                                           const std::string& own_name,
                                           std::chrono::system_clock::time_point now);
// Removes control sockets whose masters are gone.
std::vector<std::string> remove_dead_sockets(const std::string& control_folder);

}  // namespace lockstep::ssh
