// lockstep link: the host's end of a connection, started by ssh, or by srun inside a Slurm job.
// People do not call this.
#include "cli/subcommand.h"
#include "io/own_stream.h"
#include "remote/host_end.h"
#include "ssh/repair.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>

namespace lockstep::cli {
namespace {

// Slurm does not close the stdin of a program whose srun was killed. The client pings four times in
// this time (hosts/link_forward.cc).
constexpr std::chrono::seconds kSilence{60};

Result<ExitCode> link_command(const Call& call) {
  // A client's stdin is a pipe or a socket. At a terminal a person would wait for ever for a frame.
  const Error by_hand{
      Errc::invalid_input, "this is an internal command, started by clients on hosts", {}, 0};
  const bool in_step = call.words == Args{"--in-step"};
  // srun --unbuffered gives a program a terminal as stdout, and a pipe as stdin.
  const bool has_output =
      io::is_pipe_or_socket(STDOUT_FILENO) || (in_step && isatty(STDOUT_FILENO) == 1);
  if (!io::is_pipe_or_socket(STDIN_FILENO) || !has_output) return refuse("lockstep link", by_hand);
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
