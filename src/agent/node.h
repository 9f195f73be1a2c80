// Facts about this node that stay the same during a whole job: its configuration, environment and
// names.
#pragma once

#include "agent/worker_spec.h"
#include "launch/launch_config.h"
#include "rendezvous/backend.h"

#include <chrono>
#include <string>

namespace lockstep::agent {

struct Node {
  const launch::LaunchConfig& config;
  Environment environment;  // of the agent; workers inherit it
  std::string host_name;    // for prefixes of output lines
  std::string name;         // for messages
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
};

Node node_of(const launch::LaunchConfig& config);
// Returns the offer that the node makes to the other nodes when it joins.
rendezvous::NodeOffer offer_of(const Node& node);

}  // namespace lockstep::agent
