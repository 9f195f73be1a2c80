// A batch script of the user's own, handed in with `lockstep submit FILE`: it runs as it was
// written, and what it launches for training is launched by Lockstep. Pure.
//
// The job's script is the user's, with a few lines between his #SBATCH lines and his first command:
// they make `lockstep slurm-batch` of the batch process, which runs the same script again as its
// child. There PATH begins with a folder of stand-ins for srun, torchrun and other launchers.
#pragma once

#include "slurm/carry.h"
#include "slurm/job_plan.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Whether a file is a batch script and no training command: text that begins with "#!" of a shell,
// or has #SBATCH lines; Python's files are none. text: its first bytes at least.
bool is_batch_script(std::string_view name, std::string_view text);

struct OldScriptFacts {
  std::string version;  // of Lockstep
  std::string binary;   // absolute; what the batch step runs
  std::string folder;   // of the job, absolute, seen by all nodes
  std::string command;  // what the user asked for, for people
};
// The text that sbatch is given: byte for byte the user's, but for the lines that are added. Only
// settings of the plan that are not the script's own become #SBATCH lines. invalid_input: it is for
// another interpreter than a shell like sh.
Result<std::string> old_script_text(const JobPlan& plan, std::string_view text,
                                    const OldScriptFacts& facts);

// A file of the job's folder.
struct FolderFile {
  std::string name;  // "bin/srun"
  std::string text;
};
// The stand-ins, all of which call `lockstep slurm-launch`, and what keeps them first in PATH.
std::vector<FolderFile> stand_in_files(std::string_view binary);

// What the stand-ins of a job need to know; the file "launch.json" of its folder.
struct LaunchSettings {
  int spares = 0;                     // nodes on top of those that train
  int min_nodes = 0;                  // 0: all must be there
  Carry carry = Carry::no;            // whether sbcast brings the binary to each launch
  std::vector<std::string> run = {};  // options for `lockstep run`

  bool operator==(const LaunchSettings&) const = default;
};
std::string settings_text(const LaunchSettings& settings);
Result<LaunchSettings> settings_from_text(std::string_view text);

}  // namespace lockstep::slurm
