// Claims on the jobs of rentals: which process is in charge of a job. First the command that began
// the job, until that process ends, then one follower, which waits for the claim. The kernel's
// locks decide, so a claim ends with its process even after SIGKILL.
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

// Claims the job for as long as the returned lock is held. already_exists: another process has the
// job.
Result<io::Fd> claim_job(const std::string& rental);
// Waits for the claim, or until a signal ends this process. The handled signals must not be
// blocked.
Result<io::Fd> await_job(const std::string& rental);
// Returns whether any process has claimed the job. Does not take the claim.
bool job_is_claimed(const std::string& rental);

// The word after a rental's id for a follower without the environment of the job's command.
inline constexpr const char* kForeignEnvironment = "foreign-environment";

// Starts a follower, which outlives this process. The follower waits for the claim and takes the
// job over if the job has not ended by then. by_command: this process is the job's command.
Result<proc::Child> start_follower(const std::string& rental, bool by_command);

// Returns the path of the log with a follower's messages and the job's output.
std::string follow_log(const std::string& cluster);
// The endings of a long log's files behind the cluster's name: its beginning, the part before the
// newest, and the newest. follow_logs() returns all three paths, whether the files exist or not.
inline constexpr std::array<std::string_view, 3> kFollowLogEndings = {".log.1", ".log.2", ".log"};
std::vector<std::string> follow_logs(const std::string& cluster);

}  // namespace lockstep::rent
