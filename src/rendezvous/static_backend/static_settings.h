// Settings of the static backend, from the launch configuration.
#pragma once

#include "rendezvous/backend.h"

#include <chrono>
#include <string>

namespace lockstep::rendezvous::static_backend {

struct StaticSettings {
  StorePlace master;
  std::string run_id;
  int node_rank = 0;
  int nodes = 1;
  std::chrono::milliseconds timeout{900'000};  // for all nodes to come
  std::chrono::seconds exit_barrier_timeout{300};
  std::chrono::milliseconds heartbeat_interval{5'000};
  int heartbeat_attempts = 3;
  std::chrono::milliseconds close_timeout{30'000};
  NodeOffer offer;
};

}  // namespace lockstep::rendezvous::static_backend
