// What a script's call of srun becomes: a launch by Lockstep's agents, or srun's own. Pure.
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
  pass,    // left to srun, word by word
  agents,  // srun would start a launcher on every node: the agents do what it would
  inside,  // a shell on every node comes to the launcher: it runs there, and the agent begins there
  tasks,   // srun would start the ranks: the agents start them, with srun's environment
};

struct StepFacts {
  int nodes = 1;   // of the job that train
  int spares = 0;  // more nodes that wait
  std::function<std::optional<std::string>(std::string_view)> variable;
  // Of a plain file, 1 MiB at most.
  std::function<std::optional<std::string>(const std::string&)> read_file;
};

struct OldStep {
  StepKind kind = StepKind::pass;
  // For people. pass: why a training is left to srun; empty: it is none.
  std::string why = {};
  std::vector<std::string> options = {};  // of srun, for a step of one agent on every node
  std::vector<std::string> words = {};    // what is started
  int tasks_per_node = 1;
  int gpus_per_task = 0;                  // 0: a task sees all of its node
  std::optional<int> cpus_per_task = {};  // nullopt: the step counts CPUs as the job does
};

// words: behind "srun".
OldStep read_old_step(std::span<const std::string> words, const StepFacts& facts);

// The options for a step of agents where the script has called no srun. alone: on one node, without
// spares.
std::vector<std::string> agent_step_options(const StepFacts& facts, bool alone = false);

}  // namespace lockstep::slurm
