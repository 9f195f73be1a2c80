// An agent's part in the `lockstep` rendezvous: one connection to the hub, wherever that is, and on
// it rounds, failures, the exit barrier, reports. It does not know which node hosts.
//
// HubMemberCore decides everything; this is the socket, the timer and the callbacks around it. When
// the hub is silent for long while workers run, the round is interrupted with rejoin; when nobody
// listens there any more for lost_patience, with end. Workers that have ended well stay so: only a
// hub that says so makes them start again. No callback runs inside the call that asks for it.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/hub/hub_dial.h"
#include "rendezvous/hub/hub_member_core.h"
#include "rendezvous/hub/hub_stream.h"
#include "rendezvous/hub/ledger.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::hub {

struct HubMemberSettings {
  std::string run_id;
  std::optional<std::string> token;
  Nonce agent{};  // random_nonce()
  HubMemberRules rules;
  OfferStore offer_store;
  std::optional<Witness> witness = {};  // where other nodes may host the hub
};

class HubMember {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;
  using ReportsDone = std::function<void(std::vector<NodeReport>)>;

  HubMember(io::Loop& loop, HubMemberSettings settings);
  ~HubMember();
  HubMember(const HubMember&) = delete;
  HubMember& operator=(const HubMember&) = delete;

  // The time for the way into the first round runs from here; else from connect().
  void begin();
  // Once. `done` when the hub has let this agent in.
  void connect(const std::string& host, int port, Done<void> done);
  // Ends a connect() under way; its `done` is never called. For an owner that hosts now itself.
  void forget_connect();
  // After each attempt of connect() that came to nothing.
  void on_attempt(std::function<void(const Error&)> fn) { on_attempt_ = std::move(fn); }
  // Where other nodes may host the hub. on_unlinked: there is no hub at the last place; this member
  // goes on trying there, until move_to() or give_up(). on_charter: a hub that leads has spoken.
  void on_unlinked(std::function<void(const Error&)> fn) { on_unlinked_ = std::move(fn); }
  void on_charter(std::function<void()> fn) { on_charter_ = std::move(fn); }
  void give_up(Error error);
  bool needs_link() const { return core_.needs_link(); }
  void set_witness(Witness witness) { settings_.witness = std::move(witness); }
  const std::optional<Witness>& witness() const { return settings_.witness; }
  // The hub is elsewhere now; a round under way goes on if that one says so.
  void move_to(const std::string& host, int port);
  // This node's end of the connection, and the address by which the others know the node.
  const std::string& local_address() const { return local_address_; }
  void set_address(std::string address) { core_.set_address(std::move(address)); }
  const std::string& address() const { return core_.address(); }

  // As in Backend.
  void join(Done<std::optional<Round>> done);
  void on_interruption(std::function<void(const Interruption&)> fn) {
    on_interruption_ = std::move(fn);
  }
  void tell_failure(const std::string& line, bool final);
  void tell_stop();
  void finish(Done<void> done);
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout, ReportsDone done);
  void leave(Departure how, Done<void> done);
  std::string waiting_for() const;
  // The end of connect() or join() under way; nullopt for a spare.
  std::optional<io::TimePoint> gives_up_at() const { return core_.gives_up_at(); }

  // Frames in both directions since the beginning, heartbeats left out.
  std::uint64_t messages() const { return core_.messages(); }
  bool connected() const { return stream_ != nullptr; }
  // What was told of the last round.
  const std::optional<Failed>& failure() const { return core_.failure(); }
  bool in_round() const { return core_.in_round(); }
  bool had_round() const { return core_.had_round(); }
  // Waits for the first round.
  bool forming() const {
    return core_.phase() == HubMemberCore::Phase::joining && !core_.had_round();
  }

 private:
  using Core = HubMemberCore;

  void asked();
  void happened();
  void take_steps();
  void arm();
  void take(const Core::Dial& dial);
  void take(const Core::StopDialing&);
  void take(const Core::HangUp&);
  void take(const Core::Send& send);
  void take(const Core::OpenStore& open);
  void tell(Core::Connected& outcome);
  void tell(Core::Joined& outcome);
  void tell(Core::AllFinished& outcome);
  void tell(Interruption& outcome);
  void tell(Core::Reported& outcome);
  void tell(Core::Departed& outcome);
  void tell(Core::Unlinked& outcome);
  bool take_as_witness(const Frame& frame);
  void dialed(Result<HubDial::Connected> connected);

  io::Loop& loop_;
  HubMemberSettings settings_;
  HubMemberCore core_;
  std::string host_;
  int port_ = 0;
  std::string local_address_;
  std::unique_ptr<HubDial> dial_;
  std::unique_ptr<HubStream> stream_;
  io::Timer timer_;

  // The core says when each of these is called.
  Done<void> connect_done_;
  Done<std::optional<Round>> join_done_;
  Done<void> finish_done_;
  ReportsDone reports_done_;
  Done<void> leave_done_;
  std::function<void(const Interruption&)> on_interruption_;
  std::function<void(const Error&)> on_attempt_;
  std::function<void(const Error&)> on_unlinked_;
  std::function<void()> on_charter_;
  CallbackScope scope_;
};

}  // namespace lockstep::rendezvous::hub
