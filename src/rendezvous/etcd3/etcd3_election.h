// Who leads a job, by etcd: every candidate has a lease and keeps it alive; the one whose
// transaction creates the key
//   /lockstep/rendezvous/RUN_ID/leader
// leads, and writes "ADDR:PORT" into it once it can be reached there. The key goes with its lease;
// all others see that and try again. All candidates share one key, so a node that joins or goes
// costs the others nothing. The job's facts are in .../facts beside it; they are written only
// while the leader's key is still the one that this leader made (its create_revision), so a leader
// that was cut off can't undo its successor's word. They are kept for a day after the last leader.
//
// Etcd3ElectionCore decides; this class makes its requests and calls its owner's callbacks. No
// callback runs inside the call that asks; any callback may destroy the election.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/etcd3/etcd3_client.h"
#include "rendezvous/etcd3/etcd3_election_core.h"
#include "rendezvous/etcd3/etcd3_facts.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::etcd3 {

struct Etcd3ElectionSettings {
  std::string run_id;
  int lease_ttl = 3;  // seconds; etcd may grant more, not less than 2 by its default settings
  std::string prefix = "/lockstep/rendezvous/";
  std::chrono::milliseconds start_patience{0};  // 0: the client's
};

class Etcd3Election {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  struct Handlers {
    // Who leads now and where, or that nobody does (yet, or not known where). Also of ourselves.
    std::function<void(const std::optional<StorePlace>&)> on_leader;
    // We lead: open the place to meet, then publish() it. The facts are those of our predecessors.
    std::function<void(const std::optional<Etcd3Facts>&)> on_elected;
    // The leader is gone, and the job over: what it wrote down.
    std::function<void(const Etcd3Facts&)> on_closed;
    // We led and lead no longer; the election goes on.
    std::function<void()> on_deposed;
    // etcd has not answered for a third of the lease; the election goes on. on_sure: etcd has
    // answered again.
    std::function<void(const Error&)> on_unsure;
    std::function<void()> on_sure;
    // Our lease has run out, or we must assume so: we do not lead. This is the last call of the
    // election.
    std::function<void(const Error&)> on_lost;
  };

  // The client must outlive it.
  Etcd3Election(Etcd3Client& client, Etcd3ElectionSettings settings, Handlers handlers);
  ~Etcd3Election();
  Etcd3Election(const Etcd3Election&) = delete;
  Etcd3Election& operator=(const Etcd3Election&) = delete;

  // Once, before all else. Comes back with the job's facts when etcd has been reached and it is
  // known who leads; on_leader, on_elected come after it.
  void start(Done<std::optional<Etcd3Facts>> done);
  bool leads() const { return core_.leads(); }
  // The leader's: where it can be reached. Errc::canceled: it leads no longer.
  void publish(const StorePlace& place, const Done<void>& done);
  void store_facts(const Etcd3Facts& facts, Done<void> done);
  // Any node may call this: it writes that the job has failed in this round, if that is still the
  // last one.
  void close_round(std::int64_t round, const std::string& why, Done<void> done);
  void load_facts(Done<std::optional<Etcd3Facts>> done);
  // Gives up candidacy and lead at once, so that nobody waits for the lease; nothing but `done` is
  // called after it.
  void resign(Done<void> done);

 private:
  using Core = Etcd3ElectionCore;
  using Reply = Result<Etcd3Reply>;

  // Both do what the core has decided: after an event of the loop, and after a call of the owner.
  void happened();
  void asked();
  void arm();
  void act(const Core::Grant&);
  void act(const Core::KeepAlive& todo);
  void act(const Core::Campaign& todo);
  void act(const Core::Watch& todo);
  void act(const Core::StopWatch&);
  void act(const Core::GrantFacts& todo);
  void act(const Core::KeepFacts& todo);
  void act(const Core::PutFacts& todo);
  void act(Core::Started& told);
  void act(const Core::Leader& told);
  void act(const Core::Elected& told);
  void act(const Core::Closed& told);
  void act(const Core::Deposed&);
  void act(const Core::Unsure& told);
  void act(const Core::Sure&);
  void act(const Core::Lost& told);
  void act(Core::Stored& told);
  // Hands etcd's answer to the core.
  template <class Take>
  Etcd3Client::Done answer(Take take);
  Etcd3Txn fenced(const std::string& key, const std::string& value, std::int64_t lease) const;
  void close_facts(const Etcd3Facts& facts, const Etcd3Kv& before, Done<void> done);

  Etcd3Client& client_;
  Etcd3ElectionSettings settings_;
  Handlers handlers_;
  Core core_;
  std::string leader_key_;
  std::string facts_key_;
  Done<std::optional<Etcd3Facts>> start_done_;
  std::map<std::uint64_t, Done<void>> stored_;  // by the core's tickets
  io::Timer timer_;
  std::unique_ptr<Etcd3Watch> watch_;
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::etcd3
