#include "looks/world_looks.h"

#include "base/number_ranges.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

namespace lockstep::looks {
namespace {

// A look may come a little late.
constexpr Millis kNear{500};

Millis millis(io::Duration time) {
  return std::chrono::duration_cast<Millis>(time);
}

// Returns how old a told age is now. An age of 0 belongs to a rank that runs, and stays 0 until the
// node says otherwise.
Millis grown(Millis told, Millis by) {
  return told.count() == 0 ? told : told + by;
}

bool is_near(Millis expected, Millis found) {
  return std::chrono::abs(expected - found) <= kNear;
}

// Drops ranks that the job does not have.
void keep_ranks(Fold& fold, int below) {
  for (Group& group : fold.groups)
    for (auto& [node, ranks] : group.ranks)
      ranks.erase(std::lower_bound(ranks.begin(), ranks.end(), below), ranks.end());
}

std::string silent_words(std::string_view name, Millis time) {
  return fmt::format("{} has not told for {} s", name,
                     std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

}  // namespace

// --- a node ---

bool NodeTeller::is_as_told(const Fold& fold, io::TimePoint now) const {
  if (!told_ || !same_but_older(*told_, fold)) return false;
  const Millis passed = millis(now - told_at_);
  return std::equal(told_->groups.begin(), told_->groups.end(), fold.groups.begin(),
                    fold.groups.end(), [passed](const Group& told, const Group& now_is) {
                      return is_near(grown(told.quiet, passed), now_is.quiet) &&
                             is_near(grown(told.same, passed), now_is.same);
                    });
}

// Returns whether the next news have the shares of waits.
bool NodeTeller::tells_waits(const std::string& waits, io::TimePoint now) {
  if (waits.empty()) return false;
  const io::Duration passed = now - told_waits_;
  if (passed < rules_.waits_stay) return true;
  if (passed < (waits == waits_ ? rules_.waits_again : rules_.waits)) return false;
  waits_ = waits;
  told_waits_ = now;
  return true;
}

std::optional<NodeNews> NodeTeller::feed(const Fold& fold, const Besides& besides,
                                         io::TimePoint now) {
  if (is_as_told(fold, now) && besides.pids == pids_ && besides.gpus == gpus_ &&
      besides.recorders == recorders_ && besides.timed_out == timed_out_) {
    if (now - spoke_ < rules_.refresh) return std::nullopt;
    spoke_ = now;
    NodeNews news{.number = number_, .lacks = besides.lacks};
    if (tells_waits(besides.waits, now)) news.waits = waits_;
    return news;
  }
  if (!told_) told_waits_ = {};  // the last news were lost
  std::optional<std::string> waits;
  if (tells_waits(besides.waits, now)) waits = waits_;
  told_ = fold;
  pids_ = besides.pids;
  gpus_ = besides.gpus;
  recorders_ = besides.recorders;
  timed_out_ = besides.timed_out;
  told_at_ = now;
  spoke_ = now;
  return NodeNews{.number = ++number_,
                  .fold = fold,
                  .pids = besides.pids,
                  .gpus = besides.gpus,
                  .lacks = besides.lacks,
                  .recorders = besides.recorders,
                  .waits = std::move(waits),
                  .timed_out = timed_out_};
}

// --- the leader ---

WorldLooks::WorldLooks(int nodes, int ranks, const WorldRules& rules)
    : rules_(rules), ranks_(ranks), nodes_(static_cast<std::size_t>(std::max(nodes, 1))) {}

bool WorldLooks::hear(int node, std::string_view text, io::TimePoint now) {
  if (node <= 0 || static_cast<std::size_t>(node) >= nodes_.size()) return false;
  auto news = read_node_news(text);
  if (!news) return false;
  Heard& of = nodes_[static_cast<std::size_t>(node)];
  if (news->fold) {
    keep_ranks(*news->fold, ranks_);
    of.number = news->number;
    of.fold = std::move(news->fold);
    of.received = now;
    // Told only while the job starts. Workers keep their pids and GPUs.
    if (!news->pids.empty()) of.pids = std::move(news->pids);
    if (!news->gpus.empty()) of.gpus = std::move(news->gpus);
    of.recorders = std::move(news->recorders);
  } else if (of.number != news->number) {
    // A fold was lost on the way.
    of.fold.reset();
  }
  if (news->waits) of.waits = read_waits(*news->waits, ranks_);
  if (news->timed_out) timed_out_ = news->timed_out;
  of.heard = now;
  return news->lacks;
}

Fold WorldLooks::merged(const Fold& own, io::TimePoint now) const {
  std::vector<Fold> folds = {own};
  for (const Heard& node : nodes_) {
    if (is_silent(node, now)) continue;
    const Millis by = millis(std::min(now, node.heard + rules_.refresh) - node.received);
    for (Group& group : folds.emplace_back(*node.fold).groups) {
      group.quiet = grown(group.quiet, by);
      group.same = grown(group.same, by);
    }
  }
  return merge(folds);
}

std::vector<std::string> WorldLooks::silences(io::TimePoint now) const {
  std::vector<std::string> all;
  std::vector<int> never;
  for (std::size_t rank = 1; rank < nodes_.size(); ++rank) {
    const Heard& node = nodes_[rank];
    if (!node.fold) {
      never.push_back(static_cast<int>(rank));
    } else if (is_silent(node, now) && !node.fold->nodes.empty()) {
      all.push_back(silent_words("node " + node.fold->nodes.front(), millis(now - node.heard)));
    }
  }
  if (!never.empty())
    all.push_back(fmt::format(
        "node{} {} of the round {} told nothing (run by torchrun, or not heard)",
        never.size() == 1 ? "" : "s", ranges_text(never, 4), never.size() == 1 ? "has" : "have"));
  return all;
}

std::string WorldLooks::silence(io::TimePoint now) const {
  const std::vector<std::string> all = silences(now);
  return all.empty() ? std::string() : all.front();
}

std::vector<int> WorldLooks::unknown() const {
  std::vector<int> ranks;
  for (std::size_t rank = 1; rank < nodes_.size(); ++rank)
    if (!nodes_[rank].fold) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

std::map<int, WorldLooks::Recorders> WorldLooks::recorders(io::TimePoint now) const {
  std::map<int, Recorders> all;
  for (std::size_t rank = 1; rank < nodes_.size(); ++rank)
    if (const Heard& node = nodes_[rank]; !is_silent(node, now) && !node.recorders.empty())
      all.emplace(static_cast<int>(rank), Recorders{node.number, node.recorders});
  return all;
}

std::optional<std::map<int, WaitShare>> WorldLooks::waits(const std::string& own,
                                                          io::TimePoint now) const {
  std::map<int, WaitShare> all;
  const auto take = [&all](const std::optional<NodeWaits>& node) {
    if (node) all.insert(node->ranks.begin(), node->ranks.end());
    return !node || !node->incomplete;
  };
  if (!take(read_waits(own, ranks_))) return std::nullopt;
  for (std::size_t rank = 1; rank < nodes_.size(); ++rank)
    if (is_silent(nodes_[rank], now) || !take(nodes_[rank].waits)) return std::nullopt;
  return all;
}

std::optional<int> WorldLooks::gpu_of(int rank) const {
  for (const Heard& node : nodes_)
    if (const auto gpu = node.gpus.find(rank); gpu != node.gpus.end()) return gpu->second;
  return std::nullopt;
}

std::map<int, std::uint32_t> WorldLooks::pids(const std::map<int, std::uint32_t>& own) const {
  std::map<int, std::uint32_t> all = own;
  for (const Heard& node : nodes_)
    all.insert(node.pids.begin(), node.pids.end());
  std::map<std::uint32_t, int> uses;
  for (const auto& [rank, pid] : all)
    ++uses[pid];
  std::erase_if(all, [&uses](const auto& each) { return uses[each.second] > 1; });
  return all;
}

// Returns how long to wait after a fold of so many bytes for all nodes.
io::Duration WorldTeller::pause_after(std::size_t bytes) const {
  const std::size_t all = bytes * static_cast<std::size_t>(nodes_);
  return Millis(all * 1000 / std::max<std::size_t>(rules_.bytes_per_second, 1));
}

std::optional<WorldNews> WorldTeller::feed(WorldNews news, io::TimePoint now) {
  const bool fold_changed = news.fold && (!fold_ || !same_but_older(*fold_, *news.fold));
  const bool changed = !told_ || told_->state != news.state || told_->alarms != news.alarms ||
                       told_->unknown != news.unknown || told_->slow != news.slow;
  const bool alarm = !told_ || told_->alarms != news.alarms;
  const bool with_fold = fold_changed && (alarm || now >= fold_due_);
  if (!changed && !with_fold && now - spoke_ < rules_.refresh) return std::nullopt;
  spoke_ = now;
  if (with_fold) ++number_;
  news.number = number_;
  WorldNews told = news;
  if (with_fold) {
    fold_due_ = now + pause_after(fold_json(*news.fold).size());
    fold_ = std::move(news.fold);
  } else {
    told.fold.reset();
  }
  news.fold.reset();
  told_ = std::move(news);
  return told;
}

void WorldTeller::forget() {
  told_.reset();
  fold_.reset();
  fold_due_ = {};
}

// --- what another node knows of the verdict ---

bool WorldView::hear(std::string_view text, io::TimePoint now) {
  auto news = read_world_news(text);
  if (!news) return false;
  const bool alarm = news->alarms > news_.alarms && !news->alarm.empty();
  if (news->fold) fold_number_ = news->number;
  if (!news->fold) news->fold = std::move(news_.fold);
  news_ = std::move(*news);
  known_ = true;
  heard_ = now;
  return alarm;
}

std::string WorldView::words(io::TimePoint now) const {
  if (!known_) return leader() + " has told nothing";
  const Millis since = millis(now - heard_);
  return since < rules_.silent ? news_.words : silent_words(leader(), since);
}

// The leader's own fold comes first in what it merges.
std::string WorldView::leader() const {
  const bool named = news_.fold && !news_.fold->nodes.empty();
  return named ? "node " + news_.fold->nodes.front() : "node 0 of the round";
}

Fold WorldView::merged(const Fold& own) const {
  if (!news_.fold) return own;
  const Fold folds[] = {own, *news_.fold};
  return merge(folds);
}

bool WorldView::asks(int node) const {
  return std::find(news_.unknown.begin(), news_.unknown.end(), node) != news_.unknown.end();
}

}  // namespace lockstep::looks
