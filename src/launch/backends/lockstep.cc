// The row of `lockstep`: our own rendezvous, at a hub that one of the agents hosts.
#include "launch/backends/concat.h"
#include "launch/backends/hub_settings.h"
#include "launch/backends/rows.h"
#include "launch/launch_config.h"

#include <utility>

namespace lockstep::launch {
namespace {

constexpr auto kKeys =
    concat(kHubKeys, std::array{ConfKey{.name = "is_host", .type = ConfKey::Type::flag}});

std::unique_ptr<rendezvous::Backend> make(const LaunchConfig& config, BackendParts parts) {
  io::Loop& loop = parts.loop;
  rendezvous::hub::HubSettings settings = hub_settings(config, std::move(parts));
  settings.endpoint = config.rdzv_endpoints.at(0);
  settings.is_host = config.conf.flag("is_host");
  return std::make_unique<rendezvous::hub::HubBackend>(loop, std::move(settings));
}

}  // namespace

constinit const BackendRow kLockstep = {
    .name = "lockstep",
    .summary = "our own, at a hub that one of the agents hosts; a token may protect it",
    .default_port = rendezvous::hub::kHubPort,
    .takes_token = true,
    .orders = kHubOrders,
    .keys = kKeys,
    .make = make,
};

}  // namespace lockstep::launch
