// The state machine of the dynamic rendezvous, as one agent runs it. Given the shared state just
// read, it returns the next step. Pure: no store, no clock. The driver reads the state, asks for a
// step and carries the step out. A write is a compare-and-set. After each write the driver asks
// again, about the own state if the write succeeded, else about the newer state found in the store.
//
// All agents work on one state, and some may be torchrun's. So the content and the timing of writes
// follow torchrun. The differences below apply unless settings.exact asks for torchrun's behaviour:
// - Timestamps of other nodes are never compared with the own clock. A node is dead when its
//   heartbeat has not *changed* for eviction_time() of watching. A last call ends when
//   last_call_timeout has passed since this agent first saw the call. So clock skew evicts no node.
//   The price: a node that died before this agent arrived is evicted one eviction_time() later.
// - The own heartbeat follows the clock of the torchrun agent that is furthest ahead (at most an
//   hour), because torchrun does compare heartbeats with its clock.
// - An agent never evicts itself. Time in which the agent could not look (frozen, cut off) does not
//   count as silence of other nodes.
// - The node that completes a round records how many nodes take part. A participant that first sees
//   the round after another participant has left leaves too, so that the round forms anew.
//   Otherwise two worlds would have the same round number.
// - If all agents are Lockstep's, a node keeps its rank from round to round as far as the number of
//   nodes allows, and a new node gets a free rank. Until a round is complete the number beside a
//   participant is 1 + its previous rank. torchrun sets that number to 0 and never reads it.
// - A waiting node that finds the next round full becomes a spare, and no round starts for nodes
//   that have no room in it. torchrun's agents would start such rounds again and again.
#pragma once

#include "rendezvous/dynamic/join_wish.h"
#include "rendezvous/dynamic/state.h"
#include "rendezvous/rank_order.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::rendezvous::dynamic {

using SteadyTime = std::chrono::steady_clock::time_point;
using Period = std::chrono::microseconds;

// One instant on both clocks: wall clock for timestamps in the state, steady clock for timeouts.
struct Now {
  UtcTime wall;
  SteadyTime steady;
};

struct DynamicSettings {
  std::size_t min_nodes = 1;
  std::size_t max_nodes = 1;
  Period join_timeout = std::chrono::seconds(600);
  Period last_call_timeout = std::chrono::seconds(30);
  Period close_timeout = std::chrono::seconds(30);
  Period heartbeat_timeout = std::chrono::seconds(5);
  Period keep_alive_interval = std::chrono::seconds(5);
  int keep_alive_max_attempt = 3;
  Period poll_interval = std::chrono::seconds(1);
  // Applies only if all agents of the round are Lockstep's. With a torchrun agent among them ranks
  // always follow the addresses.
  RankOrder order = RankOrder::address;
  bool exact = false;  // use torchrun's rules throughout, wall-clock comparisons included

  Period eviction_time() const { return keep_alive_interval * keep_alive_max_attempt; }
};

// Measures how long heartbeats and the last call have stood unchanged, on the own steady clock.
class Observer {
 public:
  // Records `state` as seen at `now`. The time since the previous call counts for at most max_gap,
  // so that a frozen agent does not take other nodes for silent.
  void observe(const RendezvousState& state, SteadyTime now, Period max_gap);
  // Returns how long the node's heartbeat has stood unchanged; zero if the state has no heartbeat.
  Period unchanged(const Node& node) const;
  Period deadline_unchanged() const;

 private:
  template <class T>
  struct Seen {
    T value;
    Period since;  // on watched_
  };
  std::optional<SteadyTime> last_;
  Period watched_{0};  // total time of watching
  std::map<Node, Seen<UtcTime>> heartbeats_;
  std::optional<Seen<UtcTime>> deadline_;
};

enum class Op {
  join,        // leave the previous round if still in it, and take part in the next one
  leave,       // remove this node from the participants
  withdraw,    // remove this node from all lists, for an agent that ends while waiting
  keep_alive,  // renew the own heartbeat if it is due
  close,       // end the rendezvous for all nodes: no more rounds
  fail,        // close, unless the other nodes have evicted this node: their round goes on
};

struct Step {
  enum class Kind {
    done,
    write,          // store `state` in place of the state that was asked about, then ask again
    wait,           // read again at `until`, or when the state is known to have changed
    timed_out,      // the operation has exceeded its timeout
    closed,         // join: the rendezvous is closed
    graceful_exit,  // join: the rendezvous is closed, and this node was only a spare
  };
  Kind kind = Kind::done;
  // write: the state to store. Other kinds: the state asked about, without the dead nodes.
  RendezvousState state = {};
  SteadyTime until = {};
  // write: another node may carry out this wish instead. Set for operations that many nodes attempt
  // at the same time.
  std::optional<JoinWish> wish = {};

