// Reads and writes the rendezvous state, for tests against real PyTorch: one line in, one line out.
//   state_tool decode   base64 -> JSON           state_tool encode   JSON -> base64
//   state_tool recode   base64 -> base64
//   state_tool step     {"state": base64, "node": .., "op": .., ..} -> {"kind": .., "state": JSON},
//                       what the state machine does next under torchrun's rules
// A failure prints "error: CODE: text". Times are microseconds since 1970, nodes [addr, pid, id].
#include "rendezvous/dynamic/dynamic_state.h"
#include "rendezvous/dynamic/state_codec.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

namespace {
using namespace lockstep;              // NOLINT
using namespace lockstep::rendezvous;  // NOLINT
using nlohmann::json;

dynamic::UtcTime time_of(const json& micros) {
  return dynamic::UtcTime(std::chrono::microseconds(micros.get<std::int64_t>()));
}
std::int64_t micros(dynamic::UtcTime time) {
  return time.time_since_epoch().count();
}
Node node_of(const json& parts) {
  return {parts.at(0), parts.at(1), parts.at(2)};
}
json to_json(const Node& node) {
  return {node.addr, node.pid, node.local_id};
}

json to_json(const dynamic::RendezvousState& state) {
  json made = {{"round", state.round}, {"complete", state.complete}, {"closed", state.closed}};
  made["deadline"] = state.deadline ? json(micros(*state.deadline)) : json();
  for (const char* list :
       {"participants", "wait_list", "redundancy_list", "last_heartbeats", "unknown"})
    made[list] = json::array();
  for (const auto& [node, rank] : state.participants)
    made["participants"].push_back({to_json(node), rank});
  for (const auto& node : state.wait_list)
    made["wait_list"].push_back(to_json(node));
  for (const auto& node : state.redundancy_list)
    made["redundancy_list"].push_back(to_json(node));
  for (const auto& [node, time] : state.last_heartbeats)
    made["last_heartbeats"].push_back({to_json(node), micros(time)});
  for (const auto& [name, value] : state.unknown)
    made["unknown"].push_back(name);
  if (state.completion) made["completion"] = {state.completion->round, state.completion->world};
  return made;
}

dynamic::RendezvousState state_of(const json& from) {
  dynamic::RendezvousState state;
  state.round = from.at("round");
  state.complete = from.at("complete");
  state.closed = from.at("closed");
  if (!from.at("deadline").is_null()) state.deadline = time_of(from.at("deadline"));
  for (const json& item : from.at("participants"))
    state.participants[node_of(item.at(0))] = item.at(1);
  for (const json& item : from.at("wait_list"))
    state.wait_list.insert(node_of(item));
  for (const json& item : from.at("redundancy_list"))
    state.redundancy_list.insert(node_of(item));
  for (const json& item : from.at("last_heartbeats"))
    state.last_heartbeats[node_of(item.at(0))] = time_of(item.at(1));
  if (from.contains("completion"))
    state.completion = dynamic::Completion{from["completion"].at(0), from["completion"].at(1)};
  return state;
}

Result<std::string> step(const json& asked) {
  LOCKSTEP_TRY_ASSIGN(const dynamic::RendezvousState stored,
                      dynamic::decode_state(asked.at("state").get<std::string>()));
  dynamic::DynamicSettings settings;
  settings.min_nodes = asked.at("min");
  settings.max_nodes = asked.at("max");
  settings.exact = true;
  const std::string name = asked.at("op");
  const dynamic::Op op = name == "join"    ? dynamic::Op::join
                         : name == "leave" ? dynamic::Op::leave
                         : name == "close" ? dynamic::Op::close
                                           : dynamic::Op::keep_alive;
  const dynamic::Period allowed = op == dynamic::Op::close        ? settings.close_timeout
                                  : op == dynamic::Op::keep_alive ? settings.heartbeat_timeout
                                                                  : settings.join_timeout;
  const dynamic::Now now{time_of(asked.at("now")), dynamic::SteadyTime(std::chrono::hours(24))};
  const dynamic::Period left(asked.at("time_left").get<std::int64_t>());
  dynamic::DynamicMember member(node_of(asked.at("node")), settings);
  member.begin(op, {now.wall, now.steady + left - allowed});
  if (op == dynamic::Op::join) (void)member.next({}, now);  // past leaving the round before
  const dynamic::Step next = member.next(stored, now);
  constexpr const char* kKinds[] = {"done",      "write",  "wait",
                                    "timed_out", "closed", "graceful_exit"};
  return json{{"kind", kKinds[static_cast<int>(next.kind)]}, {"state", to_json(next.state)}}.dump();
}

Result<std::string> answer(const std::string& mode, const std::string& line) {
  if (mode == "encode") return dynamic::encode_state(state_of(json::parse(line)));
  if (mode == "step") return step(json::parse(line));
  LOCKSTEP_TRY_ASSIGN(const dynamic::RendezvousState state, dynamic::decode_state(line));
  return mode == "decode" ? to_json(state).dump() : dynamic::encode_state(state);
}
}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "decode";
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto text = answer(mode, line);
    if (text) {
      std::cout << *text << '\n';
    } else {
      std::cout << "error: " << (text.error().code == Errc::corrupt ? "corrupt" : "refused") << ": "
                << text.error().message << '\n';
    }
  }
  return 0;
}
