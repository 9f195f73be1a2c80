// Starts the ranks' Python, asks its version, and imports PyTorch and modules in it.
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
  std::string python = {};                // path of the interpreter; empty: ask nothing
  std::vector<std::string> modules = {};  // modules that must load
};

class PythonProbe {
 public:
  // done: called once, from the loop, never from inside the constructor.
  PythonProbe(io::Loop& loop, const PythonQuestion& question, std::function<void()> done);
  // Kills Python if it still runs, and waits for its end.
  ~PythonProbe();
  PythonProbe(const PythonProbe&) = delete;
  PythonProbe& operator=(const PythonProbe&) = delete;

  // The answer as far as it has come.
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
  std::unique_ptr<io::Watch> reading_;  // declared after output_: destroyed first
  std::unique_ptr<io::Watch> end_;
  io::Timer later_;
};

}  // namespace lockstep::slurm
