// Goes through the state machine of the dynamic rendezvous (dynamic_state.h) on the event loop:
// reads the shared state, asks what to do, writes, and keeps this node's heartbeat fresh. Works
// beside torchrun's agents. No callback runs inside the call that asks for it; the object may be
// destroyed in any.
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

// Before every key of a round.
std::string round_prefix(const std::string& run_id, std::int64_t round);

class DynamicDriver {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  // state and keys must live as long. keys: where Lockstep agents tell one another that the state
  // has changed, so that they need not ask every second.
  DynamicDriver(io::Loop& loop, StateStore& state, KeyValue& keys, std::string run_id, Node self,
                DynamicSettings settings);
  ~DynamicDriver();
  DynamicDriver(const DynamicDriver&) = delete;
  DynamicDriver& operator=(const DynamicDriver&) = delete;

  // nullopt: the job ended while this node was a spare.
  void join(Done<std::optional<RoundResult>> done);
  void withdraw(Done<void> done);  // out of all lists, for an agent that gives up
  void close(Done<void> done);     // for good, for all agents
  // For the others too, as far as they are still in this node's last round.
  void fail_round(Done<void> done);
  // The last join() failed because the store did not answer.
  bool unheard() const { return unheard_; }

  // From a finished join on, until the next one or the end: the state without dead nodes, each time
  // it was looked at (once a second).
  void on_watched(std::function<void(const RendezvousState&)> fn) { on_watched_ = std::move(fn); }
  // The connection of this node (as to_text() has it) has closed: what it wrote last was its last.
  void guest_lost(const std::string& node);
  bool closed(const Node& node) const { return member_.closed(node); }
  // The store is gone: what is under way fails, and nothing is asked any more.
  void lost(const Error& error);
  // The state as last seen, for those who wait and wonder.
  const RendezvousState& last_state() const { return last_state_; }
  const Node& self() const { return member_.self(); }
  // How many nodes wait that a new round would admit.
  std::size_t waiting(const RendezvousState& state) const { return member_.waiting(state); }

 private:
  struct Operation {
    Op op = Op::keep_alive;
    // How the operation ended: a final step, or an error.
    std::function<void(Result<Step>)> done;
  };

  void run(Op op, std::function<void(Result<Step>)> done);
  void run_simple(Op op, const std::string& what, Done<void> done);
  void start_next();
  void read();
  bool given_up() const;  // the join under way
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
  std::optional<JoinQueue::Batch> batch_;   // what this node writes for others
  std::vector<JoinQueue::Answer> answers_;  // to it, once it is written
  std::deque<Operation> operations_;        // the first one is under way
  StateStore::Stored stored_;
  RendezvousState last_state_;         // as decoded from stored_
  int losses_ = 0;                     // in a row: writes that came after another node's
  std::size_t joined_ = 0;             // participants when the operation under way last had to wait
  io::Timer poll_;                     // of the operation under way
  io::Timer watch_;                    // between operations, while in a round
  std::set<std::string> guests_lost_;  // since the state was last read
  std::unique_ptr<KeyValue::Watch> change_;  // of the operation under way, while it waits
  std::int64_t woken_at_ = -1;
  std::minstd_rand chance_{std::random_device{}()};
  bool in_round_ = false;
  bool lost_ = false;
  bool unheard_ = false;
  std::function<void(const RendezvousState&)> on_watched_;
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::dynamic
