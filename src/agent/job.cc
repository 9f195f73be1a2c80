#include "agent/job.h"

#include "agent/node_agent.h"
#include "base/log.h"
#include "io/open_files.h"
#include "proc/containment.h"

#include <utility>

namespace lockstep::agent {
namespace {

// The least that a job without log files or other nodes gets by with; measured.
constexpr std::size_t kOwnFiles = 18;
constexpr std::size_t kFilesOfAWorker = 2;

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
  LOCKSTEP_TRY(
      io::check_open_files(kOwnFiles + kFilesOfAWorker * static_cast<std::size_t>(config.nproc)));
  LOCKSTEP_TRY_ASSIGN(proc::Containment containment,
                      proc::Containment::set_up(rung_of(config.isolation)));
  log::debug("isolation: {}", proc::rung_name(containment.rung()));
  NodeAgent agent(config, std::move(containment));
  return agent.run();
}

}  // namespace lockstep::agent
