// Lints for DeepSpeed's files and arguments, and for checkpoints.
#include "base/text.h"
#include "slurm/ds_config.h"
#include "slurm/lint_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace lockstep::slurm {
namespace {

// A file that the script writes need not exist before the job.
bool is_written_here(const JobScript& script, const std::string& path) {
  for (const ShellCommand& each : script.commands)
    if (std::find(each.outputs.begin(), each.outputs.end(), path) != each.outputs.end())
      return true;
  return false;
}

std::optional<std::string> hostfile_of(const LaunchLine& launch) {
  if (launch.launcher == Launcher::deepspeed || launch.launcher == Launcher::lockstep)
    return option_of(launch.words, {"--hostfile", "-H"});
  if (launch.launcher == Launcher::accelerate)
    return option_of(launch.words, {"--deepspeed_hostfile"});
  return std::nullopt;
}

struct ConfigFile {
  std::string path;
  std::string text;
  bool raw = false;  // --deepspeed_config, read by DeepSpeed itself
};
std::optional<ConfigFile> ds_config_of(const LaunchLine& launch, const CheckFacts& facts) {
  auto path = option_of(launch.words, {"--deepspeed", "--deepspeed_config_file"});
  const bool raw = !path || !path->ends_with(".json");
  if (raw) path = option_of(launch.words, {"--deepspeed_config"});
  if (!path || !path->ends_with(".json") || !is_known(*path) || !facts.read_file)
    return std::nullopt;
  auto text = facts.read_file(*path);
  if (!text) return std::nullopt;
  return ConfigFile{std::move(*path), std::move(*text), raw};
}

// Returns the world size of a launch; nullopt: not determined before the job.
std::optional<int> world_of(const JobScript& script, const LaunchLine& launch) {
  const int nodes = nodes_of(script).value_or(1);
  std::optional<int> each;
  if (launch.launcher == Launcher::accelerate) {
    if (const auto all = number_option(launch.words, {"--num_processes"})) return all;
  } else if (launch.launcher == Launcher::deepspeed) {
    if (hostfile_of(launch) || has_option(launch.words, {"--include", "--exclude"}))
      return std::nullopt;
    each = number_option(launch.words, {"--num_gpus"});
  } else if (launch.launcher == Launcher::python) {
    if (!launch.by_srun) return std::nullopt;
    each = tasks_per_node(script, &launch);
  } else {
    each = number_option(launch.words, {"--nproc_per_node"});
  }
  if (!each && launch.launcher != Launcher::python) each = gpus_per_node(script);
  if (!each || *each < 1 || nodes < 1 || *each > 4096 || nodes > 100000) return std::nullopt;
  return *each * nodes;
}

// Checks a line of a hostfile as DeepSpeed parses it.
void look_at_line(std::string_view raw, int number, const std::string& path,
                  std::set<std::string>& hosts, Findings& found) {
  const std::string_view line = strip(raw);
  if (line.empty() || line.front() == '#') return;
  const std::size_t space = line.find_first_of(" \t");
  const std::string host(line.substr(0, space));
  const std::string_view rest = space == std::string_view::npos ? "" : strip(line.substr(space));
  const std::string shown = printable(line, 60);
  if (host.find(',') != std::string::npos)
    return found.add_in(path, number, fmt::format("'{}' has a comma", shown),
                        "DeepSpeed takes one host a line", "write a line for each host");
  if (host.find('[') != std::string::npos && host.find(']') != std::string::npos &&
      !host.starts_with("["))
    return found.add_in(path, number, fmt::format("'{}' has a range", shown),
                        "DeepSpeed looks for a host of exactly that name",
                        "write a line for each host: scontrol show hostnames");
  const bool slots = rest.starts_with("slots=") && rest.size() > 6 &&
                     std::isdigit(static_cast<unsigned char>(rest[6])) != 0;
  if (!slots)
    return found.add_in(
        path, number, fmt::format("'{}' has no slots=N right behind the host", shown),
        "DeepSpeed refuses the file", fmt::format("write '{} slots=8'", printable(host, 60)));
  std::size_t to = 6;
  while (to < rest.size() && std::isdigit(static_cast<unsigned char>(rest[to])) != 0)
    ++to;
  if (parse_int(rest.substr(6, to - 6)).value_or(1) == 0)
    return found.add_in(path, number, fmt::format("'{}' has no slot", shown),
                        "no rank starts on this host, and other ranks wait forever",
                        "write how many GPUs it has, or delete the line");
  if (to < rest.size() && rest[to] != ' ' && rest[to] != '\t')
    found.add_in(path, number, fmt::format("'{}' has letters right behind its slots", shown),
                 "DeepSpeed reads the number and ignores them", "write slots=N alone");
  if (!hosts.insert(host).second)
    found.add_in(path, number, fmt::format("{} stands there twice", printable(host, 60)),
                 "DeepSpeed refuses the file", "add up its slots in one line");
}

}  // namespace

