// Groups equal lines, and frames of one progress bar.
#include "logs/line_folder.h"

#include <algorithm>
#include <utility>

namespace lockstep::logs {
namespace {

// A folded bar is shown once a second.
constexpr std::chrono::seconds kBarPace{1};
constexpr std::chrono::seconds kTogether{2};  // ranks that draw within this time draw the same bar
// A bound on memory for programs that invent a new bar for every line.
constexpr std::size_t kMostBars = 64;

// The part of a progress bar that stays the same from frame to frame: letters and signs before the
// bar itself, without numbers. "Epoch 3:  10%|#   | 10/100 [00:01<00:09]" becomes "Epoch:".
std::string skeleton_of(std::string_view frame) {
  std::string skeleton;
  for (const char c : frame.substr(0, frame.find('|'))) {
    const bool is_ascii = static_cast<unsigned char>(c) < 0x80;
    if (is_ascii && std::string_view("0123456789 .%#?").find(c) == std::string_view::npos)
      skeleton += c;
  }
  return skeleton;
}

// The visible parts between '\r'.
std::vector<std::string_view> frames_of(std::string_view piece) {
  std::vector<std::string_view> frames;
  while (!piece.empty()) {
    const std::size_t end = std::min(piece.find('\r'), piece.size());
    const std::string_view frame = piece.substr(0, end);
    const std::size_t last = frame.find_last_not_of(" \n");
    if (last != frame.npos) frames.push_back(frame.substr(0, last + 1));
    piece.remove_prefix(std::min(end + 1, piece.size()));
  }
  return frames;
}

}  // namespace

void LineFolder::set_sources(std::size_t sources) {
  sources_ = sources;
  show_ready();
}

void LineFolder::put(int rank, std::string_view line, Time now) {
  const bool ends_bar = drawing_.erase(rank) > 0;
  // The newline only ends the bar, which was shown already.
  if (ends_bar && line == "\n") return;
  // A frame drawn earlier by this rank must appear before its new line.
  for (auto& [_, bar] : bars_)
    if (bar.ranks.contains(rank)) {
      flush_of(rank);
      break;
    }
  // The hash makes comparing with all waiting groups cheap.
  const std::size_t hash = std::hash<std::string_view>()(line);
  std::uint64_t& next = next_[rank];
  // A rank may only join groups after its own last line: its lines stay in order.
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
  for (auto& [_, bar] : bars_)
    if (bar.ranks.contains(rank)) show_bar(bar);
}

void LineFolder::flush() {
  while (!groups_.empty())
    show_first();
  for (auto& [_, bar] : bars_)
    show_bar(bar);
}

void LineFolder::flush_due(Time now) {
  while (!groups_.empty() && now - groups_.front().since >= limits_.window)
    show_first();
  for (auto& [_, bar] : bars_)
    if (!bar.ranks.empty() && now >= due_of(bar)) {
      bar.shown = now;
      show_bar(bar);
    }
}

std::optional<LineFolder::Time> LineFolder::due() const {
  std::optional<Time> first;
  if (!groups_.empty()) first = groups_.front().since + limits_.window;
  for (const auto& [_, bar] : bars_)
    if (!bar.ranks.empty()) first = std::min(first.value_or(Time::max()), due_of(bar));
  return first;
}

bool LineFolder::draw(int rank, std::string_view piece, Time now) {
  const std::vector<std::string_view> frames = frames_of(piece);
  if (frames.empty()) return drawing_.contains(rank);
  const std::string skeleton = skeleton_of(frames.back());
  // tqdm.write() wipes the bar and prints a line: "\r      \rsaved\n". A bar's own last frame
  // instead follows a '\r' at the very beginning, or a similar frame.
  const bool leads = piece.find_first_not_of('\r') == piece.rfind('\r') + 1;
  const bool like_before = std::any_of(frames.begin(), frames.end() - 1,
                                       [&](auto each) { return skeleton_of(each) == skeleton; });
  if (piece.ends_with('\n') && !leads && !like_before) {
    put(rank, std::string(frames.back()) + "\n", now);
    return true;
  }
  if (bars_.size() >= kMostBars && !bars_.contains(skeleton)) {
    flush();
    bars_.clear();
  }
  Bar& bar = bars_[skeleton];
  // Only this rank draws the bar: the caller shows every frame, as without folding.
  const bool alone = std::none_of(bar.drawn.begin(), bar.drawn.end(), [&](const auto& each) {
    return each.first != rank && now - each.second < kTogether;
  });
  bar.drawn[rank] = now;
  if (alone) return false;
  draw_frame(bar, rank, frames.back(), now);
  return true;
}

void LineFolder::draw_frame(Bar& bar, int rank, std::string_view frame, Time now) {
  if (bar.ranks.empty()) bar.since = now;
  bar.ranks.insert(rank);
  // The lowest rank stands for all.
  if (rank == *bar.ranks.begin()) bar.frame = frame;
  drawing_.insert(rank);
}

LineFolder::Time LineFolder::due_of(const Bar& bar) const {
  return std::max(bar.since + limits_.window, bar.shown + kBarPace);
}

void LineFolder::show_bar(Bar& bar) {
  if (bar.ranks.empty()) return;
  const std::vector<int> ranks(bar.ranks.begin(), bar.ranks.end());
  bar.ranks.clear();
  show_(ranks, bar.frame + "\n", bar.since);
}

// Drops entries of ranks. Only while no group waits: then every rank may join any group, which
// needs no entry. Without this, a program could fill memory with invented ranks.
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
  // Show a line when all ranks have said it, or when too much waits.
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
