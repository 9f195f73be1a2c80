// The state that the agents of a dynamic rendezvous (c10d, etcd-v2) share, as values.
#pragma once

#include "codec/pickle.h"
#include "rendezvous/node.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::dynamic {

using UtcTime = std::chrono::sys_time<std::chrono::microseconds>;

// How many nodes a round had when a Lockstep agent completed it.
struct Completion {
  std::int64_t round = 0;
  std::int64_t world = 0;
  bool operator==(const Completion&) const = default;
};

struct RendezvousState {
  std::int64_t round = 0;
  bool complete = false;
  std::optional<UtcTime> deadline = {};  // of the last call, while it runs
  bool closed = false;
  std::map<Node, std::int64_t> participants = {};  // node -> rank; 0 until the round is complete
  std::set<Node> wait_list = {};
  std::set<Node> redundancy_list = {};
  std::map<Node, UtcTime> last_heartbeats = {};
  // Ours, an attribute that torchrun carries along without reading it.
  std::optional<Completion> completion = {};
  // Ours likewise: how many writes by Lockstep agents were news to those who wait.
  std::int64_t changes = 0;
  // Ours likewise: how many tickets of the join queue (join_queue.h) are settled.
  std::int64_t settled = 0;
  // Attributes of releases to come: kept, and written back after the others.
  std::vector<std::pair<std::string, codec::Pickled>> unknown = {};

  bool operator==(const RendezvousState&) const = default;  // unknown ones by identity
};

}  // namespace lockstep::rendezvous::dynamic
