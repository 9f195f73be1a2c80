// The round that runs, or the last round that ran: its state, and whether a new round may follow.
// Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"
#include "rendezvous/hub/roster.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {

class CurrentRound {
 public:
  CurrentRound(std::int64_t number, std::size_t size) : number_(number), size_(size) {}
  // Takes over a round that began under another coordinator. finished: ranks that had finished and
  // left. over: the round had ended, and that coordinator has counted the restart already.
  CurrentRound(std::int64_t number, std::size_t size, std::vector<int> finished, bool over)
      : number_(number),
        size_(size),
        adopted_(true),
        interrupted_(over),
        paid_(over),
        finished_and_gone_(std::move(finished)) {}

  // Adds a node: the lowest --max-restarts counts, and one node without replacement is enough.
  void admit(const Join& offer) {
    max_restarts_ = std::min(max_restarts_, offer.max_restarts);
    replacement_ = replacement_ && offer.replacement;
  }

  std::int64_t number() const { return number_; }
  std::size_t size() const { return size_; }
  int max_restarts() const { return max_restarts_; }
  bool adopted() const { return adopted_; }
  bool running() const { return !interrupted_; }
  void interrupt() { interrupted_ = true; }

  // --- nodes that have finished ---

  void finished_node_left(int rank) { finished_and_gone_.push_back(rank); }
  // Returns whether the node had finished and left before it came back.
  bool came_back(int rank) { return std::erase(finished_and_gone_, rank) > 0; }
  const std::vector<int>& finished_and_gone() const { return finished_and_gone_; }
  // Returns the ranks that have not finished.
  std::vector<int> unfinished(std::vector<int> ranks) const {
    const auto& gone = finished_and_gone_;
    std::erase_if(
        ranks, [&](int rank) { return std::find(gone.begin(), gone.end(), rank) != gone.end(); });
    return ranks;
  }
  bool all_finished(std::size_t present) const {
    return present + finished_and_gone_.size() >= size_;
  }

  // --- another round after this one ---

  // Returns whether nodes of the interrupted round still have to join again.
  bool awaits_rejoin(const Roster& roster) const {
    using Stage = Roster::Stage;
    // In an adopted round an idle node may belong to the round and still be stopping its workers.
    if (adopted_ && roster.count(Stage::idle) > 0) return true;
    return roster.count(Stage::placed) + roster.count(Stage::finished) + roster.away() > 0;
  }

  // Returns whether the round may end with a restart after `restarts` of them. One round costs at
  // most one restart, whatever else fails before the next round.
  bool may_restart(int restarts) const { return paid_ || restarts < max_restarts_; }
  // Returns whether the end of the round costs a restart; it does once.
  bool pay() { return !std::exchange(paid_, true); }
  // Returns whether other nodes may replace lost ones. A finished node that has left cannot be
  // replaced: its workers would run once more.
  bool replaceable(int restarts) const {
    return replacement_ && finished_and_gone_.empty() && may_restart(restarts);
  }
  void await_replacement(const std::string& why_lost) { lost_.push_back(why_lost); }
  // Returns the nodes not yet replaced: "b is gone: ...".
  const std::vector<std::string>& lost() const { return lost_; }

 private:
  std::int64_t number_;
  std::size_t size_;
  bool adopted_ = false;
  bool interrupted_ = false;
  bool paid_ = false;
  bool replacement_ = true;
  int max_restarts_ = INT32_MAX;
  std::vector<int> finished_and_gone_;  // ranks
  std::vector<std::string> lost_;
};

}  // namespace lockstep::rendezvous::hub
