// The words of a training command, as they were written for whichever launcher, as words for
// `lockstep run`. Pure.
#pragma once

#include "base/error.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

enum class Launcher {
  none,        // a script, for lockstep run itself
  python,      // python train.py
  torchrun,    // also python -m torch.distributed.run and torch.distributed.launch
  deepspeed,   // also python -m deepspeed.launcher.runner
  accelerate,  // accelerate launch; what it means only the accelerate that is installed knows
};

// What the words said of the job's nodes.
struct LaunchNodes {
  std::optional<std::string> count = {};  // "2", "1:4"
  std::optional<std::string> hostfile = {};
  std::optional<std::string> include = {};
  std::optional<std::string> exclude = {};
};

struct Launch {
  Launcher launcher = Launcher::none;
  // For `lockstep run`: options, "--", the script and its arguments. Of accelerate: the words
  // behind `accelerate launch`, unread.
  std::vector<std::string> run = {};
  LaunchNodes nodes = {};
  std::vector<std::string> env = {};    // "NAME=value" more for the workers
  std::vector<std::string> notes = {};  // for people: what was dropped or changed, and why
};

struct ReadOptions {
  // A scheduler places the nodes: words that say which nodes there are and how they meet are
  // dropped, with a note. What they say of nodes is in Launch::nodes all the same.
  bool placed_by_scheduler = false;
  // Of deepspeed where its words name none, if there is such a file.
  std::optional<std::string> default_hostfile = {};
};

// Which launcher the first words name.
Launcher launcher_of(std::span<const std::string> words);

// Errors name the launcher and the word.
Result<Launch> read_launch(std::span<const std::string> words, const ReadOptions& options);

}  // namespace lockstep::launchers
