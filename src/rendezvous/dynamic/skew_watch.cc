#include "rendezvous/dynamic/skew_watch.h"

#include <algorithm>

namespace lockstep::rendezvous {

std::optional<SkewWatch::Skew> SkewWatch::look(const RendezvousState& state, const Node& self,
                                               UtcTime now) {
  std::optional<Skew> found;
  // Beside torchrun's agents, ours follow the clock of those (dynamic_state.h).
  const auto& beats = state.last_heartbeats;
  const bool mixed = std::any_of(beats.begin(), beats.end(),
                                 [](const auto& entry) { return !badge_of(entry.first); });
  for (const auto& [node, heartbeat] : state.last_heartbeats) {
    const auto [before, first] = seen_.try_emplace(node, heartbeat);
    const bool fresh = !first && before->second != heartbeat;
    before->second = heartbeat;
    if (mixed && badge_of(node)) continue;
    if (!fresh || node == self || told_.contains(node)) continue;
    const auto ahead = std::chrono::duration_cast<std::chrono::seconds>(heartbeat - now);
    if (std::chrono::abs(ahead) < limit_ || found) continue;
    told_.insert(node);
    found = Skew{node, ahead};
  }
  return found;
}

}  // namespace lockstep::rendezvous
