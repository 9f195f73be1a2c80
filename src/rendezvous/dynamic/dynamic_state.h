// The dynamic rendezvous as one agent goes through it: what to do next about the shared state it
// has just read. Pure: no store, no clock. The driver reads the state, asks, and carries the answer
// out; a write is a compare-and-set, and whatever it ends with (own state stored, or a newer one
// there) is asked about again.
//
// All agents work on one state, torchrun's among them, so what is written and when is torchrun's
// way. What differs, unless settings.exact asks for torchrun's way in all:
// - Time of others is never compared with our own clock. A node is dead when its heartbeat has not
//   *changed* for so long while we looked, and a last call ends so long after we first saw it:
//   clocks that differ evict nobody. The price: a node that died before we came takes that long
//   once more.
// - The own heartbeat goes by the clock of the torchrun agent that is furthest ahead (by an hour at
//   most), as those do compare.
// - An agent never evicts itself, and a time in which we could not look (frozen, cut off) is no
//   silence of the others.
// - The node that completes a round writes down how many take part. A participant that first sees
// the
//   round after another one has left it again does not take part in it, because two worlds would
//   have the same number, but leaves it, so that it is formed anew.
// - Where all are Lockstep agents, a node keeps its rank from round to round as far as the number
//   of nodes allows, and a new node gets one that has become free. Until a round is complete the
//   number beside a participant, which torchrun sets to 0 and never reads, is 1 + the rank it had.
// - A node that waits for the next round and finds it full turns into a spare, and no round is
// begun
//   for nodes that it has no room for. (torchrun's agents would begin one again and again.)
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

// The same instant on both clocks: wall clock for what is written, steady clock for what is waited.
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
  // Of a round of Lockstep agents alone. With a torchrun agent among them it is always by address,
  // whoever completes the round.
  RankOrder order = RankOrder::address;
  bool exact = false;  // wall clocks and all, as torchrun

  Period eviction_time() const { return keep_alive_interval * keep_alive_max_attempt; }
};

// How long other agents' heartbeats and the last call have stood unchanged, on our own clock.
class Observer {
 public:
  // Time since the observation before counts for at most max_gap.
  void observe(const RendezvousState& state, SteadyTime now, Period max_gap);
  // Zero for what the observed state did not have.
  Period unchanged(const Node& node) const;
  Period deadline_unchanged() const;

 private:
  template <class T>
  struct Seen {
    T value;
    Period since;  // on watched_
  };
  std::optional<SteadyTime> last_;
  Period watched_{0};  // a clock that runs while we look
  std::map<Node, Seen<UtcTime>> heartbeats_;
  std::optional<Seen<UtcTime>> deadline_;
};

enum class Op {
  join,        // leave the round before, if still in it, and take part in the next
  leave,       // out of the participants
  withdraw,    // out of all lists: for an agent that ends while it waits
  keep_alive,  // renew the own heartbeat if it is due
  close,       // no more rounds
  fail,        // likewise, unless the others have given this node up: their round lives
};

struct Step {
  enum class Kind {
    done,
    write,          // store `state` in place of the state that was asked about, then ask again
    wait,           // read again at `until`, or when the state is known to have changed
    timed_out,      // the operation's time is over
    closed,         // join: the rendezvous is closed
    graceful_exit,  // join: it is closed, and this node was only a spare
  };
  Kind kind = Kind::done;
  // write: what to store. Otherwise what was asked about, less the nodes found dead.
  RendezvousState state = {};
  SteadyTime until = {};
  // write: another may write this in our place, where many want to write at once.
  std::optional<JoinWish> wish = {};

  bool is(Kind wanted) const { return kind == wanted; }
};

class DynamicMember {
 public:
  DynamicMember(Node self, DynamicSettings settings);

  // Begins an operation in place of the one before. (torchrun waits a random 0 to 0.3 s before the
  // first join; that is the driver's.)
  void begin(Op op, Now now);
  // What to do about the state just read.
  Step next(const RendezvousState& stored, Now now);

  // The wish of the last step is in the queue: somebody else may carry it out from now on.
  void filed(const JoinWish& wish) { filed_round_ = wish.round; }
  // The stored state with all wishes carried out that can be, each as its node would have done it,
  // and with this node's own step.
  struct Folded {
    RendezvousState state;
    std::vector<bool> granted;  // by wish
  };
  Folded fold(const RendezvousState& stored, std::span<const std::optional<JoinWish>> wishes,
              const JoinWish& own, Now now);
  // The settings that decide how a round forms, for encode_wish().
  std::string terms() const;
  // The state without dead nodes, which counts for this agent from now on but is stored only with
  // the next write. Also the way to keep observing while nothing else is to be done.
  RendezvousState sanitize(const RendezvousState& stored, Now now);

  // How many nodes wait that a new round would admit: more than none is the running agents' reason
  // to join again. Of a sanitized state.
  std::size_t waiting(const RendezvousState& state) const;

  // No heartbeat comes after this one.
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

  // When it is, and the heartbeat that goes with it.
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
  std::map<Node, UtcTime> presumed_dead_;  // by its last heartbeat: with another one it lives
  Op op_ = Op::keep_alive;
  bool left_ = false;                        // join: this node has left the round before
  std::optional<std::int64_t> filed_round_;  // join: the round in which its wish was filed
  std::int64_t seat_ = -1;                   // the rank in the round before: survivors keep theirs
  std::map<Node, std::int64_t> seats_;       // of all in that round
  SteadyTime deadline_{};
};

// The own place in a round, once join is done.
struct RoundPlace {
  std::int64_t round = 0;
  std::size_t rank = 0;
  std::vector<Node> nodes;  // by rank
};
RoundPlace place_of(const RendezvousState& state, const Node& self);

// Whether the node is in any list. If a running agent's is not, a peer took it for dead: it must
// join again to be heard of.
bool takes_part(const RendezvousState& state, const Node& node);

}  // namespace lockstep::rendezvous::dynamic
