#include "jobs/rented/untold_ends.h"

#include "jobs/rented/course_log.h"
#include "rent/guard.h"
#include "rent/job_claim.h"

#include <algorithm>

namespace lockstep::jobs::rented {
namespace {

// Returns an error if the user has stopped this command.
Status settle_untold(cloud::Journal& journal, const OwnedWorld& owners, const cloud::RentedJob& job,
                     const UntoldWords& words) {
  const auto settled = settle_owned(journal, owners, job, Telling::full);
  if (settled) return {};
  if (settled.error().code == Errc::canceled) return Failure(settled.error());
  words.not_known(job, settled.error());
  return {};
}

// Tells the end of a job whose rental was closed since the job began. A job without such a rental
// has never had machines, so there is nothing to tell.
Status tell_closed(cloud::Journal& journal, const cloud::RentedJob& job, const UntoldWords& words) {
  LOCKSTEP_TRY_ASSIGN(const auto rentals, journal.since(job.began_ms));
  const auto closed = std::find_if(rentals.begin(), rentals.end(), [&](const auto& rental) {
    return rental.id == job.rental && rental.closed_ms != 0;
  });
  cloud::RentedJob told = job;
  if (told.succeeded) cloud::end_unseen(told, {});
  if (closed != rentals.end()) words.ended(told, &*closed);
  return journal.drop_job(job.rental);
}

}  // namespace

UntoldStep untold_step(const cloud::RentedJob& job, bool claimed,
                       const std::vector<cloud::Rental>& open) {
  if (claimed) return UntoldStep::leave;
  if (!job.host.empty()) return UntoldStep::settle;
  if (!job.client.empty()) return UntoldStep::keep_for_client;
  if (job.stage == cloud::RentedJob::Stage::ended) return UntoldStep::tell;
  const auto rental =
      std::find_if(open.begin(), open.end(), [&](const auto& one) { return one.id == job.rental; });
  if (rental == open.end()) return UntoldStep::tell_closed;
  return rent::wants_guard(*rental) ? UntoldStep::leave : UntoldStep::follow;
}

Status start_follower_here(const std::string& rental) {
  LOCKSTEP_TRY(rent::start_follower(rental));
  return {};
}

Status tell_untold_ends(rent::OnDemand& world, const std::vector<cloud::Rental>& open,
                        const OwnedWorld& owners, const UntoldWords& words,
                        const StartFollower& start) {
  cloud::Journal& journal = world.journal();
  LOCKSTEP_TRY_ASSIGN(const auto jobs, journal.jobs());
  for (const cloud::RentedJob& job : jobs) {
    switch (untold_step(job, rent::job_is_claimed(job.rental), open)) {
      case UntoldStep::leave:
        break;
      case UntoldStep::settle:
        LOCKSTEP_TRY(settle_untold(journal, owners, job, words));
        break;
      case UntoldStep::keep_for_client:
        if (is_long_over(job, log_written_ms(job.cluster), owners.now_ms()))
          LOCKSTEP_TRY(journal.drop_job(job.rental));
        break;
      case UntoldStep::follow:
        words.followed(job, start(job.rental));
        break;
      case UntoldStep::tell:
        words.ended(job, nullptr);
        LOCKSTEP_TRY(journal.drop_job(job.rental));
        break;
      case UntoldStep::tell_closed:
        LOCKSTEP_TRY(tell_closed(journal, job, words));
        break;
    }
  }
  return {};
}

}  // namespace lockstep::jobs::rented
