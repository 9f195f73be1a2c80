// Decides what a script's srun call becomes: a launch by Lockstep's agents, or the original srun.
// Pure.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

enum class StepKind : std::uint8_t {
  pass,    // srun as written
  agents,  // srun would start a launcher per node: agents replace the launchers
  inside,  // a shell per node runs first; the agent starts where the shell calls the launcher
  tasks,   // srun would start the ranks: agents start them with srun's environment
};

struct StepFacts {
  int nodes = 1;   // nodes of the job that train
  int spares = 0;  // spare nodes
  std::function<std::optional<std::string>(std::string_view)> variable;
  // Returns the text of a plain file of at most 1 MiB.
  std::function<std::optional<std::string>(const std::string&)> read_file;
};

struct OldStep {
  StepKind kind = StepKind::pass;
  // For people. pass: why srun keeps a training; empty: the step starts no training.
  std::string why = {};
  std::vector<std::string> options = {};  // srun's options for a step of one agent per node
  std::vector<std::string> words = {};    // the command of the step
  std::vector<std::string> run = {};      // options of `lockstep run` for the step's container
  int tasks_per_node = 1;
  int gpus_per_task = 0;                  // 0: a task sees all GPUs of its node
  std::optional<int> cpus_per_task = {};  // nullopt: as the job counts
};

// Reads an srun call. words: those behind "srun".
OldStep read_old_step(std::span<const std::string> words, const StepFacts& facts);

// Returns srun's options for a step of agents where the script itself called no srun. alone: one
// node, no spares.
std::vector<std::string> agent_step_options(const StepFacts& facts, bool alone = false);

}  // namespace lockstep::slurm
