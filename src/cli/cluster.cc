// lockstep cluster: names for hosts, Slurm clusters and rented machines. `cluster check` is in
// cluster_check.cc.
#include "base/clock_ms.h"
#include "base/date_text.h"
#include "base/text.h"
#include "cli/cluster_options.h"
#include "cli/cluster_slurm.h"
#include "cli/on_demand_options.h"
#include "cli/owner_host.h"
#include "cli/rented_places.h"
#include "cli/subcommand.h"
#include "cloud/journal.h"
#include "codec/json.h"
#include "hosts/hosts_file.h"
#include "hosts/place.h"
#include "hosts/registry.h"
#include "io/fd.h"
#include "io/own_folders.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using hosts::Cluster;
using hosts::Registry;

Result<Registry> registry() {
  return Registry::open(io::state_folder());
}

// Returns the hosts of all options and of `more`, the words behind the cluster's name. Errors:
// invalid_input (a bad host, or no host), or the file cannot be read.
Result<std::vector<hosts::ListedHost>> hosts_of(const ClusterAddOptions& options,
                                                const std::vector<std::string>& more) {
  std::vector<std::string> texts = options.hosts;
  texts.insert(texts.end(), more.begin(), more.end());
  for (const std::string& list : options.host_lists)
    for (std::string& each : split(list, ','))
      texts.push_back(std::move(each));
  std::vector<hosts::ListedHost> hosts;
  for (const std::string& text : texts) {
    LOCKSTEP_TRY_ASSIGN(ssh::Target target, ssh::parse_target(text));
    hosts.push_back({std::move(target)});
  }
  if (options.hosts_file) {
    LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(*options.hosts_file));
    auto listed = hosts::parse_hosts_file(text);
    if (!listed) return Failure(std::move(listed).error().within(*options.hosts_file));
    hosts.insert(hosts.end(), listed->begin(), listed->end());
  }
  if (hosts.empty())
    return fail(Errc::invalid_input, "no host is given", "give --host user@host or --hosts-file");
  return hosts;
}

// Returns the cluster with the hosts of the options added at the end. Earlier hosts keep their
// numbers, so `--nodes` still means the same machines. Errors: invalid_input (a host is given
// twice).
Result<Cluster> with_hosts(Cluster made, const ClusterAddOptions& options,
                           const std::vector<std::string>& more) {
  LOCKSTEP_TRY_ASSIGN(auto hosts, hosts_of(options, more));
  std::string key;
  if (options.key_path) {
    LOCKSTEP_TRY_ASSIGN(key, hosts::check_key_path(*options.key_path));
  }
  for (hosts::ListedHost& host : hosts) {
    hosts::Node node{std::move(host.target), host.slots};
    // A user in front of the host ("ann@n1") is more specific than --user.
    if (options.user && !node.target.user) node.target.user = options.user;
    if (options.key_path) node.target.key_path = key;
    if (options.jump) node.target.jump = *options.jump;
    // A host listed twice would run every command twice, and be two nodes of a job.
    const auto same = [&](const hosts::Node& other) { return other.target == node.target; };
    if (std::any_of(made.nodes.begin(), made.nodes.end(), same))
      return fail(Errc::invalid_input,
                  fmt::format("{} is given twice", ssh::target_text(node.target)));
    made.nodes.push_back(std::move(node));
  }
  return made;
}

// Returns the name of a cluster, which must be the only word.
Result<std::string> one_name(const Parsed& parsed) {
  if (parsed.names.size() == 1) return parsed.names.front();
  if (parsed.names.empty()) return fail(Errc::invalid_input, "no cluster is named");
  return fail(Errc::invalid_input,
              fmt::format("'{}' is one word too many", printable(parsed.names[1])));
}

// Returns the name of a cluster, the first word. The other words are hosts.
Result<std::string> first_name(const Parsed& parsed) {
  if (parsed.names.empty()) return fail(Errc::invalid_input, "no cluster is named");
  return parsed.names.front();
}

// Returns what `show --json` prints. Absent members mean ssh's own choice.
nlohmann::ordered_json json_of(const Cluster& cluster) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const hosts::Node& node : cluster.nodes) {
    nlohmann::ordered_json each{{"host", node.target.host}};
    if (node.target.user) each["user"] = *node.target.user;
    if (node.target.port) each["port"] = *node.target.port;
    if (!node.target.key_path.empty()) each["key_path"] = node.target.key_path;
    if (!node.target.jump.empty()) each["jump"] = node.target.jump;
    if (node.slots) each["slots"] = *node.slots;
    nodes.push_back(std::move(each));
  }
  return {{"name", cluster.name},
          {"source", cluster.source},
          {"created_ms", cluster.created_ms},
          {"nodes", std::move(nodes)}};
}

