// lockstep host-dial HOST PORT [carry]: connects from this machine. `lockstep forward` starts this
// on a host after a refused connection: either no server listens there, or, if this can connect,
// the host's sshd forbids forwarding. `lockstep page` starts this with `carry` on a node of a Slurm
// job for each connection of a browser. People do not call this.
#include "base/text.h"
#include "cli/subcommand.h"
#include "io/dialer.h"
#include "io/own_stream.h"
#include "remote/carry.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::chrono::seconds kPatience{5};

// With `carry`, stdin and stdout become the two directions of the connection, until the server
// closes it.
Result<ExitCode> host_dial_command(const Call& call) {
  const bool carries = call.words.size() == 3 && call.words[2] == "carry";
  const auto port = call.words.size() == 2 || carries ? parse_int(call.words[1]) : std::nullopt;
  if (!port || *port < 1 || *port > 65535) return ExitCode::usage;
  if (carries && (!io::is_pipe_or_socket(STDIN_FILENO) || !io::is_pipe_or_socket(STDOUT_FILENO)))
    return ExitCode::usage;
  signal(SIGPIPE, SIG_IGN);
  io::Loop loop;
  ExitCode code = ExitCode::failed;
  std::unique_ptr<remote::Carry> carry;
  const auto failed = [&](const Error& error) {
    fmt::print(stderr, "{}\n", error.message);
    loop.stop();
  };
  const auto connected = [&](io::Fd connection) {
    if (!carries) {
      code = ExitCode::ok;
      return loop.stop();
    }
    auto started = remote::Carry::start(loop, STDIN_FILENO, STDOUT_FILENO, std::move(connection),
                                        [&loop] { loop.stop(); });
    if (!started) return failed(started.error());
    carry = std::move(*started);
    code = ExitCode::ok;
  };
  io::DialRules rules;
  rules.patience = kPatience;
  // One round: the user wants to know the reason, not to wait for the server.
  rules.once = true;
  const io::Dialer dialer(loop, {"connect", call.words[0], static_cast<int>(*port)}, rules,
                          {connected, failed, failed});
  loop.run();
  return code;
}

}  // namespace

extern constinit const Subcommand kHostDial{.name = "host-dial",
                                            .summary = "whether a port can be connected to",
                                            .run = host_dial_command,
                                            .listed = false};

}  // namespace lockstep::cli
