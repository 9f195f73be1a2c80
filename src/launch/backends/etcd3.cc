// The row of `etcd3`: Lockstep's rendezvous at a hub whose host is elected through etcd's v3 API.
#include "launch/backends/concat.h"
#include "launch/backends/etcd_settings.h"
#include "launch/backends/hub_settings.h"
#include "launch/backends/rows.h"
#include "launch/launch_config.h"
#include "rendezvous/etcd3/etcd3_backend.h"

#include <utility>

namespace lockstep::launch {
namespace {

// etcd grants no lease below 2 s. A lost leader is noticed only when the lease ends, so keep it
// short.
constexpr auto kKeys = concat(
    kHubKeys, std::array{ConfKey{.name = "lease_ttl", .otherwise = 3, .least = 2, .most = 3600},
                         kProtocolKey, ConfKey{.name = "ssl_cert", .type = ConfKey::Type::file},
                         ConfKey{.name = "ssl_cert_key", .type = ConfKey::Type::file},
                         ConfKey{.name = "ca_cert", .type = ConfKey::Type::file},
                         ConfKey{.name = "user", .type = ConfKey::Type::text},
                         ConfKey{.name = "password_file", .type = ConfKey::Type::secret}});

// Limit of listed etcd members.
constexpr std::size_t kMostMembers = 64;

Status check(const ConfValues& conf) {
  if (conf.given("user") == conf.given("password_file")) return {};
  return fail(Errc::invalid_input, "etcd: 'user' and 'password_file' go together",
              "--rdzv-conf user=NAME,password_file=PATH");
}

std::unique_ptr<rendezvous::Backend> make(const LaunchConfig& config, BackendParts parts) {
  io::Loop& loop = parts.loop;
  rendezvous::etcd3::Etcd3Settings settings;
  settings.access = etcd_access(config, {"ssl_cert", "ssl_cert_key", "ca_cert"});
  settings.access.user = config.conf.text("user");
  settings.access.password = config.conf.text("password_file");
  settings.lease_ttl = static_cast<int>(config.conf.number("lease_ttl"));
  settings.hub = hub_settings(config, std::move(parts));
  return std::make_unique<rendezvous::etcd3::Etcd3Backend>(loop, std::move(settings));
}

std::string without_host(const LaunchConfig&) {
  return "another node is elected through etcd";
}

}  // namespace

constinit const BackendRow kEtcd3 = {
    .name = "etcd3",
    .summary = "our own, at a hub whose host is elected through etcd's v3 API",
    .place = BackendRow::Place::etcd,
    .default_port = kEtcdPort,
    .most_endpoints = kMostMembers,
    .takes_token = true,
    .orders = kHubOrders,
    .keys = kKeys,
    .check = check,
    .without_host = without_host,
    .make = make,
};

}  // namespace lockstep::launch
