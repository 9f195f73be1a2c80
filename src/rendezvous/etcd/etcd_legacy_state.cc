// JSON of the older etcd rendezvous.
#include "rendezvous/etcd/etcd_legacy_state.h"

#include "base/text.h"
#include "codec/json.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

using nlohmann::json;
using Status = LegacyState::Status;

// Strangers can write to etcd, so sizes are bounded.
constexpr std::size_t kMostNodes = 1U << 16;
constexpr codec::JsonLimits kLimits{.bytes = 4U << 20};
constexpr std::size_t kMostDigits = 18;
constexpr std::array<std::pair<Status, const char*>, 5> kNames = {{{Status::setup, "setup"},
                                                                   {Status::joinable, "joinable"},
                                                                   {Status::frozen, "frozen"},
                                                                   {Status::final, "final"},
                                                                   {Status::closed, "closed"}}};

Failure nonsense(std::string_view text) {
  return fail(Errc::corrupt, "the rendezvous state makes no sense: '" + printable(text, 100) + "'");
}

std::optional<Status> status_of(const json& value) {
  for (const auto& [status, name] : kNames)
    if (value == name) return status;
  return std::nullopt;
}

// Removes the member from the object and returns the value.
json take(json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return nullptr;
  json value = std::move(*found);
  object.erase(found);
  return value;
}

bool is_version(const json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return !text.empty() && text.size() <= kMostDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool read_keep_alives(const json& value, LegacyState& state) {
  if (value.is_null()) return true;
  if (!value.is_array() || value.size() > state.participants) return false;
  state.keep_alives.reserve(value.size());
  for (const json& key : value) {
    if (!key.is_string()) return false;
    state.keep_alives.push_back(key);
  }
  return true;
}

bool is_short(const json& value) {
  // Messages show the name.
  constexpr std::size_t kLongestName = 1024;
  return value.is_string() && value.get_ref<const std::string&>().size() <= kLongestName;
}

// Reads the attributes of Lockstep's agents. Malformed ones are skipped: the round does not depend
// on them.
void read_agents(const json& value, LegacyState& state) {
  if (!value.is_object()) return;
  for (const auto& [rank, agent] : value.items()) {
    const auto number = parse_int(rank);
    if (!number || *number < 0 || std::cmp_greater_equal(*number, state.participants)) continue;
    if (!agent.is_array() || agent.size() != 2 || !is_short(agent[0]) || !is_short(agent[1]))
      continue;
    state.agents[static_cast<std::size_t>(*number)] = {agent[0], agent[1]};
  }
}

}  // namespace

Result<LegacyState> decode_legacy_state(std::string_view text) {
  json object = codec::parse_json(text, kLimits);
  if (!object.is_object()) return nonsense(text);
  LegacyState state;
  const auto status = status_of(take(object, "status"));
  if (!status) return nonsense(text);
  state.status = *status;
  const json version = take(object, "version");
  const json participants = take(object, "participants");
  if (is_version(version)) state.version = version;
  if (participants.is_array()) state.participants = participants.size();
  // Only a state of a round must have both.
  const bool round = state.status != Status::setup && state.status != Status::closed;
  if (round && (state.version.empty() || !participants.is_array())) return nonsense(text);
  if (state.participants > kMostNodes) return nonsense(text);
  if (!read_keep_alives(take(object, "keep_alives"), state)) return nonsense(text);
  const json waiting = take(object, "num_workers_waiting");
  if (waiting.is_number_unsigned() && waiting < (1U << 30))
    state.waiting = waiting;
  else if (!waiting.is_null())
    return nonsense(text);
  read_agents(take(object, "lockstep"), state);
  // Keep attributes of other versions, to write them back.
  state.rest = codec::print_json(object);
  return state;
}

std::string encode_legacy_state(const LegacyState& state) {
  json object = codec::parse_json(state.rest, kLimits);
  if (!object.is_object()) object = json::object();
  for (const auto& [status, name] : kNames)
    if (status == state.status) object["status"] = name;
  if (!state.version.empty()) {
    object["version"] = state.version;
    object["participants"] = json::array();
    for (std::size_t rank = 0; rank < state.participants; ++rank)
      object["participants"].push_back(rank);
  }
  const bool confirmed = state.status == Status::frozen || state.status == Status::final;
  if (confirmed || !state.keep_alives.empty()) object["keep_alives"] = state.keep_alives;
  if (state.status == Status::final || state.waiting > 0)
    object["num_workers_waiting"] = state.waiting;
  for (const auto& [rank, agent] : state.agents)
    object["lockstep"][std::to_string(rank)] = {agent.host, agent.id};
  // Escapes non-ASCII characters like Python's json.dumps().
  return codec::print_json(object, codec::JsonText::ascii);
}

}  // namespace lockstep::rendezvous::etcd
