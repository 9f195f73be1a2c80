// The wait shares of a node's ranks, as nodes tell them to the leader: rounded, two bytes a rank.
// Pure.
#pragma once

#include "looks/straggler.h"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::looks {

// Shares are told in steps of 5 points.
inline constexpr double kShareStep = 0.05;

// What a rank did in the last minute of looks.
struct WaitShare {
  double waits = 0;    // share of looks with a wait, to the nearest step
  double longest = 0;  // its longest wait without a break, the same, rounded up
  bool late = false;   // named by its own node as the straggler there

  friend bool operator==(const WaitShare&, const WaitShare&) = default;
};

struct NodeWaits {
  std::map<int, WaitShare> ranks = {};  // by rank
  // Some ranks have been looked at for less than a minute. Other ranks without a share never have
  // one: their stacks are not readable, and a rank that is not seen to wait is not a slow one.
  bool incomplete = false;
};

inline constexpr std::size_t kMostWaitNews = 8192;  // bytes

// late: the straggler among these ranks, which are in the order of their numbers.
// Returns "8:abKi--..", or "" without ranks. From rank 8 on: the share, the longest wait. A capital
// marks the late rank, "--" a rank that is not known yet, ".." a rank that cannot be.
std::string waits_text(std::span<const RankShares> ranks, std::optional<int> late);
// Reads foreign bytes. Leaves out ranks of `below` or more. nullopt: not such a text.
std::optional<NodeWaits> read_waits(std::string_view text, int below);

}  // namespace lockstep::looks
