// The coordinator of the `lockstep` rendezvous: decides who takes part in which round, and tells
// everyone. Pure: connections, frames and time go in, bytes for connections come out. One agent
// runs it (hub_server.h); it trusts no clock but the steady one it is given.
//
//   forming -> offering (rank 0 opens the workers' store) -> running -> forming | over
#pragma once

#include "base/error.h"
#include "rendezvous/hub/hub_frames.h"
#include "rendezvous/rank_order.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {

using Time = std::chrono::steady_clock::time_point;
using Ms = std::chrono::milliseconds;
using PeerId = std::uint64_t;  // of one connection, never used again

struct CoordinatorSettings {
  std::string run_id;
  Nonce host{};  // the agent that runs it
  std::size_t min_nodes = 1;
  std::size_t max_nodes = 1;
  Ms last_call{30'000};  // once there are enough, how long to wait for more
  Ms heartbeat{1'000};
  Ms dead{5'000};           // a node that is silent for so long is gone
  Ms return_grace{10'000};  // how long one is waited for that said it would be back
  Ms store_timeout{30'000};
  RankOrder order = RankOrder::host;
  std::vector<std::string>
      expected;  // host names of all nodes, as the scheduler has them, if known
  // Set where this coordinator has taken over from another one: what that one had come to. Those of
  // its nodes that have not come over are waited for only for takeover_grace: their workers run, or
  // stand still, meanwhile.
  std::int64_t first_round = 0;
  int restarts = 0;
  bool takeover = false;
  Ms takeover_grace{1'000};
  int last_lead = -1;              // rank of the node that ran that other one
  std::string last_lead_called;    // for people; empty: not known
  std::vector<int> last_finished;  // ranks that had finished and need not come over
  // Another coordinator may have taken over from this one without its knowledge. Two rounds with
  // the same number would be two jobs, so no round is placed before permit().
  bool fenced = false;
};

// Asks for the permission to place a round, or only leaves in writing what has become of the
// current one.
struct PermitRequest {
  enum class End { none, succeeded, failed };
  std::int64_t round = 0;
  int restarts = 0;
  int lead = -1;  // rank of the coordinator's own node
  std::vector<int>
      finished;         // ranks that may not be there to tell another coordinator that they have
  End end = End::none;  // of the job
  std::string why = {};
};

class Coordinator {
 public:
  struct Output {
    PeerId to = 0;
    std::shared_ptr<const std::string> bytes;  // may be nullptr
    bool close = false;                        // the connection, after that
    std::string turned_away = {};              // why it is closed, for the host's people
  };

  Coordinator(CoordinatorSettings settings, Time now);

  // An agent has proved itself. The caller follows every arrival with one lose(), unless the
  // coordinator closes the connection itself.
  void arrive(PeerId peer, const Nonce& agent, const std::string& name, Time now);
  void hear(PeerId peer, Time now);  // any bytes
  // An error means that agents do not send such a frame: close the connection and call lose().
  Status take(PeerId peer, Frame frame, Time now);
  void lose(PeerId peer, const std::string& why, Time now);
  // At next_time(), or any time before.
  void tick(Time now);
  Time next_time() const;
  // What is to be written down where rounds are fenced. Each request is handed out once.
  std::optional<PermitRequest> take_permit_request() { return std::exchange(permit_request_, {}); }
  void permit(std::int64_t round, Time now);
  // The host goes before the others are done.
  void shut_down(const std::string& why, Time now);
  // The host decides nothing any more. The nodes look for another one.
  void step_down(const std::string& why) { interrupt(false, why, 0); }
  // The coordinator before had ended the job already, and not all may have heard.
  void end_before(bool good, const std::string& why);

  std::vector<Output> take_output() { return std::exchange(output_, {}); }

  bool over() const { return outcome_.has_value(); }
  std::size_t peers() const { return members_.size(); }
  std::string status() const;   // what is being waited for, in words
  std::string present() const;  // all who are connected, by name

 private:
  enum class Stage {
    idle,      // has asked for nothing yet
    joined,    // wants a place in the next round
    placed,    // has one in the current round
    finished,  // and its workers have ended well
  };
  enum class Outcome { succeeded, failed };
  struct Member {
    PeerId peer = 0;
    Nonce agent{};
    std::string name;
    Join offer;
    Stage stage = Stage::idle;
    bool returning = false;     // of the current round, on a new connection; will join again
    bool repeats_join = false;  // its join of the old connection holds: the next one says the same
    int rank = -1;              // in the current round
    Time joined_at{};
    Ms heard{0};  // when it was heard last, on the clock watched_
    std::uint64_t arrival = 0;
    std::optional<Report> report;
    std::string out_of_patience;  // why its join came to nothing
    // A join for the node rank of a node with the same name and address. It is decided once that
    // node has been heard of again, or is lost.
    std::optional<Join> held_join;
    Ms held_since{0};  // on the clock watched_
    std::string called() const { return offer.host.empty() ? name : offer.host; }
  };
  using Members = std::map<PeerId, Member>;
  struct Away {
    std::string name;
    Time until{};
  };
  struct Current {
    std::int64_t number = 0;
    std::size_t size = 0;
    std::vector<int> finished_and_gone;  // ranks
    int lowest_max_restarts = 0;
    bool replacement = true;  // all of its nodes want that new ones take the places of lost ones
    bool interrupted = false;
    bool paid = false;  // its end has cost a restart, and one round costs no more than one
    std::vector<std::string> lost = {};  // nodes whose places nobody has taken: "b is gone: ..."
    bool adopted = false;                // it was another coordinator's
    std::optional<Time> adopting_since;  // set until all of its nodes have come over
    std::optional<int> first_failed;     // rank; its report comes first
  };
  struct Proposal {
    std::int64_t number = 0;
    std::vector<PeerId> ranks;
    Time until{};
    std::optional<StoreOffer> store;  // rank 0's answer, kept until permit()
  };

  // coordinator.cc: who is there, who failed or was lost
  bool keep_offered_place(PeerId gone, PeerId peer, Time now);
  void on_join(Member& member, Join join, Time now);
  bool fits(const Member& member, const Join& join);
  const Member* of_node_rank(const Member& member, const Join& join) const;
  bool hold_for_twin(Member& member, Join& join, Time now);
  void decide_held_joins(Time now);
  bool launches_the_same(const Member& member, const Join& join);
  void turn_away(const Member& member, const std::string& text, const std::string& hint);
  void on_failed(Member& member, const Failed& failed, Time now);
  void remove(PeerId peer, const std::string& why, Time now);
  void expect_back(const Member& member, Time now);
  void missing_from_round(const std::string& why);
  bool awaits_replacement(const std::string& why);
  Ms replacement_time() const;
  void interrupt(bool end, const std::string& why, PeerId except);

  // coordinator_end.cc: the end of a node's part, and of the job
  void on_finish(Member& member, const Finish& finish);
  void check_all_finished();
  void end_job(Outcome outcome, const std::string& why);
  void spend_job(Outcome outcome, const std::string& why);
  void write_down();
  void on_leave(Member& member, Leave::How how, Time now);
  void leave_without_place(Member& member, Time now);

  // coordinator_round.cc: making a round
  void consider(Time now);
  bool awaits_rejoin() const;
  void propose(Time now);
  std::vector<Member*> choose();
  void sort_newcomers(std::vector<Member*>& members) const;
  void on_store(Member& member, const StoreOffer& offer, Time now);
  void ask_permission();
  void place(const StoreOffer& offer);
  void give_up_round(const std::string& text);

  // coordinator_takeover.cc: after another coordinator, and after a lost connection
  void on_resume(Member& member, Join join, Time now);
  void adopt(const Join& offer, Time now);
  bool take_back(Member& member);
  bool take_seat(Member& member, const Join& join);
  bool of_adopted_round(const Join& join) const;
  std::vector<int> not_come_over() const;
  std::string why_missing(const std::vector<int>& ranks) const;
  std::optional<Time> adoption_ends() const;
  bool adoption_settled(Time now);
  bool survivors_are_here() const;
  Ms last_call() const;
  void seats_from_offers();

  // coordinator_talk.cc: time, words, reports
  Ms unwatched(Time now) const;
  void watch_silence(Time now);
  void expire(Time now);
  void beat();
  void on_report(Member& member, TellReport tell, Time now);
  bool all_reported() const;
  void push_reports();
  std::string absent(std::size_t count) const;
  std::string wanted() const;
  std::string barrier_status() const;
  std::string names(std::initializer_list<Stage> stages, bool of_round) const;
  void send(PeerId to, const Frame& frame, bool close = false);
  void send_shared(PeerId to, const std::shared_ptr<const std::string>& bytes);
  void refuse(Member& member, Why why, const std::string& text, const std::string& hint);

  bool in_round(const Member& member) const {
    return current_ && (member.stage == Stage::placed || member.stage == Stage::finished);
  }
  bool running() const { return current_ && !current_->interrupted; }
  std::size_t count(Stage stage) const { return counts_[static_cast<std::size_t>(stage)]; }
  void set_stage(Member& member, Stage stage);
  std::size_t viable() const;

  CoordinatorSettings settings_;
  Members members_;
  std::map<Nonce, PeerId> peer_of_;      // by agent: thousands arrive at once
  std::array<std::size_t, 4> counts_{};  // of members by stage
  std::map<Nonce, Away> away_;
  std::vector<Nonce> seats_;  // of the last round, by rank
  std::optional<Current> current_;
  std::optional<Proposal> proposal_;
  std::optional<PermitRequest> permit_request_;
  std::optional<Outcome> outcome_;
  std::string why_over_;
  bool over_before_ = false;  // another coordinator had ended the job
  std::int64_t next_round_ = 0;
  int restarts_ = 0;
  std::uint64_t arrivals_ = 0;
  std::optional<Time> last_call_until_;
  Time forming_since_;
  Time last_tick_;
  Time next_beat_;
  Ms watched_{0};  // a clock that stands still while we sleep: that time is nobody's silence
  std::optional<Time> reports_until_;
  std::size_t ranked_ = 0;                            // members with a rank in the current round
  std::size_t reported_ = 0;                          // of them, those that have sent a report
  std::vector<std::pair<int, Report>> reports_;       // by rank, of members that have left since
  std::shared_ptr<const std::string> reports_bytes_;  // what was pushed, for those that come late
  std::vector<Output> output_;
};

}  // namespace lockstep::rendezvous::hub
