#include "agent/job.h"

#include "agent/node_agent.h"
#include "base/log.h"
#include "io/open_files.h"
#include "proc/containment.h"

#include <utility>

namespace lockstep::agent {
namespace {

// The least that a job without other nodes gets by with; measured.
constexpr std::size_t kOwnFiles = 18;

// The process; for every stream that the agent reads a pipe, and where it is tee'd its log file. A
// standard error that goes nowhere else is read for the failure report.
std::size_t files_of_worker(const launch::LogConfig& logs, int local_rank) {
  const logs::Std tee = logs.tee.of(local_rank);
  const std::size_t teed = logs.disabled ? 1 : 2;
  std::size_t files = 1;
  if (has(tee, logs::Std::out)) files += teed;
  if (has(tee, logs::Std::err))
    files += teed;
  else if (!has(logs.redirects.of(local_rank), logs::Std::err))
    ++files;
  return files;
}

std::size_t files_of_job(const launch::LaunchConfig& config) {
  std::size_t files = kOwnFiles;
  for (int local_rank = 0; local_rank < config.nproc; ++local_rank)
    files += files_of_worker(config.logs, local_rank);
  return files;
}

proc::Rung rung_of(launch::Isolation isolation) {
  switch (isolation) {
    case launch::Isolation::pidns:
      return proc::Rung::pidns;
    case launch::Isolation::cgroup:
      return proc::Rung::cgroup;
    case launch::Isolation::none:
      return proc::Rung::none;
    case launch::Isolation::guardian:
    case launch::Isolation::automatic:
      break;
  }
  // A cgroup shows in /proc/self/cgroup and moves where a program looks for its memory limit; a PID
  // namespace shows everywhere. The guardian is the strongest rung that a worker can't notice.
  return proc::Rung::guardian;
}

}  // namespace

Result<int> run_job(const launch::LaunchConfig& config) {
  LOCKSTEP_TRY(io::check_open_files(files_of_job(config)));
  LOCKSTEP_TRY_ASSIGN(proc::Containment containment,
                      proc::Containment::set_up(rung_of(config.isolation)));
  log::debug("isolation: {}", proc::rung_name(containment.rung()));
  // Nobody destroys it: the process ends with the job, and the kernel takes memory and descriptors
  // back much faster than destructors give them one by one.
  static NodeAgent* agent = nullptr;
  agent = new NodeAgent(config, std::move(containment));
  return agent->run();
}

}  // namespace lockstep::agent
