// The beginning of a job on hosts: its record in the journal, the hosts, then its plan. A client
// may be killed at each step; another one asks the hosts what has begun.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "jobs/job_book.h"
#include "jobs/on_hosts/hosts_job.h"
#include "jobs/on_hosts/job_start.h"

#include <functional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

struct BeginEvents {
  // The journal has the job, and no host does yet. An error keeps the job from starting.
  std::function<Status(const std::string& job)> recorded = {};
  // All hosts have the job. ahead: the jobs that it waits for.
  std::function<void(const std::vector<std::string>& ahead)> started = {};
};

// Starts the job on all hosts, or on none. The journal may have a record of this id, of an attempt
// on other machines or of a beginning that was cut off: an error brings that record back. Errors as
// of start_job(), and of the journal.
Result<StartedJob> begin(const JobBook& book, JobRequest request, const KnownJob& job,
                         const BeginEvents& events, const HostsWorld& world = {});

// What the hosts of a half-told beginning answered. Pure.
struct BegunParts {
  std::vector<bool> known;  // for each host: it has a record of the job
  bool all_begun = true;
};
// answers: of `host-job status ID`. unavailable: a host gave none.
Result<BegunParts> begun_parts(const std::string& job,
                               const std::vector<hosts::HostEnding>& answers);

// Returns true if all hosts have begun the job, and notes in the journal that the job runs. false:
// the process that started the job was killed in between; the job was canceled on the hosts that
// had a record, and runs nowhere. The journal keeps its record: begin() may start the job again.
// unavailable: a host is silent, and may run the job.
Result<bool> settle_beginning(const JobBook& book, const KnownJob& job,
                              const hosts::RunCommand& run = hosts::over_links());

}  // namespace lockstep::jobs::on_hosts
