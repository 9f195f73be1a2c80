// How the tools reach etcd: as `lockstep run` does with the same options.
#pragma once

#include "launch/backends/etcd_settings.h"
#include "launch/launch_config.h"
#include "launch/machine_facts.h"
#include "launch/raw_options.h"

#include <string>

namespace lockstep::rendezvous {

inline Result<etcd::EtcdAccess> access_of(const std::string& backend, const std::string& endpoint,
                                          const std::string& conf) {
  launch::RawOptions raw;
  raw.nnodes = "2";
  raw.rdzv_backend = backend;
  raw.rdzv_endpoint = endpoint;
  raw.rdzv_conf = conf;
  raw.script = "/bin/true";
  raw.no_python = true;
  LOCKSTEP_TRY_ASSIGN(const auto config, launch::make_launch_config(raw, launch::machine_facts()));
  etcd::EtcdAccess access = launch::etcd_access(
      config, backend == "etcd" ? launch::TlsKeyNames{"cert", "key", "cacert"}
                                : launch::TlsKeyNames{"ssl_cert", "ssl_cert_key", "ca_cert"});
  if (config.conf.given("user")) {
    access.user = config.conf.text("user");
    access.password = config.conf.text("password_file");
  }
  return access;
}

}  // namespace lockstep::rendezvous
