#include "cloud/reconcile.h"

#include "cloud/machine_table.h"
#include "cloud/refused_end.h"
#include "cloud/rented_machines.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::cloud {
namespace {

bool is_alive(const Machine& machine) {
  return machine.state != Machine::State::gone && machine.state != Machine::State::ending;
}

// Returns whether a machine with the rental's tag belongs to the rental: the rental knows the
// machine, or an unanswered launch may have made it.
bool belongs(const Rental& rental, const Machine& machine) {
  for (const Attempt& attempt : rental.attempts) {
    const bool unanswered =
        attempt.state == Attempt::State::asked || attempt.state == Attempt::State::unknown;
    if (unanswered && (machine.token.empty() || machine.token == attempt.call.token)) return true;
    for (const Held& held : attempt.machines)
      if (attempt.open() && held.machine.id == machine.id && held.gone_ms == 0 &&
          held.node != kSurplus)
        return true;
  }
  return false;
}

bool is_wanted(const Machine& machine, const std::vector<Rental>& open) {
  return std::any_of(open.begin(), open.end(), [&](const Rental& rental) {
    return rental.id == machine.intent && belongs(rental, machine);
  });
}

// Returns the hourly rate: the provider's own number, else the built-in on-demand price. 0:
// unknown.
Micros about_rate(std::string_view provider, const Machine& machine) {
  Micros per_hour = machine.per_hour;
  const MachineTable* table = per_hour == 0 ? machine_table(provider) : nullptr;
  if (table != nullptr)
    for (const MachineType& type : table->types)
      if (type.type == machine.type) per_hour = type.on_demand.value_or(0);
  return per_hour;
}

// Terminates a machine that no rental wants.
Leftover end_leftover(const ReconcileParts& parts, Provider& provider, const Machine& machine) {
  const std::string name(provider.traits().name);
  const Micros rate = about_rate(name, machine);
  Leftover one{.provider = name, .machine = machine};
  if (machine.launched_ms > 0) one.cost = cost_of(rate, parts.web.now_ms() - machine.launched_ms);
  Status ended = provider.end(parts.web, {machine});
  if (ended) return one;
  one.error = std::move(ended).error();
  if (!is_lasting_refusal(one.error)) return one;
  const std::string costs =
      rate > 0 ? fmt::format("it costs {} USD an hour; ", dollars_text(rate)) : "";
  one.error.hint =
      fmt::format("{}in the console: {}", costs, console_words(provider.traits(), machine));
  return one;
}

// Returns whether the lease is over. Machines end by themselves at the end of the lease. This
// client gives them a minute before terminating them.
bool is_over(const Rental& rental, std::int64_t now) {
  constexpr std::int64_t kGraceMs = 60'000;
  return rental.ends_ms > 0 && now > rental.ends_ms + kGraceMs;
}

// Returns whether the rental's job will begin again on other machines.
bool goes_on(Journal& journal, const Rental& rental) {
  const auto jobs = journal.jobs();
  return jobs && std::any_of(jobs->begin(), jobs->end(), [&](const RentedJob& job) {
           return job.rental == rental.id && job.goes_on();
         });
}

// Updates the state of all machines. Closes the rental once all machines are gone.
Status bring_up_to_date(const ReconcileParts& parts, Rental& rental, Reconciled& done) {
  const auto provider = [&](std::string_view name) -> Provider* {
    for (Provider* one : parts.providers)
      if (one->traits().name == name) return one;
    return nullptr;
  };
  RentRules rules;
  // A sweep must not wait long for one rental: the next command looks again.
  rules.unknown_patience = parts.patience;
  rules.end_patience = parts.patience;
  const auto note_refusal = [&](const RentEvent& event) {
    if (event.kind == RentEvent::Kind::not_ended)
      done.not_ended.push_back(fmt::format("{}: {}", rental.cluster, event.text));
  };
  const RentParts with{parts.journal, parts.web, parts.web, provider, note_refusal};
  RentedMachines machines(with, rules);
  if (!rental.wanted || is_over(rental, parts.web.now_ms())) {
    const std::size_t refused = done.not_ended.size();
    const Status ended = machines.give_back(rental);
    if (!ended && (ended.error().code == Errc::timeout || done.not_ended.size() > refused))
      done.ending.push_back(rental);
    else
      LOCKSTEP_TRY(ended);
    if (ended) done.closed.push_back(rental);
    return {};
  }
  LOCKSTEP_TRY(machines.look(rental));
  if (rental.attempts.empty() || !rental.settled()) return {};
  if (goes_on(parts.journal, rental)) return {};
  rental.closed_ms = parts.web.now_ms();
  rental.user_data.clear();
  rental.start_script.clear();
  done.closed.push_back(rental);
  return parts.journal.keep(rental);
}

NoAnswer silence_of(const Rental& rental, const Error& error) {
  NoAnswer silence{.provider = {}, .why = error.message};
  for (const Attempt& attempt : rental.attempts)
    if (attempt.open()) {
      silence.provider = attempt.offer.provider;
      silence.region = attempt.offer.region;
    }
  return silence;
}

// Returns whether the lists already tell everything about the rental's machines: each machine is
// listed alive, or its region gave no answer. This saves a round trip for every running rental.
bool is_as_listed(const Rental& rental, const std::vector<Heard>& heard) {
  const auto seen = [&](const Attempt& attempt, const Held& held) {
    for (const Heard& one : heard) {
      if (one.provider->traits().name != attempt.offer.provider) continue;
      if (!one.listing) return true;
      const auto& silent = one.listing->unheard;
      const auto& there = one.listing->machines;
      return std::any_of(silent.begin(), silent.end(),
                         [&](const NoAnswer& place) {
                           return place.region == attempt.offer.region ||
                                  place.region == attempt.offer.zone;
                         }) ||
             std::any_of(there.begin(), there.end(), [&](const Machine& machine) {
               return machine.id == held.machine.id && is_alive(machine);
             });
    }
    return false;
  };
  for (const Attempt& attempt : rental.attempts) {
    if (!attempt.open()) continue;
    if (attempt.state != Attempt::State::answered && attempt.state != Attempt::State::running)
      return false;
    for (const Held& held : attempt.machines)
      if (held.gone_ms == 0 && (held.node == kSurplus || !seen(attempt, held))) return false;
  }
  return true;
}

// Updates a rental under the cluster's lock. Reads the rental again, since another process may have
// changed it.
void update(const ReconcileParts& parts, const std::string& id, const std::vector<Heard>& heard,
            Reconciled& done) {
  auto now = parts.journal.open_rentals();
  if (!now) {
    done.unheard.push_back({.provider = {}, .why = now.error().message});
    return;
  }
  for (Rental& rental : *now) {
    if (rental.id != id) continue;
    const bool due = !rental.wanted || is_over(rental, parts.web.now_ms());
    if (!due && !rental.settled() && is_as_listed(rental, heard)) continue;
    if (const Status updated = bring_up_to_date(parts, rental, done); !updated)
      done.unheard.push_back(silence_of(rental, updated.error()));
  }
}

}  // namespace

