#include "looks/fold.h"

#include "base/fnv.h"
#include "base/text.h"
#include "looks/wait_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace lockstep::looks {
namespace {

// Ranks in these states form groups of their own, although their stacks are equal.
char state_apart(char state) {
  return state == 'D' || state == 'T' || state == 't' || state == 'Z' ? state : '-';
}

std::uint64_t key_of(const Seen& seen) {
  const RankLook& look = *seen.look;
  const std::uint64_t stack = look.stack ? stack_key(*look.stack) : 0;
  std::string text = fmt::format("{} {}", static_cast<int>(seen.activity.doing), stack);
  if (look.process) {
    text += state_apart(look.process->state);
    // Without a stack, the kernel's side is all there is.
    if (stack == 0) text += fmt::format(" {} {}", look.process->wchan, look.process->syscall);
  }
  return fnv1a(text);
}

bool is_stuck(char state) {
  return state == 'D' || state == 'T' || state == 'Z';
}

// Returns the child that explains a waiting rank: the first one stuck in the kernel, else the first
// busy loader. nullptr: none.
const ChildLook* telling_child(const RankLook& look) {
  for (const ChildLook& child : look.children)
    if (is_stuck(child.process.state)) return &child;
  for (const ChildLook& child : look.children)
    if (is_loader(child) && !is_idle_loader(child)) return &child;
  return nullptr;
}

// Names a loader by its rank and its place among the rank's loaders: "loader 3.1".
std::string child_name(const RankLook& look, const ChildLook& child) {
  if (!is_loader(child)) return "child";
  int index = 0;
  for (const ChildLook& each : look.children) {
    if (&each == &child) break;
    if (is_loader(each)) ++index;
  }
  return fmt::format("loader {}.{}", look.rank, index);
}

void tell_child(const Seen& seen, Group& group) {
  const RankLook& look = *seen.look;
  const ChildLook* child = telling_child(look);
  if (child == nullptr) return;
  // Busy loaders of a training rank are normal.
  if (!is_stuck(child->process.state) && seen.activity.doing != Doing::data_loader) return;
  group.child = fmt::format("{}, pid {}, state {}", child_name(look, *child), child->pid,
                            child->process.state);
  if (!child->process.wchan.empty()) group.child += ", " + child->process.wchan;
  if (child->stack) group.child_place = place_of(*child->stack);
}

Group group_of(const Seen& seen, std::uint64_t key) {
  const RankLook& look = *seen.look;
  Group group{.key = key,
              .ranks = {{0, {look.rank}}},
              .activity = seen.activity,
              .computes = seen.motion.computes,
              .child_runs = seen.motion.child_runs,
              .quiet = seen.motion.quiet,
              .same = seen.motion.same};
  if (look.stack) {
    group.place = place_of(*look.stack);
    group.holds_gil = look.stack->holds_gil;
  }
  if (look.process) {
    group.state = look.process->state;
    group.wchan = look.process->wchan;
    group.wait = wait_word(*look.process);
  }
  tell_child(seen, group);
  return group;
}

int lowest_rank(const Group& group) {
  int lowest = -1;
  for (const auto& [node, ranks] : group.ranks)
    if (!ranks.empty() && (lowest < 0 || ranks.front() < lowest)) lowest = ranks.front();
  return lowest;
}

void join(Group& into, Group& from) {
  // The lowest rank speaks for the group.
  const bool speaks = lowest_rank(from) < lowest_rank(into);
  into.computes = into.computes || from.computes;
  into.child_runs = into.child_runs || from.child_runs;
  into.quiet = std::min(into.quiet, from.quiet);
  into.same = std::min(into.same, from.same);
  if (into.child.empty() || (speaks && !from.child.empty())) {
    into.child = std::move(from.child);
    into.child_place = std::move(from.child_place);
  }
  if (speaks) {
    into.state = from.state;
    into.wchan = std::move(from.wchan);
    into.wait = std::move(from.wait);
    into.holds_gil = from.holds_gil;
  }
  for (auto& [node, ranks] : from.ranks) {
    auto& all = into.ranks[node];
    all.insert(all.end(), ranks.begin(), ranks.end());
  }
}

// Collects groups by key, in the order of their lowest ranks.
class Groups {
 public:
  void add(Group group) {
    const auto [at, first] = index_.try_emplace(group.key, groups_.size());
    if (first) {
      groups_.push_back(std::move(group));
    } else {
      join(groups_[at->second], group);
    }
  }

