// The addresses and credentials of an etcd cluster.
#pragma once

#include "codec/rdzv_endpoint.h"
#include "http/tls.h"

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::rendezvous::etcd {

struct EtcdAccess {
  std::vector<codec::RdzvEndpoint> endpoints;  // at least one
  bool https = false;
  http::TlsSettings tls;
  std::string user;  // for etcd's v3 API; "": none
  std::string password;
  std::chrono::milliseconds timeout{10'000};         // of a call with all attempts
  std::chrono::milliseconds attempt_timeout{2'000};  // of one endpoint's answer
};

}  // namespace lockstep::rendezvous::etcd
