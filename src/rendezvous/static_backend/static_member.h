// The state machine of one node in a job of the static backend. Turns requests, messages and
// missing heartbeats into steps. Pure; the driver (static_backend.h) carries the steps out.
// KeyValueRound runs the inside of a round (ranks, barrier, reports). Events that depend on its
// phase carry the phase.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/key_value_round.h"
#include "rendezvous/static_backend/pulses.h"
#include "rendezvous/static_backend/static_notes.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::static_backend {

struct StaticRules {
  int node_rank = 0;
  std::string host;   // this node's name
  std::string store;  // "10.0.0.1:29500"
  io::Duration heartbeat_interval = std::chrono::seconds(5);
  int heartbeat_attempts = 3;
  io::Duration timeout = std::chrono::seconds(900);  // for all nodes to come
  io::Duration close_timeout = std::chrono::seconds(30);
};

struct StaticStep {
  enum class Kind {
    open_round,  // node rank 0: opens `round` for joining, with the `free` places
    find_round,  // wait until node rank 0 has opened `round`
    claim,       // try to be the first to claim this node's place in `round`
    agree,       // exchange the ranks of `round`
    start_over,  // join again: `round` was abandoned because of `text`
    fail_join,   // with `error`
    say_over,    // node rank 0 tells the nodes waiting for `round` that no round follows: `text`
    say_void,    // node rank 0 tells those nodes that another round follows
    beat,        // count this node's heartbeat, and call beat() after an interval
    end_beats,
    say_left,       // replaces this node's count of heartbeats
    replace,        // `node` is gone because of `text`: tell all nodes, and wait for a replacement
    end_round,      // `node` is gone because of `text`: tell all nodes, and end
    tell_gone,      // this node (`node`) leaves because of `text`; `final`: the job ends
    interrupt,      // end the round because of `text`
    hear_out,       // wait for messages still on their way, then call last_words_over()
    say_farewell,   // tell_gone, then ask the store for the decision: farewell_said()
    conclude,       // ask the store whether all ended well: concluded(), or a failure arrives
    end_barrier,    // with success, or with `error`
    ask_and_leave,  // ask the store anything; the answer, or a timeout, leads to answered()
    stay,           // node rank 0: stay until the guests are gone, at most until stay_until()
    go,
  };
  Kind kind = Kind::go;
  std::int64_t round = 0;
  int node = 0;
  std::string text = {};
  bool final = false;
  FreePlaces free = {};
  std::optional<Error> error = {};
};
using StaticSteps = std::vector<StaticStep>;

class StaticMember {
 public:
  enum class Phase {
    opening,
    between,  // nothing requested
    seeking,  // looking for a joinable round and this node's place
    meeting,  // in a round, until its end
    losing,   // the store is lost, but last messages may arrive
    lost,
    leaving,
    gone,
  };
  // The state of the round.
  struct Around {
    KeyValueRound::Phase round = KeyValueRound::Phase::none;
    bool awaits_replacement = false;  // a lost node may be replaced
    bool alarmed = false;             // another node has reported a failure
  };
  // Returns the heartbeat count in the store of the given place.
  using Counts = std::function<std::optional<std::string>(int node_rank, std::int64_t since)>;

  explicit StaticMember(StaticRules rules);

  Phase phase() const { return phase_; }
  bool hosts() const { return rules_.node_rank == 0; }
  bool all_ours() const { return all_ours_; }
  std::int64_t round() const { return next_; }  // the next round; the current one once it has begun
  std::int64_t since() const { return since_; }  // the round in which this node took its place
  bool has_place() const { return has_place_; }
  const std::optional<Error>& lost() const { return lost_; }
  const FreePlaces& free() const { return free_; }
  bool told_over() const { return told_over_; }
  const Pulses& pulses() const { return pulses_; }
  std::optional<io::TimePoint> gives_up_at(KeyValueRound::Phase round) const;
  io::TimePoint stay_until() const { return stay_until_; }
  std::string departure_text(bool stopped) const;

  // running: the round in progress when this node came; nullopt: none.
  void opened(std::optional<std::int64_t> running);
  StaticSteps join(io::TimePoint now);
  StaticSteps round_found(const FreePlaces& free);
  StaticSteps claimed(bool won);
  StaticSteps over_told(const OverNote& note);
  StaticSteps out_of_time();  // gives_up_at() has passed while seeking
  // Node rank 0: all nodes are present and are about to read their ranks, so the round will begin.
  void all_are_there() { handed_out_ = true; }
  StaticSteps ranks_failed(const Error& error);
  StaticSteps began(const Assignment& made, io::TimePoint now);

  StaticSteps beat(const Around& around, const Counts& counts, io::TimePoint now);
  void beat_answered() { unanswered_ = 0; }
  void look(const Counts& counts);
  void told(const FailureRecord& record);

  StaticSteps barrier(const Result<void>& all);
  StaticSteps concluded();  // there was no failure
  StaticSteps lose(const Error& error, bool silent, io::TimePoint now);
  StaticSteps last_words_over(const Around& around);
  // ended_well: the store had already decided for a good end.
  StaticSteps farewell_said(bool ended_well);

  StaticSteps tell_stop(const Around& around, bool was_active);
  StaticSteps give_up_opening(const std::string& why, io::TimePoint now);
  StaticSteps leave(Departure how, const Around& around, bool was_active, io::TimePoint now);
  StaticSteps answered();

 private:
  bool joins(KeyValueRound::Phase round) const;
  std::string name(int node_rank) const;
  std::string patience() const;
  void note_sleep(io::TimePoint now);
  StaticSteps seek();
  StaticSteps miss(const std::vector<std::pair<int, std::string>>& missing, const Around& around);
  StaticStep over(const std::string& why);
  StaticStep departure(bool stopped, bool may_be_replaced) const;
  void vacate(int node_rank, const std::string& why);

  StaticRules rules_;
  Phase phase_ = Phase::opening;
  std::int64_t next_ = 0;
  std::int64_t since_ = 0;
  bool has_place_ = true;
  bool all_ours_ = false;
  bool handed_out_ = false;
  bool beats_ = false;
  bool told_over_ = false;
  bool all_came_ = false;  // all nodes came to the barrier
  bool silent_ = false;    // the store went silent; its connection was not closed
  int unanswered_ = 0;     // heartbeats of this node without an answer
  bool overslept_ =
      false;  // this process was stopped so long that the other nodes have given this node up
  io::TimePoint last_beat_{};
  Pulses pulses_;
  FreePlaces free_;
  std::vector<std::string> names_;  // node names, known to node rank 0
  std::optional<Error> lost_;
  io::TimePoint deadline_{};
  io::TimePoint stay_until_{};
};

}  // namespace lockstep::rendezvous::static_backend
