#include "looks/verdict.h"

#include "base/number_ranges.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace lockstep::looks {
namespace {

// After so many looks with ranks in a collective, and progress in between, the job trains. The
// broadcasts of DDP's constructor take less.
constexpr int kTrainingLooks = 5;

std::string rank_words(const Group& group) {
  const std::vector<int> ranks = ranks_of(group);
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", ranges_text(ranks, 4));
}

// Returns what a healthy rank does while nothing moves. "": nothing of that kind.
std::string_view hold_words(const Group& group, bool training) {
  switch (group.activity.doing) {
    case Doing::debugger:
      return "in a debugger";
    case Doing::input:
      return "reading standard input";
    case Doing::saving:
      return "saving a checkpoint";
    case Doing::loading:
      return "loading a checkpoint";
    case Doing::compiling:
      return "compiling";
    case Doing::ending:
      return "ending";
    // While a job trains, a rank that stands still in an import is as stuck as any.
    case Doing::importing:
      return training ? "" : "importing modules";
    default:
      return group.activity.in_checkpoint ? "in a checkpoint" : "";
  }
}

std::string hold_of(const Fold& fold, const Surroundings& around, bool training) {
  if (around.changing) return "the group of ranks changes";
  for (const Group& group : fold.groups)
    if (const std::string_view words = hold_words(group, training); !words.empty())
      return fmt::format("{} {} {}", rank_words(group), count_of(group) == 1 ? "is" : "are", words);
  std::size_t seen = 0;
  for (const Group& group : fold.groups)
    seen += count_of(group);
  if (around.world > 0 && seen < static_cast<std::size_t>(around.world) && !around.unseen.empty())
    return around.unseen;
  if (around.world > 0 && seen < static_cast<std::size_t>(around.world))
    return fmt::format("{} of {} ranks are not seen", static_cast<std::size_t>(around.world) - seen,
                       around.world);
  for (const Group& group : fold.groups)
    if (!is_alive(group)) return fmt::format("{} ended", rank_words(group));
  return {};
}

// Returns the group of a rank. nullptr: none.
const Group* group_with(const Fold& fold, int rank) {
  for (const Group& group : fold.groups)
    for (const auto& [node, ranks] : group.ranks)
      if (std::binary_search(ranks.begin(), ranks.end(), rank)) return &group;
  return nullptr;
}

void tell_awaited(const Fold& fold, std::vector<Suspect> awaited, Verdict& into) {
  into.awaited = std::move(awaited);
  if (into.awaited.empty()) return;
  const Group* group = group_with(fold, into.awaited.front().ranks.front());
  if (group == nullptr) return;
  into.place = group->child_place == Place{} ? group->place : group->child_place;
}

// All living ranks that are not suspects.
std::vector<int> others_of(const Fold& fold, const std::vector<Suspect>& suspects) {
  std::vector<int> others;
  for (const Group& group : fold.groups) {
    if (!is_alive(group)) continue;
    for (const int rank : ranks_of(group))
      if (std::none_of(suspects.begin(), suspects.end(), [rank](const Suspect& suspect) {
            return std::binary_search(suspect.ranks.begin(), suspect.ranks.end(), rank);
          }))
        others.push_back(rank);
  }
  std::sort(others.begin(), others.end());
  return others;
}

// Returns why a rank is not where the others wait. "": unknown.
std::string_view busy_words(const Group& group) {
  if (group.computes) return "computes";
  return group.child_runs ? "its child works" : "";
}

void tell_suspects(const Fold& fold, std::vector<Suspect> suspects, Verdict& into) {
  into.waiting = others_of(fold, suspects);
  tell_awaited(fold, std::move(suspects), into);
}

// A user may have stopped a rank on purpose, so this is a state of its own. Returns false if no
// rank is stopped. over: all ranks have stood still for longer than the limit.
bool find_stopped(const Fold& fold, bool over, Verdict& into) {
  SuspectList stopped;
  std::size_t count = 0;
  for (const Group& group : fold.groups)
    if (group.activity.doing == Doing::stopped) {
      stopped.add(ranks_of(group), "stopped by a signal");
      count += count_of(group);
    }
  if (count == 0) return false;
  into.state = VerdictState::stopped;
  // Whoever stops all ranks knows.
  into.alarm = over && count < count_alive(fold);
  tell_suspects(fold, stopped.take(), into);
  return true;
}

bool is_starting(const Fold& fold) {
  return std::any_of(fold.groups.begin(), fold.groups.end(), [](const Group& group) {
    return group.activity.doing == Doing::importing || group.activity.doing == Doing::rendezvous ||
           group.activity.doing == Doing::unknown;
  });
}

}  // namespace

