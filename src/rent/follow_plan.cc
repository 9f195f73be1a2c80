#include "rent/follow_plan.h"

#include <algorithm>

namespace lockstep::rent {

const cloud::RentedJob* unended_job(const std::vector<cloud::RentedJob>& jobs,
                                    const cloud::Rental& rental) {
  const auto found = std::find_if(jobs.begin(), jobs.end(), [&](const cloud::RentedJob& job) {
    return job.rental == rental.id && job.stage != cloud::RentedJob::Stage::ended;
  });
  return found == jobs.end() ? nullptr : &*found;
}

FollowStep follow_step(const cloud::RentedJob& job, const cloud::Rental& rental, bool claimed,
                       FollowTries& tries, std::int64_t now_ms, const GuardPace& pace) {
  if (job.stage == cloud::RentedJob::Stage::ended || rental.closed_ms != 0)
    return FollowStep::leave;
  const bool long_ago = tries.last_ms > now_ms || now_ms - tries.last_ms >= pace.nobody_ms;
  if (claimed) {
    // A follower that lived for long ends the row of failures.
    if (long_ago) tries = {};
    return FollowStep::leave;
  }
  if (!long_ago && now_ms - tries.last_ms < retry_pause(tries.starts, pace))
    return FollowStep::leave;
  // If followers of a job always die, start no more. The guard then treats the machines like all
  // other machines.
  if (tries.starts >= kMostFollowers) return FollowStep::give_up;
  ++tries.starts;
  tries.last_ms = now_ms;
  return FollowStep::start;
}

}  // namespace lockstep::rent
