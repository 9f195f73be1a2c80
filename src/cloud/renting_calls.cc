// Makes a launch: the call, its answer or lost answer, and the wait until machines run.
#include "base/backoff.h"
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

// Returns whether a machine will never run.
bool is_lost(const Machine& machine) {
  return machine.state == Machine::State::gone || machine.state == Machine::State::ending ||
         machine.state == Machine::State::stopped || machine.state == Machine::State::unhealthy;
}

// Treats a machine that was lost during boot as a refused launch. Another zone may help after lack
// of capacity, preemption or a bad host. A spot machine that disappears without a reason was
// preempted.
LaunchOutcome lost_early(const Machine& machine, const Offer& offer, const std::string& why) {
  const bool elsewhere = machine.no_room || machine.taken ||
                         machine.state == Machine::State::unhealthy ||
                         (offer.spot && machine.why.empty());
  return {.kind = LaunchOutcome::Kind::refused,
          .refusal = elsewhere ? Refusal::next_zone : Refusal::unknown,
          .code = why,
          .message = "the machine was lost"};
}

template <class Good>
bool has_all_nodes(const Rental& rental, Good is_good) {
  std::set<int> nodes;
  for (const Attempt& attempt : rental.attempts)
    for (const Held& held : attempt.machines)
      if (attempt.open() && attempt.state != Attempt::State::ending && held.node != kSurplus &&
          is_good(held.machine))
        nodes.insert(held.node);
  return static_cast<int>(nodes.size()) >= rental.wish.nodes;
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
        if (!holds(rental, outcome.ids[i]))
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

// Terminates all machines that the provider lists for the rental, without waiting for a lost
// answer.
void Renting::end_listed(const Rental& rental, const Offer& offer, Provider& provider) {
  auto listing = provider.list(
      parts_.ending, {.regions = {offer.region}, .intent = rental.id, .owner = rental.owner});
  if (!listing) return;
  std::erase_if(listing->machines, [&](const Machine& machine) {
    return machine.intent != rental.id || machine.state == Machine::State::gone ||
           machine.state == Machine::State::ending;
  });
  if (!listing->machines.empty()) (void)provider.end(parts_.ending, listing->machines);
}

// Asks until the outcome of an unanswered launch is known, and sets `outcome`.
Status Renting::resolve(Rental& rental, std::size_t at, Provider& provider, Web& web,
                        LaunchOutcome& outcome) {
  const std::int64_t until = web.now_ms() + rules_.unknown_patience.count();
  const bool ends = &web == &parts_.ending;
  Backoff backoff({.first = seconds(2), .longest = seconds(10)});
  while (true) {
    Attempt& attempt = rental.attempts[at];
    // Only for providers that recognize the launch's token. Others look for machines by name, and
    // would neither find nor count machines terminated here.
    if (ends && provider.traits().resends_token) end_listed(rental, attempt.offer, provider);
    outcome = provider.resolve(web, spec_of(rental, attempt), attempt.call, attempt.asked_ms);
    if (outcome.kind != LaunchOutcome::Kind::unknown) return settle(rental, at, outcome);
    tell(RentEvent::Kind::no_answer, &attempt.offer, outcome.message);
    if (web.now_ms() >= until)
      return fail(Errc::unavailable,
                  fmt::format("{}: it is not known whether a launch came about: {}",
                              offer_words(attempt.offer), outcome.message),
                  "nothing else is tried meanwhile; `lockstep down` ends it once the provider "
                  "answers");
    LOCKSTEP_TRY(ends ? web.pause(backoff.next()) : rest(rental, backoff.next()));
  }
}

// Handles a prepare() without an answer: nothing was launched. Only this command leaves the region
// out for a while. Silence says nothing about capacity, so the journal does not learn it.
Renting::Tried Renting::silent(const Offer& offer, const std::string& message) {
  const std::string why = fmt::format("{}: {}", offer_words(offer), message);
  if (Status going = parts_.web.pause(milliseconds(0)); !going)
    return {.what = Tried::What::stop, .error = going.error()};
  tell(RentEvent::Kind::refused, &offer, why);
  last_ = fail(Errc::unavailable, why).value();
  learned_.push_back({.provider = offer.provider,
                      .region = offer.region,
                      .spot = offer.spot,
                      .until_ms = parts_.web.now_ms() + kCapacityBlockMs,
                      .why = message});
  return {};
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
    case Refusal::spot_out:
      spot_out_.insert(offer.provider);
      return {};
    case Refusal::unknown:
      // Tolerate one unknown code: try the next zone, and stop at the second.
      if (unknown_codes_++ == 0) return learned(Block::Kind::capacity);
      [[fallthrough]];
    case Refusal::stop:
      break;
  }
  return {.what = Tried::What::stop, .error = fail(Errc::invalid_input, why).value()};
}

