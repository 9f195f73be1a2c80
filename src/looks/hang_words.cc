#include "looks/hang_words.h"

#include "base/duration_text.h"
#include "base/number_ranges.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::looks {

std::string activity_words(const Activity& activity) {
  switch (activity.doing) {
    case Doing::unknown:
      return "no Python stack";
    case Doing::own_code:
      return {};
    case Doing::collective:
    case Doing::rendezvous:
      return activity.call;
    case Doing::gpu_wait:
      return "wait for the GPU";
    case Doing::saving:
      return "checkpoint";
    case Doing::loading:
      return "loading a checkpoint";
    case Doing::importing:
      return "import";
    case Doing::debugger:
      return "debugger";
    case Doing::input:
      return "standard input";
    case Doing::stopped:
      return "stopped by a signal";
    case Doing::ending:
      return "end of the process";
    default:
      return std::string(kDoingWords[static_cast<std::size_t>(activity.doing)]);
  }
}

namespace {

// Lines of a block, and ranks of a group by number. More are counted.
constexpr std::size_t kMostGroups = 16;
constexpr std::size_t kMostNumbers = 8;
constexpr std::size_t kMostRanges = 4;

// "rank 3", "ranks 0-2, 5", and "61 ranks" for more than a few.
std::string who(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() > kMostNumbers) return fmt::format("{} ranks", ranks.size());
  return "ranks " + ranges_text(ranks);
}

std::string seconds_text(Millis age) {
  return about_text(age.count() / 1000);
}

// "data loader, poll". A rank inside a collective waits for other ranks: the kernel's words would
// add nothing.
std::string what_words(const Group& group) {
  std::string words = activity_words(group.activity);
  if (waits_for_ranks(group.activity.doing) || group.activity.doing == Doing::ended) return words;
  std::string_view wait = group.wait;
  if (group.activity.doing == Doing::stopped)
    wait = {};
  else if (group.computes)
    wait = "computes";
  if (words.empty()) return wait.empty() ? "own code" : std::string(wait);
  return wait.empty() ? words : fmt::format("{}, {}", words, wait);
}

std::string what(const Group& group, const Evidence& evidence, int lowest) {
  const auto known = evidence.collective.find(lowest);
  const bool missing = std::find(evidence.never_entered.begin(), evidence.never_entered.end(),
                                 lowest) != evidence.never_entered.end();
  if (std::find(evidence.never_came.begin(), evidence.never_came.end(), lowest) !=
      evidence.never_came.end())
    return "never connected: " + what_words(group);
  if (known == evidence.collective.end()) return what_words(group);
  if (missing || !waits(group, evidence))
    return fmt::format("{}: {}", known->second, what_words(group));
  return known->second;
}

// "train.py:88 in step, torch/autograd/graph.py".
std::string place_words(const Place& place) {
  if (place.line.empty()) return {};
  std::string words = fmt::format("{} in {}", place.line, place.function);
  if (!place.library.empty()) words += ", " + place.library;
  return words;
}

std::string where(const Fold& fold, const Group& group) {
  const bool by_child = !(group.child_place == Place{});
  std::string notes;
  const auto note = [&notes](const std::string& text) {
    if (!notes.empty()) notes += ", ";
    notes += text;
  };
  // The machine of a rank that stands out, if there are several.
  if (fold.nodes.size() > 1 && group.ranks.size() == 1 && !waits_for_ranks(group.activity.doing))
    note(fold.nodes[static_cast<std::size_t>(group.ranks.begin()->first)]);
  if (!group.child.empty()) note(group.child);
  if (group.state == 'D')
    note(group.wchan.empty() ? "state D" : fmt::format("state D, {}", group.wchan));
  if (group.holds_gil && !group.computes && !waits_for_ranks(group.activity.doing))
    note("holds the GIL");
  // The child's place stands for both: the rank itself just waits for the child.
  const Place& place = by_child ? group.child_place : group.place;
  std::string words =
      by_child ? fmt::format("{} in {}", place.line, place.function) : place_words(place);
  if (!notes.empty()) words += fmt::format("{}({})", words.empty() ? "" : " ", notes);
  return words;
}

using Row = std::array<std::string, 3>;

