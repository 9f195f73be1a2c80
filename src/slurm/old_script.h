// Converts a user's own batch script, submitted with `lockstep submit FILE`. The script runs as
// written, but Lockstep launches its trainings. Pure.
// The job's script is the user's, with a few lines added between the #SBATCH lines and the first
// command. Those lines turn the batch process into `lockstep slurm-batch`, which runs the same
// script again as its child. In the child, PATH begins with a folder of stand-ins for srun,
// torchrun and other launchers.
#pragma once

#include "slurm/carry.h"
#include "slurm/job_plan.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Returns whether a file is a batch script and not a training command: text that begins with "#!"
// of a shell, or has #SBATCH lines. Python files are not batch scripts. text: at least the first
// bytes.
bool is_batch_script(std::string_view name, std::string_view text);

struct OldScriptFacts {
  std::string version;    // of Lockstep
  std::string binary;     // absolute path that the batch step runs
  std::string folder;     // of the job; absolute, seen by all nodes
  bool has_rows = false;  // an array: each task has a folder of its own in the job's
  std::string command;    // the user's command line, for a comment
};
// Returns the text for sbatch: the user's, byte for byte, plus the added lines. Settings of the
// plan become #SBATCH lines unless they come from the script. Errors: invalid_input if the
// interpreter is not a shell like sh.
Result<std::string> old_script_text(const JobPlan& plan, std::string_view text,
                                    const OldScriptFacts& facts);

// A file to write in the job's folder.
struct FolderFile {
  std::string name;  // "bin/srun"
  std::string text;
};
// Returns the stand-ins, which all call `lockstep slurm-launch`, and the shell file that keeps them
// first in PATH.
std::vector<FolderFile> stand_in_files(std::string_view binary);

// Settings that the stand-ins read; the file launch.json of the job's folder.
struct LaunchSettings {
  int spares = 0;                     // nodes added for failures; they wait
  int min_nodes = 0;                  // fewest nodes that may train; 0: all
  Carry carry = Carry::no;            // how each launch brings the binary to its nodes
  std::vector<std::string> run = {};  // options for `lockstep run`

  bool operator==(const LaunchSettings&) const = default;
};
std::string settings_text(const LaunchSettings& settings);
Result<LaunchSettings> settings_from_text(std::string_view text);

}  // namespace lockstep::slurm
