// An agent's part in the `lockstep` rendezvous as a state machine: no sockets, no timers, no
// callbacks. Its driver (hub_member.h) tells it what the agent asks for, what the hub says and what
// time it is; it answers with steps for the driver to take and outcomes for the agent to hear.
//
// Two things change on their own: how far the agent is (Phase) and whether there is a connection
// (Link). A connection that breaks is made anew, and the hub is told what the workers do: it says
// whether the round goes on.
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
  std::chrono::milliseconds connect_timeout{600'000};  // to reach the hub the first time
  std::chrono::milliseconds join_timeout{600'000};     // also from begin() into the first round
  std::chrono::milliseconds lost_patience{3'000};      // with a port where nobody listens any more
  std::chrono::milliseconds close_timeout{30'000};
  // Other nodes may host the hub. The owner looks for it, by move_to(), and gives up by give_up().
  bool succession = false;
};

class HubMemberCore {
 public:
  using Ms = std::chrono::milliseconds;

  enum class Phase {
    idle,        // nothing is asked of the hub
    connecting,  // until it has let this agent in
    joining,
    running,    // in a round
    finishing,  // in a round; the workers of this node have ended well
    over,       // in a round that is interrupted, or finished by all
    stopping,   // the hub has been told that this node was told to stop; leave() follows
    leaving,
  };
  enum class Link { none, dialing, up };

  // --- what the driver does, in this order ---
  struct Dial {
    Ms patience{};
    Ms refused_patience{};
  };
  struct StopDialing {};
  struct HangUp {};  // also ends dialing
  struct Send {
    Frame frame;
  };
  struct OpenStore {  // answered by store_offered()
    std::int64_t round = 0;
  };
  using Step = std::variant<Dial, StopDialing, HangUp, Send, OpenStore>;

  // --- what the agent hears ---
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
  struct Unlinked {  // where there may be another hub: the connection is lost, and is needed
    Error error;
  };
  using Outcome =
      std::variant<Connected, Joined, AllFinished, Interruption, Reported, Departed, Unlinked>;

  explicit HubMemberCore(HubMemberRules rules);

  // --- what the agent asks for; HubMember has the words ---
  void begin(io::TimePoint now);
  void connect(const std::string& place, io::TimePoint now);
  void forget_connect();
  void move_to(const std::string& place, io::TimePoint now);
  void give_up(Error error);
  void set_address(std::string address) { address_ = std::move(address); }
  void join(io::TimePoint now);
  void tell_failure(const std::string& line, bool final);
  void tell_stop();
  void finish();
  void exchange_reports(const NodeReport& own, Ms timeout, io::TimePoint now);
  void leave(Departure how, io::TimePoint now);
  void store_offered(std::int64_t round, Result<StorePlace> place);

  // --- what happens ---
  // greeted: how many frames the greeting took.
  void connected(Ms heartbeat, Ms dead, std::uint64_t greeted, io::TimePoint now);
  void dial_failed(Error error);
  void bytes_came(io::TimePoint now);
  void take(Frame frame, io::TimePoint now);
  void lost(const Error& error, io::TimePoint now);
  // waiting_for: what is waited for, in words, for an error that tells that patience is over.
  void tick(const std::string& waiting_for, io::TimePoint now);
  // When tick() is due; nullopt: nothing waits for a time.
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
  bool had_round() const { return round_.has_value(); }
  const std::optional<Failed>& failure() const { return failure_; }
  std::uint64_t messages() const { return messages_; }
  std::optional<io::TimePoint> down_since() const { return down_since_; }
  std::optional<io::TimePoint> gives_up_at() const;

 private:
  // What the agent asks for (hub_member_core.cc)
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
  std::string place_;    // of the hub, for people
  std::string address_;  // what the others call this node
  Phase phase_ = Phase::idle;
  Link link_ = Link::none;
  std::vector<Step> steps_;
  std::deque<Outcome> outcomes_;

  Ms heartbeat_{1000};
  Ms dead_{5000};
  Ms watched_{0};  // the time in which this process ran and could hear the hub
  Ms heard_{0};    // when it did, on that clock
  io::TimePoint last_beat_{};
  std::optional<io::TimePoint> next_beat_;
  std::optional<io::TimePoint> down_since_;
  std::optional<Error> gone_;  // why the last search for the hub ended; none since

  std::optional<Round> round_;                   // the last one
  std::optional<Failed> failure_;                // of the last round
  std::string status_;                           // the hub's words on what it waits for
  std::optional<io::TimePoint> first_until_;     // end of the way into the first round
  std::optional<io::TimePoint> join_until_;      // end of join() or connect(); a spare has none
  std::optional<io::TimePoint> stands_until_;    // the workers run on without a hub for so long
  std::optional<io::TimePoint> linkless_until_;  // end of a join() that has no connection
  std::optional<io::TimePoint> reports_until_;
  std::optional<io::TimePoint> leave_until_;
  NodeReport own_report_;
  std::uint64_t messages_ = 0;
};

}  // namespace lockstep::rendezvous::hub
