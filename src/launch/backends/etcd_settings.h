// Access to etcd for the backends that meet there.
#pragma once

#include "launch/backend_row.h"
#include "rendezvous/etcd/etcd_access.h"

#include <array>

namespace lockstep::launch {

inline constexpr int kEtcdPort = 2379;

inline constexpr ConfKey kProtocolKey = {
    .name = "protocol", .type = ConfKey::Type::choice, .choices = {"http", "https"}};

// Names of the keys of TLS files, which torchrun spells differently for its two backends.
struct TlsKeyNames {
  std::string_view cert;
  std::string_view key;
  std::string_view ca;
};

// Returns endpoints, protocol, TLS files and the timeout of a call.
rendezvous::etcd::EtcdAccess etcd_access(const LaunchConfig& config, const TlsKeyNames& names);

}  // namespace lockstep::launch
