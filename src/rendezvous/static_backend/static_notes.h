// The messages about rounds among the Lockstep agents of a static job, and their keys in node rank
// 0's store. torchrun's agents read none of them. Pure.
//
// Every round after the first is open once node rank 0 has said so and has named the free places of
// lost nodes. A node takes a free place by being the first to claim it. A newcomer reads which
// round runs, and tries one round after the other until its place is free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep::rendezvous::static_backend {

// Replaces the heartbeat count of a node that is done.
inline constexpr std::string_view kLeft = "left";

class StaticKeys {
 public:
  explicit StaticKeys(std::string run_id) : run_id_(std::move(run_id)) {}

  // torchrun's agents use one prefix for all rounds. Among Lockstep's agents every round has its
  // own.
  std::string round_prefix(std::int64_t round, bool all_ours) const;
  std::string board_prefix(std::int64_t round) const;
  // Node rank 0 writes its --nnodes here before any node can connect.
  std::string nodes() const { return run_id_ + "/lockstep.0/lockstep/nodes"; }
  // A node writes here before leaving because of another --nnodes.
  std::string other_nodes() const { return run_id_ + "/lockstep.0/lockstep/other_nodes"; }
  // The number of the last round that began, if all of its agents are Lockstep's.
  std::string round() const { return run_id_ + "/lockstep.0/lockstep/round"; }
  std::string open(std::int64_t round) const { return board_prefix(round) + "lockstep/open"; }
  std::string claim(std::int64_t round, int node_rank) const;
  // Node rank 0 writes here that a round will not come. A round that never began has no board for
  // such a message.
  std::string over(std::int64_t round) const { return board_prefix(round) + "lockstep/over"; }
  // since: the round in which the node took its place. Heartbeats of its predecessor must not count
  // for the node.
  std::string alive(int node_rank, std::int64_t since) const;
  const std::string& run_id() const { return run_id_; }

 private:
  std::string run_id_;
};

// Node ranks of places without a node, each with the reason.
using FreePlaces = std::map<int, std::string>;
std::string encode_open(const FreePlaces& free);
FreePlaces decode_open(std::string_view text);  // malformed: no place is free

struct OverNote {
  std::string why;
  bool next = false;  // another round follows
};
std::string encode_over(const OverNote& note);
OverNote decode_over(std::string_view text);

// Returns "; a new node may take the place of a lost one: ..."; empty if no place is free.
std::string free_places_text(const FreePlaces& free);

}  // namespace lockstep::rendezvous::static_backend
