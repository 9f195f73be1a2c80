// The election as a state machine: no requests, no timers, no callbacks. Its driver
// (etcd3_election.h) hands it etcd's answers, what its watch tells and the time; it answers with
// actions in the order in which they are to be done: requests to make, and things to tell.
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
    starting,   // until it is known who leads
    following,  // another node leads, or none yet
    leading,
    over,  // the lease is lost, or given back
  };
  // This node's lease on its candidacy.
  enum class Lease {
    none,
    held,      // is renewed when a third of it has passed
    renewing,  // etcd has been asked
    unsure,    // and has not answered for a third of it
  };

  // One at a time: however often the leader's key is said to be gone, etcd is asked once more when
  // it has answered.
  enum class Standing {
    none,
    asked,
    asked_too_soon,  // the key has changed since
  };

  // --- requests; the answer goes to the function named ---
  struct Grant {};    // granted()
  struct KeepAlive {  // kept_alive()
    std::int64_t lease = 0;
    Ms patience{};
    Ms attempt{};
  };
  struct Campaign {  // campaigned()
    std::int64_t lease = 0;
  };
  struct Watch {  // watched(), gap(); replaces an earlier one
    std::int64_t from = 0;
  };
  struct StopWatch {};
  struct GrantFacts {  // facts_granted()
    std::chrono::seconds ttl{};
  };
  struct KeepFacts {  // nobody waits for the answer
    std::int64_t lease = 0;
  };
  struct PutFacts {  // facts_put(); only while the leader's key is the one of this revision
    std::string text;
    std::int64_t lease = 0;
    std::int64_t led = 0;
  };
  // --- things to tell; see Etcd3Election::Handlers ---
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
  std::uint64_t put_facts(std::string text);  // Stored tells with this number how it went
  void facts_granted(Result<Etcd3Reply> reply, io::TimePoint now);
  void facts_put(Result<Etcd3Reply> reply);
  void resign();
  void tick(io::TimePoint now);
  // When tick() is due; nullopt: nothing waits for a time.
  std::optional<io::TimePoint> next_time() const;
  std::optional<Action> next_action();
  // The action at the front is one to tell.
  bool tells() const;

  Phase phase() const { return phase_; }
  bool leads() const { return phase_ == Phase::leading; }
  // create_revision of our key while we lead; what is written as leader depends on it.
  std::int64_t led_revision() const { return led_revision_; }
  std::int64_t lease() const { return lease_; }
  // Errors of etcd, with the job's name before them.
  Error within(Error error) const;
  static Error not_leader();
  // What the key of the job's facts holds.
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
  io::TimePoint asked_{};  // for the lease, or its renewal under way
  Ms slept_{0};            // since the last answer to a renewal
  std::int64_t led_revision_ = 0;
  std::optional<std::string> shown_;          // the leader's key, as it was told last
  std::optional<io::TimePoint> renewal_due_;  // the next one, or the answer to the one under way
  std::optional<io::TimePoint> lease_until_;
  std::optional<io::TimePoint> campaign_at_;
  struct Words {
    std::uint64_t ticket = 0;
    std::string text;
  };
  std::deque<Words> facts_queue_;  // in order; the first is under way
  std::uint64_t last_ticket_ = 0;
  std::int64_t facts_lease_ = 0;
  io::TimePoint facts_refreshed_{};
};

}  // namespace lockstep::rendezvous::etcd3
