// Whether a rank moves: compares each look at the rank with the look before. Pure.
#pragma once

#include "io/loop.h"
#include "looks/doing.h"
#include "looks/rank_look.h"

#include <cstdint>
#include <map>
#include <optional>

namespace lockstep::looks {

// How much a process may do within a second and still count as standing still.
struct Tolerances {
  // A waiting main thread is woken now and then: a data loader polls every 5 s.
  std::int64_t asleep_ns = 1'000'000;
  // A main thread that polls may use this much if nothing else has changed.
  std::int64_t polls_ns = 20'000'000;
  // The other threads of a rank: gloo's thread wakes 98 times a second, tqdm has a monitor.
  std::int64_t helper_ticks = 3;
  // Above this, the main thread waits for threads that work.
  std::int64_t working_ticks = 20;
  // A heartbeat on stderr is less.
  Bytes working_io = 64 << 10;
  std::int64_t child_ns = 20'000'000;
  std::int64_t child_ticks = 3;
};

// Ages, not moments: the clocks of machines are not compared.
struct Motion {
  Millis quiet = {};      // for so long neither the main thread nor a child has moved
  Millis same = {};       // for so long the stack has not changed and no child has moved
  bool computes = false;  // the main thread used much CPU since the last look
  bool child_runs = false;
};

class MotionTracker {
 public:
  // period: the planned time between looks. A look that is more than three periods late begins
  // anew: this process or the whole machine was suspended.
  explicit MotionTracker(io::Duration period, const Tolerances& tolerances = {})
      : period_(period), tolerances_(tolerances) {}

  Motion feed(const RankLook& look, const Activity& activity, io::TimePoint now);
  void forget(int rank) { ranks_.erase(rank); }

 private:
  struct Child {
    std::uint64_t start_ticks = 0;
    std::int64_t cpu_ticks = 0;
    std::int64_t main_ns = 0;
    Bytes io = 0;
    std::uint64_t stack = 0;
    bool wants_cpu = false;  // on a full machine it may get none for seconds
  };
  struct Rank {
    pid_t pid = 0;
    ProcessLook process = {};
    std::uint64_t stack = 0;  // 0: never read
    std::int64_t output_bytes = 0;
    std::map<pid_t, Child> children = {};
    io::TimePoint seen = {};
    io::TimePoint moved = {};
    io::TimePoint changed = {};
  };

  bool moved_since(const Rank& before, const RankLook& look, const Activity& activity,
                   bool stack_changed, double seconds) const;
  bool child_moved(const Child& before, const Child& now, double seconds) const;
  // Replaces the children of a rank. Returns whether one has moved.
  bool take_children(Rank& rank, const RankLook& look, double seconds) const;

  io::Duration period_;
  Tolerances tolerances_;
  std::map<int, Rank> ranks_;
};

}  // namespace lockstep::looks
