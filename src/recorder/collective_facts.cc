// Per group: each rank's highest collective; the lowest of these tells who is behind.
#include "recorder/collective_facts.h"

#include "base/number_ranges.h"
#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

namespace lockstep::recorder {
namespace {

constexpr std::size_t kMostRanges = 8;
constexpr std::size_t kMostVariants = 4;
constexpr std::size_t kMostBytes = 600;
constexpr std::size_t kMostWords = 60;

// A rank's collectives of one group, by sequence.
using Course = std::map<std::int64_t, const Entry*>;

struct Group {
  std::string words;
  std::set<int> members;
  std::size_t silent = 0;
  std::map<int, Course> courses;
};

std::map<std::string, Group> groups_of(const std::map<int, Dump>& dumps, std::size_t world) {
  std::map<std::string, Group> groups;
  for (const auto& [rank, dump] : dumps) {
    for (const Entry& entry : dump.entries) {
      // A send or recv does not count in the sequence of collectives.
      if (entry.point_to_point) continue;
      Group& group = groups[entry.group];
      if (entry.group_words != "undefined" && group.words.empty()) group.words = entry.group_words;
      group.members.insert(rank);
      group.courses[rank][entry.sequence] = &entry;
    }
  }
  for (auto& [name, group] : groups) {
    std::set<int> silent;
    for (const auto& [rank, dump] : dumps) {
      // A rank with a dump that has entered nothing of the default group is behind, too.
      if (group.words == "default_pg") group.members.insert(rank);
      const auto listed = dump.members.find(name);
      if (listed == dump.members.end()) continue;
      // Without a dump nothing is known of a member.
      for (const int member : listed->second)
        (dumps.contains(member) ? group.members : silent).insert(member);
    }
    group.silent = silent.size();
    if (group.words == "default_pg" && world > dumps.size())
      group.silent = std::max(group.silent, world - dumps.size());
    if (group.words.empty()) group.words = "group " + name;
  }
  return groups;
}

std::int64_t highest(const Group& group, int rank) {
  // A rank without an entry has entered nothing: PyTorch's sequence numbers begin at 1.
  const auto course = group.courses.find(rank);
  return course == group.courses.end() ? 0 : course->second.rbegin()->first;
}

const Entry* entry_at(const Group& group, int rank, std::int64_t sequence) {
  const auto course = group.courses.find(rank);
  if (course == group.courses.end()) return nullptr;
  const auto found = course->second.find(sequence);
  return found == course->second.end() ? nullptr : found->second;
}

// Ranks must agree on the sizes of these only: others may differ by design (scatter, all_to_all).
bool sizes_must_agree(std::string_view name) {
  return name.ends_with(":all_reduce") || name.ends_with(":broadcast") || name.ends_with(":reduce");
}

std::string what_of(const Entry& entry, bool with_sizes) {
  if (!with_sizes) return entry.name;
  return fmt::format("{} {} {}", entry.name, entry.sizes, entry.types);
}

std::vector<Variant> variants_of(const Group& group, std::int64_t sequence) {
  std::set<std::string> names;
  for (const int rank : group.members)
    if (const Entry* entry = entry_at(group, rank, sequence)) names.insert(entry->name);
  // Different names are the plainer fact. Sizes only tell ranks of one name apart.
  const bool with_sizes = names.size() == 1 && sizes_must_agree(*names.begin());
  std::map<std::string, std::vector<int>> ranks;
  for (const int rank : group.members)
    if (const Entry* entry = entry_at(group, rank, sequence))
      ranks[what_of(*entry, with_sizes)].push_back(rank);
  std::vector<Variant> variants;
  variants.reserve(ranks.size());
  for (auto& [what, who] : ranks)
    variants.push_back({what, std::move(who)});
  // The few ranks that differ from the rest are the suspects: name them first.
  std::stable_sort(variants.begin(), variants.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() < b.ranks.size(); });
  return variants;
}

// Looks at two collectives: the last one that all ranks have entered, and the next one. The first
// of the two that has not ended is where the group is stuck.
bool judge(const Group& group, GroupStuck& stuck) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = 0;
  for (const int rank : group.members) {
    least = std::min(least, highest(group, rank));
    most = std::max(most, highest(group, rank));
  }
  // A mismatch shows where the slowest rank is, even if others have gone on without waiting.
  for (const std::int64_t sequence : {least, least + 1}) {
    if (sequence < 1 || sequence > most) continue;
    bool active = false;
    stuck.entered.clear();
    stuck.behind.clear();
    stuck.created_ns = 0;
    for (const int rank : group.members) {
      if (highest(group, rank) < sequence) stuck.behind.push_back(rank);
      const Entry* entry = entry_at(group, rank, sequence);
      if (entry == nullptr) continue;
      stuck.entered.push_back(rank);
      active = active || entry->active;
      if (stuck.created_ns == 0 || entry->created_ns < stuck.created_ns)
        stuck.created_ns = entry->created_ns;
    }
    if (!active) continue;
    stuck.sequence = sequence;
    stuck.variants = variants_of(group, sequence);
    const Entry* shown = entry_at(group, stuck.variants.back().ranks.front(), sequence);
    stuck.name = shown->name;
    stuck.bytes = shown->bytes;
    stuck.kind = stuck.variants.size() > 1 ? GroupStuck::Kind::mismatch
                 : stuck.behind.empty()    ? GroupStuck::Kind::all_entered
                                           : GroupStuck::Kind::never_entered;
    if (stuck.kind != GroupStuck::Kind::mismatch) stuck.variants.clear();
    return true;
  }
  return false;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", ranges_text(ranks, kMostRanges));
}