void tell_nodes(const Cluster& cluster, bool json) {
  if (json)
    std::puts(codec::print_json(json_of(cluster)).c_str());
  else
    std::printf("%s: %zu %s\n", cluster.name.c_str(), cluster.nodes.size(),
                cluster.nodes.size() == 1 ? "node" : "nodes");
}

Status add_slurm(const std::string& name, const ClusterAddOptions& options, const Registry& known) {
  std::string line;
  LOCKSTEP_TRY_ASSIGN(const Cluster made, slurm_cluster_of(name, options, known, line));
  LOCKSTEP_TRY(known.add(made));
  std::puts(options.json ? codec::print_json(json_of(made)).c_str()
                         : fmt::format("{}: {}", name, line).c_str());
  return {};
}

// Adds a cluster whose machines are rented at each use. Rents nothing yet. Adding the cluster
// counts as consent: later uses do not ask again.
Status add_rented(const std::string& name, const ClusterAddOptions& options,
                  const OnDemandOptions& machines, const Registry& known) {
  LOCKSTEP_TRY(hosts::check_cluster_name(name));
  cloud::Rental standing{.id = name, .cluster = name, .owner = {}, .created_ms = unix_ms()};
  LOCKSTEP_TRY_ASSIGN(standing.wish, wish_of(machines, options.nodes));
  LOCKSTEP_TRY_ASSIGN(standing.terms, terms_of(machines));
  // Consent without a limit could cost any amount, so it must be explicit.
  if (!machines.yes && !standing.wish.max_price && !standing.terms.budget)
    return fail(Errc::invalid_input,
                "each use may rent machines without a question, and nothing caps the cost",
                "give --max-price or --budget, or -y");
  const Cluster made{
      .name = name, .source = "cloud", .created_ms = standing.created_ms, .nodes = {}};
  // Open the journal first: a cluster without its standing wish in the journal could never rent.
  LOCKSTEP_TRY_ASSIGN(cloud::Journal journal, cloud::Journal::open(io::state_folder()));
  LOCKSTEP_TRY(known.add(made));
  if (Status kept = journal.keep_standing(standing); !kept) {
    (void)known.remove(name);
    return kept;
  }
  std::puts(options.json ? codec::print_json(json_of(made)).c_str()
                         : fmt::format("{}: {} x {}, rented at first use", name,
                                       standing.wish.nodes, standing.wish.gpu.text())
                               .c_str());
  return {};
}

// Refuses Slurm clusters and rented clusters: Slurm knows its nodes, and rented machines come and
// go.
Status check_own_hosts(const Cluster& cluster) {
  if (!cluster.is_slurm() && !cluster.is_rented()) return {};
  return fail(Errc::invalid_input,
              fmt::format("{} must be a cluster of your own hosts, added by --host or --hosts-file",
                          cluster.name),
              fmt::format("lockstep cluster remove {} forgets it", cluster.name));
}

// Saves the cluster. --replace keeps the host keys that were accepted under this name: removing and
// adding the cluster would lose them, and the next connection would accept any key. --replace
// never replaces a Slurm cluster or a rented cluster, whose machines may still cost money.
Status keep_hosts(const Registry& known, const Cluster& made, bool replace) {
  if (!replace) return known.add(made);
  LOCKSTEP_TRY_ASSIGN(const auto clusters, known.list());
  for (const Cluster& each : clusters)
    if (each.name == made.name) LOCKSTEP_TRY(check_own_hosts(each));
  return known.put(made);
}

