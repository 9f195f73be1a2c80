// An agent's part in the `lockstep` rendezvous as a pure state machine: no sockets, timers or
// callbacks. The driver (hub_member.h) feeds in requests of the agent, frames of the hub, and time.
// The core returns steps for the driver and outcomes for the agent.
//
// Two states change independently: the agent's progress (Phase) and the connection (Link). After a
// broken connection the member connects again and tells the hub what its workers do. The hub then
// decides whether the round goes on.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/backend.h"
#include "rendezvous/hub/hub_frames.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::rendezvous::hub {

struct HubMemberRules {
  std::size_t min_nodes = 1;
  std::size_t max_nodes = 1;
  NodeOffer offer;
  std::chrono::milliseconds connect_timeout{600'000};  // for the first connection to the hub
  std::chrono::milliseconds join_timeout{
      600'000};  // also limits the time from begin() to the first round
  std::chrono::milliseconds lost_patience{
      3'000};  // how long to retry a port that refuses connections
  std::chrono::milliseconds close_timeout{30'000};
  // Another node may take over as host. The owner then finds the new hub and calls move_to(), or
  // gives up with give_up().
  bool succession = false;
};

class HubMemberCore {
 public:
  using Ms = std::chrono::milliseconds;

  enum class Phase {
    idle,        // nothing asked of the hub
    connecting,  // until the hub has let this agent in
    joining,
    running,    // in a round
    finishing,  // in a round; this node's workers have ended well
    over,       // in a round that was interrupted or that all nodes have finished
    stopping,   // the hub knows that this node stops; leave() follows
    leaving,
  };
  enum class Link { none, dialing, up };

  // --- steps for the driver, in order ---
  struct Dial {
    Ms patience{};
    Ms refused_patience{};
  };
  struct StopDialing {};
  struct HangUp {};  // also ends dialing
  struct Send {
    Frame frame;
  };
  struct OpenStore {  // the driver answers with store_offered()
    std::int64_t round = 0;
  };
  using Step = std::variant<Dial, StopDialing, HangUp, Send, OpenStore>;

  // --- outcomes for the agent ---
  struct Connected {
    Status status;
  };
  struct Joined {
    Result<std::optional<Round>> round;
  };
  struct AllFinished {
    Status status;
  };
  struct Reported {
    std::vector<NodeReport> reports;
  };
  struct Departed {};
  struct Unlinked {  // with succession: the connection is needed and lost
    Error error;
  };
  using Outcome = std::variant<Connected, Joined, AllFinished, Interruption, Reported, Departed,
                               Unlinked, News>;

  explicit HubMemberCore(HubMemberRules rules);

  // --- requests of the agent, documented in HubMember ---
  void begin(io::TimePoint now);
  void connect(const std::string& place, io::TimePoint now);
  void forget_connect();
  void move_to(const std::string& place, io::TimePoint now);
  void give_up(Error error);
  void expect_succession() { rules_.succession = true; }
  // The last round was of another job: interrupts it, and the next hub will not hear of it.
  void forget_round();
  void set_address(std::string address) { address_ = std::move(address); }
  void join(io::TimePoint now);
  void tell_failure(const std::string& line, bool final);
  void give_way(bool gives) { gives_way_ = gives; }
  void tell_stop();
  bool send_news(const std::string& text);
  void finish();
  void exchange_reports(const NodeReport& own, Ms timeout, io::TimePoint now);
  void leave(Departure how, io::TimePoint now);
  void store_offered(std::int64_t round, Result<StorePlace> place);

  // --- events ---
  // greeted: number of frames in the greeting.
  void connected(Ms heartbeat, Ms dead, std::uint64_t greeted, io::TimePoint now);
  void dial_failed(Error error);
  // With succession: the hub at the other end leads, and its charter names this job's state.
  void led() { stands_until_.reset(); }
  void bytes_came(io::TimePoint now);
  void take(Frame frame, io::TimePoint now);
  void lost(const Error& error, io::TimePoint now);
  // waiting_for: what the agent waits for, in words, for the error after a timeout.
  void tick(const std::string& waiting_for, io::TimePoint now);
  // Returns when tick() is due; nullopt: never.
  std::optional<io::TimePoint> next_time() const;

  std::vector<Step> take_steps() { return std::exchange(steps_, {}); }
  std::optional<Outcome> next_outcome();
  bool has_outcome() const { return !outcomes_.empty(); }

  Phase phase() const { return phase_; }
  Link link() const { return link_; }
  const std::string& place() const { return place_; }
  const std::string& address() const { return address_; }
  const std::string& status() const { return status_; }
  bool awaits_reports() const { return reports_until_.has_value(); }
  bool in_round() const;
  bool needs_link() const;
  bool awaits_hub() const;
  bool had_round() const { return round_.has_value(); }
  const std::optional<Round>& round() const { return round_; }
  const std::optional<Failed>& failure() const { return failure_; }
  std::uint64_t messages() const { return messages_; }
  std::optional<io::TimePoint> down_since() const { return down_since_; }
  std::optional<io::TimePoint> gives_up_at() const;

 private:
  // Requests of the agent (hub_member_core.cc)
  Ms time_to_join(io::TimePoint now) const;
  void send_join(Join::Holds holds, io::TimePoint now);
  void on_beat(Beat beat, io::TimePoint now);
  void on_placed(const Placed& placed);
  void on_reports(Reports told);
  void end_join(Result<std::optional<Round>> outcome);
  void interrupt(Interruption::Kind kind, const std::string& why);
  void end_reports(std::vector<NodeReport> reports);
  void end_leave();
  void forget_outcomes();
  void send(const Frame& frame);

  // The connection (hub_member_core_link.cc)
  void dial(Ms patience, Ms refused_patience);
  void stop_dialing();
  void hang_up();
  Ms unwatched(io::TimePoint now) const;
  void beat(io::TimePoint now);

  HubMemberRules rules_;
  std::string place_;    // of the hub, for messages
  std::string address_;  // this node's address as known to the other nodes
  Phase phase_ = Phase::idle;
  Link link_ = Link::none;
  std::vector<Step> steps_;
  std::deque<Outcome> outcomes_;

  Ms heartbeat_{1000};
  Ms dead_{5000};
  Ms watched_{0};  // time in which this process ran and could hear the hub
  Ms heard_{0};    // time of the last sign of life, on that clock
  io::TimePoint last_beat_{};
  std::optional<io::TimePoint> next_beat_;
  std::optional<io::TimePoint> down_since_;
  std::optional<Error>
      gone_;  // why the last search for the hub ended; nullopt since a new one began

  std::optional<Round> round_;                 // the last round
  bool foreign_round_ = false;                 // round_ was of another job
  std::optional<Failed> failure_;              // this node's failure in the last round
  std::string status_;                         // what the hub waits for, in the hub's words
  std::optional<io::TimePoint> first_until_;   // deadline for the first round
  std::optional<io::TimePoint> join_until_;    // deadline of join() or connect(); none for a spare
  std::optional<io::TimePoint> stands_until_;  // how long the workers may run on without a hub
  std::optional<io::TimePoint> linkless_until_;  // deadline of a join() without a connection
  std::optional<io::TimePoint> reports_until_;
  bool gives_way_ = false;
  std::optional<io::TimePoint> leave_until_;
  NodeReport own_report_;
  std::uint64_t messages_ = 0;
};

}  // namespace lockstep::rendezvous::hub
