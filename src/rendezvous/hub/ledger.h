// Makes a job outlive the node that hosts the hub, without ever running twice: a change of the job
// counts only after a quorum of the nodes has recorded the change. Pure.
//
// Witness is the part of every node. A witness keeps the latest charter, and refuses charters of
// terms below its promise. Ledger is the part of the hub. The ledger collects the charters of the
// nodes and leads once a quorum of the last voters has promised its term. Then it has every change
// recorded by a quorum of the voters before and after the change.
//
// A hub without a quorum decides nothing, so two hubs never lead at the same time, however the
// network is split. The voters follow the connected nodes: of four nodes two may be lost one after
// the other, but not at once.
#pragma once

#include "base/error.h"
#include "rendezvous/hub/coordinator_settings.h"
#include "rendezvous/hub/hub_frames.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {

// Returns whether `agents` hold a quorum of the voters.
bool is_quorum(const Voters& voters, const std::set<Nonce>& agents);
// Returns whether `a` is later than `b`.
bool is_newer(const Charter& a, const Charter& b);
// Returns the lowest term above `after` in which only this agent can lead.
std::uint64_t next_term(std::uint64_t after, const Nonce& agent);
// Returns the place of the agent's vote; kNoPlace: none.
std::uint32_t place_of(const Voters& voters, const Nonce& agent);

class Witness {
 public:
  explicit Witness(std::uint32_t place) : place_(place) {}
  // Sets where this node may open a hub, for a hub that makes the list of hosts.
  void set_hub(codec::RdzvEndpoint hub) { hub_ = std::move(hub); }

  // Forgets the charter and the promise. They were of another job.
  void forget();
  Testimony testify(const Call& call);
  // Records the charter and returns Agreed, or refuses with a Testimony that shows why.
  Frame take(const Charter& charter);

  std::uint32_t place() const { return place_; }
  std::uint64_t promised() const { return promised_; }
  const Charter& charter() const { return charter_; }

 private:
  Testimony testimony() const { return {promised_, place_, charter_, hub_}; }

  std::uint32_t place_;
  codec::RdzvEndpoint hub_;
  std::uint64_t promised_ = 0;
  Charter charter_;
};

class Ledger {
 public:
  struct Settings {
    Nonce host{};
    std::uint64_t after = 0;   // the latest term promised by the host
    bool takes_over = false;   // false: the first hub of the job, which leads from the start
    bool lists_hosts = false;  // the nodes have no list of hosts: write it into the charter
  };
  struct Output {
    PeerId to = 0;
    Frame frame;
  };

  explicit Ledger(const Settings& settings);

  void arrive(PeerId peer, const Nonce& agent);
  void take(PeerId peer, const Testimony& testimony);
  void take(PeerId peer, const Agreed& agreed);
  void lose(PeerId peer);
  void write(const PermitRequest& request);

  // Returns whether the hub may decide; a quorum must still agree to each decision.
  bool leads() const { return stage_ != Stage::gathering && !deposed_; }
  // Returns whether another node leads, or has led since.
  bool deposed() const { return deposed_; }
  // Returns whether a charter waits for the agreement of a quorum.
  bool recording() const { return in_flight_; }
  // Returns whether enough nodes are connected to decide anything.
  bool has_quorum() const;
  // Returns whether this hub's own node is connected. Without it nothing can be recorded.
  bool has_host() const;
  std::string count() const;  // connected voters, for messages: "1 of 3 nodes", or "votes"
  const Charter& charter() const { return charter_; }  // the latest charter known
  // Returns the charter left by the previous hub, after a takeover.
  const Charter& left() const { return left_; }
  // Returns the round of a recorded request, once.
  std::optional<std::int64_t> take_permitted() { return std::exchange(permitted_, {}); }
  std::vector<Output> take_output() { return std::exchange(output_, {}); }

 private:
  // The walk of all interleavings compares whole states (succession_walk_testing.h).
  friend struct LedgerPeek;

  enum class Stage {
    gathering,  // taking over, until a quorum has recorded the leadership
    renewing,   // leading, but must renew the term: a node has promised a later one to another hub
    leading,
  };
  struct Peer {
    Nonce agent{};
    std::optional<Testimony> testimony;
    Agreed agreed{};
  };

  std::set<Nonce> promised() const;
  std::set<Nonce> agreed() const;
  void raise_term(std::uint64_t above);
  void proceed();
  void gather();
  void draft();
  void send_charter();
  void settle();
  Voters voters_here(std::vector<codec::RdzvEndpoint>& hosts) const;
  void list_hosts(Voters& voters, std::vector<codec::RdzvEndpoint>& hosts) const;
  void fill(Charter& charter) const;

  Settings settings_;
  std::uint64_t term_;
  Stage stage_;
  bool deposed_ = false;
  std::map<PeerId, Peer> peers_;
  bool peers_changed_ = false;  // since the last draft
  Charter charter_;
  Charter left_;
  bool in_flight_ = false;         // charter_ is not yet recorded by a quorum
  std::optional<Voters> settled_;  // voters of the last charter recorded by a quorum
  std::optional<PermitRequest> wish_;
  bool changed_ = false;  // charter_ lacks wish_
  std::optional<std::int64_t> permitted_;
  std::vector<Output> output_;
};

}  // namespace lockstep::rendezvous::hub