Status add(const Call& call) {
  ClusterAddOptions options;
  fill(cluster_add_table(), call.parsed, options);
  OnDemandOptions machines;
  fill(cluster_add_table(), call.parsed, machines);
  const bool takes_hosts = !options.slurm && !machines.gpus;
  LOCKSTEP_TRY_ASSIGN(const std::string name,
                      takes_hosts ? first_name(call.parsed) : one_name(call.parsed));
  if (options.login && !options.slurm)
    return fail(Errc::invalid_input, "--login is for Slurm clusters", "give --slurm, too");
  if (options.replace && !takes_hosts)
    return fail(Errc::invalid_input, "--replace is for clusters of hosts of your own",
                fmt::format("lockstep cluster remove {} forgets the cluster", name));
  LOCKSTEP_TRY_ASSIGN(const Registry known, registry());
  if (machines.gpus) {
    if (options.slurm || !options.hosts.empty() || !options.host_lists.empty() ||
        options.hosts_file)
      return fail(Errc::invalid_input, "--on-demand, hosts and --slurm exclude each other",
                  "give one of them");
    return add_rented(name, options, machines, known);
  }
  if (options.slurm) return add_slurm(name, options, known);
  LOCKSTEP_TRY(hosts::check_cluster_name(name));
  LOCKSTEP_TRY_ASSIGN(
      const Cluster made,
      with_hosts({.name = name, .source = "ssh", .created_ms = unix_ms(), .nodes = {}}, options,
                 {call.parsed.names.begin() + 1, call.parsed.names.end()}));
  LOCKSTEP_TRY(keep_hosts(known, made, options.replace));
  tell_nodes(made, options.json);
  return {};
}

// Returns the named cluster, which must consist of the user's own hosts.
Result<Cluster> own_hosts(const Registry& known, const Parsed& parsed) {
  LOCKSTEP_TRY_ASSIGN(const std::string name, first_name(parsed));
  LOCKSTEP_TRY_ASSIGN(Cluster found, known.find(name));
  LOCKSTEP_TRY(check_own_hosts(found));
  return found;
}

Status add_host(const Call& call) {
  ClusterAddOptions options;
  fill(cluster_add_host_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const Registry known, registry());
  LOCKSTEP_TRY_ASSIGN(Cluster found, own_hosts(known, call.parsed));
  LOCKSTEP_TRY_ASSIGN(const Cluster made,
                      with_hosts(std::move(found), options,
                                 {call.parsed.names.begin() + 1, call.parsed.names.end()}));
  LOCKSTEP_TRY(known.put(made));
  tell_nodes(made, options.json);
  return {};
}

Status remove_host(const Call& call) {
  ClusterShowOptions options;
  fill(cluster_remove_host_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const Registry known, registry());
  LOCKSTEP_TRY_ASSIGN(const Cluster found, own_hosts(known, call.parsed));
  LOCKSTEP_TRY_ASSIGN(
      const Cluster left,
      hosts::without_hosts(found, {call.parsed.names.begin() + 1, call.parsed.names.end()}));
  LOCKSTEP_TRY(known.put(left));
  tell_nodes(left, options.json);
  return {};
}

Status list(const Call& call) {
  ClusterShowOptions options;
  fill(cluster_list_table(), call.parsed, options);
  if (!call.parsed.names.empty())
    return fail(Errc::invalid_input,
                fmt::format("'{}' is one word too many", printable(call.parsed.names[0])));
  LOCKSTEP_TRY_ASSIGN(const Registry known, registry());
  LOCKSTEP_TRY_ASSIGN(const auto clusters, known.list());
  // A sweep may run beside the answer. The destructor of `swept` prints the findings, after the
  // list.
  Swept swept(cluster_list_table().program);
  LOCKSTEP_TRY_ASSIGN(const nlohmann::json rented, rented_facts(clusters, swept));
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Cluster& each : clusters) {
      all.push_back(json_of(each));
      if (const auto facts = rented.find(each.name); each.is_rented() && facts != rented.end())
        all.back().update(*facts);
    }
    std::puts(codec::print_json(all).c_str());
    return {};
  }
  std::size_t width = 4;
  for (const Cluster& each : clusters)
    width = std::max(width, each.name.size());
  std::fputs(
      fmt::format("{:<{}}  {:>5}  {:<19}  {}\n", "NAME", width, "NODES", "ADDED", "SOURCE").c_str(),
      stdout);
  for (const Cluster& each : clusters)
    // The only node of a Slurm cluster's record is its login host: a count would mislead.
    std::fputs(
        fmt::format(
            "{:<{}}  {:>5}  {:<19}  {}\n", each.name, width,
            each.is_slurm() ? "-" : std::to_string(each.nodes.size()), date_text(each.created_ms),
            each.is_rented() ? each.source + ": " + rented_words(rented, each.name) : each.source)
            .c_str(),
        stdout);
  return {};
}

