#include "looks/suspects.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::looks {
namespace {

std::string kernel_words(const Group& group) {
  return group.wchan.empty()
             ? "in an uninterruptible system call (state D)"
             : fmt::format("in an uninterruptible system call (state D, {})", group.wchan);
}

// Ranks that the kernel holds. A process in state D is at fault even if others share its stack.
void add_stuck(const Fold& fold, SuspectList& suspects) {
  for (const Group& group : fold.groups) {
    if (!is_alive(group)) continue;
    if (group.activity.doing == Doing::stopped)
      suspects.add(ranks_of(group), "stopped by a signal");
    else if (group.state == 'D')
      suspects.add(ranks_of(group), kernel_words(group));
  }
}

std::string outlier_words(const Group& group) {
  if (!group.child.empty()) return "waits for its " + group.child;
  if (group.holds_gil && !group.computes) return "keeps Python's lock in a C function";
  return {};
}

// Ranks outside of collectives keep the ranks inside waiting. If all ranks are inside, the smaller
// groups called another function than the largest group. Two largest groups of equal size: list
// both, because either may be right.
void add_outliers(const Fold& fold, const Evidence& evidence, SuspectList& suspects) {
  std::vector<const Group*> waiting;
  std::vector<const Group*> others;
  for (const Group& group : fold.groups)
    if (is_alive(group)) (waits(group, evidence) ? waiting : others).push_back(&group);
  if (waiting.empty()) std::swap(waiting, others);
  if (others.empty()) {
    std::size_t most = 0;
    std::size_t largest = 0;
    for (const Group* group : waiting) {
      const std::size_t count = count_of(*group);
      if (count > most) largest = 0;
      most = std::max(most, count);
      if (count == most) ++largest;
    }
    if (waiting.size() < 2) return;
    for (const Group* group : waiting)
      if (count_of(*group) < most || largest > 1) others.push_back(group);
  }
  for (const Group* group : others)
    suspects.add(ranks_of(*group), outlier_words(*group));
}

}  // namespace

void SuspectList::add(std::vector<int> ranks, std::string why) {
  std::erase_if(ranks, [&](int rank) { return !known_.insert(rank).second; });
  if (ranks.empty()) return;
  std::sort(ranks.begin(), ranks.end());
  list_.push_back({std::move(ranks), std::move(why)});
}

bool waits(const Group& group, const Evidence& evidence) {
  if (waits_for_ranks(group.activity.doing)) return true;
  for (const auto& [node, ranks] : group.ranks)
    for (const int rank : ranks)
      if (!evidence.inside.contains(rank)) return false;
  return !group.ranks.empty();
}

std::vector<Suspect> suspects_of(const Fold& fold, const Evidence& evidence) {
  SuspectList suspects;
  add_stuck(fold, suspects);
  suspects.add(evidence.never_came, "never connected to the store");
  suspects.add(evidence.never_entered, "never entered the collective");
  suspects.add(evidence.mismatched, "entered another collective");
  if (!evidence.all_entered) add_outliers(fold, evidence, suspects);
  return suspects.take();
}

}  // namespace lockstep::looks
