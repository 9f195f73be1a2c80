// The static backend: fixed nodes, each with its rank given, and one TCPStore at the master's
// address for agents and workers alike. On the wire as torchrun's. Where all agents are Lockstep's
// a failure or a lost node is told to all, and all restart together: node rank 0 misses the others
// by their counted heartbeats, they miss it when it leaves theirs unanswered.
#pragma once

#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/host_finder.h"
#include "rendezvous/rank_exchange.h"
#include "rendezvous/round_board.h"
#include "rendezvous/static_backend/pulses.h"
#include "rendezvous/tcp_key_value.h"
#include "store/server.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::static_backend {

struct StaticSettings {
  StorePlace master;
  std::string run_id;
  int node_rank = 0;
  int nodes = 1;
  std::chrono::milliseconds timeout{900'000};  // for all nodes to come
  std::chrono::seconds exit_barrier_timeout{300};
  std::chrono::milliseconds heartbeat_interval{5'000};
  int heartbeat_attempts = 3;
  std::chrono::milliseconds close_timeout{30'000};
  NodeOffer offer;
};

class StaticBackend : public Backend {
 public:
  StaticBackend(io::Loop& loop, StaticSettings settings);
  ~StaticBackend() override;

  void open(Done<void> done) override;
  void join(Done<std::optional<Round>> done) override;
  void tell_failure(const std::string& line, bool final) override;
  void tell_stop() override;
  void finish(Done<void> done) override;
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done) override;
  void leave(Departure how, Done<void> done) override;
  std::string waiting_for() const override;
  std::optional<io::TimePoint> gives_up_at() const override {
    return open_done_ ? std::optional(deadline_) : std::nullopt;
  }

 private:
  bool hosts() const { return settings_.node_rank == 0; }
  Status host();
  void check_master();
  void arrive();
  void refuse(const std::string& nodes);
  std::string turned_away() const;
  std::string waiting_for_guests(const std::string& at) const;
  void connected(Result<void> outcome);
  void count_nodes();
  void give_up_opening(Error error);
  std::int64_t joined() const;
  std::string prefix(std::int64_t round) const;
  void begin_round(const Assignment& made);
  std::string alive_key(int node_rank) const;
  void beat();
  void look();
  void look_for_silence();
  void miss(int node_rank, const std::string& why);
  std::string over_key() const;
  void await_over();
  void tell_over(const std::string& why);
  std::string departure_text(bool stopped) const;
  void end_join(Result<std::optional<Round>> outcome);
  void on_failure(const FailureRecord& record);
  void interrupt(Interruption::Kind kind, std::string why);
  void lose(Error error, bool silent);
  void decide_after_loss(bool silent);
  void all_came();
  void end_barrier(Result<void> all);
  void go_or_await_guests();
  void await_guests(Done<void> done);

  io::Loop& loop_;
  StaticSettings settings_;
  std::unique_ptr<store::Server> server_;
  std::unique_ptr<HostFinder> finder_;
  std::string misplaced_;  // this node has rank 0, but the master is another machine
  bool told_turned_away_ = false;
  std::unique_ptr<TcpKeyValue> keys_;
  std::unique_ptr<RoundBoard> board_;
  Done<void> open_done_;
  Done<std::optional<Round>> join_done_;
  Done<void> barrier_done_;
  io::TimePoint deadline_;
  std::int64_t rounds_ = 0;
  int restarts_ = 0;
  bool all_ours_ = false;
  bool in_round_ = false;
  bool in_barrier_ = false;
  bool all_came_ = false;  // to the barrier
  bool opened_ = false;
  bool told_over_ = false;
  Pulses pulses_;
  int unanswered_ = 0;  // heartbeats of this node
  std::unique_ptr<KeyValue::Watch> over_;
  std::optional<Error> lost_;
  io::Timer turn_;
  io::Timer heart_;
  io::Timer loss_;
  Done<void> leave_done_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);
};

}  // namespace lockstep::rendezvous::static_backend
