// The environment of a user's own script in a submitted job, and of the tasks that the script
// starts: what Slurm would have set without spares and without agents. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

using Variables = std::map<std::string, std::string, std::less<>>;

// Convert "NAME=value" entries. The first entry of a name counts.
Variables variables_of(const std::vector<std::string>& environment);
std::vector<std::string> environment_of(const Variables& variables);

// Reduces Slurm's counts and node lists in the script's environment by the spares, which are the
// last nodes. nodes: all nodes of the allocation.
void hide_spares(const std::vector<std::string>& nodes, int spares, Variables& variables);
// Puts the stand-ins first in PATH and tells them the job's folder.
void show_stand_ins(std::string_view folder, std::string_view subfolder, Variables& variables);
// Removes all traces of the stand-ins, for programs started by them. Counts changed by
// hide_spares() stay changed.
void hide_stand_ins(Variables& variables);

// Removes the job's counts per task from the environment of the agents' srun. Otherwise srun would
// give each agent only a task's part of the node, or warn that the step asks for more. Removes also
// the variables by which pyxis would start the agents in an image.
void prepare_agents_step(Variables& variables);

// Saves variables that agents will set for ranks and srun for tasks under other names...
void keep_for_tasks(int gpus_per_task, Variables& variables);
// ...and restores them in a rank, with srun's variables as a step of that many tasks has them. pid:
// the rank's own.
void become_task(std::string_view pid, Variables& variables);

}  // namespace lockstep::slurm
