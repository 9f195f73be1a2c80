// Asks the Python of the ranks for its version, and imports PyTorch in it where that is installed.
#pragma once

#include "io/fd.h"
#include "io/loop.h"
#include "proc/spawn.h"
#include "slurm/preflight.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::slurm {

struct PythonQuestion {
  std::string python = {};                // a path; empty: nothing is asked
  std::vector<std::string> modules = {};  // that must load
};

class PythonProbe {
 public:
  // done: once, from the loop.
  PythonProbe(io::Loop& loop, const PythonQuestion& question, std::function<void()> done);
  // Ends it if it still works.
  ~PythonProbe();
  PythonProbe(const PythonProbe&) = delete;
  PythonProbe& operator=(const PythonProbe&) = delete;

  // As far as it is known.
  const PythonAnswer& answer() const { return answer_; }

 private:
  Status start(const PythonQuestion& question);
  void read();
  void ended();
  void finish();

  io::Loop& loop_;
  std::function<void()> done_;
  PythonAnswer answer_;
  std::string unread_;
  std::string last_line_;
  std::optional<proc::Child> child_;
  io::Fd output_;
  std::unique_ptr<io::Watch> reading_;  // after output_: goes first
  std::unique_ptr<io::Watch> end_;
  io::Timer later_;
};

}  // namespace lockstep::slurm
