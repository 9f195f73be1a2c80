// One launch from the call to machines that run, and their end.
#include "base/text.h"
#include "cloud/renting.h"
#include "cloud/renting_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::cloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A machine that was asked for and will not come up.
bool is_lost(const Machine& machine) {
  return machine.state == Machine::State::gone || machine.state == Machine::State::ending ||
         machine.state == Machine::State::stopped || machine.state == Machine::State::unhealthy;
}

// As if the launch had been refused: for want of room, or for a reason that another zone shares.
LaunchOutcome lost_while_booting(const Machine& machine, const std::string& why) {
  const bool elsewhere =
      machine.no_room || machine.taken || machine.state == Machine::State::unhealthy;
  return {.kind = LaunchOutcome::Kind::refused,
          .refusal = elsewhere ? Refusal::next_zone : Refusal::unknown,
          .code = why,
          .message = "the machine was lost"};
}

// When a machine that is gone has ended: as the provider says, else when it agreed to end it, else
// at its lease if that is over, however late that is seen.
std::int64_t ended_at(const Held& held, std::int64_t ends_ms, std::int64_t now) {
  if (held.machine.ended_ms > 0) return held.machine.ended_ms;
  if (held.end_ms > 0) return held.end_ms;
  return ends_ms > held.since_ms ? std::min(now, ends_ms) : now;
}

}  // namespace

// --- one call

Status Renting::settle(Rental& rental, std::size_t at, const LaunchOutcome& outcome) {
  Attempt& attempt = rental.attempts[at];
  switch (outcome.kind) {
    case LaunchOutcome::Kind::answered:
      attempt.state = Attempt::State::answered;
      attempt.answered_ms = parts_.web.now_ms();
      for (std::size_t i = 0; i < outcome.ids.size(); ++i)
        attempt.machines.push_back(
            {.machine = {.id = outcome.ids[i],
                         .region = attempt.offer.region,
                         .zone = attempt.offer.zone,
                         .type = attempt.offer.type,
                         .intent = rental.id},
             .node = attempt.node + static_cast<int>(i),
             .since_ms = outcome.launched_ms > 0 ? outcome.launched_ms : attempt.asked_ms});
      break;
    case LaunchOutcome::Kind::refused:
      attempt.state = Attempt::State::refused;
      attempt.code = outcome.code;
      attempt.message = outcome.message;
      attempt.ended_ms = parts_.web.now_ms();
      attempt.call = {};
      break;
    case LaunchOutcome::Kind::unknown:
      attempt.state = Attempt::State::unknown;
      attempt.message = outcome.message;
      break;
  }
  return keep(rental);
}

// Asks until it is known whether an unanswered launch has made something.
Status Renting::resolve(Rental& rental, std::size_t at, Provider& provider, Web& web) {
  const std::int64_t until = web.now_ms() + rules_.unknown_patience.count();
  milliseconds pause = seconds(2);
  while (true) {
    Attempt& attempt = rental.attempts[at];
    const LaunchOutcome outcome =
        provider.resolve(web, spec_of(rental, attempt), attempt.call, attempt.asked_ms);
    if (outcome.kind != LaunchOutcome::Kind::unknown) return settle(rental, at, outcome);
    tell(RentEvent::Kind::no_answer, &attempt.offer, outcome.message);
    if (web.now_ms() >= until)
      return fail(Errc::unavailable,
                  fmt::format("{}: it is not known whether a launch came about: {}",
                              offer_words(attempt.offer), outcome.message),
                  "nothing else is tried meanwhile; `lockstep down` ends it once the provider "
                  "answers");
    LOCKSTEP_TRY(web.pause(pause));
    pause = std::min(pause * 2, milliseconds(seconds(10)));
  }
}

Renting::Tried Renting::refused(const Offer& offer, const LaunchOutcome& outcome) {
  const std::string why =
      fmt::format("{}: {}", offer_words(offer),
                  outcome.message.empty() ? outcome.code
                                          : fmt::format("{} ({})", outcome.message, outcome.code));
  tell(RentEvent::Kind::refused, &offer, why);
  last_ = fail(Errc::unavailable, why).value();
  const auto learned = [&](Block::Kind kind) -> Tried {
    if (const Status kept = learn(offer, kind, outcome.code); !kept)
      return {.what = Tried::What::stop, .error = kept.error()};
    return {.what = Tried::What::next, .zones_to_try = outcome.zones_to_try};
  };
  switch (outcome.refusal) {
    case Refusal::next_zone:
      return learned(Block::Kind::capacity);
    case Refusal::next_region:
      return learned(Block::Kind::quota);
    case Refusal::provider_out:
      out_.insert(offer.provider);
      return {};
    case Refusal::unknown:
      if (unknown_codes_++ == 0) return learned(Block::Kind::capacity);
      [[fallthrough]];
    case Refusal::stop:
      break;
  }
  return {.what = Tried::What::stop, .error = fail(Errc::invalid_input, why).value()};
}

