// The names of agents in torchrun's rendezvous, and the attributes that a Lockstep agent puts into
// its name.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::rendezvous {

// One agent. Group ranks follow this order: by the bytes of the address (in UTF-8 the order of code
// points), then by the numbers.
struct Node {
  std::string addr;
  std::int64_t pid = 0;
  std::int64_t local_id = 0;
  auto operator<=>(const Node&) const = default;
};

// Returns "addr_pid_localid", torchrun's form in messages.
std::string to_text(const Node& node);

// The attributes in a Lockstep agent's local id: its kind, and what the order of ranks depends on.
// So agents know the kind of every node from the state alone. torchrun counts local ids from 0.
struct Badge {
  bool host = false;             // hosts the store
  std::optional<int> node_rank;  // --node-rank, up to 32,765
};
std::int64_t local_id_of(const Badge& badge);
std::optional<Badge> badge_of(const Node& node);  // nullopt: not a Lockstep agent

}  // namespace lockstep::rendezvous
