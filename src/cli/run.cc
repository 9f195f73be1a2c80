// lockstep run, torchrun and lockstep launch: options to LaunchConfig to one job.
#include "agent/job.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/explain.h"
#include "cli/meant.h"
#include "cli/run_options.h"
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
#include <vector>

namespace lockstep::cli {
namespace {

constexpr int kFailed = 1;  // whatever is not the parser's to refuse

const Table& table_for(RunAs as) {
  switch (as) {
    case RunAs::torchrun:
      return torchrun_table();
    case RunAs::launch:
      return launch_table();
    case RunAs::run:
      break;
  }
  return run_table();
}

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::vector<std::string> variable_names() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

int print_completion(std::string_view program, std::string_view shell) {
  const auto script = completion_script(shell);
  if (!script) {
    print_error(program, script.error());
    return kFailed;
  }
  std::fputs(script->c_str(), stdout);
  return 0;
}

// The token, out of the environment: workers and helpers inherit what is left, and
// /proc/PID/environ shows what is in the place where it was.
std::optional<std::string> take_token() {
  constexpr const char* kName = "LOCKSTEP_RDZV_TOKEN";
  char* value = std::getenv(kName);
  if (value == nullptr) return std::nullopt;
  std::string token(value);
  explicit_bzero(value, token.size());
  unsetenv(kName);
  return token;
}

int launch(std::string_view program, const Parsed& parsed, RunAs as) {
  launch::RawOptions raw = raw_options(parsed, as == RunAs::launch);
  raw.called_torchrun = as == RunAs::torchrun;
  raw.rdzv_token = take_token();
  const auto config = launch::make_launch_config(raw, launch::machine_facts());
  if (!config) {
    print_error(program, config.error());
    return kFailed;
  }
  for (const std::string& warning : mistyped_variables(table_for(as), variable_names()))
    log::warning("{}", warning);
  for (const std::string& warning : config->warnings)
    log::warning("{}", warning);
  if (parsed.has("explain")) {
    std::fputs(explain_text(*config).c_str(), stdout);
    return 0;
  }
  const auto code = agent::run_job(*config);
  if (code) return *code;
  print_error(program, code.error());
  return kFailed;
}

}  // namespace

int run_command(const Args& args, RunAs as) {
  // From here on a signal waits until there is somebody to act on it.
  proc::block(proc::handled_signals());
  // Inherited as ignored, it would let the kernel throw away how our children ended.
  signal(SIGCHLD, SIG_DFL);
  const Table& table = table_for(as);
  const auto parsed = parse_options(table, args, variable);
  if (const auto code = settled(table, parsed)) return *code;
  if (const auto shell = parsed->text("print-completion"))
    return print_completion(table.program, *shell);
  return launch(table.program, *parsed, as);
}

}  // namespace lockstep::cli
