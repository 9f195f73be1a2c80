#include "jobs/on_slurm/slurm_bad_nodes.h"

#include "base/clock_ms.h"
#include "base/environment.h"
#include "base/text.h"
#include "codec/nodelist.h"
#include "io/loop.h"
#include "io/own_folders.h"
#include "slurm/ask_cluster.h"
#include "slurm/bad_node_file.h"
#include "slurm/tools.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

using slurm::Setting;

// Slurm sets the variable inside of a job. Elsewhere ask the controller.
std::string name_of_cluster(const slurm::RunTool& run) {
  if (auto name = env_variable("SLURM_CLUSTER_NAME")) return std::move(*name);
  const auto text = slurm::ask_tool(run, {"scontrol", "show", "config"}, "its settings");
  return text ? slurm::parse_config(*text)["ClusterName"] : "";
}

// Returns whether Slurm would accept the job. No answer counts as yes.
bool is_taken(const slurm::RunTool& run, slurm::JobWish wish, std::vector<Setting> settings) {
  wish.settings = std::move(settings);
  const auto plan = slurm::plan_job(wish);
  if (!plan) return true;
  std::vector<std::string> argv = {"sbatch", "--test-only"};
  for (const Setting& each : plan->settings)
    argv.push_back(slurm::word_of(each));
  // sbatch tests only jobs with a script. --wrap saves a file.
  argv.emplace_back("--wrap=true");
  const auto said = run(argv);
  return !said || slurm::trouble_of(*said) != slurm::Trouble::refused;
}

Result<std::string> ask(const hosts::HostPlace& place, std::vector<std::string> words,
                        const hosts::RunCommand& run_command) {
  words.insert(words.begin(), "host-submit");
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(auto endings,
                      run_command(loop, {.hosts = {place},
                                         .argv = std::move(words),
                                         .own_binary = true,
                                         .input = hosts::CommandRequest::Input::none,
                                         .output = hosts::CommandRequest::Output::keep}));
  hosts::HostEnding& ending = endings.at(0);
  if (!ending.error.empty()) return fail(Errc::unavailable, ending.error);
  if (ending.code != 0)
    return fail(Errc::unavailable,
                fmt::format("{}: {}", place.name, printable(strip(ending.err), 1000)));
  return std::move(ending.out);
}

std::string list_text(const std::vector<slurm::BadNode>& bad,
                      const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const slurm::BadNode& each : bad)
    if (std::find(names.begin(), names.end(), each.node) != names.end())
      texts.push_back(fmt::format("{} ({})", each.node, each.cause));
  return join(texts, ", ");
}

}  // namespace

Result<std::vector<slurm::BadNode>> bad_nodes_at(const hosts::HostPlace& place,
                                                 const std::string& cluster, std::int64_t now,
                                                 const hosts::RunCommand& run_command) {
  if (place.here) return slurm::known_bad_nodes(io::state_folder(), cluster, now);
  LOCKSTEP_TRY_ASSIGN(const std::string lines, ask(place, {"bad-nodes"}, run_command));
  return slurm::bad_nodes(slurm::parse_failures(lines), cluster, now);
}

Status forget_bad_node_at(const hosts::HostPlace& place, const std::string& cluster,
                          const std::string& node, std::int64_t now,
                          const hosts::RunCommand& run_command) {
  if (place.here) return slurm::forget_bad_node(io::state_folder(), cluster, node, now);
  // Here, because the words of an error there name a command that the user does not know.
  LOCKSTEP_TRY_ASSIGN(const auto bad, bad_nodes_at(place, cluster, now, run_command));
  LOCKSTEP_TRY(slurm::check_bad(bad, node));
  LOCKSTEP_TRY(ask(place, {"forget-node", cluster, node}, run_command));
  return {};
}

Result<std::string> serve_bad_nodes(const std::vector<std::string>& words) {
  if (words.size() == 3 && words[0] == "forget-node") {
    LOCKSTEP_TRY(slurm::forget_bad_node(io::state_folder(), words[1], words[2], unix_ms() / 1000));
    return std::string();
  }
  if (words.size() != 1 || words[0] != "bad-nodes")
    return fail(Errc::invalid_input, "this is an internal command, started by clients");
  LOCKSTEP_TRY_ASSIGN(const auto failures, slurm::known_failures(io::state_folder()));
  std::string lines;
  for (const slurm::NodeFailure& each : failures)
    lines += slurm::failure_line(each);
  return lines;
}

std::vector<Setting> with_excluded(const std::vector<Setting>& settings,
                                   const std::vector<std::string>& names,
                                   std::vector<std::string>& added) {
  const auto nodes_in = [&](std::string_view name) {
    const Setting* setting = slurm::find_setting(settings, name);
    auto nodes = codec::expand_nodelist(setting == nullptr ? "" : setting->value);
    return nodes ? std::move(*nodes) : std::vector<std::string>();
  };
  const auto wanted = nodes_in("nodelist");
  const auto excluded = nodes_in("exclude");
  added.clear();
  for (const std::string& name : names)
    for (const auto* known : {&wanted, &excluded}) {
      if (std::find(known->begin(), known->end(), name) != known->end()) break;
      if (known == &excluded) added.push_back(name);
    }
  std::vector<Setting> all = settings;
  if (added.empty()) return all;
  const Setting* before = slurm::find_setting(settings, "exclude");
  const std::string own = before == nullptr ? "" : before->value + ",";
  // Slurm must see all nodes in one --exclude: merge the user's nodes and these.
  std::erase_if(all, [](const Setting& each) { return each.name == "exclude"; });
  all.push_back({.name = "exclude", .value = own + join(added, ","), .has_value = true});
  return all;
}

std::string leave_out_bad_nodes(slurm::JobWish& wish, const SlurmWorld& world) {
  const std::string folder = io::state_folder();
  // Most users have no bad nodes. Ask Slurm nothing then.
  if (access((folder + "/bad-nodes").c_str(), R_OK) != 0) return {};
  // Other clusters have nodes with other names.
  if (slurm::find_setting(wish.settings, "clusters") != nullptr) return {};
  const auto bad =
      slurm::known_bad_nodes(folder, name_of_cluster(world.run), world.unix_ms() / 1000);
  if (!bad || bad->empty()) return {};
  std::vector<std::string> names;
  for (const slurm::BadNode& each : *bad)
    names.push_back(each.node);
  std::vector<std::string> added;
  auto settings = with_excluded(wish.settings, names, added);
  if (added.empty()) return {};
  const std::string list = list_text(*bad, added);
  // Ask Slurm twice: if Slurm refuses the job also with the bad nodes, they are not the reason.
  if (!is_taken(world.run, wish, settings) && is_taken(world.run, wish, wish.settings))
    return fmt::format(
        "nodes with recent failures are used anyway, because Slurm has too few other nodes: {}",
        list);
  wish.settings = std::move(settings);
  return fmt::format(
      "left out because of recent failures: {}; --use-bad-nodes uses these nodes anyway", list);
}

}  // namespace lockstep::jobs::on_slurm
