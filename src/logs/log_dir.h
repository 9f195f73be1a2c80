// The folders of a job's log files, in torchrun's layout:
//   <base>/<run_id>_<8 random>/attempt_<N>/<local_rank>/{stdout.log,stderr.log,error.json}
// filtered_stdout.log and filtered_stderr.log lie beside the local ranks. Without a base, a new
// /tmp/torchelastic_XXXXXXXX is made. Logs are never deleted.
// Without a base and without kept logs there are only error files, one level higher:
//   /tmp/torchelastic_XXXXXXXX/attempt_<N>/<local_rank>/error.json
// Making and removing folders takes a good part of the time of a short job.
#pragma once

#include "base/error.h"
#include "io/fd.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::logs {

// The directory of one attempt. Holds only the path, so it can be copied.
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

  // Makes attempt_<attempt> with one directory per local rank. If that number was used before (a
  // change of nodes keeps the number), makes attempt_<attempt>.2, .3 ... instead.
  Result<AttemptDir> create_attempt(int attempt, int workers);

  // For a job without a single worker: removes everything made by create_run_dir(), including
  // parents.
  void remove_unused() const;
  // Returns whether there is a regular file: a log, an error file, evidence of a hang.
  bool has_files() const;
  // Does the same as remove_unused() at the end of a job, if the directory contains no file.
  void remove_empty() const;

 private:
  friend Result<RunDir> create_run_dir(const std::optional<std::string>& base,
                                       std::string_view run_id);
  friend Result<RunDir> create_error_dir();
  void remove_parents() const;

  std::string path_;
  io::Fd dir_;
  // Parents that did not exist before, outermost first. For error files only: all folders.
  std::vector<std::string> made_;
  bool errors_only_ = false;
};

// Makes the base with its parents, and the run's own directory (0700) in it. '/' and control
// characters in the run id become '_'. If a file is in the way, the error is "log_dir: X is a
// file".
Result<RunDir> create_run_dir(const std::optional<std::string>& base, std::string_view run_id);

// Does the same for a job that keeps no logs.
Result<RunDir> create_error_dir();

}  // namespace lockstep::logs
