// Looks at the ranks of this machine about once a period, on the event loop. Never stops a rank or
// sends a signal.
#pragma once

#include "io/loop.h"
#include "looks/process_reader.h"
#include "looks/rank_look.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace lockstep::looks {

struct LookerOptions {
  // The mean pause between looks. Chance makes each pause up to a half shorter or longer.
  io::Duration period = std::chrono::seconds(1);
  // A look always reads the ranks' own processes. After this time it leaves the other children to
  // the next look, because the loop also serves the job.
  io::Duration budget = std::chrono::milliseconds(20);
  std::size_t children = 64;  // of a rank
  // Each fifth look lists the children of the main threads anew. Each tenth of these lists has the
  // children of all threads.
  int list_every = 5;
};

class Looker {
 public:
  struct Target {
    int rank = 0;
    pid_t pid = 0;
  };
  // Returns the stack of a process's main thread. nullopt: not readable.
  using StackOf = std::function<std::optional<stacks::ThreadStack>(pid_t)>;
  // Gets every look. The owner of the ranks' output fills that in.
  using OnLook = std::function<void(std::vector<RankLook>&, io::TimePoint)>;

  Looker(io::Loop& loop, ProcessReader reader, StackOf stack_of, OnLook on_look,
         const LookerOptions& options = {});

  // Looks at these ranks from now on, in place of those before. Keeps what it knows of processes
  // that stay. Empty: pauses, and forgets all.
  void watch(const std::vector<Target>& targets);

  // Looks now, in addition to the looks of each period. on_look is not called.
  const std::vector<RankLook>& look();

 private:
  struct Rank {
    RankLook look = {};
    std::optional<std::uint64_t> start_ticks = {};  // of the process that was named
    std::uint64_t stack = 0;
    bool still = false;  // the stack has not changed since the look before
    bool list_is_due = false;
    int lists = 0;  // lists of children read so far
  };
  using Clock = io::Clock;

  void tick();
  io::Duration next_pause();
  void look_at_rank(Rank& rank);
  void list_children(Rank& rank);
  void look_at_children(Rank& rank, Clock::time_point end);

  ProcessReader reader_;
  StackOf stack_of_;
  OnLook on_look_;
  LookerOptions options_;
  io::Timer timer_;
  std::vector<Rank> ranks_;
  std::vector<RankLook> looks_;
  std::size_t next_ = 0;  // the rank whose children come first: time may not suffice for all
  int count_ = 0;
  std::minstd_rand random_;
};

}  // namespace lockstep::looks
