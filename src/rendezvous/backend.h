// How a node meets the others: what the agent asks of every rendezvous backend, and what it is told
// by it. One implementation a backend: solo.h, c10d, static, etcd, lockstep ...
//
// All of it happens on one loop. No callback runs inside the call that asks for it, and each comes
// at most once; destroying the backend forgets what is under way.
#pragma once

#include "base/error.h"
#include "rendezvous/launched.h"
#include "rendezvous/round.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

// What this node brings into every round.
struct NodeOffer {
  std::string role = "default";
  int local_world_size = 1;
  std::string host;              // its name for people: host::node_name()
  std::optional<int> node_rank;  // --node-rank, where given
  int max_restarts = 0;
  bool replacement = true;  // of a lost node is waited for
  Launched launched;
};

struct StorePlace {
  std::string addr;
  int port = 0;
  bool operator==(const StorePlace&) const = default;
};

// The agent's part when its node is rank 0: opens the workers' store, or empties the one it has,
// and says where. `addr` is what the others know this node by.
using OfferStore = std::function<Result<StorePlace>(const std::string& addr)>;

// The round is over for a reason that lies outside this node.
struct Interruption {
  enum class Kind {
    rejoin,  // stop the workers and join() again: a node is gone or new, or a worker failed there
    end,     // stop the workers: the job has failed, or can't go on
  };
  Kind kind = Kind::rejoin;
  std::string why;  // one line: "rank 3 on trn-7 failed (exitcode: 9)", "trn-2 is gone: ..."
};

// What this node has to say about its failures at the end of the job, as report_json() has it.
struct NodeReport {
  std::string host;
  int group_rank = 0;
  std::string text;
};

enum class Departure {
  succeeded,  // the job is done: nobody shall join it any more
  failed,     // likewise
  stopped,    // this node alone goes (a signal); the others may go on without it
};

class Backend {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Backend() = default;

  // Once, before all else: reaches or hosts whatever the nodes meet at.
  virtual void open(Done<void> done) = 0;
  // Takes part in the next round, until all ranks are known. nullopt: this node was a spare and the
  // job has ended without it. Also leaves the round before.
  virtual void join(Done<std::optional<Round>> done) = 0;
  // From a finished join() to the next one, or to leave(). At most one a round.
  void on_interruption(std::function<void(const Interruption&)> fn) {
    on_interruption_ = std::move(fn);
  }
  // A worker of this node has failed: the others are told at once. final: no restart is left.
  virtual void tell_failure(const std::string& line, bool final) = 0;
  // This node was told to stop. leave() comes only when its workers have ended; the others need not
  // wait so long to hear of it.
  virtual void tell_stop() {}
  // All workers of this node ended well: comes back when those of all nodes have, or when waiting
  // longer makes no sense (an Error that says why; the run counts as good all the same).
  // Interruptions still come.
  virtual void finish(Done<void> done) = 0;
  // The job has failed: hands the own report to the others and brings theirs, ordered by the
  // failure that came first and then by group rank; those that don't come in time are left out.
  virtual void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                std::function<void(std::vector<NodeReport>)> done) = 0;
  // Last of all. A node that hosts for others comes back when they have what they need.
  virtual void leave(Departure how, Done<void> done) = 0;
  // While leave() is under way: whom this node stays for. One line; empty: for nobody.
  virtual std::string staying_for() const { return {}; }
  // For those who wait and wonder: who is there, who is missing, what was tried. One line, may be
  // empty.
  virtual std::string waiting_for() const = 0;
  // When open() or join() fails if nothing changes. nullopt: not known, or this node waits as long
  // as it takes.
  virtual std::optional<std::chrono::steady_clock::time_point> gives_up_at() const { return {}; }

 protected:
  std::function<void(const Interruption&)> on_interruption_;
};

}  // namespace lockstep::rendezvous