Renting::Tried Renting::launch_one(Rental& rental, Attempt attempt, Provider& provider) {
  const auto call = provider.prepare(parts_.web, spec_of(rental, attempt));
  if (!call) {
    if (call.error().kind == LaunchOutcome::Kind::unknown) {
      // Nothing was asked for yet: as if this place had nothing.
      LaunchOutcome silent = call.error();
      silent.refusal = Refusal::next_zone;
      return refused(attempt.offer, silent);
    }
    return refused(attempt.offer, call.error());
  }
  attempt.call = *call;
  attempt.asked_ms = parts_.web.now_ms();
  const Offer offer = attempt.offer;
  rental.attempts.push_back(std::move(attempt));
  const std::size_t at = rental.attempts.size() - 1;
  if (Status kept = keep(rental); !kept) {
    rental.attempts.pop_back();
    return {.what = Tried::What::stop,
            .error = std::move(kept).error().within("nothing is rented, the journal is not kept")};
  }
  tell(RentEvent::Kind::asking, &offer);
  const LaunchOutcome outcome =
      provider.launch(parts_.web, spec_of(rental, rental.attempts[at]), rental.attempts[at].call);
  Status settled = settle(rental, at, outcome);
  if (settled && outcome.kind == LaunchOutcome::Kind::unknown) {
    tell(RentEvent::Kind::no_answer, &offer, outcome.message);
    settled = resolve(rental, at, provider, parts_.web);
  }
  if (!settled) return {.what = Tried::What::stop, .error = settled.error()};
  const Attempt& now = rental.attempts[at];
  if (now.state != Attempt::State::refused) return {.what = Tried::What::got};
  if (outcome.kind == LaunchOutcome::Kind::refused) return refused(offer, outcome);
  LaunchOutcome late{.kind = LaunchOutcome::Kind::refused,
                     .refusal = Refusal::next_zone,
                     .code = now.code,
                     .message = now.message};
  if (late.code.empty()) late.message = "the launch was not answered, and made nothing";
  return refused(offer, late);
}

Renting::Tried Renting::launch_gang(Rental& rental, const Candidate& candidate) {
  Provider* provider = parts_.provider(candidate.offer.provider);
  if (provider == nullptr) return {};
  const int nodes = rental.wish.nodes;
  const int in_one = provider->traits().gang_in_one_call ? nodes : 1;
  for (int node = 0; node < nodes; node += in_one) {
    Tried tried = launch_one(rental,
                             {.number = static_cast<int>(rental.attempts.size()) + 1,
                              .node = node,
                              .count = in_one,
                              .offer = candidate.offer,
                              .per_hour = candidate.offer.per_machine_hour(rental.wish.disk_gb)},
                             *provider);
    if (tried.what != Tried::What::got) return tried;
  }
  return {.what = Tried::What::got};
}

// --- until it runs

// Machines with the rental's tag that no attempt knows: a list was not whole when a launch without
// an answer was looked for. They belong to the attempt under way, and end with it.
void Renting::adopt(const Rental& rental, Attempt& attempt, const Listing& listing) {
  for (const Machine& machine : listing.machines) {
    if (machine.state == Machine::State::gone || machine.intent != rental.id) continue;
    const bool known =
        std::any_of(rental.attempts.begin(), rental.attempts.end(), [&](const Attempt& one) {
          return std::any_of(one.machines.begin(), one.machines.end(),
                             [&](const Held& held) { return held.machine.id == machine.id; });
        });
    if (known) continue;
    const int node =
        machine.node >= 0 ? machine.node : attempt.node + static_cast<int>(attempt.machines.size());
    attempt.machines.push_back(
        {.machine = machine, .node = node, .since_ms = attempt.asked_ms, .gone_ms = 0});
  }
}

// How the machines of an attempt are now, by the provider's list.
Status Renting::see(Rental& rental, Attempt& attempt, Provider& provider, Web& web) {
  LOCKSTEP_TRY_ASSIGN(const Listing listing, provider.list(web, {.regions = {attempt.offer.region},
                                                                 .intent = rental.id,
                                                                 .owner = rental.owner}));
  const std::int64_t now = web.now_ms();
  const bool unheard =
      std::any_of(listing.unheard.begin(), listing.unheard.end(), [&](const Silence& silence) {
        return silence.region.empty() || silence.region == attempt.offer.region ||
               silence.region == attempt.offer.zone;
      });
  adopt(rental, attempt, listing);
  for (Held& held : attempt.machines) {
    const auto found =
        std::find_if(listing.machines.begin(), listing.machines.end(),
                     [&](const Machine& machine) { return machine.id == held.machine.id; });
    if (found != listing.machines.end()) {
      held.machine = *found;
      if (found->launched_ms > 0) held.since_ms = found->launched_ms;
    } else if (!unheard && now - attempt.answered_ms >= rules_.unlisted.count()) {
      held.machine.state = Machine::State::gone;
    }
    if (held.machine.state != Machine::State::gone || held.gone_ms != 0) continue;
    held.gone_ms = ended_at(held, rental.ends_ms, now);
  }
  return {};
}

