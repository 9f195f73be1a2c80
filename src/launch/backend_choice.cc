#include "launch/backend_choice.h"

#include "codec/rdzv_conf.h"
#include "rendezvous/dynamic/c10d_place.h"
#include "rendezvous/dynamic/dynamic_backend.h"
#include "rendezvous/dynamic/file_place.h"
#include "rendezvous/etcd/etcd3_backend.h"
#include "rendezvous/etcd/etcd_legacy.h"
#include "rendezvous/etcd/etcd_v2_place.h"
#include "rendezvous/hub/hub_backend.h"
#include "rendezvous/solo.h"
#include "rendezvous/static_backend.h"

#include <algorithm>
#include <utility>

namespace lockstep::launch {
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

Result<std::unique_ptr<rendezvous::MeetingPlace>> make_place(io::Loop& loop,
                                                             const LaunchConfig& config,
                                                             std::chrono::seconds read_timeout) {
  if (config.rdzv_backend == "etcd-v2") {
    rendezvous::EtcdV2PlaceSettings place;
    LOCKSTEP_TRY_ASSIGN(place.access,
                        rendezvous::parse_etcd_access(config.rdzv_endpoint, config.rdzv_conf));
    place.run_id = config.run_id;
    place.local_addr = config.local_addr;
    return std::make_unique<rendezvous::EtcdV2Place>(loop, std::move(place));
  }
  const auto type = config.rdzv_conf.find("store_type");
  if (type != config.rdzv_conf.end() && type->second == "file")
    return std::make_unique<rendezvous::FilePlace>(
        loop, rendezvous::FilePlaceSettings{.path = config.rdzv_endpoint,
                                            .run_id = config.run_id,
                                            .local_addr = config.local_addr,
                                            .read_timeout = read_timeout});
  rendezvous::C10dPlaceSettings place;
  place.endpoint = config.rdzv_endpoints.at(0);
  place.run_id = config.run_id;
  LOCKSTEP_TRY_ASSIGN(place.is_host, codec::rdzv_conf_bool(config.rdzv_conf, "is_host"));
  place.local_addr = config.local_addr;
  place.read_timeout = read_timeout;
  // torchrun's connection has the former alone; who sets the latter means all of the waiting.
  place.connect_timeout =
      std::min(read_timeout, seconds_of(config, "join_timeout", std::chrono::seconds(600)));
  return std::make_unique<rendezvous::C10dPlace>(loop, std::move(place));
}

Result<std::unique_ptr<rendezvous::Backend>> make_dynamic(io::Loop& loop,
                                                          const LaunchConfig& config,
                                                          rendezvous::NodeOffer offer,
                                                          rendezvous::OfferStore offer_store) {
  const auto read_timeout = seconds_of(config, "read_timeout", std::chrono::seconds(60));
  LOCKSTEP_TRY_ASSIGN(auto place, make_place(loop, config, read_timeout));
  rendezvous::DynamicBackendSettings settings;
  settings.run_id = config.run_id;
  settings.dynamic = dynamic_settings_of(config);
  settings.read_timeout = read_timeout;
  settings.exit_barrier_timeout = config.exit_barrier_timeout;
  settings.offer = std::move(offer);
  return std::make_unique<rendezvous::DynamicBackend>(loop, std::move(place), std::move(settings),
                                                      std::move(offer_store));
}

Result<std::unique_ptr<rendezvous::Backend>> make_etcd(io::Loop& loop, const LaunchConfig& config,
                                                       rendezvous::NodeOffer offer,
                                                       rendezvous::OfferStore offer_store) {
  rendezvous::EtcdLegacySettings settings;
  LOCKSTEP_TRY_ASSIGN(settings.access,
                      rendezvous::parse_etcd_access(config.rdzv_endpoint, config.rdzv_conf));
  if (const auto prefix = config.rdzv_conf.find("etcd_prefix"); prefix != config.rdzv_conf.end())
    settings.prefix = prefix->second;
  settings.run_id = config.run_id;
  settings.rules.min_nodes = static_cast<std::size_t>(config.min_nodes);
  settings.rules.max_nodes = static_cast<std::size_t>(config.max_nodes);
  settings.rules.join_timeout = seconds_of(config, "timeout", std::chrono::seconds(900));
  settings.rules.last_call_timeout =
      seconds_of(config, "last_call_timeout", std::chrono::seconds(30));
  settings.read_timeout = seconds_of(config, "read_timeout", std::chrono::seconds(60));
  settings.exit_barrier_timeout = config.exit_barrier_timeout;
  settings.local_addr = config.local_addr;
  settings.offer = std::move(offer);
  return std::make_unique<rendezvous::EtcdLegacy>(loop, std::move(settings),
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

Result<rendezvous::HubSettings> hub_settings_of(const LaunchConfig& config,
                                                rendezvous::NodeOffer offer,
                                                rendezvous::OfferStore offer_store) {
  rendezvous::HubSettings settings;
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
  const auto join_timeout = seconds_of(config, "join_timeout", seconds(600));
  settings.join_timeout = join_timeout;
  // A host that comes late is normal: no bound of its own unless it was given.
  settings.connect_timeout =
      std::min(join_timeout, seconds_of(config, "read_timeout", join_timeout));
  settings.last_call_timeout = seconds_of(config, "last_call_timeout", seconds(30));
  settings.close_timeout = seconds_of(config, "close_timeout", seconds(30));
  settings.keep_alive_interval = seconds_of(config, "keep_alive_interval", seconds(1));
  settings.keep_alive_max_attempt =
      static_cast<int>(seconds_of(config, "keep_alive_max_attempt", seconds(5)).count());
  return settings;
}

Result<std::unique_ptr<rendezvous::Backend>> make_lockstep(io::Loop& loop,
                                                           const LaunchConfig& config,
                                                           rendezvous::NodeOffer offer,
                                                           rendezvous::OfferStore offer_store) {
  LOCKSTEP_TRY_ASSIGN(auto settings,
                      hub_settings_of(config, std::move(offer), std::move(offer_store)));
  settings.endpoint = config.rdzv_endpoints.at(0);
  return std::make_unique<rendezvous::HubBackend>(loop, std::move(settings));
}

Result<std::unique_ptr<rendezvous::Backend>> make_etcd3(io::Loop& loop, const LaunchConfig& config,
                                                        rendezvous::NodeOffer offer,
                                                        rendezvous::OfferStore offer_store) {
  rendezvous::Etcd3Settings settings;
  LOCKSTEP_TRY_ASSIGN(settings.access,
                      rendezvous::parse_etcd_access(config.rdzv_endpoint, config.rdzv_conf));
  settings.lease_ttl =
      static_cast<int>(seconds_of(config, "lease_ttl", std::chrono::seconds(3)).count());
  LOCKSTEP_TRY_ASSIGN(settings.hub,
                      hub_settings_of(config, std::move(offer), std::move(offer_store)));
  return std::make_unique<rendezvous::Etcd3Backend>(loop, std::move(settings));
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
  if (config.rdzv_backend == "etcd3")
    return make_etcd3(loop, config, std::move(offer), std::move(offer_store));
  if (config.rdzv_backend == "static") return make_static(loop, config, std::move(offer));
  if (config.rdzv_backend == "c10d" || config.rdzv_backend == "etcd-v2")
    return make_dynamic(loop, config, std::move(offer), std::move(offer_store));
  // The rule of backends has let no other name through.
  return make_etcd(loop, config, std::move(offer), std::move(offer_store));
}

}  // namespace lockstep::launch
