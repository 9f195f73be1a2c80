// Where a job's log files lie, as torchrun lays them out:
//   <base>/<run_id>_<8 random>/attempt_<N>/<local_rank>/{stdout.log,stderr.log,error.json}
// with filtered_stdout.log and filtered_stderr.log beside the local ranks. Where no base is given
// it is a fresh /tmp/torchelastic_XXXXXXXX. Logs are never deleted.
// Where no base is given and no log is kept there are error files only, and one level less:
//   /tmp/torchelastic_XXXXXXXX/attempt_<N>/<local_rank>/error.json
// Making and removing directories takes a good part of the time of a short job.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::logs {

// One attempt's directory; paths only, so that it can be copied.
struct AttemptDir {
  std::string path;  // absolute

  std::string worker_dir(int local_rank) const;
  std::string stdout_log(int local_rank) const;
  std::string stderr_log(int local_rank) const;
  std::string error_file(int local_rank) const;
  std::string filtered_stdout() const;
  std::string filtered_stderr() const;
};

class RunDir {
 public:
  const std::string& path() const { return path_; }  // absolute

  // attempt_<attempt>, or attempt_<attempt>.2, .3 ... where that number was used before (a
  // membership change keeps the number), with one directory per local rank.
  Result<AttemptDir> create_attempt(int attempt, int workers);

  // For a job that ran nothing: removes all that create_run_dir() made, the parents too.
  void remove_unused() const;
  // The same at the end of a job, if there is no file in it.
  void remove_empty() const;

 private:
  friend Result<RunDir> create_run_dir(const std::optional<std::string>& base,
                                       std::string_view run_id);
  friend Result<RunDir> create_error_dir();
  void remove_parents() const;

  std::string path_;
  io::Fd dir_;
  // Parents that were not there before, outermost first; for error files only: all.
  std::vector<std::string> made_;
  bool errors_only_ = false;
};

// Checks that create_run_dir(base, ..) has a chance, without creating anything, so that bad input
// leaves no directory behind. Where an existing file is in the way: "log_dir: X is a file".
Status check_log_base(const std::optional<std::string>& base);

// Makes the base with its parents and the run's own directory in it (0700). '/' and other bytes of
// the run id that do not belong in a file name become '_'.
Result<RunDir> create_run_dir(const std::optional<std::string>& base, std::string_view run_id);

// The same for a job that keeps no logs.
Result<RunDir> create_error_dir();

}  // namespace lockstep::logs