void Judge::begin_anew(io::TimePoint now) {
  anew_ = now;
  quiet_ = {};
}

void Judge::note_training(const Fold& fold, const Surroundings& around) {
  if (around.step_seen) training_ = true;
  const bool moves = quiet_ < 2 * rules_.period;
  if (moves && std::any_of(fold.groups.begin(), fold.groups.end(), [](const Group& group) {
        return group.activity.doing == Doing::collective || group.activity.doing == Doing::backward;
      }))
    ++collective_looks_;
  if (collective_looks_ >= kTrainingLooks) training_ = true;
}

// A quiet span has ended once the ranks stand still for less long than before. Spans with a known
// reason, a checkpoint for example, say nothing about how long a step may take.
void Judge::note_quiet(Millis quiet, bool held) {
  if (quiet < quiet_ && training_ && !held_) longest_quiet_ = std::max(longest_quiet_, quiet_);
  held_ = held || (held_ && quiet >= quiet_);
  quiet_ = quiet;
}

// Ranks that wait for a long step of their GPUs keep their stacks, but spin, so they are not quiet.
void Judge::note_same(const Fold& fold) {
  std::optional<Millis> same;
  for (const Group& group : fold.groups)
    if (is_alive(group)) same = std::min(same.value_or(group.same), group.same);
  if (same.value_or(Millis{}) < same_ && training_ && !held_)
    longest_same_ = std::max(longest_same_, same_);
  same_ = same.value_or(Millis{});
}

Millis Judge::limit() const {
  if (rules_.hang_after) return *rules_.hang_after;
  const Millis least = training_ ? rules_.least : rules_.least_before_training;
  return std::max(
      least, rules_.factor * (spins_ ? std::max(longest_same_, longest_quiet_) : longest_quiet_));
}

Millis Judge::idle(const Group& group, int rank, const Evidence& evidence,
                   io::TimePoint now) const {
  Millis idle = group.quiet;
  if (const auto inside = evidence.inside.find(rank); inside != evidence.inside.end())
    idle = std::max(idle, std::min(group.same, inside->second));
  return std::min(idle, std::chrono::duration_cast<Millis>(now - anew_));
}

Millis Judge::idle(const Fold& fold, const Evidence& evidence, io::TimePoint now) const {
  std::optional<Millis> least;
  for (const Group& group : fold.groups)
    if (is_alive(group))
      for (const int rank : ranks_of(group)) {
        const Millis each = idle(group, rank, evidence, now);
        least = least ? std::min(*least, each) : each;
      }
  return least.value_or(Millis{});
}

// A server that waits for requests is as quiet as a hang. Without a limit from the user, ranks that
// have never trained and wait for no other rank may be such servers.
bool Judge::is_expected_to_move(const Fold& fold, const Evidence& evidence) const {
  return rules_.hang_after || training_ ||
         std::any_of(fold.groups.begin(), fold.groups.end(),
                     [&](const Group& group) { return waits(group, evidence); });
}

