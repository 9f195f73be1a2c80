// Folds as JSON, for heartbeats and reports of agents.
#include "base/number_ranges.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/json_fields.h"
#include "looks/fold.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace lockstep::looks {
namespace {

constexpr std::size_t kMostNodes = 16'384;
constexpr std::size_t kMostRanks = 1U << 17;
// An agent may send this much for each 8 of its ranks.
constexpr std::size_t kBudget = 2048;
constexpr std::size_t kMostReadName = 128;
// A list of ranks may be long, names are cut below.
constexpr std::size_t kMostReadText = 256U << 10;
constexpr std::int64_t kLongestAge = std::int64_t{100} * 365 * 86'400'000;

}  // namespace

// Values as they stand in JSON. A missing text is empty.
using Text = std::optional<std::string>;
using Flag = std::optional<bool>;

// Not in an anonymous namespace: the compiler must find fields() (codec/json_fields.h).
struct PlaceValue {
  Text line = {}, function = {}, library = {};
};

struct GroupValue {
  std::string key = {};
  std::map<std::string, std::string> ranks = {};  // index of the node -> "0-2, 5"
  Doing doing = Doing::unknown;
  Text call = {}, state = {}, wchan = {}, wait = {}, child = {};
  PlaceValue at = {};
  std::optional<PlaceValue> child_at = {};
  Flag saves = {}, gil = {}, computes = {}, child_runs = {};
  std::int64_t quiet = 0;
  std::int64_t same = 0;
};

struct FoldValue {
  std::vector<std::string> nodes = {};
  std::vector<GroupValue> groups = {};
};

static void fields(codec::JsonFields& io, PlaceValue& place) {
  io.optional("line", place.line);
  io.optional("in", place.function);
  io.optional("lib", place.library);
}

static void fields(codec::JsonFields& io, GroupValue& group) {
  io("key", group.key);
  io("ranks", group.ranks);
  io("doing", group.doing, codec::JsonFields::Words(kDoingWords));
  io.optional("call", group.call);
  io.optional("state", group.state);
  io.optional("wchan", group.wchan);
  io.optional("wait", group.wait);
  io.optional("child", group.child);
  io("at", group.at);
  io.optional("child_at", group.child_at);
  io.optional("saves", group.saves);
  io.optional("gil", group.gil);
  io.optional("computes", group.computes);
  io.optional("child_runs", group.child_runs);
  io("quiet", group.quiet, {0, kLongestAge});
  io("same", group.same, {0, kLongestAge});
}

static void fields(codec::JsonFields& io, FoldValue& fold) {
  io("nodes", fold.nodes);
  io("groups", fold.groups);
}

