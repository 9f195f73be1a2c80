// How an attempt of a job on hosts ended, for the process that began or followed the attempt.
#pragma once

#include <chrono>
#include <string>

namespace lockstep::jobs {

struct AttemptEnd {
  int code = 0;       // the exit code
  std::string job;    // the job's id; empty: the job was not started
  bool left = false;  // the job goes on without this process
  bool gone = false;  // a host will not come back
  // With `gone`: how long ago the job may have ended without this process hearing of it.
  std::chrono::milliseconds silent{0};
  bool canceled = false;  // canceled by a person
  // A sweep: each row has an exit code, so a machine that is missing since was needed no more.
  bool rows_ended = false;
  std::string why = {};  // why the job was not started
};

}  // namespace lockstep::jobs
