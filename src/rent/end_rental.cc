#include "rent/end_rental.h"

#include "cloud/kept_answer.h"
#include "rent/on_demand.h"

#include <chrono>
#include <utility>

namespace lockstep::rent {
namespace {

constexpr int kTriesToEnd = 180;  // one try a second: termination can take this long

Status lock_to_end(OnDemand& world, const cloud::Rental& rental,
                   const std::function<void()>& waits) {
  Status locked = world.locks().take(rental.cluster);
  if (locked) return locked;
  LOCKSTEP_TRY(world.journal().ask_to_end(rental.id));
  waits();
  for (int tries = 0; !locked && tries < kTriesToEnd; ++tries) {
    // Repeat this: a message of the other command may arrive late and name the job again.
    LOCKSTEP_TRY(world.journal().drop_job(rental.id));
    LOCKSTEP_TRY(world.web().pause(std::chrono::seconds(1)));
    locked = world.locks().take(rental.cluster);
  }
  if (locked) return world.journal().drop_job(rental.id);
  locked.error().hint = "the end is noted: the rental ends once that process is gone";
  return locked;
}

// Returns whether a machine was requested from the provider since `ms`; 0: ever.
bool used_since(OnDemand& world, std::string_view provider, std::int64_t ms) {
  if (ms == 0) return world.journal().ever_used(provider).value_or(false);
  const auto rentals = world.journal().since(ms);
  if (!rentals) return false;
  for (const cloud::Rental& rental : *rentals)
    for (const cloud::Attempt& attempt : rental.attempts)
      if (attempt.offer.provider == provider && attempt.asked_ms > ms) return true;
  return false;
}

}  // namespace

Result<bool> end_rental(OnDemand& world, cloud::Rental& rental, const std::function<void()>& waits,
                        const EndMachines& end) {
  LOCKSTEP_TRY(lock_to_end(world, rental, waits));
  auto now = world.journal().of_cluster(rental.cluster);
  if (!now && now.error().code != Errc::not_found) return Failure(now.error());
  if (!now || now->id != rental.id) {
    // The lock's previous holder has terminated the machines.
    if (const auto known = world.journal().since(rental.created_ms))
      for (const cloud::Rental& one : *known)
        if (one.id == rental.id) rental = one;
    return false;
  }
  // The rental may have changed while the user thought about the question.
  rental = std::move(*now);
  LOCKSTEP_TRY(end(rental));
  // The user asked for the end, so the next command need not report it.
  LOCKSTEP_TRY(world.journal().drop_job(rental.id));
  return true;
}

// Another process that rents now is in the journal already, or waits for the account's lock and
// makes the keys and rules again.
std::vector<CleanedAccount> clean_accounts(OnDemand& world) {
  std::vector<CleanedAccount> all;
  const auto mine = world.locks().take_account(world.web());
  if (!mine || !*mine) return all;
  const auto open = world.journal().open_rentals();
  if (!open || !open->empty()) return all;
  const std::int64_t now = world.web().now_ms();
  for (cloud::Provider* provider : world.providers().keyed()) {
    const std::string name(provider->traits().name);
    const std::string kept = "cleaned-" + name;
    const auto before = cloud::kept_answer(world.ground().cache, kept, now, now);
    if (!used_since(world, name, before ? before->as_of_ms : 0)) continue;
    all.push_back({.provider = name, .cleaned = provider->clean(world.web())});
    if (all.back().cleaned) cloud::keep_answer(world.ground().cache, kept, world.owner(), now);
  }
  return all;
}

}  // namespace lockstep::rent
