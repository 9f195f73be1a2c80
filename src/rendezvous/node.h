// The names by which torchrun's rendezvous knows the agents of a round, and what a Lockstep agent
// says of itself in its name.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::rendezvous {

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

}  // namespace lockstep::rendezvous
