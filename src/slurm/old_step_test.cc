#include "slurm/old_step.h"

#include "base/text.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::slurm {
namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string, std::less<>>;

OldStep read(const Words& words, const Variables& variables = {}, int nodes = 2, int spares = 0,
             const std::string& file = "") {
  return read_old_step(words, {.nodes = nodes,
                               .spares = spares,
                               .variable =
                                   [&](std::string_view name) {
                                     const auto found = variables.find(name);
                                     return found == variables.end() ? std::nullopt
                                                                     : std::optional(found->second);
                                   },
                               .read_file =
                                   [&](const std::string& path) {
                                     return path == "run.sh" ? std::optional(file) : std::nullopt;
                                   }});
}

TEST(OldStepTest, ALauncherIsTheAgents) {
  const OldStep step =
      read({"-l", "--export=ALL,A=b c", "-c", "4", "torchrun", "--nnodes=2", "t.py"});
  EXPECT_EQ(step.kind, StepKind::agents);
  EXPECT_EQ(step.words, (Words{"torchrun", "--nnodes=2", "t.py"}));
  // Lockstep replaces options about the placement of tasks and keeps all others.
  EXPECT_EQ(step.options,
            (Words{"--export=ALL,A=b c", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1",
                   "--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--cpus-per-task=4"}));
  for (const Words& words :
       {Words{"/opt/bin/torchrun", "t.py"}, Words{"accelerate", "launch", "t.py"},
        Words{"deepspeed", "t.py"}, Words{"python", "-m", "torch.distributed.run", "t.py"}})
    EXPECT_EQ(read(words).kind, StepKind::agents) << join(words, " ");
}

TEST(OldStepTest, AContainerOfPyxisIsOurs) {
  for (const Words& command : {Words{"torchrun", "t.py"}, Words{"python", "t.py"}}) {
    Words words = {"-n4", "--container-image=/x.sqsh", "--container-workdir=/d",
                   "--container-mounts=/d:/d"};
    words.insert(words.end(), command.begin(), command.end());
    const OldStep step = read(words);
    EXPECT_EQ(step.kind, command[0] == "python" ? StepKind::tasks : StepKind::agents);
    EXPECT_EQ(step.run,
              (Words{"--container=/x.sqsh", "--container-workdir=/d", "--container-mounts=/d:/d"}));
    for (const std::string& word : step.options)
      EXPECT_EQ(word.find("container"), word.npos) << word;
  }
}

TEST(OldStepTest, AContainerByAVariableOfPyxisIsPyxis) {
  const Words image = {"--container-image=/x.sqsh", "--container-workdir=/d", "torchrun", "t.py"};
  EXPECT_EQ(read({"torchrun", "t.py"}, {{"PYXIS_CONTAINER_IMAGE", "x"}}).why,
            "PYXIS_CONTAINER_IMAGE is set");
  EXPECT_EQ(read(image, {{"PYXIS_CONTAINER_NAME", "x"}}).why, "PYXIS_CONTAINER_NAME is set");
  EXPECT_EQ(read(image, {{"PYXIS_CONTAINER_MOUNTS", "/d"}}).why, "PYXIS_CONTAINER_MOUNTS is set");
  EXPECT_EQ(read(image, {{"PYXIS_CONTAINER_READONLY", "1"}}).why,
            "PYXIS_CONTAINER_READONLY is set");
  // pyxis ignores mounts without an image.
  EXPECT_EQ(read({"torchrun", "t.py"}, {{"PYXIS_CONTAINER_MOUNTS", "/d"}}).why, "");
  // The option wins.
  EXPECT_EQ(read(image, {{"PYXIS_CONTAINER_IMAGE", "x"}}).kind, StepKind::agents);
  EXPECT_EQ(read({"hostname"}, {{"PYXIS_CONTAINER_IMAGE", "x"}}).why, "");
}

TEST(OldStepTest, AShellComesToTheLauncherOnEachNode) {
  for (const Words& words :
       {Words{"bash", "-c", "cd x; torchrun --node_rank $SLURM_PROCID t.py"},
        Words{"env", "A=1", "torchrun", "t.py"}, Words{"bash", "run.sh", "x"}, Words{"run.sh"},
        Words{"bash", "-lc", "python -m torch.distributed.run t.py"}})
    EXPECT_EQ(read(words, {}, 2, 0, "#!/bin/bash\ntorchrun t.py\n").kind, StepKind::inside)
        << join(words, " ");
  const OldStep path = read({"bash", "-c", "/opt/bin/torchrun t.py"});
  EXPECT_EQ(path.kind, StepKind::pass);
  EXPECT_EQ(path.why, "/opt/bin/torchrun is called by its path inside of a shell");
}

