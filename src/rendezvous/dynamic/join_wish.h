// A node's request to join. The next writer of the shared state carries the request out, so that
// the node need not write by itself. See join_queue.h.
#pragma once

#include "rendezvous/node.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::rendezvous::dynamic {

struct JoinWish {
  Node node;
  std::int64_t round =
      0;               // the round of the state that the wish refers to; void in any other round
  bool again = false;  // the node is in that round and must leave it first
  std::int64_t seat = -1;  // its previous rank; -1: none
  bool operator==(const JoinWish&) const = default;
};

// Encodes a wish. terms: the settings that decide how a round forms, as one word. Nodes with other
// terms must write by themselves: they would complete a round that this writer leaves open, or the
// other way round.
std::string encode_wish(const JoinWish& wish, std::string_view terms);

// Decodes a wish. Returns nullopt for malformed text, a node that is not Lockstep's, or other
// terms.
std::optional<JoinWish> decode_wish(std::string_view text, std::string_view terms);

}  // namespace lockstep::rendezvous::dynamic
