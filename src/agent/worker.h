// One worker of the current attempt.
#pragma once

#include "agent/worker_spec.h"
#include "io/loop.h"
#include "logs/capture.h"
#include "proc/spawn.h"

#include <memory>
#include <optional>
#include <string>

namespace lockstep::agent {

struct Worker {
  WorkerSpec spec;
  // Paths of the worker's files. Empty: no such file.
  std::string error_file;
  std::string stdout_log;
  std::string stderr_log;
  std::unique_ptr<logs::Capture> capture;
  std::optional<proc::Child> child;  // nullopt: the process could not be started
  std::unique_ptr<io::Watch> end_watch;

  bool is_alive() const { return child && child->alive(); }
};

}  // namespace lockstep::agent
