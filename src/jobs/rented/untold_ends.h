// Looks after jobs of rentals whose command is gone: tells the user each end once, and starts a
// process for each job that no process follows. Called by the next command about rented machines.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "cloud/rented_job.h"
#include "jobs/rented/owned_end.h"
#include "rent/on_demand.h"

#include <functional>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {

enum class UntoldStep {
  leave,            // a process has the job, or the guard is about to start one
  settle,           // another host owns the rental: that host knows whether the job has ended
  keep_for_client,  // the job of another machine's user, whose command tells the end
  follow,           // machines may exist, and no guard: start a process for the course
  tell,             // the course has noted the end
  tell_closed,      // the machines were terminated, and no process has noted an end
};
// Pure. claimed: a process has the job. open: the rentals that are open.
UntoldStep untold_step(const cloud::RentedJob& job, bool claimed,
                       const std::vector<cloud::Rental>& open);

// Tells the user. closed: the terminated rental of a job without a noted end, or nullptr.
struct UntoldWords {
  std::function<void(const cloud::RentedJob& job, const cloud::Rental* closed)> ended;
  std::function<void(const cloud::RentedJob& job, const Status& started)> followed;
  std::function<void(const cloud::RentedJob& job, const Error& why)> not_known;
};
using StartFollower = std::function<Status(const std::string& rental)>;
// Starts a process that carries the course of the job and outlives this process.
Status start_follower_here(const std::string& rental);

// Takes the step of every job in the journal. Forgets a job whose end was told. canceled: a signal
// came while a host was asked; Error::sys is its number.
Status tell_untold_ends(rent::OnDemand& world, const std::vector<cloud::Rental>& open,
                        const OwnedWorld& owners, const UntoldWords& words,
                        const StartFollower& start = start_follower_here);

}  // namespace lockstep::jobs::rented