std::string rows_text(const std::vector<Row>& rows) {
  std::size_t first = 0;
  std::size_t second = 0;
  for (const Row& row : rows) {
    first = std::max(first, row[0].size());
    second = std::max(second, row[1].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = fmt::format("  {:<{}}  {:<{}}   {}", row[0], first, row[1], second, row[2]);
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// Largest groups first: they are the background against which the others stand out.
std::vector<const Group*> by_size(const Fold& fold) {
  std::vector<std::pair<std::size_t, const Group*>> sized;
  for (const Group& group : fold.groups)
    sized.emplace_back(count_of(group), &group);
  std::stable_sort(sized.begin(), sized.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const Group*> groups;
  groups.reserve(sized.size());
  for (const auto& [count, group] : sized)
    groups.push_back(group);
  return groups;
}

// "all_reduce, train.py:88", "load_rows, data.py:12".
std::string spot_words(const Group& group) {
  std::string words = activity_words(group.activity);
  if (words.empty()) words = group.place.function.empty() ? "own code" : group.place.function;
  return group.place.line.empty() ? words : fmt::format("{}, {}", words, group.place.line);
}

// All ranks that are waited for, sorted.
std::vector<int> awaited_ranks(const Verdict& verdict) {
  std::vector<int> ranks;
  for (const Suspect& suspect : verdict.awaited)
    ranks.insert(ranks.end(), suspect.ranks.begin(), suspect.ranks.end());
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string attempt_words(const Fold& fold, const HangFacts& facts) {
  std::string where = fmt::format("attempt {}, {} ranks", facts.attempt, count_alive(fold));
  if (facts.round > 0) where += fmt::format(" in round {}", facts.round);
  return where;
}

std::string head_words(const Verdict& verdict, const Fold& fold, const HangFacts& facts) {
  const std::string where = attempt_words(fold, facts);
  if (verdict.state != VerdictState::stopped)
    return fmt::format("hang: {} for {} ({})\n",
                       verdict.spins ? "nothing that counts has moved" : "no rank has run",
                       seconds_text(verdict.since), where);
  const std::vector<int> stopped = awaited_ranks(verdict);
  return fmt::format("stopped: {} {} stopped by a signal, {} rank{} wait{} since {} ({})\n",
                     who(stopped), stopped.size() == 1 ? "is" : "are", verdict.waiting.size(),
                     verdict.waiting.size() == 1 ? "" : "s", verdict.waiting.size() == 1 ? "s" : "",
                     seconds_text(verdict.since), where);
}

bool all_in_own_code(const Fold& fold) {
  const auto count = [&fold](Doing doing) {
    return std::count_if(fold.groups.begin(), fold.groups.end(),
                         [doing](const Group& group) { return group.activity.doing == doing; });
  };
  const auto own = count(Doing::own_code);
  return own > 0 && own + count(Doing::ended) == std::ssize(fold.groups);
}

}  // namespace

std::string fold_words(const Fold& fold, const Evidence& evidence) {
  std::vector<Row> rows;
  std::size_t left = 0;
  for (const Group* group : by_size(fold)) {
    const std::vector<int> ranks = ranks_of(*group);
    if (rows.size() < kMostGroups)
      rows.push_back({who(ranks), what(*group, evidence, ranks.front()), where(fold, *group)});
    else
      left += ranks.size();
  }
  std::string text = rows_text(rows);
  if (left > 0) text += fmt::format("  and {} more ranks\n", left);
  return text;
}

std::string hang_words(const Verdict& verdict, const Fold& fold, const Evidence& evidence,
                       const HangFacts& facts) {
  std::string text = head_words(verdict, fold, facts) + fold_words(fold, evidence);
  if (!evidence.never_came_text.empty()) text += fmt::format("  {}\n", evidence.never_came_text);
  for (const std::string& sentence : evidence.sentences)
    text += fmt::format("  {}\n", sentence);
  if (verdict.awaited.empty() && evidence.sentences.empty())
    text += all_in_own_code(fold)
                ? "  all ranks wait in the code of the script\n"
                : "  all ranks wait at the same place: look at the network or a library\n";
  if (!facts.evidence.empty()) text += fmt::format("  evidence: {}\n", facts.evidence);
  text.pop_back();
  return text;
}

std::string timeout_words(int rank, const Fold& fold, const Evidence& evidence,
                          const HangFacts& facts) {
  std::string text =
      fmt::format("timeout: {} has timed out ({})\n",
                  rank < 0 ? "an NCCL watchdog" : fmt::format("the NCCL watchdog of rank {}", rank),
                  attempt_words(fold, facts)) +
      fold_words(fold, evidence);
  for (const std::string& sentence : evidence.sentences)
    text += fmt::format("  {}\n", sentence);
  text.pop_back();
  return text;
}

std::string waiting_words(const Verdict& verdict) {
  if (verdict.state != VerdictState::waiting) return {};
  const bool one = verdict.waiting.size() == 1;
  return fmt::format("waiting: {} rank{} wait{} for {}{} since {}", verdict.waiting.size(),
                     one ? "" : "s", one ? "s" : "", who(awaited_ranks(verdict)),
                     verdict.place.line.empty() ? "" : " at " + verdict.place.line,
                     seconds_text(verdict.since));
}

std::string verdict_words(const Verdict& verdict) {
  if (verdict.state == VerdictState::waiting) return waiting_words(verdict);
  std::string text(kVerdictStateWords[static_cast<std::size_t>(verdict.state)]);
  if (verdict.state == VerdictState::quiet || verdict.state == VerdictState::hung ||
      verdict.state == VerdictState::stopped)
    text += " for " + seconds_text(verdict.since);
  if (verdict.state == VerdictState::quiet && !verdict.hold.empty()) text += ": " + verdict.hold;
  if (verdict.state == VerdictState::hung && !verdict.awaited.empty())
    text += fmt::format(": {}{}", who(awaited_ranks(verdict)),
                        verdict.place.line.empty() ? "" : " at " + verdict.place.line);
  return text;
}

std::vector<std::string> group_sentences(const Fold& fold, std::span<const int> spared,
                                         std::size_t most) {
  const std::set<int> without(spared.begin(), spared.end());
  std::vector<std::pair<std::vector<int>, const Group*>> groups;
  for (const Group* group : by_size(fold)) {
    std::vector<int> ranks = ranks_of(*group);
    std::erase_if(ranks, [&](int rank) { return without.contains(rank); });
    if (!ranks.empty() && group->activity.doing != Doing::ended)
      groups.emplace_back(std::move(ranks), group);
  }
  std::vector<std::string> sentences;
  for (const auto& [ranks, group] : groups) {
    if (sentences.size() == most) break;
    const bool one = ranks.size() == 1;
    std::string subject = fmt::format("rank{} {}", one ? "" : "s", ranges_text(ranks, kMostRanges));
    if (groups.size() == 1 && !without.empty())
      subject = one ? fmt::format("the other rank, {},", ranks.front())
                    : fmt::format("the other {} ranks", ranks.size());
    const std::string spot = spot_words(*group);
    std::string_view verb = one ? "was in" : "were in";
    if (spot.starts_with("no Python stack")) verb = "had";
    sentences.push_back(fmt::format("{} {} {}", subject, verb, spot));
  }
  return sentences;
}

}  // namespace lockstep::looks