// Drops the oldest attempts without machines once there are many.
void Renting::forget_old(Rental& rental) const {
  const auto idle = [](const Attempt& attempt) {
    return !attempt.open() && attempt.machines.empty();
  };
  auto idle_ones =
      static_cast<std::size_t>(std::count_if(rental.attempts.begin(), rental.attempts.end(), idle));
  std::erase_if(rental.attempts, [&](const Attempt& attempt) {
    return idle(attempt) && idle_ones-- > rules_.most_kept;
  });
}

Renting::Tried Renting::launch_one(Rental& rental, Attempt attempt, Provider& provider) {
  auto mine = parts_.hold_account ? parts_.hold_account() : Result<io::Fd>();
  if (!mine) return {.what = Tried::What::stop, .error = std::move(mine).error()};
  const auto call = provider.prepare(parts_.web, spec_of(rental, attempt));
  mine->reset();
  if (!call && call.error().kind == LaunchOutcome::Kind::unknown)
    return silent(attempt.offer, call.error().message);
  if (!call) return refused(attempt.offer, call.error());
  attempt.call = *call;
  // The journal must have the call before any byte of the launch leaves. After a crash another
  // process then settles the launch.
  attempt.asked_ms = parts_.web.now_ms();
  const Offer offer = attempt.offer;
  rental.attempts.push_back(std::move(attempt));
  const std::size_t at = rental.attempts.size() - 1;
  if (Status kept = keep(rental); !kept) {
    rental.attempts.pop_back();
    return {.what = Tried::What::stop,
            .error = std::move(kept).error().within("nothing is rented, the journal is not kept")};
  }
  if (Status going = parts_.before_call ? parts_.before_call(rental) : Status(); !going) {
    rental.attempts.pop_back();
    (void)keep(rental);
    return {.what = Tried::What::stop, .error = std::move(going).error()};
  }
  tell(RentEvent::Kind::asking, &offer);
  LaunchOutcome outcome =
      provider.launch(parts_.web, spec_of(rental, rental.attempts[at]), rental.attempts[at].call);
  Status settled = settle(rental, at, outcome);
  if (settled && outcome.kind == LaunchOutcome::Kind::unknown) {
    tell(RentEvent::Kind::no_answer, &offer, outcome.message);
    settled = resolve(rental, at, provider, parts_.web, outcome);
  }
  if (!settled) return {.what = Tried::What::stop, .error = settled.error()};
  if (outcome.kind == LaunchOutcome::Kind::answered) return {.what = Tried::What::got};
  // resolve() reports a launch that made nothing as a refusal without a code.
  if (outcome.code.empty()) {
    outcome.refusal = Refusal::next_zone;
    outcome.message = "the launch was not answered, and made nothing";
  }
  return refused(offer, outcome);
}

