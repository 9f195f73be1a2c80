// lockstep run, torchrun and lockstep launch: options to LaunchConfig to one job.
#include "agent/job.h"
#include "agent/report_json.h"
#include "base/log.h"
#include "cli/behind_script.h"
#include "cli/completion.h"
#include "cli/explain.h"
#include "cli/meant.h"
#include "cli/other_launcher.h"
#include "cli/remote_run.h"
#include "cli/rented_run.h"
#include "cli/run_options.h"
#include "cli/subcommand.h"
#include "host/identity.h"
#include "io/replace_file.h"
#include "launch/launch_config.h"
#include "launch/machine_facts.h"
#include "launch/raw_options.h"
#include "proc/signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr std::string_view kSummary = "run a script in several workers, as torchrun does";
constexpr int kFailed = 1;  // the parser's own refusals end with 2
constexpr int kBadInput = 2;

enum class RunAs { run, torchrun, launch };

std::vector<std::string> variable_names() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

int print_completion(const Program& of, const Table& table, std::string_view shell) {
  const auto script = completion_script(of, shell);
  if (!script) {
    print_error(table.program, script.error());
    return kFailed;
  }
  std::fputs(script->c_str(), stdout);
  return 0;
}

// Takes the token out of the environment. Workers and helpers would inherit it, and
// /proc/PID/environ shows the memory where it stood, which is therefore wiped.
std::optional<std::string> take_token() {
  constexpr const char* kName = "LOCKSTEP_RDZV_TOKEN";
  char* value = std::getenv(kName);
  if (value == nullptr) return std::nullopt;
  std::string token(value);
  explicit_bzero(value, token.size());
  unsetenv(kName);
  return token;
}

int run_elsewhere(const Call& call, const RemoteOptions& options) {
  if (options.elsewhere()) return run_on_hosts(call, options);
  if (options.include || options.exclude) {
    print_error(run_table().program,
                {Errc::invalid_input,
                 "--include and --exclude are of use only together with --hostfile",
                 {},
                 0});
    return kBadInput;
  }
  const std::string lacks_on = needs_on(call.parsed);
  print_error(run_table().program,
              {Errc::invalid_input, lacks_on + " is of use only together with --on", {}, 0});
  return kBadInput;
}

// Whoever reads reports (a batch system, a supervisor) hears why nothing has begun, too.
int refuse(const Table& table, const launch::RawOptions& raw, const Error& why) {
  print_error(table.program, why);
  // A file that can't be written has been refused itself.
  if (raw.report) (void)io::replace_file(*raw.report, agent::refusal_json(host::node_name(), why));
  return kFailed;
}

int launch(const Table& table, const Parsed& parsed, const RunRequest& request, RunAs as) {
  launch::RawOptions raw = raw_options(table, parsed);
  if (request.explain) raw.report.reset();
  raw.legacy_launch = as == RunAs::launch;
  raw.called_torchrun = as == RunAs::torchrun;
  raw.rdzv_token = take_token();
  auto config = launch::make_launch_config(raw, launch::machine_facts());
  if (!config) return refuse(table, raw, config.error());
  if (std::string hint = behind_script_hint(table, parsed); !hint.empty())
    config->job_warnings.push_back(std::move(hint));
  for (const std::string& warning : mistyped_variables(table, variable_names()))
    log::warning("{}", warning);
  for (const std::string& warning : config->warnings)
    log::warning("{}", warning);
  // As torchrun says it.
  if (raw.standalone)
    log::info(
        "\n**************************************\nRendezvous info:\n--rdzv-backend=c10d "
        "--rdzv-endpoint=localhost:0 --rdzv-id={}\n**************************************\n",
        config->run_id);
  if (request.explain) {
    for (const std::string& warning : config->job_warnings)
      log::warning("{}", warning);
    std::fputs(explain_text(*config).c_str(), stdout);
    return 0;
  }
  const auto code = agent::run_job(*config);
  return code ? *code : refuse(table, raw, code.error());
}

int run_as(const Call& call, const Table& table, RunAs as) {
  // From here on a signal stays pending until the guardian or the agent reads signals.
  proc::block(proc::handled_signals());
  // If SIGCHLD was inherited as ignored, the kernel would discard our children's exit statuses.
  signal(SIGCHLD, SIG_DFL);
  RunRequest request;
  fill(table, call.parsed, request);
  if (request.print_completion)
    return print_completion(call.program, table, *request.print_completion);
  const RemoteOptions remote = remote_options(table, call.parsed);
  OnDemandOptions rented;
  fill(table, call.parsed, rented);
  const bool elsewhere = rented.gpus || remote.elsewhere();
  const std::string hint = elsewhere ? behind_script_hint(table, call.parsed) : "";
  if (!hint.empty()) log::warning("{}", hint);
  if (rented.gpus) return run_on_rented(call, remote, rented);
  if (const std::string lone = needs_on_demand(call.parsed); !lone.empty()) {
    print_error(table.program,
                {Errc::invalid_input, lone + " is of use only together with --on-demand", {}, 0});
    return kBadInput;
  }
  if (remote.elsewhere() || !needs_on(call.parsed).empty()) return run_elsewhere(call, remote);
  return launch(table, call.parsed, request, as);
}

int run_command(const Call& call) {
  const auto restated = restate_launcher(call, run_table());
  if (!restated) {
    print_error(run_table().program, restated.error());
    return kBadInput;
  }
  if (!*restated) return run_as(call, run_table(), RunAs::run);
  if (!(*restated)->parsed.ended_by.empty()) {  // torchrun --help
    std::fputs(help_text(run_table()).c_str(), stdout);
    return 0;
  }
  return run_as({call.program, (*restated)->words, (*restated)->parsed}, run_table(), RunAs::run);
}

int torchrun_command(const Call& call) {
  return run_as(call, torchrun_table(), RunAs::torchrun);
}

int launch_command(const Call& call) {
  return run_as(call, launch_table(), RunAs::launch);
}

}  // namespace

extern constinit const Subcommand kRun{
    .name = "run", .summary = kSummary, .table = run_table, .run = run_command};

extern constinit const Subcommand kLaunch{.name = "launch",
                                          .summary = "the same, as torch.distributed.launch did",
                                          .table = launch_table,
                                          .run = launch_command};

extern constinit const Subcommand kTorchrun{
    .name = "torchrun", .summary = kSummary, .table = torchrun_table, .run = torchrun_command};

}  // namespace lockstep::cli
