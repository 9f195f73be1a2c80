// Serves the health check and the metrics of this node over HTTP.
#include "agent/health_port.h"

#include "base/log.h"
#include "host/port_owner.h"

#include <utility>

namespace lockstep::agent {

std::unique_ptr<http::Server> open_health_port(io::Loop& loop, std::optional<std::uint16_t> port,
                                               std::function<JobView()> view,
                                               std::function<looks::NodeRows()> rows) {
  if (!port) return nullptr;
  http::Handlers handlers;
  handlers["/health"] = [view](const http::Request&) { return health_of(view()); };
  handlers["/metrics"] = [view = std::move(view),
                          rows = std::move(rows)](const http::Request& request) {
    return metrics_answer(view(), rows(), request);
  };
  // Listen on every interface: a user who sets the port wants a probe from outside, such as a
  // kubelet's.
  auto server = http::Server::listen(loop, "", *port, std::move(handlers));
  if (server) return std::move(*server);
  Error error = std::move(server).error();
  host::name_port_holder(error, *port);
  // The job does not need its health port: a taken port is a warning.
  log::warning("no health check is served: {}", error.message);
  return nullptr;
}

}  // namespace lockstep::agent
