#include "cli/ground.h"

#include "base/log.h"
#include "cli/project_words.h"
#include "cli/subcommand.h"
#include "cli/sweep_options.h"
#include "cli/transfer_bar.h"
#include "project/install.h"
#include "project/outputs.h"
#include "project/sync_tree.h"

#include <filesystem>
#include <utility>

namespace lockstep::cli {
namespace {

// Prints the error of each host. Returns the first exit code that is not 0.
template <class Hosts>
int tell_troubles(std::string_view program, const Hosts& hosts) {
  int code = 0;
  for (const auto& host : hosts) {
    if (!host.error.empty()) print_error(program, {Errc::unavailable, host.error, host.hint, 0});
    if (code == 0) code = host.code;
  }
  return code;
}

}  // namespace

Result<Ground> ground_of(const RemoteOptions& options, bool here) {
  std::error_code error;
  const std::string own = std::filesystem::current_path(error);
  if (error) return fail(Errc::not_found, "the current directory no longer exists");
  Ground ground;
  // A job on this machine runs in the user's own folder and environment: there is nothing to sync.
  if (here) {
    if ((options.sync && *options.sync != "none") || !options.install.empty())
      return fail(Errc::invalid_input, "a run on this machine syncs and installs nothing",
                  "leave --sync and --install out");
    ground.folder = options.folder.value_or(own);
    return ground;
  }
  const bool brings = options.sync != "none";
  auto project = project_of(own, brings ? options.sync : std::nullopt);
  // Without --cwd even `--sync none` needs the project: its place on the hosts is the job's folder.
  if (!project && (brings || !options.folder)) return Failure(project.error());
  if (project)
    ground.folder = project->name + (project->folder.empty() ? "" : "/" + project->folder);
  if (options.folder) ground.folder = *options.folder;
  if (brings) ground.project = std::move(*project);
  return ground;
}

std::string script_there(const std::string& script, const Ground& ground) {
  if (!script.starts_with('/') || !ground.project) return script;
  std::error_code error;
  const auto in_root = std::filesystem::relative(script, ground.project->root, error);
  // A path outside the project may exist on the hosts as well, so leave it unchanged.
  if (error || in_root.native().starts_with("..")) return script;
  // Without a known way, only the user's own path may exist there, as on a shared disk.
  return project::path_from_folder(*ground.project, in_root.string(), ground.folder)
      .value_or(script);
}

Result<int> make_ready(std::string_view program, const RemoteOptions& options,
                       const std::vector<hosts::HostPlace>& places, const Ground& ground,
                       const ChosenEnvironment& environment) {
  if (ground.project) {
    TransferBar bar(true);
    project::SyncOptions settings;
    settings.force = options.force;
    settings.as_received = options.as_received;
    settings.remark = [&bar](const std::string& text) {
      bar.clear();
      log::warning("{}", text);
    };
    settings.progress = [&bar](std::uint64_t bytes, std::uint64_t of) { bar.draw(bytes, of); };
    LOCKSTEP_TRY_ASSIGN(const auto report,
                        project::sync_project(places, *ground.project, settings));
    bar.clear();
    // Stop the job if any host is not ready: the ranks of the other hosts would wait.
    if (const int code = tell_troubles(program, report.hosts); code != 0) return code;
  }
  if (options.install.empty()) return 0;
  if (!ground.project)
    return fail(Errc::invalid_input, "--install needs a project, and --sync none sends none",
                "leave --sync none out, or use lockstep install");
  LOCKSTEP_TRY_ASSIGN(const auto installs, project::install_packages(places, *ground.project,
                                                                     {.specs = options.install,
                                                                      .choice = environment.choice,
                                                                      .place = environment.place}));
  return tell_troubles(program, installs);
}

Status check_outputs(const RemoteOptions& options, const Ground& ground, bool here) {
  if (options.back.empty()) return {};
  if (here)
    return fail(Errc::invalid_input,
                "--back brings files from other machines, and this job runs here",
                "leave --back out: the files are here");
  if (!ground.project)
    return fail(Errc::invalid_input, "--back brings back what lies in the synced project",
                "leave --sync none out");
  for (const std::string& output : options.back)
    LOCKSTEP_TRY(project::path_in_project(*ground.project, output));
  return {};
}

Status bring_outputs(const Parsed& parsed, const RemoteOptions& options, const Ground& ground,
                     const std::vector<hosts::HostPlace>& from,
                     const std::function<void(const std::string&)>& tell) {
  if (options.back.empty()) return {};
  LOCKSTEP_TRY(check_outputs(options, ground, false));
  TransferBar bar(true);
  project::SyncOptions settings;
  settings.remark = [&](const std::string& text) {
    bar.clear();
    tell(text);
  };
  settings.progress = [&bar](std::uint64_t bytes, std::uint64_t of) { bar.draw(bytes, of); };
  // A row of a sweep may have run on any host. Other jobs write their outputs on node 0.
  const auto last = sweeps(parsed) || from.empty() ? from.end() : from.begin() + 1;
  return project::bring_outputs({from.begin(), last}, *ground.project, options.back, settings);
}

}  // namespace lockstep::cli
