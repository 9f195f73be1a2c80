#include "slurm/old_environment.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

TEST(OldEnvironmentTest, SparesAreHidden) {
  Variables variables = {{"SLURM_JOB_NODELIST", "n[1-3]"},
                         {"SLURM_NNODES", "3"},
                         {"SLURM_JOB_NUM_NODES", "3"},
                         {"SLURM_NTASKS", "12"},
                         {"SLURM_GPUS", "a100:24"},
                         {"SLURM_TASKS_PER_NODE", "4(x3)"},
                         {"SLURM_JOB_CPUS_PER_NODE", "8(x2),6"},
                         {"HOME", "/h"}};
  hide_spares({"n1", "n2", "n3"}, 1, variables);
  EXPECT_EQ(variables, (Variables{{"SLURM_JOB_NODELIST", "n1,n2"},
                                  {"SLURM_NNODES", "2"},
                                  {"SLURM_JOB_NUM_NODES", "2"},
                                  {"SLURM_NTASKS", "8"},
                                  {"SLURM_GPUS", "a100:16"},
                                  {"SLURM_TASKS_PER_NODE", "4(x2)"},
                                  {"SLURM_JOB_CPUS_PER_NODE", "8(x2)"},
                                  {"LOCKSTEP_SLURM_NODELIST", "n1,n2,n3"},
                                  {"HOME", "/h"}}));
  Variables odd = {{"SLURM_TASKS_PER_NODE", "4(x9999999999)"}, {"SLURM_NTASKS", "7"}};
  hide_spares({"n1", "n2"}, 1, odd);
  EXPECT_EQ(odd["SLURM_TASKS_PER_NODE"], "4(x9999999999)");
  EXPECT_EQ(odd["SLURM_NTASKS"], "7");
}

TEST(OldEnvironmentTest, StandInsComeAndGo) {
  for (const Variables& before :
       {Variables{{"PATH", "/usr/bin:/bin"}, {"SLURM_JOB_ID", "7"}, {"BASH_ENV", "/lmod/init"}},
        Variables{{"PATH", "/bin"}, {"SLURM_JOB_ID", "7"}}}) {
    Variables variables = before;
    show_stand_ins("/f", "bin", variables);
    EXPECT_EQ(variables["PATH"], "/f/bin:" + before.at("PATH"));
    EXPECT_EQ(variables["BASH_ENV"], "/f/shell");
    EXPECT_EQ(variables["LOCKSTEP_SLURM_JOB"], "7");
    // A module may put a folder in front, and the shell then puts the stand-ins there again.
    variables["PATH"] = "/f/bin:" + variables["PATH"];
    hide_stand_ins(variables);
    EXPECT_EQ(variables, before);
  }
}

TEST(OldEnvironmentTest, ARankHasTheEnvironmentOfATask) {
  Variables variables = {{"MASTER_PORT", "29500"},
                         {"SLURM_CPUS_PER_TASK", "3"},
                         {"SLURM_GPUS_PER_TASK", "2"},
                         {"CUDA_VISIBLE_DEVICES", "0,1,2,3"},
                         {"SLURM_NTASKS_PER_NODE", "2"},
                         {"PYXIS_CONTAINER_IMAGE", "x"},
                         {"OTHER", "x"},
                         {"SLURM_TRES_PER_TASK", "cpu=3,gres/gpu=2"},
                         {"SLURM_TRES_BIND", "gres/gpu:per_task:2"}};
  keep_for_tasks(2, variables);
  // These counts would apply to the agent's srun.
  for (const char* name : {"SLURM_CPUS_PER_TASK", "SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK",
                           "SLURM_TRES_BIND", "PYXIS_CONTAINER_IMAGE"})
    EXPECT_FALSE(variables.contains(name)) << name;
  // Changes made by srun and the agent.
  for (const auto& [name, value] : {std::pair{"RANK", "3"},
                                    {"LOCAL_RANK", "1"},
                                    {"GROUP_RANK", "1"},
                                    {"WORLD_SIZE", "4"},
                                    {"LOCAL_WORLD_SIZE", "2"},
                                    {"GROUP_WORLD_SIZE", "2"},
                                    {"MASTER_ADDR", "n1"},
                                    {"MASTER_PORT", "1"},
                                    {"TORCHELASTIC_RUN_ID", "r"},
                                    {"SLURM_CPUS_PER_TASK", "6"},
                                    {"SLURM_PROCID", "1"}})
    variables[name] = value;
  become_task("77", variables);
  EXPECT_EQ(variables, (Variables{{"MASTER_PORT", "29500"},
                                  {"SLURM_CPUS_PER_TASK", "3"},
                                  {"SLURM_GPUS_PER_TASK", "2"},
                                  {"SLURM_TRES_PER_TASK", "cpu=3,gres/gpu=2"},
                                  {"SLURM_TRES_BIND", "gres/gpu:per_task:2"},
                                  {"CUDA_VISIBLE_DEVICES", "2,3"},
                                  {"SLURM_NTASKS_PER_NODE", "2"},
                                  {"OTHER", "x"},
                                  {"SLURM_PROCID", "3"},
                                  {"SLURM_LOCALID", "1"},
                                  {"SLURM_NODEID", "1"},
                                  {"SLURM_TASK_PID", "77"},
                                  {"SLURM_NTASKS", "4"},
                                  {"SLURM_NPROCS", "4"},
                                  {"SLURM_STEP_NUM_TASKS", "4"},
                                  {"SLURM_NNODES", "2"},
                                  {"SLURM_STEP_NUM_NODES", "2"},
                                  {"SLURM_TASKS_PER_NODE", "2(x2)"},
                                  {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                  {"SLURM_GTIDS", "2,3"}}));
}

}  // namespace
}  // namespace lockstep::slurm
