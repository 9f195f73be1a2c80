#include "rent/command_rental.h"

#include "rent/ended_by.h"
#include "rent/on_demand.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rent {
namespace {

// Terminates whatever was rented, after a failure or a stop by the user. Returns the error with
// what is left.
Failure undone(OnDemand& world, cloud::Rental& rental, const RentTalk& talk, Error why) {
  // Take the signal also after another error: it must not stop the termination.
  const int signal = world.signals().take();
  if (why.code == Errc::canceled && why.sys == 0) why.sys = signal;
  const bool may_be_left = !rental.settled();
  const Status back = give_back(world, rental, talk.event);
  if (!back && !rental.settled()) {
    talk.line(back.error().message);
    if (rental.ends_ms > 0)
      why.hint = fmt::format("lockstep down {} ends the rest; {}", rental.cluster,
                             end_words(world, rental));
  }
  // The hint named machines that have ended since.
  if (may_be_left && rental.settled()) why.hint.clear();
  // The journal could not record the end, so tell the user.
  if (why.code == Errc::exhausted && rental.settled())
    why.message += "; no machine is left, whatever lockstep cost still says";
  return Failure(std::move(why));
}

}  // namespace

Status check_not_owned_elsewhere(cloud::Journal& journal, const std::string& cluster) {
  LOCKSTEP_TRY_ASSIGN(const auto jobs, journal.jobs());
  for (const cloud::RentedJob& job : jobs)
    if (job.cluster == cluster && !job.host.empty())
      return fail(
          Errc::unavailable, fmt::format("'{}' is the name of a job at {}", cluster, job.host),
          fmt::format("wait for it, give another name, or end it: lockstep down {}", cluster));
  return {};
}

Result<std::optional<cloud::Rental>> known_rental(OnDemand& world, const std::string& cluster) {
  auto known = world.journal().of_cluster(cluster);
  if (known && known->wanted) return std::optional<cloud::Rental>(std::move(*known));
  if (known)
    return fail(Errc::unavailable, fmt::format("'{}' is being terminated", cluster),
                "lockstep down " + cluster + " finishes that");
  if (known.error().code == Errc::not_found) return std::optional<cloud::Rental>();
  return Failure(known.error());
}

bool is_in_use(const cloud::Rental& rental) {
  const auto live = rental.live();
  return cloud::is_whole(rental) && std::all_of(live.begin(), live.end(), [](const auto* held) {
           return !held->host_key.empty();
         });
}

std::string guard_of_new(const cloud::Terms& terms, const cloud::Wish& wish, bool has_job,
                         bool user_watches) {
  const bool may_be_preempted = wish.spot != cloud::SpotWish::no;
  return has_job && may_be_preempted && terms.guard.empty() && !user_watches ? "here" : terms.guard;
}

Status rent_or_undo(OnDemand& world, cloud::Rental& rental, Market market,
                    const cloud::RentRules& rules, const RentTalk& talk, bool keeps_used) {
  const bool was_in_use = keeps_used && is_in_use(rental);
  const Status rented = rent_gang(world, rental, std::move(market), rules, talk.event, talk.step);
  if (rented) return {};
  const bool ends = world.journal().end_is_asked(rental.id).value_or(false);
  if (!was_in_use || !is_in_use(rental) || ends) return undone(world, rental, talk, rented.error());
  Error why = rented.error();
  if (why.code == Errc::canceled && why.sys == 0) why.sys = world.signals().take();
  why.message += fmt::format("; '{}' stays as it is", rental.cluster);
  return Failure(std::move(why));
}

}  // namespace lockstep::rent
