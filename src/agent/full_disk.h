// A full disk is the cause that cannot write itself down: with -r a worker's last words go to a
// file of their own, and find no room there.
#pragma once

#include <sys/statvfs.h>

#include <optional>
#include <string>

namespace lockstep::agent {

// nullopt: there is room, or nothing is known of it. privileged: may use what is kept for root.
std::optional<std::string> full_disk_note(const struct statvfs& disk, bool privileged,
                                          const std::string& directory);
std::optional<std::string> full_disk_note(const std::string& directory);

}  // namespace lockstep::agent
