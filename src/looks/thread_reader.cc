#include "looks/thread_reader.h"

#include "base/number_ranges.h"
#include "base/text.h"
#include "stacks/native_reader.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::looks {
namespace {

using Clock = std::chrono::steady_clock;

// Other owners wait for the loop meanwhile. Commands wait for 5 s.
constexpr std::chrono::milliseconds kMostTime{1000};
constexpr std::size_t kMostBytes = 1UL << 20;
constexpr std::size_t kMostRankBytes = 512UL << 10;
constexpr std::size_t kMostBlocks = 256;

// Returns whether the memory of a process that was looked at before may be read now.
bool may_read_now(const ProcessReader& reader, pid_t pid, const ProcessLook& before) {
  const auto now = reader.read_child(pid);
  return now && now->start_ticks == before.start_ticks && may_read_memory(*now);
}

class Reading {
 public:
  Reading(const Question& question, const ProcessReader& reader, StackSource& stacks,
          Answer& answer)
      : question_(question), reader_(reader), stacks_(stacks), answer_(answer) {}

  bool is_over() const { return Clock::now() >= end_; }

  RankThreads read(const RankLook& look) {
    RankThreads threads;
    const bool all = question_.rank || question_.threads;
    threads.python = python_stacks(reader_, stacks_, look, all);
    if (question_.native) read_native(look, all, threads);
    return threads;
  }

 private:
  // A process that holds the lock of its memory map would hold up the agent.
  bool reads_memory(pid_t pid, const ProcessLook& before) const {
    return may_read_now(reader_, pid, before) && !stacks_.held_up(pid);
  }

  void read_native(const RankLook& look, bool all, RankThreads& threads) {
    auto read = native_.read(
        look.pid, {.all = all, .memory = reads_memory(look.pid, *look.process), .end = end_});
    if (!read) {
      if (answer_.refusal.empty()) answer_.refusal = printable(read.error().sentence, 400);
      return;
    }
    threads.native = std::move(read->threads);
    threads.left_out = read->left_out;
    for (const ChildLook& child : look.children) {
      if (!child.stack || !all || is_over()) continue;
      const bool memory = reads_memory(child.pid, child.process);
      auto main = native_.read(child.pid, {.all = false, .memory = memory, .end = end_});
      if (main && !main->threads.empty()) threads.children.push_back(main->threads.front());
    }
  }

  const Question& question_;
  const ProcessReader& reader_;
  StackSource& stacks_;
  Answer& answer_;
  stacks::NativeReader native_;
  Clock::time_point end_ = Clock::now() + kMostTime;
};

bool is_asked(const Question& question, const RankLook& look) {
  return look.process && question.asks_threads() && (!question.rank || *question.rank == look.rank);
}

}  // namespace

bool may_read_now(const ProcessReader& reader, const RankLook& look) {
  return look.process && may_read_now(reader, look.pid, *look.process);
}

std::vector<stacks::ThreadStack> python_stacks(const ProcessReader& reader, StackSource& stacks,
                                               const RankLook& look, bool all) {
  std::vector<stacks::ThreadStack> found;
  if (may_read_now(reader, look)) {
    if (all)
      found = stacks.all_stacks(look.pid);
    else if (auto main = stacks.main_stack(look.pid))
      found.push_back(std::move(*main));
  }
  // After a read that was held up, the source answers nothing for a while.
  if (found.empty() && look.stack) found.push_back(*look.stack);
  return found;
}

void read_threads(std::span<const RankLook> ranks, const Question& question,
                  const ProcessReader& reader, StackSource& stacks, Answer& answer) {
  answer.threads = question.threads;
  answer.native = question.native;
  Reading reading(question, reader, stacks, answer);
  std::vector<int> left_out;
  std::size_t bytes = 0;
  for (const RankLook& look : ranks) {
    if (!is_asked(question, look)) continue;
    if (reading.is_over() || bytes > kMostBytes || answer.ranks.size() == kMostBlocks) {
      left_out.push_back(look.rank);
      continue;
    }
    std::vector<RankText> text = {rank_text(look, reading.read(look))};
    // One rank is shown thread by thread.
    if (!question.rank) text = fold_ranks(std::move(text));
    bound_threads(text.front(), kMostRankBytes);
    answer.ranks.push_back(std::move(text.front()));
    if (!question.rank) answer.ranks = fold_ranks(std::move(answer.ranks));
    bytes = 0;
    for (const RankText& rank : answer.ranks)
      bytes += size_of(rank);
  }
  std::sort(left_out.begin(), left_out.end());
  // The command reads all of them.
  answer.left_out = ranges_text(left_out, left_out.size());
}

}  // namespace lockstep::looks
