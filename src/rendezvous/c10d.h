// The c10d backend: hosts or reaches the store, keeps the shared state there and goes through its
// state machine (dynamic_state.h) on the event loop. Works beside torchrun's agents. No callback
// runs inside the call that asks for it; the object may be destroyed in any.
#pragma once

#include "base/error.h"
#include "codec/rdzv_endpoint.h"
#include "io/loop.h"
#include "io/resolve.h"
#include "rendezvous/dynamic_state.h"
#include "rendezvous/host_match.h"
#include "rendezvous/round_result.h"
#include "store/async_client.h"
#include "store/server.h"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous {

struct C10dSettings {
  codec::RdzvEndpoint endpoint;
  std::string run_id;
  std::optional<bool> is_host = {};
  std::optional<std::string> local_addr = {};
  std::chrono::milliseconds read_timeout{60'000};  // to reach the store, and for each answer of it
  DynamicSettings dynamic = {};
};

// What an agent in a round sees of the others, once a second.
struct Watched {
  std::size_t waiting = 0;       // nodes that want in
  std::size_t participants = 0;  // of the agent's round that are left
  bool takes_part = true;        // false: a peer took this node for dead; it must join again
  bool closed = false;
};

class C10d {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  C10d(io::Loop& loop, C10dSettings settings);
  ~C10d();  // a hosted store goes with it
  C10d(const C10d&) = delete;
  C10d& operator=(const C10d&) = delete;

  // Once, before all else.
  void open(Done<void> done);
  // nullopt: the job ended while this node was a spare.
  void join(Done<std::optional<RoundResult>> done);
  void withdraw(Done<void> done);  // out of all lists, for an agent that gives up
  void close(Done<void> done);     // for good, for all agents

  // From a finished join on, until the next one or the end: heartbeats, and what they show.
  void on_watched(std::function<void(const Watched&)> fn) { on_watched_ = std::move(fn); }
  // The store is gone. Operations under way fail with the same error, before this.
  void on_lost(std::function<void(const Error&)> fn) { on_lost_ = std::move(fn); }
  // The state as last seen, for those who wait and wonder.
  const RendezvousState& last_state() const { return last_state_; }
  const Error* last_attempt() const { return quick_ ? quick_->last_attempt() : nullptr; }

  bool hosts() const { return server_ != nullptr; }
  store::Server* server() { return server_.get(); }
  const std::string& host_reason() const { return host_reason_; }
  const Node& self() const { return member_->self(); }
  int port() const { return settings_.endpoint.port; }
  // For the agents' other agreements under the round's prefix: a connection that may wait.
  store::AsyncClient& waits() { return *waits_; }

 private:
  struct Operation {
    Op op = Op::keep_alive;
    // How the operation ended: a final step, or an error.
    std::function<void(Result<Step>)> done;
  };

  void look_up_endpoint();
  void look_up_self();
  void settle_host(const HostChoice& choice);
  void reach(const std::string& host);
  void connected(Result<void> outcome);
  void lost(const Error& error);
  void open_state();
  std::string route_address() const;
  void fail_open(Error error);

  void run(Op op, std::function<void(Result<Step>)> done);
  void run_simple(Op op, const std::string& what, Done<void> done);
  void start_next();
  void read();
  void consider(const std::string& text);
  void carry_out(Step step);
  void end(Result<Step> outcome);
  void tick();
  Error ended_badly(const Step& step, const std::string& what) const;
  std::string state_key() const;
  static Now now();

  io::Loop& loop_;
  C10dSettings settings_;
  HostFacts facts_;
  std::optional<io::Address> endpoint_address_;
  std::string host_reason_;
  std::unique_ptr<io::Lookup> lookup_;
  std::unique_ptr<store::Server> server_;
  std::unique_ptr<store::AsyncClient> quick_;  // compare-and-set, heartbeats: nothing waits here
  std::unique_ptr<store::AsyncClient> waits_;
  std::optional<DynamicMember> member_;
  Done<void> open_done_;
  int connections_ = 0;

  std::deque<Operation> operations_;  // the first one is under way
  std::string token_;                 // the text that the state was read from
  RendezvousState last_state_;
  std::size_t joined_ = 0;  // participants when the operation under way last had to wait
  io::Timer poll_;          // of the operation under way
  io::Timer watch_;         // between operations, while in a round
  bool in_round_ = false;
  bool lost_ = false;
  std::function<void(const Watched&)> on_watched_;
  std::function<void(const Error&)> on_lost_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);
};

}  // namespace lockstep::rendezvous
