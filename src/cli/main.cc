// The program lockstep: prepares the process, picks the subcommand, and makes sure that lost output
// counts as a failure. Called through a link named torchrun, the program is `lockstep run`.
#include "base/error.h"
#include "base/log.h"
#include "cli/commands.h"
#include "rent/moved_client.h"
#include "ssh/master.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace {

// If a standard stream is closed, our first file gets the stream's number, and messages would be
// written into the file.
void fill_standard_streams() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2)
    fd = dup(fd);
  if (fd > 2) close(fd);
}

// Returns whether standard output is a pipe without a reader, such as `head` that has seen enough.
bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// Turns success into failure if output was lost, because of a full disk or a closed pipe. For a
// closed pipe the code is that of a program that SIGPIPE ends, without words.
int with_output_written(lockstep::cli::ExitCode code) {
  errno = 0;
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || code != lockstep::cli::ExitCode::ok) return number(code);
  if (errno == EPIPE || (errno == 0 && reader_is_gone())) return 128 + SIGPIPE;
  // A write that failed earlier, in the middle of a long text, has left no errno.
  const std::string why =
      errno != 0 ? lockstep::errno_text(errno) : "not all of the output was written";
  return number(lockstep::cli::refuse(
      "lockstep", {lockstep::Errc::unavailable, "write to standard output: " + why, {}, 0}));
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_streams();
  lockstep::log::set_level_from_env();
  lockstep::ssh::tell_slow_logins(lockstep::rent::on_slow_login);
  const std::string_view path = argc > 0 ? argv[0] : "lockstep";
  lockstep::cli::Args words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const int code = with_output_written(lockstep::cli::dispatch(
      lockstep::cli::lockstep_program(), path.substr(path.rfind('/') + 1), std::move(words)));
  // The threads use static objects, which are destroyed when main() returns. Wait for the threads.
  lockstep::rent::finish_slow_logins();
  return code;
}
