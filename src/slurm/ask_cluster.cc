#include "slurm/ask_cluster.h"

#include "base/text.h"
#include "slurm/fields.h"

namespace lockstep::slurm {

Surroundings ask_surroundings(const RunTool& run, std::int64_t now) {
  Surroundings around{.partitions = {}, .out = {}, .now = now};
  if (const auto text = ask_tool(run, scontrol_partitions_command(), "partitions"))
    around.partitions = parse_partitions(*text);
  if (const auto text = ask_tool(run, sinfo_reasons_command(), "nodes"))
    around.out = parse_sinfo_reasons(*text);
  return around;
}

std::map<std::string, std::string> parse_config(std::string_view text) {
  // Bounds memory if the text is damaged.
  constexpr std::size_t kMost = 4096;
  std::map<std::string, std::string> config;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t equal = line.find('=');
    if (equal == std::string::npos || config.size() == kMost) continue;
    const std::string_view name = strip(std::string_view(line).substr(0, equal));
    // Names of settings have no spaces. Other lines may contain '=', too.
    if (!name.empty() && name.find(' ') == std::string_view::npos)
      config.emplace(name, known_text(std::string_view(line).substr(equal + 1)));
  }
  return config;
}

std::string ClusterFacts::setting(const std::string& name) const {
  const auto found = config.find(name);
  return found == config.end() ? std::string() : found->second;
}

bool ClusterFacts::has_accounting() const {
  const std::string type = setting("AccountingStorageType");
  // Without accounting, Slurm names the plugin "accounting_storage/none".
  return !type.empty() && !type.ends_with("/none");
}

Result<ClusterFacts> ask_cluster(const RunTool& run) {
  ClusterFacts facts;
  LOCKSTEP_TRY_ASSIGN(const std::string config,
                      ask_tool(run, {"scontrol", "show", "config"}, "its settings"));
  facts.config = parse_config(config);
  LOCKSTEP_TRY_ASSIGN(const std::string partitions,
                      ask_tool(run, scontrol_partitions_command(), "its partitions"));
  facts.partitions = parse_partitions(partitions);
  LOCKSTEP_TRY_ASSIGN(const std::string groups, ask_tool(run, sinfo_command(), "its nodes"));
  facts.groups = parse_sinfo(groups);
  LOCKSTEP_TRY_ASSIGN(const std::string out, ask_tool(run, sinfo_reasons_command(), "its nodes"));
  facts.out = parse_sinfo_reasons(out);
  return facts;
}

}  // namespace lockstep::slurm
