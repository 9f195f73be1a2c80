#include "rows/row_book.h"

#include "base/last_line.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "rows/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::rows {
namespace {

// A host's book may be damaged or forged, so its texts and numbers are bounded.
constexpr std::size_t kMostLine = 8192;
constexpr std::size_t kMostLast = 300;
constexpr std::int64_t kMostTries = 1'000'000;
constexpr std::int64_t kMostStep = 1'000'000'000'000'000;
// The end of the year 9999: dates have no room for a later time.
constexpr std::int64_t kMostMs = 253'402'300'800'000;

std::int64_t bounded(const nlohmann::json& json, const char* name, std::int64_t most) {
  if (!json.contains(name) || !json[name].is_number_integer()) return 0;
  return std::clamp<std::int64_t>(json[name].get<std::int64_t>(), 0, most);
}

std::optional<std::size_t> row_of(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("row") || !json["row"].is_number_unsigned()) return {};
  const auto row = json["row"].get<std::uint64_t>();
  if (row >= kMostRows) return {};
  return static_cast<std::size_t>(row);
}

void take_end(const nlohmann::json& json, RowRecord& record) {
  record.ended_ms = bounded(json, "ended_ms", kMostMs);
  record.code = static_cast<int>(bounded(json, "code", 255));
  record.last_line = printable(codec::text_member(json, "last_line"), kMostLast);
  if (json.contains("step"))
    record.last_step =
        LastStep{.step = bounded(json, "step", kMostStep),
                 .line = printable(codec::text_member(json, "step_line"), kMostStepLine)};
  record.state = record.code == 0 ? RowState::done : RowState::failed;
}

template <class Json>
void put_step(const std::optional<LastStep>& step, Json& json) {
  if (!step) return;
  json["step"] = step->step;
  json["step_line"] = step->line;
}

}  // namespace

std::string run_line(std::int64_t now_ms) {
  return codec::print_json(nlohmann::ordered_json{{"run_ms", now_ms}}) + "\n";
}

std::string begin_line(std::size_t row, std::int64_t now_ms) {
  return codec::print_json(nlohmann::ordered_json{{"row", row}, {"began_ms", now_ms}}) + "\n";
}

std::string end_line(std::size_t row, int code, std::int64_t now_ms, const std::string& last_line,
                     const std::optional<LastStep>& step) {
  nlohmann::ordered_json json{{"row", row}, {"ended_ms", now_ms}, {"code", code}};
  if (!last_line.empty()) json["last_line"] = printable(last_line, kMostLast);
  put_step(step, json);
  return codec::print_json(json) + "\n";
}

std::vector<RowRecord> read_book(std::string_view text) {
  std::map<std::size_t, RowRecord> rows;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // a line that was cut
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.size() > kMostLine) continue;
    const nlohmann::json json = codec::parse_json(line);
    // Each runner writes this line first. A row that was running then has lost its process.
    if (json.is_object() && json.contains("run_ms"))
      for (auto& [number, record] : rows)
        if (record.state == RowState::running) record.state = RowState::lost;
    const auto row = row_of(json);
    if (!row) continue;
    if (json.contains("began_ms")) {
      // The end of an earlier try no longer counts once the row begins again.
      const auto known = rows.find(*row);
      const int tries = known == rows.end() ? 0 : known->second.tries;
      rows[*row] = {
          .row = *row, .tries = tries + 1, .began_ms = bounded(json, "began_ms", kMostMs)};
    } else if (const auto known = rows.find(*row); known != rows.end()) {
      take_end(json, known->second);
    }
  }
  std::vector<RowRecord> records;
  records.reserve(rows.size());
  for (auto& [row, record] : rows)
    records.push_back(std::move(record));
  return records;
}

