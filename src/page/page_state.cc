#include "page/page_state.h"

#include "codec/json.h"

#include <fmt/core.h>

#include <chrono>

namespace lockstep::page {
namespace {

nlohmann::ordered_json attempt_json(const PageAttempt& attempt) {
  nlohmann::ordered_json json{{"number", attempt.number}, {"start_ms", attempt.start_ms},
                              {"end_ms", nullptr},        {"end", nullptr},
                              {"why", attempt.why},       {"nodes", attempt.nodes},
                              {"world", attempt.world},   {"others", attempt.others}};
  if (attempt.end_ms) {
    json["end_ms"] = *attempt.end_ms;
    json["end"] = attempt.end;
  }
  return json;
}

nlohmann::ordered_json nodes_json(const looks::NodeLines& nodes) {
  nlohmann::ordered_json json{
      {"lines", nlohmann::ordered_json::array()}, {"more", nodes.more}, {"silent", nodes.silent}};
  for (const looks::NodeLine& line : nodes.lines)
    json["lines"].push_back({{"node", line.node},
                             {"state", line.state},
                             {"ranks", line.ranks},
                             {"count", line.count},
                             {"doing", line.doing},
                             {"where", line.where},
                             {"quiet_ms", line.quiet_ms}});
  return json;
}

nlohmann::ordered_json goodput_json(const status::Goodput& goodput) {
  nlohmann::ordered_json json{{"share", goodput.share()}, {"seconds", {}}};
  for (std::size_t i = 0; i < status::kPhaseWords.size(); ++i) {
    if (!goodput.knows(static_cast<status::Phase>(i))) continue;
    const std::chrono::duration<double> spent = goodput.of(static_cast<status::Phase>(i));
    json["seconds"][std::string(status::kPhaseWords[i])] = spent.count();
  }
  json["redone_guessed"] = goodput.guesses(status::Phase::redone);
  return json;
}

}  // namespace

std::string state_json(const PageState& state) {
  nlohmann::ordered_json json{{"now_ms", state.now_ms},
                              {"start_ms", state.start_ms},
                              {"version", state.version},
                              {"run_id", state.run_id},
                              {"logs", state.logs},
                              {"restarts", state.restarts},
                              {"ended", nullptr},
                              {"max_restarts", state.max_restarts},
                              {"attempts_total", state.attempts_total},
                              {"events", state.events},
                              {"attempts", nlohmann::ordered_json::array()}};
  if (state.ended) json["ended"] = *state.ended;
  json["goodput"] = goodput_json(state.goodput);
  json["nodes"] = nodes_json(state.nodes);
  for (const PageAttempt& attempt : state.attempts)
    json["attempts"].push_back(attempt_json(attempt));
  std::string text = codec::print_json(json);
  // rows_json() prints the rows. Append its text: to parse it again would cost more than to print.
  text.pop_back();
  return fmt::format("{},\"view\":{}}}", text, looks::rows_json(state.rows));
}

std::string event_frame(std::string_view name, std::string_view data) {
  std::string frame = fmt::format("event: {}\n", name);
  while (true) {
    // A lone '\r' ends a line of an event stream too.
    const std::size_t end = data.find_first_of("\r\n");
    frame += fmt::format("data: {}\n", data.substr(0, end));
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + 1);
  }
  return frame + "\n";
}

}  // namespace lockstep::page
