// Lints for accelerate launch and its YAML file.
#include "base/text.h"
#include "slurm/lint_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace lockstep::slurm {
namespace {

struct YamlValue {
  std::string value;
  int line = 0;
};
using Yaml = std::map<std::string, YamlValue, std::less<>>;

// Reads the "key: value" lines at the top level. The lints need no nested values, so no YAML
// library.
Yaml top_level(std::string_view text) {
  Yaml all;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line[0] == ' ' || line[0] == '#' || line[0] == '-') continue;
    std::string value(strip(std::string_view(line).substr(colon + 1)));
    if (const std::size_t comment = value.find(" #"); comment != std::string::npos)
      value.resize(comment);
    if (value.size() > 1 && (value.front() == '\'' || value.front() == '"') &&
        value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    all[line.substr(0, colon)] = {std::string(strip(value)), number};
  }
  return all;
}

struct Config {
  std::string path;
  Yaml values;
};

// Returns the file that --config_file names, or accelerate's default one.
std::optional<Config> config_of(const LaunchLine& launch, const CheckFacts& facts) {
  if (!facts.read_file) return std::nullopt;
  auto path = option_of(launch.words, {"--config_file"});
  if (!path && !facts.home.empty())
    path = facts.home + "/.cache/huggingface/accelerate/default_config.yaml";
  if (!path || path->find(kExpandedHere) != std::string::npos) return std::nullopt;
  const auto text = facts.read_file(*path);
  if (!text) return std::nullopt;
  return Config{*path, top_level(*text)};
}

std::optional<int> number_in(const std::optional<Config>& config, std::string_view name) {
  if (!config) return std::nullopt;
  const auto found = config->values.find(name);
  return found == config->values.end() ? std::nullopt : number_of(found->second.value);
}

int machines_of(const JobScript& script, const LaunchLine& launch,
                const std::optional<Config>& config) {
  if (const auto given = number_option(launch.words, {"--num_machines"})) return *given;
  if (const auto given = number_in(config, "num_machines")) return *given;
  return nodes_of(script).value_or(1);
}

bool starts_itself(const LaunchLine& launch) {
  // pdsh, mpi and slurm start the nodes themselves, so one call is enough.
  const auto launcher = option_of(launch.words, {"--deepspeed_multinode_launcher"});
  return launcher && *launcher != "standard" && *launcher != "nossh";
}

}  // namespace

// accelerate neither reads SLURM_NODEID nor derives a rank. Without --machine_rank the launch
// fails, or all nodes have the YAML's rank.
void look_machine_rank(const JobScript& script, const CheckFacts& facts, Findings& found) {
  for (const LaunchLine& each : script.launches) {
    if (each.launcher != Launcher::accelerate || starts_itself(each)) continue;
    const auto config = config_of(each, facts);
    const int machines = machines_of(script, each, config);
    const bool has_rank = has_option(each.words, {"--machine_rank"});
    if (machines < 2 || has_rank) continue;
    const bool in_config = config && config->values.contains("machine_rank");
    found.add(each.line,
              fmt::format("accelerate launch on {} machines without --machine_rank", machines),
              in_config ? "every node has the rank that the YAML gives"
                        : "it ends with a TypeError, whatever the rendezvous is",
              "write srun bash -c 'accelerate launch --machine_rank $SLURM_NODEID ...'");
  }
}

// accelerate divides --num_processes by the number of machines without a check for a remainder.
void look_process_count(const JobScript& script, const CheckFacts& facts, Findings& found) {
  for (const LaunchLine& each : script.launches) {
    if (each.launcher != Launcher::accelerate) continue;
    const auto config = config_of(each, facts);
    const int machines = machines_of(script, each, config);
    auto processes = number_option(each.words, {"--num_processes"});
    if (!processes) processes = number_in(config, "num_processes");
    if (!processes || machines < 1 || *processes % machines == 0) continue;
    found.add(
        each.line, fmt::format("--num_processes={} on {} machines", *processes, machines),
        fmt::format("it is the number of all ranks: each machine starts {}, and {} never come",
                    *processes / machines, *processes % machines),
        fmt::format("write --num_processes={}", (*processes + machines - 1) / machines * machines));
  }
}

// `accelerate config` wrote the file for another job, and the launch still reads it.
void look_accelerate_config(const JobScript& script, const CheckFacts& facts, Findings& found) {
  for (const LaunchLine& each : script.launches) {
    if (each.launcher != Launcher::accelerate) continue;
    const auto config = config_of(each, facts);
    if (!config || machines_of(script, each, config) < 2) continue;
    const auto leftover = [&](std::string_view key, std::string_view option,
                              const std::string& why) {
      const auto value = config->values.find(key);
      if (value != config->values.end() && !value->second.value.empty() &&
          value->second.value != "null" && (option.empty() || !has_option(each.words, {option})))
        found.add_in(config->path, value->second.line,
                     fmt::format("{}: {}", key, printable(value->second.value, 60)), why,
                     option.empty()
                         ? "delete the line"
                         : fmt::format("delete the line, and give {} on the command line", option));
    };
    leftover("main_process_ip", "--main_process_ip", "the job may run on other nodes");
    // Measured with accelerate 1.14: the flag's default False hides the value in the file.
    if (const auto same = config->values.find("same_network");
        same != config->values.end() && same->second.value == "true")
      leftover("same_network", "",
               "accelerate reads it from the command line only, and ignores it here");
  }
}

}  // namespace lockstep::slurm
