// The record of a sweep's rows on one host: a line of JSON for each beginning and each end of a
// row, in the file rows.jsonl. The file outlives the process that writes it. Pure.
#pragma once

#include "base/error.h"
#include "codec/json.h"
#include "rows/last_step.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rows {

enum class RowState {
  running,  // begun, without a recorded end
  done,     // exit code 0
  failed,
  lost,  // begun by a runner that is gone, without a recorded end
};

struct RowRecord {
  std::size_t row = 0;
  RowState state = RowState::running;
  int tries = 1;                           // how often the row has begun on this host
  std::int64_t began_ms = 0;               // Unix time, of the last try
  std::int64_t ended_ms = 0;               // 0: not yet
  int code = 0;                            // exit code as in a shell, once the row has ended
  std::string last_line = {};              // why a failed row failed, in one line
  std::optional<LastStep> last_step = {};  // of an ended row
};

// A runner begins: rows of an earlier runner without an end are lost.
std::string run_line(std::int64_t now_ms);
std::string begin_line(std::size_t row, std::int64_t now_ms);
std::string end_line(std::size_t row, int code, std::int64_t now_ms, const std::string& last_line,
                     const std::optional<LastStep>& step = {});

// Reads the whole file: a record for each begun row, in the order of their numbers. Skips lines
// that are cut or have another form: the machine may have died while one was written.
std::vector<RowRecord> read_book(std::string_view text);

nlohmann::ordered_json to_json(const std::vector<RowRecord>& records);
// Reads what to_json() wrote on a host. corrupt: anything else.
Result<std::vector<RowRecord>> records_from_json(const nlohmann::json& json);

struct Table;
// Returns the report of a sweep (docs/sweep.md): the counts, and each of the rows. code: the exit
// code of the whole.
nlohmann::ordered_json report_json(const Table& table, const std::vector<std::size_t>& rows,
                                   const std::vector<RowRecord>& records, int code);

// The rows of one host by their states, each list in rising order.
struct RowSets {
  std::vector<std::size_t> done = {};
  std::vector<std::size_t> running = {};
  std::vector<std::size_t> failed = {};
  std::vector<std::size_t> lost = {};

  friend bool operator==(const RowSets&, const RowSets&) = default;
};
RowSets sets_of(const std::vector<RowRecord>& records);

// Returns the line that says why a row failed, out of its failure report (docs/report.md).
std::string last_line_of(const nlohmann::json& report, int code);

}  // namespace lockstep::rows
