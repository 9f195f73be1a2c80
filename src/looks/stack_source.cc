#include "looks/stack_source.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::looks {
namespace {

// Looks between two tries at a process that is no readable Python.
constexpr int kLongestPause = 30;
constexpr std::chrono::milliseconds kSlow{50};

// Returns how often this thread has waited for something so far.
long waits_so_far() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

bool was_held_up(std::chrono::steady_clock::duration took, long waits) {
  return took > kSlow && waits > 0;
}

int looks_to_pause(int holds) {
  constexpr int kMostDoublings = 5;
  return holds == 0 ? 0 : std::min(1 << std::min(holds - 1, kMostDoublings), kLongestPause);
}

std::optional<stacks::ThreadStack> StackSource::main_stack(pid_t pid) {
  Entry& entry = readers_[pid];
  if (entry.pause > 0) {
    --entry.pause;
    return std::nullopt;
  }
  entry.held_up = false;
  const auto give_up = [&entry](std::string reason) -> std::optional<stacks::ThreadStack> {
    entry.reader.reset();
    entry.reason = std::move(reason);
    // Starting interpreters are tried soon again, other programs less and less often.
    entry.pause = std::max(entry.pause, std::min(entry.tries++, kLongestPause));
    return std::nullopt;
  };
  if (!entry.reader) {
    auto attached = stacks::StackReader::attach(pid);
    if (!attached) return give_up(std::move(attached.error().sentence));
    entry.reader.emplace(std::move(*attached));
  }
  const auto began = std::chrono::steady_clock::now();
  const long waits = waits_so_far();
  auto stack = entry.reader->read_main();
  // The process holds the lock of its memory map, as while it forks. The event loop must not wait
  // for it at each look.
  entry.held_up = was_held_up(std::chrono::steady_clock::now() - began, waits_so_far() - waits);
  entry.holds = entry.held_up ? entry.holds + 1 : 0;
  entry.pause = looks_to_pause(entry.holds);
  if (!stack) return give_up(std::move(stack.error().sentence));
  entry.reason.clear();
  entry.tries = 0;
  return std::move(*stack);
}

std::vector<stacks::ThreadStack> StackSource::all_stacks(pid_t pid) {
  // Attaches where no look has done so yet.
  if (!main_stack(pid)) return {};
  auto stacks = readers_[pid].reader->read();
  return stacks ? std::move(*stacks) : std::vector<stacks::ThreadStack>();
}

void StackSource::keep_only(const std::set<pid_t>& pids) {
  std::erase_if(readers_, [&pids](const auto& one) { return !pids.contains(one.first); });
}

bool StackSource::held_up(pid_t pid) const {
  const auto found = readers_.find(pid);
  return found != readers_.end() && found->second.held_up;
}

std::string_view StackSource::reason(pid_t pid) const {
  const auto found = readers_.find(pid);
  return found == readers_.end() ? std::string_view() : found->second.reason;
}

}  // namespace lockstep::looks
