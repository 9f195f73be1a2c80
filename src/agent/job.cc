// Entry to the agent: checks limits, sets up containment, runs the NodeAgent.
#include "agent/job.h"

#include "agent/node_agent.h"
#include "base/log.h"
#include "io/open_files.h"
#include "proc/containment.h"

#include <utility>

namespace lockstep::agent {
namespace {

// Descriptors that a single-node job needs for itself, measured.
constexpr std::size_t kOwnFiles = 18;

// Descriptors for one worker: the pidfd, a pipe for every captured stream, and a log file for every
// tee'd stream. If stderr has no other destination, the agent reads it for the failure report.
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
  if (config.profile.wanted) ++files;
  // Connections, and viewers of the status page.
  if (config.page.status_page)
    files += http::ServerLimits().connections + page::PageServer::kMostViewers + 1;
  if (config.page.metrics) files += http::ServerLimits().connections + 1;
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
  // "auto" means guardian, the strongest rung that a worker cannot notice. A cgroup shows in
  // /proc/self/cgroup and moves the place where a program looks for its memory limit. A PID
  // namespace shows everywhere.
  return proc::Rung::guardian;
}

}  // namespace

Result<int> run_job(const launch::LaunchConfig& config, bool& reported) {
  // Check before starting anything: running out of descriptors half-way would leave a partly
  // started group.
  LOCKSTEP_TRY(io::check_open_files(files_of_job(config)));
  LOCKSTEP_TRY_ASSIGN(proc::Containment containment,
                      proc::Containment::set_up(rung_of(config.isolation)));
  log::debug("isolation: {}", proc::rung_name(containment.rung()));
  // Never destroyed: the process ends with the job, and the kernel frees memory and descriptors
  // much faster than destructors would one by one.
  static NodeAgent* agent = nullptr;
  agent = new NodeAgent(config, std::move(containment));
  auto code = agent->run();
  reported = agent->has_reported();
  return code;
}

}  // namespace lockstep::agent
