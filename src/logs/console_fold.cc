// Adds a clock, prefixes and the console to a LineFolder.
#include "logs/console_fold.h"

#include "logs/line_prefix.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace lockstep::logs {
namespace {

constexpr std::size_t kMostText = 64 << 10;  // write out at this size

}  // namespace

ConsoleFold::ConsoleFold(io::Loop& loop, FoldPrefix prefix, Write write)
    : prefix_(std::move(prefix)),
      write_(std::move(write)),
      timer_(loop),
      folder_({}, [this](std::span<const int> ranks, std::string_view line,
                         LineFolder::Time since) { show(ranks, line, since); }) {}

void ConsoleFold::attach(const FoldSource& source) {
  first_rank_ = source.rank - source.local_rank;
  ++sources_[source.local_rank];
  folder_.set_sources(sources_.size());
}

void ConsoleFold::detach(const FoldSource& source) {
  const auto found = sources_.find(source.local_rank);
  // Both streams of a rank attach, so count them.
  if (found == sources_.end() || --found->second > 0) return;
  sources_.erase(found);
  folder_.set_sources(sources_.size());
  // No rank is left to complete a line.
  if (sources_.empty()) folder_.flush();
  commit();
}

void ConsoleFold::put(const FoldSource& source, std::string_view line) {
  folder_.put(source.local_rank, line, io::Clock::now());
  wait();
}

bool ConsoleFold::draw(const FoldSource& source, std::string_view piece) {
  const bool taken = folder_.draw(source.local_rank, piece, io::Clock::now());
  if (taken) wait();
  return taken;
}

void ConsoleFold::flush_of(const FoldSource& source) {
  folder_.flush_of(source.local_rank);
  commit();
}

void ConsoleFold::flush() {
  folder_.flush();
  commit();
}

void ConsoleFold::commit() {
  if (text_.empty()) return;
  const std::string text = std::exchange(text_, {});
  write_(text);
}

void ConsoleFold::wait() {
  const auto due = folder_.due();
  // One timer is enough: after each flush wait() asks for the next due time.
  if (!due || timer_.active()) return;
  const auto rest = std::max<io::Duration>(*due - io::Clock::now(), io::Duration::zero());
  timer_.start(rest, [this] {
    folder_.flush_due(io::Clock::now());
    commit();
    wait();
  });
}

void ConsoleFold::show(std::span<const int> ranks, std::string_view line, LineFolder::Time since) {
  const LinePrefix prefix(prefix_of(ranks));
  using std::chrono::system_clock;
  const auto age = std::chrono::duration_cast<system_clock::duration>(io::Clock::now() - since);
  // A folded line carries the time of its first rank, not of this moment.
  text_.append(prefix.at(prefix.timed() ? system_clock::now() - age : system_clock::time_point()))
      .append(line);
  if (text_.size() >= kMostText) commit();
}

std::string ConsoleFold::prefix_of(std::span<const int> ranks) const {
  std::vector<int> global(ranks.begin(), ranks.end());
  for (int& rank : global)
    rank += first_rank_;
  return prefix_(ranks_text(ranks), ranks_text(global));
}

}  // namespace lockstep::logs
