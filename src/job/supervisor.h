// The process above a job on its host, independent of any connection. Talks with the client until
// all hosts are ready, starts `lockstep run`, and records how it ended.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "job/job_files.h"
#include "job/job_spec.h"
#include "job/reach.h"
#include "proc/signal_watch.h"
#include "proc/spawn.h"

#include <sys/resource.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::job {

// Speaks lines of JSON, one object each, over stdin and stdout:
//   client {"prepare": JobSpec}
//   host   {"prepared": {"addresses": [...], "port": N, "secret": S, "let_go": [IDs]}}
//   client {"try": [{"addresses": [...], "port": N, "secret": S}, ...]}    other hosts
//   host   {"reached": [[addresses], ...]}                                 of each of them
//   client {"tried": true}
//   host   {"closed": true}                           the port of "prepared"
//   client {"go": {"words": [...], "after": [IDs]}}   words: more arguments of `lockstep run`
//   host   {"started": PID} or {"queued": [IDs]}
// Instead of any answer the host may send {"refused": TEXT} and end. If the input ends before "go",
// nothing of the job stays on the host.
class Supervisor {
 public:
  Supervisor();
  int run();

 private:
  enum class Phase { talking, queued, running, over };

  void on_input();
  void on_line(std::string_view line);
  Status prepare(const nlohmann::json& request);
  Status try_addresses(const nlohmann::json& request);
  void end_trial();
  Status go(const nlohmann::json& request);
  void say(const nlohmann::ordered_json& answer) const;
  void refuse(const Error& error);
  void hang_up();
  void take_turn();
  // Returns the environment of `lockstep run`.
  Result<std::vector<std::string>> environment() const;
  Status start_run();
  void on_signal(int number);
  void on_end();
  void end(int code);
  void leave();

  io::Loop loop_;
  Phase phase_ = Phase::talking;
  JobSpec spec_;
  PartState state_;
  std::optional<JobFiles> files_;
  std::unique_ptr<ReachedPlace> place_;
  std::unique_ptr<ReachTrial> trial_;
  std::optional<rlimit> open_files_;  // the limit before the trial
  std::optional<proc::Child> child_;
  std::string input_;
  std::unique_ptr<proc::SignalWatch> signals_;
  std::unique_ptr<io::Watch> input_watch_;
  std::unique_ptr<io::Watch> end_watch_;
  io::Timer turn_;  // next look at the queue
};

// Serves `lockstep host-job start`: forks a supervisor into a session of its own, and returns in
// the parent at once.
Result<int> start_supervisor();

}  // namespace lockstep::job
