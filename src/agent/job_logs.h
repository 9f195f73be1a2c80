// The log directory of the job, and which way each worker's output goes in an attempt.
#pragma once

#include "agent/node.h"
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

  // Makes the directory of the job, unless --log-dir /dev/null wants none. Not before the first
  // round: a node that never gets one leaves no directory behind.
  Status open();
  // Makes that of the next attempt.
  Status open_attempt(int restarts);

  // Where the user wants it: equal lines of several workers become one. The node must outlive the
  // console.
  void start_folding(logs::Console& console) const;

  // Of the attempt under way.
  Result<logs::FilteredFiles> open_filtered() const;
  logs::CapturePlan plan(const WorkerSpec& spec, const logs::FilteredFiles& filtered) const;
  std::string error_file(int local_rank) const;  // empty: none
  std::string attempt_dir() const;               // likewise

  const logs::RunDir* run_dir() const { return run_dir_ ? &*run_dir_ : nullptr; }
  // At the end of the job. ran: a worker has run at some time.
  void remove_unused(bool ran) const;

 private:
  const Node& node_;
  logs::CaptureRules rules_;
  std::optional<logs::RunDir> run_dir_;
  std::optional<logs::AttemptDir> attempt_dir_;
};

}  // namespace lockstep::agent
