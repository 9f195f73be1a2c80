#include "cli/explain.h"

#include "base/text.h"
#include "launch/backend_row.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cli {
namespace {

using launch::LaunchConfig;
using launch::Origin;
using launch::Rule;

// A line of the table. The first row holds the headings.
struct Row {
  std::string what;
  std::string value;
  std::string from;
};

std::string rule_words(Rule rule) {
  switch (rule) {
    case Rule::standalone:
      return "rule: --standalone";
    case Rule::one_node:
      return "rule: one node needs no meeting place";
    case Rule::torchrun:
      return "rule: torchrun's default";
    case Rule::master_options:
      return "rule: --master-addr, --master-port or --node-rank says static";
    case Rule::master_place:
      return "rule: --master-addr and --master-port";
    case Rule::several_nodes:
      return "rule: several nodes, no backend named";
    case Rule::node_rank:
      return "rule: there is a node rank";
    case Rule::random:
      return "rule: made up for this run";
    case Rule::own_venv:
      return "rule: the virtual environment around lockstep";
    case Rule::none:
      break;
  }
  return "rule";
}

// Returns the source of a value in words. option: the long name under which the rules recorded the
// source. Without a record the value is the default.
std::string origin_words(const LaunchConfig& config, std::string_view option) {
  const auto found = config.origins.find(option);
  if (found == config.origins.end()) return "default";
  const Origin& origin = found->second;
  switch (origin.kind) {
    case Origin::Kind::variable:
      return fmt::format("environment variable {}", origin.name);
    case Origin::Kind::scheduler:
      return fmt::format("{}: {}", config.scheduler, origin.name);
    case Origin::Kind::rule:
      return rule_words(origin.rule);
    case Origin::Kind::option:
      break;
  }
  return fmt::format("option --{}", option);
}

std::string nodes(const LaunchConfig& config) {
  if (config.min_nodes == config.max_nodes) return std::to_string(config.max_nodes);
  return fmt::format("{} to {}", config.min_nodes, config.max_nodes);
}

std::string log_dir(const LaunchConfig& config) {
  if (config.logs.disabled) return "none";
  return config.logs.base_dir.value_or("a fresh /tmp/torchelastic_*");
}

// Returns the endpoint after parsing, so that a default port shows. A private store has none.
std::string endpoint(const LaunchConfig& config) {
  if (config.private_store) return "none: the store takes a free port of this node";
  if (config.rdzv_endpoints.empty()) return config.rdzv_endpoint;  // a file
  std::vector<std::string> texts;
  texts.reserve(config.rdzv_endpoints.size());
  for (const codec::RdzvEndpoint& place : config.rdzv_endpoints) {
    // Without brackets, the port of an IPv6 address would look like a part of the address.
    const bool brackets = place.host.find(':') != std::string::npos;
    texts.push_back(
        fmt::format("{}{}{}:{}", brackets ? "[" : "", place.host, brackets ? "]" : "", place.port));
  }
  return join(texts, ",");
}

void add_nodes(const LaunchConfig& config, std::vector<Row>& rows) {
  const auto from = [&config](std::string_view option) { return origin_words(config, option); };
  // Only the static backend fixes ranks and the workers' store beforehand. Other backends decide
  // both when the nodes meet, so there is no value to show yet.
  const bool is_static = config.backend->fixed();
  rows.push_back({"nodes", nodes(config), from("nnodes")});
  if (config.spares > 0) rows.push_back({"spares", std::to_string(config.spares), from("spares")});
  if (is_static || config.node_rank_given) {
    rows.push_back({"node rank", std::to_string(config.node_rank), from("node-rank")});
  } else {
    rows.push_back({"node rank", "decided when nodes meet", "the backend"});
  }
  if (config.private_store) {
    rows.push_back({"backend", "none", "one node meets nobody"});
  } else {
    rows.push_back({"backend", std::string(config.backend->name), from("rdzv-backend")});
  }
  rows.push_back({"endpoint", endpoint(config), from("rdzv-endpoint")});
  rows.push_back({"run id", config.run_id, from("rdzv-id")});
  if (is_static) {
    // Address and port come from the endpoint, unless a rule has made the endpoint from
    // --master-addr and --master-port.
    const auto place = [&](const char* option) {
      const auto origin = config.origins.find("rdzv-endpoint");
      const bool by_options =
          origin != config.origins.end() && origin->second.kind == Origin::Kind::rule;
      return by_options ? from(option) : "the endpoint";
    };
    rows.push_back({"master address", config.master_addr, place("master-addr")});
    rows.push_back({"master port", std::to_string(config.master_port), place("master-port")});
  } else if (config.private_store) {
    const auto addr = config.local_addr.value_or("127.0.0.1");
    rows.push_back(
        {"master address", addr, config.local_addr ? from("local-addr") : "the backend"});
    rows.push_back({"master port", "a free one", "the backend"});
  } else {
    rows.push_back({"master address", "of the node with rank 0", "the backend"});
    rows.push_back({"master port", "a free one there", "the backend"});
  }
  // The token is a secret: never print the value.
  rows.push_back({"token", config.rdzv_token ? "given" : "none",
                  config.rdzv_token ? from("rdzv-token-file") : "default"});
  // A single node has no other nodes to order or to wait for.
  if (config.alone()) return;
  if (launch::survives_a_loss(config))
    rows.push_back({"lost host", config.backend->without_host(config), "the backend"});
  else
    rows.push_back({"lost host",
                    "the job ends, as with any node: all are needed, and no spare or other node "
                    "may take its place",
                    from("nnodes")});
  const bool chosen = config.origins.find("rank-order") != config.origins.end();
  rows.push_back({"rank order", std::string(launch::order_name(config.rank_order)),
                  chosen ? from("rank-order") : "the backend"});
  rows.push_back({"exit barrier", fmt::format("{} s", config.exit_barrier_timeout.count()),
                  from("exit-barrier-timeout")});
}

std::string hang_words(const launch::HangConfig& hang) {
  using After = launch::HangConfig::After;
  using Then = launch::HangConfig::Then;
  if (hang.after == After::never) return "not watched";
  const std::string limit =
      hang.after == After::automatic
          ? "30 s, or 5 times the longest quiet time"
          : fmt::format("{} s", std::chrono::duration<double>(hang.limit).count());
  const std::string_view then = hang.then == Then::report    ? "print it"
                                : hang.then == Then::restart ? "restart all workers"
                                                             : "end the job";
  return fmt::format("{} when no rank has run for {}", then, limit);
}

// Adds the watchdogs. Variables of PyTorch switch watchdogs on, so a row without a value names the
// missing variable.
void add_watch(const LaunchConfig& config, std::vector<Row>& rows) {
  const auto from = [&config](std::string_view variable) {
    return config.origins.contains(variable) ? origin_words(config, variable)
                                             : fmt::format("{} is not set", variable);
  };
  const launch::WatchConfig& watch = config.watch;
  rows.push_back({"health check",
                  watch.health_port
                      ? fmt::format("/health and /metrics on port {}", *watch.health_port)
                      : "none",
                  from(launch::kHealthPortVariable)});
  rows.push_back(
      {"file timer",
       watch.file_timer ? watch.timer_file.value_or("a fresh /tmp/watchdog_timer_*") : "none",
       from(watch.timer_file ? launch::kTimerFileVariable : launch::kFileTimerVariable)});
  rows.push_back({"stuck workers",
                  watch.stuck_limit
                      ? fmt::format("end the job after {} s", watch.stuck_limit->count())
                      : "not watched",
                  from(launch::kStuckLimitVariable)});
  rows.push_back(
      {"hang", hang_words(config.hang),
       origin_words(config, config.origins.contains("on-hang") ? "on-hang" : "hang-after")});
  rows.push_back(
      {"steps", config.progress ? "read from the output by the pattern" : "guessed from the output",
       origin_words(config, "progress")});
  const auto place = [](const std::optional<launch::ServePlace>& at) {
    if (!at) return std::string("none");
    const std::string port = at->port == 0 ? "a free port" : fmt::format("port {}", at->port);
    return fmt::format("{} of {}", port, at->host.empty() ? "every address" : at->host);
  };
  rows.push_back(
      {"status page", place(config.page.status_page), origin_words(config, "status-page")});
  rows.push_back({"metrics", place(config.page.metrics), origin_words(config, "metrics")});
  const auto fresh = [](const std::string& value) {
    return value.empty() || value == launch::kProfileTraces;
  };
  for (const auto& [name, value] : config.profile.variables)
    rows.push_back({"profiles", fmt::format("{}={}", name, fresh(value) ? "a fresh folder" : value),
                    origin_words(config, "profile")});
  if (!config.recorder.off.empty())
    rows.push_back({"flight recorder", "not asked", config.recorder.off});
  for (const auto& [name, value, in_folder] : config.recorder.variables)
    rows.push_back({"flight recorder",
                    fmt::format("{}={}{}", name, in_folder ? "LOGS/attempt_N/" : "", value),
                    "rule: workers are asked in a hang"});
  if (config.recorder.aid)
    rows.push_back({"flight recorder", "PYTHONPATH=a fresh folder, then the user's",
                    origin_words(config, "aid")});
  if (config.error_file_above)
    rows.push_back(
        {"failure copied to", *config.error_file_above, from(launch::kErrorFileVariable)});
}

}  // namespace

