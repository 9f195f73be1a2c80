// The environment of a user's own script in a job of Lockstep's, and of the tasks that it starts:
// what Slurm would have said without spares, and without agents. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

using Variables = std::map<std::string, std::string, std::less<>>;

Variables variables_of(const std::vector<std::string>& environment);
std::vector<std::string> environment_of(const Variables& variables);

// For the script: Slurm's numbers without the spares, which come last. `nodes`: of the allocation.
void hide_spares(const std::vector<std::string>& nodes, int spares, Variables& variables);
// For the stand-ins: where they are, and of which job.
void show_stand_ins(std::string_view folder, std::string_view subfolder, Variables& variables);
// For all that the stand-ins start: nothing of theirs is left. What hide_spares() has hidden stays
// hidden.
void hide_stand_ins(Variables& variables);

// For srun, which starts one agent on every node: what the job counts by task. srun would give the
// agent a task's part of the node, or warn that the options of the agents' step ask for more.
void drop_counts_of_tasks(Variables& variables);

// What agents set for ranks, and srun for tasks, is kept under other names while agents run...
void keep_for_tasks(int gpus_per_task, Variables& variables);
// ...and put back in a rank, with srun's variables as they were for that many tasks.
void become_task(std::string_view pid, Variables& variables);

}  // namespace lockstep::slurm
