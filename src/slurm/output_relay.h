// Forwards an agent's output to srun, and later to a file: srun dies with the batch step's node. At
// the switch, also writes to the file whatever srun accepted but did not bring into the job's
// output.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "slurm/line_history.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::slurm {

class OutputRelay {
 public:
  // target: this process's stdout or stderr, a pipe that Slurm reads.
  OutputRelay(io::Loop& loop, int target);

  // Returns the write end for the agent. Close it once the agent has inherited it, or the relay
  // never sees the end of the output.
  Result<io::Fd> open();
  // Switches to `file`, which the caller keeps open. job_output: path of the file that srun wrote
  // to.
  void go_on_in(int file, const std::string& job_output);
  // Stops waiting for output of the agent.
  void give_up();
  bool is_done() const { return !from_ && pending_.empty(); }

 private:
  void read_some();
  void write_some();
  void write_lines();
  void put(std::string_view bytes);
  void balance();

  io::Loop& loop_;
  int target_;
  int file_ = -1;
  io::Fd from_;
  std::string pending_;  // bytes that srun has not accepted yet
  LineHistory history_;
  // Declared last: watches must be destroyed before the descriptors they watch.
  std::optional<io::Watch> from_ready_;
  std::optional<io::Watch> target_ready_;
};

}  // namespace lockstep::slurm
