// Detects a full disk under the log directory. With -r a worker's last words go to a log file
// there, so a full disk is a cause that the worker could not report.
#pragma once

#include <sys/statvfs.h>

#include <optional>
#include <string>

namespace lockstep::agent {

// Returns a note for the failure report. nullopt: the disk has room, or its state is unknown.
// privileged: the process may use blocks reserved for root.
std::optional<std::string> full_disk_note(const struct statvfs& disk, bool privileged,
                                          const std::string& directory);
std::optional<std::string> full_disk_note(const std::string& directory);

}  // namespace lockstep::agent
