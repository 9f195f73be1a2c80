// lockstep ssh: logs a person in on a host, over the ssh master that all commands share.
#include "base/text.h"
#include "cli/forward_options.h"
#include "cli/places.h"
#include "cli/subcommand.h"
#include "hosts/wait_notice.h"
#include "proc/exec_pointers.h"
#include "proc/find_in_path.h"
#include "proc/spawn.h"
#include "rent/moved_client.h"
#include "ssh/control_place.h"
#include "ssh/find_trusts.h"
#include "ssh/master.h"
#include "ssh/ssh_command.h"

#include <fmt/core.h>

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

// Becomes ssh. Returns only if that fails. The user's own ssh handles the terminal, escapes and
// window sizes.
Failure become(const std::vector<std::string>& argv) {
  auto program = proc::find_in_path(argv[0]);
  if (!program) return fail(Errc::not_found, "ssh is not in PATH", "install OpenSSH's client");
  execv(program->c_str(), proc::exec_pointers(argv).data());
  return fail_sys("start " + *program, errno);
}

// Starts a master if none listens, then becomes ssh.
Status log_in(const hosts::HostPlace& place, const std::vector<std::string>& words) {
  ssh::MasterSettings settings;
  LOCKSTEP_TRY_ASSIGN(settings.socket, ssh::control_socket(place.target, place.pins));
  settings.pins = place.pins;
  settings.may_ask = isatty(STDERR_FILENO) == 1;
  if (!ssh::listens(settings.socket)) {
    io::Loop loop;
    Status there;
    const ssh::Master master(loop, place.target, settings, [&](Status status) {
      there = std::move(status);
      loop.stop();
    });
    hosts::WaitNotice notice(loop, [&]() -> hosts::WaitNotice::Waiting {
      return {{place.name, std::string("logging in") + hosts::kCtrlCEnds}};
    });
    notice.start();
    loop.run();
    if (!there)
      return Failure(hosts::with_guess(std::move(there).error(), place).within(place.name));
  }
  // exec ends all threads. A thread may just be opening the provider's firewall to this address.
  rent::finish_slow_logins();
  // If the master ends too early, ssh logs in without it, and must then trust the same keys.
  if (Status trusts = ssh::find_trusts(place.target, settings); !trusts)
    return Failure(std::move(trusts).error().within(place.name));
  return become(ssh::login_command(place.target, settings, words));
}

// Returns the words behind "--", for ssh.
std::vector<std::string> words_for_ssh(const Args& words) {
  const auto mark = std::find(words.begin(), words.end(), "--");
  return {mark == words.end() ? mark : mark + 1, words.end()};
}

// Returns only with an error: this process becomes ssh.
Status ssh_to(const Call& call) {
  const std::vector<std::string> words = words_for_ssh(call.words);
  // The parser counts the words behind "--" as names, too.
  std::vector<std::string> names = call.parsed.names;
  names.resize(names.size() - std::min(names.size(), words.size()));
  if (names.empty())
    return fail(Errc::invalid_input, "no host is named", "write lockstep ssh user@host");
  if (names.size() > 1)
    return fail(Errc::invalid_input, fmt::format("'{}' is one word too many", printable(names[1])),
                "put words for ssh behind --");
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, one_place(ssh_table(), call.parsed, names[0]));
  return log_in(place, words);
}

}  // namespace

extern constinit const Subcommand kSsh{.name = "ssh",
                                       .summary = "log in to a host",
                                       .table = ssh_table,
                                       .run = run_status<ssh_to>,
                                       .signals = Signals::children,
                                       .fails_with = kAsSsh};

}  // namespace lockstep::cli
