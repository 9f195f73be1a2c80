// A node's request to join a round. Another node, the next writer of the shared state, carries the
// request out. Nodes that lose the race to write the state file such wishes in a queue
// (join_queue.h) instead of trying again and again.
#pragma once

#include "rendezvous/node.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::rendezvous::dynamic {

struct JoinWish {
  Node node;
  // The round of the state that the node has seen. A writer refuses the wish in any other round.
  std::int64_t round = 0;
  // The node is a participant of that round, which is complete, and wants to leave for the next.
  bool again = false;
  std::int64_t seat = -1;  // the node's rank in its previous round; -1: none
  bool operator==(const JoinWish&) const = default;
};

// Encodes a wish as one line of text. terms: the settings that decide how a round forms, as one
// word without spaces. A writer may only act for nodes with the same terms. With other terms the
// writer and the node could disagree whether a round is complete.
std::string encode_wish(const JoinWish& wish, std::string_view terms);

// Decodes a wish. Returns nullopt if the text is malformed, if the node's agent is not Lockstep's,
// or if the wish was encoded with other terms.
std::optional<JoinWish> decode_wish(std::string_view text, std::string_view terms);

}  // namespace lockstep::rendezvous::dynamic
