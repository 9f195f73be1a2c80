// Starts one job on all of its hosts, or on none: prepares it everywhere, finds an address of node
// 0 that the others really reach, and lets it go.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "job/job_spec.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

struct JobRequest {
  std::vector<hosts::HostPlace> hosts;  // node 0 first
  std::vector<int> nodes = {};          // the number of each; empty: in their order
  job::JobSpec spec;                    // of all nodes: `node` is set for each
  // More words for `lockstep run`, of each node; before those of the spec.
  std::vector<std::vector<std::string>> words;
  bool needs_endpoint = false;            // --rdzv-endpoint is found out and added
  std::vector<std::string> secrets = {};  // names of variables in spec.env that are never kept
};

struct StartedJob {
  std::vector<std::string> ahead;  // jobs that it waits for; empty: it runs
  std::string endpoint;            // "ADDRESS:PORT"; empty: none was needed
};

// Errors name the host; nothing is left then. canceled: by a signal. Expects the handled signals
// blocked.
Result<StartedJob> start_job(const JobRequest& request);

// The first of node 0's addresses that all others have reached. reached: of the other nodes. Pure.
std::string common_address(const std::vector<std::string>& addresses,
                           const std::vector<std::vector<std::string>>& reached);

}  // namespace lockstep::jobs::on_hosts