// DeepSpeed splits every line at '=', so blank lines and comments crash it. accelerate appends to
// the file at every run and never removes lines.
void look_deepspeed_env(const JobScript& script, const CheckFacts& facts, Findings& found) {
  const bool deepspeed =
      std::any_of(script.launches.begin(), script.launches.end(), [](const LaunchLine& each) {
        return each.launcher == Launcher::deepspeed ||
               (each.launcher == Launcher::accelerate &&
                has_option(each.words, {"--use_deepspeed", "--deepspeed_hostfile",
                                        "--deepspeed_multinode_launcher"}));
      });
  if (!deepspeed || !facts.read_file) return;
  // DeepSpeed reads both files.
  for (const std::string& path : {std::string(".deepspeed_env"), facts.home + "/.deepspeed_env"}) {
    const auto text =
        facts.home.empty() && path.front() == '/' ? std::nullopt : facts.read_file(path);
    if (!text) continue;
    std::set<std::string> names;
    std::string twice;
    int number = 0;
    const auto lines = split(strip(*text), '\n');
    for (const std::string& line : lines) {
      ++number;
      const std::size_t equals = line.find('=');
      if (equals == std::string::npos && !text->empty()) {
        found.add_in(path, number,
                     line.empty() ? "an empty line"
                                  : fmt::format("'{}' is not NAME=value", printable(line, 40)),
                     "DeepSpeed ends with a ValueError", "delete the line");
        continue;
      }
      if (!names.insert(line.substr(0, equals)).second) twice = line.substr(0, equals);
    }
    if (!twice.empty())
      found.add_in(path, 0, fmt::format("{} stands there more than once", printable(twice, 60)),
                   "accelerate appends variables at each run and never removes any: old values "
                   "still count",
                   fmt::format("delete {} before the job", path));
  }
}

// DeepSpeed warns about a missing hostfile and then trains on the local node alone
// (DeepSpeed#5221).
void look_hostfile_missing(const JobScript& script, const CheckFacts& facts, Findings& found) {
  if (!facts.read_file) return;
  for (const LaunchLine& each : script.launches) {
    const auto path = hostfile_of(each);
    if (path && is_known(*path) && !is_written_here(script, *path) && !facts.read_file(*path))
      found.add(each.line, fmt::format("the hostfile {} is not there", printable(*path, 80)),
                "DeepSpeed only warns, and trains on this node alone", "correct the path");
  }
}

void look_hostfile_grammar(const JobScript& script, const CheckFacts& facts, Findings& found) {
  if (!facts.read_file) return;
  for (const LaunchLine& each : script.launches) {
    const auto path = hostfile_of(each);
    if (!path || !is_known(*path)) continue;
    if (const auto text = facts.read_file(*path)) check_hostfile(*path, *text, found);
  }
}

void check_hostfile(const std::string& path, std::string_view text, Findings& found) {
  // More than Slurm's limit of nodes.
  constexpr std::size_t kMostLines = 70000;
  std::set<std::string> hosts;
  const auto lines = split(text, '\n');
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    look_at_line(lines[i], static_cast<int>(i) + 1, path, hosts, found);
  const bool any = std::any_of(lines.begin(), lines.end(), [](const std::string& each) {
    return !strip(each).empty() && strip(each).front() != '#';
  });
  if (!any)
    found.add_in(path, 0, "the hostfile names no host", "DeepSpeed refuses it",
                 "write 'HOST slots=N', a line for each");
}

// DeepSpeed keeps no slots for a host without ":SLOTS", although the help says all slots.
void look_include_host(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  for (const LaunchLine& each : script.launches) {
    const bool ours = each.launcher == Launcher::deepspeed;
    const auto include = ours ? option_of(each.words, {"--include", "-i"})
                         : each.launcher == Launcher::accelerate
                             ? option_of(each.words, {"--deepspeed_inclusion_filter"})
                             : std::nullopt;
    if (!include || !is_known(*include)) continue;
    for (const std::string& spec : split(*include, '@'))
      if (!spec.empty() && spec.find(':') == std::string::npos)
        found.add(each.line,
                  fmt::format("--include names the host {} without its GPUs", printable(spec, 60)),
                  "DeepSpeed drops such a host, contrary to its help",
                  fmt::format("write {}:0,1,2,...", printable(spec, 60)));
  }
}

