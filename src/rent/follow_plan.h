// Decides when the guard starts a follower for a job without a command. Pure.
#pragma once

#include "cloud/rental.h"
#include "cloud/rented_job.h"
#include "rent/guard_plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::rent {

// The followers of one job that this guard has started.
struct FollowTries {
  int starts = 0;
  std::int64_t last_ms = 0;
};

enum class FollowStep {
  leave,    // a process already takes the course, or the job has ended, or the pause is not over
  start,    // a follower
  give_up,  // all followers ended before the job did
};

inline constexpr int kMostFollowers = 8;

// The rental's job. nullptr: the rental has none, or the job has ended.
const cloud::RentedJob* unended_job(const std::vector<cloud::RentedJob>& jobs,
                                    const cloud::Rental& rental);

// job: unended. claimed: a command or a follower takes the job's course now. Counts the starts in
// `tries`.
FollowStep follow_step(const cloud::RentedJob& job, const cloud::Rental& rental, bool claimed,
                       FollowTries& tries, std::int64_t now_ms, const GuardPace& pace);

}  // namespace lockstep::rent
