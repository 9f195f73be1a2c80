// Runs the rows of a sweep on one host: in each slot one `lockstep run` after another, until the
// queue is empty. Records each beginning and each end.
#pragma once

#include "base/error.h"
#include "logs/step_line.h"
#include "rows/row_queue.h"
#include "rows/slots.h"
#include "rows/table.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rows {

// A variable of each row but the first of a host: warnings about the whole job, which would be the
// same for each row, have been printed.
inline constexpr const char* kWarnedBefore = "LOCKSTEP_WARNED";

struct RunnerRequest {
  Table table;
  std::vector<std::size_t> rows = {};  // the rows to run, of all hosts
  std::vector<Slot> slots = {};        // of this host
  QueuePlace queue = {};
  // The folder of rows.jsonl and of each failed row's report, N.json. Made if missing.
  std::string folder = {};
  // Returns the words of a row, without the name of the binary. report: the value of --report.
  std::function<std::vector<std::string>(std::size_t row, const std::string& report)> words = {};
  std::vector<std::string> env = {};               // of all rows, "NAME=value"
  std::optional<logs::StepPattern> progress = {};  // of step lines; nullopt: steps are guessed
};

// Returns 0 if all rows of all hosts have ended well, 1 if one of this host has not or is missing,
// and 128 + N if signal N has stopped this host's rows. The handled signals must be blocked.
Result<int> run_rows(RunnerRequest request);

}  // namespace lockstep::rows
