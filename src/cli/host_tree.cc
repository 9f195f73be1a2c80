// What `lockstep sync` starts: on a host to compare trees, here in place of ssh for rsync. People
// do not call them.
#include "sync/host_tree.h"

#include "cli/subcommand.h"
#include "cluster/rsync_shell.h"
#include "io/own_folders.h"
#include "proc/signals.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostOffer = 1UL << 30;

Result<std::string> all_of_stdin() {
  std::string text;
  std::array<char, 64UL << 10> bytes;
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return fail_sys("read the offer", errno);
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostOffer) return fail(Errc::corrupt, "the offer of a tree is too large");
  }
}

Result<sync::Answer> answer() {
  LOCKSTEP_TRY_ASSIGN(const std::string bytes, all_of_stdin());
  LOCKSTEP_TRY_ASSIGN(const sync::Offer offer, sync::decode_offer(bytes));
  return sync::answer_offer(offer, {io::home_folder(), io::state_folder() + "/synced"});
}

int host_tree_command(const Call& /*call*/) {
  if (isatty(STDIN_FILENO) == 1) {
    print_error("lockstep host-tree",
                {Errc::invalid_input, "clients start this on hosts, people do not", {}, 0});
    return 2;
  }
  const auto answered = answer();
  std::puts(sync::print_answer(answered).c_str());
  return answered ? 0 : 1;
}

int rsync_shell_command(const Call& call) {
  proc::block(proc::handled_signals());
  signal(SIGCHLD, SIG_DFL);
  const auto code = cluster::rsync_shell(call.words);
  if (code) return *code;
  std::fputs((code.error().message + "\n").c_str(), stderr);
  return 255;
}

}  // namespace

extern constinit const Subcommand kHostTree{.name = "host-tree",
                                            .summary = "the host's end of lockstep sync",
                                            .run = host_tree_command,
                                            .listed = false};
extern constinit const Subcommand kRsyncShell{.name = "rsync-shell",
                                              .summary = "what rsync takes for ssh",
                                              .run = rsync_shell_command,
                                              .listed = false};

}  // namespace lockstep::cli
