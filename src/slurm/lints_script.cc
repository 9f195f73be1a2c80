// Lints for a job's settings, and for mistakes in shell code.
#include "base/text.h"
#include "slurm/lint_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

namespace lockstep::slurm {
namespace {

bool starts_training(const JobScript& script) {
  return !script.launches.empty();
}

bool is_command(const ShellCommand& command, std::string_view name) {
  return !command.words.empty() && base_name(command.words.front()) == name;
}

// Returns whether a shell option is on, by `set` or in the first line (bash -e).
bool shell_option(const JobScript& script, char letter, std::string_view name) {
  for (const std::string& word : split(script.file.shebang, ' '))
    if (word.starts_with("-") && word.find(letter) != std::string::npos && letter != 0) return true;
  for (const ShellCommand& each : script.commands) {
    if (!is_command(each, "set")) continue;
    for (std::size_t i = 1; i < each.words.size(); ++i) {
      const std::string& word = each.words[i];
      if (word == name) return true;
      if (letter != 0 && word.starts_with("-") && word.find(letter) != std::string::npos)
        return true;
    }
  }
  return false;
}

// Of --requeue and --no-requeue the later one counts.
bool requeues(const JobScript& script) {
  const Setting* yes = setting(script, "requeue");
  const Setting* no = setting(script, "no-requeue");
  return yes != nullptr && (no == nullptr || no->line < yes->line);
}

std::string_view why_ignored(IgnoredDirective::Why why) {
  switch (why) {
    case IgnoredDirective::Why::after_command:
      return "sbatch stops reading at the first command";
    case IgnoredDirective::Why::two_hashes:
      return "with two hashes it is a comment";
    case IgnoredDirective::Why::space:
      return "sbatch wants #SBATCH at the beginning of the line";
    case IgnoredDirective::Why::spelling:
      return "sbatch wants #SBATCH in capitals";
  }
  return "";
}

// Returns whether a directive with two hashes is switched off on purpose: options that do not
// change how the job runs, or options that are given elsewhere.
bool is_switched_off(const JobScript& script, const IgnoredDirective& directive) {
  if (directive.why != IgnoredDirective::Why::two_hashes) return false;
  const std::size_t at = directive.text.find('-');
  const auto words = directive_words(std::string_view(directive.text).substr(at));
  if (!words) return true;
  std::vector<PlacedWord> placed;
  for (const std::string& each : *words)
    placed.push_back({each, 0});
  static const std::set<std::string_view> kHarmless = {"mail-type", "mail-user", "comment",
                                                       "wckey"};
  const auto read = read_placed_settings(placed, UnknownOptions::keep);
  return std::all_of(read.settings.begin(), read.settings.end(), [&](const Setting& each) {
    return kHarmless.contains(each.name) || setting(script, each.name) != nullptr;
  });
}

bool is_in_here_document(const JobScript& script, int line) {
  return std::any_of(
      script.commands.begin(), script.commands.end(),
      [line](const ShellCommand& each) { return each.line < line && line <= each.here_last; });
}

// Replaces %u and %x, which are known before submission. Slurm's other patterns are not.
std::string with_known_patterns(std::string path, const JobScript& script,
                                const CheckFacts& facts) {
  const Setting* name = setting(script, "job-name");
  replace_all(path, "%x", name != nullptr ? name->value : base_name(script.name));
  const auto user = facts.environment.find("USER");
  if (user != facts.environment.end()) replace_all(path, "%u", user->second);
  return path;
}

bool is_local_to_a_node(std::string_view path) {
  static constexpr std::array<std::string_view, 4> kLocal = {"/tmp/", "/dev/shm/", "/var/tmp/",
                                                             "/run/"};
  return path == "/tmp" || std::any_of(kLocal.begin(), kLocal.end(), [path](std::string_view each) {
           return path.starts_with(each);
         });
}

}  // namespace

// Repeats what sbatch itself would refuse, with the line. A kept unknown option is a warning only:
// a plugin of the site may add it.
void look_refused(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  for (const ScriptProblem& each : script.file.problems)
    found.add(each.line, "sbatch refuses this script", each.what, each.fix);
  for (const Setting& each : script.file.settings)
    if (!each.known)
      found.add(Severity::warning, each.line,
                fmt::format("sbatch has no option --{}", printable(each.name, 60)),
                "sbatch refuses what no plugin of the site adds",
                "see man sbatch, or leave it out");
}

// sbatch reads directives up to the first command, and silently takes later ones for comments.
void look_ignored_directive(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  for (const IgnoredDirective& each : script.file.ignored) {
    if (is_switched_off(script, each) || is_in_here_document(script, each.line)) continue;
    const bool late = each.why == IgnoredDirective::Why::after_command;
    found.add(late ? Severity::error : Severity::warning, each.line,
              fmt::format("'{}' is not read", printable(strip(each.text), 60)),
              late ? fmt::format("{} (line {})", why_ignored(each.why), each.command_line)
                   : std::string(why_ignored(each.why)),
              late ? "move it above that line" : "write '#SBATCH', or delete the line");
  }
}

// sbatch's default truncates the output file at each start of the job.
void look_requeue_truncates(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  if (!requeues(script)) return;
  const Setting* mode = setting(script, "open-mode");
  if (mode != nullptr && mode->value.starts_with("a")) return;
  found.add(setting(script, "requeue")->line, "--requeue without --open-mode=append",
            "each requeue empties the log of the runs before", "add #SBATCH --open-mode=append");
}

// Slurm does not create folders. A job whose output file cannot be opened dies at once, without any
// message.
void look_output_folder(const JobScript& script, const CheckFacts& facts, Findings& found) {
  for (const std::string_view name : {"output", "error"}) {
    const Setting* file = setting(script, name);
    if (file == nullptr) continue;
    std::string path = file->value;
    const Setting* chdir = setting(script, "chdir");
    if (chdir != nullptr && !path.starts_with("/")) path = fmt::format("{}/{}", chdir->value, path);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) continue;
    const std::string folder = with_known_patterns(path.substr(0, slash), script, facts);
    if (is_local_to_a_node(path)) {
      found.add(
          Severity::warning, file->line,
          fmt::format("--{}={} lies on one node's own disk", name, printable(file->value, 80)),
          "the log cannot be seen from anywhere else", "use a folder that all nodes share");
    } else if (folder.find('%') != std::string::npos) {
      found.add(file->line,
                fmt::format("the folder of --{}={} has a % in its name", name,
                            printable(file->value, 80)),
                "Slurm makes no folders, so it cannot be there and the job dies without a word",
                "put %j into the file's name and make the folder beforehand");
    } else if (facts.is_folder && !facts.is_folder(folder)) {
      found.add(file->line,
                fmt::format("the folder of --{}={} is not there", name, printable(file->value, 80)),
                "Slurm makes no folders: the job dies at once without a word",
                fmt::format("mkdir -p {}", shell_quote(printable(folder))));
    }
  }
}