TEST(OldStepTest, SeveralTasksOfPythonAreRanks) {
  const Variables job = {{"SLURM_NTASKS", "8"}, {"SLURM_CPUS_PER_TASK", "3"}};
  const OldStep step = read({"python", "-u", "t.py"}, job, 2, 1);
  EXPECT_EQ(step.kind, StepKind::tasks);
  EXPECT_EQ(step.tasks_per_node, 4);
  EXPECT_EQ(step.options, (Words{"--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--no-kill",
                                 "--kill-on-bad-exit=0", "--wait=0", "--cpus-per-task=12"}));
  EXPECT_EQ(read({"bash", "-c", "RANK=$SLURM_PROCID python t.py"}, job).kind, StepKind::tasks);
  // Slurm has filled node after node.
  const Variables uneven = {{"SLURM_NTASKS", "4"}, {"SLURM_TASKS_PER_NODE", "3,1"}};
  EXPECT_EQ(read({"python", "t.py"}, uneven).why,
            "its nodes have 3,1 tasks, and not as many each (--ntasks-per-node)");
  EXPECT_EQ(read({"--ntasks-per-node=2", "python", "t.py"}, uneven).kind, StepKind::tasks);
  EXPECT_EQ(step.cpus_per_task, std::nullopt);
  EXPECT_EQ(read({"-c2", "python", "t.py"}, job).cpus_per_task, 2);
  const OldStep gpus = read({"--ntasks-per-node=2", "--gpus-per-task=a100:2", "python", "t.py"});
  EXPECT_EQ(gpus.gpus_per_task, 2);
  EXPECT_EQ(gpus.options.back(), "--gpus-per-node=4");
  // sbatch sets this variable since 23.11.
  const OldStep tres = read({"python", "t.py"},
                            {{"SLURM_NTASKS", "4"}, {"SLURM_TRES_PER_TASK", "cpu=2,gres/gpu=1"}});
  EXPECT_EQ(tres.gpus_per_task, 1);
  EXPECT_EQ(tres.options.back(), "--gpus-per-node=2");
  const OldStep own = read({"-n4", "--tres-per-task=cpu:3,gres/gpu:a100:1", "python", "t.py"});
  EXPECT_EQ(own.gpus_per_task, 1);
  EXPECT_EQ(own.options[own.options.size() - 2], "--cpus-per-task=6");
  // Slurm 26.05 refuses both.
  EXPECT_EQ(read({"-n4", "--gres=gpu:2", "--gpus-per-task=1", "python", "t.py"}).options.back(),
            "--cpus-per-task=2");
  EXPECT_EQ(read({"python", "t.py"}, {{"SLURM_NTASKS_PER_NODE", "4"}}).tasks_per_node, 4);
  // Without any number srun starts a task per node.
  EXPECT_EQ(read({"python", "t.py"}).tasks_per_node, 1);
}

TEST(OldStepTest, WithoutSrunAnAgentHasTheCpusOfItsNodesTasks) {
  const Variables job = {{"SLURM_NTASKS", "8"}, {"SLURM_CPUS_PER_TASK", "3"}};
  const StepFacts facts{.nodes = 2,
                        .spares = 1,
                        .variable =
                            [&](std::string_view name) {
                              const auto found = job.find(name);
                              return found == job.end() ? std::nullopt
                                                        : std::optional(found->second);
                            },
                        .read_file = {}};
  const Words rest = {"--ntasks-per-node=1", "--no-kill", "--kill-on-bad-exit=0", "--wait=0",
                      "--cpus-per-task=12"};
  Words all = {"--nodes=3", "--ntasks=3"};
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(agent_step_options(facts), all);
  Words one = {"--nodes=1", "--ntasks=1"};
  one.insert(one.end(), rest.begin(), rest.end());
  EXPECT_EQ(agent_step_options(facts, true), one);
}

TEST(OldStepTest, TheRestIsSruns) {
  for (const Words& words :
       {Words{"hostname"}, Words{"-n1", "python", "t.py"}, Words{"python", "-c", "print(1)"},
        Words{}, Words{"--no-such-option=x", "--bad"}, Words{"-N"},
        Words{"lockstep", "run", "t.py"}, Words{"bash", "-c", "nvidia-smi"}}) {
    EXPECT_EQ(read(words).kind, StepKind::pass) << join(words, " ");
    EXPECT_EQ(read(words).why, "") << join(words, " ");
  }
  const Variables by_gpu = {{"SLURM_NTASKS", "4"}, {"SLURM_NTASKS_PER_GPU", "1"}};
  EXPECT_EQ(read({"torchrun", "t.py"}, by_gpu).why, "the job has --ntasks-per-gpu");
  const Variables bound = {{"SLURM_NTASKS", "4"}, {"SLURM_TRES_BIND", "gres/gpu:single:1"}};
  EXPECT_EQ(read({"python", "t.py"}, bound).why, "the job has --gpu-bind");
  const Variables by_task = {{"SLURM_NTASKS", "4"}, {"SLURM_TRES_BIND", "gres/gpu:per_task:1"}};
  EXPECT_EQ(read({"python", "t.py"}, by_task).kind, StepKind::tasks);
  for (const auto& [words, why] : std::vector<std::pair<Words, std::string>>{
           {{"-N1", "-n4", "python", "t.py"}, "it takes 1 of the job's 2 nodes"},
           {{"-n3", "python", "t.py"}, "3 tasks do not divide by 2 nodes"},
           {{"-w", "n1", "torchrun", "t.py"}, "srun --nodelist is given"},
           {{"--mpi=pmix", "python", "t.py"}, "srun --mpi=pmix is given"},
           {{"-m", "cyclic", "python", "t.py"}, "srun --distribution=cyclic is given"},
           {{"--container-name=x", "torchrun", "t.py"}, "srun --container-name is given"},
           {{"--container-image=x", "--container-workdir=/", "bash", "-c", "torchrun t.py"},
            "srun --container-image starts a shell in the image"},
           {{"--container-image=x", "--container-workdir=/", "accelerate", "launch", "t.py"},
            "srun --container-image starts accelerate, which only the image has"},
           {{"apptainer", "exec", "i.sif", "torchrun", "t.py"}, "it starts a container"}}) {
    EXPECT_EQ(read(words).kind, StepKind::pass) << join(words, " ");
    EXPECT_EQ(read(words).why, why) << join(words, " ");
  }
}

}  // namespace
}  // namespace lockstep::slurm
