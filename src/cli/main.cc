// lockstep: picks the subcommand. Called through a link named torchrun it is `lockstep run`.
#include "base/log.h"
#include "cli/commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

namespace {

// If a standard stream is closed, the first file that we open gets its number, and messages would
// be written into that file.
void fill_standard_streams() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2)
    fd = dup(fd);
  if (fd > 2) close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_streams();
  lockstep::log::set_level_from_env();
  const std::string_view path = argc > 0 ? argv[0] : "lockstep";
  lockstep::cli::Args words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return lockstep::cli::dispatch(lockstep::cli::lockstep_program(),
                                 path.substr(path.rfind('/') + 1), std::move(words));
}