std::string explain_text(const LaunchConfig& config) {
  const auto from = [&config](std::string_view option) { return origin_words(config, option); };
  std::vector<Row> rows;
  rows.reserve(20);
  rows.push_back({"", "value", "from"});
  add_nodes(config, rows);
  rows.push_back({"workers here", std::to_string(config.nproc),
                  from(config.slots ? "slots" : "nproc-per-node")});
  if (config.framework == launch::Framework::jax)
    rows.push_back({"framework", "jax", from("framework")});
  rows.push_back({"role", config.role, from("role")});
  rows.push_back({"restarts", std::to_string(config.max_restarts), from("max-restarts")});
  rows.push_back(
      {"restart backoff",
       fmt::format("{} s", std::chrono::duration<double>(config.restart_backoff).count()),
       from("restart-backoff")});
  rows.push_back({"log directory", log_dir(config), from("log-dir")});
  const std::uint64_t most = config.logs.max_size;
  rows.push_back({"log file size", most == 0 ? "no limit" : fmt::format("{} bytes", most),
                  from("log-max-size")});
  add_watch(config, rows);
  if (!config.container.image.empty()) {
    rows.push_back({"container", config.container.image, from("container")});
    rows.push_back({"container runtime", config.container.runtime, config.container.why});
  }
  if (config.origins.contains("python"))
    rows.push_back({"python", config.command.front(), from("python")});
  // Escape values before measuring, because escapes make a value longer.
  std::size_t first = 0;
  std::size_t second = 0;
  for (Row& row : rows) {
    row.value = printable(row.value);
    first = std::max(first, row.what.size());
    second = std::max(second, row.value.size());
  }
  std::string text;
  for (const Row& row : rows)
    text += fmt::format("{:<{}}  {:<{}}  {}\n", row.what, first, row.value, second, row.from);
  // The command has no source, and its length would push the sources of all rows far away.
  return text +
         fmt::format("{:<{}}  {}\n", "command", first, printable(shell_join(config.command), 1000));
}

}  // namespace lockstep::cli
