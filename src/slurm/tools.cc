#include "slurm/tools.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::slurm {
namespace {

// Longer than Slurm's own timeouts. With the controller down, squeue tries for 9 s and scontrol for
// 18 s. A busy controller answers within MessageTimeout, which large sites set to 60 s.
constexpr std::chrono::seconds kPatience{90};
constexpr std::size_t kMostOutput = 64UL << 20;  // enough for 100,000 tasks of an array

// Variables with these beginnings choose columns, order or jobs: SQUEUE_FORMAT, SINFO_PARTITION.
constexpr std::array<std::string_view, 4> kChangesOutput = {"SQUEUE_", "SINFO_", "SACCT_",
                                                            "SCONTROL_"};
// srun takes options from variables, and those of an allocation: SLURM_JOB_ID, SLURM_NTASKS. These
// two only lead to the cluster.
constexpr std::array<std::string_view, 3> kChangesSteps = {"SLURM_", "SLURMD_", "SRUN_"};
constexpr std::array<std::string_view, 2> kLeadsToCluster = {"SLURM_CONF=", "SLURM_JWT="};
constexpr std::chrono::seconds kStepPatience{10};
constexpr const char* kTimes = "SLURM_TIME_FORMAT=%s";  // moments as Unix seconds

// Parts of Slurm's messages, in lower case. The exit code does not tell a dead controller from a
// refusal.
constexpr std::array<std::string_view, 15> kUnreachable = {
    "unable to contact slurm controller",
    "connection refused",
    "connection timed out",
    "connection reset by peer",  // the controller hung up before it answered
    "connect failure",
    "socket timed out",
    "zero bytes were transmitted",
    "no route to host",
    "unable to process configuration file",
    "could not establish a configuration source",
    "munge",
    "authentication credential",
    "protocol authentication error",
    "incompatible versions of client and server",
    "slurm backup controller in standby mode",
};

// Returns Slurm's telling line without the program's name: the fatal one, else the first.
std::string telling_line(std::string_view text) {
  std::string best;
  for (const std::string& line : split(text, '\n')) {
    const std::string_view words = strip(line);
    const bool fatal = words.find(": fatal: ") != std::string_view::npos;
    if (best.empty() || fatal) best = std::string(words);
  }
  for (const std::string_view level : {": fatal: ", ": error: "}) {
    const std::size_t at = best.find(level);
    if (at != std::string::npos) return best.substr(at + level.size());
  }
  const std::size_t error = best.find(" error: ");
  return error == std::string::npos ? best : best.substr(error + 8);
}

// Returns whether scontrol says "Job 7_9 not found" about an array's task. Up to 25.11 scontrol
// prints that on stdout, later on stderr.
bool says_not_found(std::string_view text) {
  for (const std::string& each : split(text, '\n')) {
    const std::string line = telling_line(each);
    if (line.starts_with("Job ") && line.ends_with(" not found")) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> environment_for_tools(const std::vector<std::string>& own) {
  std::vector<std::string> kept;
  for (const std::string& entry : own) {
    const auto begins = [&](std::string_view start) { return entry.starts_with(start); };
    if (begins("SLURM_TIME_FORMAT=")) continue;
    if (std::none_of(kChangesOutput.begin(), kChangesOutput.end(), begins)) kept.push_back(entry);
  }
  kept.emplace_back(kTimes);
  return kept;
}

std::vector<std::string> command_for_tools(const std::vector<std::string>& argv) {
  // The names are known on the host alone. SLURM_TIME_FORMAT gives unset a name in any case: some
  // shells refuse unset without one.
  std::string script = "unset SLURM_TIME_FORMAT $(env | sed -n";
  for (const std::string_view start : kChangesOutput)
    script += fmt::format(" -e 's/^\\({}[A-Za-z0-9_]*\\)=.*/\\1/p'", start);
  script += fmt::format("); export {}; exec \"$@\"", kTimes);
  std::vector<std::string> words = {"sh", "-c", script, "sh"};
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

Result<proc::ToolOutput> run_here(const std::vector<std::string>& argv) {
  return proc::tool_output(argv, environment_for_tools(proc::own_environment()),
                           {.patience = kPatience, .output = kMostOutput});
}

std::vector<std::string> environment_for_steps(const std::vector<std::string>& own) {
  std::vector<std::string> kept;
  for (const std::string& entry : own) {
    const auto begins = [&](std::string_view start) { return entry.starts_with(start); };
    if (std::none_of(kChangesSteps.begin(), kChangesSteps.end(), begins) ||
        std::any_of(kLeadsToCluster.begin(), kLeadsToCluster.end(), begins))
      kept.push_back(entry);
  }
  return kept;
}

Result<proc::ToolOutput> run_step_here(const std::vector<std::string>& argv) {
  return proc::tool_output(argv, environment_for_steps(proc::own_environment()),
                           {.patience = kStepPatience, .output = kMostOutput, .keep_late = true});
}

Trouble trouble_of(const proc::ToolOutput& said) {
  if (said.exit.ok()) return Trouble::none;
  const std::string words = to_lower(said.err);
  const auto tells = [&](std::string_view part) { return words.find(part) != std::string::npos; };
  if (tells("invalid job id") || says_not_found(said.out) || says_not_found(said.err))
    return Trouble::unknown_job;
  if (std::any_of(kUnreachable.begin(), kUnreachable.end(), tells)) return Trouble::unreachable;
  return Trouble::refused;
}

Error tool_error(std::string_view wanted, const std::string& tool, const proc::ToolOutput& said) {
  const std::string line = telling_line(said.err);
  const std::string why = !line.empty() ? printable(line)
                          : said.exit.signal != 0
                              ? fmt::format("it was killed by signal {}", said.exit.signal)
                              : fmt::format("it ended with code {}", said.exit.code);
  const bool unreachable = trouble_of(said) == Trouble::unreachable;
  return {.code = unreachable ? Errc::unavailable : Errc::invalid_input,
          .message = unreachable ? fmt::format("{}: Slurm does not answer: {}", wanted, why)
                                 : fmt::format("{}: {}: {}", wanted, tool, why),
          .hint = unreachable ? "running jobs are not affected; \"scontrol ping\" shows when the "
                                "controller is back"
                              : ""};
}

Result<std::string> ask_tool(const RunTool& run, const std::vector<std::string>& argv,
                             std::string_view wanted) {
  auto said = run(argv);
  if (!said) return Failure(std::move(said.error()).within(wanted));
  if (!said->exit.ok()) return Failure(tool_error(wanted, argv[0], *said));
  return std::move(said->out);
}

}  // namespace lockstep::slurm
