// The folder in which the profilers of this node's ranks ask the agent for orders, and in which
// they write traces.
#pragma once

#include <sys/un.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

inline constexpr std::string_view kProfileFolderHead = "lockstep-profile-";
inline constexpr std::string_view kProfileSocket = "dynolog";  // Kineto knows no other name

// Returns places for a folder with sockets, the best first. Only a local disk can have sockets and
// pipes, and traces may be large, so a job's own TMPDIR comes first.
std::vector<std::string> socket_places();

// Fills in the address of a socket and returns its size. A long path is cut.
std::size_t profile_address(const std::string& path, sockaddr_un& into);

// Removes the folders that killed agents of this user left in `place`.
void sweep_profile_folders(const std::string& place);
// Removes the folder with all files and folders that workers put into it.
void remove_profile_folder(const std::string& folder);

}  // namespace lockstep::agent
