#include "rendezvous/dynamic/state_codec.h"

#include "base/text.h"
#include "codec/base64.h"
#include "codec/pickle.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace lockstep::rendezvous::dynamic {
namespace {
using codec::Pickled;
using codec::PickleGlobal;
using Kind = codec::PickleValue::Kind;
using Value = codec::PickleTree::Value;

// Lockstep's attributes. torchrun's agents unpickle all attributes into __dict__ and write the
// unknown ones back.
constexpr std::string_view kCompletion = "lockstep_completion";
constexpr std::string_view kChanges = "lockstep_changes";
constexpr std::string_view kSettled = "lockstep_settled";

const PickleGlobal& state_class() {
  static const PickleGlobal name{"torch.distributed.elastic.rendezvous.dynamic_rendezvous",
                                 "_RendezvousState"};
  return name;
}
const PickleGlobal& node_class() {
  static const PickleGlobal name{state_class().module, "_NodeDesc"};
  return name;
}
const PickleGlobal kDatetime{"datetime", "datetime"};
const PickleGlobal kTimezone{"datetime", "timezone"};
const PickleGlobal kTimedelta{"datetime", "timedelta"};

// The hint matters: this text may belong to another program, so nothing here overwrites it.
Failure corrupt(std::string_view why) {
  return fail(Errc::corrupt, fmt::format("the rendezvous state is corrupt: {}", why),
              "the stored state is left unchanged; use another --rdzv-id, or stop the program "
              "writing there");
}

// Agents before PyTorch 2.3 lack an attribute or name the address 'fqdn'. Mixing would make one
// side crash on the other's state.
Failure too_old(std::string_view sign) {
  return fail(
      Errc::invalid_input,
      fmt::format("the rendezvous state was written by an agent of PyTorch 1.13 or of "
                  "another release before 2.3 ({}), which cannot share a job with newer "
                  "agents",
                  sign),
      "start the same launcher on all nodes: lockstep, or torchrun of PyTorch 2.3 or newer");
}

// ---- reading

bool is_instance_of(const Value& value, const PickleGlobal& name) {
  return value.is(Kind::object) && value[0].is(name) && value[1].size() == 0;
}
bool is_call_of(const Value& value, const PickleGlobal& name) {
  return value.is(Kind::call) && value[0].is(name);
}
Value arguments(const Value& call) {
  return call[1];
}

Result<std::int64_t> integer(const Value& value, std::string_view what) {
  if (!value.is(Kind::integer)) return corrupt(fmt::format("{} is not an integer", what));
  return value.number();
}

Result<std::int64_t> count(const Value& value, std::string_view what) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;  // leaves room to add
  LOCKSTEP_TRY_ASSIGN(const std::int64_t number, integer(value, what));
  if (number < 0 || number > kMost) return corrupt(fmt::format("{} is {}", what, number));
  return number;
}

Result<bool> boolean(const Value& value, std::string_view what) {
  if (!value.is(Kind::boolean)) return corrupt(fmt::format("{} is not a bool", what));
  return value.number() != 0;
}

Result<Node> read_node(const Value& value) {
  if (!is_instance_of(value, node_class())) return corrupt("a node is not a _NodeDesc");
  // All three fields must be there, once or more: one bit each.
  Node node;
  unsigned seen = 0;
  for (std::size_t i = 2; i < value.size(); i += 2) {
    const std::string_view name = value[i].text();
    const Value field = value[i + 1];
    if (name == "addr" && field.is(Kind::text)) {
      node.addr = field.text();
      seen |= 1U;
    } else if (name == "pid" && field.is(Kind::integer)) {
      node.pid = field.number();
      seen |= 2U;
    } else if (name == "local_id" && field.is(Kind::integer)) {
      // PyTorch 1.13's name for the address.
      node.local_id = field.number();
      seen |= 4U;
    } else if (name == "fqdn") {
      return too_old("its nodes have the field 'fqdn'");
    } else {
      return corrupt(
          fmt::format("a node's field '{}' is unknown or of the wrong type", printable(name, 100)));
    }
  }
  if (seen != 7) return corrupt("a node without addr, pid or local_id");
  return node;
}

