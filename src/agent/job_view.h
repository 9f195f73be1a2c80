// What those who watch a job see of it: events, metrics and health, made of one value. Decides
// nothing.
#pragma once

#include "agent/failure_report.h"
#include "agent/node.h"
#include "agent/worker.h"
#include "http/server.h"
#include "rendezvous/round.h"
#include "status/events.h"
#include "status/metrics.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::agent {

struct JobView {
  const Node& node;
  const Round& round;  // the last one joined
  std::int64_t attempts = 0;
  int workers_alive = 0;
  int remaining_restarts = 0;
  std::int64_t failures = 0;
  bool healthy = true;  // no stop is under way
};

// Of the node: RENDEZVOUS, ASSIGN_WORKER_RANKS.
status::Event node_event(const JobView& view, const std::string& state);
// Of a worker. failure: why it ended, for FAILED.
status::Event worker_event(const JobView& view, const std::string& state, const Worker& worker,
                           const WorkerFailure* failure = nullptr);
status::Metrics metrics_of(const JobView& view);
http::Response health_of(const JobView& view);

}  // namespace lockstep::agent
