// lockstep exec: runs a command on hosts over SSH.
#include "base/log.h"
#include "cli/exec_json.h"
#include "cli/exec_options.h"
#include "cli/places.h"
#include "cli/subcommand.h"
#include "hosts/command_run.h"
#include "hosts/variables.h"

#include <cstdio>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

Result<ExitCode> exec_command(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const ExecOptions options, exec_options(call.words, call.parsed));
  hosts::CommandRequest request;
  LOCKSTEP_TRY_ASSIGN(request.hosts, places_of(options.where, options.places));
  LOCKSTEP_TRY_ASSIGN(request.env, hosts::variables_of({.env = options.variables.env,
                                                        .files = options.variables.env_files,
                                                        .secrets = options.variables.secrets},
                                                       hosts::own_variable));
  request.argv = options.command;
  // `lockstep in-project COMMAND` on the host sets the environment and becomes the command.
  if (options.in_project) {
    request.argv.insert(request.argv.begin(), "in-project");
    request.own_binary = true;
  }
  request.folder = options.folder.value_or("");
  if (options.no_input) request.input = hosts::CommandRequest::Input::none;
  if (options.json) request.output = hosts::CommandRequest::Output::keep;
  LOCKSTEP_TRY_ASSIGN(const auto endings, hosts::run_command(request));
  if (options.json) {
    std::puts(codec::print_json(exec_json(request.hosts, endings)).c_str());
    return passed_on(hosts::code_of(endings));
  }
  // The command's output has been printed as it came. Only errors of hosts are left to print.
  for (const hosts::HostEnding& ending : endings)
    if (!ending.error.empty())
      print_error(
          exec_table().program,
          {Errc::unavailable, ending.error,
           passed_on(ending.code) == ExitCode::not_found ? shell_hint(options) : std::string(), 0});
  return passed_on(hosts::code_of(endings));
}

}  // namespace

extern constinit const Subcommand kExec{.name = "exec",
                                        .summary = "run a command on hosts over SSH",
                                        .table = exec_table,
                                        .run = exec_command,
                                        .signals = Signals::blocked,
                                        .fails_with = kAsSsh};

}  // namespace lockstep::cli