// Returns whether the value is timezone(timedelta(0, 0, 0)), Python's form of timezone.utc.
bool is_utc(const Value& value) {
  if (!is_call_of(value, kTimezone) || arguments(value).size() != 1) return false;
  const Value offset = arguments(value)[0];
  if (!is_call_of(offset, kTimedelta)) return false;
  const Value parts = arguments(offset);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is(Kind::integer) || parts[i].number() != 0) return false;
  }
  return true;
}

Result<UtcTime> read_time(const Value& value) {
  if (!is_call_of(value, kDatetime)) return corrupt("a time is not a datetime");
  // year (2 bytes, big-endian), month, day, hour, minute, second, microseconds (3 bytes).
  const Value parts = arguments(value);
  if (parts.size() == 0 || parts.size() > 2 || !parts[0].is(Kind::bytes) ||
      parts[0].text().size() != 10)
    return corrupt("a datetime without its 10 bytes");
  // Naive datetimes are PyTorch 1.13's.
  if (parts.size() == 1) return too_old("its times have no time zone");
  if (!is_utc(parts[1])) return corrupt("a datetime that is not in UTC");
  std::array<unsigned, 10> byte{};
  for (std::size_t i = 0; i < byte.size(); ++i) {
    byte.at(i) = static_cast<unsigned char>(parts[0].text()[i]);
  }
  const auto date = std::chrono::year(static_cast<int>(byte[0] << 8 | byte[1])) /
                    std::chrono::month(byte[2]) / std::chrono::day(byte[3]);
  const unsigned micros = byte[7] << 16 | byte[8] << 8 | byte[9];
  if (!date.ok() || static_cast<int>(date.year()) < 1 || static_cast<int>(date.year()) > 9999 ||
      byte[4] > 23 || byte[5] > 59 || byte[6] > 59 || micros > 999'999)
    return corrupt("a datetime that does not exist");
  return UtcTime(std::chrono::sys_days(date)) + std::chrono::hours(byte[4]) +
         std::chrono::minutes(byte[5]) + std::chrono::seconds(byte[6]) +
         std::chrono::microseconds(micros);
}

// Reads a set of nodes. Nodes are compared by value: Python's pickle repeats a node as a fresh
// object if the node came from another load. If a key is repeated the last value counts, as in
// Python.
Status read_nodes(const Value& value, std::string_view what, std::set<Node>& nodes) {
  if (!value.is(Kind::set)) return corrupt(fmt::format("{} is not a set", what));
  for (std::size_t i = 0; i < value.size(); ++i) {
    LOCKSTEP_TRY_ASSIGN(Node node, read_node(value[i]));
    nodes.insert(std::move(node));
  }
  return {};
}

template <class T, class Read>
Status read_map(const Value& value, std::string_view what, std::map<Node, T>& map, Read read) {
  if (!value.is(Kind::dict)) return corrupt(fmt::format("{} is not a dict", what));
  for (std::size_t i = 0; i < value.size(); i += 2) {
    LOCKSTEP_TRY_ASSIGN(Node node, read_node(value[i]));
    LOCKSTEP_TRY_ASSIGN(const T read_value, read(value[i + 1]));
    // The hint: entries mostly come in order.
    map.insert_or_assign(map.end(), std::move(node), read_value);
  }
  return {};
}

Status read_completion(const Value& value, RendezvousState& state) {
  if (!value.is(Kind::tuple) || value.size() != 2)
    return corrupt(fmt::format("{} is not a pair", kCompletion));
  LOCKSTEP_TRY_ASSIGN(const auto round, integer(value[0], kCompletion));
  LOCKSTEP_TRY_ASSIGN(const auto world, integer(value[1], kCompletion));
  state.completion = Completion{round, world};
  return {};
}

constexpr std::array<std::string_view, 8> kNames = {
    "round",        "complete",  "deadline",        "closed",
    "participants", "wait_list", "redundancy_list", "last_heartbeats"};

Status read_attribute(std::size_t which, const Value& value, RendezvousState& state) {
  const std::string_view name = kNames.at(which);
  const auto rank = [](const Value item) { return integer(item, "a rank"); };
  switch (which) {
    case 0: {
      LOCKSTEP_TRY_ASSIGN(state.round, count(value, name));
      return {};
    }
    case 1: {
      LOCKSTEP_TRY_ASSIGN(state.complete, boolean(value, name));
      return {};
    }
    case 2: {
      if (value.is(Kind::none)) return {};
      LOCKSTEP_TRY_ASSIGN(state.deadline, read_time(value));
      return {};
    }
    case 3: {
      LOCKSTEP_TRY_ASSIGN(state.closed, boolean(value, name));
      return {};
    }
    case 4:
      return read_map(value, name, state.participants, rank);
    case 5:
      return read_nodes(value, name, state.wait_list);
    case 6:
      return read_nodes(value, name, state.redundancy_list);
    default:
      return read_map(value, name, state.last_heartbeats, read_time);
  }
}

Result<RendezvousState> read_state(const Value& root) {
  if (!is_instance_of(root, state_class())) return corrupt("it is not a _RendezvousState");
  std::array<bool, kNames.size()> seen{};
  RendezvousState state;
  for (std::size_t i = 2; i < root.size(); i += 2) {
    const std::string_view name = root[i].text();
    const Value& value = root[i + 1];
    const auto* const found = std::find(kNames.begin(), kNames.end(), name);
    if (found != kNames.end()) {
      const auto which = static_cast<std::size_t>(found - kNames.begin());
      if (std::exchange(seen.at(which), true))
        return corrupt(fmt::format("the attribute '{}' comes twice", name));
      LOCKSTEP_TRY(read_attribute(which, value, state));
    } else if (name == kCompletion) {
      LOCKSTEP_TRY(read_completion(value, state));
    } else if (name == kChanges) {
      LOCKSTEP_TRY_ASSIGN(state.changes, count(value, kChanges));
    } else if (name == kSettled) {
      LOCKSTEP_TRY_ASSIGN(state.settled, count(value, kSettled));
    } else {
      // Keep the attributes of a newer PyTorch. Without them its agents would crash.
      state.unknown.emplace_back(name, value.copy());
    }
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (seen.at(i)) continue;
    // PyTorch 2.3 introduced this attribute.
    if (kNames.at(i) == "redundancy_list") return too_old("it has no 'redundancy_list'");
    return corrupt(fmt::format("the attribute '{}' is missing", kNames.at(i)));
  }
  return state;
}

// ---- writing

Pickled tuple(std::vector<Pickled> items) {
  return codec::pickle_items(Kind::tuple, std::move(items));
}
Pickled call(const PickleGlobal& name, std::vector<Pickled> arguments) {
  return codec::pickle_items(Kind::call, {codec::pickle_global(name), tuple(std::move(arguments))});
}

// Builds pickle values. Each node and the time zone is built once and shared.
class Maker {
 public:
  const Pickled& node(const Node& node) {
    Pickled& made = nodes_[node];
    if (!made) {
      made = codec::pickle_items(
          Kind::object,
          {codec::pickle_global(node_class()), tuple({}), codec::pickle_text("addr"),
           codec::pickle_text(node.addr), codec::pickle_text("pid"), codec::pickle_int(node.pid),
           codec::pickle_text("local_id"), codec::pickle_int(node.local_id)});
    }
    return made;
  }
  Pickled nodes(const std::set<Node>& all) {
    std::vector<Pickled> items;
    items.reserve(all.size());
    for (const Node& one : all)
      items.push_back(node(one));
    return codec::pickle_items(Kind::set, std::move(items));
  }
  Result<Pickled> time(UtcTime time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss<std::chrono::microseconds> clock(time - day);
    const int year = static_cast<int>(date.year());
    if (year < 1 || year > 9999 || !date.ok())
      return fail(Errc::invalid_input,
                  "cannot write a rendezvous state: a time outside the years 1 to 9999");
    const auto micros = clock.subseconds().count();
    std::string bytes;
    for (const auto byte :
         {std::int64_t{year} >> 8, std::int64_t{year}, std::int64_t{unsigned{date.month()}},
          std::int64_t{unsigned{date.day()}}, std::int64_t{clock.hours().count()},
          std::int64_t{clock.minutes().count()}, std::int64_t{clock.seconds().count()},
          std::int64_t{micros} >> 16, std::int64_t{micros} >> 8, std::int64_t{micros}}) {
      bytes += static_cast<char>(byte & 255);
    }
    return call(kDatetime, {codec::pickle_bytes(bytes), utc_});
  }

 private:
  std::map<Node, Pickled> nodes_;
  Pickled utc_ =
      call(kTimezone,
           {call(kTimedelta, {codec::pickle_int(0), codec::pickle_int(0), codec::pickle_int(0)})});
};

Result<std::vector<Pickled>> attributes(const RendezvousState& state) {
  Maker make;
  std::vector<Pickled> ranks;
  for (const auto& [node, rank] : state.participants)
    ranks.insert(ranks.end(), {make.node(node), codec::pickle_int(rank)});
  std::vector<Pickled> heartbeats;
  for (const auto& [node, time] : state.last_heartbeats) {
    LOCKSTEP_TRY_ASSIGN(Pickled made, make.time(time));
    heartbeats.insert(heartbeats.end(), {make.node(node), std::move(made)});
  }
  Pickled deadline = codec::pickle_none();
  if (state.deadline) {
    LOCKSTEP_TRY_ASSIGN(deadline, make.time(*state.deadline));
  }
  std::array<Pickled, kNames.size()> values = {
      codec::pickle_int(state.round),
      codec::pickle_bool(state.complete),
      std::move(deadline),
      codec::pickle_bool(state.closed),
      codec::pickle_items(Kind::dict, std::move(ranks)),
      make.nodes(state.wait_list),
      make.nodes(state.redundancy_list),
      codec::pickle_items(Kind::dict, std::move(heartbeats))};
  std::vector<Pickled> items;
  for (std::size_t i = 0; i < values.size(); ++i)
    items.insert(items.end(), {codec::pickle_text(kNames.at(i)), std::move(values.at(i))});
  if (state.completion) {
    items.insert(items.end(), {codec::pickle_text(kCompletion),
                               tuple({codec::pickle_int(state.completion->round),
                                      codec::pickle_int(state.completion->world)})});
  }
  if (state.changes != 0)
    items.insert(items.end(), {codec::pickle_text(kChanges), codec::pickle_int(state.changes)});
  if (state.settled != 0)
    items.insert(items.end(), {codec::pickle_text(kSettled), codec::pickle_int(state.settled)});
  // A peer's agent may need an attribute that this version does not know.
  for (const auto& [name, value] : state.unknown)
    items.insert(items.end(), {codec::pickle_text(name), value});
  return items;
}

}  // namespace

Result<RendezvousState> decode_state(std::string_view base64) {
  // Only these five globals. Python would run any callable that a stranger stored.
  const std::array<PickleGlobal, 5> allowed = {state_class(), node_class(), kDatetime, kTimezone,
                                               kTimedelta};
  auto bytes = codec::base64_decode(base64);
  if (!bytes) return corrupt(bytes.error().message);
  const auto tree = codec::read_pickle_tree(*bytes, allowed);
  if (!tree) return corrupt(tree.error().message);
  return read_state(tree->root());
}

Result<std::string> encode_state(const RendezvousState& state) {
  LOCKSTEP_TRY_ASSIGN(std::vector<Pickled> items, attributes(state));
  items.insert(items.begin(), {codec::pickle_global(state_class()), tuple({})});
  const auto bytes = codec::write_pickle(codec::pickle_items(Kind::object, std::move(items)));
  if (!bytes)
    return tl::make_unexpected(Error(bytes.error()).within("cannot write a rendezvous state"));
  return codec::base64_encode(*bytes);
}

}  // namespace lockstep::rendezvous::dynamic
