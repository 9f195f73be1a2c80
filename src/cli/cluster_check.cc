// lockstep cluster check: asks hosts for facts, and names the problems that would stop a job.
#include "base/text.h"
#include "cli/cluster_options.h"
#include "cli/cluster_slurm.h"
#include "cli/places.h"
#include "cli/subcommand.h"
#include "hosts/check_report.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "project/project.h"
#include "ssh/binary.h"
#include "ssh/control_place.h"
#include "ssh/repair.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace lockstep::cli {
namespace {

// Returns the current project's place on hosts, or an empty text outside of a project.
std::string project_name() {
  std::error_code error;
  const auto project =
      project::find_project(std::filesystem::current_path(error).string(), std::nullopt);
  return project ? project->name : "";
}

// Removes leftovers of killed clients on this machine: control sockets without a master, old
// compressed binaries, host keys of removed clusters. Returns the removed files, in words.
Result<std::vector<std::string>> repair_here() {
  LOCKSTEP_TRY_ASSIGN(const ssh::Binary own, ssh::own_binary());
  const std::string path = ssh::remote_path(own.name);
  LOCKSTEP_TRY_ASSIGN(const std::string sockets, ssh::control_folder());
  auto removed = ssh::remove_dead_sockets(sockets);
  for (std::string& each :
       ssh::remove_old_pushes(io::cache_folder() + "/push", path.substr(path.rfind('/') + 1),
                              std::chrono::system_clock::now()))
    removed.push_back(std::move(each));
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(const auto pins, registry.remove_stray_pins());
  for (const std::string& file : pins)
    removed.push_back("the host keys of an unknown cluster " + file);
  return removed;
}

Result<ExitCode> check(const Call& call) {
  ClusterCheckOptions options;
  PlaceOptions place_options;
  fill(cluster_check_table(), call.parsed, options);
  fill(cluster_check_table(), call.parsed, place_options);
  if (call.parsed.names.empty())
    return fail(Errc::invalid_input, "no cluster or host is named",
                "write lockstep cluster check NAME, or user@host");
  if (call.parsed.names.size() > 1)
    return fail(Errc::invalid_input,
                fmt::format("'{}' is one word too many", printable(call.parsed.names[1])));
  // Only jobs reach the nodes of a Slurm cluster, so Slurm's own programs are asked instead.
  LOCKSTEP_TRY_ASSIGN(const auto registry, hosts::Registry::open(io::state_folder()));
  const auto known = registry.find(call.parsed.names[0]);
  if (known && known->is_slurm()) return check_slurm(*known, registry, options);
  hosts::CheckRequest request;
  LOCKSTEP_TRY_ASSIGN(request.hosts, places_of(call.parsed.names[0], place_options));
  request.project = project_name();
  request.repair = options.repair;
  hosts::CheckReport report{.repairs = options.repair};
  if (options.repair) {
    LOCKSTEP_TRY_ASSIGN(report.repaired_here, repair_here());
  }
  LOCKSTEP_TRY_ASSIGN(report.hosts, hosts::check_hosts(request));
  report.findings = hosts::findings_of(report.hosts);
  const std::string text = options.json ? codec::print_json(hosts::report_json(report)) + "\n"
                                        : hosts::report_text(report);
  std::fputs(text.c_str(), stdout);
  return passed_on(hosts::report_code(report));
}

}  // namespace

extern constinit const Subcommand kClusterCheck{
    .name = "check",
    .summary = "show the state of hosts, and problems that would stop a job",
    .table = cluster_check_table,
    .run = check,
    .signals = Signals::children};

}  // namespace lockstep::cli
