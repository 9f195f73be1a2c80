// Which backend, endpoint and run id hold, after torchrun's rewriting of the one-node case.
#include "agent/launch_rules.h"
#include "base/text.h"
#include "codec/rdzv_conf.h"
#include "codec/rdzv_endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::agent {
namespace {

constexpr std::array<std::string_view, 4> kBackends = {"static", "c10d", "etcd", "etcd-v2"};

int default_port(std::string_view backend) {
  return backend == "c10d" ? 29400 : 2379;
}

Status check_backend(const std::string& backend) {
  if (backend == "etcd" || backend == "etcd-v2")
    return fail(Errc::unavailable,
                fmt::format("the rendezvous backend '{}' is not there yet", backend),
                "one node needs none: leave --rdzv-backend out");
  if (std::find(kBackends.begin(), kBackends.end(), backend) != kBackends.end()) return {};
  return fail(Errc::invalid_input,
              fmt::format("the rendezvous backend '{}' is not registered", printable(backend)),
              "known backends: static, c10d, etcd, etcd-v2");
}

// The settings that the backend would read; others are kept unread, as torchrun does.
Status check_conf(const LaunchConfig& config) {
  const bool dynamic = config.rdzv_backend == "c10d" || config.rdzv_backend == "etcd-v2";
  for (const char* key : {"join_timeout", "last_call_timeout", "close_timeout", "heartbeat_timeout",
                          "keep_alive_interval", "keep_alive_max_attempt", "read_timeout"}) {
    if (!dynamic) break;
    LOCKSTEP_TRY_ASSIGN(const auto value, codec::rdzv_conf_int(config.rdzv_conf, key));
    if (value && *value <= 0)
      return fail(Errc::invalid_input,
                  fmt::format("the rendezvous configuration option '{}' must be positive, got {}",
                              key, *value));
  }
  LOCKSTEP_TRY(codec::rdzv_conf_int(config.rdzv_conf, "timeout"));
  if (config.rdzv_backend == "c10d")
    LOCKSTEP_TRY(codec::rdzv_conf_bool(config.rdzv_conf, "is_host"));
  return {};
}

Status apply_static(const RawOptions& raw, LaunchConfig& config) {
  if (raw.node_rank < 0 || raw.node_rank >= config.max_nodes)
    return fail(Errc::invalid_input,
                fmt::format("node_rank must be >= 0 and < nnodes, got node_rank={}, nnodes={}",
                            raw.node_rank, config.max_nodes));
  LOCKSTEP_TRY_ASSIGN(const auto endpoint, codec::parse_rdzv_endpoint(config.rdzv_endpoint, -1));
  if (endpoint.port < 0)
    return fail(Errc::invalid_input,
                fmt::format("port is missing in endpoint: {}", printable(config.rdzv_endpoint)),
                "write host:port, or use --master-addr and --master-port");
  config.private_store = false;
  config.master_addr = endpoint.host;
  config.master_port = endpoint.port;
  config.node_rank = static_cast<int>(raw.node_rank);
  config.rdzv_conf["rank"] = std::to_string(raw.node_rank);
  return {};
}

Status apply_dynamic(const RawOptions& raw, LaunchConfig& config) {
  if (strip(config.rdzv_endpoint).empty())
    config.warnings.push_back(
        "master_addr is only used for static rdzv_backend and when rdzv_endpoint is not "
        "specified.");
  if (raw.node_rank != 0)
    config.warnings.push_back(
        fmt::format("node_rank is only used for static rdzv_backend. It will be ignored for "
                    "rdzv_backend={}.",
                    config.rdzv_backend));
  LOCKSTEP_TRY(codec::parse_rdzv_endpoint(config.rdzv_endpoint, default_port(config.rdzv_backend)));
  config.private_store = true;
  return {};
}

// torchrun >= 2.12 runs a one-node job on a free port unless a port was asked for.
bool becomes_standalone(const RawOptions& raw, const LaunchConfig& config) {
  if (raw.standalone) return true;
  return raw.rdzv_backend == "static" && raw.rdzv_endpoint.empty() && !raw.master_port &&
         config.max_nodes == 1;
}

}  // namespace

Status apply_rendezvous(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  config.rdzv_backend = raw.rdzv_backend;
  config.rdzv_endpoint = raw.rdzv_endpoint;
  config.run_id = raw.rdzv_id;
  config.run_id_given = raw.rdzv_id_given && !raw.rdzv_id.empty();
  if (becomes_standalone(raw, config)) {
    config.rdzv_backend = "c10d";
    config.rdzv_endpoint = "localhost:0";
    config.run_id = facts.uuid();
    config.run_id_given = false;
  }
  LOCKSTEP_TRY(check_backend(config.rdzv_backend));
  if (config.run_id.empty()) {
    config.run_id = facts.uuid();
    config.warnings.push_back(
        fmt::format("config has no run_id, generated a random run_id: {}", config.run_id));
  }
  LOCKSTEP_TRY_ASSIGN(config.rdzv_conf, codec::parse_rdzv_conf(raw.rdzv_conf));
  config.rdzv_conf.try_emplace("timeout", "900");
  LOCKSTEP_TRY(check_conf(config));
  const bool is_static = config.rdzv_backend == "static";
  if (is_static && config.rdzv_endpoint.empty())
    config.rdzv_endpoint = fmt::format("{}:{}", raw.master_addr, raw.master_port.value_or(29500));
  return is_static ? apply_static(raw, config) : apply_dynamic(raw, config);
}

}  // namespace lockstep::agent
