// The election as a pure state machine: no requests, timers or callbacks. The driver
// (etcd3_election.h) feeds in etcd's answers, events of the watch, and time. The core returns
// actions in order: requests to make, and callbacks to call.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/etcd3/etcd3_codec.h"
#include "rendezvous/etcd3/etcd3_facts.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::rendezvous::etcd3 {

class Etcd3ElectionCore {
 public:
  using Ms = std::chrono::milliseconds;

  enum class Phase {
    starting,   // until the leader is known
    following,  // another node leads, or none
    leading,
    over,  // the lease is lost or revoked
  };
  // State of this node's lease.
  enum class Lease {
    none,
    held,      // renewed after a third of its time
    renewing,  // the renewal was sent
    unsure,    // no answer to the renewal for a third of the lease
  };

  // One campaign at a time: however often the leader's key vanishes, the next campaign waits for
  // the answer to the current one.
  enum class Standing {
    none,
    asked,
    asked_too_soon,  // the key has changed since
  };

  // --- requests, each with the function for the answer ---
  struct Grant {};    // granted()
  struct KeepAlive {  // kept_alive()
    std::int64_t lease = 0;
    Ms patience{};
    Ms attempt{};
  };
  struct Campaign {  // campaigned()
    std::int64_t lease = 0;
  };
  struct Watch {  // watched(), gap(); replaces the previous watch
    std::int64_t from = 0;
  };
  struct StopWatch {};
  struct GrantFacts {  // facts_granted()
    std::chrono::seconds ttl{};
  };
  struct KeepFacts {  // the answer is ignored
    std::int64_t lease = 0;
  };
  struct PutFacts {  // facts_put(); succeeds only while the leader's key has this create_revision
    std::string text;
    std::int64_t lease = 0;
    std::int64_t led = 0;
  };
  // --- callbacks, documented in Etcd3Election::Handlers ---
  struct Started {
    Result<std::optional<Etcd3Facts>> facts;
  };
  struct Leader {
    std::optional<StorePlace> place;
  };
  struct Elected {
    std::optional<Etcd3Facts> facts;
  };
  struct Closed {
    Etcd3Facts facts;
  };
  struct Deposed {};
  struct Unsure {
    Error error;
  };
  struct Sure {};
  struct Lost {
    Error error;
  };
  struct Stored {
    std::uint64_t ticket = 0;  // of put_facts()
    Status status;
  };
  using Action =
      std::variant<Grant, KeepAlive, Campaign, Watch, StopWatch, GrantFacts, KeepFacts, PutFacts,
                   Started, Leader, Elected, Closed, Deposed, Unsure, Sure, Lost, Stored>;

  // etcd: "etcd at ENDPOINTS", for messages.
  Etcd3ElectionCore(std::string run_id, std::string etcd);

  void start(io::TimePoint now);
  void granted(Result<Etcd3Reply> reply, io::TimePoint now);
  void kept_alive(Result<Etcd3Reply> reply, io::TimePoint now);
  void campaigned(Result<Etcd3Reply> reply, io::TimePoint now);
  void watched(const std::vector<Etcd3Event>& events, io::TimePoint now);
  void gap(io::TimePoint now);
  std::uint64_t put_facts(std::string text);  // returns the ticket of the later Stored
  void facts_granted(Result<Etcd3Reply> reply, io::TimePoint now);
  void facts_put(Result<Etcd3Reply> reply);
  void resign();
  void tick(io::TimePoint now);
  // Returns when tick() is due; nullopt: never.
  std::optional<io::TimePoint> next_time() const;
  std::optional<Action> next_action();
  // Returns whether the next action is a callback.
  bool tells() const;

  Phase phase() const { return phase_; }
  bool leads() const { return phase_ == Phase::leading; }
  // Returns whether the lease is held and etcd does not answer.
  bool unsure() const { return lease_state_ == Lease::unsure; }
  // Returns the create_revision of this node's key while leading. Writes of a leader depend on it.
  std::int64_t led_revision() const { return led_revision_; }
  std::int64_t lease() const { return lease_; }
  // Adds the job's name to an error of etcd.
  Error within(Error error) const;
  static Error not_leader();
  // Parses the value of the key with the job's facts.
  static Result<std::optional<Etcd3Facts>> facts_of(const std::vector<Etcd3Kv>& kvs);

 private:
  Ms third() const;
  void keep_alive(io::TimePoint now);
  void campaign();
  void look_again(io::TimePoint now);
  void renewal_due(io::TimePoint now);
  bool asleep() const;
  Error lease_lost(const std::string& why) const;
  std::string overslept() const;
  void depose();
  void show(const std::string& value);
  void lose(const Error& error);
  void end();
  void told(Status outcome);
  void put_next_facts();
  void refresh_facts(io::TimePoint now);

  std::string run_id_;
  std::string etcd_;
  std::deque<Action> actions_;
  Phase phase_ = Phase::starting;
  Lease lease_state_ = Lease::none;
  Standing standing_ = Standing::none;
  std::int64_t lease_ = 0;
  std::chrono::seconds ttl_{0};
  io::TimePoint asked_{};  // when the lease, or its pending renewal, was requested
  Ms slept_{0};            // time asleep since the last answer to a renewal
  std::int64_t led_revision_ = 0;
  std::optional<std::string> shown_;  // the leader's key as last reported
  std::optional<io::TimePoint>
      renewal_due_;  // of the next renewal, or of the answer to the pending one
  std::optional<io::TimePoint> lease_until_;
  std::optional<io::TimePoint> campaign_at_;
  struct Words {
    std::uint64_t ticket = 0;
    std::string text;
    std::int64_t led = 0;  // as in PutFacts
  };
  std::deque<Words> facts_queue_;  // in order; the first one is being written
  std::uint64_t last_ticket_ = 0;
  std::int64_t facts_lease_ = 0;
  io::TimePoint facts_refreshed_{};
};

}  // namespace lockstep::rendezvous::etcd3
