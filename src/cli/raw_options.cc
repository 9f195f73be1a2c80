// From parsed rows to the structs of the rooms below.
#include "base/text.h"
#include "cli/run_options.h"

#include <fmt/core.h>

namespace lockstep::cli {
namespace {

std::optional<std::int64_t> integer(const Parsed& parsed, std::string_view name) {
  const auto text = parsed.text(name);
  return text ? parse_int(*text) : std::nullopt;
}

void assign(std::string& target, const Parsed& parsed, std::string_view name) {
  if (auto text = parsed.text(name)) target = *std::move(text);
}

void assign_logs(launch::RawOptions& raw, const Parsed& parsed) {
  raw.log_dir = parsed.text("log-dir");
  assign(raw.redirects, parsed, "redirects");
  assign(raw.tee, parsed, "tee");
  assign(raw.log_line_prefix_template, parsed, "log-line-prefix-template");
  assign(raw.log_prefix, parsed, "log-prefix");
  assign(raw.local_ranks_filter, parsed, "local-ranks-filter");
  assign(raw.duplicate_stdout_filters, parsed, "duplicate-stdout-filters");
  assign(raw.duplicate_stderr_filters, parsed, "duplicate-stderr-filters");
  raw.log_max_size = parsed.text("log-max-size");
  raw.logs_specs = parsed.text("logs-specs");
}

void assign_topology(launch::RawOptions& raw, const Parsed& parsed) {
  raw.nnodes = parsed.text("nnodes");
  assign(raw.nproc_per_node, parsed, "nproc-per-node");
  assign(raw.role, parsed, "role");
  raw.node_rank = integer(parsed, "node-rank");
  raw.master_addr = parsed.text("master-addr");
  raw.master_port = integer(parsed, "master-port");
  raw.local_addr = parsed.text("local-addr");
  raw.rdzv_backend = parsed.text("rdzv-backend");
  assign(raw.rdzv_endpoint, parsed, "rdzv-endpoint");
  assign(raw.rdzv_id, parsed, "rdzv-id");
  raw.rdzv_id_given = parsed.has("rdzv-id");
  assign(raw.rdzv_conf, parsed, "rdzv-conf");
  raw.standalone = parsed.has("standalone");
  raw.rank_order = parsed.text("rank-order");
  raw.exit_barrier_timeout = integer(parsed, "exit-barrier-timeout");
  raw.rdzv_token_file = parsed.text("rdzv-token-file");
}

}  // namespace

launch::RawOptions raw_options(const Parsed& parsed, bool legacy_launch) {
  launch::RawOptions raw;
  assign_topology(raw, parsed);
  assign_logs(raw, parsed);
  for (const auto& [name, value] : parsed.values) {
    const auto variable = parsed.variables.find(name);
    raw.given[name] = variable == parsed.variables.end() ? "" : variable->second;
  }
  raw.script = parsed.script.value_or("");
  raw.script_args = parsed.script_args;
  raw.module = parsed.has("module");
  raw.no_python = parsed.has("no-python");
  raw.run_path = parsed.has("run-path");
  raw.max_restarts = integer(parsed, "max-restarts").value_or(raw.max_restarts);
  raw.no_replacement = parsed.has("no-replacement");
  if (const auto text = parsed.text("monitor-interval"))
    raw.monitor_interval = python_float(*text).value_or(raw.monitor_interval);
  if (const auto text = parsed.text("restart-backoff"))
    raw.restart_backoff = python_float(*text).value_or(raw.restart_backoff);
  raw.signals_to_handle = parsed.text("signals-to-handle");
  raw.shutdown_timeout = integer(parsed, "shutdown-timeout");
  assign(raw.event_log_handler, parsed, "event-log-handler");
  assign(raw.isolation, parsed, "isolation");
  assign(raw.exit_code, parsed, "exit-code");
  raw.report = parsed.text("report");
  assign(raw.report_tails, parsed, "report-tails");
  raw.virtual_local_rank = parsed.has("virtual-local-rank");
  raw.numa_binding = parsed.text("numa-binding");
  raw.legacy_launch = legacy_launch;
  raw.use_env = parsed.has("use-env");
  assign(raw.local_rank_spelling, parsed, "local-rank-spelling");
  return raw;
}

}  // namespace lockstep::cli
