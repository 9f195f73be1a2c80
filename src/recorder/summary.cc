// Shortens dumps, and prints those of equal ranks once.
#include "recorder/summary.h"

#include "base/number_ranges.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/json_fields.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace lockstep::recorder {

// Values as they stand in JSON. Not in an anonymous namespace: see codec/json_fields.h.
struct EntryValue {
  std::string group = {};
  std::string words = {};
  std::int64_t sequence = 0;
  std::string name = {};
  std::string sizes = {};
  std::string types = {};
  std::int64_t bytes = -1;
  std::int64_t age_ms = 0;
  bool active = false;
};

struct PartValue {
  std::string ranks = {};  // "0-2, 5"
  std::vector<EntryValue> entries = {};
  std::map<std::string, std::string> members = {};  // ranks by group
  std::int64_t inside_ms = -1;                      // -1: not proven
};

struct SummaryValue {
  std::vector<PartValue> parts = {};
  std::optional<std::string> silent = {};
  std::optional<std::string> unreadable = {};
};

namespace {

// Texts of dump.h are shorter.
constexpr std::size_t kMostText = 200;
constexpr std::size_t kMostListed = 4096;
constexpr std::size_t kMostRanges = 32;
constexpr std::size_t kMostRanks = 1U << 16;  // in all lists of a summary that is read
constexpr std::size_t kGroups[] = {8, 3, 1};
// shortened() keeps five of a group. Each rank of a part gets a copy, so that few bytes of another
// node may mean many entries.
constexpr std::size_t kMostEntriesOfRank = 64;
constexpr std::size_t kMostEntries = 1U << 14;
constexpr std::int64_t kMostCount = std::int64_t{1} << 52;
constexpr std::int64_t kMillion = 1'000'000;

}  // namespace

static void fields(codec::JsonFields& io, EntryValue& entry) {
  io("group", entry.group);
  io("words", entry.words);
  io("sequence", entry.sequence, {0, kMostCount});
  io("name", entry.name);
  io("sizes", entry.sizes);
  io("types", entry.types);
  io("bytes", entry.bytes, {-1, kMostCount});
  io("age_ms", entry.age_ms, {0, kMostCount / kMillion});
  io("active", entry.active);
}

static void fields(codec::JsonFields& io, PartValue& part) {
  io("ranks", part.ranks);
  io("entries", part.entries);
  io("members", part.members);
  io("inside_ms", part.inside_ms, {-1, kMostCount});
}

static void fields(codec::JsonFields& io, SummaryValue& summary) {
  io("parts", summary.parts);
  io.optional("silent", summary.silent);
  io.optional("unreadable", summary.unreadable);
}

namespace {

using Collectives = std::map<std::int64_t, const Entry*>;  // of a group, by sequence

std::map<std::string, Collectives> collectives_of(const Dump& dump) {
  std::map<std::string, Collectives> groups;
  for (const Entry& entry : dump.entries)
    if (!entry.point_to_point) groups[entry.group][entry.sequence] = &entry;
  return groups;
}

Collectives::const_iterator first_active(const Collectives& group) {
  return std::find_if(group.begin(), group.end(),
                      [](const auto& each) { return each.second->active; });
}

// A rank that runs ahead has entered many collectives, but is stuck in the first of these.
Collectives telling(const Collectives& group) {
  Collectives kept;
  const auto active = first_active(group);
  if (active != group.end()) {
    const auto begin = active == group.begin() ? active : std::prev(active);
    for (auto at = begin; at != group.end() && at->first <= active->first + 1; ++at)
      kept.insert(*at);
  }
  auto last = group.rbegin();
  for (int i = 0; i < 2 && last != group.rend(); ++i, ++last)
    kept.insert(*last);
  return kept;
}

// Members that differ are told apart; times are not.
auto key_of(const Entry& entry) {
  return std::tie(entry.group, entry.group_words, entry.sequence, entry.name, entry.sizes,
                  entry.types, entry.bytes, entry.active);
}

bool say_the_same(const Dump& a, const Dump& b) {
  return a.members == b.members &&
         std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const Entry& x, const Entry& y) { return key_of(x) == key_of(y); });
}

struct Part {
  std::vector<int> ranks;
  Dump dump;
  std::optional<std::chrono::milliseconds> inside;
};

std::vector<Part> parts_of(const Summary& summary, std::size_t groups) {
  std::vector<Part> parts;
  for (const auto& [rank, whole] : summary.dumps) {
    const Dump dump = shortened(whole, groups);
    const auto inside = summary.inside.find(rank);
    const bool is_inside = inside != summary.inside.end();
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& each) {
      return each.inside.has_value() == is_inside && say_the_same(each.dump, dump);
    });
    if (part == parts.end()) part = parts.insert(parts.end(), {{}, dump, std::nullopt});
    part->ranks.push_back(rank);
    // The shortest time proves no more than it must.
    if (is_inside) part->inside = std::min(part->inside.value_or(inside->second), inside->second);
  }
  return parts;
}

