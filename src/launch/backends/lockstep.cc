// The row of `lockstep`: Lockstep's rendezvous at a hub hosted by an agent.
#include "launch/backends/concat.h"
#include "launch/backends/hub_settings.h"
#include "launch/backends/rows.h"
#include "launch/launch_config.h"
#include "rendezvous/host_finder.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::launch {
namespace {

constexpr auto kKeys = concat(
    kHubKeys, std::array{ConfKey{.name = "is_host", .type = ConfKey::Type::flag},
                         ConfKey{.name = "succession_timeout", .otherwise = 30, .least = 0}});

// Returns whether the endpoint is the first node of the scheduler, and this node's place is known.
bool placed_by_scheduler(const LaunchConfig& config) {
  const auto origin = config.origins.find("rdzv-endpoint");
  const std::size_t nodes = config.scheduler_hosts.size();
  return origin != config.origins.end() && origin->second.kind == Origin::Kind::scheduler &&
         config.node_rank_given && nodes >= 2 && static_cast<std::size_t>(config.node_rank) < nodes;
}

// Returns whether the nodes learn from the hub where another node may host it. The user gave one
// endpoint that other machines can reach. Two nodes gain nothing by a successor (ledger.h).
bool learns_hosts(const LaunchConfig& config) {
  return config.rdzv_endpoints.size() == 1 && !placed_by_scheduler(config) &&
         config.max_nodes + config.spares > 2 && survives_a_loss(config) &&
         config.conf.seconds("succession_timeout").count() > 0 &&
         rendezvous::listening_place(config.rdzv_endpoints.front().host).empty();
}

// Lists where another node may host the hub after the first is lost: the user's endpoints, or all
// nodes of the scheduler at the same port.
void list_hosts(const LaunchConfig& config, rendezvous::hub::HubSettings& settings) {
  if (config.rdzv_endpoints.size() > 1) {
    settings.hosts = config.rdzv_endpoints;
  } else if (learns_hosts(config)) {
    settings.learns_hosts = true;
  } else {
    if (!placed_by_scheduler(config)) return;
    settings.place = static_cast<std::uint32_t>(config.node_rank);
    for (const std::string& host : config.scheduler_hosts)
      settings.hosts.push_back({host, settings.endpoint.port});
  }
  settings.succession_patience = config.conf.seconds("succession_timeout");
  // After a cut between two nodes the node without the hub may have no quorum. The search then
  // lasts as long as with one endpoint, so the job goes on when the network heals.
  const bool two = config.max_nodes + config.spares == 2 && config.rdzv_endpoints.size() == 2;
  if (two && !config.conf.given("succession_timeout"))
    settings.succession_patience = settings.join_timeout;
  // With a successor at hand, notice a lost host sooner, unless the user set the times. A job that
  // no loss leaves running gains nothing, and would end at a short stall of the network.
  if (!survives_a_loss(config)) return;
  if (config.conf.given("keep_alive_interval") || config.conf.given("keep_alive_max_attempt"))
    return;
  settings.keep_alive_interval = std::chrono::milliseconds(500);
  settings.keep_alive_max_attempt = 5;
}

std::string without_host(const LaunchConfig& config) {
  const std::string& first = config.rdzv_endpoints.at(0).host;
  // The quorum's rule (ledger.h): half of the nodes decide only together with the host.
  if (config.max_nodes + config.spares <= 2)
    return fmt::format(
        "the job ends with {}: of two nodes only the host goes on alone (two hosts of run --on "
        "have a witness)",
        first);
  if (config.conf.seconds("succession_timeout").count() == 0)
    return fmt::format("the job ends with {}: succession_timeout is 0", first);
  if (learns_hosts(config))
    return "from the first round on another node hosts, if more than half of the nodes are left";
  if (config.rdzv_endpoints.size() < 2 && !placed_by_scheduler(config))
    return fmt::format("the job ends with {}, the only node listed as a host", first);
  return "the next listed node hosts, if more than half of the nodes are left";
}

std::unique_ptr<rendezvous::Backend> make(const LaunchConfig& config, BackendParts parts) {
  io::Loop& loop = parts.loop;
  return std::make_unique<rendezvous::hub::HubBackend>(loop,
                                                       lockstep_settings(config, std::move(parts)));
}

}  // namespace

rendezvous::hub::HubSettings lockstep_settings(const LaunchConfig& config, BackendParts parts) {
  rendezvous::hub::HubSettings settings = hub_settings(config, std::move(parts));
  settings.endpoint = config.rdzv_endpoints.at(0);
  settings.is_host = config.conf.flag("is_host");
  list_hosts(config, settings);
  return settings;
}

constinit const BackendRow kLockstep = {
    .name = "lockstep",
    .summary = "our own, at a hub that one of the agents hosts; a token may protect it",
    .default_port = rendezvous::hub::kHubPort,
    .most_endpoints = rendezvous::hub::kMostHosts,
    .takes_token = true,
    .orders = kHubOrders,
    .keys = kKeys,
    .without_host = without_host,
    .make = make,
};

}  // namespace lockstep::launch
