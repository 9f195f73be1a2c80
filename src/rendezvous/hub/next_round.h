// The next round while it is being made: the last call for more nodes, then the offer to the chosen
// nodes, until rank 0 has opened the workers' store and the round may be placed. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::rendezvous::hub {

class NextRound {
 public:
  struct Offer {
    std::int64_t number = 0;
    std::vector<PeerId> ranks;
    StoreOffer store = {};  // rank 0's answer

    PeerId first() const { return ranks.front(); }
    int rank_of(PeerId peer) const;  // -1: none
  };

  explicit NextRound(const CoordinatorSettings& settings)
      : first_(settings.first_round),
        number_(settings.first_round),
        store_timeout_(settings.store_timeout) {}

  // Returns whether this coordinator has not offered a round yet.
  bool is_first() const { return number_ == first_; }
  // Skips the rounds up to this one. A round number must never be given twice.
  void follow(std::int64_t round);

  // --- the last call ---

  // Begins the last call. A shorter patience shortens a last call that runs. Returns whether it is
  // over.
  bool last_call(Time now, Ms patience);
  void stop_last_call() { last_call_until_.reset(); }
  std::optional<Time> last_call_until() const { return last_call_until_; }

  // --- the offer ---

  // Offers the round with the next number. Rank 0 must be asked for the workers' store.
  const Offer& offer(std::vector<PeerId> ranks, Time now);
  const Offer* offered() const { return offer_ ? &*offer_ : nullptr; }
  bool has(PeerId peer) const;
  // Moves a node's place to its new connection. Returns false if the node has no place.
  bool move(PeerId from, PeerId to);
  // Returns whether rank 0 has not answered yet.
  bool awaits_store() const { return offer_ && !opened_; }
  // Returns whether rank 0 should have answered by now.
  bool is_late(Time now) const { return awaits_store() && now >= until_; }
  // Returns whether this is the awaited answer, from rank 0 and for this round.
  bool awaits(PeerId from, const StoreOffer& store) const;
  void open(const StoreOffer& store);
  // Returns the offer if it is this round and its store is open, and ends it.
  std::optional<Offer> take(std::int64_t round);
  void drop() { offer_.reset(); }

 private:
  std::int64_t first_;
  std::int64_t number_;
  Ms store_timeout_;
  std::optional<Time> last_call_until_;
  std::optional<Offer> offer_;
  bool opened_ = false;
  Time until_{};
};

}  // namespace lockstep::rendezvous::hub
