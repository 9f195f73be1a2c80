// What a witness asks of the engine. Nothing here changes the engine.
#include "store/engine.h"

#include <utility>

namespace lockstep::store {

std::vector<WitnessWait> Engine::waits_of(const Session& session, std::size_t most,
                                          std::size_t keys_per_wait) const {
  std::vector<WitnessWait> waits;
  for (const detail::Park& parked : session.parks_) {
    if (waits.size() == most) break;
    WitnessWait& wait = waits.emplace_back();
    wait.missing = parked.missing;
    wait.barrier = parked.map == &barriers_;
    wait.since = parked.since;
    for (const detail::Link& link : parked.links) {
      if (wait.keys.size() == keys_per_wait) break;
      // A link without an entry belongs to a key that exists now.
      if (link.entry != nullptr) wait.keys.push_back(link.entry->first);
    }
  }
  return waits;
}

std::vector<WitnessKey> Engine::keys_for(const std::function<bool(std::string_view)>& wanted,
                                         const WitnessLimits& limits, bool& all) const {
  std::vector<WitnessKey> found;
  std::size_t scanned = 0;
  for (const auto& [key, entry] : keys_) {
    if (++scanned > limits.scanned_keys) {
      all = false;
      break;
    }
    if (key.size() > limits.name_bytes || !wanted(key)) continue;
    if (found.size() == limits.keys) {
      all = false;
      break;
    }
    found.push_back({key, entry.value.substr(0, limits.value_bytes), entry.creator});
  }
  return found;
}

}  // namespace lockstep::store
