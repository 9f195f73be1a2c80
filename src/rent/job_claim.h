// Claims on the jobs of rentals: which processes are in charge of a job. A job's command and the
// process of the job's course share a claim. Once both are gone, a follower of the guard takes the
// claim. The kernel's locks decide, so a claim ends with the processes even after SIGKILL.
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

// The word after a rental's id for a process without the environment of the job's command.
inline constexpr const char* kForeignEnvironment = "foreign-environment";
// The argument of a process that shares the command's claim. Descriptor 3 is the claim. A byte on
// stdin means that the command hands over, the end of stdin that the command is gone.
inline constexpr const char* kSharedClaim = "shared-claim";
inline constexpr int kClaimDescriptor = 3;

// The process of a job's course, as started by the job's command.
struct CourseProcess {
  proc::Child child;
  io::Fd go;  // write a byte to hand over; closing the pipe means that the command is gone
};
// Starts the course's process, which outlives this process and inherits the environment. Both share
// the claim: the job stays claimed until both are gone.
Result<CourseProcess> start_course(const std::string& rental, const io::Fd& claim);
// Starts a process that waits for the claim and then continues the job of a dead command.
Result<proc::Child> start_follower(const std::string& rental);

// Returns the path of the log with a follower's messages and the job's output.
std::string follow_log(const std::string& cluster);
// The endings of a long log's files behind the cluster's name: the beginning, the part before the
// newest, and the newest. follow_logs() returns all three paths, whether the files exist or not.
inline constexpr std::array<std::string_view, 3> kFollowLogEndings = {".log.1", ".log.2", ".log"};
std::vector<std::string> follow_logs(const std::string& cluster);

}  // namespace lockstep::rent