// The backfill scheduler can place a job in a gap only if it knows the job's end.
void look_time_limit(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  const Setting* time = setting(script, "time");
  if (time == nullptr)
    return found.add(
        0, "there is no --time",
        "the partition's default or longest limit counts, and backfill passes the job over",
        "add #SBATCH --time=HH:MM:SS");
  const std::string value = to_lower(time->value);
  if (value == "unlimited" || value == "infinite" || value == "0" || value == "-1")
    found.add(time->line, fmt::format("--time={} sets no limit", time->value),
              "a job without an end is never backfilled", "write --time=HH:MM:SS");
}

void look_signal_lead(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  // Slurm checks limits once a minute, and kills 30 s after the limit (KillWait).
  constexpr int kLeastSeconds = 90;
  const Setting* signal = setting(script, "signal");
  if (signal == nullptr) return;
  const std::size_t at = signal->value.find('@');
  // Slurm's default lead is 60 s.
  const int lead = at == std::string::npos
                       ? 60
                       : number_of(std::string_view(signal->value).substr(at + 1)).value_or(60);
  if (lead < kLeastSeconds)
    found.add(
        signal->line,
        fmt::format("--signal={} comes {} s before the limit", printable(signal->value, 40), lead),
        "Slurm looks at limits once a minute only, so there may be no time left for a checkpoint",
        fmt::format("write {}@180 or more: 90 s and the time of a step and a checkpoint",
                    signal->value.substr(0, at)));
}

