#include "agent/backend_choice.h"

#include "codec/rdzv_conf.h"
#include "rendezvous/c10d_place.h"
#include "rendezvous/dynamic_backend.h"
#include "rendezvous/file_place.h"
#include "rendezvous/hub_backend.h"
#include "rendezvous/solo.h"
#include "rendezvous/static_backend.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::agent {
namespace {

// Checked by make_launch_config(): whole and positive.
std::chrono::seconds seconds_of(const LaunchConfig& config, const char* key,
                                std::chrono::seconds otherwise) {
  const auto value = codec::rdzv_conf_int(config.rdzv_conf, key);
  return value && *value ? std::chrono::seconds(**value) : otherwise;
}

rendezvous::RankRule rank_rule_of(const LaunchConfig& config) {
  switch (config.rank_order) {
    case RankOrder::host:
      return rendezvous::RankRule::host_first;
    case RankOrder::node_rank:
      return rendezvous::RankRule::node_rank;
    case RankOrder::address:
    case RankOrder::automatic:
      break;
  }
  return rendezvous::RankRule::address;
}

rendezvous::DynamicSettings dynamic_settings_of(const LaunchConfig& config) {
  rendezvous::DynamicSettings dynamic;
  dynamic.min_nodes = static_cast<std::size_t>(config.min_nodes);
  dynamic.max_nodes = static_cast<std::size_t>(config.max_nodes);
  using std::chrono::seconds;
  dynamic.join_timeout = seconds_of(config, "join_timeout", seconds(600));
  dynamic.last_call_timeout = seconds_of(config, "last_call_timeout", seconds(30));
  dynamic.close_timeout = seconds_of(config, "close_timeout", seconds(30));
  dynamic.heartbeat_timeout = seconds_of(config, "heartbeat_timeout", seconds(5));
  dynamic.keep_alive_interval = seconds_of(config, "keep_alive_interval", seconds(5));
  dynamic.keep_alive_max_attempt =
      static_cast<int>(seconds_of(config, "keep_alive_max_attempt", seconds(3)).count());
  dynamic.order = rank_rule_of(config);
  return dynamic;
}

Result<std::unique_ptr<rendezvous::Backend>> make_c10d(io::Loop& loop, const LaunchConfig& config,
                                                       rendezvous::NodeOffer offer,
                                                       rendezvous::OfferStore offer_store) {
  rendezvous::DynamicBackendSettings settings;
  settings.run_id = config.run_id;
  settings.dynamic = dynamic_settings_of(config);
  settings.read_timeout = seconds_of(config, "read_timeout", std::chrono::seconds(60));
  settings.exit_barrier_timeout = config.exit_barrier_timeout;
  settings.offer = std::move(offer);
  if (const auto type = config.rdzv_conf.find("store_type");
      type != config.rdzv_conf.end() && type->second == "file") {
    rendezvous::FilePlaceSettings place{.path = config.rdzv_endpoint,
                                        .run_id = config.run_id,
                                        .local_addr = config.local_addr,
                                        .read_timeout = settings.read_timeout};
    return std::make_unique<rendezvous::DynamicBackend>(
        loop, std::make_unique<rendezvous::FilePlace>(loop, std::move(place)), std::move(settings),
        std::move(offer_store));
  }
  rendezvous::C10dPlaceSettings place;
  place.endpoint = config.rdzv_endpoints.at(0);
  place.run_id = config.run_id;
  LOCKSTEP_TRY_ASSIGN(place.is_host, codec::rdzv_conf_bool(config.rdzv_conf, "is_host"));
  place.local_addr = config.local_addr;
  place.read_timeout = settings.read_timeout;
  return std::make_unique<rendezvous::DynamicBackend>(
      loop, std::make_unique<rendezvous::C10dPlace>(loop, std::move(place)), std::move(settings),
      std::move(offer_store));
}

rendezvous::hub::RankOrder hub_order_of(const LaunchConfig& config) {
  switch (config.rank_order) {
    case RankOrder::node_rank:
      return rendezvous::hub::RankOrder::node_rank;
    case RankOrder::address:
      return rendezvous::hub::RankOrder::address;
    case RankOrder::host:
    case RankOrder::automatic:
      break;
  }
  return rendezvous::hub::RankOrder::host_first;
}

Result<std::unique_ptr<rendezvous::Backend>> make_lockstep(io::Loop& loop,
                                                           const LaunchConfig& config,
                                                           rendezvous::NodeOffer offer,
                                                           rendezvous::OfferStore offer_store) {
  rendezvous::HubSettings settings;
  settings.endpoint = config.rdzv_endpoints.at(0);
  settings.run_id = config.run_id;
  LOCKSTEP_TRY_ASSIGN(settings.is_host, codec::rdzv_conf_bool(config.rdzv_conf, "is_host"));
  settings.local_addr = config.local_addr;
  settings.token = config.rdzv_token;
  settings.min_nodes = static_cast<std::size_t>(config.min_nodes);
  settings.max_nodes = static_cast<std::size_t>(config.max_nodes);
  settings.order = hub_order_of(config);
  settings.offer = std::move(offer);
  settings.offer_store = std::move(offer_store);
  using std::chrono::seconds;
  settings.read_timeout = seconds_of(config, "read_timeout", seconds(60));
  settings.join_timeout = seconds_of(config, "join_timeout", seconds(600));
  settings.last_call_timeout = seconds_of(config, "last_call_timeout", seconds(30));
  settings.close_timeout = seconds_of(config, "close_timeout", seconds(30));
  settings.keep_alive_interval = seconds_of(config, "keep_alive_interval", seconds(1));
  settings.keep_alive_max_attempt =
      static_cast<int>(seconds_of(config, "keep_alive_max_attempt", seconds(5)).count());
  return std::make_unique<rendezvous::HubBackend>(loop, std::move(settings));
}

std::unique_ptr<rendezvous::Backend> make_static(io::Loop& loop, const LaunchConfig& config,
                                                 rendezvous::NodeOffer offer) {
  rendezvous::StaticSettings settings;
  settings.master = {config.master_addr, config.master_port};
  settings.run_id = config.run_id;
  settings.node_rank = config.node_rank;
  settings.nodes = config.max_nodes;
  settings.timeout = seconds_of(config, "timeout", std::chrono::seconds(900));
  settings.exit_barrier_timeout = config.exit_barrier_timeout;
  settings.close_timeout = config.leave_timeout;
  settings.heartbeat_interval = seconds_of(config, "keep_alive_interval", std::chrono::seconds(5));
  settings.heartbeat_attempts = static_cast<int>(
      seconds_of(config, "keep_alive_max_attempt", std::chrono::seconds(3)).count());
  settings.offer = std::move(offer);
  return std::make_unique<rendezvous::StaticBackend>(loop, std::move(settings));
}

}  // namespace

Result<std::unique_ptr<rendezvous::Backend>> make_backend(io::Loop& loop,
                                                          const LaunchConfig& config,
                                                          rendezvous::NodeOffer offer,
                                                          rendezvous::OfferStore offer_store) {
  if (config.max_nodes == 1) {
    const std::string addr =
        config.private_store ? config.local_addr.value_or("127.0.0.1") : config.master_addr;
    return std::make_unique<rendezvous::Solo>(loop, std::move(offer), addr, std::move(offer_store));
  }
  if (config.rdzv_backend == "lockstep")
    return make_lockstep(loop, config, std::move(offer), std::move(offer_store));
  if (config.rdzv_backend == "static") return make_static(loop, config, std::move(offer));
  if (config.rdzv_backend == "c10d")
    return make_c10d(loop, config, std::move(offer), std::move(offer_store));
  return fail(
      Errc::unavailable,
      fmt::format("several nodes over the backend '{}' are not there yet", config.rdzv_backend));
}

}  // namespace lockstep::agent
