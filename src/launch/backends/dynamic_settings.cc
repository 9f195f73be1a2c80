#include "launch/backends/dynamic_settings.h"

#include "launch/launch_config.h"

#include <utility>

namespace lockstep::launch {
namespace {

rendezvous::dynamic::DynamicSettings dynamic_settings(const LaunchConfig& config) {
  rendezvous::dynamic::DynamicSettings dynamic;
  dynamic.min_nodes = static_cast<std::size_t>(config.min_nodes);
  dynamic.max_nodes = static_cast<std::size_t>(config.max_nodes);
  dynamic.join_timeout = config.conf.seconds("join_timeout");
  dynamic.last_call_timeout = config.conf.seconds("last_call_timeout");
  dynamic.close_timeout = config.conf.seconds("close_timeout");
  dynamic.heartbeat_timeout = config.conf.seconds("heartbeat_timeout");
  dynamic.keep_alive_interval = config.conf.seconds("keep_alive_interval");
  dynamic.keep_alive_max_attempt = static_cast<int>(config.conf.number("keep_alive_max_attempt"));
  dynamic.order = config.rank_order;
  return dynamic;
}

}  // namespace

std::unique_ptr<rendezvous::Backend> make_dynamic(
    const LaunchConfig& config, std::unique_ptr<rendezvous::dynamic::MeetingPlace> place,
    BackendParts parts) {
  rendezvous::dynamic::DynamicBackendSettings settings;
  settings.run_id = config.run_id;
  settings.dynamic = dynamic_settings(config);
  settings.read_timeout = config.conf.seconds("read_timeout");
  settings.exit_barrier_timeout = config.exit_barrier_timeout;
  settings.offer = std::move(parts.offer);
  return std::make_unique<rendezvous::dynamic::DynamicBackend>(
      parts.loop, std::move(place), std::move(settings), std::move(parts.offer_store));
}

}  // namespace lockstep::launch
