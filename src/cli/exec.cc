// lockstep exec: a command on hosts over SSH.
#include "base/log.h"
#include "cli/exec_json.h"
#include "cli/exec_options.h"
#include "cli/places.h"
#include "cli/subcommand.h"
#include "hosts/command_run.h"
#include "hosts/variables.h"
#include "proc/signals.h"

#include <signal.h>

#include <cstdio>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr int kBadInput = 2;
constexpr int kFailed = 255;  // as ssh has it

int exec_command(const Call& call) {
  const auto options = exec_options(call.words, call.parsed);
  const auto refuse = [](const Error& error, int code) {
    print_error(exec_table().program, error);
    return code;
  };
  if (!options) return refuse(options.error(), kBadInput);
  auto places = places_of(options->where, options->places);
  if (!places)
    return refuse(places.error(), places.error().code == Errc::invalid_input ? kBadInput : kFailed);
  auto variables = hosts::variables_of({.env = options->variables.env,
                                        .files = options->variables.env_files,
                                        .secrets = options->variables.secrets},
                                       hosts::own_variable);
  if (!variables) return refuse(variables.error(), kBadInput);
  proc::block(proc::handled_signals());
  signal(SIGCHLD, SIG_DFL);
  hosts::CommandRequest request;
  request.hosts = std::move(*places);
  request.argv = options->command;
  if (options->in_project) {
    request.argv.insert(request.argv.begin(), "in-project");
    request.own_binary = true;
  }
  request.env = std::move(*variables);
  request.folder = options->folder.value_or("");
  if (options->no_input) request.input = hosts::CommandRequest::Input::none;
  if (options->json) request.output = hosts::CommandRequest::Output::keep;
  const auto endings = hosts::run_command(request);
  if (!endings) return refuse(endings.error(), kFailed);
  if (options->json) {
    std::puts(codec::print_json(exec_json(request.hosts, *endings)).c_str());
    return hosts::code_of(*endings);
  }
  constexpr int kNotFound = 127;
  for (const hosts::HostEnding& ending : *endings)
    if (!ending.error.empty())
      print_error(exec_table().program,
                  {Errc::unavailable, ending.error,
                   ending.code == kNotFound ? shell_hint(*options) : std::string(), 0});
  return hosts::code_of(*endings);
}

}  // namespace

extern constinit const Subcommand kExec{.name = "exec",
                                        .summary = "run a command on hosts over SSH",
                                        .table = exec_table,
                                        .run = exec_command};

}  // namespace lockstep::cli
