// Scores of recently failed nodes. Jobs submitted next exclude nodes above a threshold. A failure
// counts half after each day, so a repaired node comes back without help. The text format has a
// line per failure. Pure.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

struct NodeFailure {
  std::string cluster;  // Slurm's ClusterName
  std::string node;
  std::int64_t time = 0;  // Unix seconds
  double weight = 1;      // 1: the failure stopped a job
  std::string cause;      // for people: "power cut", "prolog failed"
};

struct BadNode {
  std::string node;
  double weight = 0;         // sum over all failures, decayed until now
  std::int64_t last = 0;     // Unix seconds
  std::string cause;         // of the last failure
  std::int64_t back_at = 0;  // Unix seconds when the weight falls to kThreshold
};

// Seconds.
inline constexpr std::int64_t kHalfLife = std::int64_t{24} * 3600;
inline constexpr double kThreshold = 0.5;  // above this a node is left out
inline constexpr std::size_t kMostFailures = 10'000;

// Returns the line of a failure, newline included. Replaces characters that would end a field.
std::string failure_line(const NodeFailure& failure);
// Parses the file. Skips lines that do not parse, because a newer version may write other lines.
// Keeps the latest kMostFailures.
std::vector<NodeFailure> parse_failures(std::string_view text);

// Returns the nodes of a cluster to exclude at `now`, sorted by name.
std::vector<BadNode> bad_nodes(const std::vector<NodeFailure>& failures, std::string_view cluster,
                               std::int64_t now);

// Returns not_found unless the node is one of these.
Status check_bad(const std::vector<BadNode>& bad, const std::string& node);

// Returns the failures that still matter: drops decayed ones, and those of the nodes `forgotten` of
// `cluster`.
std::vector<NodeFailure> still_needed(const std::vector<NodeFailure>& failures,
                                      std::string_view cluster,
                                      const std::vector<std::string>& forgotten, std::int64_t now);

}  // namespace lockstep::slurm
