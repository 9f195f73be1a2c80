// Keeps the latest events and answers with them.
#include "status/event_ring.h"

#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::status {
namespace {

// The cost of a line beside its bytes: the deque's element and the heap's head.
constexpr std::size_t kLineCost = 64;
// So many events take a fraction of a millisecond to print, and little memory.
constexpr std::size_t kMostFresh = 32;
constexpr std::size_t kMostRingAnswer = 8UL << 20;
constexpr std::size_t kMostReport = 64UL << 20;
constexpr std::size_t kMostAnswerEvents = 100'000;

// lines: JSON of events, with commas between them.
std::string answer_around(const std::string& agent, const std::string& node, std::int64_t next,
                          bool more, const std::string& lines) {
  const nlohmann::ordered_json head{
      {"agent", agent}, {"node", node}, {"next", next}, {"more", more}};
  std::string text = codec::print_json(head);
  // The kept lines are JSON already: append them instead of parsing them again.
  text.pop_back();
  return text + ",\"events\":[" + lines + "]}";
}

}  // namespace

std::int64_t EventRing::add(JobEvent event) {
  event.number = ++last_;
  fresh_.push_back(std::move(event));
  if (fresh_.size() == kMostFresh) print_fresh();
  return last_;
}

const std::string& EventRing::newest() {
  print_fresh();
  return kept_.back().line;
}

void EventRing::print_fresh() {
  if (fresh_.empty()) return;
  for (const JobEvent& event : fresh_) {
    kept_.push_back({event.number, event.time_ms, job_event_json(event)});
    bytes_ += kept_.back().line.size() + kLineCost;
  }
  fresh_.clear();
  const std::int64_t oldest_ms = kept_.back().time_ms - limits_.age_ms;
  // The newest event stays whatever its size: newest() returns a reference to its line.
  while (kept_.size() > 1 && (bytes_ > limits_.bytes || kept_.front().time_ms < oldest_ms)) {
    bytes_ -= kept_.front().line.size() + kLineCost;
    kept_.pop_front();
  }
}

std::string EventRing::answer(const std::string& agent, const std::string& node, std::int64_t after,
                              std::size_t bytes) {
  print_fresh();
  std::string lines;
  std::int64_t next = after;
  bool more = false;
  for (const Kept& kept : kept_) {
    if (kept.number <= after) continue;
    // A first event above the limit is sent all the same: the reader would ask for it for ever.
    if (!lines.empty() && lines.size() + kept.line.size() > bytes) {
      more = true;
      break;
    }
    lines += (lines.empty() ? "" : ",") + kept.line;
    next = kept.number;
  }
  return answer_around(agent, node, next, more, lines);
}

std::vector<std::string> EventRing::latest(std::size_t most, std::size_t bytes) {
  print_fresh();
  std::size_t from = kept_.size();
  while (from > 0 && kept_.size() - from < most && kept_[from - 1].line.size() <= bytes) {
    --from;
    bytes -= kept_[from].line.size();
  }
  std::vector<std::string> lines;
  lines.reserve(kept_.size() - from);
  for (; from < kept_.size(); ++from)
    lines.push_back(kept_[from].line);
  return lines;
}

// An ended agent does not answer, but its report has the events.
std::optional<std::string> answer_of_report(std::string_view report, std::int64_t after) {
  const auto json = codec::parse_ordered_json(report, {.bytes = kMostReport});
  if (!json.is_object() || !json.contains("events") || !json["events"].is_array())
    return std::nullopt;
  nlohmann::ordered_json answer{{"agent", ""}, {"node", ""}, {"next", after}, {"more", false}};
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const auto& each : json["events"]) {
    const auto event = read_job_event(codec::print_json(each));
    if (!event) continue;
    answer["agent"] = event->agent;
    answer["node"] = event->node;
    if (event->number <= after) continue;
    answer["next"] = event->number;
    events.push_back(each);
  }
  answer["events"] = std::move(events);
  return codec::print_json(answer);
}

bool is_known(const std::vector<EventAnswer>& answers, const EventAnswer& answer) {
  return std::any_of(answers.begin(), answers.end(),
                     [&answer](const EventAnswer& other) { return other.agent == answer.agent; });
}

std::string event_answer_json(const EventAnswer& answer) {
  std::vector<std::string> lines;
  for (const JobEvent& event : answer.events)
    lines.push_back(job_event_json(event));
  return answer_around(answer.agent, answer.node, answer.next, answer.more, join(lines, ","));
}

Result<EventAnswer> read_event_answer(std::string_view text) {
  const auto json =
      codec::parse_json(text, {.bytes = kMostRingAnswer, .depth = 8, .values = 4UL << 20});
  if (!json.is_object() || !json.contains("events") || !json["events"].is_array())
    return fail(Errc::corrupt, "not an answer about events");
  const auto text_of = [&json](const char* name) {
    return json.contains(name) && json[name].is_string() ? printable(json[name].get<std::string>())
                                                         : std::string();
  };
  EventAnswer answer{.agent = text_of("agent"), .node = text_of("node")};
  if (json.contains("next") && json["next"].is_number_integer())
    answer.next = json["next"].get<std::int64_t>();
  answer.more = json.contains("more") && json["more"].is_boolean() && json["more"].get<bool>();
  for (const auto& each : json["events"]) {
    if (answer.events.size() == kMostAnswerEvents) break;
    if (auto event = read_job_event(codec::print_json(each)))
      answer.events.push_back(std::move(*event));
  }
  return answer;
}

}  // namespace lockstep::status
