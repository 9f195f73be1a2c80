// One node's way through a job of the static backend: what follows from what it is asked for, told,
// and from what it has not heard for too long. Pure; the driver (static_backend.h) carries the
// steps out. The inside of a round (ranks, barrier, reports) is KeyValueRound's, whose phase comes
// along with every event that depends on it.
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
    open_round,  // node rank 0: `round` may be joined, and `free` places taken
    find_round,  // wait until node rank 0 has said so of `round`
    claim,       // be the first to claim the own place in `round`
    agree,       // on the ranks of `round`
    start_over,  // join again: `round` came to nothing, for `text`
    fail_join,   // with `error`
    say_over,    // node rank 0, to those who wait for `round`: `text`
    say_void,    // likewise, and that another one follows
    beat,        // count the own heartbeat, and beat() after an interval
    end_beats,
    say_left,       // in the place of heartbeats
    replace,        // `node` is gone for `text`: tell all, and wait for another one in its place
    end_round,      // `node` is gone for `text`: tell all, and end
    tell_gone,      // `node`, which is this one, goes for `text`; others end as well if `final`
    interrupt,      // end, for `text`
    hear_out,       // last words may be on their way: last_words_over()
    say_farewell,   // tell_gone, and hear what the store has decided: farewell_said()
    conclude,       // ask the store whether all ended well: concluded(), or a failure is told
    end_barrier,    // well, or with `error`
    ask_and_leave,  // what was told has arrived, or is given up, when the store answers: answered()
    stay,           // node rank 0: until the guests are gone, but not after stay_until()
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
    between,  // nothing is asked for
    seeking,  // a round that may be joined, and the own place in it
    meeting,  // in a round, to its end
    losing,   // the store is gone, but the last words may come
    lost,
    leaving,
    gone,
  };
  // How the round stands.
  struct Around {
    KeyValueRound::Phase round = KeyValueRound::Phase::none;
    bool awaits_replacement = false;  // of a lost node
    bool alarmed = false;             // another node told of a failure
  };
  // The count of heartbeats that stands under a place's key.
  using Counts = std::function<std::optional<std::string>(int node_rank, std::int64_t since)>;

  explicit StaticMember(StaticRules rules);

  Phase phase() const { return phase_; }
  bool hosts() const { return rules_.node_rank == 0; }
  bool all_ours() const { return all_ours_; }
  std::int64_t round() const { return next_; }   // the next one, until it has begun
  std::int64_t since() const { return since_; }  // the round in which this node took its place
  bool has_place() const { return has_place_; }
  const std::optional<Error>& lost() const { return lost_; }
  const FreePlaces& free() const { return free_; }
  bool told_over() const { return told_over_; }
  const Pulses& pulses() const { return pulses_; }
  std::optional<io::TimePoint> gives_up_at(KeyValueRound::Phase round) const;
  io::TimePoint stay_until() const { return stay_until_; }
  std::string departure_text(bool stopped) const;

  // running: the round that the job was in before this node came.
  void opened(std::optional<std::int64_t> running);
  StaticSteps join(io::TimePoint now);
  StaticSteps round_found(const FreePlaces& free);
  StaticSteps claimed(bool won);
  StaticSteps over_told(const OverNote& note);
  StaticSteps out_of_time();  // gives_up_at() has come, while seeking
  // Node rank 0: all are there and are about to hear of their ranks, so the round will begin.
  void all_are_there() { handed_out_ = true; }
  StaticSteps ranks_failed(const Error& error);
  StaticSteps began(const Assignment& made, io::TimePoint now);

  StaticSteps beat(const Around& around, const Counts& counts, io::TimePoint now);
  void beat_answered() { unanswered_ = 0; }
  void look(const Counts& counts);
  void told(const FailureRecord& record);

  StaticSteps barrier(const Result<void>& all);
  StaticSteps concluded();  // that there was no failure
  StaticSteps lose(const Error& error, bool silent, io::TimePoint now);
  StaticSteps last_words_over(const Around& around);
  // ended_well: the store had concluded so before.
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
  bool all_came_ = false;   // to the barrier
  bool silent_ = false;     // nobody has closed the connection to the lost store
  int unanswered_ = 0;      // heartbeats of this node
  bool overslept_ = false;  // it did not run for so long that the others have given it up
  io::TimePoint last_beat_{};
  Pulses pulses_;
  FreePlaces free_;
  std::vector<std::string> names_;  // of the nodes, as node rank 0 knows them
  std::optional<Error> lost_;
  io::TimePoint deadline_{};
  io::TimePoint stay_until_{};
};

}  // namespace lockstep::rendezvous::static_backend
