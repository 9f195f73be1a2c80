// The row of `etcd-v2`: torchrun's shared state in etcd's v2 API.
#include "launch/backends/concat.h"
#include "launch/backends/dynamic_settings.h"
#include "launch/backends/etcd_settings.h"
#include "launch/backends/rows.h"
#include "launch/launch_config.h"
#include "rendezvous/etcd/etcd_v2_place.h"

#include <utility>

namespace lockstep::launch {
namespace {

constexpr auto kKeys = concat(
    kDynamicKeys, std::array{kProtocolKey, ConfKey{.name = "ssl_cert", .type = ConfKey::Type::file},
                             ConfKey{.name = "ssl_cert_key", .type = ConfKey::Type::file},
                             ConfKey{.name = "ca_cert", .type = ConfKey::Type::file}});

std::unique_ptr<rendezvous::Backend> make(const LaunchConfig& config, BackendParts parts) {
  rendezvous::etcd::EtcdV2PlaceSettings settings;
  settings.access = etcd_access(config, {"ssl_cert", "ssl_cert_key", "ca_cert"});
  settings.run_id = config.run_id;
  settings.local_addr = config.local_addr;
  auto place = std::make_unique<rendezvous::etcd::EtcdV2Place>(parts.loop, std::move(settings));
  return make_dynamic(config, std::move(place), std::move(parts));
}

std::string without_host(const LaunchConfig&) {
  return "no node hosts: the rendezvous is in etcd";
}

}  // namespace

constinit const BackendRow kEtcdV2 = {
    .name = "etcd-v2",
    .summary = "torchrun's, in etcd's v2 API",
    .place = BackendRow::Place::etcd,
    .default_port = kEtcdPort,
    .beside_torchrun = true,
    .orders = kDynamicOrders,
    .keys = kKeys,
    .without_host = without_host,
    .make = make,
};

}  // namespace lockstep::launch
