#include "machine/elevated.h"

#include "base/last_line.h"
#include "base/text.h"

#include <fmt/core.h>

#include <unistd.h>

#include <utility>

namespace lockstep::machine {

Result<proc::ToolOutput> run_as_root(std::vector<std::string> argv,
                                     const proc::ToolLimits& limits) {
  // Containers often run as root and have no sudo.
  if (geteuid() == 0) return proc::tool_output(argv, proc::own_environment(), limits);
  // -n makes sudo fail instead of asking for a password.
  argv.insert(argv.begin(), {"sudo", "-n", "--"});
  auto said = proc::tool_output(argv, proc::own_environment(), limits);
  if (!said && said.error().code == Errc::not_found)
    return fail(Errc::denied, "this user is not root, and sudo is not installed",
                "log in as root, or choose an image with sudo");
  // sudo's own messages begin with its name; those of the command do not.
  if (said && !said->exit.ok() && said->err.starts_with("sudo: "))
    return fail(Errc::denied,
                fmt::format("sudo does not let this user be root without a password: {}",
                            printable(last_line(said->err))),
                "take an image whose user may");
  return said;
}

Status run_script(const std::string& script, std::vector<std::string> environment) {
  LOCKSTEP_TRY_ASSIGN(const proc::ToolOutput said,
                      proc::tool_output({"/bin/sh", "-c", script}, std::move(environment)));
  if (said.exit.ok()) return {};
  return fail(Errc::unavailable,
              fmt::format("a command failed (code {}): {}", said.exit.shell_code(),
                          printable(last_line(said.err))));
}

}  // namespace lockstep::machine