// Finds ranks that wait for others in a collective. Returns false if none waits for long enough.
bool Judge::find_wait(const Fold& fold, const Surroundings& around, io::TimePoint now,
                      Verdict& into) {
  const Evidence& evidence = around.evidence;
  // The store knows at once who is missing.
  const Millis shown = evidence.never_came.empty() ? rules_.shown : rules_.period;
  SuspectList awaited;
  awaited.add(evidence.never_came, "never connected to the store");
  awaited.add(evidence.never_entered, "never entered the collective");
  Millis since{};  // of the first rank that waits
  for (const Group& group : fold.groups) {
    if (!is_alive(group)) continue;
    std::vector<int> busy;
    for (const int rank : ranks_of(group)) {
      const Millis still = idle(group, rank, evidence, now);
      const bool inside = waits_for_ranks(group.activity.doing) || evidence.inside.contains(rank);
      // Ranks that came a moment later wait as well.
      if (inside && still >= rules_.period) {
        into.waiting.push_back(rank);
        since = std::max(since, still);
      } else {
        busy.push_back(rank);
      }
    }
    awaited.add(std::move(busy), std::string(busy_words(group)));
  }
  // Ranks that have ended are waited for only if all others wait.
  for (const Group& group : fold.groups)
    if (awaited.empty() && !is_alive(group)) awaited.add(ranks_of(group), "ended");
  if (since < shown || awaited.empty()) {
    into.waiting.clear();
    return false;
  }
  std::erase_if(into.waiting, [&](int rank) {
    return std::binary_search(evidence.never_entered.begin(), evidence.never_entered.end(), rank);
  });
  std::sort(into.waiting.begin(), into.waiting.end());
  into.since = since;
  tell_awaited(fold, awaited.take(), into);
  return true;
}

Verdict Judge::judge(const Fold& fold, const Surroundings& around, io::TimePoint now) {
  Verdict verdict{.limit = limit(), .hold = hold_of(fold, around, training_), .spins = spins_};
  verdict.since = quiet_;
  if (count_alive(fold) == 0) {
    verdict.state = fold.groups.empty() ? VerdictState::starting : VerdictState::ended;
    return verdict;
  }
  const bool over = verdict.limit.count() > 0 && quiet_ >= verdict.limit && verdict.hold.empty() &&
                    is_expected_to_move(fold, around.evidence);
  if (find_stopped(fold, over, verdict)) return verdict;
  if (over) {
    verdict.state = VerdictState::hung;
    verdict.alarm = true;
    tell_suspects(fold, suspects_of(fold, around.evidence), verdict);
    return verdict;
  }
  if (find_wait(fold, around, now, verdict)) {
    verdict.state = VerdictState::waiting;
  } else if (quiet_ >= rules_.shown) {
    verdict.state = VerdictState::quiet;
  } else {
    verdict.state =
        !training_ && is_starting(fold) ? VerdictState::starting : VerdictState::training;
  }
  return verdict;
}

const Verdict& Judge::feed(const Fold& fold, const Surroundings& around, io::TimePoint now) {
  if (around.changing || around.world != world_) {
    // Other ranks, or the same ranks anew: nothing is known about their steps.
    world_ = around.world;
    training_ = false;
    collective_looks_ = 0;
    longest_quiet_ = {};
    longest_same_ = {};
    held_ = false;
    begin_anew(now);
  }
  // This process, or the machine, was suspended.
  if (!last_ || now - *last_ > 3 * rules_.period) begin_anew(now);
  last_ = now;
  const bool had_alarm = verdict_.alarm;
  const bool held = !hold_of(fold, around, training_).empty();
  const Millis quiet = idle(fold, around.evidence, now);
  // With evidence, ranks may count as idle that use CPU.
  spins_ = quiet > idle(fold, {}, now);
  note_quiet(quiet, held);
  note_same(fold);
  note_training(fold, around);
  verdict_ = judge(fold, around, now);
  verdict_.alarm_begins = verdict_.alarm && !had_alarm;
  return verdict_;
}

}  // namespace lockstep::looks
