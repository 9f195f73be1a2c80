#include "looks/motion.h"

#include "looks/place.h"
#include "looks/wait_words.h"

#include <algorithm>
#include <chrono>

namespace lockstep::looks {
namespace {

// A main thread that uses more CPU time in a second is shown as computing.
constexpr std::int64_t kComputesNs = 100'000'000;

Millis age(io::TimePoint since, io::TimePoint now) {
  return std::chrono::duration_cast<Millis>(now - since);
}

bool is_above(std::int64_t used, std::int64_t allowed, double seconds) {
  return static_cast<double>(used) > static_cast<double>(allowed) * seconds;
}

// A thread that waits for a socket wakes up when data have come. The kernel does not count the
// bytes of recv(). A poll proves nothing, because it has a timeout.
bool receives(const ProcessLook& before, const ProcessLook& now) {
  return before.voluntary != now.voluntary && wait_word(before) == "socket" &&
         wait_word(now) == "socket";
}

// A loop that sleeps and tries again, for example until a file is there. A single sleep has no
// wakeups, and a loop with many more asks whether a collective is over. Waits in libraries sleep in
// the same way, so this says nothing about them.
bool tries_again(const ProcessLook& before, const ProcessLook& now, const Activity& activity,
                 double seconds) {
  constexpr double kMostTries = 2;  // a second
  const auto wakeups = static_cast<double>(now.voluntary - before.voluntary);
  return wakeups > 0 && wakeups <= 1 + kMostTries * seconds && wait_word(before) == "sleep" &&
         wait_word(now) == "sleep" && !waits_for_ranks(activity.doing) &&
         activity.doing != Doing::data_loader && activity.doing != Doing::unknown;
}

}  // namespace

bool MotionTracker::child_moved(const Child& before, const Child& now, double seconds) const {
  return now.wants_cpu || is_above(now.main_ns - before.main_ns, tolerances_.child_ns, seconds) ||
         is_above(now.cpu_ticks - before.cpu_ticks, tolerances_.child_ticks, seconds) ||
         is_above(now.io - before.io, tolerances_.working_io, seconds) ||
         (before.stack != 0 && now.stack != 0 && before.stack != now.stack);
}

bool MotionTracker::take_children(Rank& rank, const RankLook& look, double seconds) const {
  std::map<pid_t, Child> children;
  bool moved = false;
  for (const ChildLook& child : look.children) {
    const ProcessLook& process = child.process;
    Child taken{process.start_ticks,
                process.cpu_ticks,
                process.main_ns,
                process.io,
                child.stack ? stack_key(*child.stack) : 0,
                process.state == 'R'};
    const auto known = rank.children.find(child.pid);
    // The start of a child is not progress: some helpers start a program every few seconds.
    if (known != rank.children.end() && known->second.start_ticks == taken.start_ticks) {
      moved = moved || child_moved(known->second, taken, seconds);
      if (taken.stack == 0) taken.stack = known->second.stack;
    }
    children.emplace(child.pid, taken);
  }
  rank.children = std::move(children);
  return moved;
}

bool MotionTracker::moved_since(const Rank& before, const RankLook& look, const Activity& activity,
                                bool stack_changed, double seconds) const {
  if (stack_changed) return true;
  const ProcessLook& now = *look.process;
  // On a full machine a thread that could run may get no CPU for seconds.
  if (now.state == 'R' && !waits_for_ranks(activity.doing)) return true;
  const std::int64_t main_ns = now.main_ns - before.process.main_ns;
  // A thread of PyTorch writes a dump because the agent has asked, and says so. That is no
  // progress.
  const std::int64_t ticks = look.dumps ? 0 : now.cpu_ticks - before.process.cpu_ticks;
  const Bytes io = look.dumps ? 0 : now.io - before.process.io;
  const bool prints = !look.dumps && look.output_bytes != before.output_bytes;
  if (!waits_for_ranks(activity.doing) && receives(before.process, now)) return true;
  if (tries_again(before.process, now, activity, seconds)) return true;
  // A main thread may wait for threads of its own. In a collective, busy threads prove nothing:
  // NCCL's proxies spin.
  if (!waits_for_ranks(activity.doing) && (is_above(ticks, tolerances_.working_ticks, seconds) ||
                                           is_above(io, tolerances_.working_io, seconds)))
    return true;
  // In a rendezvous the main thread polls the store for the other ranks. PyTorch 1.13 polls a
  // hundred times a second, which uses 10 ms of CPU time, and more on a loaded machine.
  if (activity.doing == Doing::rendezvous)
    return is_above(main_ns, kComputesNs, seconds) ||
           is_above(ticks, tolerances_.working_ticks, seconds) ||
           is_above(io, tolerances_.working_io, seconds);
  const bool main_sleeps =
      !is_above(main_ns, tolerances_.asleep_ns, seconds) && now.main_io == before.process.main_io;
  if (main_sleeps) return false;
  // A main thread that polls: nothing else may have moved.
  return look.stack == std::nullopt || is_above(main_ns, tolerances_.polls_ns, seconds) ||
         is_above(ticks, tolerances_.helper_ticks, seconds) || io != 0 || prints;
}

Motion MotionTracker::feed(const RankLook& look, const Activity& activity, io::TimePoint now) {
  if (!look.process) {
    ranks_.erase(look.rank);
    return {};
  }
  const auto [at, first] = ranks_.try_emplace(look.rank);
  Rank& rank = at->second;
  const std::uint64_t key = look.stack ? stack_key(*look.stack) : 0;
  const bool anew = first || rank.pid != look.pid ||
                    rank.process.start_ticks != look.process->start_ticks ||
                    now - rank.seen > 3 * period_;
  const double seconds = std::max(std::chrono::duration<double>(now - rank.seen).count(), 0.05);
  Motion motion;
  motion.child_runs = take_children(rank, look, seconds) && !anew;
  const bool stack_changed = key != 0 && rank.stack != 0 && key != rank.stack;
  if (anew || stack_changed || motion.child_runs) rank.changed = now;
  if (anew || motion.child_runs || moved_since(rank, look, activity, stack_changed, seconds))
    rank.moved = now;
  motion.computes =
      !anew && is_above(look.process->main_ns - rank.process.main_ns, kComputesNs, seconds);
  motion.quiet = age(rank.moved, now);
  motion.same = age(rank.changed, now);
  rank.pid = look.pid;
  rank.process = *look.process;
  if (key != 0) rank.stack = key;
  rank.output_bytes = look.output_bytes;
  rank.seen = now;
  return motion;
}

}  // namespace lockstep::looks
