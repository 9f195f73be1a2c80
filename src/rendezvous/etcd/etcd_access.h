// Where etcd is and how to speak to it, from --rdzv-endpoint and --rdzv-conf.
#pragma once

#include "base/error.h"
#include "codec/rdzv_conf.h"
#include "codec/rdzv_endpoint.h"
#include "http/tls.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous {

struct EtcdAccess {
  std::vector<codec::RdzvEndpoint> endpoints;  // at least one
  bool https = false;
  http::TlsSettings tls;
  std::string user;  // of etcd's v3 API; "": none
  std::string password;
  std::chrono::milliseconds timeout{10'000};         // of a call, all attempts together
  std::chrono::milliseconds attempt_timeout{2'000};  // of one endpoint's answer
};

// endpoint: "HOST[:PORT][,HOST[:PORT]...]", each with "http://" or "https://" before it where
// wanted; port 2379 where none is given. conf: protocol (http, https), read_timeout (seconds), and
// ssl_cert, ssl_cert_key, ca_cert (etcd-v2) or cert, key, cacert (etcd), user, password_file
// (etcd3).
Result<EtcdAccess> parse_etcd_access(std::string_view endpoint, const codec::RdzvConf& conf);

}  // namespace lockstep::rendezvous