namespace {

// How much of a group's texts is sent.
struct Detail {
  std::size_t name;  // bytes of a name; 0: no names
  std::size_t line;  // bytes of "train.py:88"
};
constexpr Detail kDetails[] = {{64, 64}, {40, 48}, {24, 40}, {14, 32}, {8, 24}, {0, 20}};

Text text_value(const std::string& text, std::size_t limit) {
  if (text.empty() || limit == 0) return std::nullopt;
  return printable(text, limit);
}

// Cuts a long name of a file at its beginning: the number of the line counts.
Text line_value(const std::string& line, std::size_t limit) {
  if (line.size() <= limit) return text_value(line, limit);
  std::size_t begin = line.size() - limit;
  while (begin < line.size() && (static_cast<unsigned char>(line[begin]) & 0xC0) == 0x80)
    ++begin;
  return "..." + line.substr(begin);
}

Flag flag_value(bool flag) {
  return flag ? Flag(true) : std::nullopt;
}

PlaceValue place_value(const Place& place, const Detail& detail) {
  return {line_value(place.line, detail.line), text_value(place.function, detail.name),
          text_value(place.library, detail.name)};
}

GroupValue group_value(const Group& group, const Detail& detail) {
  GroupValue value{.key = fmt::format("{:x}", group.key),
                   .doing = group.activity.doing,
                   .call = text_value(group.activity.call, detail.name),
                   .state = text_value(std::string(1, group.state), 1),
                   .wchan = text_value(group.wchan, detail.name),
                   .wait = text_value(group.wait, detail.name),
                   .child = text_value(group.child, 2 * detail.name),
                   .at = place_value(group.place, detail),
                   .saves = flag_value(group.activity.in_checkpoint),
                   .gil = flag_value(group.holds_gil),
                   .computes = flag_value(group.computes),
                   .child_runs = flag_value(group.child_runs),
                   .quiet = group.quiet.count(),
                   .same = group.same.count()};
  if (!(group.child_place == Place{}) && detail.name > 0)
    value.child_at = place_value(group.child_place, detail);
  for (const auto& [node, ranks] : group.ranks)
    value.ranks[std::to_string(node)] = ranges_text(ranks, kMostRanks);
  return value;
}

std::string print(const Fold& fold, const Detail& detail) {
  FoldValue value{.nodes = fold.nodes};
  for (const Group& group : fold.groups)
    value.groups.push_back(group_value(group, detail));
  return codec::print_json(codec::write_fields(value));
}

std::string name_of(const Text& text) {
  return printable(text.value_or(""), kMostReadName);
}

Place read_place(const PlaceValue& value) {
  return {name_of(value.line), name_of(value.function), name_of(value.library)};
}

// Returns nullopt if the group names no rank, or is malformed.
// left: how many ranks the groups may name from now on, in all.
std::optional<Group> read_group(const GroupValue& value, std::size_t nodes, std::size_t& left) {
  Group group;
  const char* end = value.key.data() + value.key.size();
  if (std::from_chars(value.key.data(), end, group.key, 16).ptr != end) return std::nullopt;
  for (const auto& [name, text] : value.ranks) {
    const auto node = parse_int(name);
    auto ranks = parse_ranges(text, left);
    if (!node || *node < 0 || static_cast<std::size_t>(*node) >= nodes || !ranks)
      return std::nullopt;
    left -= ranks->size();
    std::sort(ranks->begin(), ranks->end());
    if (!ranks->empty()) group.ranks[static_cast<int>(*node)] = std::move(*ranks);
  }
  if (group.ranks.empty()) return std::nullopt;
  group.activity = {value.doing, name_of(value.call), value.saves.value_or(false)};
  group.place = read_place(value.at);
  group.state = value.state && value.state->size() == 1 ? value.state->front() : '?';
  group.wchan = name_of(value.wchan);
  group.wait = name_of(value.wait);
  group.child = name_of(value.child);
  if (value.child_at) group.child_place = read_place(*value.child_at);
  group.holds_gil = value.gil.value_or(false);
  group.computes = value.computes.value_or(false);
  group.child_runs = value.child_runs.value_or(false);
  group.quiet = Millis(value.quiet);
  group.same = Millis(value.same);
  return group;
}

}  // namespace

std::string fold_json(const Fold& fold) {
  std::size_t ranks = 0;
  for (const Group& group : fold.groups)
    ranks += count_of(group);
  const std::size_t budget = kBudget * std::max<std::size_t>((ranks + 7) / 8, 1);
  std::string text;
  for (const Detail& detail : kDetails) {
    text = print(fold, detail);
    if (text.size() <= budget) break;
  }
  return text;
}

Result<Fold> read_fold(std::string_view json) {
  FoldValue value;
  LOCKSTEP_TRY(
      codec::read_fields(codec::parse_json(json), value,
                         {.strict = false, .list = kMostNodes, .printable = kMostReadText}));
  Fold fold;
  for (const std::string& node : value.nodes)
    fold.nodes.push_back(printable(node, kMostReadName));
  std::size_t left = kMostRanks;
  for (const GroupValue& each : value.groups)
    if (auto group = read_group(each, fold.nodes.size(), left))
      fold.groups.push_back(std::move(*group));
  return fold;
}

}  // namespace lockstep::looks
