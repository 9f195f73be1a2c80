// How a job outlives the node that hosts its hub, and never runs twice: what has become of it is
// written down by a quorum of its nodes before it counts. Pure.
//
// Witness is every node's part: it keeps the latest charter, and takes none of an earlier term than
// it has promised. Ledger is the hub's part: it collects what the nodes have written down, leads
// once a quorum of the last voters has promised to take its charters only, and has every change
// written down by a quorum of the voters before and after it.
//
// A hub that can't reach a quorum decides nothing, so that two hubs never lead at the same time,
// whoever is cut off from whom. The voters change with the nodes that are there: of four nodes two
// may be lost one after the other, but not two at once.
#pragma once

#include "base/error.h"
#include "rendezvous/hub/coordinator.h"
#include "rendezvous/hub/hub_frames.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {

bool is_quorum(const Voters& voters, const std::set<Nonce>& agents);
// Whether `a` was written after `b`.
bool is_newer(const Charter& a, const Charter& b);
// The next term that only the node at this place can lead in.
std::uint64_t next_term(std::uint64_t after, std::uint32_t place);

class Witness {
 public:
  explicit Witness(std::uint32_t place) : place_(place) {}

  Testimony testify(const Call& call);
  // Agreed, or a Testimony that says why not.
  Frame take(const Charter& charter);

  std::uint32_t place() const { return place_; }
  std::uint64_t promised() const { return promised_; }
  const Charter& charter() const { return charter_; }

 private:
  std::uint32_t place_;
  std::uint64_t promised_ = 0;
  Charter charter_;
};

class Ledger {
 public:
  struct Settings {
    Nonce host{};
    std::uint32_t place = 0;  // of the host in the list
    std::uint64_t after = 0;  // the latest term that the host has promised
    bool takes_over = false;  // else it is the job's first hub, and leads from the beginning
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

  // It may decide, as far as a quorum agrees.
  bool leads() const { return stage_ != Stage::gathering && !deposed_; }
  // Another node leads, or has led since.
  bool deposed() const { return deposed_; }
  // Enough nodes are here to decide anything.
  bool has_quorum() const;
  std::string count() const;  // of the voters that are here, for people: "1 of 3 nodes"
  const Charter& charter() const { return charter_; }  // the latest one known
  // Where this hub took over: as the last one had left it.
  const Charter& left() const { return left_; }
  // The round of a request that is written down.
  std::optional<std::int64_t> take_permitted() { return std::exchange(permitted_, {}); }
  std::vector<Output> take_output() { return std::exchange(output_, {}); }

 private:
  enum class Stage {
    gathering,  // takes over: until a quorum has written down that it leads
    renewing,   // leads, and asks for a later term: a node had promised that to another one
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
  Voters voters_here() const;
  void fill(Charter& charter) const;

  Settings settings_;
  std::uint64_t term_;
  Stage stage_;
  bool deposed_ = false;
  std::map<PeerId, Peer> peers_;
  Charter charter_;
  Charter left_;
  bool in_flight_ = false;         // charter_ is not yet written down by a quorum
  std::optional<Voters> settled_;  // the voters of the last charter that is
  std::optional<PermitRequest> wish_;
  bool changed_ = false;  // wish_ is not in charter_
  std::optional<std::int64_t> permitted_;
  std::vector<Output> output_;
};

}  // namespace lockstep::rendezvous::hub
