#include "rendezvous/dynamic/dynamic_words.h"

#include "base/text.h"
#include "base/word_list.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

namespace lockstep::rendezvous::dynamic {
namespace {
constexpr std::size_t kMostNames = 8;
constexpr std::size_t kMostText = 1000;
}  // namespace

std::string names_of(const std::vector<std::string>& names) {
  return printable(join_some(names, kMostNames), kMostText);
}

std::string skew_text(const SkewWatch::Skew& skew, bool all_ours) {
  return fmt::format(
      "the clock of {} is {} s {} this node's: {}", printable(skew.node.addr),
      std::chrono::abs(skew.ahead).count(), skew.ahead.count() > 0 ? "ahead of" : "behind",
      all_ours ? "Lockstep does not mind, but check NTP"
               : "torchrun's agents evict nodes with heartbeats 15 s late; check NTP");
}

// The shared state does not hold --nnodes. Without a warning, a node with a larger number would
// wait silently for nodes that never come.
std::string other_nodes_text(const RoundResult& round, const Assignment& made,
                             const std::string& asked) {
  for (std::size_t rank = 0; rank < made.nodes_asked.size(); ++rank) {
    const std::string& theirs = made.nodes_asked[rank];
    if (theirs.empty() || theirs == asked) continue;
    return fmt::format(
        "{} was started with --nnodes {}, this node with {}: give all nodes the same --nnodes",
        printable(round.nodes.at(rank).addr), theirs, asked);
  }
  return {};
}

std::string waiting_text(const Waiting& waiting) {
  const RendezvousState& state = waiting.state;
  std::vector<std::string> names;
  for (const auto& [node, rank] : state.participants)
    names.push_back(node == waiting.self ? node.addr + " (this node)" : node.addr);
  const std::string range = waiting.min_nodes == waiting.max_nodes
                                ? std::to_string(waiting.min_nodes)
                                : fmt::format("{} to {}", waiting.min_nodes, waiting.max_nodes);
  if (state.redundancy_list.contains(waiting.self))
    return fmt::format("this node is a spare; {} run the job: {}", names.size(), names_of(names));
  if (state.complete && !state.participants.contains(waiting.self))
    return fmt::format("a round is under way with {}; this node joins the next round",
                       names_of(names));
  // The last node to join completes the round by its own --nnodes. So a full but open round means a
  // larger --nnodes on another node.
  const bool enough = names.size() >= waiting.max_nodes && !state.complete;
  std::string text = fmt::format("{} of {} nodes have joined '{}' at {}", names.size(), range,
                                 waiting.run_id, waiting.place);
  if (!names.empty()) text += ": " + names_of(names);
  if (!waiting.to_replace.empty())
    text += "; a new node may replace a lost one: " + waiting.to_replace;
  if (enough) text += "; this node waits for no more, so another node must have a larger --nnodes";
  if (!waiting.strangers.empty()) text += "; " + waiting.strangers;
  return text;
}

}  // namespace lockstep::rendezvous::dynamic
