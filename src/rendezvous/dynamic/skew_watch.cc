#include "rendezvous/dynamic/skew_watch.h"

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::dynamic {

std::optional<SkewWatch::Skew> SkewWatch::look(const RendezvousState& state, const Node& self,
                                               UtcTime now) {
  std::optional<Skew> found;
  const UtcTime since = std::exchange(last_look_, now).value_or(now);
  // Beside torchrun's agents, Lockstep's heartbeats follow torchrun's clocks (dynamic_state.h), so
  // they tell nothing about their own clocks.
  const auto& beats = state.last_heartbeats;
  const bool mixed = std::any_of(beats.begin(), beats.end(),
                                 [](const auto& entry) { return !badge_of(entry.first); });
  for (const auto& [node, heartbeat] : state.last_heartbeats) {
    const auto [before, first] = seen_.try_emplace(node, heartbeat);
    const bool fresh = !first && before->second != heartbeat;
    before->second = heartbeat;
    if (mixed && badge_of(node)) continue;
    if (!fresh || node == self || told_.contains(node)) continue;
    // The heartbeat was written at some time between the two looks. If this process was stopped,
    // the looks are far apart, and the delay must not count as skew.
    const UtcTime nearest = std::clamp(heartbeat, since, std::max(since, now));
    const auto ahead = std::chrono::duration_cast<std::chrono::seconds>(heartbeat - nearest);
    if (std::chrono::abs(ahead) < limit_ || found) continue;
    told_.insert(node);
    found = Skew{node, ahead};
  }
  return found;
}

}  // namespace lockstep::rendezvous::dynamic
