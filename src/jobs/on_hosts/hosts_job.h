// A job on hosts over SSH, or on this machine under a supervisor. A Slurm job on another login host
// is one too: its host answers the same requests.
#pragma once

#include "hosts/command_run.h"
#include "jobs/job.h"
#include "jobs/on_hosts/job_start.h"

#include <functional>
#include <utility>

namespace lockstep::jobs::on_hosts {

// How a job's hosts are asked, and how parts are started there. A test gives stand-ins.
struct HostsWorld {
  hosts::RunCommand run = hosts::over_links();
  std::function<Result<StartedJob>(const JobRequest&)> start = [](const JobRequest& request) {
    return start_job(request);
  };
};

class HostsJob : public Job {
 public:
  explicit HostsJob(KnownJob record, HostsWorld world = {})
      : Job(std::move(record)), world_(std::move(world)) {}
  Result<JobStatus> status() override;
  Result<Explanation> why() override;
  Result<Followed> follow(const FollowOptions& options) override;
  Result<JobStatus> cancel() override;
  Result<Resumed> resume(const std::vector<std::string>& env) override;

 private:
  HostsWorld world_;
};

}  // namespace lockstep::jobs::on_hosts
