// A Slurm job on another login host, which answers the requests about jobs on hosts.
#pragma once

#include "jobs/on_hosts/hosts_job.h"
#include "jobs/on_slurm/slurm_agents.h"
#include "jobs/on_slurm/slurm_submit.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::on_slurm {

class LoginJob : public on_hosts::HostsJob {
 public:
  LoginJob(KnownJob record, SlurmPlace place, on_hosts::HostsWorld world = {})
      : HostsJob(std::move(record), std::move(world)), place_(std::move(place)) {}
  PlaceFacts facts() const override;
  // The login host explains the job: Slurm and the job's folder are there.
  Result<Explanation> why() override;
  // The login host asks the nodes, and leads on to the node of the page.
  Result<std::vector<PageThere>> page(int node) override;
  std::chrono::seconds pause() const override { return kPauseOfAgents; }
  // Always invalid_input: Slurm itself queues jobs again.
  Result<Resumed> resume(const std::vector<std::string>& env) override;

 private:
  // Returns what `host-job VERB ID MORE...` prints there. unavailable: the login host is not
  // reached. not_found: the login host refuses, in its own words.
  Result<std::string> ask_login(const std::string& verb, const std::vector<std::string>& more = {});

  SlurmPlace place_;
};

}  // namespace lockstep::jobs::on_slurm
