// Which nodes have failed lately: jobs that are submitted next leave them out. What is known of a
// node counts half after a day, so that one that was mended comes back by itself. Pure; a line of
// text for each failure, so that several processes may add to one file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

struct NodeFailure {
  std::string cluster;  // Slurm's name of it: ClusterName
  std::string node;
  std::int64_t time = 0;  // Unix seconds
  double weight = 1;      // 1: it stopped a job
  std::string cause;      // for people: "power cut", "prolog failed"
};

struct BadNode {
  std::string node;
  double weight = 0;         // of all its failures, now
  std::int64_t last = 0;     // Unix seconds
  std::string cause;         // of the last failure
  std::int64_t back_at = 0;  // when it will be used again
};

inline constexpr std::int64_t kHalfLife = std::int64_t{24} * 3600;
inline constexpr double kThreshold = 0.5;  // above this a node is left out
inline constexpr std::size_t kMostFailures = 10'000;

// With its line end. Characters that would end a field are left out.
std::string failure_line(const NodeFailure& failure);
// Lines that make no sense are passed over: a newer version may write others. Of more than
// kMostFailures the latest count.
std::vector<NodeFailure> parse_failures(std::string_view text);

// The nodes of a cluster to leave out now, by name.
std::vector<BadNode> bad_nodes(const std::vector<NodeFailure>& failures, std::string_view cluster,
                               std::int64_t now);

// Without those that count for nothing any more, and without those of `forgotten` of that cluster.
std::vector<NodeFailure> still_needed(const std::vector<NodeFailure>& failures,
                                      std::string_view cluster,
                                      const std::vector<std::string>& forgotten, std::int64_t now);

}  // namespace lockstep::slurm