// "auto" is an invention of Hugging Face's Trainer. DeepSpeed itself fails on the text.
void look_ds_auto(const JobScript& script, const CheckFacts& facts, Findings& found) {
  for (const LaunchLine& each : script.launches) {
    const auto file = ds_config_of(each, facts);
    if (!file || each.launcher == Launcher::accelerate) continue;
    const auto config = read_ds_config(file->text);
    if (!config || config->auto_fields.empty()) continue;
    const Program program = program_of(each);
    const auto text = is_known(program.name) ? facts.read_file(program.name) : std::nullopt;
    // A text search is enough: the lint must not blame a script that may use the Trainer.
    const bool trainer = text && (text->find("Trainer") != std::string::npos ||
                                  text->find("accelerate") != std::string::npos ||
                                  text->find("trl") != std::string::npos ||
                                  text->find("HfDeepSpeedConfig") != std::string::npos);
    if (trainer || (!text && !file->raw)) continue;
    const std::string& field = config->auto_fields.front();
    found.add_in(
        file->path, line_of_field(file->text, field), fmt::format("{} is \"auto\"", field),
        text ? fmt::format(
                   "only Hugging Face's Trainer replaces \"auto\", and {} does not use the Trainer",
                   program.name)
             : "DeepSpeed itself does not accept \"auto\"; Hugging Face's Trainer replaces it",
        "write the number");
  }
}

void check_ds_text(const std::string& path, std::string_view text, const DsArguments& arguments,
                   Findings& found) {
  const auto config = read_ds_config(text);
  if (!config)
    return found.add_in(path, 0, config.error().message, "DeepSpeed cannot read it",
                        config.error().hint);
  for (DsProblem& problem : check_ds_config(*config, arguments))
    found.add_in(path, line_of_field(text, problem.field), std::move(problem.what),
                 std::move(problem.why), std::move(problem.fix));
}

void look_ds_batch(const JobScript& script, const CheckFacts& facts, Findings& found) {
  for (const LaunchLine& each : script.launches)
    if (const auto file = ds_config_of(each, facts))
      check_ds_text(file->path, file->text,
                    read_ds_arguments(program_of(each).words, world_of(script, each)), found);
}

// ZeRO writes a file per rank. Another number of ranks cannot load them, except from a universal
// checkpoint.
void look_zero_world_size(const JobScript& script, const CheckFacts& facts, Findings& found) {
  if (!facts.list_folder) return;
  for (const LaunchLine& each : script.launches) {
    const auto folder = option_of(each.words, {"--resume_from_checkpoint"});
    const auto world = world_of(script, each);
    if (!folder || !is_known(*folder) || !world) continue;
    // The file names contain the rank:
    // checkpoint-500/global_step500/bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt
    int last = -1;
    for (const std::string& step : facts.list_folder(*folder)) {
      if (!step.starts_with("global_step")) continue;
      for (const std::string& name : facts.list_folder(*folder + "/" + step)) {
        const std::size_t at = name.find("zero_pp_rank_");
        if (at == std::string::npos || name.find("optim_states") == std::string::npos) continue;
        const std::string_view rest = std::string_view(name).substr(at + 13);
        last = std::max(last, number_of(rest.substr(0, rest.find('_'))).value_or(-1));
      }
    }
    if (last >= 0 && last + 1 != *world)
      found.add(
          each.line,
          fmt::format("{} was written by {} ranks, and this job has {}", printable(*folder, 80),
                      last + 1, *world),
          "a ZeRO checkpoint is split by ranks and cannot be loaded by another number of them",
          "ask for as many GPUs as then, or make a universal checkpoint: ds_to_universal.py");
  }
}

// Compute nodes often have no internet, so models must be in the cache before the job.
void look_offline_model(const JobScript& script, const CheckFacts& facts, Findings& found) {
  if (!facts.is_folder) return;
  const auto value_of = [&](std::string_view name) -> std::string {
    if (const auto variable = script.variables.find(name); variable != script.variables.end())
      return variable->second.value;
    const auto inherited = facts.environment.find(name);
    return inherited == facts.environment.end() ? "" : inherited->second;
  };
  if (value_of("HF_HUB_OFFLINE") != "1" && value_of("TRANSFORMERS_OFFLINE") != "1") return;
  // The same order as in huggingface_hub.
  std::string cache = value_of("HF_HUB_CACHE");
  if (cache.empty())
    cache = value_of("HF_HOME").empty() ? facts.home + "/.cache/huggingface/hub"
                                        : value_of("HF_HOME") + "/hub";
  if (!is_known(cache)) return;
  for (const LaunchLine& each : script.launches) {
    const auto model = option_of(each.words, {"--model_name_or_path"});
    if (!model || !is_known(*model) || model->starts_with("/") || model->starts_with(".") ||
        facts.is_folder(*model))
      continue;
    std::string name = *model;
    // The hub's cache folder of a model is models--ORG--NAME.
    replace_all(name, "/", "--");
    if (!facts.is_folder(fmt::format("{}/models--{}", cache, name)))
      found.add(
          each.line,
          fmt::format("{} is not in the cache {}", printable(*model, 60), printable(cache, 80)),
          "offline, Transformers fails on loading the model",
          fmt::format("run 'huggingface-cli download {}' here first",
                      shell_quote(printable(*model, 60))));
  }
}

}  // namespace lockstep::slurm