  bool is(Kind wanted) const { return kind == wanted; }
};

class DynamicMember {
 public:
  DynamicMember(Node self, DynamicSettings settings);

  // Begins an operation, replacing the previous one. (torchrun's random pause of 0 to 0.3 s before
  // the first join is the driver's task.)
  void begin(Op op, Now now);
  // Returns the next step for the state just read.
  Step next(const RendezvousState& stored, Now now);

  // Called when the wish of the last step is in the queue: from now on any node may carry out the
  // wish.
  void filed(const JoinWish& wish) { filed_round_ = wish.round; }
  // Applies all valid wishes to the stored state, each as its node would have done by itself, and
  // then this node's own wish.
  struct Folded {
    RendezvousState state;
    std::vector<bool> granted;  // by wish
  };
  Folded fold(const RendezvousState& stored, std::span<const std::optional<JoinWish>> wishes,
              const JoinWish& own, Now now);
  // Returns the settings that decide how a round forms, for encode_wish().
  std::string terms() const;
  // Returns the state without dead nodes. Only the next write stores the removal. Call sanitize()
  // also while no operation runs, to keep observing heartbeats.
  RendezvousState sanitize(const RendezvousState& stored, Now now);

  // Returns how many waiting nodes a new round would admit. Running agents join again if the number
  // is not zero. Takes a sanitized state.
  std::size_t waiting(const RendezvousState& state) const;

  // Declares `heartbeat` to be the node's last one: the node is dead unless a newer heartbeat shows
  // up.
  void presume_dead(const Node& node, UtcTime heartbeat) { presumed_dead_[node] = heartbeat; }
  bool closed(const Node& node) const { return presumed_dead_.contains(node); }

  const Node& self() const { return self_; }
  const DynamicSettings& settings() const { return settings_; }

 private:
  Step next_leave(RendezvousState state, Now now) const;
  Step next_withdraw(RendezvousState state, Now now) const;
  Step next_keep_alive(RendezvousState state, Now now) const;
  Step next_close(RendezvousState state, Now now) const;
  Step next_join(RendezvousState state, Now now);
  Step join_as_spare(RendezvousState state, Now now);
  Step join_late(RendezvousState state, Now now) const;
  Step join_complete(RendezvousState state, Now now) const;
  Step join_forming(RendezvousState state, Now now) const;
  Step enter_self(RendezvousState state, Now now) const;
  Step keep_alive_or_wait(RendezvousState state, Now now) const;

  // The time of a change, and the heartbeat to write with the change.
  struct Moment {
    UtcTime wall;
    UtcTime heartbeat;
  };
  bool grant(RendezvousState& state, const JoinWish& wish, Moment moment) const;
  void enter(RendezvousState& state, const Node& node, std::int64_t seat, Moment moment) const;
  void enter_from_wait_list(RendezvousState& state, Moment moment) const;
  UtcTime heartbeat(const RendezvousState& state, Now now) const;
  bool dead(const Node& node, UtcTime heartbeat, Now now) const;
  bool keep_alive_due(const RendezvousState& state, Now now) const;
  bool last_call_over(const RendezvousState& state, Now now) const;
  bool whole(const RendezvousState& state) const;
  void complete(RendezvousState& state) const;
  void after_removal(RendezvousState& state) const;
  void remove(RendezvousState& state, const Node& node) const;

  Node self_;
  DynamicSettings settings_;
  Observer observer_;
  std::map<Node, UtcTime>
      presumed_dead_;  // node -> its last heartbeat; a newer one revives the node
  Op op_ = Op::keep_alive;
  bool left_ = false;                        // join: this node has left the previous round
  std::optional<std::int64_t> filed_round_;  // join: the round for which this node's wish was filed
  std::int64_t seat_ = -1;                   // the previous rank, which survivors keep; -1: none
  std::map<Node, std::int64_t> seats_;       // of all nodes of that round
  SteadyTime deadline_{};
};

// This node's place in a completed round.
struct RoundPlace {
  std::int64_t round = 0;
  std::size_t rank = 0;
  std::vector<Node> nodes;  // by rank
};
RoundPlace place_of(const RendezvousState& state, const Node& self);

// Returns whether the node is in any list. If a running agent's own node is not, a peer has evicted
// it, and the agent must join again to be seen.
bool takes_part(const RendezvousState& state, const Node& node);

}  // namespace lockstep::rendezvous::dynamic
