// The messages of nodes of a job about their looks, as JSON. Pure. The readers take foreign bytes,
// and bound the size, the numbers and the texts.
#pragma once

#include "base/error.h"
#include "looks/fold.h"
#include "looks/verdict.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::looks {

// A fold of more bytes is left out of news. 4,096 ranks on 512 nodes need 40 KB.
inline constexpr std::size_t kMostFoldNews = 128U << 10;
inline constexpr std::size_t kMostRecorderNews = 16U << 10;

// A node tells the leader of its ranks.
struct NodeNews {
  std::int64_t number = 0;                 // counts the folds that this node has told
  std::optional<Fold> fold = {};           // nullopt: as in the news with this number, but older
  std::map<int, std::uint32_t> pids = {};  // by rank, as the worker itself sees its pid
  std::map<int, int> gpus = {};            // by rank: the GPU's index on its node
  bool lacks = false;                      // this node has missed the last fold of all nodes
  // With a fold: what the flight recorders of this node say (recorder/summary.h). "": nothing.
  std::string recorders = {};
  // How much the ranks wait (waits_text()). nullopt: as told before, or an older version.
  std::optional<std::string> waits = {};
  // The rank here whose NCCL watchdog has timed out; -1: not known which. nullopt: none has.
  std::optional<int> timed_out = {};
};

// The rank that makes the ranks of all nodes wait.
struct WorldSlow {
  int rank = -1;           // -1: none
  std::string words = {};  // straggler_words()
  std::string name = {};   // straggler_name(); of an older version: without the node

  friend bool operator==(const WorldSlow&, const WorldSlow&) = default;
};

// The leader tells all nodes of the job.
struct WorldNews {
  std::string state = {};         // a word of kVerdictStateWords
  std::string words = {};         // the verdict in a line
  int alarms = 0;                 // of this attempt so far
  std::string alarm = {};         // what the leader has logged at the last alarm
  bool timeout = false;           // the last alarm is a timeout of NCCL's watchdog, not a hang
  std::vector<int> unknown = {};  // group ranks of nodes that must tell their folds anew
  std::int64_t number = 0;        // counts the folds of all nodes
  std::optional<Fold> fold = {};  // nullopt: as in the news with this number, or little has changed
  // For the rows and events of the other nodes. Without `limit` and `alarm_begins`.
  std::optional<Verdict> verdict = {};
  std::optional<WorldSlow> slow = {};  // nullopt: an older version, which looks for none
};

std::string print_news(const NodeNews& news);
std::string print_news(const WorldNews& news);
// Fail with Errc::corrupt.
Result<NodeNews> read_node_news(std::string_view json);
Result<WorldNews> read_world_news(std::string_view json);

}  // namespace lockstep::looks
