// lockstep host-facts: the host's end of `lockstep cluster check`. Prints the time for each line of
// input, so that the client can measure delay and clock. Prints the facts of this machine at the
// end of the input. People do not call this.
#include "base/log.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "host/facts_json.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "proc/helper_output.h"
#include "setup/environment.h"
#include "ssh/binary.h"
#include "ssh/repair.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

struct HostFactsOptions {
  std::optional<std::string> project;
  bool repair = false;
};

const Table& host_facts_table() {
  static const Table table = {
      .program = "lockstep host-facts",
      .summary = "",
      .epilog = "",
      .operands = Operands::none,
      .groups = {{"Options",
                  {{.name = "project", .field = into<&HostFactsOptions::project>},
                   {.name = "repair", .field = into<&HostFactsOptions::repair>}}}}};
  return table;
}

// Returns the time in nanoseconds since 1970, by this machine's own clock.
std::string clock_line() {
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count()) +
         "\n";
}

// Answers each line of stdin at once. Returns at the end of stdin.
Status serve_clock() {
  std::array<char, 64> bytes;
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    for (auto lines = std::count(bytes.data(), bytes.data() + got, '\n'); lines > 0; --lines)
      LOCKSTEP_TRY(io::write_all(STDOUT_FILENO, clock_line(), "stdout"));
  }
}

host::ProgramFacts project_python(const std::string& project) {
  const auto environment = setup::find_environment(io::home_folder() + "/" + project);
  // A damaged record must not cost the other facts: warn and go on.
  if (!environment) log::warning("{}", environment.error().message);
  if (!environment || !*environment || (*environment)->python.empty()) return {};
  return host::program_facts((*environment)->python, proc::helper_output);
}

// Removes old binaries and returns lines about them. Uses the folder that clients push to, which
// does not depend on XDG variables of this environment.
Result<std::vector<std::string>> repair() {
  LOCKSTEP_TRY_ASSIGN(const ssh::Binary own, ssh::own_binary());
  const std::string path = io::home_folder() + "/" + ssh::remote_path(own.name);
  const std::size_t slash = path.rfind('/');
  return ssh::remove_old_binaries(path.substr(0, slash), path.substr(slash + 1),
                                  std::chrono::system_clock::now());
}

Status tell_facts(const Call& call) {
  HostFactsOptions options;
  fill(host_facts_table(), call.parsed, options);
  LOCKSTEP_TRY(serve_clock());
  // Only after the clock: helpers such as nvidia-smi take seconds, which would look like delay.
  host::Facts facts = host::gather_facts("", proc::helper_output);
  if (options.project) facts.project_python = project_python(*options.project);
  std::vector<std::string> repaired;
  if (options.repair) {
    LOCKSTEP_TRY_ASSIGN(repaired, repair());
  }
  const nlohmann::ordered_json json{{"facts", host::facts_json(facts)}, {"repaired", repaired}};
  return io::write_all(STDOUT_FILENO, codec::print_json(json) + "\n", "stdout");
}

}  // namespace

extern constinit const Subcommand kHostFacts{.name = "host-facts",
                                             .summary = "the facts of this machine",
                                             .table = host_facts_table,
                                             .run = run_status<tell_facts>,
                                             .fails_with = always(ExitCode::failed),
                                             .listed = false};

}  // namespace lockstep::cli
