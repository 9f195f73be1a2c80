// Failures in the form that nodes exchange at the end of a job (failure_report.h).
#include "agent/failure_json.h"
#include "agent/failure_report.h"
#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::agent {
namespace {

using nlohmann::ordered_json;

// A node's whole report. Thousands of nodes send theirs to one place.
constexpr std::size_t kMostBytes = 64U << 10;
// Limits for a peer's text: refuse absurd lists before spending memory.
constexpr std::size_t kMostFailures = 4096;
constexpr std::size_t kMostText = 8U << 10;
constexpr std::size_t kMostLine = kMostText + 4;  // " ..."

std::string dump(const ordered_json& json) {
  return codec::print_json(json);
}

void shorten(ordered_json& text) {
  std::string whole = text.get<std::string>();
  if (whole.size() <= kMostText) return;
  whole.resize(kMostText);
  text = whole + " ...";
}

std::string text_of(const ordered_json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// Makes peer text safe for one line of a terminal: no line breaks, no escape sequences. Tabs stay.
std::string one_line(std::string_view text) {
  std::vector<std::string> pieces = split(text.substr(0, kMostLine), '\t');
  for (std::string& piece : pieces)
    piece = printable(piece, kMostLine);
  return join(pieces, "\t");
}

// Values from a peer may be missing or of the wrong type. They become 0 instead of failing the
// whole report.
std::int64_t number_of(const ordered_json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

int small_number_of(const ordered_json& json, const char* key) {
  return static_cast<int>(std::clamp<std::int64_t>(number_of(json, key), -INT32_MAX, INT32_MAX));
}

std::vector<std::string> texts_of(const ordered_json& json, const char* key) {
  std::vector<std::string> texts;
  const auto at = json.find(key);
  if (at == json.end() || !at->is_array()) return texts;
  texts.reserve(at->size());
  for (const auto& text : *at)
    if (text.is_string()) texts.push_back(one_line(text.get<std::string>()));
  return texts;
}

WorkerFailure failure_of(const ordered_json& json) {
  WorkerFailure failure;
  failure.global_rank = small_number_of(json, "rank");
  failure.local_rank = small_number_of(json, "local_rank");
  failure.host = one_line(text_of(json, "host"));
  failure.pid = small_number_of(json, "pid");
  // A negative code stands for a signal. Real codes never leave this range.
  failure.exit_code = std::clamp(small_number_of(json, "exit_code"), -255, 255);
  failure.seen_ms = number_of(json, "time_ms");
  const auto after = json.find("after_stop");
  failure.after_stop = after != json.end() && after->is_boolean() && after->get<bool>();
  failure.stdout_log = one_line(text_of(json, "stdout_log"));
  failure.stderr_log = one_line(text_of(json, "stderr_log"));
  if (auto file = one_line(text_of(json, "error_file")); !file.empty()) {
    failure.error_file = std::move(file);
    ErrorRecord record;
    record.form =
        text_of(json, "form") == "plain" ? ErrorRecord::Form::plain : ErrorRecord::Form::structured;
    record.text = text_of(json, "message");
    record.time_ms = failure.seen_ms;
    failure.error = std::move(record);
  }
  failure.stderr_tail = texts_of(json, "stderr_tail");
  failure.tail_holds_stdout = text_of(json, "tail") == "output";
  failure.notes = texts_of(json, "notes");
  failure.others = texts_of(json, "others");
  return failure;
}

}  // namespace

std::string failures_json(const FailureReport& report) {
  ordered_json list = ordered_json::array();
  for (const auto& failure : report.failures) {
    ordered_json entry = failure_as_json(failure);
    // Decide here which failure is a consequence: only this node's clock compares with the time of
    // its own stop.
    entry["after_stop"] = is_consequence(report, failure);
    if (failure.error && failure.error->form == ErrorRecord::Form::plain) entry["form"] = "plain";
    if (failure.tail_holds_stdout) entry["tail"] = "output";
    shorten(entry["message"]);
    for (auto& line : entry["stderr_tail"])
      shorten(line);
    list.push_back(std::move(entry));
  }
  std::string text = dump(list);
  // Too long: drop stderr tails first, from the latest failure to the earliest. The first failures
  // matter most.
  for (auto entry = list.rbegin(); text.size() > kMostBytes && entry != list.rend(); ++entry) {
    (*entry)["stderr_tail"] = ordered_json::array();
    text = dump(list);
  }
  // Still too long: drop the latest failures, half of them at a time.
  while (text.size() > kMostBytes && list.size() > 1) {
    const auto kept = static_cast<std::ptrdiff_t>(list.size() / 2 + list.size() % 2);
    list.erase(list.begin() + kept, list.end());
    text = dump(list);
  }
  return text;
}

Result<std::vector<WorkerFailure>> parse_failures(std::string_view text) {
  const auto list = codec::parse_ordered_json(text);
  if (!list.is_array() || list.size() > kMostFailures)
    return fail(Errc::corrupt, "not a list of failures");
  std::vector<WorkerFailure> failures;
  failures.reserve(list.size());
  for (const auto& entry : list) {
    if (!entry.is_object()) return fail(Errc::corrupt, "a failure is not an object");
    failures.push_back(failure_of(entry));
  }
  return failures;
}

}  // namespace lockstep::agent
