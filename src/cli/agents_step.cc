#include "cli/agents_step.h"

#include "cli/run_options.h"
#include "slurm/preflight.h"

#include <limits.h>

#include <algorithm>

namespace lockstep::cli {

std::optional<slurm::Beginning> beginning_of(const std::vector<std::string>& step,
                                             const GetEnv& env) {
  auto words = std::find(step.begin(), step.end(), "slurm-node");
  words = std::find(words, step.end(), "--");
  if (words == step.end()) return std::nullopt;
  const std::vector<std::string> run(words + 1, step.end());
  const auto parsed = parse_options(run_table(), run, env);
  if (!parsed || !parsed->ended_by.empty()) return std::nullopt;
  const launch::RawOptions raw = raw_options(run_table(), *parsed);
  const slurm::NodeCounts size = slurm::size_of(raw.nnodes.value_or(""), INT_MAX);
  return slurm::Beginning{
      .to_spare = size.wanted - size.at_least + static_cast<int>(raw.spares.value_or(0)),
      .at_first_node = raw.rdzv_endpoint.empty() && !raw.master_addr};
}

}  // namespace lockstep::cli