// bash runs a trap only between commands or in `wait`. Without "B:", --signal reaches the tasks and
// not the script.
void look_trap_wait(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  // Find a trap for a signal. EXIT, ERR and the like are not signals.
  const ShellCommand* trap = nullptr;
  for (const ShellCommand& each : script.commands) {
    if (!is_command(each, "trap") || each.words.size() < 3 || each.words[1] == "-" ||
        each.words[1].empty())
      continue;
    for (std::size_t i = 2; i < each.words.size(); ++i) {
      const std::string name = to_upper(each.words[i]);
      if (name != "EXIT" && name != "ERR" && name != "DEBUG" && name != "RETURN" && name != "0")
        trap = &each;
    }
  }
  if (trap == nullptr) return;
  const Setting* signal = setting(script, "signal");
  if (signal != nullptr && signal->value.find("B:") == std::string::npos)
    found.add(signal->line,
              fmt::format("--signal={} does not reach the trap in line {}",
                          printable(signal->value, 40), trap->line),
              "without B: the signal goes to the tasks and not to the script",
              fmt::format("write --signal=B:{}", printable(signal->value, 40)));
  for (const LaunchLine& each : script.launches)
    if (each.line > trap->line && each.end != "&")
      return found.add(each.line,
                       fmt::format("the trap in line {} does not run while this does", trap->line),
                       "bash runs a trap when the command in the foreground has ended",
                       "write '... &' and 'wait $!' behind it");
}

// Without pipefail, a pipe's exit code is the last command's. Slurm then records a failed training
// as completed.
void look_pipe_status(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  if (shell_option(script, 0, "pipefail")) return;
  for (const ShellCommand& each : script.commands)
    for (const std::string& word : each.words)
      if (word.find("PIPESTATUS") != std::string::npos) return;
  for (const LaunchLine& each : script.launches)
    if (each.end == "|" || each.end == "|&")
      found.add(each.line, "the exit code of this pipe is the last command's",
                "a training that failed counts as done, and is not requeued",
                "write 'set -o pipefail' above it, or let --output write the log");
}

// `conda activate` is a shell function from .bashrc, which a batch script does not read.
void look_conda_activate(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  if (script.file.shebang.find(" -l") != std::string::npos ||
      script.file.shebang.find(" -i") != std::string::npos ||
      script.file.shebang.find("--login") != std::string::npos)
    return;
  for (const ShellCommand& each : script.commands) {
    if (each.words.empty()) continue;
    const std::string& name = each.words.front();
    if (name == "source" || name == "." || name == "eval" || name == "module" || name == "ml")
      return;
    const bool activates = each.words.size() > 1 && each.words[1] == "activate";
    if (!activates || (name != "conda" && name != "mamba" && name != "micromamba")) continue;
    return found.add(each.line, fmt::format("'{} activate' is not known to this shell", name),
                     "a batch script does not read .bashrc, where conda's function comes from",
                     fmt::format("put eval \"$({} shell.bash hook)\" above it",
                                 name == "micromamba" ? "conda" : name));
  }
}

// --export=NAME=VALUE without ALL passes nothing else. sbatch hands the option on to srun as
// SLURM_EXPORT_ENV.
void look_export_none(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  const auto lacks_all = [](const Setting& each) {
    const auto names = split(each.value, ',');
    return each.has_value && std::find(names.begin(), names.end(), "ALL") == names.end() &&
           !each.value.starts_with("SLURM_");
  };
  for (const LaunchLine& each : script.launches)
    if (const Setting* step = find_setting(each.srun, "export");
        step != nullptr && lacks_all(*step))
      found.add(each.line, fmt::format("srun --export={} has no ALL", printable(step->value, 60)),
                "the tasks have neither PATH nor anything else of this script",
                fmt::format("write --export=ALL,{}", printable(step->value, 60)));
  const Setting* job = setting(script, "export");
  if (job == nullptr || !lacks_all(*job)) return;
  bool mended =
      shell_option(script, 0, "--login") || script.file.shebang.find(" -l") != std::string::npos;
  for (const ShellCommand& each : script.commands)
    for (const auto* words : {&each.words, &each.assignments})
      for (const std::string& word : *words)
        if (word.starts_with("SLURM_EXPORT_ENV")) mended = true;
  for (const LaunchLine& each : script.launches)
    if (find_setting(each.srun, "export") != nullptr) mended = true;
  if (!mended && starts_training(script))
    found.add(job->line, fmt::format("--export={} goes for srun, too", printable(job->value, 60)),
              "the tasks have no PATH and no variable that this script sets",
              "write 'srun --export=ALL', or 'unset SLURM_EXPORT_ENV' above it");
}

