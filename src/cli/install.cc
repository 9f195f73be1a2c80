// lockstep install: installs packages for a project on hosts.
#include "project/install.h"

#include "cli/host_lines.h"
#include "cli/install_options.h"
#include "cli/places.h"
#include "cli/project_words.h"
#include "cli/subcommand.h"
#include "cli/terminal.h"
#include "cli/transfer_bar.h"
#include "codec/json.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "project/sync_tree.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

// Returns one host's part of --json. docs/remote.md lists the members.
nlohmann::ordered_json json_of(const project::HostInstall& install) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const setup::StepAnswer& each : install.answer.steps)
    steps.push_back(
        {{"spec", each.spec}, {"state", setup::state_name(each.state)}, {"seconds", each.seconds}});
  const setup::Environment& environment = install.answer.environment;
  return {{"name", install.name},
          {"code", install.code},
          {"error", install.error},
          {"hint", install.hint},
          {"tail", install.answer.tail},
          {"steps", std::move(steps)},
          {"environment",
           {{"kind", setup::kind_name(environment.kind)},
            {"prefix", environment.prefix},
            {"python", environment.python},
            {"local", environment.local}}}};
}

// Prints results to stdout, and errors to stderr, with --json too.
void print(const std::vector<project::HostInstall>& installs, bool json) {
  if (json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const project::HostInstall& each : installs)
      all.push_back(json_of(each));
    std::puts(codec::print_json(all).c_str());
  }
  for (const project::HostInstall& each : installs) {
    if (each.show_tail)
      for (const std::string& line : each.answer.tail)
        std::fprintf(stderr, "%s: %s\n", each.name.c_str(), line.c_str());
    if (!each.error.empty())
      print_error(install_table().program, {Errc::unavailable, each.error, each.hint, 0});
    if (each.error.empty() && !json)
      std::puts((each.name + ": " + project::summary_of(each)).c_str());
  }
}

// Progress on a terminal: one line per host. Draws nothing if the lines and the cursor's row do not
// fit on the screen, because lines that have scrolled away cannot be erased. The tools' output is
// then printed at once.
class Terminal {
 public:
  Terminal(const std::vector<hosts::HostPlace>& hosts, bool wanted)
      : lines_(names_of(hosts)),
        drawn_(wanted && terminal_size(STDERR_FILENO).columns > 0 &&
               hosts.size() < terminal_size(STDERR_FILENO).rows) {}
  // Leaves no progress on the screen, also after an error.
  ~Terminal() { print(lines_.erase()); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool drawn() const { return drawn_; }
  void put(std::size_t host, std::string_view bytes) {
    lines_.put(host, bytes);
    print(lines_.draw(terminal_size(STDERR_FILENO).columns));
  }

 private:
  static std::vector<std::string> names_of(const std::vector<hosts::HostPlace>& hosts) {
    std::vector<std::string> names;
    names.reserve(hosts.size());
    for (const hosts::HostPlace& each : hosts)
      names.push_back(each.name);
    return names;
  }
  static void print(const std::string& text) {
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
  }

  HostLines lines_;
  bool drawn_;
  WipesForLog wipes_{[this] { print(lines_.erase()); }};
};

// Syncs the project. Returns the hosts that have the files. Adds the other hosts to `failed`, with
// their errors: an unreachable host must not stop the install on reachable hosts.
Result<std::vector<hosts::HostPlace>> sync_first(const std::vector<hosts::HostPlace>& places,
                                                 const project::Project& project,
                                                 std::vector<project::HostInstall>& failed,
                                                 bool json) {
  TransferBar bar(!json);
  project::SyncOptions settings;
  settings.progress = [&bar](std::uint64_t bytes, std::uint64_t of) { bar.draw(bytes, of); };
  settings.remark = [&bar](const std::string& text) {
    bar.clear();
    std::fprintf(stderr, "%s: warning: %s\n", install_table().program.data(), text.c_str());
  };
  LOCKSTEP_TRY_ASSIGN(const auto report, project::sync_project(places, project, settings));
  std::vector<hosts::HostPlace> synced;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const project::HostSync& host = report.hosts.at(i);
    if (host.error.empty()) {
      synced.push_back(places[i]);
    } else {
      failed.push_back(
          {.name = host.name, .code = host.code, .error = host.error, .hint = host.hint});
    }
  }
  return synced;
}

