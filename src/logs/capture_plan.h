// Decides the destination of a worker's two streams from -r, -t, the rank filters and the duplicate
// filters. Pure.
#pragma once

#include "logs/console_fold.h"
#include "logs/log_dir.h"
#include "logs/std_spec.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::logs {

class LogFile;

enum class Route {
  inherit,      // the worker writes to the agent's own descriptor
  file,         // to the file only: directly, or through the agent if the file is rotated
  tee,          // to the file, if any, and line by line with a prefix to the console
  passthrough,  // to the console unchanged; the tail is kept for a failure report
  keep,         // not shown; the tail is kept
  discard,      // to /dev/null
};

struct StreamPlan {
  Route route = Route::inherit;
  std::string path;  // log file; empty: none
  // Tee'd lines containing one of these texts are copied to `filtered`, including the prefix.
  std::vector<std::string> filters;
  std::shared_ptr<LogFile> filtered;
  std::uint64_t max_size = 0;  // size at which the file is rotated; 0: never
};

struct CapturePlan {
  StreamPlan out;
  StreamPlan err;
  std::string prefix;  // prefix of tee'd lines, with macros already expanded
  FoldSource source;   // the worker
};

struct CaptureRules {
  StdSpec redirects;
  StdSpec tee;
  // Workers whose output reaches the console, by local rank or by global rank.
  struct Shown {
    std::set<int> local_ranks;
    std::set<int> global_ranks;
  };
  std::optional<Shown> shown;  // nullopt: all
  bool keep_stderr_tail = true;
  bool tag_all = false;  // console output without a prefix gets one, but no log file
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  std::uint64_t max_log_size = 0;

  bool keeps_logs() const;  // in the log directory
};

// The filtered_*.log files of one attempt. Opened if filters are given, even if nothing is tee'd:
// torchrun then leaves an empty file, too.
struct FilteredFiles {
  std::shared_ptr<LogFile> out;
  std::shared_ptr<LogFile> err;
};
Result<FilteredFiles> open_filtered_files(const CaptureRules& rules, const AttemptDir& dir);

// Returns the plan of one worker. dir: nullptr for --log-dir /dev/null. A redirected stream is then
// inherited, as with torchrun, and a tee'd one reaches only the console.
CapturePlan plan_capture(const CaptureRules& rules, const AttemptDir* dir,
                         const FilteredFiles& filtered, int local_rank, int global_rank,
                         std::string prefix);

}  // namespace lockstep::logs
