#include "agent/collectives.h"

#include "base/clock_ms.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace lockstep::agent {
namespace {

constexpr std::chrono::seconds kFresh{5};
// A rank that keeps its stack for so long may wait for others. Dumps of ranks that step cost time.
constexpr looks::Millis kStands{5000};

looks::Millis longest_same(const looks::Fold& fold) {
  looks::Millis longest{};
  for (const looks::Group& group : fold.groups)
    if (looks::is_alive(group)) longest = std::max(longest, group.same);
  return longest;
}

std::vector<int> living_ranks(const looks::Fold& fold) {
  std::vector<int> living;
  for (const looks::Group& group : fold.groups)
    if (looks::is_alive(group))
      for (const int rank : looks::ranks_of(group))
        living.push_back(rank);
  return living;
}

}  // namespace

void Collectives::attempt_started(std::optional<RecorderFolder> folder, int world) {
  attempt_ends();
  folder_ = std::move(folder);
  world_ = world;
}

void Collectives::attempt_ends() {
  request_.cancel();
  book_ = CollectiveBook();
  others_.clear();
  clock_.reset();
  folder_.reset();
  answered_ = {};
}

void Collectives::heed(const looks::Fold& fold, looks::Millis limit, io::TimePoint now) {
  if (!folder_) return;
  book_.heed(fold, now);
  // A request that is due while another runs is covered by that one's answers.
  if (clock_.is_due(longest_same(fold), limit) && !asking()) request(fold);
}

void Collectives::ask(const looks::Fold& fold) {
  const bool fresh = answered_ != io::TimePoint() && io::Clock::now() - answered_ < kFresh;
  if (folder_ && !asking() && !fresh && longest_same(fold) >= kStands) request(fold);
}

void Collectives::ask_now(const looks::Fold& fold) {
  if (folder_ && !asking()) request(fold);
}

void Collectives::request(const looks::Fold& fold) {
  request_.start(*folder_, living_ranks(fold), [this](const DumpRequest::Answers& answers) {
    answered_ = io::Clock::now();
    book_.take(answers, world_, unix_ms() * 1'000'000, answered_);
  });
}

// Reads only news that have changed: a leader may hear hundreds of nodes.
void Collectives::hear(const std::map<int, looks::WorldLooks::Recorders>& others) {
  const std::size_t gone =
      std::erase_if(others_, [&](const auto& each) { return !others.contains(each.first); });
  bool changed = gone > 0;
  for (const auto& [node, news] : others) {
    Told& known = others_[node];
    if (known.number == news.number) continue;
    known.number = news.number;
    // The ages in a text count from its first reading. News change for other reasons, too.
    if (known.text == news.text) continue;
    known.text = news.text;
    auto summary = recorder::read_summary(known.text, world_, unix_ms() * 1'000'000);
    known.summary = summary ? *std::move(summary) : recorder::Summary();
    changed = true;
  }
  if (!changed) return;
  std::map<int, recorder::Summary> summaries;
  for (const auto& [node, each] : others_)
    summaries.emplace(node, each.summary);
  book_.hear(std::move(summaries), world_);
}

std::string Collectives::keep(int hang) const {
  return folder_ ? folder_->keep("hang-" + std::to_string(hang)) : "";
}

}  // namespace lockstep::agent
