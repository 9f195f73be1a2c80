#include "slurm/job_script.h"

#include "base/text.h"
#include "base/word_list.h"
#include "slurm/shell_variables.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr int kMostNesting = 4;  // depth of bash -c inside bash -c
constexpr std::size_t kMostVariables = 10000;
// Bounds the bytes of all values together: each line of a script may double a variable.
constexpr std::size_t kMostExpanded = 16UL << 20;

using Words = std::vector<std::string>;

bool is_python(std::string_view word) {
  const std::string_view name = base_name(word);
  return name.starts_with("python") && std::all_of(name.begin() + 6, name.end(), [](char c) {
           return c == '.' || (c >= '0' && c <= '9');
         });
}

// Walks over the commands from top to bottom, as the shell does, and tracks variables. Ignores
// branches and loops: every command is taken as executed once.
class Walker {
 public:
  explicit Walker(JobScript& script) : script_(script) {}

  void walk(std::vector<ShellCommand> commands) {
    for (ShellCommand& each : commands) {
      put(each.assignments);
      Words words;
      for (std::string& word : each.words)
        put_word(word, words);
      each.words = std::move(words);
      for (std::string& output : each.outputs)
        output = value_of(output);
      remember(each);
      find_launches(each, each.words, {}, 0);
      script_.commands.push_back(std::move(each));
    }
  }

  // Adds the launches that a command line starts, directly or through wrappers, srun, shells and
  // containers.
  void find_launches(const ShellCommand& command, Words words, LaunchLine launch, int nesting) {
    launch.line = command.line;
    launch.end = command.end;
    launch.environment.insert(launch.environment.end(), command.assignments.begin(),
                              command.assignments.end());
    skip_wrappers(words, launch);
    if (words.empty()) return;
    const std::string_view name = base_name(words.front());
    if (name == "srun" && !launch.by_srun) {
      drop(words, 1);
      Words step = step_of(words, launch);
      // An srun inside an srun's step is not followed.
      return find_launches(command, std::move(step), std::move(launch), nesting);
    }
    if (is_one_of(name, {"bash", "sh", "dash", "zsh"}))
      return look_inside(command, words, launch, nesting);
    if (is_one_of(name, {"apptainer", "singularity", "docker", "podman", "enroot"})) {
      to_launcher(words);
      launch.in_container = true;
    }
    take_launch(std::move(words), std::move(launch));
  }

 private:
  static void drop(Words& words, std::size_t count) {
    words.erase(words.begin(),
                words.begin() + static_cast<std::ptrdiff_t>(std::min(count, words.size())));
  }

