// What a follower of a job on rented machines writes: its own words and the job's output, within
// bounds however much that is.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::cli {

// From here on this process writes there. When it is long it is put aside as PATH.1, which stays as
// the beginning, later as PATH.2, which is what came last before. Starts a thread: the handled
// signals must be blocked.
Status write_follow_log(const std::string& path);
void end_follow_log(const std::string& path);  // before this process ends

// Whether the file, by its name, is such a log or was put aside of it: the cluster's name.
std::optional<std::string> cluster_of_log(const std::string& file);

// For `lockstep logs NAME`: all of it, or its last lines, where the job has no machine now that
// could be asked. nullopt: nothing was written, or its machine is there.
std::optional<std::string> told_by_follower(const std::string& cluster,
                                            std::optional<std::int64_t> lines);

}  // namespace lockstep::cli
