// Follows a job on all of its hosts from the client: prints what it says, comes back at the very
// byte to a host whose connection was cut or whose follower died, and says how the job ended.
#pragma once

#include "base/error.h"
#include "hosts/log_lines.h"
#include "job/job_spec.h"
#include "jobs/job_book.h"
#include "jobs/job_ending.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

struct FollowRequest {
  enum class OnStop {
    cancel,  // Ctrl-C ends the job; SIGHUP leaves it
    leave,   // it goes on
  };
  jobs::KnownJob job;
  OnStop on_stop = OnStop::leave;
  bool print = true;
  bool to_end = true;                      // false: what there is now
  bool json = false;                       // lines as objects, of both outputs on stdout
  bool fold = false;                       // equal lines of several ranks as one, for people
  std::optional<std::int64_t> lines = {};  // only the last so many of each output
  std::optional<std::int64_t> rank = {};   // only lines of this rank
  // Whether hosts that are away are gone for good: rented machines. Asked now and then, on a thread
  // of its own; then nothing more is waited for.
  std::function<bool()> gone = {};
};

struct JobOutcome {
  bool left = false;  // by a signal, before the end
  int signal = 0;     // which one
  bool gone = false;  // a host will not come back
  // Then: for how long nothing can have been heard of all of them, sleep included.
  std::chrono::milliseconds silent{0};
  // The record that each host told at the end; nullopt: the host was not reached, or knows no such
  // job. Unless `left` or `gone`, the job has ended on at least one host, or is lost on all.
  std::vector<std::optional<job::JobRecord>> nodes;
  // Hosts whose output is missing or incomplete.
  std::vector<std::string> missing = {};
};

// Returns once the hosts' own records say that the job has ended or is lost, or by a signal; where
// a follower on a host ends and the record there says otherwise, it is started again. Expects the
// handled signals blocked.
Result<JobOutcome> follow_job(const FollowRequest& request);

}  // namespace lockstep::jobs::on_hosts
