// The replacement for pdsh, which DeepSpeed's launcher starts. Runs a shell command on many hosts,
// over SSH, or over srun in a Slurm allocation. Unlike pdsh, leaves no process on the hosts behind.
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/subcommand.h"
#include "hosts/command_run.h"
#include "hosts/place.h"
#include "io/own_folders.h"
#include "launchers/pdsh_words.h"
#include "proc/exec_pointers.h"
#include "proc/signals.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr const char* kProgram = "pdsh";
// pdsh also exits with 1 if its words are wrong.
constexpr ErrorCodes kAsPdsh = always(ExitCode::failed);

// Sends the command as input, because each host has its own. The command runs in the login shell,
// as with ssh.
constexpr const char* kReadCommand =
    "command=$(cat); exec \"${SHELL:-/bin/sh}\" -c \"$command\" </dev/null";

Result<hosts::CommandRequest> request_of(const launchers::PdshWords& pdsh) {
  hosts::CommandRequest request;
  request.argv = {"/bin/sh", "-c", kReadCommand};
  request.input = hosts::CommandRequest::Input::given;
  request.labels =
      pdsh.labels ? hosts::CommandRequest::Labels::always : hosts::CommandRequest::Labels::never;
  request.fail_fast = pdsh.fail_fast;
  // DeepSpeed passes --ssh_port in this variable, as "-p PORT".
  const launchers::PdshWay way = launchers::pdsh_way(env_text("PDSH_SSH_ARGS_APPEND"));
  if (!way.left.empty())
    log::warning("{} of PDSH_SSH_ARGS_APPEND is not passed on; set the same in ~/.ssh/config",
                 printable(join(way.left, " ")));
  for (std::size_t i = 0; i < pdsh.hosts.size(); ++i) {
    LOCKSTEP_TRY_ASSIGN(
        hosts::HostPlace place,
        hosts::place_of_host(pdsh.hosts[i],
                             {.user = pdsh.user, .key_path = way.key, .jump = way.jump}));
    // pdsh labels lines with the host alone, without user and port.
    place.name = place.target.host;
    if (!place.target.port) place.target.port = way.port;
    request.hosts.push_back(std::move(place));
    request.given.push_back(launchers::pdsh_command(pdsh, i, env_text("USER")));
  }
  return request;
}

// Prints a line for each failed host, as pdsh does, and one line for all hosts that were stopped.
// Returns 0, the largest code (-S), or 1 if a failure stopped the other hosts (-k).
ExitCode say_endings(const launchers::PdshWords& pdsh,
                     const std::vector<hosts::HostEnding>& endings) {
  int largest = 0;
  std::map<std::string, std::vector<std::string>> ended;  // why -> hosts
  for (std::size_t i = 0; i < endings.size(); ++i) {
    const hosts::HostEnding& ending = endings[i];
    if (ending.stopped) {
      ended["another host has failed (-k)"].push_back(pdsh.hosts[i]);
      continue;
    }
    largest = std::max(largest, ending.code);
    // 128 + N is also an exit code that a command may choose. The error tells both apart.
    const int signal = ending.code - number(stopped_by(0));
    if (!ending.error.empty() && signal > 0 && ending.error == proc::signal_name(signal))
      ended[ending.error].push_back(pdsh.hosts[i]);
    else if (!ending.error.empty())
      print_error(kProgram, {Errc::unavailable, ending.error, {}, 0});
    else if (ending.code != 0)
      std::fprintf(stderr, "pdsh: %s: ssh exited with exit code %d\n", pdsh.hosts[i].c_str(),
                   ending.code);
  }
  for (const auto& [why, hosts] : ended)
    std::fprintf(stderr, "pdsh: %s: ended on %s\n", why.c_str(), join(hosts, ",").c_str());
  if (pdsh.largest_code) return passed_on(largest);
  return pdsh.fail_fast && largest != 0 ? ExitCode::failed : ExitCode::ok;
}

ExitCode run_over_ssh(const launchers::PdshWords& pdsh) {
  // Only here: in a Slurm allocation this process becomes srun, which would inherit the blocked
  // signals through exec.
  take_signals(Signals::blocked);
  const auto request = request_of(pdsh);
  if (!request) return refuse(kProgram, request.error(), kAsPdsh);
  const auto endings = hosts::run_command(*request);
  if (!endings) return refuse(kProgram, endings.error(), always(ExitCode::not_reached));
  return say_endings(pdsh, *endings);
}

ExitCode run_over_srun(const launchers::PdshWords& pdsh) {
  const std::vector<std::string> words = launchers::pdsh_over_srun(pdsh, env_text("USER"));
  execvp(words.at(0).c_str(), proc::exec_pointers(words).data());
  return refuse(kProgram,
                {Errc::not_found, "srun: " + errno_text(errno),
                 "in a Slurm allocation nodes are reached with srun", errno},
                kAsSsh);
}

Result<ExitCode> pdsh_command(const Call& call) {
  const auto pdsh = launchers::parse_pdsh(call.words);
  if (!pdsh) return refuse(kProgram, pdsh.error(), kAsPdsh);
  if (pdsh->asks_version) return print_version();
  // In an allocation srun reaches the nodes, which then need neither an SSH server nor pdsh.
  const char* job = std::getenv("SLURM_JOB_ID");
  return job != nullptr && *job != '\0' ? run_over_srun(*pdsh) : run_over_ssh(*pdsh);
}

}  // namespace

extern constinit const Subcommand kPdsh{
    .name = "pdsh",
    .summary = "a shell command on many hosts, in place of pdsh",
    .run = pdsh_command,
    .listed = false};

}  // namespace lockstep::cli
