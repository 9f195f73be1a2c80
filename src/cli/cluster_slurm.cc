#include "cli/cluster_slurm.h"

#include "base/clock_ms.h"
#include "base/text.h"
#include "hosts/place.h"
#include "hosts/slurm_host.h"
#include "jobs/on_slurm/slurm_bad_nodes.h"
#include "slurm/cluster_text.h"
#include "slurm/words.h"

#include <fmt/core.h>

#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using hosts::Cluster;
using hosts::HostPlace;

// Returns the place of Slurm's programs. A cluster without a login host means this machine.
HostPlace place_of(const Cluster& found, const hosts::Registry& registry) {
  if (found.nodes.empty()) return {.name = std::string("local"), .target = {}, .here = true};
  return {.name = ssh::target_text(found.nodes[0].target),
          .target = found.nodes[0].target,
          .pins = registry.pins_file(found.name)};
}

std::string by_way_of(const Cluster& found) {
  return found.nodes.empty() ? "on this machine" : "by " + ssh::target_text(found.nodes[0].target);
}

std::string bad_line(const slurm::BadNode& node) {
  return fmt::format("left out: {} until {}: {} ({})\n", printable(node.node),
                     slurm::moment_text(node.back_at), printable(node.cause),
                     slurm::moment_text(node.last));
}

nlohmann::ordered_json bad_json(const std::vector<slurm::BadNode>& nodes) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const slurm::BadNode& each : nodes)
    all.push_back({{"node", each.node},
                   {"weight", each.weight},
                   {"last", each.last},
                   {"back_at", each.back_at},
                   {"cause", each.cause}});
  return all;
}

}  // namespace

Result<Cluster> slurm_cluster_of(const std::string& name, const ClusterAddOptions& options,
                                 const hosts::Registry& registry, std::string& line) {
  LOCKSTEP_TRY(hosts::check_cluster_name(name));
  if (!options.hosts.empty() || options.hosts_file)
    return fail(Errc::invalid_input, "--slurm and --host exclude each other",
                "Slurm itself lists the nodes; --login names the host with Slurm's commands");
  // The record has only the login host. Slurm itself knows the nodes, and they change.
  Cluster made{.name = name, .source = "slurm", .created_ms = unix_ms(), .nodes = {}};
  if (options.login) {
    LOCKSTEP_TRY_ASSIGN(ssh::Target target, ssh::parse_target(*options.login));
    if (options.user && !target.user) target.user = options.user;
    if (options.key_path) {
      LOCKSTEP_TRY_ASSIGN(target.key_path, hosts::check_key_path(*options.key_path));
    }
    if (options.jump) target.jump = *options.jump;
    made.nodes.push_back({std::move(target)});
  }
  const slurm::RunTool run = hosts::slurm_tools(place_of(made, registry));
  auto facts = slurm::ask_cluster(run);
  if (!facts && facts.error().code == Errc::not_found && !options.login)
    return fail(Errc::not_found, facts.error().message,
                "where Slurm is elsewhere, name its login host with --login");
  LOCKSTEP_TRY(facts);
  line = slurm::cluster_line(*facts);
  return made;
}

Status show_slurm(const Cluster& found, const hosts::Registry& registry,
                  const ClusterShowOptions& options, nlohmann::ordered_json json) {
  const HostPlace place = place_of(found, registry);
  LOCKSTEP_TRY_ASSIGN(const slurm::ClusterFacts facts,
                      slurm::ask_cluster(hosts::slurm_tools(place)));
  // Failures are recorded under Slurm's ClusterName, not under the user's name for the cluster.
  const std::string own_name = facts.setting("ClusterName");
  const std::int64_t now = unix_ms() / 1000;
  if (options.forget_node)
    LOCKSTEP_TRY(jobs::on_slurm::forget_bad_node_at(place, own_name, *options.forget_node, now));
  LOCKSTEP_TRY_ASSIGN(const auto bad, jobs::on_slurm::bad_nodes_at(place, own_name, now));
  if (options.json) {
    json["slurm"] = slurm::cluster_json(facts);
    json["left_out"] = bad_json(bad);
    std::puts(codec::print_json(json).c_str());
    return {};
  }
  std::string text = fmt::format("{}: {}, cluster {}, {}\n", found.name, slurm::cluster_line(facts),
                                 printable(own_name), by_way_of(found));
  text += slurm::cluster_text(facts);
  for (const slurm::BadNode& each : bad)
    text += bad_line(each);
  std::fputs(text.c_str(), stdout);
  return {};
}

Result<ExitCode> check_slurm(const Cluster& found, const hosts::Registry& registry,
                             const ClusterCheckOptions& options) {
  const slurm::RunTool run = hosts::slurm_tools(place_of(found, registry));
  // Unlike ask_cluster(), the probe does not fail: an unreachable controller is a finding.
  const slurm::ClusterProbe probe = slurm::probe_cluster(run);
  const auto findings = slurm::findings_of(probe);
  ExitCode code = ExitCode::ok;
  std::string text = probe.facts ? slurm::cluster_text(*probe.facts) : "";
  nlohmann::ordered_json listed = nlohmann::ordered_json::array();
  for (const slurm::ClusterFinding& each : findings) {
    const char* weight = each.stops_jobs ? "trouble" : "warning";
    if (each.stops_jobs) code = ExitCode::failed;
    text += fmt::format("{}: {}; {}\n", weight, each.text, each.cure);
    listed.push_back(
        {{"weight", weight}, {"what", each.what}, {"text", each.text}, {"cure", each.cure}});
  }
  if (code == ExitCode::ok) text += "nothing stands in the way of a job\n";
  if (options.json) {
    nlohmann::ordered_json json{{"cluster", found.name}, {"findings", std::move(listed)}};
    json["slurm"] =
        probe.facts ? slurm::cluster_json(*probe.facts) : nlohmann::ordered_json(nullptr);
    text = codec::print_json(json) + "\n";
  }
  std::fputs(text.c_str(), stdout);
  return code;
}

}  // namespace lockstep::cli
