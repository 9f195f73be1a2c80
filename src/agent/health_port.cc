#include "agent/health_port.h"

#include "base/log.h"
#include "base/text.h"
#include "host/port_owner.h"

#include <utility>

namespace lockstep::agent {

std::unique_ptr<http::Server> open_health_port(io::Loop& loop, const Environment& environment,
                                               std::function<JobView()> view) {
  const auto given = environment.find("TORCHELASTIC_HEALTH_CHECK_PORT");
  if (given == environment.end() || strip(given->second).empty()) return nullptr;
  const auto port = parse_int(given->second);
  if (!port || *port < 0 || *port > 65535) {
    log::warning("TORCHELASTIC_HEALTH_CHECK_PORT={} is no port; no health check is served",
                 printable(given->second));
    return nullptr;
  }
  http::Handlers handlers;
  handlers["/health"] = [view](const http::Request&) { return health_of(view()); };
  handlers["/metrics"] = [view = std::move(view)](const http::Request&) {
    return http::Response{200, std::string(status::kMetricsContentType),
                          status::metrics_text(metrics_of(view()))};
  };
  // Every interface: whoever set the port wants it probed from outside (a kubelet).
  auto server =
      http::Server::listen(loop, "", static_cast<std::uint16_t>(*port), std::move(handlers));
  if (server) return std::move(*server);
  Error error = std::move(server).error();
  host::name_port_holder(error, static_cast<int>(*port));
  log::warning("no health check is served: {}", error.message);
  return nullptr;
}

}  // namespace lockstep::agent
