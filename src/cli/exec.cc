// lockstep exec: a command on a host over SSH.
#include "base/log.h"
#include "cli/exec_options.h"
#include "cli/subcommand.h"
#include "cluster/command_run.h"
#include "proc/signals.h"
#include "ssh/target.h"

#include <signal.h>

#include <utility>

namespace lockstep::cli {
namespace {

constexpr int kBadInput = 2;
constexpr int kFailed = 255;  // as ssh has it

Result<cluster::HostPlace> place_of(const ExecOptions& options) {
  LOCKSTEP_TRY_ASSIGN(ssh::Target target, ssh::parse_target(options.where));
  if (options.user && target.user && *options.user != *target.user)
    return fail(Errc::invalid_input,
                "both " + options.where + " and --user " + *options.user + " name a user",
                "give one of them");
  if (options.user) target.user = options.user;
  if (options.key_path) target.key_path = *options.key_path;
  if (options.jump) target.jump = *options.jump;
  return cluster::HostPlace{ssh::target_text(target), std::move(target)};
}

int exec_command(const Call& call) {
  const auto options = exec_options(call.words, call.parsed);
  const auto refuse = [](const Error& error, int code) {
    print_error(exec_table().program, error);
    return code;
  };
  if (!options) return refuse(options.error(), kBadInput);
  auto place = place_of(*options);
  if (!place) return refuse(place.error(), kBadInput);
  proc::block(proc::handled_signals());
  signal(SIGCHLD, SIG_DFL);
  cluster::CommandRequest request;
  request.hosts.push_back(std::move(*place));
  request.argv = options->command;
  request.folder = options->folder.value_or("");
  request.input = !options->no_input;
  const auto endings = cluster::run_command(request);
  if (!endings) return refuse(endings.error(), kFailed);
  for (const cluster::HostEnding& ending : *endings)
    if (!ending.error.empty())
      print_error(exec_table().program, {Errc::unavailable, ending.error, {}, 0});
  return cluster::code_of(*endings);
}

}  // namespace

extern constinit const Subcommand kExec{.name = "exec",
                                        .summary = "run a command on a host over SSH",
                                        .table = exec_table,
                                        .run = exec_command};

}  // namespace lockstep::cli
