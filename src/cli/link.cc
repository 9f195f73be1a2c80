// lockstep link: the host's end of a connection, started by ssh. People do not call this.
#include "cli/subcommand.h"
#include "remote/host_end.h"
#include "ssh/repair.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <system_error>

namespace lockstep::cli {
namespace {

Result<ExitCode> link_command(const Call& call) {
  const Error by_hand{Errc::invalid_input, "clients start this on hosts, people do not", {}, 0};
  if (isatty(STDIN_FILENO) == 1) return refuse("lockstep link", by_hand);
  std::error_code unknown;
  ssh::remove_stale_binaries(std::filesystem::read_symlink("/proc/self/exe", unknown),
                             std::chrono::system_clock::now());
  const bool may_outlive = call.words == Args{"--may-outlive"};
  return remote::serve_link(may_outlive ? proc::Rung::none : proc::Rung::guardian).map(passed_on);
}

}  // namespace

extern constinit const Subcommand kLink{.name = "link",
                                        .summary = "the host's end of a connection",
                                        .run = link_command,
                                        .fails_with = always(ExitCode::failed),
                                        .listed = false};

}  // namespace lockstep::cli
