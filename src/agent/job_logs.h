// The log directory of the job, and the destination of each worker's output in an attempt.
#pragma once

#include "agent/node.h"
#include "agent/recorder_folder.h"
#include "base/error.h"
#include "logs/capture_plan.h"
#include "logs/console.h"
#include "logs/log_dir.h"

#include <optional>
#include <string>

namespace lockstep::agent {

class JobLogs {
 public:
  explicit JobLogs(const Node& node);

  // Makes the directory of the job, unless --log-dir is /dev/null. Call after the first round is
  // agreed on: a node that never gets a round leaves no directory behind.
  Status open();
  // Makes the directory of the next attempt.
  Status open_attempt(int restarts);

  // Starts folding equal lines of several workers into one, if the user wants that (--fold). This
  // object's Node must outlive the console.
  void start_folding(logs::Console& console) const;

  // Files and destinations of the current attempt.
  Result<logs::FilteredFiles> open_filtered() const;
  logs::CapturePlan plan(const WorkerSpec& spec, const logs::FilteredFiles& filtered) const;
  std::string error_file(int local_rank) const;  // empty: none
  std::string attempt_dir() const;               // empty: none
  // Where workers dump their flight recorders. nullopt: they are not asked.
  const std::optional<RecorderFolder>& recorder() const { return recorder_; }

  const logs::RunDir* run_dir() const { return run_dir_ ? &*run_dir_ : nullptr; }
  // Removes an unused directory at the end of the job. ran: at least one worker has run.
  void remove_unused(bool ran);

 private:
  void open_recorder();
  void close_recorder();

  const Node& node_;
  logs::CaptureRules rules_;
  std::optional<logs::RunDir> run_dir_;
  std::optional<logs::AttemptDir> attempt_dir_;
  std::optional<RecorderFolder> recorder_;
};

}  // namespace lockstep::agent