  std::optional<std::string> look_up(std::string_view name) const {
    const auto found = script_.variables.find(name);
    if (found != script_.variables.end()) return found->second.value;
    // Slurm sets these variables from the job's settings, known before the job runs.
    std::optional<int> number;
    if (is_one_of(name, {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"})) number = nodes_of(script_);
    if (is_one_of(name, {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"}))
      number = gpus_per_node(script_);
    if (name == "SLURM_NTASKS_PER_NODE" && setting(script_, "ntasks-per-node") != nullptr)
      number = tasks_per_node(script_);
    if (name == "SLURM_CPUS_PER_TASK")
      if (const Setting* cpus = setting(script_, "cpus-per-task")) number = number_of(cpus->value);
    if (is_one_of(name, {"SLURM_NTASKS", "SLURM_NPROCS"}))
      if (const Setting* tasks = setting(script_, "ntasks")) number = number_of(tasks->value);
    return number ? std::optional(std::to_string(*number)) : std::nullopt;
  }

  std::string value_of(const std::string& text) {
    if (expanded_ > kMostExpanded) return text;
    std::string value = put_values(text, [this](std::string_view name) { return look_up(name); });
    if (value.size() > text.size()) expanded_ += value.size();
    return value;
  }

  void put(Words& words) {
    for (std::string& each : words)
      each = value_of(each);
  }

  // Splits the value of an unquoted variable at spaces, as the shell does. The reader does not keep
  // quotes, so a word that consists of one variable counts as unquoted.
  void put_word(const std::string& word, Words& words) {
    const bool alone =
        word.size() > 2 && word[0] == kExpandedHere && word[1] == '$' &&
        (word[2] == '{' ? word.find('}') == word.size() - 1
                        : word.find_first_not_of(kNameChars, 2) == std::string::npos);
    std::string value = value_of(word);
    if (!alone || value == word) return words.push_back(std::move(value));
    for (std::string& each : split(value, ' '))
      if (!each.empty()) words.push_back(std::move(each));
  }

  void assign(const std::string& word, int line, bool exported) {
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    const bool adds = name.ends_with('+');
    if (adds) name.pop_back();
    if (script_.variables.size() >= kMostVariables && !script_.variables.contains(name)) return;
    Variable& variable = script_.variables[name];
    if (equals != std::string::npos) {
      const std::string value = word.substr(equals + 1);
      variable.value = adds && variable.value.size() < 65536 ? variable.value + " " + value : value;
      variable.line = line;
    }
    variable.exported = variable.exported || exported || export_all_;
  }

  // Tracks assignments, export, set -a and unset.
  void remember(const ShellCommand& command) {
    if (command.words.empty())
      for (const std::string& each : command.assignments)
        assign(each, command.line, false);
    if (command.words.empty()) return;
    const std::string& name = command.words.front();
    if (is_one_of(name, {"export", "declare", "typeset", "local", "readonly"})) {
      const bool exports = name == "export" || has_option(command.words, {"-x"});
      for (std::size_t i = 1; i < command.words.size(); ++i)
        if (!command.words[i].starts_with("-")) assign(command.words[i], command.line, exports);
    }
    if (name == "set" && command.words.size() > 1 && command.words[1] == "-a") export_all_ = true;
    if (name == "unset")
      for (std::size_t i = 1; i < command.words.size(); ++i)
        script_.variables.erase(command.words[i]);
  }

  // Removes programs that only run another program, with their options.
  static void skip_wrappers(Words& words, LaunchLine& launch) {
    static constexpr auto kWrappers = {"exec", "nohup",   "command", "env",     "nice",  "ionice",
                                       "time", "numactl", "stdbuf",  "timeout", "setsid"};
    while (!words.empty() && std::find(kWrappers.begin(), kWrappers.end(),
                                       base_name(words.front())) != kWrappers.end()) {
      const std::string wrapper(base_name(words.front()));
      drop(words, 1);
      while (!words.empty() &&
             (words.front().starts_with("-") || words.front().find('=') != std::string::npos)) {
        // Options of nice, stdbuf, timeout and the like that take the next word.
        const bool value = is_one_of(words.front(), {"-n", "-u", "-k", "-s", "-c"});
        if (words.front().find('=') != std::string::npos && wrapper == "env" &&
            !words.front().starts_with("-"))
          launch.environment.push_back(words.front());
        drop(words, value ? 2 : 1);
      }
      if (wrapper == "timeout") drop(words, 1);
    }
  }

  // Returns the words that srun starts, and puts srun's options into `launch`.
  static Words step_of(const Words& words, LaunchLine& launch) {
    std::vector<PlacedWord> placed;
    placed.reserve(words.size());
    for (const std::string& each : words)
      placed.push_back({each, launch.line});
    PlacedSettings read = read_srun_settings(placed);
    launch.by_srun = true;
    launch.srun = std::move(read.settings);
    launch.step_words.assign(words.begin() + static_cast<std::ptrdiff_t>(read.words), words.end());
    return launch.step_words;
  }

  // Reads the script of bash -c "...". Options may be joined, as in -lc.
  void look_inside(const ShellCommand& command, const Words& words, const LaunchLine& launch,
                   int nesting) {
    if (nesting >= kMostNesting) return;
    for (std::size_t i = 1; i + 1 < words.size() && words[i].starts_with("-"); ++i) {
      if (words[i].starts_with("--") || !words[i].ends_with('c')) continue;
      for (ShellCommand& each : read_shell(words[i + 1], Expansions::keep)) {
        each.line = command.line;
        each.end = command.end;
        find_launches(each, each.words, launch, nesting + 1);
      }
      return;
    }
  }

  // Drops the words before the launcher: in a container call, options and the image come first.
  static void to_launcher(Words& words) {
    const auto found = std::find_if(words.begin(), words.end(), [](const std::string& each) {
      return is_python(each) || is_one_of(base_name(each), {"torchrun", "accelerate", "deepspeed"});
    });
    if (found != words.end()) words.erase(words.begin(), found);
  }

  // Replaces "$A" and "--x=$A" that a shell of the task expands: the task inherits exported
  // variables.
  void put_inherited(std::string& word) const {
    const std::size_t at = word.starts_with("-") ? word.find('=') + 1 : 0;
    std::string_view name = std::string_view(word).substr(at);
    if (!name.starts_with('$')) return;
    name.remove_prefix(1);
    if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
    const auto variable = script_.variables.find(name);
    if (variable != script_.variables.end() && variable->second.exported)
      word.replace(at, std::string::npos, variable->second.value);
  }

  void take_launch(Words words, LaunchLine launch) {
    const std::string name(base_name(words.front()));
    launch.program = words.front();
    std::size_t skip = 1;
    if (name == "torchrun") {
      launch.launcher = Launcher::torchrun;
    } else if (name == "accelerate" && words.size() > 1 && words[1] == "launch") {
      launch.launcher = Launcher::accelerate;
      skip = 2;
    } else if (name == "deepspeed") {
      launch.launcher = Launcher::deepspeed;
    } else if (name == "lockstep" && words.size() > 1 && is_one_of(words[1], {"run", "launch"})) {
      launch.launcher = Launcher::lockstep;
      skip = 2;
    } else if (is_python(name)) {
      const auto module = std::find(
          words.begin(),
          words.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(words.size(), 4)),
          "-m");
      if (module != words.end() && module + 1 < words.end() && *module == "-m") {
        const std::string& of = *(module + 1);
        if (is_one_of(of, {"torch.distributed.run", "torch.distributed.launch"}))
          launch.launcher = Launcher::torchrun;
        if (is_one_of(of, {"accelerate.commands.launch", "accelerate.launch"}))
          launch.launcher = Launcher::accelerate;
        if (of == "deepspeed.launcher.runner") launch.launcher = Launcher::deepspeed;
        if (launch.launcher != Launcher::python)
          skip = static_cast<std::size_t>(module - words.begin()) + 2;
      }
    } else {
      return;
    }
    drop(words, skip);
    for (std::string& each : words)
      put_inherited(each);
    launch.words = std::move(words);
    script_.launches.push_back(std::move(launch));
  }

  static constexpr const char* kNameChars =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  JobScript& script_;
  bool export_all_ = false;
  std::size_t expanded_ = 0;  // bytes of values
};

void add_settings(JobScript& script, const std::vector<Setting>& more) {
  for (const Setting& each : script.file.settings)
    if (each.component > 0) script.heterogeneous = true;
  script.file.settings.insert(script.file.settings.end(), more.begin(), more.end());
}

}  // namespace

JobScript read_job_script(std::string_view name, std::string_view text,
                          const std::vector<Setting>& more) {
  JobScript script;
  script.name = name;
  script.file = read_sbatch_file(text);
  add_settings(script, more);
  if (text.size() <= kMostScriptBytes) Walker(script).walk(read_shell(text));
  return script;
}

JobScript job_of_words(std::string_view name, const std::vector<Setting>& settings,
                       std::vector<std::string> launch) {
  JobScript script;
  script.name = name;
  add_settings(script, settings);
  ShellCommand command;
  command.words = launch;
  Walker(script).find_launches(command, std::move(launch), {}, 0);
  return script;
}

}  // namespace lockstep::slurm
