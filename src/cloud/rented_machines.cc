#include "cloud/rented_machines.h"

#include "base/text.h"
#include "cloud/refused_end.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::cloud {
namespace {

// Returns the end of a machine: the provider's own time, else the time at which the provider agreed
// to terminate the machine. A machine that ends by itself was gone at the end of its lease, however
// late a client looks.
std::int64_t ended_at(const Held& held, const Offer& offer, std::int64_t ends_ms,
                      std::int64_t now) {
  if (held.machine.ended_ms > 0) return held.machine.ended_ms;
  std::int64_t end = held.end_ms > 0 ? held.end_ms : now;
  if (offer.ending == Ending::by_itself && ends_ms > held.since_ms) end = std::min(end, ends_ms);
  return end;
}

// Takes up machines with the rental's tag that no attempt knows. Such machines appear in two cases:
// a list was incomplete while an unanswered launch was settled, or an old copy of the journal was
// restored. They belong to the attempt under way and end with it. Machines beyond its count, or of
// another launch, become surplus and are terminated at once.
void adopt(const Rental& rental, Attempt& attempt, const Listing& listing) {
  // Leave the machines to resolve() while an unanswered launch may have made them.
  if (has_unanswered(rental)) return;
  for (const Machine& machine : listing.machines) {
    if (machine.state == Machine::State::gone || machine.intent != rental.id) continue;
    if (holds(rental, machine.id)) continue;
    const int had = static_cast<int>(attempt.machines.size());
    int node = machine.node >= 0 ? machine.node : attempt.node + had;
    const bool of_another = !machine.token.empty() && machine.token != attempt.call.token;
    if (had >= attempt.count || of_another) node = kSurplus;
    attempt.machines.push_back({.machine = machine, .node = node, .since_ms = attempt.asked_ms});
  }
}

bool unheard_of(const Listing& listing, const Offer& offer) {
  return std::any_of(listing.unheard.begin(), listing.unheard.end(), [&](const NoAnswer& silence) {
    return silence.region.empty() || silence.region == offer.region || silence.region == offer.zone;
  });
}

// Returns whether all machines are gone. Lists may lack new machines for a while. An attempt with
// fewer machines than requested must therefore be old enough.
bool seen_gone(const Attempt& attempt, std::int64_t now, std::chrono::milliseconds unlisted) {
  const bool all_known = static_cast<int>(attempt.machines.size()) >= attempt.count ||
                         now - attempt.answered_ms >= unlisted.count();
  return all_known && std::all_of(attempt.machines.begin(), attempt.machines.end(),
                                  [](const Held& held) { return held.gone_ms != 0; });
}

void close(Attempt& attempt, std::int64_t now) {
  attempt.state = Attempt::State::gone;
  attempt.ended_ms = now;
  attempt.call = {};
}

}  // namespace

// Updates the machines of an attempt from the provider's list.
Status RentedMachines::see(Rental& rental, Attempt& attempt, Provider& provider, Web& web) {
  LOCKSTEP_TRY_ASSIGN(const Listing listing, provider.list(web, {.regions = {attempt.offer.region},
                                                                 .intent = rental.id,
                                                                 .owner = rental.owner}));
  const std::int64_t now = web.now_ms();
  const bool late = now - attempt.answered_ms >= rules_.unlisted.count();
  const bool unheard = unheard_of(listing, attempt.offer);
  adopt(rental, attempt, listing);
  for (Held& held : attempt.machines) {
    const auto found =
        std::find_if(listing.machines.begin(), listing.machines.end(),
                     [&](const Machine& machine) { return machine.id == held.machine.id; });
    if (found != listing.machines.end()) {
      held.machine = *found;
      if (found->launched_ms > 0) held.since_ms = found->launched_ms;
      // An earlier list was incomplete, and the machine seemed gone.
      if (found->state != Machine::State::gone) held.gone_ms = 0;
    } else if (!unheard && late) {
      held.machine.state = Machine::State::gone;
    }
    if (held.machine.state != Machine::State::gone || held.gone_ms != 0) continue;
    held.gone_ms = ended_at(held, attempt.offer, rental.ends_ms, now);
  }
  return {};
}

