// Passes on what an agent prints: to srun first, and from some moment on to a file, as srun may be
// gone with the batch step's node. What srun was given and did not bring into the job's output
// goes into the file too.
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
  // target: our own stdout or stderr, a pipe of Slurm's.
  OutputRelay(io::Loop& loop, int target);

  // The end for the agent; close it once the agent has it.
  Result<io::Fd> open();
  // From now on into this file, which stays the caller's. job_output: where srun's lines went.
  void go_on_in(int file, const std::string& job_output);
  // Nothing more is awaited of the agent.
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
  std::string pending_;  // that srun has not taken yet
  LineHistory history_;
  // Watches go before what they watch.
  std::optional<io::Watch> from_ready_;
  std::optional<io::Watch> target_ready_;
};

}  // namespace lockstep::slurm