std::vector<Heard> list_ours(Web& web, const std::vector<Provider*>& providers) {
  std::vector<Heard> heard(providers.size());
  std::vector<std::function<void(Web&)>> jobs;
  for (std::size_t i = 0; i < heard.size(); ++i) {
    heard[i].provider = providers[i];
    jobs.emplace_back([&one = heard[i]](Web& own) { one.listing = one.provider->list(own, {}); });
  }
  web.at_once(jobs);
  return heard;
}

Result<Reconciled> reconcile(const ReconcileParts& parts, const std::vector<Rental>& before,
                             const std::vector<Heard>& heard) {
  Reconciled done;
  LOCKSTEP_TRY_ASSIGN(const std::vector<Rental> open, parts.journal.open_rentals());
  for (const Heard& one : heard) {
    const std::string name(one.provider->traits().name);
    if (!one.listing) {
      done.unheard.push_back({.provider = name, .why = one.listing.error().message});
      continue;
    }
    for (const NoAnswer& silence : one.listing->unheard) {
      // A region that this journal never used has no machines of ours, even if a policy denies the
      // list.
      const bool empty =
          silence.denied && !parts.journal.ever_used_in(silence.region).value_or(true);
      // If the journal cannot be read, assume the worst: machines may be there.
      (empty ? done.denied : done.unheard).push_back(silence);
    }
    for (const Machine& machine : one.listing->machines) {
      if (!is_alive(machine)) continue;
      // Another installation may use the same account. Report such machines, and never touch them.
      if (machine.owner != parts.owner) {
        done.foreign.push_back({.provider = name, .machine = machine});
      } else if (!is_wanted(machine, before) && !is_wanted(machine, open)) {
        done.ended.push_back(end_leftover(parts, *one.provider, machine));
      }
    }
  }
  for (const Rental& rental : open) {
    // The process with the lock takes care of the rental itself.
    if (!parts.try_lock(rental.cluster)) continue;
    update(parts, rental.id, heard, done);
    parts.unlock(rental.cluster);
  }
  return done;
}

Result<Reconciled> reconcile(const ReconcileParts& parts) {
  LOCKSTEP_TRY_ASSIGN(const std::vector<Rental> before, parts.journal.open_rentals());
  return reconcile(parts, before, list_ours(parts.web, parts.providers));
}

}  // namespace lockstep::cloud
