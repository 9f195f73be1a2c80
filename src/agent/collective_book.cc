#include "agent/collective_book.h"

#include "base/number_ranges.h"
#include "recorder/collective_facts.h"
#include "recorder/pulse.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace lockstep::agent {
namespace {

using recorder::GroupStuck;

constexpr std::size_t kMostSentences = 4;
constexpr std::size_t kMostRanges = 8;
constexpr std::size_t kMostGroups = 64;  // of a rank
constexpr looks::Millis kLeastPause{2000};
constexpr looks::Millis kMostPause{600'000};
// Two equal answers prove that a rank stands still, and the fourth comes when the limit is over.
constexpr int kCloseAsks = 4;

// The first stuck group explains the others.
void tell_culprits(const GroupStuck& first, looks::Evidence& into) {
  into.never_entered = first.behind;
  into.all_entered = first.kind == GroupStuck::Kind::all_entered && first.silent == 0;
  const auto& variants = first.variants;
  // Two variants with equally many ranks: either may be right.
  for (std::size_t i = 0; i + 1 < variants.size(); ++i)
    if (variants[i].ranks.size() < variants.back().ranks.size())
      into.mismatched.insert(into.mismatched.end(), variants[i].ranks.begin(),
                             variants[i].ranks.end());
  std::sort(into.mismatched.begin(), into.mismatched.end());
}

void tell_ranks(const GroupStuck& stuck, looks::Evidence& into) {
  for (const int rank : stuck.entered)
    into.collective.try_emplace(rank, recorder::collective_words(stuck, rank));
  for (const int rank : stuck.behind)
    into.collective.try_emplace(rank, fmt::format("never entered #{}", stuck.sequence));
}

void tell_missing_answers(const std::vector<int>& ranks, const char* what, looks::Evidence& into) {
  if (ranks.empty()) return;
  into.sentences.push_back(fmt::format("the flight recorder{} of rank{} {} {}",
                                       ranks.size() == 1 ? "" : "s", ranks.size() == 1 ? "" : "s",
                                       ranges_text(ranks, kMostRanges), what));
}

// answers: who did not give a dump.
looks::Evidence evidence_of(const std::map<int, recorder::Dump>& dumps, int world,
                            const recorder::Summary& answers) {
  looks::Evidence evidence;
  const auto stuck = recorder::merge_dumps(dumps, world);
  if (!stuck.empty()) tell_culprits(stuck.front(), evidence);
  for (const GroupStuck& group : stuck) {
    tell_ranks(group, evidence);
    if (evidence.sentences.size() < kMostSentences)
      evidence.sentences.push_back(recorder::stuck_sentence(group));
  }
  tell_missing_answers(answers.silent, "did not answer: stopped, or Python's lock is held",
                       evidence);
  tell_missing_answers(answers.unreadable, "gave a dump that cannot be read", evidence);
  return evidence;
}

}  // namespace

void CollectiveBook::take(const DumpRequest::Answers& answers, int world, std::int64_t unix_ns,
                          io::TimePoint now) {
  answered_ = now;
  std::map<int, Rank> ranks;
  for (const auto& [number, dump] : answers.dumps) {
    const recorder::Pulse pulse = recorder::pulse_of(dump);
    Rank rank{.mark = pulse.mark, .inside = pulse.inside, .since = now};
    if (const auto before = ranks_.find(number);
        before != ranks_.end() && before->second.mark == pulse.mark) {
      rank.since = before->second.since;
      rank.twice = true;
    }
    // Nothing is older than the first answer if the clocks disagree.
    if (pulse.moved_ns > 0 && pulse.moved_ns < unix_ns)
      rank.age = std::chrono::duration_cast<looks::Millis>(
          std::chrono::nanoseconds(unix_ns - pulse.moved_ns));
    ranks[number] = rank;
  }
  ranks_ = std::move(ranks);
  own_ = {.silent = answers.silent, .unreadable = answers.unreadable};
  alone_ = evidence_of(answers.dumps, world, own_);
  if (answers.dumps.size() < static_cast<std::size_t>(world)) {
    for (const auto& [number, dump] : answers.dumps)
      own_.dumps.emplace(number, recorder::shortened(dump, kMostGroups));
    own_.inside = inside();
    told_ = recorder::summary_json(own_, unix_ns);
  }
  world_ = world;
  conclude();
}

void CollectiveBook::hear(std::map<int, recorder::Summary> others, int world) {
  others_ = std::move(others);
  world_ = world;
  conclude();
}

// The dumps of other nodes are short, so whole dumps say more where there are no other nodes.
void CollectiveBook::conclude() {
  if (others_.empty()) {
    evidence_ = alone_;
    return;
  }
  recorder::Summary all = own_;
  for (const auto& [node, other] : others_) {
    all.dumps.insert(other.dumps.begin(), other.dumps.end());
    all.silent.insert(all.silent.end(), other.silent.begin(), other.silent.end());
    all.unreadable.insert(all.unreadable.end(), other.unreadable.begin(), other.unreadable.end());
  }
  std::sort(all.silent.begin(), all.silent.end());
  std::sort(all.unreadable.begin(), all.unreadable.end());
  evidence_ = evidence_of(all.dumps, world_, all);
}

void CollectiveBook::heed(const looks::Fold& fold, io::TimePoint now) {
  if (!knows()) return;
  const auto old = std::chrono::duration_cast<looks::Millis>(now - answered_);
  for (const looks::Group& group : fold.groups)
    for (const int rank : looks::ranks_of(group))
      if (const auto known = ranks_.find(rank);
          known != ranks_.end() && known->second.inside && group.same < old)
        return forget();
}

void CollectiveBook::forget() {
  ranks_.clear();
  own_ = {};
  told_.clear();
  alone_ = {};
  answered_ = {};
  conclude();
}

std::map<int, looks::Millis> CollectiveBook::inside() const {
  std::map<int, looks::Millis> inside;
  for (const auto& [number, rank] : ranks_)
    if (rank.inside && rank.twice)
      inside[number] =
          std::max(rank.age, std::chrono::duration_cast<looks::Millis>(answered_ - rank.since));
  return inside;
}

void CollectiveBook::add_to(looks::Evidence& evidence) const {
  evidence.never_entered = evidence_.never_entered;
  evidence.mismatched = evidence_.mismatched;
  evidence.all_entered = evidence_.all_entered;
  evidence.collective = evidence_.collective;
  evidence.sentences = evidence_.sentences;
  evidence.inside = inside();
  for (const auto& [node, other] : others_)
    evidence.inside.insert(other.inside.begin(), other.inside.end());
}

bool AskClock::is_due(looks::Millis standing, looks::Millis limit) {
  if (limit.count() <= 0 || standing < limit / 2) {
    asked_ = 0;
    return false;
  }
  if (asked_ > 0 && standing < next_) return false;
  looks::Millis pause = std::max(kLeastPause, limit / 4);
  for (int more = kCloseAsks; more <= asked_ && pause < kMostPause; ++more)
    pause *= 2;
  next_ = standing + std::min(pause, kMostPause);
  ++asked_;
  return true;
}

}  // namespace lockstep::agent