Renting::Tried Renting::launch_gang(Rental& rental, const Candidate& candidate) {
  Provider* provider = parts_.provider(candidate.offer.provider);
  if (provider == nullptr) return {};
  forget_old(rental);
  const Traits& traits = provider->traits();
  const int nodes = rental.wish.nodes;
  // Providers without gangs launch node by node. One refused node ends the whole gang.
  const int in_one = traits.gang_in_one_call ? nodes : 1;
  for (int node = 0; node < nodes; node += in_one) {
    Tried tried =
        launch_one(rental,
                   {.number = rental.attempts.empty() ? 1 : rental.attempts.back().number + 1,
                    .node = node,
                    .count = in_one,
                    .offer = candidate.offer,
                    .per_hour = candidate.offer.per_machine_hour(rental.wish.disk_gb),
                    .minimum_s = traits.minimum_billing_s},
                   *provider);
    if (tried.what != Tried::What::got) return tried;
  }
  return {.what = Tried::What::got};
}

// --- until it runs

bool Renting::whole(const Rental& rental) {
  return has_all_nodes(rental, [](const Machine& machine) {
    return machine.state == Machine::State::running && !machine.address.empty();
  });
}

bool Renting::lost(const Rental& rental) {
  return !has_all_nodes(rental, [](const Machine& machine) { return !is_lost(machine); });
}

// Terminates machines that no attempt has requested.
void Renting::end_surplus(Attempt& attempt, Provider& provider) {
  for (Held& held : attempt.machines)
    if (held.node == kSurplus && held.gone_ms == 0 && held.end_ms == 0 &&
        provider.end(parts_.ending, {held.machine}))
      held.end_ms = parts_.ending.now_ms();
}

// Updates all machines. Returns a refusal if a machine is lost.
std::optional<Renting::Tried> Renting::lost_one(Rental& rental) {
  for (Attempt& attempt : rental.attempts) {
    if (!attempt.open() || attempt.state == Attempt::State::ending) continue;
    Provider* provider = parts_.provider(attempt.offer.provider);
    if (provider == nullptr)
      return Tried{.what = Tried::What::stop,
                   .error = without_keys(attempt.offer.provider, "looked after").value()};
    // Ignore a failed list: the next look comes within seconds, and boot_patience bounds all looks.
    (void)see(rental, attempt, *provider, parts_.web);
    end_surplus(attempt, *provider);
    for (const Held& held : attempt.machines) {
      if (held.node == kSurplus || !is_lost(held.machine)) continue;
      attempt.code = held.machine.why;
      const std::string why =
          held.machine.why.empty() ? "the machine disappeared while booting" : held.machine.why;
      if (held.machine.state == Machine::State::unhealthy)
        if (Status kept = learn(attempt.offer, Block::Kind::unhealthy, why); !kept)
          return Tried{.what = Tried::What::stop, .error = kept.error()};
      return refused(attempt.offer, lost_early(held.machine, attempt.offer, why));
    }
  }
  return std::nullopt;
}

Renting::Tried Renting::bring_up(Rental& rental) {
  const std::int64_t began = parts_.web.now_ms();
  const Offer offer = rental.attempts.back().offer;
  bool told = false;
  while (true) {
    if (auto lost = lost_one(rental)) return *lost;
    if (whole(rental)) break;
    const std::int64_t waited = parts_.web.now_ms() - began;
    if (waited >= rules_.boot_patience.count())
      return refused(offer, {.kind = LaunchOutcome::Kind::refused,
                             .refusal = Refusal::next_zone,
                             .code = "not running in time",
                             .message = fmt::format("it did not run within {} minutes",
                                                    rules_.boot_patience.count() / 60'000)});
    if (!std::exchange(told, true)) tell(RentEvent::Kind::booting, &offer);
    if (Status paused = rest(rental, kLookPause); !paused)
      return {.what = Tried::What::stop, .error = paused.error()};
  }
  for (Attempt& attempt : rental.attempts)
    if (attempt.state == Attempt::State::answered) attempt.state = Attempt::State::running;
  if (Status kept = keep(rental); !kept) return {.what = Tried::What::stop, .error = kept.error()};
  tell(RentEvent::Kind::running, &offer);
  return {.what = Tried::What::got};
}

}  // namespace lockstep::cloud
