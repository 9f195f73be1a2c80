// lockstep-gcc and lockstep-g++: links that a wheel's build gets as CC and CXX. Each becomes the
// real compiler, with arguments changed for the wheel's CPUs. setup/wheel_scratch.cc makes the
// links and sets the LOCKSTEP_WHEEL_ variables.
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/subcommand.h"
#include "proc/exec_pointers.h"
#include "setup/cpu_level.h"
#include "setup/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

// Tells the build that an argument was changed. Compilers run in parallel, hence O_APPEND. Ignores
// errors: a failed note must not fail a compilation.
void note_change() {
  const std::string path = env_text("LOCKSTEP_WHEEL_CHANGED");
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  (void)!write(fd, "changed\n", 8);
  close(fd);
}

ExitCode run_compiler(const char* name, const Args& words) {
  // The user's CC may have several words: "ccache gcc".
  std::vector<std::string> argv;
  for (std::string& word : split(env_text(name), ' '))
    if (!word.empty()) argv.push_back(std::move(word));
  const std::string program = argv.empty() ? "" : setup::find_program(argv[0]);
  if (program.empty()) {
    log::error("there is no compiler '{}' (of {})", argv.empty() ? "" : argv[0], name);
    return ExitCode::not_found;
  }
  argv.insert(argv.end(), words.begin(), words.end());
  const auto level = parse_int(env_text("LOCKSTEP_WHEEL_LEVEL")).value_or(0);
  bool changed = false;
  argv = setup::for_level(std::move(argv), static_cast<int>(level),
                          env_text("LOCKSTEP_WHEEL_MARCH"), changed);
  if (changed) note_change();
  // Become the compiler: the build then sees its exit code, output and signals unchanged.
  execv(program.c_str(), proc::exec_pointers(argv).data());
  log::error("{} can't be started: {}", program, errno_text(errno));
  return ExitCode::not_found;
}

Result<ExitCode> c_command(const Call& call) {
  return run_compiler("LOCKSTEP_WHEEL_CC", call.words);
}

Result<ExitCode> cxx_command(const Call& call) {
  return run_compiler("LOCKSTEP_WHEEL_CXX", call.words);
}

}  // namespace

extern constinit const Subcommand kWheelC{
    .name = "lockstep-gcc", .summary = "a wheel's C compiler", .run = c_command, .listed = false};
extern constinit const Subcommand kWheelCxx{.name = "lockstep-g++",
                                            .summary = "a wheel's C++ compiler",
                                            .run = cxx_command,
                                            .listed = false};

}  // namespace lockstep::cli
