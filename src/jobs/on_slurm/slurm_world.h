// What this machine's jobs of Slurm need from outside: Slurm's programs, clocks, signals and
// standard output. A test gives stand-ins.
#pragma once

#include "base/clock_ms.h"
#include "io/fd.h"
#include "proc/signals.h"
#include "slurm/tools.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>

namespace lockstep::jobs::on_slurm {

struct SlurmWorld {
  using Clock = std::chrono::steady_clock;

  slurm::RunTool run = slurm::run_here;
  slurm::RunTool step = slurm::run_step_here;  // srun inside a running job
  std::function<Clock::time_point()> now = Clock::now;
  std::function<std::int64_t()> unix_ms = lockstep::unix_ms;
  // Waits for a stop signal, at most this long. Returns its number; 0: none came.
  std::function<int(std::chrono::milliseconds)> wait_for_signal = proc::take_stop_signal;
  std::function<void(std::chrono::milliseconds)> sleep = [](std::chrono::milliseconds pause) {
    std::this_thread::sleep_for(pause);
  };
  // Writes bytes to standard output.
  std::function<Status(std::string_view)> print = [](std::string_view bytes) {
    return io::write_all(STDOUT_FILENO, bytes, "standard output");
  };
};

}  // namespace lockstep::jobs::on_slurm
