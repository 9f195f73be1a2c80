#include "cli/submit_accelerate.h"

#include "base/text.h"
#include "cli/accelerate_launch.h"
#include "io/fd.h"
#include "launchers/accelerate_answer.h"
#include "slurm/job_script.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

// Returns whether the words or the configuration file give the number of processes. Otherwise
// accelerate counts the GPUs of its machine, which must be a node of the job.
bool names_processes(const std::vector<std::string>& words) {
  if (slurm::has_option(words, {"--num_processes"})) return true;
  const auto file = slurm::option_of(words, {"--config_file"});
  const auto text = file ? io::read_file(*file, kMostBytes) : Result<std::string>("");
  return text && text->find("num_processes:") != std::string::npos;
}

// told: a number of machines, or MIN:MAX, whose maximum counts.
Status check_nodes(std::string_view told, std::optional<int> nodes) {
  const auto count = parse_int(split(told, ':').back());
  if (!nodes || !count || *count == *nodes) return {};
  return fail(
      Errc::invalid_input,
      fmt::format("accelerate launch is configured for {} machine{}, but the job has {} node{}",
                  *count, *count == 1 ? "" : "s", *nodes, *nodes == 1 ? "" : "s"),
      fmt::format("write --num_machines {}; --num_processes counts the processes of all nodes",
                  *nodes));
}

}  // namespace

Result<std::optional<launchers::Launch>> accelerate_here(const launchers::Launch& given,
                                                         std::optional<int> nodes) {
  if (const auto told = slurm::option_of(given.run, {"--num_machines"}))
    LOCKSTEP_TRY(check_nodes(*told, nodes));
  if (!names_processes(given.run)) return std::nullopt;
  LOCKSTEP_TRY_ASSIGN(launchers::Launch launch,
                      ask_accelerate(given, {.placed_by_scheduler = true}));
  if (launchers::is_accelerate_itself(launch)) return std::nullopt;
  LOCKSTEP_TRY(check_nodes(launch.nodes.count.value_or("1"), nodes));
  return launch;
}

std::string accelerate_script(const std::vector<std::string>& command) {
  // In the job, srun is Lockstep's stand-in, which converts the words and starts the agents.
  return "#!/bin/sh\nexec srun " + shell_join(command) + "\n";
}

}  // namespace lockstep::cli
