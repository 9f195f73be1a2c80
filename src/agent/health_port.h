// /health and /metrics of this node, where a port was asked for.
#pragma once

#include "agent/job_view.h"
#include "http/server.h"
#include "io/loop.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace lockstep::agent {

// view: asked for each request. nullptr: nobody asked for it, or it can't be served, which is said;
// the job does not depend on being watched.
std::unique_ptr<http::Server> open_health_port(io::Loop& loop, std::optional<std::uint16_t> port,
                                               std::function<JobView()> view);

}  // namespace lockstep::agent
