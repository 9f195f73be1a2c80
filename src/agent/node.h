// This node as it is during all of a job: what was asked of it, and what it is called.
#pragma once

#include "agent/worker_spec.h"
#include "launch/launch_config.h"

#include <chrono>
#include <string>

namespace lockstep::agent {

struct Node {
  const launch::LaunchConfig& config;
  Environment environment;  // of the agent, which workers inherit
  std::string host_name;    // for prefixes of output lines
  std::string name;         // for people
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
};

}  // namespace lockstep::agent
