#include "logs/line_folder.h"

#include <algorithm>
#include <utility>

namespace lockstep::logs {

void LineFolder::set_sources(std::size_t sources) {
  sources_ = sources;
  show_ready();
}

void LineFolder::put(int rank, std::string_view line, Time now) {
  const std::size_t hash = std::hash<std::string_view>()(line);
  std::uint64_t& next = next_[rank];
  std::size_t at = next > shown_ ? static_cast<std::size_t>(next - shown_) : 0;
  while (at < groups_.size() && (groups_[at].hash != hash || groups_[at].line != line))
    ++at;
  if (at == groups_.size()) {
    groups_.push_back({hash, std::string(line), {}, now});
    bytes_ += line.size();
  }
  groups_[at].ranks.push_back(rank);
  next = shown_ + at + 1;
  show_ready();
  forget_ranks();
}

void LineFolder::flush_of(int rank) {
  const auto next = next_.find(rank);
  while (next != next_.end() && next->second > shown_)
    show_first();
}

void LineFolder::flush() {
  while (!groups_.empty())
    show_first();
}

void LineFolder::flush_due(Time now) {
  while (!groups_.empty() && now - groups_.front().since >= limits_.window)
    show_first();
}

std::optional<LineFolder::Time> LineFolder::due() const {
  if (groups_.empty()) return std::nullopt;
  return groups_.front().since + limits_.window;
}

// A rank that may join any group needs no entry. A text can name as many ranks as it likes.
void LineFolder::forget_ranks() {
  constexpr std::size_t kMany = 4096;
  if (groups_.empty() && next_.size() > kMany) next_.clear();
}

void LineFolder::show_first() {
  Group group = std::move(groups_.front());
  groups_.pop_front();
  ++shown_;
  bytes_ -= group.line.size();
  std::sort(group.ranks.begin(), group.ranks.end());
  show_(group.ranks, group.line, group.since);
}

void LineFolder::show_ready() {
  const auto ready = [this] {
    return (sources_ != 0 && groups_.front().ranks.size() >= sources_) ||
           groups_.size() > limits_.lines || bytes_ > limits_.bytes;
  };
  while (!groups_.empty() && ready())
    show_first();
}

std::string ranks_text(std::span<const int> ranks) {
  constexpr int kMostRanges = 64;
  std::string text;
  int ranges = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] - ranks[last] == 1)
      ++last;
    if (i > 0) text += ',';
    if (ranges++ == kMostRanges) return text + "...";
    text += std::to_string(ranks[i]);
    if (last > i) text.append("-").append(std::to_string(ranks[last]));
    i = last + 1;
  }
  return text;
}

}  // namespace lockstep::logs