Status show_here(const Call& call) {
  ClusterShowOptions options;
  fill(cluster_show_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const std::string name, one_name(call.parsed));
  LOCKSTEP_TRY_ASSIGN(const Registry known, registry());
  LOCKSTEP_TRY_ASSIGN(const Cluster found, known.find(name));
  if (found.is_slurm()) return show_slurm(found, known, options, json_of(found));
  if (options.forget_node)
    return fail(Errc::invalid_input, fmt::format("{} is not a Slurm cluster", name));
  Swept swept(cluster_show_table().program);
  nlohmann::json rented = nlohmann::json::object();
  if (found.is_rented()) {
    LOCKSTEP_TRY_ASSIGN(rented, rented_facts({found}, swept));
  }
  if (options.json) {
    nlohmann::ordered_json shown = json_of(found);
    if (const auto facts = rented.find(name); facts != rented.end()) shown.update(*facts);
    std::puts(codec::print_json(shown).c_str());
    return {};
  }
  if (found.is_rented()) std::printf("%s: %s\n", name.c_str(), rented_words(rented, name).c_str());
  if (const std::string job = rented_job_words(rented, name); !job.empty())
    std::printf("%s: %s\n", name.c_str(), job.c_str());
  std::printf("%s: %zu %s over %s, added %s\n", name.c_str(), found.nodes.size(),
              found.nodes.size() == 1 ? "node" : "nodes", found.source.c_str(),
              date_text(found.created_ms).c_str());
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    const hosts::Node& node = found.nodes[i];
    std::string line = fmt::format("  {}  {}", i, ssh::target_text(node.target));
    if (node.target.port) line += fmt::format(":{}", *node.target.port);
    if (node.slots) line += fmt::format("  slots {}", *node.slots);
    if (!node.target.key_path.empty()) line += "  key " + node.target.key_path;
    if (!node.target.jump.empty()) line += "  through " + node.target.jump;
    std::puts(line.c_str());
  }
  return {};
}

Result<ExitCode> show(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const auto there, pass_to_owner(call, {"cluster", "show"}));
  if (there) return *there;
  LOCKSTEP_TRY(show_here(call));
  return ExitCode::ok;
}

Status remove(const Call& call) {
  ClusterShowOptions options;
  fill(cluster_remove_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(const std::string name, one_name(call.parsed));
  LOCKSTEP_TRY_ASSIGN(const Registry known, registry());
  LOCKSTEP_TRY_ASSIGN(const Cluster found, known.find(name));
  // First, because this refuses while machines exist: without the name, no command reaches them.
  if (found.is_rented()) LOCKSTEP_TRY(forget_rented(name));
  LOCKSTEP_TRY(known.remove(name));
  if (options.json) std::puts(codec::print_json(json_of(found)).c_str());
  return {};
}

constexpr Subcommand kAdd{.name = "add",
                          .summary = "give hosts a name",
                          .table = cluster_add_table,
                          .run = run_status<add>,
                          .signals = Signals::children};
constexpr Subcommand kList{.name = "list",
                           .summary = "list the known clusters",
                           .table = cluster_list_table,
                           .run = run_status<list>};
constexpr Subcommand kShow{.name = "show",
                           .summary = "show the nodes of a cluster",
                           .table = cluster_show_table,
                           .run = show,
                           .signals = Signals::children};
constexpr Subcommand kRemove{.name = "remove",
                             .summary = "forget a cluster and the host keys",
                             .table = cluster_remove_table,
                             .run = run_status<remove>};
constexpr Subcommand kAddHost{.name = "add-host",
                              .summary = "add hosts to a cluster",
                              .table = cluster_add_host_table,
                              .run = run_status<add_host>};
constexpr Subcommand kRemoveHost{.name = "remove-host",
                                 .summary = "take hosts out of a cluster",
                                 .table = cluster_remove_host_table,
                                 .run = run_status<remove_host>};
}  // namespace

// Defined in cluster_check.cc.
extern const Subcommand kClusterCheck;

namespace {
constexpr const Subcommand* kRows[] = {&kAdd,  &kAddHost,      &kRemoveHost, &kList,
                                       &kShow, &kClusterCheck, &kRemove};
}  // namespace

extern constinit const Subcommand kCluster{
    .name = "cluster", .summary = "give names to groups of hosts", .rows = kRows};

}  // namespace lockstep::cli
