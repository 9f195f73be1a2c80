// Converts a training command, written for any launcher, to words for `lockstep run`. Pure.
#pragma once

#include "base/error.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launchers {

enum class Launcher {
  none,        // a script, started by lockstep run itself
  python,      // python train.py
  torchrun,    // also python -m torch.distributed.run and torch.distributed.launch
  deepspeed,   // also python -m deepspeed.launcher.runner
  accelerate,  // accelerate launch; only the installed accelerate knows its options
};

// What the words say about the job's nodes.
struct LaunchNodes {
  std::optional<std::string> count = {};  // "2", "1:4"
  std::optional<std::string> hostfile = {};
  std::optional<std::string> include = {};
  std::optional<std::string> exclude = {};
};

struct Launch {
  Launcher launcher = Launcher::none;
  // Words for `lockstep run`: options, "--", the script and its arguments. For accelerate: the
  // unread words behind `accelerate launch`.
  std::vector<std::string> run = {};
  LaunchNodes nodes = {};
  std::vector<std::string> env = {};    // additional "NAME=value" for the workers
  std::vector<std::string> notes = {};  // for people: what was dropped or changed, and why
};

struct ReadOptions {
  // A scheduler places the nodes. Words about nodes and their rendezvous are dropped with a note,
  // but still recorded in Launch::nodes.
  bool placed_by_scheduler = false;
  // DeepSpeed's hostfile if the words name none; nullopt: no such file.
  std::optional<std::string> default_hostfile = {};
};

// Returns the launcher that the first words name.
Launcher launcher_of(std::span<const std::string> words);

// Reads a training command. Errors: invalid_input names the launcher and the word.
Result<Launch> read_launch(std::span<const std::string> words, const ReadOptions& options);

}  // namespace lockstep::launchers
