// lockstep run, torchrun and lockstep launch: turns the options into a LaunchConfig and runs the
// job here, or passes the command on to hosts or rented machines.
#include "agent/job.h"
#include "agent/report_json.h"
#include "base/log.h"
#include "cli/behind_script.h"
#include "cli/completion.h"
#include "cli/contained.h"
#include "cli/explain.h"
#include "cli/meant.h"
#include "cli/other_launcher.h"
#include "cli/remote_run.h"
#include "cli/rented_run.h"
#include "cli/run_options.h"
#include "cli/subcommand.h"
#include "cli/sweep_run.h"
#include "host/identity.h"
#include "io/replace_file.h"
#include "launch/launch_config.h"
#include "launch/machine_facts.h"
#include "launch/raw_options.h"
#include "rows/runner.h"

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

enum class RunAs { run, torchrun, launch };

std::vector<std::string> variable_names() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

ExitCode print_completion(const Program& of, const Table& table, std::string_view shell) {
  const auto script = completion_script(of, shell);
  if (!script) return refuse(table.program, script.error(), always(ExitCode::failed));
  std::fputs(script->c_str(), stdout);
  return ExitCode::ok;
}

// Takes a secret out of the environment, because workers and helpers would inherit the secret.
// Wipes the memory too: /proc/PID/environ still shows the bytes after unsetenv().
std::optional<std::string> take_secret(const char* name) {
  char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::string secret(value);
  explicit_bzero(value, secret.size());
  unsetenv(name);
  return secret;
}

// Runs the job on hosts. Refuses options that only make sense there if no host is given.
Result<ExitCode> run_elsewhere(const Call& call, const RemoteOptions& options) {
  if (options.elsewhere()) return run_on_hosts(call, options);
  if (options.include || options.exclude)
    return fail(Errc::invalid_input, "--include and --exclude need --hostfile");
  return fail(Errc::invalid_input, needs_on(call.parsed) + " needs --on");
}

// Prints the error and writes the reason into the --report file, which a batch step or a supervisor
// reads. The exit code is 1 even for a wrong option, as with torchrun.
ExitCode refuse_launch(const Table& table, const launch::RawOptions& raw, const Error& why) {
  // Ignore a failed write: run_job() checks the file first, and then the check's error is `why`.
  if (raw.report) (void)io::replace_file(*raw.report, agent::refusal_json(host::node_name(), why));
  return refuse(table.program, why, always(ExitCode::failed));
}

// Returns the words that start the same job once more, with the name of the binary in front.
Args inner_words(const Call& call, RunAs as) {
  Args words = {as == RunAs::torchrun ? "torchrun" : "lockstep"};
  if (as != RunAs::torchrun) words.emplace_back(as == RunAs::launch ? "launch" : "run");
  words.insert(words.end(), call.words.begin(), call.words.end());
  return words;
}

ExitCode launch(const Call& call, const Table& table, const RunRequest& request, RunAs as) {
  const Parsed& parsed = call.parsed;
  launch::RawOptions raw = raw_options(table, parsed);
  // --explain must leave no report: no job ran.
  if (request.explain) raw.report.reset();
  // Outside of a container, its options are all that counts: the image has another Python, and
  // secrets must reach the process inside.
  const Contained contained = run_contained(raw, inner_words(call, as));
  if (contained.error) {
    (void)refuse_launch(table, raw, *contained.error);
    return *contained.code;
  }
  if (contained.code) return *contained.code;
  raw.legacy_launch = as == RunAs::launch;
  raw.called_torchrun = as == RunAs::torchrun;
  raw.rdzv_token = take_secret("LOCKSTEP_RDZV_TOKEN");
  auto webhook = take_secret("LOCKSTEP_NOTIFY");
  if (webhook && !webhook->empty() && !raw.notify) raw.notify = std::move(webhook);
  raw.page_token = take_secret("LOCKSTEP_PAGE_TOKEN");
  const bool warned = take_secret(rows::kWarnedBefore).has_value();
  auto config = launch::make_launch_config(raw, launch::machine_facts());
  if (!config) {
    Error why = config.error();
    if (std::string hint = value_as_script_hint(table, parsed);
        !hint.empty() && why.code == Errc::not_found)
      why.hint = std::move(hint);
    return refuse_launch(table, raw, why);
  }
  if (std::string hint = behind_script_hint(table, parsed); !hint.empty())
    config->job_warnings.push_back(std::move(hint));
  std::vector<std::string> warnings = mistyped_variables(table, variable_names());
  warnings.insert(warnings.end(), config->warnings.begin(), config->warnings.end());
  if (warned) warnings = config->job_warnings = {};
  for (const std::string& warning : warnings)
    log::warning("{}", warning);
  // The text is torchrun's, word for word.
  if (raw.standalone)
    log::info(
        "\n**************************************\nRendezvous info:\n--rdzv-backend=c10d "
        "--rdzv-endpoint=localhost:0 --rdzv-id={}\n**************************************\n",
        config->run_id);
  if (request.explain) {
    for (const std::string& warning : config->job_warnings)
      log::warning("{}", warning);
    std::fputs(explain_text(*config).c_str(), stdout);
    return ExitCode::ok;
  }
  bool reported = false;
  const auto code = agent::run_job(*config, reported);
  if (code) return passed_on(*code);
  if (reported) raw.report.reset();
  return refuse_launch(table, raw, code.error());
}

