// One round from a node's side, for backends whose nodes share a key-value store (c10d, static,
// both of etcd's v2 API). The nodes agree on ranks, run, wait in the exit barrier, and report
// failures. The backend decides which nodes make a round and which are missing.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/key_value.h"
#include "rendezvous/news_board.h"
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
  std::string nodes_asked;  // --nnodes, as told to the other nodes; empty: not told
  std::chrono::milliseconds read_timeout{60'000};
  std::chrono::seconds exit_barrier_timeout{300};  // 0: no barrier
};

class KeyValueRound {
 public:
  template <class T>
  using Done = Backend::Done<T>;
  using Join = Done<std::optional<Round>>;

  enum class Phase {
    none,      // no round yet, or between two rounds
    agreeing,  // the nodes are known, their ranks are not
    running,
    barrier,  // the workers of this node have ended well
    over,     // interrupted, failed or done; the board still carries reports
  };

  struct Hooks {
    std::function<void(const Interruption&)> interrupted;
    std::function<void(Join)>
        join_again;  // called if the round is abandoned before its ranks are known
    // Gets another node's failure before the interruption. May be empty.
    std::function<void(const FailureRecord&)> told = nullptr;
    // Gets news of other nodes. Empty: the nodes tell each other none.
    NewsBoard::Heard heard = nullptr;
  };

  KeyValueRound(io::Loop& loop, KeyValueRoundSettings settings, Hooks hooks);

  Phase phase() const { return phase_; }
  // Returns whether the round is uninterrupted, and its workers run or have ended well.
  bool active() const { return phase_ == Phase::running || phase_ == Phase::barrier; }
  bool had_round() const { return board_ != nullptr; }
  int restarts() const { return restarts_; }
  RoleInfo own_info() const;

  // Forgets the previous round and all of its callbacks.
  void reset();
  // Agrees on ranks. `join` is answered once: by begin(), fail_join() or an interruption, unless
  // take_join() takes it. `made` gets the ranks, unless the round is abandoned before.
  void agree(KeyValue& keys, RankExchange exchange, Join join,
             std::function<void(Result<Assignment>)> made);
  struct Begin {
    std::vector<bool> ours;    // by rank: the node has a Lockstep agent
    std::string board_prefix;  // prefix of the keys of failures and reports
    bool use_agent_store = true;
    bool together = true;  // a failure that is not final restarts all nodes
  };
  void begin(const Assignment& made, Begin how);
  void fail_join(Error error);
  void come_to_nothing(const std::string& why);
  Join take_join();

  void interrupt(Interruption::Kind kind, std::string why);
  // Interrupts the round with its recorded failure. Without a record, interrupts the round for this
  // reason.
  void interrupt_unless_told(Interruption::Kind kind, const std::string& why);
  // Interrupts the round on all nodes, without counting a restart. Records that before the workers
  // of this node are stopped: workers of other nodes fail over their end.
  void interrupt_all(const std::string& why);
  // Handles another node's failure.
  void hear(const FailureRecord& record);
  // As in Backend.
  void tell_failure(const std::string& line, bool final);
  bool carries_news() const { return news_ != nullptr; }
  bool send_news(const std::string& text);
  void finish(Done<void> done);
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done);

  // Sets a function that gets the barrier's answer first. The function calls end_barrier(), or does
  // not.
  void on_barrier(std::function<void(const Result<void>&)> fn) { on_barrier_ = std::move(fn); }
  void end_barrier(const Result<void>& all);
  // Ends the round silently. Returns whether it was active.
  bool stop();
  // Called when the store is lost: no more requests.
  void lose_store() {
    store_lost_ = true;
    news_.reset();
  }

  // Returns whether a lost node may be replaced, at the cost of a restart.
  bool awaits_replacement() const;
  // Counts the restart for a free place, unless counted before. Returns the text with the
  // consequences of `why`.
  std::string await_replacement(const std::string& why, io::Duration patience);
  // Records the end of this node, of another one or of the round for all nodes, whether the round
  // is active or not.
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
  std::unique_ptr<NewsBoard> news_;
  Join join_;
  Done<void> barrier_done_;
  std::function<void(const Result<void>&)> on_barrier_;
  int restarts_ = 0;
  int max_restarts_ = 0;  // the lowest of the nodes
  bool together_ = true;
  bool store_lost_ = false;
  io::Timer turn_;
  CallbackScope calls_;  // of this round
  CallbackScope count_;  // of the restarts, also after the round
};

}  // namespace lockstep::rendezvous
