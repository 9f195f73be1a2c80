// The driver of the dynamic rendezvous: runs the state machine (dynamic_state.h) on the event loop.
// Reads the shared state, asks for the next step, writes, and keeps this node's heartbeat fresh.
// Works beside torchrun's agents. No callback runs inside the call that takes it. The driver may be
// destroyed inside any callback.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/dynamic/dynamic_state.h"
#include "rendezvous/dynamic/join_queue.h"
#include "rendezvous/dynamic/state_store.h"
#include "rendezvous/key_value.h"
#include "rendezvous/round_result.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>

namespace lockstep::rendezvous::dynamic {

// Returns the prefix of all keys of a round.
std::string round_prefix(const std::string& run_id, std::int64_t round);

class DynamicDriver {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  // state and keys must outlive the driver. Lockstep's agents announce changes of the state under
  // `keys`, which spares them polling every second.
  DynamicDriver(io::Loop& loop, StateStore& state, KeyValue& keys, std::string run_id, Node self,
                DynamicSettings settings);
  ~DynamicDriver();
  DynamicDriver(const DynamicDriver&) = delete;
  DynamicDriver& operator=(const DynamicDriver&) = delete;

  // Joins the next round. nullopt: the job ended while this node was a spare.
  void join(Done<std::optional<RoundResult>> done);
  void withdraw(Done<void> done);  // leaves all lists, for an agent that gives up
  void close(Done<void> done);     // ends the rendezvous for all agents
  // Ends the rendezvous, unless the other nodes have evicted this node from the last round.
  void fail_round(Done<void> done);
  // Returns whether the last join() failed because the store did not answer.
  bool unheard() const { return unheard_; }

  // Sets a function that is called about once a second with the state without dead nodes. Calls
  // begin when a join has finished and stop at the next operation.
  void on_watched(std::function<void(const RendezvousState&)> fn) { on_watched_ = std::move(fn); }
  // Called when the connection of a node (as to_text() prints the node) has closed: its last
  // heartbeat in the state is final.
  void guest_lost(const std::string& node);
  bool closed(const Node& node) const { return member_.closed(node); }
  // Called when the store is lost: pending operations fail, and no new request is sent.
  void lost(const Error& error);
  // Returns the state last seen, for messages of a waiting node.
  const RendezvousState& last_state() const { return last_state_; }
  const Node& self() const { return member_.self(); }
  // Returns how many waiting nodes a new round would admit.
  std::size_t waiting(const RendezvousState& state) const { return member_.waiting(state); }

 private:
  struct Operation {
    Op op = Op::keep_alive;
    // Receives how the operation ended: a final step, or an error.
    std::function<void(Result<Step>)> done;
  };

  void run(Op op, std::function<void(Result<Step>)> done);
  void run_simple(Op op, const std::string& what, Done<void> done);
  void start_next();
  void read();
  bool given_up() const;  // the pending join
  void decode(const StateStore::Stored& stored);
  void consider(const StateStore::Stored& stored, RendezvousState state);
  void carry_out(Step step);
  void write(RendezvousState state);
  void queue_up(const JoinWish& wish);
  void answered(const JoinQueue::Answer& answer);
  void write_all_wishes(const JoinWish& own);
  void fold(const JoinWish& own);
  void answer_batch(std::int64_t changes);
  void after_loss(const StateStore::Stored& stored);
  void wait(SteadyTime until);
  void end(Result<Step> outcome);
  void tick();
  Error ended_badly(const Step& step, const std::string& what) const;
  std::string change_key(std::int64_t change) const;
  static Now now();

  StateStore& store_;
  KeyValue& keys_;
  std::string run_id_;
  DynamicMember member_;
  JoinQueue queue_;
  std::optional<JoinQueue::Batch> batch_;   // wishes that this node is writing for other nodes
  std::vector<JoinQueue::Answer> answers_;  // answers to batch_, sent after the write
  std::deque<Operation> operations_;        // the first one is running
  StateStore::Stored stored_;
  RendezvousState last_state_;         // as decoded from stored_
  int losses_ = 0;                     // consecutive writes that lost against another node's write
  std::size_t joined_ = 0;             // participants when the running operation last had to wait
  io::Timer poll_;                     // of the running operation
  io::Timer watch_;                    // between operations, while in a round
  std::set<std::string> guests_lost_;  // since the state was last read
  std::unique_ptr<KeyValue::Watch> change_;  // of the running operation, while it waits
  std::int64_t woken_at_ = -1;
  std::minstd_rand chance_{std::random_device{}()};
  bool in_round_ = false;
  bool lost_ = false;
  bool unheard_ = false;
  std::function<void(const RendezvousState&)> on_watched_;
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::dynamic
