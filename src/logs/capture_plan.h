// Decides where a worker's two streams go, from -r, -t, the rank filters and the duplicate filters.
// Pure.
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
  file,         // to the file alone: directly, or through the agent where the file is rotated
  tee,          // to the file, if there is one, and line by line with the prefix to the console
  passthrough,  // to the console as it comes, the last of it kept for a failure report
  keep,         // shown nowhere, the last of it kept
  discard,      // nowhere
};

struct StreamPlan {
  Route route = Route::inherit;
  std::string path;  // the file; empty: none
  // Tee'd lines that contain any of these are copied, prefix included, to `filtered`.
  std::vector<std::string> filters;
  std::shared_ptr<LogFile> filtered;
  std::uint64_t max_size = 0;  // of the file, before it is rotated; 0: never
};

struct CapturePlan {
  StreamPlan out;
  StreamPlan err;
  std::string prefix;  // of tee'd lines, macros already expanded
  FoldSource source;   // who says it
};

struct CaptureRules {
  StdSpec redirects;
  StdSpec tee;
  // The workers whose output reaches the console, by local rank or by global rank.
  struct Shown {
    std::set<int> local_ranks;
    std::set<int> global_ranks;
  };
  std::optional<Shown> shown;  // nullopt: all
  bool keep_stderr_tail = true;
  bool tag_all = false;  // what would reach the console untagged gets its prefix, and no file
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  std::uint64_t max_log_size = 0;

  bool keeps_logs() const;  // in the log directory
};

// The filtered_*.log of one attempt, opened where filters are given (torchrun leaves an empty file
// when nothing is tee'd).
struct FilteredFiles {
  std::shared_ptr<LogFile> out;
  std::shared_ptr<LogFile> err;
};
Result<FilteredFiles> open_filtered_files(const CaptureRules& rules, const AttemptDir& dir);

// dir: nullptr for --log-dir /dev/null. Then a redirected stream is inherited, as with torchrun,
// and a tee'd one reaches the console alone.
CapturePlan plan_capture(const CaptureRules& rules, const AttemptDir* dir,
                         const FilteredFiles& filtered, int local_rank, int global_rank,
                         std::string prefix);

}  // namespace lockstep::logs
