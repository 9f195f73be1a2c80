// The listening side of the `lockstep` rendezvous: a socket, authentication, and the coordinator
// behind them. Any agent may run a HubServer; HubBackend decides which agent does.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "rendezvous/hub/coordinator.h"
#include "rendezvous/hub/end_hold.h"
#include "rendezvous/hub/hub_stream.h"
#include "rendezvous/hub/ledger.h"
#include "rendezvous/hub/quorum_watch.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace lockstep::rendezvous::hub {

struct HubServerSettings {
  std::string listen;  // an address or "localhost"; "": all addresses
  int port = 0;        // 0: the kernel picks
  std::optional<std::string> token;
  CoordinatorSettings coordinator;
  // Called before each round if rounds are fenced; an error ends the job. `answer` must be called
  // from the loop, never inside the call. The nodes hear of a good end after its answer.
  std::function<void(const PermitRequest&, std::function<void(Status)> answer)> permit = {};
  // Set if other nodes may host after this one. Then a quorum of the nodes records the state of the
  // job, which replaces `permit`.
  std::optional<Ledger::Settings> ledger = {};
  std::vector<std::string> hosts = {};  // by place, for messages
  // Called when this hub no longer leads or cannot decide. Destroy the server soon, not inside the
  // call.
  std::function<void(const std::string& why)> on_deposed = {};
  // Called if this hub's job goes on at another host. Destroy the server soon, not inside the call.
  std::function<void(const Moved& place)> on_moved = {};
  // Set at the endpoint's host while another node hosts: a server that only tells the way to the
  // hub. nullopt: not known now; the node asks again.
  std::function<std::optional<Moved>()> redirect = {};
  Ms time_to_prove{10'000};  // limit for the greeting, from the accept on
  std::size_t max_unproven =
      8192;  // limit of connections still in the greeting; the oldest is closed first
};

class HubServer {
 public:
  struct Counts {
    std::size_t guests = 0;      // connected agents
    std::uint64_t accepted = 0;  // connections
    std::uint64_t turned_away = 0;
  };

  // Listens and starts serving. Errc::already_exists: the port is taken.
  static Result<std::unique_ptr<HubServer>> open(io::Loop& loop, HubServerSettings settings);
  ~HubServer();
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  int port() const { return port_; }
  const Coordinator& coordinator() const { return coordinator_; }
  const Counts& counts() const { return counts_; }
  bool leads() const {
    return leads_ && !deposed_;
  }  // false: only collecting frames until a quorum agrees
  // Returns why a leaving host stays, naming the connected nodes; empty: no node is connected.
  std::string staying_for() const;
  // Ends the job for all nodes: the host leaves early.
  void shut_down(const std::string& why);
  // Calls `done` once no agent is connected; `done` may destroy the server.
  void when_empty(std::function<void()> done);

 private:
  struct Guest;

  HubServer(io::Loop& loop, HubServerSettings settings);
  void on_acceptable();
  void refuse_one();
  void admit(io::Fd fd);
  void on_frame(Guest& guest, Frame frame);
  void on_hello(Guest& guest, const Hello& hello);
  void refuse_run_id(Guest& guest);
  void on_proof(Guest& guest, const Proof& proof);
  void welcome(Guest& guest);
  Welcome welcome_for(const Guest& guest) const;
  void turn_away(Guest& guest, Why why, const std::string& text, const std::string& hint);
  void on_end(Guest& guest, const Error& error);
  void close(PeerId id);
  void pump();
  void pump_coordinator();
  void send_output();
  void step_down(const std::string& why);
  void ask_permission(const PermitRequest& request);
  // hub_server_ledger.cc
  void on_moved(PeerId caller, const Moved& moved);
  bool take_for_ledger(Guest& guest, Frame& frame);
  void note_vote_only(Guest& guest);
  bool pump_ledger();
  void lead();
  void watch_quorum(Time now);
  void depose(const std::string& why);
  void arm();
  void sweep(Time now);
  void tell_turned_away(const Guest& guest, const std::string& text);
  void tell_stranger(const Guest& guest);
  bool first_time(const std::string& from, const std::string& what);
  void warn_if_open_to_all() const;

  io::Loop& loop_;
  HubServerSettings settings_;
  Time opened_;
  Coordinator coordinator_;
  std::optional<Ledger> ledger_;
  bool leads_ = true;  // the coordinator decides; false: frames are kept for later
  bool deposed_ = false;
  EndHold end_;
  QuorumWatch quorum_;
  int port_ = 0;
  io::Fd listener_;
  io::Fd spare_;  // an open descriptor, closed for a moment when descriptors run out
  std::unique_ptr<io::Watch> accept_watch_;
  io::Timer timer_;
  Time armed_{};
  PeerId last_id_ = 0;
  std::unordered_map<PeerId, std::unique_ptr<Guest>> guests_;
  std::set<PeerId> unproven_;  // by age, oldest first
  std::set<std::string>
      told_;  // address and message pairs already logged, so that strangers cannot fill the log
  Counts counts_;
  std::function<void()> when_empty_;
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::hub
