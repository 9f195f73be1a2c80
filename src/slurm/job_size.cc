// Computes a job's size from its settings and the words of its launchers.
#include "base/text.h"
#include "slurm/gpu_words.h"
#include "slurm/job_script.h"

#include <algorithm>
#include <limits>

namespace lockstep::slurm {
namespace {

// torchrun accepts --nproc_per_node and --nproc-per-node.
std::string with_dashes(std::string_view option) {
  std::string text(option);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::optional<int> number_in(const std::vector<Setting>& settings, std::string_view name) {
  const Setting* found = find_setting(settings, name);
  return found == nullptr ? std::nullopt : number_of(found->value);
}

std::optional<CountedGpus> gpus_of_task(const JobScript& script) {
  if (const Setting* each = setting(script, "gpus-per-task")) return gpus_of_count(each->value);
  const Setting* tres = setting(script, "tres-per-task");
  return tres == nullptr ? std::nullopt : gpus_of_gres(tres->value);
}

}  // namespace

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::optional<int> number_of(std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<int> number_option(const std::vector<std::string>& words,
                                 std::initializer_list<std::string_view> names) {
  const auto text = option_of(words, names);
  return text ? number_of(*text) : std::nullopt;
}

const Setting* setting(const JobScript& script, std::string_view name) {
  return find_setting(script.file.settings, name);
}

std::optional<int> nodes_of(const JobScript& script) {
  const Setting* nodes = setting(script, "nodes");
  if (nodes == nullptr) return std::nullopt;
  // Of "2-4" the smaller number is the guaranteed one.
  return number_of(std::string_view(nodes->value).substr(0, nodes->value.find('-')));
}

std::optional<int> tasks_per_node(const JobScript& script, const LaunchLine* launch) {
  static const std::vector<Setting> kNone;
  const auto& step = launch != nullptr ? launch->srun : kNone;
  const int step_nodes = number_in(step, "nodes").value_or(nodes_of(script).value_or(1));
  // Options of the step override those of the job.
  if (const auto each = number_in(step, "ntasks-per-node")) return each;
  if (const auto all = number_in(step, "ntasks"))
    return (*all + step_nodes - 1) / std::max(step_nodes, 1);
  if (const auto each = number_in(script.file.settings, "ntasks-per-node")) return each;
  if (const auto all = number_in(script.file.settings, "ntasks"))
    return (*all + step_nodes - 1) / std::max(step_nodes, 1);
  if (setting(script, "ntasks-per-gpu") != nullptr) return std::nullopt;
  return 1;
}

// Tries the options in the order of precision: per node, per job, per task.
std::optional<int> gpus_per_node(const JobScript& script) {
  if (const Setting* gres = setting(script, "gres"))
    if (const auto gpus = gpus_of_gres(gres->value)) return gpus->count;
  if (const Setting* each = setting(script, "gpus-per-node"))
    return gpus_of_count(each->value).count;
  if (const Setting* all = setting(script, "gpus")) {
    const auto count = gpus_of_count(all->value).count;
    const int nodes = nodes_of(script).value_or(1);
    return count && nodes > 0 && *count % nodes == 0 ? std::optional(*count / nodes) : std::nullopt;
  }
  const auto gpus = gpus_of_task(script);
  const auto tasks = tasks_per_node(script);
  // The bounds keep the product within int.
  if (gpus && gpus->count && tasks && *gpus->count < 100000 && *tasks < 10000)
    return *gpus->count * *tasks;
  return std::nullopt;
}

std::string gpu_type(const JobScript& script) {
  if (const Setting* gres = setting(script, "gres"))
    if (const auto gpus = gpus_of_gres(gres->value)) return gpus->type;
  for (const std::string_view name : {"gpus-per-node", "gpus"})
    if (const Setting* each = setting(script, name)) return gpus_of_count(each->value).type;
  return gpus_of_task(script).value_or(CountedGpus()).type;
}

std::optional<std::string> option_of(const std::vector<std::string>& words,
                                     std::initializer_list<std::string_view> names) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string option = with_dashes(std::string_view(words[i]).substr(0, equals));
    if (!option.starts_with('-')) continue;
    for (const std::string_view name : names) {
      if (option != with_dashes(name)) continue;
      if (equals != std::string::npos)
        value = words[i].substr(equals + 1);
      else
        value = i + 1 < words.size() ? words[i + 1] : "";
    }
  }
  return value;
}

bool has_option(const std::vector<std::string>& words,
                std::initializer_list<std::string_view> names) {
  return option_of(words, names).has_value();
}

Program program_of(const LaunchLine& launch) {
  Program program;
  // The program is the first word that is a Python file, or the argument of -m or --module. Other
  // words may be values of the launcher's options.
  for (std::size_t i = 0; i < launch.words.size(); ++i) {
    const std::string& word = launch.words[i];
    const bool module = (word == "-m" || word == "--module") && i + 1 < launch.words.size();
    if (!module && !word.ends_with(".py")) continue;
    if (!module && word.starts_with("-")) continue;
    if (module) ++i;
    program.name = launch.words[i];
    program.words.assign(launch.words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         launch.words.end());
    break;
  }
  return program;
}

}  // namespace lockstep::slurm