// Without --mem and DefMemPerNode a job takes all memory of a node, or one CPU's share.
void look_memory_default(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  for (const std::string_view name : {"mem", "mem-per-cpu", "mem-per-gpu", "exclusive"})
    if (setting(script, name) != nullptr) return;
  found.add(0, "there is no --mem",
            "the site's default counts: a few GB for each CPU, or the whole node",
            "add #SBATCH --mem=0 for all of the node, or --mem-per-gpu=N");
}

// Slurm sets most variables only if the option was given, and SLURM_RESTART_COUNT only after a
// requeue.
void look_unset_variable(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  if (!shell_option(script, 'u', "nounset")) return;
  const auto is_set = [&script](std::string_view name) {
    const auto has = [&script](std::string_view option) {
      return setting(script, option) != nullptr;
    };
    if (script.variables.contains(name)) return true;
    if (name == "SLURM_RESTART_COUNT") return false;
    if (name.starts_with("SLURM_ARRAY_")) return has("array");
    if (name == "SLURM_CPUS_PER_TASK") return has("cpus-per-task");
    if (name == "SLURM_NTASKS_PER_NODE") return has("ntasks-per-node");
    if (name == "SLURM_NTASKS") return has("ntasks") || has("ntasks-per-node");
    if (name == "SLURM_GPUS") return has("gpus");
    if (name == "SLURM_GPUS_PER_NODE") return has("gpus-per-node");
    if (name == "SLURM_MEM_PER_NODE") return has("mem");
    if (name == "SLURM_HET_SIZE") return script.heterogeneous;
    return true;
  };
  std::set<std::string> told;
  for (const ShellCommand& each : script.commands)
    for (const auto* words : {&each.words, &each.assignments})
      for (const std::string& word : *words)
        for (const std::string& name : expanded_variables(word)) {
          if (!name.starts_with("SLURM_") || is_set(name)) continue;
          // set -u accepts "${X:-0}" and "${X+set}".
          const std::size_t braces = word.find("{" + name);
          const std::size_t behind = braces + 1 + name.size();
          if (braces != std::string::npos && behind < word.size() && word[behind] != '}') continue;
          if (told.insert(name).second)
            found.add(each.line,
                      fmt::format("${} may be unset, and 'set -u' ends the script then", name),
                      name == "SLURM_RESTART_COUNT" ? "it is absent in a job's first run"
                                                    : "the option that sets it is not given",
                      fmt::format("write ${{{}:-0}}", name));
        }
}

// Finds placeholders copied from examples. In "deepspeed t.py <normal cl args> --deepspeed" the
// shell reads from a file "normal" and writes to a file "--deepspeed". If the line ends behind ">",
// the shell refuses the script.
void look_placeholder(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  for (const ShellCommand& each : script.commands)
    for (const std::string& output : each.outputs) {
      if (!output.empty() && (output.size() == 1 || output[0] != '-')) continue;
      found.add(
          each.line,
          output.empty()
              ? "a > stands at the end of the line, and the shell stops there"
              : fmt::format("the shell writes to a file named {}", printable(output, 60)),
          "<...> of an example stands for words of yours; the shell takes it for redirections",
          "write your own arguments in its place");
    }
}

// Example scripts of Transformers ignore the last checkpoint with this option, so a requeued job
// starts from step 0.
void look_overwrite_output(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  const Setting* dependency = setting(script, "dependency");
  const Setting* array = setting(script, "array");
  // Two idioms of chains: dependent jobs of one name, and an array with one task at a time.
  const bool chain =
      (dependency != nullptr && dependency->value.find("singleton") != std::string::npos) ||
      (array != nullptr && array->value.ends_with("%1"));
  bool again = requeues(script) || chain;
  for (const ShellCommand& each : script.commands)
    for (const std::string& word : each.words)
      if (is_command(each, "scontrol") && word == "requeue") again = true;
  if (!again) return;
  for (const LaunchLine& each : script.launches)
    if (const auto value = option_of(each.words, {"--overwrite_output_dir"});
        value && *value != "False" && *value != "false")
      found.add(each.line, "--overwrite_output_dir in a job that starts again",
                "the next run ignores the last checkpoint and begins at step 0",
                "leave it out, and give --resume_from_checkpoint");
}

}  // namespace lockstep::slurm
