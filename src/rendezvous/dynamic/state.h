// The state that the agents of a dynamic rendezvous (c10d, etcd-v2) share, decoded.
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

// The number of nodes of a round when a Lockstep agent completed it.
struct Completion {
  std::int64_t round = 0;
  std::int64_t world = 0;
  bool operator==(const Completion&) const = default;
};

struct RendezvousState {
  std::int64_t round = 0;
  bool complete = false;
  std::optional<UtcTime> deadline = {};  // end of the last call, while one runs
  bool closed = false;
  std::map<Node, std::int64_t> participants = {};  // node -> rank; 0 until the round is complete
  std::set<Node> wait_list = {};
  std::set<Node> redundancy_list = {};
  std::map<Node, UtcTime> last_heartbeats = {};
  // A Lockstep attribute. torchrun carries the attribute along without reading it.
  std::optional<Completion> completion = {};
  // A Lockstep attribute: counts the writes that were news to waiting agents.
  std::int64_t changes = 0;
  // A Lockstep attribute: counts the settled tickets of the join queue (join_queue.h).
  std::int64_t settled = 0;
  // Attributes of future PyTorch releases. They are kept and written back after the known ones.
  std::vector<std::pair<std::string, codec::Pickled>> unknown = {};

  bool operator==(const RendezvousState&) const = default;  // compares `unknown` by identity
};

}  // namespace lockstep::rendezvous::dynamic
