// A batch script as the checks see it: its settings, its commands with the script's own variables
// put in, and the lines that start a training. Pure.
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
  std::string program;        // the launcher as it is written: "torchrun", "/opt/bin/torchrun"
  bool in_container = false;  // behind apptainer and the like
  bool by_srun = false;
  std::vector<Setting> srun;             // that srun's options
  std::vector<std::string> words;        // behind the launcher's name, marks of expansions kept
  std::vector<std::string> step_words;   // all that srun starts
  std::vector<std::string> environment;  // "A=1" in front of it
  std::string end;                       // as ShellCommand has it
};

struct Variable {
  std::string value;
  int line = 0;
  bool exported = false;
};

struct JobScript {
  std::string name;  // for messages
  SbatchFile file;
  std::vector<ShellCommand> commands;
  std::vector<LaunchLine> launches;
  std::map<std::string, Variable, std::less<>> variables;  // as they are at the end
  bool heterogeneous = false;
};

// `more` are settings from the command line, which count more than those of the script.
JobScript read_job_script(std::string_view name, std::string_view text,
                          const std::vector<Setting>& more = {});
// The same for `lockstep submit SETTINGS -- LAUNCH`: a job without a script.
JobScript job_of_words(std::string_view name, const std::vector<Setting>& settings,
                       std::vector<std::string> launch);

const Setting* setting(const JobScript& script, std::string_view name);
// As far as the settings say it.
std::optional<int> nodes_of(const JobScript& script);
std::optional<int> tasks_per_node(const JobScript& script, const LaunchLine* launch = nullptr);
std::optional<int> gpus_per_node(const JobScript& script);
// "a100" of --gres=gpu:a100:8; empty: any.
std::string gpu_type(const JobScript& script);

// The value of an option among a launcher's words: "--nproc_per_node=8" or "--nproc_per_node 8",
// where '-' and '_' are the same. Empty where nothing is behind it.
std::optional<std::string> option_of(const std::vector<std::string>& words,
                                     std::initializer_list<std::string_view> names);
bool has_option(const std::vector<std::string>& words,
                std::initializer_list<std::string_view> names);
// The number that a text is; nullopt for all else, "$X" for one.
std::optional<int> number_of(std::string_view text);
std::optional<int> number_option(const std::vector<std::string>& words,
                                 std::initializer_list<std::string_view> names);

std::string_view base_name(std::string_view path);

// The program that a launch line starts, and the words behind it: ("train.py", {"--lr", "1"}).
struct Program {
  std::string name;  // empty: not found
  std::vector<std::string> words;
};
Program program_of(const LaunchLine& launch);

}  // namespace lockstep::slurm
