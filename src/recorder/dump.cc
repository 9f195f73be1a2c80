// Both forms become one JSON value, which a single reader takes apart.
#include "recorder/dump.h"

#include "base/text.h"
#include "codec/json.h"
#include "codec/json_members.h"
#include "codec/pickle.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace lockstep::recorder {
namespace {

using Json = nlohmann::json;
using Kind = codec::PickleValue::Kind;

// Names and shapes are shown in one line of a terminal.
constexpr std::size_t kMostText = 120;
// More ranks than any job has. A dump comes from the job's own process, which may be broken.
constexpr std::size_t kMostMembers = 1U << 16;

// The depth is bounded by PickleLimits::max_depth, so the recursion is safe.
Json json_of(const codec::PickleTree::Value& value) {
  switch (value.kind()) {
    case Kind::boolean:
      return value.number() != 0;
    case Kind::integer:
      return value.number();
    case Kind::real:
      return value.real();
    case Kind::text:
      return std::string(value.text());
    case Kind::list:
    case Kind::tuple: {
      Json list = Json::array();
      for (std::size_t i = 0; i < value.size(); ++i)
        list.push_back(json_of(value[i]));
      return list;
    }
    case Kind::dict: {
      Json object = Json::object();
      for (std::size_t i = 0; i + 1 < value.size(); i += 2)
        // Stacks are most of a dump, and a copy for each entry: the reader shares their parts.
        if (value[i].is(Kind::text) && value[i].text() != "frames")
          object[std::string(value[i].text())] = json_of(value[i + 1]);
      return object;
    }
    default:
      return nullptr;
  }
}

std::string text_of(const Json& object, const char* name) {
  return printable(codec::text_member(object, name), kMostText);
}

// Numbers are texts in some versions.
std::int64_t number_of(const Json& object, const char* name) {
  const std::string text = codec::text_member(object, name);
  return text.empty() ? codec::integer_member(object, name) : parse_int(text).value_or(0);
}

// "[[4, 8], [2]]", cut at kMostText.
void append_sizes(const Json& value, std::string& text) {
  if (text.size() > kMostText) return;
  if (!value.is_array()) {
    text += value.is_number_integer() ? std::to_string(value.get<std::int64_t>()) : "?";
    return;
  }
  text += '[';
  for (std::size_t i = 0; i < value.size() && text.size() <= kMostText; ++i) {
    if (i > 0) text += ", ";
    append_sizes(value[i], text);
  }
  text += ']';
}

// Returns 0 for a type of unknown size.
std::int64_t bytes_of_type(std::string_view type) {
  constexpr std::pair<std::string_view, int> kTypes[] = {
      {"Float", 4}, {"Double", 8}, {"Half", 2}, {"BFloat16", 2}, {"Int", 4},         {"Long", 8},
      {"Short", 2}, {"Char", 1},   {"Byte", 1}, {"Bool", 1},     {"ComplexFloat", 8}};
  for (const auto& [name, size] : kTypes)
    if (name == type) return size;
  return type.starts_with("Float8") ? 1 : 0;
}

std::int64_t bytes_of(const Json& sizes, const std::vector<std::string>& types) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  // A wrong size would name a wrong bandwidth: an unknown one is better left out.
  if (!sizes.is_array() || sizes.size() != types.size()) return -1;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t bytes = bytes_of_type(types[i]);
    if (bytes == 0 || !sizes[i].is_array()) return -1;
    for (const Json& size : sizes[i]) {
      const std::int64_t number = size.is_number_integer() ? size.get<std::int64_t>() : -1;
      if (number < 0 || number > kMost || (number > 0 && bytes > kMost / number)) return -1;
      bytes *= number;
    }
    sum += bytes;
    if (sum > kMost) return -1;
  }
  return sum;
}

const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  const auto at = object.find(name);
  return at == object.end() ? kNone : *at;
}

Entry entry_of(const Json& from) {
  Entry entry;
  const auto group = codec::texts_member(from, "process_group");
  if (!group.empty()) entry.group = printable(group[0], kMostText);
  if (group.size() > 1) entry.group_words = printable(group[1], kMostText);
  entry.sequence = number_of(from, "collective_seq_id");
  entry.name = text_of(from, "profiling_name");
  append_sizes(member(from, "input_sizes"), entry.sizes);
  const auto types = codec::texts_member(from, "input_dtypes");
  entry.types = printable(join(types, ", "), kMostText);
  entry.bytes = bytes_of(member(from, "input_sizes"), types);
  entry.created_ns = number_of(from, "time_created_ns");
  // PyTorch's watchdog notes start and end when it discovers them, which may be never. The latest
  // of the three is the last proof of movement.
  entry.moved_ns = std::max({entry.created_ns, number_of(from, "time_discovered_started_ns"),
                             number_of(from, "time_discovered_completed_ns")});
  entry.point_to_point = codec::flag_member(from, "is_p2p");
  // PyTorch retires an entry some time after its collective has completed.
  entry.active =
      !codec::flag_member(from, "retired") && codec::text_member(from, "state") != "completed";
  return entry;
}

// Reads "[0, 1, 2]".
std::vector<int> ranks_of(std::string_view text) {
  std::vector<int> ranks;
  while (!text.empty() && ranks.size() < kMostMembers) {
    int rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error == std::errc()) {
      if (rank >= 0) ranks.push_back(rank);
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    } else {
      text.remove_prefix(1);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void take_members(const Json& config, Dump& dump) {
  if (!config.is_object()) return;
  for (const auto& [key, group] : config.items()) {
    // gloo of 2.14.1 writes all of its groups under the name "".
    const std::string name = group.is_object() ? text_of(group, "name") : "";
    if (name.empty()) continue;
    auto ranks = ranks_of(codec::text_member(group, "ranks"));
    if (!ranks.empty()) dump.members[name] = std::move(ranks);
  }
}

Result<Json> value_of(std::string_view bytes, const DumpLimits& limits) {
  // Byte 0x80 opens a pickle of protocol 2 or later. JSON never begins so.
  if (bytes.starts_with('\x80')) {
    const codec::PickleLimits pickle{
        .max_bytes = limits.bytes, .max_items = limits.values, .max_depth = 16, .lists = true};
    LOCKSTEP_TRY_ASSIGN(const codec::PickleTree tree, codec::read_pickle_tree(bytes, {}, pickle));
    return json_of(tree.root());
  }
  Json value = codec::parse_json(
      bytes, {.bytes = limits.bytes, .depth = 16, .members = 128U << 10, .values = limits.values});
  if (!value.is_object()) return fail(Errc::corrupt, "neither JSON nor a pickle of a dump");
  return value;
}

}  // namespace

Result<Dump> read_dump(std::string_view bytes, const DumpLimits& limits) {
  LOCKSTEP_TRY_ASSIGN(const Json value, value_of(bytes, limits));
  if (!value.is_object()) return fail(Errc::corrupt, "the dump is not an object");
  Dump dump;
  dump.version = text_of(value, "version");
  const Json& entries = member(value, "entries");
  if (entries.is_array()) {
    // The latest entries are the ones that count.
    const std::size_t first = entries.size() - std::min(entries.size(), limits.entries);
    for (std::size_t i = first; i < entries.size(); ++i)
      if (entries[i].is_object()) dump.entries.push_back(entry_of(entries[i]));
  }
  take_members(member(value, "pg_config"), dump);
  return dump;
}

}  // namespace lockstep::recorder
