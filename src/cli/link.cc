// lockstep link: what `ssh` starts on a host; people do not call it.
#include "cli/subcommand.h"
#include "remote/host_end.h"
#include "ssh/repair.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <system_error>

namespace lockstep::cli {
namespace {

int link_command(const Call& call) {
  if (isatty(STDIN_FILENO) == 1) {
    print_error("lockstep link",
                {Errc::invalid_input, "clients start this on hosts, people do not", {}, 0});
    return 2;
  }
  std::error_code unknown;
  ssh::remove_stale_binaries(std::filesystem::read_symlink("/proc/self/exe", unknown),
                             std::chrono::system_clock::now());
  const bool may_outlive = call.words == Args{"--may-outlive"};
  const auto code = remote::serve_link(may_outlive ? proc::Rung::none : proc::Rung::guardian);
  if (code) return *code;
  print_error("lockstep link", code.error());
  return 1;
}

}  // namespace

extern constinit const Subcommand kLink{.name = "link",
                                        .summary = "the host's end of a connection",
                                        .run = link_command,
                                        .listed = false};

}  // namespace lockstep::cli
