// lockstep link: the host's end of a connection, started by ssh, or by srun inside a Slurm job.
// Further words lead a connection on, through a login host into a Slurm job. People do not call
// this.
#include "base/environment.h"
#include "base/log.h"
#include "cli/subcommand.h"
#include "io/own_stream.h"
#include "jobs/on_slurm/node_way.h"
#include "proc/exec_pointers.h"
#include "proc/spawn.h"
#include "remote/host_end.h"
#include "ssh/repair.h"

#include <fmt/core.h>

#include <errno.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace lockstep::cli {
namespace {

// Slurm does not close the stdin of a program whose srun was killed. The client pings four times in
// this time (hosts/link_forward.cc).
constexpr std::chrono::seconds kSilence{60};

// The client shows the last line of stderr behind the name of the node.
ExitCode say(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return ExitCode::failed;
}

// Becomes srun, so that signals of the link above reach srun itself.
ExitCode go_to_node(const Args& words) {
  auto command = jobs::on_slurm::link_on_login(words);
  if (!command) return say(command.error());
  const auto program = proc::find_executable(command->argv.at(0), env_text("PATH"));
  if (!program) return say(program.error());
  execve(program->c_str(), proc::exec_pointers(command->argv).data(),
         proc::exec_pointers(command->env).data());
  return say(fail_sys("run " + *program, errno).value());
}

ExitCode go_through_login(const Args& words) {
  take_signals(Signals::blocked);
  // The client has notices of its own, and would take one of ours for the reason of the end.
  log::set_level(log::Level::error);
  const auto code = jobs::on_slurm::pass_through_login(words);
  return code ? passed_on(*code) : say(code.error());
}

Result<ExitCode> link_command(const Call& call) {
  // A client's stdin is a pipe or a socket. At a terminal a person would wait for ever for a frame.
  const Error by_hand{
      Errc::invalid_input, "this is an internal command, started by clients on hosts", {}, 0};
  const bool in_step = call.words == Args{"--in-step"};
  // srun --unbuffered gives a program a terminal as stdout, and a pipe as stdin.
  const bool has_output =
      io::is_pipe_or_socket(STDOUT_FILENO) || (in_step && isatty(STDOUT_FILENO) == 1);
  if (!io::is_pipe_or_socket(STDIN_FILENO) || !has_output) return refuse("lockstep link", by_hand);
  if (!call.words.empty() && call.words[0] == jobs::on_slurm::kThroughLogin)
    return go_through_login(call.words);
  if (!call.words.empty() && call.words[0] == jobs::on_slurm::kToNode)
    return go_to_node(call.words);
  // Each version of a client pushes a binary to this host. Remove old binaries at each connection:
  // no other process of ours runs here regularly.
  std::error_code unknown;
  ssh::remove_stale_binaries(std::filesystem::read_symlink("/proc/self/exe", unknown),
                             std::chrono::system_clock::now());
  // Usually a guardian ends everything that the client started when the connection ends. A job's
  // supervisor must survive the connection, so the client asks for no containment.
  const bool may_outlive = call.words == Args{"--may-outlive"};
  const proc::Rung rung = may_outlive ? proc::Rung::none : proc::Rung::guardian;
  return remote::serve_link(rung, in_step ? std::optional(kSilence) : std::nullopt).map(passed_on);
}

}  // namespace

extern constinit const Subcommand kLink{.name = "link",
                                        .summary = "the host's end of a connection",
                                        .run = link_command,
                                        .fails_with = always(ExitCode::failed),
                                        .listed = false};

}  // namespace lockstep::cli
