// An agent's part in the `lockstep` rendezvous: one connection to the hub, wherever that is, and on
// it rounds, failures, the exit barrier, reports. Knows nothing of who hosts.
//
// A connection that breaks is made anew, and the hub told what the workers do: it says whether the
// round goes on. When the hub is silent for long while they run, the round is interrupted with
// rejoin; when nobody listens there any more for lost_patience, with end. Workers that have ended
// well stay so: only a hub that says so makes them start again. No callback runs inside the call
// that asks for it.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/hub/hub_dial.h"
#include "rendezvous/hub/hub_stream.h"

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
  std::size_t min_nodes = 1;
  std::size_t max_nodes = 1;
  NodeOffer offer;
  OfferStore offer_store;
  std::chrono::milliseconds connect_timeout{600'000};  // to reach the hub the first time
  std::chrono::milliseconds join_timeout{600'000};     // also from begin() into the first round
  std::chrono::milliseconds lost_patience{3'000};      // with a port where nobody listens any more
  std::chrono::milliseconds close_timeout{30'000};
};

class HubMember {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;

  HubMember(io::Loop& loop, HubMemberSettings settings);
  ~HubMember();
  HubMember(const HubMember&) = delete;
  HubMember& operator=(const HubMember&) = delete;

  // The time for the way into the first round runs from here; else from connect().
  void begin();
  // Once. `done` when the hub has let this agent in.
  void connect(const std::string& host, int port, Done<void> done);
  // Fails a connect() under way, for one who has found something better to do.
  void forget_connect();
  // After each attempt of connect() that came to nothing.
  void on_attempt(std::function<void(const Error&)> fn) { on_attempt_ = std::move(fn); }
  // The hub is elsewhere now; a round under way goes on if that one says so.
  void move_to(const std::string& host, int port);
  // The own end of the connection; what the others call this node, from then on.
  const std::string& local_address() const { return local_address_; }
  void set_address(std::string address) { address_ = std::move(address); }
  const std::string& address() const { return address_; }

  // As in Backend.
  void join(Done<std::optional<Round>> done);
  void on_interruption(std::function<void(const Interruption&)> fn) {
    on_interruption_ = std::move(fn);
  }
  void tell_failure(const std::string& line, bool final);
  void tell_stop();
  void finish(Done<void> done);
  void exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                        std::function<void(std::vector<NodeReport>)> done);
  void leave(Departure how, Done<void> done);
  std::string waiting_for() const;
  // The end of connect() or join() under way; nullopt for a spare.
  std::optional<io::TimePoint> gives_up_at() const;

  // Frames in both directions since the beginning, heartbeats left out.
  std::uint64_t messages() const { return messages_; }
  bool connected() const { return stream_ != nullptr; }
  // What was told of the last round.
  const std::optional<Failed>& failure() const { return failure_; }
  bool in_round() const { return in_round_; }
  bool had_round() const { return round_.has_value(); }
  // Waits for the first round.
  bool forming() const { return join_done_ != nullptr && !round_; }

 private:
  // The connection (hub_member_link.cc)
  void dial(std::chrono::milliseconds patience, std::chrono::milliseconds refused_patience);
  void connected_to(HubDial::Connected connected);
  void dial_failed(Error error);
  void link_lost(const Error& error);
  void hang_up();
  bool needs_link() const;
  std::chrono::milliseconds time_to_join() const;
  std::chrono::milliseconds unwatched() const;
  void tick();
  void send(const Frame& frame);

  // What the hub says (hub_member.cc)
  void on_frame(Frame frame);
  void on_placed(const Placed& placed);
  void send_join(Join::Holds holds = Join::Holds::nothing);
  bool resumes() const;
  void offer_store(const StoreWanted& wanted);
  void interrupt(Interruption::Kind kind, const std::string& why);
  void end_join(Result<std::optional<Round>> outcome);
  void end_reports(std::vector<NodeReport> reports);
  void end_leave();
  void later(std::function<void()> fn);
  std::string place() const;

  io::Loop& loop_;
  HubMemberSettings settings_;
  std::string host_;
  int port_ = 0;
  std::string local_address_;
  std::string address_;

  std::unique_ptr<HubDial> dial_;
  std::unique_ptr<HubStream> stream_;
  io::Timer beat_timer_;
  io::Timer join_timer_;  // while joining without a connection
  io::Timer reports_timer_;
  io::Timer leave_timer_;
  std::chrono::milliseconds heartbeat_{1000};
  std::chrono::milliseconds dead_{5000};
  std::chrono::milliseconds watched_{0};  // runs while we look
  std::chrono::milliseconds heard_{0};    // on watched_
  io::TimePoint last_tick_{};
  std::optional<io::TimePoint> down_since_;
  std::optional<Error> gone_;  // nobody listens any more, or nobody who knows us

  std::optional<Round> round_;  // the last one
  bool in_round_ = false;
  bool interrupted_ = false;
  std::optional<Failed> failure_;             // of the last round
  std::string status_;                        // the hub's words on what it waits for
  std::optional<io::TimePoint> join_until_;   // or connect(); none for a spare
  std::optional<io::TimePoint> first_until_;  // for the way into the first round
  std::uint64_t messages_ = 0;

  Done<void> connect_done_;
  Done<std::optional<Round>> join_done_;
  Done<void> finish_done_;
  NodeReport own_report_;
  std::function<void(std::vector<NodeReport>)> reports_done_;
  bool told_stop_ = false;
  Done<void> leave_done_;
  std::function<void(const Interruption&)> on_interruption_;
  std::function<void(const Error&)> on_attempt_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);
};

}  // namespace lockstep::rendezvous::hub
