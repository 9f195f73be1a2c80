// The state that the agents of a dynamic rendezvous (c10d, etcd-v2) share, as values.
#pragma once

#include "codec/pickle.h"

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous {

using UtcTime = std::chrono::sys_time<std::chrono::microseconds>;

// One agent. Ordered by address text, byte by byte, which in UTF-8 is the order of code points,
// then by numbers: group ranks follow this order.
struct Node {
  std::string addr;
  std::int64_t pid = 0;
  std::int64_t local_id = 0;
  auto operator<=>(const Node&) const = default;
};

// "addr_pid_localid", as torchrun names nodes in its messages.
std::string to_text(const Node& node);

// torchrun counts the local ids of its handlers from 0. A Lockstep agent's says that it is one, and
// what the order of ranks may depend on, so that agents know their kind from the state alone.
struct Badge {
  bool host = false;             // it hosts the store
  std::optional<int> node_rank;  // --node-rank, up to 32,765
};
std::int64_t local_id_of(const Badge& badge);
std::optional<Badge> badge_of(const Node& node);  // nullopt: not a Lockstep agent

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
  // Attributes of releases to come: kept, and written back after the others.
  std::vector<std::pair<std::string, codec::Pickled>> unknown = {};

  bool operator==(const RendezvousState&) const = default;  // unknown ones by identity
};

}  // namespace lockstep::rendezvous
