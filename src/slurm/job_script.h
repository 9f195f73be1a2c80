// A batch script as the checks see it: settings, commands with the script's own variables replaced,
// and lines that start a training. Pure.
#pragma once

#include "slurm/sbatch_file.h"
#include "slurm/shell_words.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

enum class Launcher : std::uint8_t { python, torchrun, accelerate, deepspeed, lockstep };

struct LaunchLine {
  int line = 0;
  Launcher launcher = Launcher::python;
  std::string program;        // the launcher as written: "torchrun", "/opt/bin/torchrun"
  bool in_container = false;  // inside apptainer or the like
  bool by_srun = false;
  std::vector<Setting> srun;             // options of that srun
  std::vector<std::string> words;        // behind the launcher's name; marks of expansions kept
  std::vector<std::string> step_words;   // everything behind srun's options
  std::vector<std::string> environment;  // assignments in front: "A=1"
  std::string end;                       // see ShellCommand::end
};

struct Variable {
  std::string value;
  int line = 0;
  bool exported = false;
};

struct JobScript {
  std::string name;  // file name for messages
  SbatchFile file;
  std::vector<ShellCommand> commands;
  std::vector<LaunchLine> launches;
  std::map<std::string, Variable, std::less<>> variables;  // values at the script's end
  // The settings have components ("#SBATCH hetjob").
  bool heterogeneous = false;
};

// Reads a script. more: settings of the command line, which override the script's.
JobScript read_job_script(std::string_view name, std::string_view text,
                          const std::vector<Setting>& more = {});
// Reads a job without a script: `lockstep submit SETTINGS -- LAUNCH`.
JobScript job_of_words(std::string_view name, const std::vector<Setting>& settings,
                       std::vector<std::string> launch);

// Returns the setting that counts, or nullptr. The pointer lives as long as `script`.
const Setting* setting(const JobScript& script, std::string_view name);
// The job's size. Each returns nullopt if the settings do not determine the number. launch: counts
// options of that line's srun before those of the job.
std::optional<int> nodes_of(const JobScript& script);
std::optional<int> tasks_per_node(const JobScript& script, const LaunchLine* launch = nullptr);
std::optional<int> gpus_per_node(const JobScript& script);
// Returns the type: "a100" for --gres=gpu:a100:8; empty: any type.
std::string gpu_type(const JobScript& script);

// Returns the value of an option among a launcher's words: "--nproc_per_node=8" or
// "--nproc_per_node 8". Treats '-' and '_' in names alike. The last occurrence counts. Empty if no
// word follows; nullopt: not given.
std::optional<std::string> option_of(const std::vector<std::string>& words,
                                     std::initializer_list<std::string_view> names);
bool has_option(const std::vector<std::string>& words,
                std::initializer_list<std::string_view> names);
// Returns the number that a text is, from 0 on; nullopt for anything else, such as "$X".
std::optional<int> number_of(std::string_view text);
std::optional<int> number_option(const std::vector<std::string>& words,
                                 std::initializer_list<std::string_view> names);

// Returns what stands behind the last '/'.
std::string_view base_name(std::string_view path);

// The program that a launch line starts, and its arguments: ("train.py", {"--lr", "1"}).
struct Program {
  std::string name;  // empty: not found
  std::vector<std::string> words;
};
Program program_of(const LaunchLine& launch);

}  // namespace lockstep::slurm
