// /health and /metrics of this node on the port that TORCHELASTIC_HEALTH_CHECK_PORT names.
#pragma once

#include "agent/job_view.h"
#include "http/server.h"
#include "io/loop.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace lockstep::agent {

// Opens the port. `view` and `rows` are called for each request. Returns nullptr if no port is
// configured, or if listening fails. A failure is only logged: the job does not depend on being
// watched.
std::unique_ptr<http::Server> open_health_port(io::Loop& loop, std::optional<std::uint16_t> port,
                                               std::function<JobView()> view,
                                               std::function<looks::NodeRows()> rows);

}  // namespace lockstep::agent
