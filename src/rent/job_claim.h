// Who goes on with the job of a rental: the command that began it as long as it lives, then one
// follower, which waits for that. By locks of the kernel, so nobody has to say that he is gone.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "proc/spawn.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rent {

inline constexpr const char* kFollowCommand = "follow-rented";

// The job is ours as long as what is returned is held. already_exists: it is somebody else's.
Result<io::Fd> claim_job(const std::string& rental);
// Waits until it is, or until a signal ends this process: the handled ones must not be blocked.
Result<io::Fd> await_job(const std::string& rental);
bool job_is_claimed(const std::string& rental);

// Behind a rental's id, for a follower whose environment is not that of the job's command.
inline constexpr const char* kForeignEnvironment = "foreign-environment";

// A process of its own, which outlives this one: it claims the job once that is free, and goes on
// with it where it has not ended by then. by_command: this process is the job's command.
Result<proc::Child> start_follower(const std::string& rental, bool by_command);

// What a follower says, and the job's output.
std::string follow_log(const std::string& cluster);
// Where it is long: how the file of its beginning, of what came last before, and of its end are
// called behind the cluster's name; all of them, that are there or not.
inline constexpr std::array<std::string_view, 3> kFollowLogEndings = {".log.1", ".log.2", ".log"};
std::vector<std::string> follow_logs(const std::string& cluster);

}  // namespace lockstep::rent
