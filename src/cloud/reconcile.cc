#include "cloud/reconcile.h"

#include <algorithm>
#include <utility>

namespace lockstep::cloud {
namespace {

struct Heard {
  Provider* provider = nullptr;
  Result<Listing> listing = {};
};

std::vector<Heard> list_all(const ReconcileParts& parts) {
  std::vector<Heard> heard(parts.providers.size());
  std::vector<std::function<void(Web&)>> jobs;
  for (std::size_t i = 0; i < heard.size(); ++i) {
    heard[i].provider = parts.providers[i];
    jobs.emplace_back([&one = heard[i]](Web& web) { one.listing = one.provider->list(web, {}); });
  }
  parts.web.at_once(jobs);
  return heard;
}

bool is_alive(const Machine& machine) {
  return machine.state != Machine::State::gone && machine.state != Machine::State::ending;
}

std::vector<Machine> none_wanted(const Listing& listing, const std::string& owner,
                                 const std::vector<Rental>& open) {
  std::vector<Machine> found;
  for (const Machine& machine : listing.machines) {
    if (machine.owner != owner || !is_alive(machine)) continue;
    const bool known = std::any_of(open.begin(), open.end(), [&](const Rental& rental) {
      return rental.id == machine.intent;
    });
    if (!known) found.push_back(machine);
  }
  return found;
}

// Machines that were seen gone, and the rental, where they all are.
Status bring_up_to_date(const ReconcileParts& parts, Rental& rental, Reconciled& done) {
  const auto provider = [&](std::string_view name) -> Provider* {
    for (Provider* one : parts.providers)
      if (one->traits().name == name) return one;
    return nullptr;
  };
  Renting renting({parts.journal, parts.web, parts.web, provider, {}});
  if (!rental.wanted) {
    if (const Status ended = renting.give_back(rental); !ended) return ended;
    done.closed.push_back(rental);
    return {};
  }
  LOCKSTEP_TRY(renting.look(rental));
  const bool had_machines =
      std::any_of(rental.attempts.begin(), rental.attempts.end(),
                  [](const Attempt& attempt) { return !attempt.machines.empty(); });
  if (!had_machines || !rental.settled()) return {};
  rental.closed_ms = parts.web.now_ms();
  rental.user_data.clear();
  rental.start_script.clear();
  done.closed.push_back(rental);
  return parts.journal.keep(rental);
}

}  // namespace

Result<Reconciled> reconcile(const ReconcileParts& parts) {
  Reconciled done;
  // The journal first: what is rented after this is not among what is compared.
  LOCKSTEP_TRY_ASSIGN(std::vector<Rental> open, parts.journal.open_rentals());
  std::vector<Heard> heard = list_all(parts);
  // And once more, for what others have rented meanwhile.
  LOCKSTEP_TRY_ASSIGN(open, parts.journal.open_rentals());
  for (Heard& one : heard) {
    const std::string name(one.provider->traits().name);
    if (!one.listing) {
      done.unheard.push_back({.provider = name, .why = one.listing.error().message});
      continue;
    }
    done.unheard.insert(done.unheard.end(), one.listing->unheard.begin(),
                        one.listing->unheard.end());
    for (const Machine& machine : one.listing->machines)
      if (machine.owner != parts.owner && is_alive(machine))
        done.foreign.push_back({.provider = name, .machine = machine});
    for (const Machine& machine : none_wanted(*one.listing, parts.owner, open)) {
      const Status ended = one.provider->end(parts.web, {machine});
      done.ended.push_back(
          {.provider = name, .machine = machine, .error = ended ? Error{} : ended.error()});
    }
  }
  for (Rental& rental : open) {
    if (!parts.try_lock(rental.cluster)) continue;
    const Status updated = bring_up_to_date(parts, rental, done);
    parts.unlock(rental.cluster);
    if (!updated) done.unheard.push_back({.provider = "", .why = updated.error().message});
  }
  return done;
}

}  // namespace lockstep::cloud
