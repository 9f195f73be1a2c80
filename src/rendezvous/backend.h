// The interface between the agent and a rendezvous backend, by which a node meets the other nodes.
// Each backend has one implementation: solo.h, c10d, static, etcd, lockstep ...
//
// Everything runs on one loop. No callback runs inside the call that takes it, and each runs at
// most once. Destroying the backend drops pending requests without calling back.
#pragma once

#include "base/error.h"
#include "rendezvous/launched.h"
#include "rendezvous/round.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous {

// This node's part in every round.
struct NodeOffer {
  std::string role = "default";
  int local_world_size = 1;
  std::string host;              // name for messages: host::node_name()
  std::optional<int> node_rank;  // --node-rank, if given
  int max_restarts = 0;
  bool replacement = true;  // wait for a replacement of a lost node
  Launched launched;
};

// The most bytes of a Backend::send_news().
inline constexpr std::size_t kMostNews = 256U << 10;

struct StorePlace {
  std::string addr;
  int port = 0;
  bool operator==(const StorePlace&) const = default;
};

// Called on rank 0's node: opens the workers' store, or empties an open one, and returns its place.
// `addr` is this node's address as known to the other nodes.
using OfferStore = std::function<Result<StorePlace>(const std::string& addr)>;

// The end of a round for a reason outside this node.
struct Interruption {
  enum class Kind {
    rejoin,  // stop the workers and join() again: a node is gone or new, or a worker failed
             // elsewhere
    end,     // stop the workers: the job has failed, or cannot go on
  };
  Kind kind = Kind::rejoin;
  std::string why;  // one line: "rank 3 on trn-7 failed (exitcode: 9)", "trn-2 is gone: ..."
};

// This node's report about its failures at the end of the job, as printed by report_json().
struct NodeReport {
  std::string host;
  int group_rank = 0;
  std::string text;
};

enum class Departure {
  succeeded,  // the job is done: no node may join any more
  failed,     // the job has failed: no node may join any more
  stopped,    // only this node leaves (a signal); the other nodes may go on
};

class Backend {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Backend() = default;

  // Connects to the meeting point of the nodes, or hosts it. Called once, before any other
  // function.
  virtual void open(Done<void> done) = 0;
  // Leaves the previous round, takes part in the next one, and returns when all ranks are known.
  // nullopt: this node was a spare, and the job has ended without it.
  virtual void join(Done<std::optional<Round>> done) = 0;
  // Sets the function for interruptions between a finished join() and the next join() or leave().
  // Called at most once per round.
  void on_interruption(std::function<void(const Interruption&)> fn) {
    on_interruption_ = std::move(fn);
  }
  // Tells the other nodes at once that a worker of this node has failed. final: no restart is left.
  virtual void tell_failure(const std::string& line, bool final) = 0;
  // Offers the place of this node in the next round to a waiting spare, or takes the offer back.
  // Call before join(). Returns whether the offer stands: the host keeps its place, and so does a
  // node without a coordinator.
  virtual bool give_way(bool /*gives*/) { return false; }
  // Returns whether the other nodes can go on, with a replacement or without, if this node leaves
  // the job now (Departure::stopped).
  virtual bool others_can_go_on() const { return false; }
  // Tells the other nodes that this node was told to stop. leave() follows only when the workers
  // have ended, and the other nodes must not wait so long.
  virtual void tell_stop() {}
  // Returns whether nodes of a round can tell each other news.
  virtual bool carries_news() const { return false; }
  // Sends news of this round. The node with group rank 0 sends to all other nodes, any other node
  // to the node with group rank 0. Returns false if nothing was sent. Sent news may still be lost.
  virtual bool send_news(const std::string& /*text*/) { return false; }
  // Sets the function for news from the node with group rank `from`. The text is foreign.
  void on_news(std::function<void(int from, const std::string& text)> fn) {
    on_news_ = std::move(fn);
  }
  // Called when all workers of this node have ended well. `done` runs when the workers of all nodes
  // have ended well, or with an Error that says why waiting longer is pointless. With an Error,
  // too, the run counts as good. Interruptions may still come.
  virtual void finish(Done<void> done) = 0;
  // Exchanges the reports of a failed job. `done` gets all reports that came in time: the one of
  // the first failure, then by group rank.
  virtual void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                std::function<void(std::vector<NodeReport>)> done) = 0;
  // The last call. On a hosting node `done` waits until the guests have all they need.
  virtual void leave(Departure how, Done<void> done) = 0;
  // Returns why a pending leave() still waits, naming the guests. One line; empty: no reason.
  virtual std::string staying_for() const { return {}; }
  // Returns the state of a wait for people: nodes present, nodes missing, attempts. One line; may
  // be empty.
  virtual std::string waiting_for() const = 0;
  // Returns when a pending open() or join() will fail. nullopt: unknown, or no limit.
  virtual std::optional<std::chrono::steady_clock::time_point> gives_up_at() const { return {}; }

 protected:
  std::function<void(const Interruption&)> on_interruption_;
  std::function<void(int, const std::string&)> on_news_;
};

}  // namespace lockstep::rendezvous
