// When the guard starts a follower for a job that nobody goes on with. Pure.
#pragma once

#include "cloud/rental.h"
#include "cloud/rented_job.h"
#include "rent/guard_plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::rent {

// Followers of one job that this guard has started.
struct FollowTries {
  int starts = 0;
  std::int64_t last_ms = 0;
};

enum class FollowStep {
  leave,    // somebody goes on with it, or there is nothing to go on with, or not yet
  start,    // a follower
  give_up,  // they all ended before the job did
};

inline constexpr int kMostFollowers = 8;

// Of a rental's job; nullptr: it has none, or that has ended.
const cloud::RentedJob* unended_job(const std::vector<cloud::RentedJob>& jobs,
                                    const cloud::Rental& rental);

// job: unended. claimed: somebody goes on with it now. Counts what it says in `tries`.
FollowStep follow_step(const cloud::RentedJob& job, const cloud::Rental& rental, bool claimed,
                       FollowTries& tries, std::int64_t now_ms, const GuardPace& pace);

}  // namespace lockstep::rent
