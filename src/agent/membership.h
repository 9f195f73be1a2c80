// This node among the others: it joins rounds, hears what happens on other nodes and tells them
// what happens here, and takes leave. Knows nothing of workers; what it hears goes to its listener.
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
#include <string>
#include <vector>

namespace lockstep::agent {

class Membership {
 public:
  // No call comes inside one of Membership's own functions.
  class Listener {
   public:
    // counted: the round is a restart, and not only made because a node came or went.
    virtual void on_joined(const Round& round, bool counted) = 0;
    virtual void on_join_failed(Error error) = 0;
    // The job has ended, and this node was a spare of it.
    virtual void on_spare_over() = 0;
    // why: one printable line.
    virtual void on_interruption(rendezvous::Interruption::Kind kind, const std::string& why) = 0;
    // The workers of all nodes have ended well, or waiting for them makes no sense.
    virtual void on_barrier_over() = 0;

   protected:
    ~Listener() = default;
  };

  using MakeBackend =
      std::function<std::unique_ptr<rendezvous::Backend>(rendezvous::OfferStore offer_store)>;

  Membership(io::Loop& loop, const Node& node, Listener& listener, const MakeBackend& make_backend);

  // Takes part in the next round. A listener hears of one outcome, unless stop_waiting() comes
  // first.
  void join();
  // The round is reached and its workers have ended well: waits for those of other nodes, but only
  // for as long as --exit-barrier-timeout says.
  void enter_barrier();
  // What join() or enter_barrier() wait for does not matter any more.
  void stop_waiting();

  void tell_failure(const std::string& line, bool final);
  void tell_stop();

  // Calls back with what all nodes had to say within the limit.
  void exchange_reports(const std::string& own, std::chrono::milliseconds limit,
                        std::function<void(std::vector<rendezvous::NodeReport>)> done);
  // Calls back when the other nodes have what they need of this one.
  void leave(rendezvous::Departure how, std::function<void()> done);
  // Forgets the other nodes, whatever is under way. Not to be called in a callback of this object.
  void close();

  bool is_open() const { return open_; }         // the place where nodes meet was reached once
  const Round& round() const { return round_; }  // the last one joined

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
  std::unique_ptr<store::Server> store_;  // of the rounds in which this node is rank 0
  std::unique_ptr<rendezvous::Backend> backend_;
  bool open_ = false;
  Awaited awaited_ = Awaited::nothing;
  Round round_;
  std::vector<std::string> said_;  // notes of the last round
  WaitNotices notices_;
  io::Timer barrier_timer_;
};

}  // namespace lockstep::agent
