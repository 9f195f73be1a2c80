// The row of `etcd`: torchrun's older rendezvous over etcd's v2 API.
#include "launch/backends/etcd_settings.h"
#include "launch/backends/rows.h"
#include "launch/launch_config.h"
#include "rendezvous/etcd/etcd_legacy.h"

#include <utility>

namespace lockstep::launch {
namespace {

using rendezvous::RankOrder;

constexpr std::array kOrders = {RankOrder::arrival};
constexpr std::array kKeys = {
    ConfKey{.name = "timeout", .otherwise = 900, .least = 0},
    ConfKey{.name = "last_call_timeout", .otherwise = 30},
    ConfKey{.name = "read_timeout", .otherwise = 60},
    ConfKey{
        .name = "etcd_prefix", .type = ConfKey::Type::text, .text_otherwise = "/torchelastic/p2p"},
    kProtocolKey,
    kEntrypointKey,
    ConfKey{.name = "cert", .type = ConfKey::Type::file},
    ConfKey{.name = "key", .type = ConfKey::Type::file},
    ConfKey{.name = "cacert", .type = ConfKey::Type::file},
};

std::unique_ptr<rendezvous::Backend> make(const LaunchConfig& config, BackendParts parts) {
  rendezvous::etcd::EtcdLegacySettings settings;
  settings.access = etcd_access(config, {"cert", "key", "cacert"});
  settings.prefix = config.conf.text("etcd_prefix");
  settings.run_id = config.run_id;
  settings.rules.min_nodes = static_cast<std::size_t>(config.min_nodes);
  settings.rules.max_nodes = static_cast<std::size_t>(config.max_nodes);
  settings.rules.join_timeout = config.conf.seconds("timeout");
  settings.rules.last_call_timeout = config.conf.seconds("last_call_timeout");
  settings.read_timeout = config.conf.seconds("read_timeout");
  settings.exit_barrier_timeout = config.exit_barrier_timeout;
  settings.local_addr = config.local_addr;
  settings.offer = std::move(parts.offer);
  return std::make_unique<rendezvous::etcd::EtcdLegacy>(parts.loop, std::move(settings),
                                                        std::move(parts.offer_store));
}

std::string without_host(const LaunchConfig&) {
  return "no node hosts: the rendezvous is in etcd";
}

}  // namespace

constinit const BackendRow kEtcd = {
    .name = "etcd",
    .summary = "torchrun's older one, in etcd's v2 API",
    .place = BackendRow::Place::etcd,
    .default_port = kEtcdPort,
    .beside_torchrun = true,
    .orders = kOrders,
    .keys = kKeys,
    .without_host = without_host,
    .make = make,
};

}  // namespace lockstep::launch