  std::vector<Group> take() {
    std::vector<std::pair<int, std::size_t>> order;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      for (auto& [node, ranks] : groups_[i].ranks)
        std::sort(ranks.begin(), ranks.end());
      order.emplace_back(lowest_rank(groups_[i]), i);
    }
    std::sort(order.begin(), order.end());
    std::vector<Group> sorted;
    sorted.reserve(groups_.size());
    for (const auto& [rank, index] : order)
      sorted.push_back(std::move(groups_[index]));
    return sorted;
  }

 private:
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
};

// Removes ranks that another fold has named before.
void drop_known(Group& group, std::set<int>& known) {
  for (auto at = group.ranks.begin(); at != group.ranks.end();) {
    std::erase_if(at->second, [&](int rank) { return !known.insert(rank).second; });
    at = at->second.empty() ? group.ranks.erase(at) : std::next(at);
  }
}

}  // namespace

Fold fold(const std::string& node, std::span<const Seen> ranks) {
  Groups groups;
  for (const Seen& seen : ranks)
    groups.add(group_of(seen, key_of(seen)));
  return {{printable(node, 64)}, groups.take()};
}

Fold merge(std::span<const Fold> folds) {
  Fold all;
  Groups groups;
  std::set<int> known;
  std::unordered_map<std::string_view, int> index;
  for (const Fold& each : folds) {
    std::vector<int> renamed;
    for (const std::string& node : each.nodes) {
      const auto [at, first] = index.try_emplace(node, static_cast<int>(index.size()));
      if (first) all.nodes.push_back(node);
      renamed.push_back(at->second);
    }
    for (Group group : each.groups) {
      std::map<int, std::vector<int>> ranks;
      for (auto& [node, list] : group.ranks)
        if (node >= 0 && static_cast<std::size_t>(node) < renamed.size())
          ranks[renamed[static_cast<std::size_t>(node)]] = std::move(list);
      group.ranks = std::move(ranks);
      drop_known(group, known);
      if (!group.ranks.empty()) groups.add(std::move(group));
    }
  }
  all.groups = groups.take();
  return all;
}

std::vector<int> ranks_of(const Group& group) {
  std::vector<int> all;
  for (const auto& [node, ranks] : group.ranks)
    all.insert(all.end(), ranks.begin(), ranks.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::size_t count_of(const Group& group) {
  std::size_t count = 0;
  for (const auto& [node, ranks] : group.ranks)
    count += ranks.size();
  return count;
}

bool is_alive(const Group& group) {
  return group.activity.doing != Doing::ended;
}

std::size_t count_alive(const Fold& fold) {
  std::size_t count = 0;
  for (const Group& group : fold.groups)
    if (is_alive(group)) count += count_of(group);
  return count;
}

std::string_view node_of(const Fold& fold, int rank) {
  for (const Group& group : fold.groups)
    for (const auto& [node, ranks] : group.ranks)
      if (std::binary_search(ranks.begin(), ranks.end(), rank))
        return fold.nodes[static_cast<std::size_t>(node)];
  return {};
}

bool same_but_older(const Fold& before, const Fold& now) {
  return before.nodes == now.nodes &&
         std::equal(before.groups.begin(), before.groups.end(), now.groups.begin(),
                    now.groups.end(), [](const Group& a, const Group& b) {
                      return a.key == b.key && a.ranks == b.ranks && a.state == b.state &&
                             a.child == b.child && a.computes == b.computes &&
                             a.child_runs == b.child_runs && a.quiet <= b.quiet && a.same <= b.same;
                    });
}

}  // namespace lockstep::looks