Status RentedMachines::look(Rental& rental, bool note) {
  Status first;
  for (Attempt& attempt : rental.attempts) {
    if (!attempt.open() || attempt.unanswered()) continue;
    Provider* provider = parts_.provider(attempt.offer.provider);
    Status seen = provider == nullptr ? without_keys(attempt.offer.provider, "looked after")
                                      : see(rental, attempt, *provider, parts_.web);
    const std::int64_t now = parts_.web.now_ms();
    if (seen && seen_gone(attempt, now, rules_.unlisted)) close(attempt, now);
    // Go on with the other attempts: a silent provider must not hide the state of machines
    // elsewhere.
    if (!seen && first) first = std::move(seen);
  }
  const Status kept = note ? parts_.journal.keep(rental) : Status();
  return first ? kept : first;
}

void RentedMachines::update(Rental& rental, Attempt& attempt, Provider& provider) {
  // Ignore a failed list: the next look comes within seconds, and the caller bounds all looks.
  (void)see(rental, attempt, provider, parts_.web);
  for (Held& held : attempt.machines)
    if (held.node == kSurplus && held.gone_ms == 0 && held.end_ms == 0 &&
        provider.end(parts_.ending, {held.machine}))
      held.end_ms = parts_.ending.now_ms();
}

// --- termination

// Asks the provider to terminate the machines of the attempt that are alive.
Status RentedMachines::ask_to_end(Attempt& attempt, Provider& provider, Web& web) {
  std::vector<Machine> machines;
  for (const Held& held : attempt.machines)
    if (held.gone_ms == 0) machines.push_back(held.machine);
  const std::int64_t asked_ms = web.now_ms();
  if (Status ended = provider.end(web, machines); !ended) {
    tell_refused_end(attempt, provider, ended.error());
    return ended;
  }
  for (Held& held : attempt.machines)
    if (held.end_ms == 0) held.end_ms = asked_ms;
  return {};
}

// Reports a refusal that a retry cannot mend: at once, and once for each reason.
void RentedMachines::tell_refused_end(const Attempt& attempt, const Provider& provider,
                                      const Error& why) {
  if (!is_lasting_refusal(why) || !refused_ends_.emplace(attempt.number, why.message).second)
    return;
  std::vector<Machine> machines;
  for (const Held& held : attempt.machines)
    if (held.gone_ms == 0) machines.push_back(held.machine);
  if (machines.empty()) return;
  const Micros rate = static_cast<Micros>(machines.size()) * attempt.per_hour;
  tell(parts_, RentEvent::Kind::not_ended, &attempt.offer,
       refused_end_words(machines, rate, provider.traits(), why));
}

