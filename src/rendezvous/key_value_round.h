// One round as a node of it lives through it, for the backends whose nodes share a key-value store
// (c10d, static, both of etcd's v2 API): its nodes agree on ranks, run, wait for one another at the
// end, and tell one another of failures. What a round is made of, and which nodes are missing, is
// the backend's to say.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/key_value.h"
#include "rendezvous/rank_exchange.h"
#include "rendezvous/round_board.h"
#include "rendezvous/round_result.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

struct KeyValueRoundSettings {
  std::string run_id;
  NodeOffer offer;
  std::string nodes_asked;  // --nnodes, as the others are told; empty: they need not know
  std::chrono::milliseconds read_timeout{60'000};
  std::chrono::seconds exit_barrier_timeout{300};  // 0: no barrier
};

class KeyValueRound {
 public:
  template <class T>
  using Done = Backend::Done<T>;
  using Join = Done<std::optional<Round>>;

  enum class Phase {
    none,      // no round yet, or between two
    agreeing,  // its nodes are known, their ranks are not
    running,
    barrier,  // the workers of this node have ended well
    over,     // interrupted, failed or done; reports still go through its board
  };

  struct Hooks {
    std::function<void(const Interruption&)> interrupted;
    std::function<void(Join)> join_again;  // the round came to nothing before its ranks were known
    // Another node's word on a failure, before it interrupts. May be empty.
    std::function<void(const FailureRecord&)> told = nullptr;
  };

  KeyValueRound(io::Loop& loop, KeyValueRoundSettings settings, Hooks hooks);

  Phase phase() const { return phase_; }
  // Its workers run or have ended well, and nothing has interrupted it.
  bool active() const { return phase_ == Phase::running || phase_ == Phase::barrier; }
  bool had_round() const { return board_ != nullptr; }
  int restarts() const { return restarts_; }
  RoleInfo own_info() const;

  // The round before is forgotten, and every callback of it.
  void reset();
  // `join` is answered once: by begin(), fail_join() or an interruption, unless take_join() takes
  // it. `made` hears of the ranks, unless the round came to nothing before.
  void agree(KeyValue& keys, RankExchange exchange, Join join,
             std::function<void(Result<Assignment>)> made);
  struct Begin {
    std::vector<bool> ours;    // by rank: the node has a Lockstep agent
    std::string board_prefix;  // of the keys of notes and reports
    bool use_agent_store = true;
    bool together = true;  // a failure that is not final restarts all nodes
  };
  void begin(const Assignment& made, Begin how);
  void fail_join(Error error);
  void come_to_nothing(const std::string& why);
  Join take_join();

  void interrupt(Interruption::Kind kind, std::string why);
  // A failure was told: what that means for the round.
  void hear(const FailureRecord& record);
  // As Backend has them.
  void tell_failure(const std::string& line, bool final);
  void finish(Done<void> done);
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done);

  // The exit barrier answers here first, where this is set: end_barrier() follows, or nothing.
  void on_barrier(std::function<void(const Result<void>&)> fn) { on_barrier_ = std::move(fn); }
  void end_barrier(const Result<void>& all);
  // The round is over without a word. Whether it was active.
  bool stop();
  // The store is gone: nobody is asked any more.
  void lose_store() { store_lost_ = true; }

  // A lost node is waited for, at the cost of a restart.
  bool awaits_replacement() const;
  // A place is free because of `why`: counts the restart, unless it is counted; says what follows.
  std::string await_replacement(const std::string& why, io::Duration patience);
  // This node's or another's end, to all: active() or not.
  void tell(const FailureRecord& record, KeyValue::Done<std::string> done = nullptr);
  RoundBoard* board() const { return board_.get(); }

 private:
  io::Loop& loop_;
  KeyValueRoundSettings settings_;
  Hooks hooks_;
  Phase phase_ = Phase::none;
  KeyValue* keys_ = nullptr;  // of this round
  RoundResult facts_;
  std::unique_ptr<RoundBoard> board_;
  Join join_;
  Done<void> barrier_done_;
  std::function<void(const Result<void>&)> on_barrier_;
  int restarts_ = 0;
  int max_restarts_ = 0;  // the lowest of its nodes
  bool together_ = true;
  bool store_lost_ = false;
  io::Timer turn_;
  CallbackScope calls_;  // of this round
};

}  // namespace lockstep::rendezvous
