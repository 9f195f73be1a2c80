#include "looks/looker.h"

#include "base/id.h"
#include "looks/place.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::looks {
namespace {

// Some kernels count no times: 0 says nothing.
bool has_run(std::int64_t now_ns, std::int64_t before_ns) {
  return now_ns == 0 || now_ns != before_ns;
}

// A main thread that has not run since the look before still has the stack of that look, although
// the stack cannot be read now.
void replace_stack(std::optional<stacks::ThreadStack> read, bool ran,
                   std::optional<stacks::ThreadStack>& stack) {
  if (read || ran) stack = std::move(read);
}

// std::random_device asks the processor for its features, which a virtual machine answers slowly.
std::uint32_t random_seed() {
  const std::string bytes = random_key(sizeof(std::uint32_t));
  std::uint32_t seed = 0;
  std::memcpy(&seed, bytes.data(), sizeof seed);
  return seed;
}

}  // namespace

Looker::Looker(io::Loop& loop, ProcessReader reader, StackOf stack_of, OnLook on_look,
               const LookerOptions& options)
    : reader_(std::move(reader)),
      stack_of_(std::move(stack_of)),
      on_look_(std::move(on_look)),
      options_(options),
      timer_(loop),
      random_(random_seed()) {}

void Looker::watch(const std::vector<Target>& targets) {
  std::vector<Rank> before = std::exchange(ranks_, {});
  next_ = 0;
  count_ = 0;
  for (const Target& target : targets) {
    const auto known = std::find_if(before.begin(), before.end(), [&](const Rank& rank) {
      return rank.look.rank == target.rank && rank.look.pid == target.pid && rank.look.process;
    });
    ranks_.push_back(known != before.end()
                         ? std::move(*known)
                         : Rank{.look = {.rank = target.rank, .pid = target.pid}});
  }
  timer_.cancel();
  if (!ranks_.empty()) timer_.start(options_.period, [this] { tick(); });
}

void Looker::tick() {
  timer_.start(next_pause(), [this] { tick(); });
  look();
  on_look_(looks_, Clock::now());
}

// Looks in step with the training would always or never find a rank waiting, whatever its share.
io::Duration Looker::next_pause() {
  const io::Duration::rep half = options_.period.count() / 2;
  std::uniform_int_distribution<io::Duration::rep> shift(-half, half);
  return options_.period + io::Duration(shift(random_));
}

// The first look pins the process. Another process that gets its pid later is not the rank.
void Looker::look_at_rank(Rank& rank) {
  RankLook& look = rank.look;
  if (rank.start_ticks && !look.process) return;  // ended before
  const std::int64_t main_ns = look.process ? look.process->main_ns : 0;
  look.process = reader_.read(look.pid);
  if (look.process && !rank.start_ticks) rank.start_ticks = look.process->start_ticks;
  if (!look.process || look.process->start_ticks != *rank.start_ticks) {
    rank.start_ticks = rank.start_ticks.value_or(0);
    look = {.rank = look.rank, .pid = look.pid};
    return;
  }
  replace_stack(may_read_memory(*look.process) ? stack_of_(look.pid) : std::nullopt,
                has_run(look.process->main_ns, main_ns), look.stack);
  look.was_read = look.was_read || look.stack;
  const std::uint64_t stack = look.stack ? stack_key(*look.stack) : 0;
  rank.still = stack == rank.stack;
  rank.stack = stack;
}

void Looker::list_children(Rank& rank) {
  // A rank that stands still may wait for a child that another thread of it has started.
  const bool all_threads = rank.still || rank.lists % 10 == 0;
  rank.list_is_due = false;
  ++rank.lists;
  std::vector<ChildLook> children;
  for (const pid_t pid : reader_.descendants(rank.look.pid, options_.children, all_threads)) {
    const auto known = std::find_if(rank.look.children.begin(), rank.look.children.end(),
                                    [pid](const ChildLook& child) { return child.pid == pid; });
    children.push_back(known == rank.look.children.end() ? ChildLook{.pid = pid}
                                                         : std::move(*known));
  }
  // A list of the main thread's children is incomplete: keep the known children of other threads.
  if (!all_threads)
    for (ChildLook& child : rank.look.children)
      if (child.process.start_ticks != 0 && children.size() < options_.children &&
          std::none_of(children.begin(), children.end(),
                       [&](const ChildLook& each) { return each.pid == child.pid; }))
        children.push_back(std::move(child));
  rank.look.children = std::move(children);
}

void Looker::look_at_children(Rank& rank, Clock::time_point end) {
  std::vector<ChildLook>& children = rank.look.children;
  std::erase_if(children, [&](ChildLook& child) {
    if (Clock::now() >= end) return false;  // as it was at the look before
    auto process = reader_.read_child(child.pid);
    const std::uint64_t before = child.process.start_ticks;
    if (!process || (before != 0 && process->start_ticks != before)) return true;
    const bool ran = has_run(process->main_ns, child.process.main_ns);
    child.process = std::move(*process);
    // The stacks of children say something only while their rank stands still.
    const bool reads = rank.still && may_read_memory(child.process);
    replace_stack(reads ? stack_of_(child.pid) : std::nullopt, ran, child.stack);
    return false;
  });
}

const std::vector<RankLook>& Looker::look() {
  for (Rank& rank : ranks_) {
    look_at_rank(rank);
    if (count_ % options_.list_every == 0) rank.list_is_due = true;
  }
  // On a loaded machine the ranks alone may take longer than the budget, look after look.
  const Clock::time_point end = Clock::now() + options_.budget;
  std::size_t done = 0;
  for (; done < ranks_.size() && Clock::now() < end; ++done) {
    Rank& rank = ranks_[(next_ + done) % ranks_.size()];
    if (!rank.look.process) continue;
    if (rank.list_is_due) list_children(rank);
    look_at_children(rank, end);
  }
  // The ranks that were left out come first at the next look.
  if (!ranks_.empty()) next_ = (next_ + done) % ranks_.size();
  ++count_;
  looks_.clear();
  for (const Rank& rank : ranks_)
    looks_.push_back(rank.look);
  return looks_;
}

}  // namespace lockstep::looks