// Terminates an attempt and waits until all its machines were seen gone.
Status RentedMachines::end_attempt(Rental& rental, std::size_t at, const std::string& why) {
  Web& web = parts_.ending;
  Provider* provider = parts_.provider(rental.attempts[at].offer.provider);
  if (provider == nullptr) return without_keys(rental.attempts[at].offer.provider, "ended");
  if (rental.attempts[at].unanswered()) {
    LaunchOutcome outcome;
    Status resolved = launches_.resolve(rental, at, *provider, web, outcome);
    // Continue if the answer is known but the journal could not keep it: existing machines must
    // end.
    if (rental.attempts[at].unanswered() || !rental.attempts[at].open()) return resolved;
  }
  Attempt& attempt = rental.attempts[at];
  start_ending(attempt, why);
  // A full disk must not keep machines alive.
  (void)parts_.journal.keep(rental);
  constexpr std::int64_t kAskAgainMs = 30'000;
  constexpr std::int64_t kAskSoonMs = 5'000;
  const std::int64_t began = web.now_ms();
  // end_all() has just asked. A provider may refuse a second request for a machine that is ending,
  // as moto's EC2 does. Such a refusal says nothing.
  const bool just_asked =
      std::all_of(attempt.machines.begin(), attempt.machines.end(), [&](const Held& held) {
        return held.gone_ms != 0 || (held.end_ms > 0 && began - held.end_ms < kAskSoonMs);
      });
  std::int64_t ask_at = just_asked ? began + kAskAgainMs : began;
  Error trouble;
  while (true) {
    if (web.now_ms() >= ask_at) {
      Status ended = ask_to_end(attempt, *provider, web);
      trouble = ended ? Error{} : ended.error();
      if (!ended && trouble.code == Errc::canceled) return ended;
      ask_at = web.now_ms() + (ended ? kAskAgainMs : kAskSoonMs);
    }
    const std::size_t had = attempt.machines.size();
    if (const Status seen = see(rental, attempt, *provider, web); !seen) trouble = seen.error();
    // The list had new machines of this attempt. Terminate those at once, too.
    if (attempt.machines.size() > had) ask_at = 0;
    const std::int64_t now = web.now_ms();
    if (seen_gone(attempt, now, rules_.unlisted)) break;
    if (now - began >= rules_.end_patience.count()) return not_gone(attempt.offer, trouble);
    LOCKSTEP_TRY(web.pause(kLookPause));
  }
  close(attempt, web.now_ms());
  return parts_.journal.keep(rental);
}

void RentedMachines::start_ending(Attempt& attempt, const std::string& why) const {
  if (attempt.state != Attempt::State::ending)
    tell(parts_, RentEvent::Kind::ending, &attempt.offer);
  attempt.state = Attempt::State::ending;
  if (attempt.code.empty()) attempt.code = printable(why, 200);
}

Failure RentedMachines::not_gone(const Offer& offer, const Error& trouble) const {
  return fail(is_lasting_refusal(trouble) ? Errc::denied : Errc::timeout,
              fmt::format("{}: not seen gone within {} s{}{}", offer_words(offer),
                          rules_.end_patience.count() / 1000, trouble.message.empty() ? "" : ": ",
                          trouble.message),
              "`lockstep down` asks again");
}

Status RentedMachines::end_all(Rental& rental, const std::string& why) {
  // Ask for the end of all attempts before waiting for any. Waiting takes minutes, and all machines
  // are billed meanwhile.
  const auto each_open = [&](bool without_answer, const auto& visit) {
    for (std::size_t at = 0; at < rental.attempts.size(); ++at)
      if (rental.attempts[at].open() && rental.attempts[at].unanswered() == without_answer)
        visit(at);
  };
  each_open(false, [&](std::size_t at) { start_ending(rental.attempts[at], why); });
  (void)parts_.journal.keep(rental);
  each_open(false, [&](std::size_t at) {
    Provider* provider = parts_.provider(rental.attempts[at].offer.provider);
    if (provider != nullptr) (void)ask_to_end(rental.attempts[at], *provider, parts_.ending);
  });
  // Settle unanswered launches first. While such a launch is open, adopt() cannot tell the owner of
  // an unknown machine.
  Status first;
  const auto end_it = [&](std::size_t at) {
    // Go on after an error: every machine that can be terminated must be.
    if (Status ended = end_attempt(rental, at, why); !ended && first) first = std::move(ended);
  };
  each_open(true, end_it);
  each_open(false, end_it);
  return first;
}

Status RentedMachines::give_back(Rental& rental) {
  rental.wanted = false;
  (void)parts_.journal.keep(rental);
  LOCKSTEP_TRY(end_all(rental, "terminated"));
  rental.closed_ms = parts_.ending.now_ms();
  // The first-boot text contains a host key, so do not keep it longer than needed.
  rental.user_data.clear();
  rental.start_script.clear();
  return parts_.journal.keep(rental);
}

}  // namespace lockstep::cloud
