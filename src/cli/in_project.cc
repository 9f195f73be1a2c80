// lockstep in-project: becomes a command, in the environment of the project around the current
// folder. Clients start this on hosts.
#include "base/environment.h"
#include "cli/subcommand.h"
#include "hosts/python_call.h"
#include "io/fd.h"
#include "proc/exec_pointers.h"
#include "proc/spawn.h"
#include "setup/environment.h"

#include <fmt/core.h>

#include <errno.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace lockstep::cli {
namespace {

// For a host where PATH is not set, as in remote/command.cc.
constexpr const char* kUsualPath = "/usr/local/bin:/usr/bin:/bin";

// Reports an error inside the answer if the client waits for one (`lockstep call`), else as a line
// on stderr. Returns `code`.
ExitCode refuse_call(const Error& error, ExitCode code) {
  const char* answer = std::getenv("LOCKSTEP_RESULT_FD");
  if (answer == nullptr ||
      !io::write_all(std::atoi(answer), hosts::refused_answer(error.message), "the answer"))
    print_error("lockstep", error);
  return code;
}

Result<ExitCode> in_project_command(const Call& call) {
  if (call.words.empty())
    return refuse_call({Errc::invalid_input, "in-project: no command is given", {}, 0},
                       ExitCode::usage);
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry)
    env.emplace_back(*entry);
  char folder[4096];
  if (getcwd(folder, sizeof folder) == nullptr)
    return refuse_call(fail_sys("find the current folder", errno).value(), ExitCode::cannot_run);
  auto changed = setup::project_environment(folder, env);
  if (!changed) return refuse_call(changed.error(), ExitCode::cannot_run);
  for (const std::string& entry : *changed) {
    const std::size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  // Search PATH only now: `python3` must be the python3 of the project's environment.
  const std::string path = env_text("PATH", kUsualPath);
  const auto found = proc::find_executable(call.words.front(), path);
  if (!found)
    return refuse_call(
        {Errc::not_found,
         fmt::format("no executable {} is found; PATH is {}", call.words.front(), path),
         {},
         0},
        ExitCode::not_found);
  execv(found->c_str(), proc::exec_pointers(call.words).data());  // returns only after an error
  return refuse_call(fail_sys("run " + *found, errno).value(), ExitCode::cannot_run);
}

}  // namespace

extern constinit const Subcommand kInProject{
    .name = "in-project",
    .summary = "a command in a project's environment, on a host",
    .run = in_project_command,
    .listed = false};

}  // namespace lockstep::cli
