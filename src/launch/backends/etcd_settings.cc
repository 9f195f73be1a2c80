#include "launch/backends/etcd_settings.h"

#include "launch/launch_config.h"

#include <algorithm>

namespace lockstep::launch {

rendezvous::etcd::EtcdAccess etcd_access(const LaunchConfig& config, const TlsKeyNames& names) {
  constexpr std::chrono::seconds kDay{86'400};
  rendezvous::etcd::EtcdAccess access;
  access.endpoints = config.rdzv_endpoints;
  access.https = config.rdzv_https.value_or(config.conf.text("protocol") == "https");
  access.tls.cert_file = config.conf.text(names.cert);
  access.tls.key_file = config.conf.text(names.key);
  access.tls.ca_file = config.conf.text(names.ca);
  // The default for a single call is shorter than read_timeout, so that a slow etcd is asked again
  // within that time.
  if (config.conf.given("read_timeout"))
    access.timeout = std::min(config.conf.seconds("read_timeout"), kDay);
  return access;
}

}  // namespace lockstep::launch
