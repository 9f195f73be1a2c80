// An agent's part in the `lockstep` rendezvous: one connection to the hub for rounds, failures, the
// exit barrier and reports. The member does not know which node hosts.
//
// HubMemberCore decides everything. This class is the socket, the timer and the callbacks around
// the core. If the hub is silent too long while workers run, the round is interrupted with rejoin.
// If the hub's port refuses connections for lost_patience, the round is interrupted with end.
// Workers that have ended well start again only if a hub says so. No callback runs inside the call
// that takes it.
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
#include <string_view>
#include <vector>

namespace lockstep::rendezvous::hub {

struct HubMemberSettings {
  std::string run_id;
  std::optional<std::string> token;
  Nonce agent{};  // from random_nonce()
  HubMemberRules rules;
  OfferStore offer_store;
  std::optional<Witness> witness = {};  // set if other nodes may host the hub
};

inline constexpr std::string_view kOwnHub = "127.0.0.1";  // how a member reaches its node's hub

class HubMember {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;
  using ReportsDone = std::function<void(std::vector<NodeReport>)>;

  HubMember(io::Loop& loop, HubMemberSettings settings);
  ~HubMember();
  HubMember(const HubMember&) = delete;
  HubMember& operator=(const HubMember&) = delete;

  // Starts the timeout for the first round; otherwise connect() does.
  void begin();
  // Connects to the hub. Called once. `done` runs when the hub has let this agent in, or on
  // failure.
  void connect(const std::string& host, int port, Done<void> done);
  // Cancels a pending connect() without calling its `done`, for an owner that now hosts by itself.
  void forget_connect();
  // Sets a function to call after each failed attempt of connect().
  void on_attempt(std::function<void(const Error&)> fn) { on_attempt_ = std::move(fn); }
  // For jobs whose hub may move. on_unlinked: the hub is lost, and this member keeps trying the
  // same place until move_to() or give_up(). on_charter: a leading hub has sent a charter.
  void on_unlinked(std::function<void(const Error&)> fn) { on_unlinked_ = std::move(fn); }
  void on_charter(std::function<void()> fn) { on_charter_ = std::move(fn); }
  void give_up(Error error);
  bool needs_link() const { return core_.needs_link(); }
  // Returns whether this node still expects a word of the hub about its round or its join.
  bool awaits_hub() const { return core_.awaits_hub(); }
  void set_witness(Witness witness) { settings_.witness = std::move(witness); }
  // Returns the place of the hub that this member is connected to; nullopt: none, or one of its
  // own.
  std::optional<Moved> hub_elsewhere() const;
  // Forgets the round and the charter of a hub that was not of the job.
  void forget_job();
  // Sets where this node may host the hub, for a job without a list of hosts.
  void offer_hub(codec::RdzvEndpoint hub) { settings_.witness->set_hub(std::move(hub)); }
  // From now on the owner looks for another hub if this one is lost.
  void expect_succession() { core_.expect_succession(); }
  const std::optional<Witness>& witness() const { return settings_.witness; }
  // Continues with the hub at another place; a running round goes on if the new hub says so.
  void move_to(const std::string& host, int port);
  // Returns this node's end of the connection. address() is what the other nodes use for this node.
  const std::string& local_address() const { return local_address_; }
  void set_address(std::string address) { core_.set_address(std::move(address)); }
  const std::string& address() const { return core_.address(); }

  // --- as in Backend ---
  void join(Done<std::optional<Round>> done);
  void on_interruption(std::function<void(const Interruption&)> fn) {
    on_interruption_ = std::move(fn);
  }
  void tell_failure(const std::string& line, bool final);
  void give_way(bool gives) { core_.give_way(gives); }
  void tell_stop();
  bool send_news(const std::string& text);
  void on_news(std::function<void(int from, const std::string& text)> fn) {
    on_news_ = std::move(fn);
  }
  void finish(Done<void> done);
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout, ReportsDone done);
  void leave(Departure how, Done<void> done);
  std::string waiting_for() const;
  // Returns the deadline of a pending connect() or join(); nullopt for a spare.
  std::optional<io::TimePoint> gives_up_at() const { return core_.gives_up_at(); }

  // Returns the frames in both directions since the start, without heartbeats.
  std::uint64_t messages() const { return core_.messages(); }
  bool connected() const { return stream_ != nullptr; }
  // Returns the failure reported in the last round.
  const std::optional<Failed>& failure() const { return core_.failure(); }
  bool in_round() const { return core_.in_round(); }
  bool had_round() const { return core_.had_round(); }
  const std::optional<Round>& round() const { return core_.round(); }
  // Returns whether this node waits for its first round.
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
  void tell(News& outcome);
  bool take_as_witness(const Frame& frame);
  bool is_redirected(const Frame& frame);
  void go_back();
  void dialed(Result<HubDial::Connected> connected);

  io::Loop& loop_;
  HubMemberSettings settings_;
  HubMemberCore core_;
  std::string host_;
  int port_ = 0;
  std::string local_address_;
  std::optional<Moved> redirected_from_;  // until a hub leads: its host may be gone since
  io::Timer back_;
  std::unique_ptr<HubDial> dial_;
  std::unique_ptr<HubStream> stream_;
  io::Timer timer_;

  // The core decides when each callback runs.
  Done<void> connect_done_;
  Done<std::optional<Round>> join_done_;
  Done<void> finish_done_;
  ReportsDone reports_done_;
  Done<void> leave_done_;
  std::function<void(const Interruption&)> on_interruption_;
  std::function<void(const Error&)> on_attempt_;
  std::function<void(const Error&)> on_unlinked_;
  std::function<void()> on_charter_;
  std::function<void(int, const std::string&)> on_news_;
  CallbackScope scope_;
};

}  // namespace lockstep::rendezvous::hub
