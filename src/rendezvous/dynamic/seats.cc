#include "rendezvous/dynamic/seats.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace lockstep::rendezvous::dynamic {
namespace {

bool all_ours(const std::map<Node, std::int64_t>& participants) {
  return std::all_of(participants.begin(), participants.end(),
                     [](const auto& entry) { return badge_of(entry.first).has_value(); });
}

// Returns the sort key of a node without an old seat: lowest first, nodes without a node rank last.
int order_of(const Node& node, RankOrder rule) {
  const auto badge = badge_of(node);
  if (!badge) return 0;
  if (rule == RankOrder::host) return badge->host ? 0 : 1;
  if (rule == RankOrder::node_rank) return badge->node_rank.value_or(INT32_MAX);
  return 0;
}

}  // namespace

void assign_seats(std::map<Node, std::int64_t>& participants, RankOrder rule) {
  const std::size_t count = participants.size();
  const bool ours = all_ours(participants);
  std::vector<bool> taken(count);
  std::vector<std::pair<const Node, std::int64_t>*> rest;
  rest.reserve(count);
  for (auto& entry : participants) {
    const auto seat =
        static_cast<std::size_t>(entry.second) - 1;  // underflows to a huge value if there was none
    if (ours && seat < count && !taken[seat]) {
      taken[seat] = true;
      entry.second = static_cast<std::int64_t>(seat);
    } else {
      rest.push_back(&entry);
    }
  }
  // With a torchrun agent in the round, `rest` keeps the order of the map, which is torchrun's: by
  // address.
  if (ours)
    std::stable_sort(rest.begin(), rest.end(), [rule](const auto* a, const auto* b) {
      return order_of(a->first, rule) < order_of(b->first, rule);
    });
  std::size_t seat = 0;
  for (auto* entry : rest) {
    while (taken[seat])
      ++seat;
    entry->second = static_cast<std::int64_t>(seat++);
  }
}

}  // namespace lockstep::rendezvous::dynamic