bool Renting::whole(const Rental& rental) {
  std::set<int> nodes;
  for (const Attempt& attempt : rental.attempts)
    for (const Held& held : attempt.machines)
      if (attempt.open() && attempt.state != Attempt::State::ending &&
          held.machine.state == Machine::State::running && !held.machine.address.empty())
        nodes.insert(held.node);
  return static_cast<int>(nodes.size()) >= rental.wish.nodes;
}

Renting::Tried Renting::bring_up(Rental& rental) {
  const std::int64_t began = parts_.web.now_ms();
  const auto stop = [](Error error) {
    return Tried{.what = Tried::What::stop, .error = std::move(error)};
  };
  while (true) {
    const Offer* offer = nullptr;
    for (Attempt& attempt : rental.attempts) {
      if (!attempt.open() || attempt.state == Attempt::State::ending) continue;
      Provider* provider = parts_.provider(attempt.offer.provider);
      if (provider == nullptr) continue;
      offer = &attempt.offer;
      // A list that fails is asked again: only time ends it.
      (void)see(rental, attempt, *provider, parts_.web);
      for (const Held& held : attempt.machines) {
        if (!is_lost(held.machine)) continue;
        attempt.code = held.machine.why;
        const std::string why =
            held.machine.why.empty() ? "it went away while it was booting" : held.machine.why;
        if (held.machine.state == Machine::State::unhealthy)
          if (Status kept = learn(attempt.offer, Block::Kind::unhealthy, why); !kept)
            return stop(kept.error());
        return refused(attempt.offer, lost_while_booting(held.machine, why));
      }
    }
    if (whole(rental)) break;
    const std::int64_t waited = parts_.web.now_ms() - began;
    if (offer != nullptr && waited >= rules_.boot_patience.count())
      return refused(*offer, {.kind = LaunchOutcome::Kind::refused,
                              .refusal = Refusal::next_zone,
                              .code = "not running in time",
                              .message = fmt::format("it did not run within {} minutes",
                                                     rules_.boot_patience.count() / 60'000)});
    if (waited == 0) tell(RentEvent::Kind::booting, offer);
    if (Status paused = parts_.web.pause(look_pause(waited)); !paused) return stop(paused.error());
  }
  for (Attempt& attempt : rental.attempts)
    if (attempt.state == Attempt::State::answered) attempt.state = Attempt::State::running;
  if (Status kept = keep(rental); !kept) return stop(kept.error());
  tell(RentEvent::Kind::running, &rental.attempts.back().offer);
  return {.what = Tried::What::got};
}

// --- giving back

Status Renting::end_attempt(Rental& rental, std::size_t at, const std::string& why) {
  Web& web = parts_.ending;
  Provider* provider = parts_.provider(rental.attempts[at].offer.provider);
  if (provider == nullptr)
    return fail(Errc::unavailable, fmt::format("{}: without its keys nothing can be ended there",
                                               rental.attempts[at].offer.provider));
  if (rental.attempts[at].state == Attempt::State::asked ||
      rental.attempts[at].state == Attempt::State::unknown) {
    LOCKSTEP_TRY(resolve(rental, at, *provider, web));
    if (!rental.attempts[at].open()) return {};
  }
  Attempt& attempt = rental.attempts[at];
  attempt.state = Attempt::State::ending;
  if (attempt.code.empty()) attempt.code = printable(why, 200);
  // A full disk keeps nothing from being ended.
  (void)keep(rental);
  tell(RentEvent::Kind::ending, &attempt.offer);
  const std::int64_t began = web.now_ms();
  std::int64_t asked = 0;
  Error trouble;
  while (true) {
    const std::int64_t now = web.now_ms();
    if (asked == 0 || now - asked > 30'000) {
      asked = now;
      std::vector<Machine> machines;
      for (const Held& held : attempt.machines)
        if (held.gone_ms == 0) machines.push_back(held.machine);
      const std::int64_t asked_at = web.now_ms();
      if (const Status ended = provider->end(web, machines); !ended) {
        trouble = ended.error();
        if (trouble.code == Errc::canceled) return ended;
        asked = now - 25'000;
      } else {
        for (Held& held : attempt.machines)
          if (held.end_ms == 0) held.end_ms = asked_at;
      }
    }
    if (const Status seen = see(rental, attempt, *provider, web); !seen) trouble = seen.error();
    // A part of what was asked for may not be listed yet.
    const bool all_known = static_cast<int>(attempt.machines.size()) >= attempt.count ||
                           now - attempt.answered_ms >= rules_.unlisted.count();
    if (all_known && all_gone(attempt)) break;
    if (now - began >= rules_.end_patience.count())
      return fail(Errc::timeout,
                  fmt::format("{}: not seen gone within {} minutes{}{}", offer_words(attempt.offer),
                              rules_.end_patience.count() / 60'000,
                              trouble.message.empty() ? "" : ": ", trouble.message),
                  "`lockstep down` asks again");
    LOCKSTEP_TRY(web.pause(look_pause(now - began)));
  }
  attempt.state = Attempt::State::gone;
  attempt.ended_ms = web.now_ms();
  attempt.call = {};
  return keep(rental);
}

}  // namespace lockstep::cloud
