#include "rendezvous/hub/inheritance.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::hub {

// The size of the round is only the node's claim. So accept at most max_nodes nodes.
bool Inheritance::has_round_of(const Join& offer) const {
  return left_.takeover && offer.last_round + 1 == left_.first_round && offer.last_nodes >= 1 &&
         static_cast<std::size_t>(offer.last_nodes) <= left_.max_nodes;
}

CurrentRound Inheritance::adopt(const Join& offer, Time now) {
  since_ = now;
  std::vector<int> finished;
  for (const int rank : left_.last_finished) {
    if (rank >= 0 && rank < offer.last_nodes) finished.push_back(rank);
  }
  // If the record has more restarts than this node knows of, a failed worker had already ended the
  // round.
  return {offer.last_round, static_cast<std::size_t>(offer.last_nodes), std::move(finished),
          left_.restarts > offer.restarts};
}

Time Inheritance::ends(const std::vector<int>& missing, bool enough) const {
  const bool only_lead = missing.size() == 1 && missing.front() == left_.last_lead;
  if (missing.empty() || only_lead) return *since_;
  return *since_ + (enough ? left_.takeover_grace : left_.return_grace);
}

std::string Inheritance::why_missing(const std::vector<int>& ranks, std::size_t size) const {
  std::string lead = left_.last_lead_called.empty()
                         ? "the node that led the rendezvous is gone"
                         : left_.last_lead_called + ", which led the rendezvous, is gone";
  if (ranks.size() == 1 && ranks.front() == left_.last_lead) return lead;
  return fmt::format("{} of {} nodes have not come over since {}", ranks.size(), size, lead);
}

bool Inheritance::survivors_are_here(const Seats::Nodes& joined) {
  std::int64_t last = -1;
  std::size_t size = 0;
  std::size_t here = 0;
  for (const auto* node : joined) {
    const Join& offer = node->offer;
    if (offer.last_round < 0 || offer.last_round < last) continue;
    // A later round has been claimed; nodes of earlier rounds do not count.
    if (offer.last_round > last) here = 0;
    last = offer.last_round;
    size = static_cast<std::size_t>(offer.last_nodes);
    ++here;
  }
  return last >= 0 && here + 1 >= size;
}

Ms Inheritance::last_call(const Seats::Nodes& joined) const {
  const bool survived = std::any_of(joined.begin(), joined.end(),
                                    [](const auto* node) { return node->offer.last_round >= 0; });
  return left_.takeover && survived ? left_.takeover_grace : left_.last_call;
}

}  // namespace lockstep::rendezvous::hub
