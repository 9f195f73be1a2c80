#include "cli/rented_loss.h"

#include "cloud/renting.h"
#include "rent/gang.h"
#include "rent/on_demand.h"

#include <algorithm>
#include <chrono>

namespace lockstep::cli {

bool machines_gone(const cloud::Rental& rental) {
  const auto other = rent::OnDemand::open();
  if (!other) return false;
  cloud::Rental copy = rental;
  return rent::look_only(**other, copy) && !cloud::is_whole(copy);
}

bool may_be_done(const cloud::Rental& rental, const RemoteOutcome& ended) {
  const std::chrono::seconds autostop(rental.terms.autostop_s);
  // Machines that were heard within the idle limit cannot have ended as idle.
  if (!ended.gone || autostop.count() == 0 || ended.silent < autostop) return false;
  const auto other = rent::OnDemand::open();
  cloud::Rental copy = rental;
  if (!other || !rent::look_only(**other, copy)) return true;
  const auto& machines = copy.attempts.back().machines;
  // A preempted machine did not end by itself, so the job can start again.
  return std::none_of(machines.begin(), machines.end(),
                      [](const cloud::Held& held) { return held.machine.taken; });
}

}  // namespace lockstep::cli
