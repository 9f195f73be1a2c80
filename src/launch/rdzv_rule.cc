// Chooses backend, endpoint, node rank and run id: the table in docs/command-line.md.
#include "base/text.h"
#include "codec/rdzv_endpoint.h"
#include "launch/backend_row.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <arpa/inet.h>

#include <algorithm>
#include <optional>

namespace lockstep::launch {
namespace {

constexpr int kStaticPort = 29500;

// Returns whether the job is standalone. torchrun >= 2.12 runs a one-node job on a free port unless
// a port was given.
bool becomes_standalone(const RawOptions& raw, const LaunchConfig& config) {
  if (raw.standalone) return true;
  const BackendRow* named = raw.rdzv_backend ? find_backend(*raw.rdzv_backend) : &static_backend();
  return named != nullptr && named->fixed() && raw.rdzv_endpoint.empty() && !raw.master_port &&
         config.alone();
}

struct Choice {
  const BackendRow* backend;
  Rule why = Rule::none;  // none: named by the user
};

Result<Choice> named_backend(const std::string& name) {
  if (const BackendRow* row = find_backend(name)) return Choice{row};
  const std::vector<std::string_view> views = backend_names();
  const std::vector<std::string> names(views.begin(), views.end());
  const auto meant = did_you_mean(name, names);
  return fail(Errc::invalid_input,
              fmt::format("the rendezvous backend '{}' is not registered", printable(name)),
              meant ? fmt::format("did you mean {}?", *meant)
                    : fmt::format("known backends: {}", join(names, ", ")));
}

Result<Choice> choose_backend(const RawOptions& raw, const LaunchConfig& config) {
  if (raw.standalone) return Choice{&c10d_backend(), Rule::standalone};
  if (becomes_standalone(raw, config)) return Choice{&c10d_backend(), Rule::one_node};
  if (raw.rdzv_backend) return named_backend(*raw.rdzv_backend);
  if (raw.called_torchrun || raw.legacy_launch) return Choice{&static_backend(), Rule::torchrun};
  if (raw.master_addr || raw.master_port || raw.node_rank)
    return Choice{&static_backend(), Rule::master_options};
  if (config.alone()) return Choice{&static_backend(), Rule::torchrun};
  return Choice{&lockstep_backend(), Rule::several_nodes};
}

// Notes that a value comes from the scheduler.
void take(LaunchConfig& config, const Placement& placement, const char* option, std::string from) {
  config.scheduler = placement.scheduler;
  config.origins[option] = {Origin::Kind::scheduler, std::move(from)};
}

// Applies --standalone: the node meets on a free port of this machine, unknown to other nodes.
Status apply_standalone(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  if (config.min_nodes > 1)
    return fail(Errc::invalid_input,
                fmt::format("--standalone is for one node, and --nnodes is {}",
                            printable(raw.nnodes.value_or(""))),
                "leave --standalone out and say where the nodes meet: --rdzv-endpoint HOST[:PORT]");
  if (config.spares > 0)
    return fail(Errc::invalid_input, "--standalone is for one node, which has no spares",
                "leave out --standalone, or --spares");
  const Rule why = raw.standalone ? Rule::standalone : Rule::one_node;
  config.max_nodes = 1;
  config.rdzv_endpoint = "localhost:0";
  config.run_id = facts.uuid();
  config.origins["rdzv-endpoint"] = {Origin::Kind::rule, "", why};
  config.origins["rdzv-id"] = {Origin::Kind::rule, "", Rule::random};
  return {};
}

Status apply_run_id(const RawOptions& raw, const Facts& facts,
                    const std::optional<Placement>& placement, LaunchConfig& config) {
  config.run_id = raw.rdzv_id.value_or("none");
  // Keep torchrun's "none" with its backends: agents of torchrun in the same job use that id.
  if (!config.backend->beside_torchrun && !raw.rdzv_id && placement && !placement->run_id.empty()) {
    config.run_id = placement->run_id;
    take(config, *placement, "rdzv-id", "SLURM_JOB_ID, SLURM_STEP_ID");
  }
  if (!config.run_id.empty()) return {};
  if (!config.alone())
    return fail(Errc::invalid_input,
                "--rdzv-id is empty: every node would make up a run id of its own",
                "give all nodes the same");
  config.run_id = facts.uuid();
  config.origins["rdzv-id"] = {Origin::Kind::rule, "", Rule::random};
  config.warnings.push_back(
      fmt::format("config has no run_id, generated a random run_id: {}", config.run_id));
  return {};
}

// Parses an endpoint as torchrun does. Refuses what torchrun would misread, and ports that other
// nodes could not know.
Result<codec::RdzvEndpoint> endpoint(std::string_view text, int port, const LaunchConfig& config) {
  LOCKSTEP_TRY_ASSIGN(auto found, codec::parse_rdzv_endpoint(text, port));
  in6_addr address{};
  if (found.host.find(':') != std::string::npos &&
      inet_pton(AF_INET6, found.host.c_str(), &address) != 1)
    return fail(Errc::invalid_input,
                fmt::format("the hostname of the rendezvous endpoint '{}' must be an IPv6 address",
                            printable(text)),
                "write an IPv6 address in brackets: [::1]:29400");
  if (found.port == 0 && !config.alone())
    return fail(Errc::invalid_input,
                fmt::format("port 0 in the rendezvous endpoint '{}': the other nodes could not "
                            "know which port was taken",
                            printable(text)),
                "choose a port");
  return found;
}

// Removes http:// or https:// from an endpoint, as etcd's own tools write it. Refused with
// torchrun's backends: agents of torchrun would take "https" for the host.
Status take_scheme(std::string_view& text, LaunchConfig& config) {
  const std::string shown = printable(text);
  const auto https = codec::take_url_scheme(text);
  if (!https) return {};
  if (config.backend->beside_torchrun)
    return fail(Errc::invalid_input,
                fmt::format("--rdzv-endpoint {}: the {} backend takes no scheme there, as with "
                            "torchrun",
                            shown, config.backend->name),
                fmt::format("--rdzv-endpoint {} --rdzv-conf protocol={}", printable(text),
                            *https ? "https" : "http"));
  const bool other_protocol =
      config.conf.given("protocol") && config.conf.text("protocol") != (*https ? "https" : "http");
  if (config.rdzv_https.value_or(*https) != *https || other_protocol)
    return fail(Errc::invalid_input,
                fmt::format("--rdzv-endpoint {}: both http and https are asked for", shown));
  config.rdzv_https = https;
  return {};
}

Status read_endpoints(LaunchConfig& config) {
  const BackendRow& backend = *config.backend;
  std::vector<std::string> texts = {config.rdzv_endpoint};
  if (backend.most_endpoints > 1) texts = split(config.rdzv_endpoint, ',');
  if (texts.size() > backend.most_endpoints)
    return fail(Errc::invalid_input,
                fmt::format("--rdzv-endpoint names more than {} places", backend.most_endpoints));
  for (const std::string& part : texts) {
    std::string_view text = strip(part);
    if (backend.place == BackendRow::Place::etcd) LOCKSTEP_TRY(take_scheme(text, config));
    if (texts.size() > 1 && text.empty())
      return fail(Errc::invalid_input, fmt::format("--rdzv-endpoint: an empty name in '{}'",
                                                   printable(config.rdzv_endpoint)));
    LOCKSTEP_TRY_ASSIGN(auto found, endpoint(text, backend.default_port, config));
    config.rdzv_endpoints.push_back(std::move(found));
  }
  return {};
}

// Checks the path of c10d's file store. All nodes must see the file.
Status check_path(const Facts& facts, LaunchConfig& config) {
  config.rdzv_endpoint = std::string(strip(config.rdzv_endpoint));
  const std::string& path = config.rdzv_endpoint;
  if (path.empty())
    return fail(Errc::invalid_input, "store_type=file needs a file that all nodes see",
                "give its path as --rdzv-endpoint");
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (slash != std::string::npos && facts.file_kind(folder) != FileKind::directory)
    return fail(Errc::not_found, fmt::format("--rdzv-endpoint {}: directory {} does not exist",
                                             printable(path), printable(folder)));
  const FileKind kind = facts.file_kind(path);
  if (kind == FileKind::missing || kind == FileKind::file) return {};
  return fail(Errc::invalid_input,
              fmt::format("--rdzv-endpoint {} must be a plain file", printable(path)));
}

Result<int> node_rank(std::int64_t rank, const LaunchConfig& config) {
  constexpr std::int64_t kMost = 32765;  // the protocol's largest rank
  // Spares of a dynamic backend have ranks beyond the number of nodes.
  const bool fixed = config.backend->fixed();
  if (!fixed && rank > kMost)
    return fail(Errc::invalid_input,
                fmt::format("node_rank must be at most {}, got {}", kMost, rank));
  if (rank >= 0 && (!fixed || rank < config.max_nodes)) return static_cast<int>(rank);
  return fail(Errc::invalid_input,
              fmt::format("node_rank must be >= 0 and < nnodes, got node_rank={}, nnodes={}", rank,
                          config.max_nodes));
}

Status apply_node_rank(const RawOptions& raw, const std::optional<Placement>& placement,
                       LaunchConfig& config) {
  if (raw.node_rank) {
    LOCKSTEP_TRY_ASSIGN(config.node_rank, node_rank(*raw.node_rank, config));
  } else if (placement) {
    LOCKSTEP_TRY_ASSIGN(config.node_rank, node_rank(placement->node_rank, config));
    take(config, *placement, "node-rank", placement->node_rank_from);
  }
  config.node_rank_given = raw.node_rank || placement;
  return {};
}

// Chooses the endpoint: --rdzv-endpoint, else --master-addr and --master-port, else the scheduler's
// first node.
void choose_static_endpoint(const RawOptions& raw, const std::optional<Placement>& placement,
                            LaunchConfig& config) {
  if (!config.rdzv_endpoint.empty()) return;
  if (!raw.master_addr && placement && !placement->host.empty()) {
    config.rdzv_endpoint =
        fmt::format("{}:{}", placement->host, raw.master_port.value_or(placement->port));
    take(config, *placement, "rdzv-endpoint", placement->host_from);
    return;
  }
  config.rdzv_endpoint = fmt::format("{}:{}", raw.master_addr.value_or("127.0.0.1"),
                                     raw.master_port.value_or(kStaticPort));
  config.origins["rdzv-endpoint"] = {Origin::Kind::rule, "", Rule::master_place};
  if (!raw.master_addr && config.max_nodes > 1)
    config.warnings.push_back(
        "--master-addr is not given: node 0 is looked for on this machine, 127.0.0.1");
}

Status apply_static(const RawOptions& raw, const std::optional<Placement>& placement,
                    LaunchConfig& config) {
  if (config.spares > 0)
    return fail(Errc::invalid_input,
                "--spares: the static backend gives every node its rank beforehand and has no "
                "spares",
                fmt::format("use --rdzv-backend {}", lockstep_backend().name));
  LOCKSTEP_TRY(apply_node_rank(raw, placement, config));
  choose_static_endpoint(raw, placement, config);
  LOCKSTEP_TRY_ASSIGN(auto found, endpoint(config.rdzv_endpoint, -1, config));
  if (found.port < 0)
    return fail(Errc::invalid_input,
                fmt::format("port is missing in endpoint: {}", printable(config.rdzv_endpoint)),
                "write host:port, or use --master-addr and --master-port");
  if (config.min_nodes != config.max_nodes)
    config.warnings.push_back(
        fmt::format("the static backend is not elastic: the job starts when all {} nodes are there",
                    config.max_nodes));
  config.private_store = false;
  config.master_addr = found.host;
  config.master_port = found.port;
  config.rdzv_endpoints.push_back(std::move(found));
  return {};
}

// Explains in an error why the scheduler's endpoint is not used. If the job has more nodes than the
// scheduler started, the other nodes would not know that endpoint.
std::string why_not_placed(const Facts& facts, const LaunchConfig& config) {
  const auto found = read_placement(facts);
  if (!found || !*found || (*found)->nodes >= config.min_nodes) return {};
  const Placement& of = **found;
  return fmt::format(", and {}{} has {} ({}), so its own is not taken", of.scheduler,
                     of.job.empty() ? "" : "'s " + of.job, of.nodes, of.nodes_from);
}

// Chooses an endpoint if the user gave none. No node of the job can replace etcd, which is a
// service of its own.
Status choose_endpoint(const Facts& facts, const std::optional<Placement>& placement,
                       LaunchConfig& config) {
  if (!strip(config.rdzv_endpoint).empty()) return {};
  const bool at_node = config.backend->place == BackendRow::Place::node;
  const bool own = at_node && !config.backend->beside_torchrun;
  if (at_node && placement && !placement->host.empty()) {
    config.rdzv_endpoint = fmt::format("{}:{}", placement->host, placement->port);
    take(config, *placement, "rdzv-endpoint", placement->host_from);
    return {};
  }
  if (own && !config.alone())
    return fail(
        Errc::invalid_input,
        fmt::format("{} nodes need a place to meet{}", config.max_nodes + config.spares,
                    placement ? ", which " + placement->scheduler + " does not name"
                              : why_not_placed(facts, config)),
        "give all nodes the same --rdzv-endpoint HOST[:PORT], where HOST is a node of the job");
  return {};
}

bool is_torchruns(const BackendRow& backend) {
  return backend.beside_torchrun && !backend.fixed();
}

// Returns whether the node rank counts. With torchrun's backends only if the user asked for that
// order, because torchrun ignores node ranks there.
bool reads_node_rank(const RawOptions& raw, const LaunchConfig& config) {
  return !is_torchruns(*config.backend) || raw.rank_order == "node-rank";
}

// Both messages are torchrun's.
void warn_as_torchrun(const RawOptions& raw, LaunchConfig& config) {
  if (!is_torchruns(*config.backend)) return;
  if (strip(config.rdzv_endpoint).empty())
    config.warnings.push_back(
        "master_addr is only used for static rdzv_backend and when rdzv_endpoint is not "
        "specified.");
  if (raw.node_rank.value_or(0) != 0 && !reads_node_rank(raw, config))
    config.warnings.push_back(
        fmt::format("node_rank is only used for static rdzv_backend. It will be ignored for "
                    "rdzv_backend={}.",
                    config.backend->name));
}

Status apply_dynamic(const RawOptions& raw, const Facts& facts,
                     const std::optional<Placement>& placement, LaunchConfig& config) {
  LOCKSTEP_TRY(choose_endpoint(facts, placement, config));
  warn_as_torchrun(raw, config);
  if (reads_node_rank(raw, config)) LOCKSTEP_TRY(apply_node_rank(raw, placement, config));
  config.private_store = config.alone();
  if (config.backend->in_file(config.conf))
    return config.private_store ? Status{} : check_path(facts, config);
  LOCKSTEP_TRY(read_endpoints(config));
  if (config.private_store) config.rdzv_endpoints.clear();
  return {};
}

// Logs in one line what was taken from the scheduler. submitted: Lockstep made the batch script, so
// the user need not be told.
void say_scheduler(const std::optional<Placement>& placement, bool submitted,
                   LaunchConfig& config) {
  std::vector<std::string> taken;
  const auto note = [&](const char* option, const std::string& value) {
    const auto origin = config.origins.find(option);
    if (origin == config.origins.end() || origin->second.kind != Origin::Kind::scheduler) return;
    taken.push_back(fmt::format("--{} {} ({})", option, printable(value), origin->second.name));
  };
  note("nnodes", std::to_string(config.max_nodes));
  note("node-rank", std::to_string(config.node_rank));
  note("rdzv-endpoint", config.rdzv_endpoint);
  note("rdzv-id", config.run_id);
  if (taken.empty()) return;
  config.scheduler = placement->scheduler;
  if (submitted) return;
  const std::string job = placement->job.empty() ? "" : fmt::format(" ({})", placement->job);
  config.warnings.push_back(
      fmt::format("taken from {}{}: {}", config.scheduler, job, join(taken, ", ")));
}

}  // namespace

Status apply_rendezvous(const RawOptions& raw, const Facts& facts,
                        const std::optional<Placement>& placement, LaunchConfig& config) {
  LOCKSTEP_TRY_ASSIGN(const Choice choice, choose_backend(raw, config));
  config.backend = choice.backend;
  if (choice.why != Rule::none)
    config.origins["rdzv-backend"] = {Origin::Kind::rule, "", choice.why};
  config.rdzv_endpoint = raw.rdzv_endpoint;
  config.job_name = raw.rdzv_id.value_or("");
  if (becomes_standalone(raw, config)) {
    LOCKSTEP_TRY(apply_standalone(raw, facts, config));
  } else {
    LOCKSTEP_TRY(apply_run_id(raw, facts, placement, config));
  }
  LOCKSTEP_TRY(apply_rdzv_conf(raw, facts, config));
  LOCKSTEP_TRY(config.backend->fixed() ? apply_static(raw, placement, config)
                                       : apply_dynamic(raw, facts, placement, config));
  say_scheduler(placement, facts.env("LOCKSTEP_JOB_ID").has_value(), config);
  return {};
}

}  // namespace lockstep::launch
