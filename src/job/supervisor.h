// The process that stands above a job on its host, whoever is connected: it talks with the client
// until all hosts are ready, starts `lockstep run`, and writes down how it ended.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "job/job_files.h"
#include "job/job_spec.h"
#include "job/reach.h"
#include "proc/signal_watch.h"
#include "proc/spawn.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::job {

// Lines of JSON, one object each, over stdin and stdout:
//   client {"prepare": JobSpec}
//   host   {"prepared": {"addresses": [...], "port": N, "secret": S, "let_go": [IDs]}}
//   client {"try": {"addresses": [...], "port": N, "secret": S}}
//   host   {"reached": [addresses]}
//   client {"go": {"words": [...], "after": [IDs]}}    words: more for `lockstep run`
//   host   {"started": PID} or {"queued": [IDs]}
// In place of any answer the host may say {"refused": TEXT} and end. Input that ends before "go"
// leaves nothing here.
class Supervisor {
 public:
  Supervisor();
  int run();

 private:
  enum class Phase { talking, queued, running, over };

  void on_input();
  void on_line(std::string_view line);
  Status prepare(const nlohmann::json& request);
  Status try_addresses(const nlohmann::json& request) const;
  Status go(const nlohmann::json& request);
  void say(const nlohmann::ordered_json& answer) const;
  void refuse(const Error& error);
  void hang_up();
  void take_turn();
  Status start_run();
  void on_signal(int number);
  void on_end();
  void end(int code);
  void leave();

  io::Loop loop_;
  Phase phase_ = Phase::talking;
  JobSpec spec_;
  JobState state_;
  std::optional<JobFiles> files_;
  std::unique_ptr<ReachedPlace> place_;
  std::optional<proc::Child> child_;
  std::string input_;
  std::unique_ptr<proc::SignalWatch> signals_;
  std::unique_ptr<io::Watch> input_watch_;
  std::unique_ptr<io::Watch> end_watch_;
  io::Timer turn_;  // the next look at the queue
};

// `lockstep host-job start`: the supervisor goes on in a session of its own, this process ends.
Result<int> start_supervisor();

}  // namespace lockstep::job
