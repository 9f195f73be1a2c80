// The row of `static`: torchrun's fixed nodes around --master-addr.
#include "launch/backends/rows.h"
#include "launch/launch_config.h"
#include "rendezvous/static_backend/static_backend.h"

#include <fmt/core.h>

#include <array>
#include <utility>

namespace lockstep::launch {
namespace {

using rendezvous::RankOrder;

constexpr std::array kOrders = {RankOrder::node_rank};
constexpr std::array kKeys = {
    ConfKey{.name = "timeout", .otherwise = 900, .least = 0},
    ConfKey{.name = "keep_alive_interval", .otherwise = 5},
    kEntrypointKey,
    ConfKey{.name = "keep_alive_max_attempt", .otherwise = 3},
};

std::unique_ptr<rendezvous::Backend> make(const LaunchConfig& config, BackendParts parts) {
  rendezvous::static_backend::StaticSettings settings;
  settings.master = {config.master_addr, config.master_port};
  settings.run_id = config.run_id;
  settings.node_rank = config.node_rank;
  settings.nodes = config.max_nodes;
  settings.timeout = config.conf.seconds("timeout");
  settings.exit_barrier_timeout = config.exit_barrier_timeout;
  settings.close_timeout = config.leave_timeout;
  settings.heartbeat_interval = config.conf.seconds("keep_alive_interval");
  settings.heartbeat_attempts = static_cast<int>(config.conf.number("keep_alive_max_attempt"));
  settings.offer = std::move(parts.offer);
  return std::make_unique<rendezvous::static_backend::StaticBackend>(parts.loop,
                                                                     std::move(settings));
}

std::string without_host(const LaunchConfig& config) {
  return fmt::format("the job ends with node rank 0: torchrun's store stays at {}",
                     config.master_addr);
}

}  // namespace

constinit const BackendRow kStatic = {
    .name = "static",
    .summary = "fixed nodes around --master-addr, as torchrun's",
    .place = BackendRow::Place::master,
    .default_port = -1,
    .beside_torchrun = true,
    .orders = kOrders,
    .keys = kKeys,
    .without_host = without_host,
    .make = make,
};

}  // namespace lockstep::launch
