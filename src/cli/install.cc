// lockstep install: packages for a project on hosts.
#include "cluster/install.h"

#include "cli/install_options.h"
#include "cli/subcommand.h"
#include "cluster/place.h"
#include "codec/json.h"
#include "io/own_folders.h"
#include "proc/signals.h"

#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr int kBadInput = 2;
constexpr int kFailed = 255;  // as ssh has it

Result<std::vector<cluster::HostPlace>> places_of(const InstallOptions& options) {
  LOCKSTEP_TRY_ASSIGN(const cluster::Registry registry,
                      cluster::Registry::open(io::state_folder()));
  return cluster::find_places(registry, options.where, options.nodes,
                              {options.user, options.key_path, options.jump});
}

nlohmann::ordered_json json_of(const cluster::HostInstall& install) {
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

void print(const std::vector<cluster::HostInstall>& installs, bool json) {
  if (json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const cluster::HostInstall& each : installs)
      all.push_back(json_of(each));
    std::puts(codec::print_json(all).c_str());
  }
  for (const cluster::HostInstall& each : installs) {
    if (!each.error.empty())
      print_error(install_table().program, {Errc::unavailable, each.error, each.hint, 0});
    if (each.error.empty() && !json)
      std::puts((each.name + ": " + cluster::summary_of(each)).c_str());
  }
}

int install_command(const Call& call) {
  const auto options = install_options(call.parsed);
  const auto refuse = [](const Error& error, int code) {
    print_error(install_table().program, error);
    return error.code == Errc::invalid_input ? kBadInput : code;
  };
  if (!options) return refuse(options.error(), kBadInput);
  std::error_code gone;
  const auto project =
      cluster::find_project(std::filesystem::current_path(gone).string(), options->project);
  if (!project) return refuse(project.error(), kBadInput);
  const auto places = places_of(*options);
  if (!places) return refuse(places.error(), kFailed);
  proc::block(proc::handled_signals());
  signal(SIGCHLD, SIG_DFL);
  const auto installs = cluster::install_packages(*places, *project,
                                                  {.specs = options->specs,
                                                   .choice = options->choice,
                                                   .place = options->place,
                                                   .python = options->python.value_or(""),
                                                   .force = options->force,
                                                   .use_uv = !options->no_uv});
  if (!installs) return refuse(installs.error(), kFailed);
  print(*installs, options->json);
  return cluster::code_of(*installs);
}

}  // namespace

extern constinit const Subcommand kInstall{
    .name = "install",
    .summary = "put packages into a project's environment on hosts",
    .table = install_table,
    .run = install_command};

}  // namespace lockstep::cli