PartValue value_of(const Part& part, std::int64_t unix_ns) {
  PartValue value{.ranks = ranges_text(part.ranks, kMostListed)};
  for (const Entry& entry : part.dump.entries)
    value.entries.push_back(
        {.group = entry.group,
         .words = entry.group_words,
         .sequence = entry.sequence,
         .name = entry.name,
         .sizes = entry.sizes,
         .types = entry.types,
         .bytes = entry.bytes,
         .age_ms = std::max<std::int64_t>(0, unix_ns - entry.created_ns) / kMillion,
         .active = entry.active});
  for (const auto& [group, ranks] : part.dump.members) {
    std::string text = ranges_text(ranks, kMostRanges);
    if (!text.ends_with("...")) value.members[group] = std::move(text);
  }
  if (part.inside) value.inside_ms = part.inside->count();
  return value;
}

std::string print(const Summary& summary, std::size_t groups, std::int64_t unix_ns) {
  SummaryValue value;
  for (const Part& part : parts_of(summary, groups))
    value.parts.push_back(value_of(part, unix_ns));
  if (!summary.silent.empty()) value.silent = ranges_text(summary.silent, kMostListed);
  if (!summary.unreadable.empty()) value.unreadable = ranges_text(summary.unreadable, kMostListed);
  return codec::print_json(codec::write_fields(value));
}

// Reads lists of ranks from another node.
class Ranks {
 public:
  explicit Ranks(int world) : world_(world) {}

  std::vector<int> in(const std::optional<std::string>& text) {
    auto ranks = parse_ranges(text.value_or(""), left_).value_or(std::vector<int>());
    left_ -= ranks.size();
    std::erase_if(ranks, [this](int rank) { return rank >= world_; });
    return ranks;
  }

 private:
  int world_;
  std::size_t left_ = kMostRanks;
};

Dump read_part(const PartValue& part, Ranks& ranks, std::int64_t unix_ns) {
  Dump dump;
  for (const EntryValue& entry : part.entries)
    dump.entries.push_back({.group = entry.group,
                            .group_words = entry.words,
                            .sequence = entry.sequence,
                            .name = entry.name,
                            .sizes = entry.sizes,
                            .types = entry.types,
                            .bytes = entry.bytes,
                            .created_ns = unix_ns - entry.age_ms * kMillion,
                            .active = entry.active});
  for (const auto& [group, members] : part.members)
    dump.members[group] = ranks.in(members);
  return dump;
}

}  // namespace

Dump shortened(const Dump& dump, std::size_t groups) {
  const auto all = collectives_of(dump);
  std::vector<const Collectives*> order;
  order.reserve(all.size());
  for (const auto& [name, group] : all)
    order.push_back(&group);
  std::stable_partition(order.begin(), order.end(), [](const Collectives* group) {
    return first_active(*group) != group->end();
  });
  Dump kept{.version = dump.version};
  for (const Collectives* group : order) {
    if (groups-- == 0) break;
    for (const auto& [sequence, entry] : telling(*group))
      kept.entries.push_back(*entry);
    const Entry& last = kept.entries.back();
    const auto members = dump.members.find(last.group);
    // The members of the default group are all ranks.
    if (members != dump.members.end() && last.group_words != "default_pg")
      kept.members.insert(*members);
  }
  return kept;
}

std::string summary_json(const Summary& summary, std::int64_t unix_ns) {
  for (const std::size_t groups : kGroups)
    if (std::string text = print(summary, groups, unix_ns); text.size() <= kMostSummary)
      return text;
  return {};
}

Result<Summary> read_summary(std::string_view json, int world, std::int64_t unix_ns) {
  SummaryValue value;
  LOCKSTEP_TRY(codec::read_fields(
      codec::parse_json(json, {.bytes = kMostSummary}), value,
      {.strict = false, .text = kMostSummary, .list = kMostListed, .printable = kMostSummary}));
  Ranks ranks(world);
  Summary summary{.silent = ranks.in(value.silent), .unreadable = ranks.in(value.unreadable)};
  std::size_t left = kMostEntries;
  for (PartValue& part : value.parts) {
    if (part.entries.size() > kMostEntriesOfRank) part.entries.resize(kMostEntriesOfRank);
    for (EntryValue& entry : part.entries)
      for (std::string* text :
           {&entry.group, &entry.words, &entry.name, &entry.sizes, &entry.types})
        if (text->size() > kMostText) *text = printable(*text, kMostText);
    Dump dump = read_part(part, ranks, unix_ns);
    for (const int rank : ranks.in(part.ranks)) {
      if (dump.entries.size() > left) break;
      left -= dump.entries.size();
      summary.dumps.try_emplace(rank, dump);
      // merge_dumps() needs the members only once.
      dump.members.clear();
      if (part.inside_ms >= 0) summary.inside[rank] = std::chrono::milliseconds(part.inside_ms);
    }
  }
  return summary;
}

}  // namespace lockstep::recorder