// The handled signals must be blocked: an early signal stays pending until the guardian or the
// agent reads signals.
Result<ExitCode> run_as(const Call& call, const Table& table, RunAs as) {
  RunRequest request;
  fill(table, call.parsed, request);
  if (request.print_completion)
    return print_completion(call.program, table, *request.print_completion);
  const RemoteOptions remote = remote_options(table, call.parsed);
  SweepOptions sweep;
  fill(table, call.parsed, sweep);
  // Rows are checked before anything is copied or rented.
  std::optional<SweepRows> rows;
  if (as == RunAs::run) {
    LOCKSTEP_TRY_ASSIGN(rows, sweep_rows(sweep));
  }
  if (rows && request.explain) {
    // Hosts elsewhere have their own GPUs.
    if (!remote.elsewhere()) LOCKSTEP_TRY(check_sweep(call, sweep));
    std::fputs(sweep_text(*rows, call.parsed).c_str(), stdout);
    return ExitCode::ok;
  }
  OnDemandOptions rented;
  fill(table, call.parsed, rented);
  const bool elsewhere = rented.gpus || remote.elsewhere();
  const std::string hint = elsewhere ? behind_script_hint(table, call.parsed) : "";
  if (!hint.empty()) log::warning("{}", hint);
  if (rented.gpus) return run_on_rented(call, remote, rented);
  if (const std::string lone = needs_on_demand(call.parsed); !lone.empty())
    return fail(Errc::invalid_input, lone + " needs --on-demand");
  if (remote.elsewhere() || !needs_on(call.parsed).empty()) return run_elsewhere(call, remote);
  if (rows) return run_sweep(call, sweep, *rows);
  return launch(call, table, request, as);
}

Result<ExitCode> run_command(const Call& call) {
  const auto restated = restate_launcher(call, run_table());
  if (!restated) return refuse(run_table().program, restated.error(), always(ExitCode::usage));
  // Not earlier: restate_launcher() may wait for accelerate and reads no signals, so Ctrl-C must
  // end this process as usual.
  take_signals(Signals::blocked);
  if (!*restated) return run_as(call, run_table(), RunAs::run);
  if (!(*restated)->parsed.ended_by.empty()) {  // torchrun --help
    std::fputs(help_text(run_table()).c_str(), stdout);
    return ExitCode::ok;
  }
  return run_as({call.program, (*restated)->words, (*restated)->parsed}, run_table(), RunAs::run);
}

Result<ExitCode> torchrun_command(const Call& call) {
  return run_as(call, torchrun_table(), RunAs::torchrun);
}

Result<ExitCode> launch_command(const Call& call) {
  return run_as(call, launch_table(), RunAs::launch);
}

}  // namespace

extern constinit const Subcommand kRun{
    .name = "run", .summary = kSummary, .table = run_table, .run = run_command};

extern constinit const Subcommand kLaunch{
    .name = "launch",
    .summary = "run a script written for torch.distributed.launch",
    .table = launch_table,
    .run = launch_command,
    .signals = Signals::blocked};

extern constinit const Subcommand kTorchrun{.name = "torchrun",
                                            .summary = kSummary,
                                            .table = torchrun_table,
                                            .run = torchrun_command,
                                            .signals = Signals::blocked};

}  // namespace lockstep::cli
