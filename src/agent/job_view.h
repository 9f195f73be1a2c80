// The state of a job for observers: events, metrics and health are made from one value. Decides
// nothing.
#pragma once

#include "agent/failure_report.h"
#include "agent/node.h"
#include "agent/worker.h"
#include "http/server.h"
#include "rendezvous/round.h"
#include "status/events.h"
#include "status/goodput.h"
#include "status/metrics.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::agent {

struct JobView {
  const Node& node;
  const Round& round;  // the last round joined
  std::int64_t attempts = 0;
  int workers_alive = 0;
  int remaining_restarts = 0;
  std::int64_t failures = 0;
  bool healthy = true;      // false: the workers are being stopped
  status::Goodput goodput;  // of this node
};

// Makes an event of the node: RENDEZVOUS, ASSIGN_WORKER_RANKS.
status::Event node_event(const JobView& view, const std::string& state);
// Makes an event of a worker. failure: the reason of the end, for FAILED; else nullptr.
status::Event worker_event(const JobView& view, const std::string& state, const Worker& worker,
                           const WorkerFailure* failure = nullptr);
// Makes the values of /metrics.
status::Metrics metrics_of(const JobView& view);
// Makes the answer of /metrics. rows: of this node's ranks.
http::Response metrics_answer(const JobView& view, const looks::NodeRows& rows,
                              const http::Request& request);
// Makes the answer of /health: 200 while healthy, 503 while workers are being stopped.
http::Response health_of(const JobView& view);

}  // namespace lockstep::agent
