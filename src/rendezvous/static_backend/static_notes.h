// What the Lockstep agents of a static job tell one another about its rounds, and where in node
// rank 0's store it stands. torchrun's agents look at none of it. Pure.
//
// A round other than the first is open once node rank 0 has said so, with the places that are free
// because their nodes were lost. A node takes such a place by being the first to claim it. A
// newcomer asks which round runs, and goes from there from round to round until its place is free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep::rendezvous::static_backend {

// In place of a node's count of heartbeats: it is done.
inline constexpr std::string_view kLeft = "left";

class StaticKeys {
 public:
  explicit StaticKeys(std::string run_id) : run_id_(std::move(run_id)) {}

  // torchrun's agents use one prefix for good. Among ours every round has its own.
  std::string round_prefix(std::int64_t round, bool all_ours) const;
  std::string board_prefix(std::int64_t round) const;
  // Of node rank 0, before anybody can have come: its --nnodes.
  std::string nodes() const { return run_id_ + "/lockstep.0/lockstep/nodes"; }
  // Of a node that goes again because its own is another.
  std::string other_nodes() const { return run_id_ + "/lockstep.0/lockstep/other_nodes"; }
  // The number of the last round that began, where all of its agents are ours.
  std::string round() const { return run_id_ + "/lockstep.0/lockstep/round"; }
  std::string open(std::int64_t round) const { return board_prefix(round) + "lockstep/open"; }
  std::string claim(std::int64_t round, int node_rank) const;
  // There is no board before there is a round: here node rank 0 says that it will not come.
  std::string over(std::int64_t round) const { return board_prefix(round) + "lockstep/over"; }
  // since: the round in which the node took its place; the heartbeats of the one before it are none
  // of its own.
  std::string alive(int node_rank, std::int64_t since) const;
  const std::string& run_id() const { return run_id_; }

 private:
  std::string run_id_;
};

// Places without a node, by node rank, and why.
using FreePlaces = std::map<int, std::string>;
std::string encode_open(const FreePlaces& free);
FreePlaces decode_open(std::string_view text);  // nonsense: none is free

struct OverNote {
  std::string why;
  bool next = false;  // another round takes its place
};
std::string encode_over(const OverNote& note);
OverNote decode_over(std::string_view text);

// "; a new node may take the place of one that was lost: ..."; nothing where none is free.
std::string free_places_text(const FreePlaces& free);

}  // namespace lockstep::rendezvous::static_backend
