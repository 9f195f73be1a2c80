// This node's part in the looks at a job of several nodes (looks/world_looks.h): tells the leader
// what this node's ranks do, or, as the leader, tells all nodes the verdict.
#pragma once

#include "io/loop.h"
#include "looks/verdict.h"
#include "looks/world_looks.h"
#include "looks/world_straggler.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

class WorldSight {
 public:
  using Pids = std::map<int, std::uint32_t>;  // by rank, as a worker sees itself

  struct Way {
    std::function<bool()> open;                    // nodes of this job can tell each other news
    std::function<bool(const std::string&)> send;  // false: not sent
  };

  explicit WorldSight(Way way) : way_(std::move(way)) {}

  // Begins anew, for a round of so many nodes and ranks.
  void begin(int group_rank, int nodes, int ranks);
  // From now on this node tells nothing.
  void end() { begin(0, 1, 0); }

  // Returns whether the verdict about the job comes from another node.
  bool is_judged() const { return shared_ && rank_ != 0; }
  // Returns whether this node judges the ranks of all nodes.
  bool judges_all() const { return shared_ && rank_ == 0; }

  // Returns whether the leader may need the pids of ranks.
  bool job_starts() const { return !view_.knows() || view_.news().state == kStarting; }

  // What a node tells of its ranks beside their fold.
  struct Own {
    Pids pids = {};
    std::map<int, int> gpus = {};       // by rank: the index on this node
    std::string recorders = {};         // what the recorders say (recorder/summary.h)
    std::string waits = {};             // how much the ranks wait (looks/wait_shares.h)
    std::optional<int> timed_out = {};  // see looks::NodeNews
  };
  // Takes the fold of this node's ranks after a look, and tells it to the leader.
  void tell_own(const looks::Fold& own, Own besides, io::TimePoint now);
  // Returns the fold of all nodes, as far as they are known.
  looks::Fold fold(const looks::Fold& own, io::TimePoint now) const;
  // The same, a line for each silent node. Only if this node judges all.
  std::vector<std::string> silences(io::TimePoint now) const { return world_.silences(now); }
  // Returns the rank whose watchdog has timed out, by the news of another node.
  std::optional<int> timed_out() const { return world_.timed_out(); }
  Pids pids(const Pids& own) const { return judges_all() ? world_.pids(own) : own; }
  // Returns the index of the GPU of another node's rank. Only if this node judges all.
  std::optional<int> gpu_of(int rank) const { return world_.gpu_of(rank); }
  // Returns what the recorders of the other nodes say, if this node judges all.
  std::map<int, looks::WorldLooks::Recorders> recorders(io::TimePoint now) const {
    return judges_all() ? world_.recorders(now) : std::map<int, looks::WorldLooks::Recorders>();
  }
  // Returns the shares of waits of all ranks. nullopt: some are not known. Only if this node judges
  // all.
  std::optional<looks::WorldStraggler::Shares> waits(const std::string& own,
                                                     io::TimePoint now) const {
    return world_.waits(own, now);
  }
  // Returns the straggler of all nodes, as the leader has told. nullopt: it has told nothing, or
  // its version looks for none.
  std::optional<looks::WorldSlow> slow() const {
    return is_judged() && view_.knows() ? view_.news().slow : std::nullopt;
  }
  // Says which nodes are silent. "": none.
  std::string silence(io::TimePoint now) const;
  // Returns how long after an alarm the other nodes may still have to hear of it: news in a store
  // are looked for once a second.
  io::Duration hearing() const { return judges_all() ? kHearing : io::Duration(0); }
  // Tells all nodes what this one, as the leader, has found.
  void tell_verdict(looks::WorldNews news, io::TimePoint now);

  // Takes news of another node. Returns whether they tell of a new alarm.
  bool hear(int from, const std::string& text, io::TimePoint now);
  const looks::WorldView& view() const { return view_; }

 private:
  static constexpr std::string_view kStarting =
      looks::kVerdictStateWords[static_cast<std::size_t>(looks::VerdictState::starting)];

  static constexpr std::chrono::seconds kHearing{2};

  Way way_;
  bool shared_ = false;
  int rank_ = 0;
  looks::NodeTeller teller_;
  looks::WorldLooks world_;
  looks::WorldTeller leader_;
  looks::WorldView view_;
};

}  // namespace lockstep::agent