std::string size_text(std::int64_t bytes) {
  if (bytes < 0) return "";
  constexpr std::string_view kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1000;
  return fmt::format(", {:.0f} {}", value, kUnits[unit]);
}

std::string mismatch_text(const GroupStuck& stuck) {
  std::string text = fmt::format("mismatch in #{} of {}: ", stuck.sequence, stuck.words);
  for (std::size_t i = 0; i < stuck.variants.size(); ++i) {
    if (i == kMostVariants) return text + fmt::format(" and {} more", stuck.variants.size() - i);
    const Variant& variant = stuck.variants[i];
    text += fmt::format("{}{} ({})", i == 0 ? "" : " against ", variant.what,
                        ranks_text(variant.ranks));
  }
  return text;
}

}  // namespace

std::vector<GroupStuck> merge_dumps(const std::map<int, Dump>& dumps, int world) {
  std::vector<GroupStuck> found;
  for (const auto& [name, group] : groups_of(dumps, static_cast<std::size_t>(std::max(world, 0)))) {
    GroupStuck stuck;
    stuck.group = name;
    stuck.words = group.words;
    stuck.silent = static_cast<int>(group.silent);
    if (judge(group, stuck)) found.push_back(std::move(stuck));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.created_ns < b.created_ns; });
  return found;
}

std::string stuck_sentence(const GroupStuck& stuck) {
  const std::string which = fmt::format("#{} {} of {}{}", stuck.sequence, stuck.name, stuck.words,
                                        size_text(stuck.bytes));
  std::string text;
  switch (stuck.kind) {
    case GroupStuck::Kind::never_entered:
      text = fmt::format("{} never entered {}", ranks_text(stuck.behind), which);
      break;
    case GroupStuck::Kind::mismatch:
      text = mismatch_text(stuck);
      break;
    case GroupStuck::Kind::all_entered:
      // A member without a dump may be the one that all wait for.
      text =
          fmt::format("{} entered {}, and none has left{}", ranks_text(stuck.entered), which,
                      stuck.silent == 0 ? ": network or library"
                                        : fmt::format("; nothing is known of {} other rank{}",
                                                      stuck.silent, stuck.silent == 1 ? "" : "s"));
      break;
  }
  return printable(text, kMostBytes);
}

std::string collective_words(const GroupStuck& stuck, int rank) {
  std::string_view name = stuck.name;
  for (const Variant& variant : stuck.variants)
    if (std::find(variant.ranks.begin(), variant.ranks.end(), rank) != variant.ranks.end())
      name = variant.what;
  // The backend is the same for all ranks: "nccl:all_reduce".
  name.remove_prefix(name.find(':') + 1);
  const std::size_t end = std::min(name.find(' '), kMostWords);
  const std::string size = stuck.kind == GroupStuck::Kind::mismatch ? "" : size_text(stuck.bytes);
  return printable(
      fmt::format("{} #{} of {}{}", name.substr(0, end), stuck.sequence, stuck.words, size),
      2 * kMostWords);
}

}  // namespace lockstep::recorder