nlohmann::ordered_json to_json(const std::vector<RowRecord>& records) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RowRecord& record : records) {
    nlohmann::ordered_json json{
        {"row", record.row}, {"tries", record.tries}, {"began_ms", record.began_ms}};
    if (record.state == RowState::lost) json["lost"] = true;
    if (record.state == RowState::done || record.state == RowState::failed) {
      json["ended_ms"] = record.ended_ms;
      json["code"] = record.code;
      put_step(record.last_step, json);
    }
    if (!record.last_line.empty()) json["last_line"] = record.last_line;
    list.push_back(std::move(json));
  }
  return list;
}

Result<std::vector<RowRecord>> records_from_json(const nlohmann::json& json) {
  if (!json.is_array() || json.size() > kMostRows)
    return fail(Errc::corrupt, "a host's list of rows is not readable");
  std::vector<RowRecord> records;
  std::set<std::size_t> seen;
  for (const nlohmann::json& each : json) {
    const auto row = row_of(each);
    if (!row || !seen.insert(*row).second)
      return fail(Errc::corrupt, "a host's list has a row without a number, or one twice");
    RowRecord record{.row = *row,
                     .tries = static_cast<int>(bounded(each, "tries", kMostTries)),
                     .began_ms = bounded(each, "began_ms", kMostMs)};
    if (each.contains("lost")) record.state = RowState::lost;
    if (each.contains("ended_ms")) take_end(each, record);
    records.push_back(std::move(record));
  }
  return records;
}

nlohmann::ordered_json report_json(const Table& table, const std::vector<std::size_t>& rows,
                                   const std::vector<RowRecord>& records, int code) {
  constexpr const char* kStates[] = {"running", "done", "failed", "lost"};
  std::map<std::size_t, nlohmann::ordered_json> known;
  const nlohmann::ordered_json told = to_json(records);
  for (std::size_t i = 0; i < records.size(); ++i) {
    known[records[i].row] = told[i];
    known[records[i].row].erase("lost");  // "state" says it
    known[records[i].row]["state"] = kStates[static_cast<std::size_t>(records[i].state)];
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::map<std::string, std::size_t> counts;
  for (const std::size_t row : rows) {
    nlohmann::ordered_json json{{"row", row}};
    for (std::size_t i = 0; i < table.names.size(); ++i)
      json["values"][table.names[i]] = table.rows[row][i];
    json["state"] = "not begun";
    if (const auto record = known.find(row); record != known.end()) json.update(record->second);
    ++counts[json["state"].get<std::string>()];
    list.push_back(std::move(json));
  }
  nlohmann::ordered_json report{{"code", code}};
  for (const char* state : {"done", "failed", "lost", "not begun"})
    report[state] = counts[state];
  report["rows"] = std::move(list);
  return report;
}

RowSets sets_of(const std::vector<RowRecord>& records) {
  RowSets sets;
  for (const RowRecord& record : records) {
    std::vector<std::size_t>* const of[] = {&sets.running, &sets.done, &sets.failed, &sets.lost};
    of[static_cast<std::size_t>(record.state)]->push_back(record.row);
  }
  return sets;
}

std::string last_line_of(const nlohmann::json& report, int code) {
  const std::string reason = codec::text_member(report, "reason");
  if (!reason.empty()) return printable(reason, kMostLast);
  if (report.is_object() && report.contains("root_cause") && report["root_cause"].is_object()) {
    const nlohmann::json& cause = report["root_cause"];
    for (const std::string& text :
         {codec::text_member(cause, "message"), codec::text_member(cause, "stderr_tail")})
      if (const std::string_view line = last_line(text); !line.empty())
        return printable(line, kMostLast);
    if (cause.contains("stderr_tail") && cause["stderr_tail"].is_array()) {
      const auto lines = codec::texts_member(cause, "stderr_tail");
      // Python prints the exception at the end of a traceback.
      for (auto line = lines.rbegin(); line != lines.rend(); ++line)
        if (!strip(*line).empty()) return printable(strip(*line), kMostLast);
    }
    // The row's code is 1 then, whatever the worker's is.
    if (const auto own = codec::integer_member(cause, "exit_code"); own > 0)
      return fmt::format("a worker ended with exit code {}", own);
  }
  return fmt::format("exit code {}", code);
}

}  // namespace lockstep::rows
