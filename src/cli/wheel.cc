// lockstep wheel: builds a wheel once for the given ops, GPU architectures and CPU level, on this
// machine, in a Slurm job or on a cluster.
#include "base/environment.h"
#include "base/text.h"
#include "cli/subcommand.h"
#include "cli/wheel_options.h"
#include "codec/json.h"
#include "hosts/place.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "proc/signals.h"
#include "project/wheel_afar.h"
#include "setup/cpu_level.h"
#include "setup/overlay.h"
#include "setup/wheel_build.h"
#include "setup/wheel_scratch.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::cli {
namespace {

void say(std::string_view line) {
  std::fprintf(stderr, "lockstep wheel: %.*s\n", static_cast<int>(line.size()), line.data());
}

// Keeps this process alive at Ctrl-C. The build tool is in the terminal's foreground group, too,
// and ends. Then this process must clean up behind the tool.
void outlive_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  for (const int number : {SIGINT, SIGHUP, SIGQUIT})
    sigaction(number, &action, nullptr);
}

Status print_plan(const setup::WheelRequest& request, bool json) {
  LOCKSTEP_TRY_ASSIGN(const setup::PreparedWheel prepared, setup::prepare_wheel(request, say));
  const auto variables = setup::build_variables(prepared.plan);
  const auto command = setup::shown_command(prepared);
  const std::string key = setup::key_of_wheel(prepared.plan);
  // --print builds nothing, so a fetched source is of no more use.
  setup::remove_scratch(prepared.scratch);
  // stdout must be JSON or a shell script and nothing else. Warnings go to stderr.
  for (const std::string& note : prepared.notes)
    say("warning: " + note);
  const auto asked = setup::ops_of_environment(prepared.plan);
  if (json) {
    const nlohmann::ordered_json all{{"key", key},
                                     {"variables", variables},
                                     {"environment", asked},
                                     {"isa", setup::isa_text(prepared.plan.level)},
                                     {"command", command}};
    std::puts(codec::print_json(all).c_str());
    return {};
  }
  for (const std::string& each : variables) {
    const std::size_t sign = each.find('=');
    std::printf("export %s=%s\n", each.substr(0, sign).c_str(),
                shell_quote(each.substr(sign + 1)).c_str());
  }
  for (const std::string& each : asked)
    std::printf("# builds an op, from the environment: %s\n", printable(each).c_str());
  std::printf("# CPUs: %s in place of native\n", setup::isa_text(prepared.plan.level).c_str());
  std::puts(shell_join(command).c_str());
  return {};
}

// Builds on a host of the cluster, or in a job of a Slurm cluster.
Result<setup::BuiltWheel> build_on(const WheelOptions& options,
                                   const setup::WheelRequest& request) {
  LOCKSTEP_TRY_ASSIGN(const auto registry, hosts::Registry::open(io::state_folder()));
  project::WheelHosts where{.hosts = {}, .settings = options.settings};
  const auto known = registry.find(*options.on);
  where.is_login = known && known->is_slurm();
  // A Slurm cluster without a login host is this machine's own Slurm.
  if (where.is_login && known->nodes.empty())
    return project::build_wheel_in_job(request, options.settings, say);
  if (!where.is_login && !options.settings.empty())
    return fail(Errc::invalid_input,
                fmt::format("--{} is an option of sbatch, and {} is not a Slurm cluster",
                            options.settings.front().name, printable(*options.on)));
  LOCKSTEP_TRY_ASSIGN(where.hosts, hosts::find_places(registry, *options.on, {}, {}));
  // Only here, where the connections to hosts read signals. A build on this machine reads none and
  // relies on outlive_interrupts().
  take_signals(Signals::blocked);
  return project::build_wheel_on(where, request, say);
}

Result<setup::BuiltWheel> build_somewhere(const WheelOptions& options,
                                          const setup::WheelRequest& request) {
  if (options.on) return build_on(options, request);
  if (options.slurm) return project::build_wheel_in_job(request, options.settings, say);
  auto built = setup::build_wheel(request, say);
  // srun brought this copy of the program for this build alone (SLURM_BCAST).
  if (const char* carried = std::getenv("LOCKSTEP_CARRIED")) unlink(carried);
  return built;
}

Status build(const WheelOptions& options, const setup::WheelRequest& request) {
  LOCKSTEP_TRY_ASSIGN(const setup::BuiltWheel wheel, build_somewhere(options, request));
  std::string path = wheel.path;
  if (!options.out.empty()) {
    LOCKSTEP_TRY_ASSIGN(path, setup::copy_wheel(wheel, options.out));
  }
  if (options.json) {
    nlohmann::ordered_json all = wheel.manifest;
    all["path"] = path;
    all["cached"] = wheel.cached;
    std::puts(codec::print_json(all).c_str());
    return {};
  }
  // The path alone is on stdout, for $(lockstep wheel ...).
  const auto seconds = wheel.manifest.find("seconds");
  if (!wheel.cached && seconds != wheel.manifest.end() && seconds->is_number())
    say(fmt::format("built in {:.0f} s", seconds->get<double>()));
  std::puts(path.c_str());
  return {};
}

Status drop(const std::string& key) {
  LOCKSTEP_TRY_ASSIGN(const std::string path, setup::drop_overlay(key));
  std::puts(("removed " + path).c_str());
  return {};
}

ParseResult read_words(const Args& words, const GetEnv& env) {
  auto found = read_wheel_words(words, env);
  if (!found) return tl::make_unexpected(found.error());
  return std::move(found->own);
}

Status carry_out(const Call& call) {
  const auto words = read_wheel_words(call.words, env_variable);
  if (!words) return Failure(words.error().error);
  LOCKSTEP_TRY_ASSIGN(const WheelOptions options, wheel_options(*words));
  outlive_interrupts();
  if (options.drop) return drop(*options.drop);
  const setup::WheelRequest request{.source = options.source,
                                    .ops = options.ops,
                                    .arch = options.arch,
                                    .isa = options.isa,
                                    .python = options.python,
                                    .jobs = static_cast<int>(options.jobs),
                                    .force = options.force};
  return options.print ? print_plan(request, options.json) : build(options, request);
}

}  // namespace

extern constinit const Subcommand kWheel{.name = "wheel",
                                         .summary = "build a wheel once, with DeepSpeed's ops",
                                         .table = wheel_table,
                                         .read = read_words,
                                         .run = run_status<carry_out>,
                                         .signals = Signals::children};

}  // namespace lockstep::cli
