// lockstep host-dial HOST PORT: tries to connect from this machine. `lockstep forward` starts this
// on a host after a refused connection: either no server listens there, or, if this can connect,
// the host's sshd forbids forwarding. People do not call this.
#include "base/text.h"
#include "cli/subcommand.h"
#include "io/dialer.h"

#include <chrono>
#include <cstdio>

namespace lockstep::cli {
namespace {

constexpr std::chrono::seconds kPatience{5};

Result<ExitCode> host_dial_command(const Call& call) {
  const auto port = call.words.size() == 2 ? parse_int(call.words[1]) : std::nullopt;
  if (!port || *port < 1 || *port > 65535) return ExitCode::usage;
  io::Loop loop;
  ExitCode code = ExitCode::failed;
  const auto failed = [&](const Error& error) {
    std::puts(error.message.c_str());
    loop.stop();
  };
  io::DialRules rules;
  rules.patience = kPatience;
  // One round: the user wants to know the reason, not to wait for the server.
  rules.once = true;
  const io::Dialer dialer(loop, {"connect", call.words[0], static_cast<int>(*port)}, rules,
                          {[&](const io::Fd&) {
                             code = ExitCode::ok;
                             loop.stop();
                           },
                           failed, failed});
  loop.run();
  return code;
}

}  // namespace

extern constinit const Subcommand kHostDial{.name = "host-dial",
                                            .summary = "whether a port can be connected to",
                                            .run = host_dial_command,
                                            .listed = false};

}  // namespace lockstep::cli
