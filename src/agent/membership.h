// This node's part in the rendezvous. Joins rounds, reports events of other nodes to its listener,
// tells the other nodes about this one, and leaves. Knows nothing of workers.
#pragma once

#include "agent/node.h"
#include "agent/wait_notices.h"
#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "store/server.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::agent {

class Membership {
 public:
  // Membership never calls the listener from inside a public function.
  class Listener {
   public:
    // A round is agreed on. counted: it is a restart, not only a change of nodes.
    virtual void on_joined(const Round& round, bool counted) = 0;
    virtual void on_join_failed(Error error) = 0;
    // The job has ended, and this node was one of its spares.
    virtual void on_spare_over() = 0;
    // Another node wants a new round, or the job failed elsewhere. why: one printable line.
    virtual void on_interruption(rendezvous::Interruption::Kind kind, const std::string& why) = 0;
    // News of another node of the round. The text is foreign.
    virtual void on_news(int /*from*/, const std::string& /*text*/) {}
    // The workers of all nodes have ended well, or further waiting makes no sense.
    virtual void on_barrier_over() = 0;

   protected:
    ~Listener() = default;
  };

  using MakeBackend =
      std::function<std::unique_ptr<rendezvous::Backend>(rendezvous::OfferStore offer_store)>;

  Membership(io::Loop& loop, const Node& node, Listener& listener, const MakeBackend& make_backend);

  // Takes part in the next round. The listener hears exactly one outcome, unless stop_waiting() is
  // called first.
  void join();
  // Waits until the workers of all nodes have ended well, at most for --exit-barrier-timeout. Call
  // after this node's own workers have ended well.
  void enter_barrier();
  // Cancels the wait of join() or enter_barrier(): no listener call follows.
  void stop_waiting();

  // See rendezvous::Backend.
  bool give_way(bool gives) { return backend_ && backend_->give_way(gives); }
  bool others_can_go_on() const { return backend_ && backend_->others_can_go_on(); }
  // Tells the other nodes that a worker failed here. line: text for a log line of the other nodes.
  // final: no restart is left.
  void tell_failure(const std::string& line, bool final);
  // Tells the other nodes that a signal ends the workers of this node.
  void tell_stop();

  // Tells other nodes of the round, see rendezvous::Backend.
  bool carries_news() const { return backend_ && backend_->carries_news(); }
  bool send_news(const std::string& text) { return backend_ && backend_->send_news(text); }

  // Sends this node's report. Calls back with the reports that arrive from all nodes within the
  // limit.
  void exchange_reports(const std::string& own, std::chrono::milliseconds limit,
                        std::function<void(std::vector<rendezvous::NodeReport>)> done);
  // Calls back when the other nodes have all they need from this node.
  void leave(rendezvous::Departure how, std::function<void()> done);
  // Drops the rendezvous and the store, whatever is going on. Do not call from a callback of this
  // object.
  void close();

  bool is_open() const { return open_; }         // the rendezvous was reached at least once
  const Round& round() const { return round_; }  // the last round joined
  // Returns the store of this round's workers. nullptr: another node has the store. A former rank 0
  // keeps an old store, which has the keys of earlier rounds.
  const store::Server* store() const { return round_.group_rank == 0 ? store_.get() : nullptr; }

 private:
  enum class Awaited { nothing, round, barrier };

  Result<rendezvous::StorePlace> offer_store(const std::string& addr);
  void join_round();
  void joined(Result<std::optional<Round>> outcome);
  void say_joined();
  void join_failed(Error error);
  void barrier_over();

  io::Loop& loop_;
  const Node& node_;
  Listener& listener_;
  std::unique_ptr<store::Server> store_;  // for the rounds in which this node is rank 0
  std::unique_ptr<rendezvous::Backend> backend_;
  bool open_ = false;
  Awaited awaited_ = Awaited::nothing;
  Round round_;
  std::vector<std::string> said_;  // notes of the last round
  WaitNotices notices_;
  io::Timer barrier_timer_;
};

}  // namespace lockstep::agent
