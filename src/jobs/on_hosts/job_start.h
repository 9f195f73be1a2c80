// Starts a job on all hosts, or on none: prepares the job everywhere, finds addresses at which the
// hosts reach each other, and starts the job.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "job/job_spec.h"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

struct JobRequest {
  std::vector<hosts::HostPlace> hosts;  // node 0 first
  std::vector<int> nodes = {};          // node number of each host; empty: in their order
  job::JobSpec spec;                    // for all nodes: `node` is set for each
  // More words for `lockstep run` on each node, before those of the spec.
  std::vector<std::vector<std::string>> words;
  bool mixed_hosts = false;               // allow hosts of different processors
  bool needs_endpoint = false;            // find a value for --rdzv-endpoint and add it
  std::size_t most_endpoints = 1;         // of so many nodes, from node 0 on
  bool client_votes = false;              // this client votes in the rendezvous of two hosts
  std::vector<std::string> secrets = {};  // names of secret variables in spec.env, never kept
};

struct StartedJob {
  std::vector<std::string> ahead;  // jobs ahead in the queue; empty: the job runs
  std::string endpoint;            // "ADDRESS:PORT,ADDRESS:PORT"; empty: none was needed
};

// Starts the job. After an error, which names the host, nothing of the job is left. canceled: by a
// signal. The handled signals must be blocked.
Result<StartedJob> start_job(const JobRequest& request,
                             const hosts::OpenLink& open_link = hosts::host_links(),
                             const hosts::RunCommand& run = hosts::over_links());

}  // namespace lockstep::jobs::on_hosts
