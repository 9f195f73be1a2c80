#include "cloud/gang_start.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lockstep::cloud {
namespace {

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

// Drops the oldest attempts without machines once there are many.
void forget_old(Rental& rental, std::size_t most_kept) {
  const auto idle = [](const Attempt& attempt) {
    return !attempt.open() && attempt.machines.empty();
  };
  auto idle_ones =
      static_cast<std::size_t>(std::count_if(rental.attempts.begin(), rental.attempts.end(), idle));
  std::erase_if(rental.attempts,
                [&](const Attempt& attempt) { return idle(attempt) && idle_ones-- > most_kept; });
}

}  // namespace

Tried GangStart::launch(Rental& rental, const Candidate& candidate) {
  Provider* provider = parts_.provider(candidate.offer.provider);
  if (provider == nullptr) return {};
  forget_old(rental, rules_.most_kept);
  const Traits& traits = provider->traits();
  const int nodes = rental.wish.nodes;
  // Providers without gangs launch node by node. One refused node ends the whole gang.
  const int in_one = traits.gang_in_one_call ? nodes : 1;
  for (int node = 0; node < nodes; node += in_one) {
    Tried tried =
        launch_node(rental,
                    {.number = rental.attempts.empty() ? 1 : rental.attempts.back().number + 1,
                     .node = node,
                     .count = in_one,
                     .offer = candidate.offer,
                     .per_hour = candidate.offer.per_machine_hour(rental.wish.disk_gb),
                     .minimum_s = traits.minimum_billing_s},
                    *provider);
    // The caller terminates the nodes that were launched so far.
    if (tried.what != Tried::What::got) return tried;
  }
  return {.what = Tried::What::got};
}

// Makes one call of the gang's launch.
Tried GangStart::launch_node(Rental& rental, Attempt attempt, Provider& provider) {
  const Offer offer = attempt.offer;
  const auto outcome = launches_.launch(rental, std::move(attempt), provider);
  if (!outcome) return stopped_by(outcome.error());
  switch (outcome->kind) {
    case LaunchOutcome::Kind::answered:
      return {.what = Tried::What::got};
    case LaunchOutcome::Kind::unknown:
      return memory_.silent(offer, outcome->message);
    case LaunchOutcome::Kind::refused:
      break;
  }
  return memory_.refused(offer, *outcome);
}

Tried GangStart::bring_up(Rental& rental) {
  const std::int64_t began = parts_.web.now_ms();
  const Offer offer = rental.attempts.back().offer;
  bool told = false;
  while (true) {
    if (auto lost = lost_one(rental)) return *lost;
    if (is_whole(rental)) break;
    const std::int64_t waited = parts_.web.now_ms() - began;
    if (waited >= rules_.boot_patience.count())
      return memory_.refused(offer,
                             {.kind = LaunchOutcome::Kind::refused,
                              .refusal = Refusal::next_zone,
                              .code = "not running in time",
                              .message = fmt::format("it did not run within {} minutes",
                                                     rules_.boot_patience.count() / 60'000)});
    if (!std::exchange(told, true)) tell(parts_, RentEvent::Kind::booting, &offer);
    if (Status paused = rest(parts_, rental, kLookPause); !paused)
      return stopped_by(paused.error());
  }
  for (Attempt& attempt : rental.attempts)
    if (attempt.state == Attempt::State::answered) attempt.state = Attempt::State::running;
  if (Status kept = parts_.journal.keep(rental); !kept) return stopped_by(kept.error());
  tell(parts_, RentEvent::Kind::running, &offer);
  return {.what = Tried::What::got};
}

std::optional<Tried> GangStart::lost_one(Rental& rental) {
  for (Attempt& attempt : rental.attempts) {
    // An ending attempt loses machines on purpose.
    if (!attempt.open() || attempt.state == Attempt::State::ending) continue;
    Provider* provider = parts_.provider(attempt.offer.provider);
    if (provider == nullptr)
      return stopped_by(without_keys(attempt.offer.provider, "looked after").value());
    machines_.update(rental, attempt, *provider);
    for (const Held& held : attempt.machines) {
      if (held.node == kSurplus || !never_runs(held.machine)) continue;
      attempt.code = held.machine.why;
      const std::string why =
          held.machine.why.empty() ? "the machine disappeared while booting" : held.machine.why;
      if (held.machine.state == Machine::State::unhealthy)
        if (Status kept = memory_.learn(attempt.offer, Block::Kind::unhealthy, why); !kept)
          return stopped_by(kept.error());
      return memory_.refused(attempt.offer, lost_early(held.machine, attempt.offer, why));
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::cloud