// Merges both lists in the order of the hosts. Each host is in exactly one list. Both lists are
// already sorted by the order of the hosts.
std::vector<project::HostInstall> in_order(const std::vector<hosts::HostPlace>& places,
                                           const std::vector<project::HostInstall>& failed,
                                           const std::vector<project::HostInstall>& installs) {
  std::vector<project::HostInstall> all;
  for (std::size_t f = 0, i = 0; f + i < places.size();) {
    const bool has_failed = f < failed.size() && failed[f].name == places[f + i].name;
    all.push_back(has_failed ? failed[f++] : installs.at(i++));
  }
  return all;
}

// Refuses --overlay for a Slurm cluster. An overlay lies on a node's own disk, and only jobs reach
// the nodes.
Status refuse_overlay_on_slurm(const InstallOptions& options) {
  if (!options.overlay) return {};
  LOCKSTEP_TRY_ASSIGN(const auto registry, hosts::Registry::open(io::state_folder()));
  const auto known = registry.find(options.where);
  if (!known || !known->is_slurm()) return {};
  return fail(Errc::invalid_input,
              options.where + " is a Slurm cluster: nodes get wheels with a job",
              "write lockstep submit --wheel FILE ... for each job");
}

// Syncs if a spec needs files, then installs on all hosts at once. Returns one result per host. A
// host's failure is a result, not an error.
Result<std::vector<project::HostInstall>> install_all(const InstallOptions& options,
                                                      const project::Project& project) {
  LOCKSTEP_TRY(refuse_overlay_on_slurm(options));
  LOCKSTEP_TRY_ASSIGN(const auto places, places_of(options.where, options.places));
  LOCKSTEP_TRY_ASSIGN(const auto specs, setup::parse_specs(options.specs));
  std::vector<hosts::HostPlace> ready = places;
  std::vector<project::HostInstall> failed;
  if (project::needs_files(specs) && !options.no_sync) {
    LOCKSTEP_TRY_ASSIGN(ready, sync_first(places, project, failed, options.json));
    if (ready.empty()) return failed;
  }
  Terminal terminal(ready, !options.json);
  project::InstallOptions settings{.specs = options.specs,
                                   .choice = options.chosen.choice,
                                   .place = options.chosen.place,
                                   .python = options.python.value_or(""),
                                   .force = options.force,
                                   .use_uv = !options.no_uv,
                                   .overlay = options.overlay};
  if (terminal.drawn())
    settings.on_words = [&terminal](std::size_t host, std::string_view bytes) {
      terminal.put(host, bytes);
    };
  LOCKSTEP_TRY_ASSIGN(auto installs, project::install_packages(ready, project, settings));
  // The lines have replaced the tools' output: show the last output of hosts that failed.
  if (terminal.drawn())
    for (project::HostInstall& each : installs)
      each.show_tail = true;
  return in_order(places, failed, installs);
}

Result<ExitCode> install_command(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const InstallOptions options, install_options(call.parsed));
  const auto project = project_of(".", options.project);
  if (!project) return refuse(install_table().program, project.error(), always(ExitCode::usage));
  LOCKSTEP_TRY_ASSIGN(const auto installs, install_all(options, *project));
  print(installs, options.json);
  return passed_on(project::code_of(installs));
}

}  // namespace

extern constinit const Subcommand kInstall{
    .name = "install",
    .summary = "put packages into a project's environment on hosts",
    .table = install_table,
    .run = install_command,
    .signals = Signals::blocked,
    .fails_with = kAsSsh};

}  // namespace lockstep::cli
