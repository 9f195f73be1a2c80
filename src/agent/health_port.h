// /health and /metrics of this node, where the environment asks for them
// (TORCHELASTIC_HEALTH_CHECK_PORT).
#pragma once

#include "agent/job_view.h"
#include "http/server.h"
#include "io/loop.h"

#include <functional>
#include <memory>

namespace lockstep::agent {

// view: asked for each request. nullptr: nobody asked for it, or it can't be served, which is said;
// the job does not depend on being watched.
std::unique_ptr<http::Server> open_health_port(io::Loop& loop, const Environment& environment,
                                               std::function<JobView()> view);

}  // namespace lockstep::agent
