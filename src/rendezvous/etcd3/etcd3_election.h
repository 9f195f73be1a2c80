// The election of a job's leader through etcd. Every candidate keeps a lease alive. The candidate
// whose transaction creates the key
//  /lockstep/rendezvous/RUN_ID/leader
// leads, and writes "ADDR:PORT" into the key once its hub can be reached. The key vanishes with the
// leader's lease; the other candidates notice and try again. All candidates share one key, so a
// node that joins or leaves costs the other nodes nothing.
//
// The job's facts are in .../facts beside the key. Facts are written only while the leader's key is
// still the one created by this leader (same create_revision). So a leader that was cut off cannot
// undo its successor's word. Facts are kept for a day after the last leader.
//
// Etcd3ElectionCore decides. This class makes its requests and calls its owner's callbacks. No
// callback runs inside the call that takes it. Any callback may destroy the election.
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
  int lease_ttl = 3;  // seconds; etcd may grant more, and by default grants at least 2
  std::string prefix = "/lockstep/rendezvous/";
  std::chrono::milliseconds start_patience{0};  // 0: the client's timeout
};

class Etcd3Election {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  struct Handlers {
    // Gets the leader's place; nullopt: no node leads, or the place is unknown. Also called for
    // this node.
    std::function<void(const std::optional<StorePlace>&)> on_leader;
    // This node leads: open the hub, then publish() its place. The facts are the previous leaders'.
    std::function<void(const std::optional<Etcd3Facts>&)> on_elected;
    // The leader is gone and the job is over: its last facts.
    std::function<void(const Etcd3Facts&)> on_closed;
    // This node has lost the lead; the election goes on.
    std::function<void()> on_deposed;
    // on_unsure: etcd has not answered for a third of the lease; the election goes on. on_sure:
    // etcd answers again.
    std::function<void(const Error&)> on_unsure;
    std::function<void()> on_sure;
    // This node's lease has run out, or must be assumed to have: this node does not lead. The last
    // callback.
    std::function<void(const Error&)> on_lost;
  };

  // The client must outlive the election.
  Etcd3Election(Etcd3Client& client, Etcd3ElectionSettings settings, Handlers handlers);
  ~Etcd3Election();
  Etcd3Election(const Etcd3Election&) = delete;
  Etcd3Election& operator=(const Etcd3Election&) = delete;

  // Starts the election. Called once, before any other function. Returns the job's facts when etcd
  // has been reached and the leader is known. on_leader and on_elected follow.
  void start(Done<std::optional<Etcd3Facts>> done);
  bool leads() const { return core_.leads(); }
  bool unsure() const { return core_.unsure(); }
  // For the leader: publishes the place of the hub. Errc::canceled: this node no longer leads.
  void publish(const StorePlace& place, const Done<void>& done);
  void store_facts(const Etcd3Facts& facts, Done<void> done);
  // For any node: records that the job has failed in this round, if the round is still the last
  // one.
  void close_round(std::int64_t round, const std::string& why, Done<void> done);
  void load_facts(Done<std::optional<Etcd3Facts>> done);
  // Gives up candidacy and lead at once, so that no node waits for the lease. Only `done` is called
  // afterwards.
  void resign(Done<void> done);

 private:
  using Core = Etcd3ElectionCore;
  using Reply = Result<Etcd3Reply>;

  // Both carry out the core's actions: happened() after an event of the loop, asked() after a call.
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
  // Returns a callback that hands etcd's answer to the core.
  template <class Take>
  Etcd3Client::Done answer(Take take);
  Etcd3Txn fenced(const std::string& key, const std::string& value, std::int64_t lease,
                  std::int64_t led) const;
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
