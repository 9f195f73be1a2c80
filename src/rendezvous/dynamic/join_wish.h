// A node's request to be let in, which the next writer of the shared state carries out in place of
// a write by the node itself. See join_queue.h.
#pragma once

#include "rendezvous/node.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::rendezvous::dynamic {

struct JoinWish {
  Node node;
  std::int64_t round = 0;  // of the state that it was asked about; in any other it is void
  bool again = false;      // the node takes part in that round and is to leave it first
  std::int64_t seat = -1;  // its rank in the round before
  bool operator==(const JoinWish&) const = default;
};

// terms: the settings that decide how a round forms, as one word. A node that has others must write
// by itself, as it would complete a round that the writer leaves open, or the other way round.
std::string encode_wish(const JoinWish& wish, std::string_view terms);

// nullopt: nonsense, no node of Lockstep's, or other terms.
std::optional<JoinWish> decode_wish(std::string_view text, std::string_view terms);

}  // namespace lockstep::rendezvous::dynamic
