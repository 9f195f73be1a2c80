#include "looks/thread_reader.h"

#include "base/number_ranges.h"
#include "base/text.h"
#include "stacks/native_reader.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace lockstep::looks {
namespace {

using Clock = std::chrono::steady_clock;

// Other owners wait for the loop meanwhile. Commands wait for 5 s.
constexpr std::chrono::milliseconds kMostTime{1000};
constexpr std::size_t kMostBytes = 1UL << 20;
constexpr std::size_t kMostRankBytes = 512UL << 10;
constexpr std::size_t kMostBlocks = 256;

class Reading {
 public:
  Reading(const Question& question, StackSource& stacks, Answer& answer)
      : question_(question), stacks_(stacks), answer_(answer) {}

  bool is_over() const { return Clock::now() >= end_; }

  RankThreads read(const RankLook& look) {
    RankThreads threads;
    // A process that holds the lock of its memory map would hold up the agent.
    const bool memory = may_read_memory(*look.process);
    const bool all = question_.rank || question_.threads;
    if (memory && all) threads.python = stacks_.all_stacks(look.pid);
    if (memory && !all)
      if (auto main = stacks_.main_stack(look.pid)) threads.python.push_back(std::move(*main));
    if (question_.native) read_native(look, all, memory, threads);
    return threads;
  }

 private:
  void read_native(const RankLook& look, bool all, bool memory, RankThreads& threads) {
    auto read = native_.read(
        look.pid, {.all = all, .memory = memory && !stacks_.held_up(look.pid), .end = end_});
    if (!read) {
      if (answer_.refusal.empty()) answer_.refusal = printable(read.error().sentence, 400);
      return;
    }
    threads.native = std::move(read->threads);
    threads.left_out = read->left_out;
    for (const ChildLook& child : look.children) {
      if (!child.stack || !all || is_over()) continue;
      const bool reads = may_read_memory(child.process) && !stacks_.held_up(child.pid);
      auto main = native_.read(child.pid, {.all = false, .memory = reads, .end = end_});
      if (main && !main->threads.empty()) threads.children.push_back(main->threads.front());
    }
  }

  const Question& question_;
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
  const auto now = look.process ? reader.read(look.pid) : std::nullopt;
  return now && now->start_ticks == look.process->start_ticks && may_read_memory(*now);
}

void read_threads(std::span<const RankLook> ranks, const Question& question, StackSource& stacks,
                  Answer& answer) {
  answer.threads = question.threads;
  answer.native = question.native;
  Reading reading(question, stacks, answer);
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
