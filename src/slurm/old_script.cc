#include "slurm/old_script.h"

#include "base/text.h"
#include "base/word_list.h"
#include "codec/json_members.h"
#include "slurm/batch_script.h"
#include "slurm/job_script.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace lockstep::slurm {
namespace {

// Returns the interpreter: "bash" for "/bin/bash -l" and "/usr/bin/env bash".
std::string_view interpreter(std::string_view shebang) {
  const auto first_word = [](std::string_view text) {
    return text.substr(0, text.find_first_of(" \t"));
  };
  std::string_view program = base_name(first_word(shebang));
  if (program != "env") return program;
  const std::string_view behind = shebang.substr(first_word(shebang).size());
  return base_name(first_word(strip(behind)));
}

// Returns whether the interpreter is a shell that understands the added lines.
bool is_like_sh(std::string_view shebang) {
  return is_one_of(interpreter(shebang),
                   {"sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash"});
}

std::string comment(std::string_view text) {
  return "# " + printable(text, 1000) + "\n";
}

// Returns the added lines. On the first pass they exec slurm-batch, which runs the script again as
// its child with LOCKSTEP_SLURM_FOLDER set. On the second pass they load the shell file and go on.
std::string added_lines(const JobPlan& plan, const OldScriptFacts& facts) {
  std::string text;
  for (const Setting& setting : plan.settings)
    if (setting.line == 0) text += "#SBATCH " + directive_quote(word_of(setting)) + "\n";
  std::string folder = shell_quote(facts.folder);
  if (facts.has_rows) folder += "/rows/\"$SLURM_ARRAY_TASK_ID\"";
  text += comment(fmt::format("Added by lockstep {} for: {}", facts.version, facts.command));
  text += "# Lockstep watches the script below and starts its trainings.\n";
  if (plan.chain) text += comment(chain_words(*plan.chain));
  text += fmt::format(
      "[ \"${{LOCKSTEP_SLURM_FOLDER-}}\" = {0} ] ||\n"
      "  exec {1} slurm-batch --folder {0}{2} --script -- \"$0\" \"$@\"\n"
      ". {3}\n\n",
      folder, shell_quote(facts.binary), rerun_words(plan), shell_quote(facts.folder + "/shell"));
  return text;
}

// Keeps the stand-ins first in PATH. 'module load' and 'conda activate' put other folders in front,
// so bash and zsh check before every command (DEBUG trap). Other shells have no such trap and get
// functions instead.
constexpr std::string_view kShell =
    R"(# Read by the job's script, and by every bash that it starts: PATH begins with the folder of
# Lockstep's srun and torchrun, also behind 'module load' and 'conda activate'.
if [ -z "${lockstep_shell-}" ]; then
  lockstep_shell=1
  if [ -n "${LOCKSTEP_BASH_ENV-}" ]; then . "$LOCKSTEP_BASH_ENV"; fi
  lockstep_path() {
    case $PATH in "$LOCKSTEP_SLURM_BIN":*) ;; *) PATH=$LOCKSTEP_SLURM_BIN:$PATH ;; esac
  }
  lockstep_path
  if [ -n "${BASH_VERSION-}${ZSH_VERSION-}" ]; then
    # Also in functions and subshells.
    if [ -n "${BASH_VERSION-}" ]; then set -T; fi
    trap '{ lockstep_path "$_"; } 2>/dev/null' DEBUG
  else
    torchrun() { "$LOCKSTEP_SLURM_BIN/torchrun" "$@"; }
    accelerate() { "$LOCKSTEP_SLURM_BIN/accelerate" "$@"; }
    deepspeed() { "$LOCKSTEP_SLURM_BIN/deepspeed" "$@"; }
  fi
fi
)";

std::string stand_in(std::string_view binary, std::string_view name) {
  return fmt::format("#!/bin/sh\nexec {} slurm-launch {} \"$@\"\n", shell_quote(binary), name);
}

}  // namespace

bool is_batch_script(std::string_view name, std::string_view text) {
  if (name.ends_with(".py") || text.find('\0') != std::string_view::npos) return false;
  const std::string_view first = text.substr(0, text.find('\n'));
  // A Python file with #SBATCH lines is meant for sbatch.
  if (first.starts_with("#!") && first.find("python") != std::string_view::npos)
    return text.find("\n#SBATCH") != std::string_view::npos;
  const bool shell =
      first.starts_with("#!") &&
      (is_like_sh(strip(first.substr(2))) || interpreter(strip(first.substr(2))).ends_with("sh"));
  return shell || text.starts_with("#SBATCH") || text.find("\n#SBATCH") != std::string_view::npos;
}

Result<std::string> old_script_text(const JobPlan& plan, std::string_view text,
                                    const OldScriptFacts& facts) {
  const SbatchFile file = read_sbatch_file(text);
  if (!is_like_sh(file.shebang))
    return fail(Errc::invalid_input,
                fmt::format("the script begins with '#!{}', which is not a shell like sh or bash",
                            printable(file.shebang, 80)),
                "submit its training command: lockstep submit OPTIONS -- train.py ARGS");
  // The lines go in front of the first command. sbatch would ignore #SBATCH lines below it.
  const int first = file.body.empty() ? std::numeric_limits<int>::max() : file.body.front().line;
  std::size_t at = 0;
  for (int line = 1; line < first && at < text.size(); ++line) {
    const std::size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  std::string made(text.substr(0, at));
  if (!made.ends_with('\n')) made += '\n';
  return made + added_lines(plan, facts) + std::string(text.substr(at));
}

std::vector<FolderFile> stand_in_files(std::string_view binary) {
  std::vector<FolderFile> files = {{"shell", std::string(kShell)}};
  for (const char* name : {"srun", "torchrun", "accelerate", "accelerate-launch", "deepspeed"})
    files.push_back({fmt::format("bin/{}", name), stand_in(binary, name)});
  // In a task, `python -m torch.distributed.run` may start the ranks, so Python has a stand-in,
  // too.
  for (const char* name :
       {"torchrun", "accelerate", "accelerate-launch", "deepspeed", "python", "python3"})
    files.push_back({fmt::format("task-bin/{}", name), stand_in(binary, name)});
  return files;
}

std::string settings_text(const LaunchSettings& settings) {
  return codec::print_json(nlohmann::ordered_json{{"spares", settings.spares},
                                                  {"min_nodes", settings.min_nodes},
                                                  {"carry", static_cast<int>(settings.carry)},
                                                  {"run", settings.run}}) +
         "\n";
}

Result<LaunchSettings> settings_from_text(std::string_view text) {
  constexpr std::int64_t kMostCounted = 1 << 20;
  const nlohmann::json json = codec::parse_json(text);
  if (!json.is_object()) return fail(Errc::corrupt, "the job's launch.json is damaged");
  const auto number = [&](const char* name) {
    return static_cast<int>(
        std::clamp<std::int64_t>(codec::integer_member(json, name), 0, kMostCounted));
  };
  LaunchSettings settings{.spares = number("spares"),
                          .min_nodes = number("min_nodes"),
                          .carry = static_cast<Carry>(std::min(number("carry"), 2))};
  settings.run = codec::texts_member(json, "run");
  return settings;
}

}  // namespace lockstep::slurm
