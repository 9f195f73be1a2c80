#include "slurm/lints.h"

#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::slurm {
namespace {

// Correct settings, for scripts that show one mistake.
constexpr const char* kHead =
    "#!/bin/bash\n#SBATCH --time=1:00:00 --mem=0 --nodes=2 --gpus-per-node=4 --exclusive\n";

struct Row {
  const char* lint;
  std::string script;
  int line;
  const char* what;  // a part of the message
  std::map<std::string, std::string> files = {};
  CheckFacts facts = {};
};

CheckFacts facts_of(const Row& row) {
  CheckFacts facts = row.facts;
  facts.home = "/home/u";
  facts.read_file = [files = row.files](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
  const auto is_below = [files = row.files](const std::string& folder) {
    return std::any_of(files.begin(), files.end(),
                       [&](const auto& each) { return each.first.starts_with(folder + "/"); });
  };
  facts.is_folder = is_below;
  facts.is_file = [](const std::string& path) { return path.find("gone") == std::string::npos; };
  facts.list_folder = [files = row.files](const std::string& folder) {
    std::set<std::string> names;
    for (const auto& [path, text] : files)
      if (path.starts_with(folder + "/"))
        names.insert(
            path.substr(folder.size() + 1, path.find('/', folder.size() + 1) - folder.size() - 1));
    return std::vector<std::string>(names.begin(), names.end());
  };
  return facts;
}

std::vector<Finding> check(const Row& row) {
  return check_job(read_job_script("job.sh", row.script), facts_of(row));
}

std::string head(std::string_view body) {
  return kHead + std::string(body);
}

// A bad script for each row of the table, and one more for each variant of a lint.
std::vector<Row> bad_scripts() {
  const std::string c10d =
      "srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=$H:29400 ";
  std::vector<Row> rows = {
      {"refused", "#SBATCH --time=1 --mem=0\nsrun hostname\n", 1, "the first line is not '#!'"},
      {"refused", head("#SBATCH --patition gpu\nsleep 1\n"), 3, "sbatch has no option --patition"},
      {"refused", head("#SBATCH --nod=3\nsleep 1\n"), 3, "--nod may stand for"},
      {"build-variables",
       head("TORCH_CUDA_ARCH_LIST=\"8.6\" DS_BUILD_CPU_ADAM=1\npython setup.py bdist_wheel\n"), 3,
       "TORCH_CUDA_ARCH_LIST, DS_BUILD_CPU_ADAM are set for this shell alone"},
      {"build-variables", head("DS_BUILD_AIO=1\ncd DeepSpeed\npip install .\n"), 3,
       "the build in line 5 does not see it"},
      {"rank-too-early",
       head("srun accelerate launch --num_machines 2 --machine_rank $SLURM_PROCID t.py\n"), 3,
       "$SLURM_PROCID is expanded here"},
      {"rank-too-early",
       head("LAUNCHER=\"accelerate launch --num_machines 2 --machine_rank $SLURM_NODEID\"\nsrun "
            "bash -c \"$LAUNCHER t.py\"\n"),
       4, "$SLURM_NODEID is expanded here"},
      {"rank-too-early",
       head("export RANK=$SLURM_PROCID\nsrun -K1 --ntasks-per-node=4 python t.py\n"), 3,
       "RANK=$SLURM_PROCID is exported by the script"},
      {"rank-too-early", head(c10d + "--local_addr=$(hostname) t.py\n"), 3,
       "$(hostname) behind --local_addr"},
      {"ignored-directive", head("module load cuda\n#SBATCH --qos=high\nsrun hostname\n"), 4,
       "sbatch stops reading at the first command (line 3)"},
      {"ignored-directive", head("##SBATCH --partition=gpu\nsrun hostname\n"), 3,
       "with two hashes it is a comment"},
      {"ignored-directive", head(" #SBATCH --partition=gpu\nsrun hostname\n"), 3,
       "at the beginning of the line"},
      {"tasks-and-launcher", head("#SBATCH --ntasks-per-node=4\n" + c10d + "t.py\n"), 4,
       "4 tasks on a node run 'torchrun'"},
      {"tasks-and-launcher",
       head("srun -n 8 accelerate launch --num_processes=8 --machine_rank 0 t.py\n"), 3,
       "'accelerate launch'"},
      {"gpu-count",
       head("srun torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d "
            "--rdzv_endpoint=$H:29400 t.py\n"),
       3, "8 ranks on a node that has 4 GPUs"},
      {"gpu-count",
       head("N=1\nsrun torchrun --nnodes=2 --nproc-per-node $((N * 2)) --rdzv_backend=c10d "
            "--rdzv_endpoint=$H:29400 t.py\n"),
       4, "2 ranks on a node that has 4 GPUs"},
      {"fixed-port", "#!/bin/bash\n#SBATCH --time=1 --mem=8G -N2 --gres=gpu:4\n" + c10d + "t.py\n",
       3, "--rdzv_endpoint is always 29400"},
      {"fixed-port",
       "#!/bin/bash\n#SBATCH --time=1 --mem=8G -N2\nexport MASTER_PORT=9901\nsrun -K python t.py\n",
       3, "MASTER_PORT is always 9901"},
      {"fixed-port",
       "#!/bin/bash\n#SBATCH --time=1 --mem=8G -N2 --gres=gpu:2\nexport MASTER_PORT=9901\n"
       "srun bash -c 'torchrun --nproc_per_node 2 --nnodes 2 --node_rank $SLURM_PROCID "
       "--master_port $MASTER_PORT t.py'\n",
       4, "--master_port is always 9901"},
      {"ephemeral-port",
       head("export MASTER_PORT=$(($SLURM_JOB_ID % 16384 + 49152))\nsrun -K python t.py\n"), 3,
       "MASTER_PORT is 49152 or more"},
      {"ephemeral-port",
       head("srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d "
            "--rdzv_endpoint=$H:40000 t.py\n"),
       3, "is 40000 or more"},
      {"gpus-per-task",
       "#!/bin/bash\n#SBATCH --time=1 --mem=0 --exclusive -N2 --ntasks-per-node=4 "
       "--gpus-per-task=1\nsrun -K python t.py\n",
       2, "--gpus-per-task=1 with several tasks"},
      {"srun-cpus",
       head("#SBATCH --ntasks-per-node=4 --cpus-per-task=8\nsrun -K python t.py\n"),
       4,
       "srun without --cpus-per-task on Slurm 22.05.8",
       {},
       {.slurm_version = "22.05.8"}},
      {"torn-logs", head("#SBATCH --ntasks-per-node=4\nsrun -K -u python t.py\n"), 4,
       "srun --unbuffered with several tasks"},
      {"requeue-truncates", head("#SBATCH --requeue\nsrun -K python t.py\n"), 3,
       "--requeue without --open-mode=append"},
      {"output-folder", head("#SBATCH --output=logs/%x-%j.out\nsrun -K python t.py\n"), 3,
       "the folder of --output=logs/%x-%j.out is not there"},
      {"output-folder", head("#SBATCH -o /tmp/%j.out\nsrun -K python t.py\n"), 3,
       "lies on one node's own disk"},
      {"output-folder", head("#SBATCH -e runs/%j/err\nsrun -K python t.py\n"), 3,
       "has a % in its name"},
      {"time-limit", "#!/bin/bash\n#SBATCH --mem=0\nsrun hostname\n", 0, "there is no --time"},
      {"time-limit", "#!/bin/bash\n#SBATCH --mem=0 -t UNLIMITED\nsrun hostname\n", 2,
       "--time=UNLIMITED sets no limit"},
      {"signal-lead", head("#SBATCH --signal=B:USR1@30\nsrun -K python t.py &\nwait\n"), 3,
       "comes 30 s before the limit"},
      {"trap-wait",
       head("#SBATCH --signal=B:USR1@300\ntrap 'scontrol requeue $SLURM_JOB_ID' USR1\nsrun -K "
            "python t.py\n"),
       5, "the trap in line 4 does not run"},
      {"trap-wait",
       head("#SBATCH --signal=USR1@300\ntrap 'echo' USR1\nsrun -K python t.py &\nwait\n"), 3,
       "does not reach the trap"},
      {"pipe-status", head("srun -K python t.py 2>&1 | tee log\n"), 3, "is the last command's"},
      {"kill-on-bad-exit", head("#SBATCH --ntasks-per-node=4\nsrun python t.py\n"), 4,
       "srun without --kill-on-bad-exit"},
      {"node-rank", head(c10d + "--node_rank=$N t.py\n"), 3,
       "--node_rank goes with --rdzv_backend=c10d"},
      {"node-rank", head("srun torchrun --nproc_per_node=4 t.py\n"), 3,
       "torchrun on 2 nodes is told of one"},
      {"node-rank",
       head("srun python -m torch.distributed.run --nnodes=2 --nproc_per_node=4 --master_addr=$H "
            "t.py\n"),
       3, "torchrun without --node_rank"},
      {"machine-rank",
       head(
           "srun accelerate launch --num_processes=8 --num_machines=2 --main_process_ip=$H t.py\n"),
       3, "on 2 machines without --machine_rank"},
      {"process-count",
       head("srun bash -c 'accelerate launch --num_processes=7 --num_machines=2 "
            "--machine_rank=$SLURM_NODEID t.py'\n"),
       3, "--num_processes=7 on 2 machines"},
      {"accelerate-config",
       head("srun bash -c 'accelerate launch --config_file a.yaml --num_processes=8 "
            "--machine_rank=$SLURM_NODEID t.py'\n"),
       2,
       "main_process_ip: 10.0.0.7",
       {{"a.yaml", "num_machines: 2\nmain_process_ip: 10.0.0.7\n"}}},
      {"accelerate-config",
       head("srun bash -c 'accelerate launch --num_processes=8 --machine_rank=$SLURM_NODEID "
            "t.py'\n"),
       1,
       "same_network: true",
       {{"/home/u/.cache/huggingface/accelerate/default_config.yaml", "same_network: true\n"}}},
      {"deepspeed-env",
       head("deepspeed --hostfile h t.py\n"),
       0,
       "ACCELERATE_ZERO stands there more than once",
       {{"h", "n1 slots=4\nn2 slots=4\n"},
        {".deepspeed_env", "ACCELERATE_ZERO=2\nACCELERATE_ZERO=3\n"}}},
      {"deepspeed-env",
       head("deepspeed --hostfile h t.py\n"),
       2,
       "an empty line",
       {{"h", "n1 slots=4\nn2 slots=4\n"}, {"/home/u/.deepspeed_env", "A=2\n\nB=3\n"}}},
      {"hostfile-missing", head("deepspeed --hostfile=hosts.txt t.py\n"), 3,
       "the hostfile hosts.txt is not there"},
      {"hostfile-grammar",
       head("deepspeed --hostfile=h t.py\n"),
       1,
       "'n[1-2] slots=4' has a range",
       {{"h", "n[1-2] slots=4\n"}}},
      {"hostfile-grammar",
       head("deepspeed --hostfile=h t.py\n"),
       2,
       "'n2' has no slots=N",
       {{"h", "# ours\nn2\n"}}},
      {"hostfile-grammar",
       head("deepspeed --hostfile=h t.py\n"),
       1,
       "'n1,n2 slots=1' has a comma",
       {{"h", "n1,n2 slots=1\n"}}},
      {"hostfile-grammar",
       head("deepspeed --hostfile=h t.py\n"),
       1,
       "'n1 slots=0' has no slot",
       {{"h", "n1 slots=0\n"}}},
      {"hostfile-grammar",
       head("deepspeed --hostfile=h t.py\n"),
       2,
       "n1 stands there twice",
       {{"h", "n1 slots=1\nn1 slots=1\n"}}},
      {"hostfile-grammar",
       head("deepspeed --hostfile=h t.py\n"),
       0,
       "names no host",
       {{"h", "# none\n"}}},
      {"include-host", head("deepspeed --include=n1@n2:0,1 t.py\n"), 3,
       "names the host n1 without its GPUs"},
      {"utils-for-nvme",
       head("export DS_BUILD_UTILS=1\npip install .\ndeepspeed t.py --deepspeed ds.json\n"),
       3,
       "DS_BUILD_UTILS=1 does not build NVMe offload",
       {{"ds.json",
         R"({"zero_optimization": {"offload_param": {"device": "nvme", "nvme_path": "/nvme"}}})"}}},
      {"compiler",
       head("export CC=gcc-7 CXX=g++-7\npython setup.py bdist_wheel\n"),
       3,
       "gcc 7 is too old for PyTorch",
       {},
       {.torch_version = "2.4.1"}},
      {"compiler",
       head("module load gcc/13.2 cuda/11.8\nexport DS_BUILD_CPU_ADAM=1\npip install .\n"), 3,
       "gcc 13.2 is too new for CUDA 11.8"},
      {"arch-list",
       "#!/bin/bash\n#SBATCH --time=1 --mem=0 --gres=gpu:a100:4\nexport "
       "TORCH_CUDA_ARCH_LIST=\"7.5;8.6\"\npip install .\n",
       3, "leaves out the job's GPU, a100"},
      {"cuda13-arch-list",
       head("module load cuda/13.0\nexport DS_BUILD_CPU_ADAM=1\npip install .\n"), 3,
       "CUDA 13.0 and no TORCH_CUDA_ARCH_LIST"},
      {"ds-auto",
       head("deepspeed t.py --deepspeed_config ds.json\n"),
       1,
       "train_batch_size is \"auto\"",
       {{"ds.json", R"({"train_batch_size": "auto"})"}, {"t.py", "import deepspeed\n"}}},
      {"ds-auto",
       head("deepspeed t.py --deepspeed_config ds.json\n"),
       2,
       "bf16.enabled is \"auto\"",
       {{"ds.json", "{\"bf16\":\n {\"enabled\": \"auto\"}}"}}},
      {"ds-batch",
       head("deepspeed t.py --deepspeed ds.json\n"),
       1,
       "train_batch_size is 32, but 8 ranks x 8 per GPU x 1 accumulation steps make 64",
       {{"ds.json",
         R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1})"}}},
      {"ds-batch",
       head("deepspeed t.py --deepspeed ds.json --per_device_train_batch_size 4\n"),
       1,
       "--per_device_train_batch_size is 4",
       {{"ds.json", R"({"train_micro_batch_size_per_gpu": 8})"}}},
      {"ds-batch",
       head("deepspeed t.py --deepspeed ds.json\n"),
       0,
       "it is not a JSON object",
       {{"ds.json", "{\"a\": 1,}"}}},
      {"zero-world-size",
       head(c10d + "t.py --resume_from_checkpoint out/checkpoint-5\n"),
       3,
       "was written by 4 ranks, and this job has 8",
       {{"out/checkpoint-5/global_step5/bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt", ""}}},
      {"offline-model",
       head("export HF_HUB_OFFLINE=1\n" + c10d + "t.py --model_name_or_path org/model\n"), 4,
       "org/model is not in the cache"},
      {"conda-activate", head("conda activate train\nsrun -K python t.py\n"), 3,
       "'conda activate' is not known"},
      {"export-none", head("#SBATCH --export=NONE\nsrun -K python t.py\n"), 3,
       "--export=NONE goes for srun"},
      {"export-none", head("srun -K --export=FOO=1 python t.py\n"), 3,
       "srun --export=FOO=1 has no ALL"},
      {"memory-default", "#!/bin/bash\n#SBATCH --time=1\nsrun hostname\n", 0, "there is no --mem"},
      {"interface-name", head("export NCCL_SOCKET_IFNAME=docker0\nsrun -K python t.py\n"), 3,
       "leads to no other node"},
      {"unset-variable", head("set -euo pipefail\necho run $SLURM_RESTART_COUNT\n"), 4,
       "$SLURM_RESTART_COUNT may be unset"},
      {"overwrite-output",
       head("#SBATCH --requeue --open-mode=append\n" + c10d +
            "t.py --overwrite_output_dir --lr 1\n"),
       4, "in a job that starts again"},
      {"script-missing", head(c10d + "gone.py --lr 1\n"), 3, "gone.py is not there"},
      {"script-missing", head(c10d + "t.py --deepspeed gone.json\n"), 3, "gone.json is not there"},
      {"placeholder", head("deepspeed t.py <normal cl args> --deepspeed --lr 1\n"), 3,
       "the shell writes to a file named --deepspeed"},
      {"placeholder", head("deepspeed t.py <normal cl args>\n"), 3, "a > stands at the end"},
      {"compiler",
       head("sudo update-alternatives --set gcc /usr/bin/gcc-7\npython setup.py bdist_wheel\n"),
       3,
       "gcc 7 is too old for PyTorch",
       {},
       {.torch_version = "2.4.1"}},
      {"script-missing", head("#SBATCH -D work\nsrun -K python gone.py\n"), 4,
       "work/gone.py is not there"},
      {"unwatched",
       head("python3 -m torch.distributed.run t.py\n"),
       3,
       "starts the ranks without srun",
       {},
       {.lockstep_launches = true}},
      {"unwatched",
       head("mpirun -n 2 python t.py\n"),
       3,
       "mpirun starts the ranks itself",
       {},
       {.lockstep_launches = true}},
  };
  return rows;
}

TEST(Lints, EachSeesItsMistake) {
  for (const Row& row : bad_scripts()) {
    const auto found = check(row);
    std::string all;
    bool seen = false;
    for (const Finding& each : found) {
      all += text_of(each) + "\n";
      seen = seen || (each.lint == row.lint && each.line == row.line &&
                      text_of(each).find(row.what) != std::string::npos);
    }
    EXPECT_TRUE(seen) << row.lint << ": " << row.what << "\n" << row.script << "found:\n" << all;
    // A script with a single mistake must give a single finding.
    EXPECT_EQ(found.size(), 1U) << row.lint << "\n" << row.script << all;
  }
}

TEST(Lints, EveryRowIsSeenByAScriptOrDecidedOnTheNodes) {
  std::set<std::string> seen;
  for (const Row& row : bad_scripts())
    seen.insert(row.lint);
  int number = 0;
  for (const Lint& each : lints()) {
    EXPECT_EQ(each.number, number++);
    EXPECT_EQ(each.look == nullptr, each.decided_at == DecidedAt::allocation) << each.name;
    EXPECT_EQ(seen.contains(std::string(each.name)), each.look != nullptr) << each.name;
  }
  EXPECT_EQ(number, 44);
}

TEST(Lints, OfALaunchByLockstepOnlyTheRestIsSaid) {
  const Row row{"", head("srun torchrun --nproc_per_node=8 t.py | tee log\n"), 0, ""};
  const auto all = check_job(read_job_script("job.sh", row.script), facts_of(row));
  const auto rest = check_job(read_job_script("job.sh", row.script), facts_of(row),
                              {.lockstep_launches = true, .is_script = false});
  EXPECT_EQ(all.size(), 3U);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].lint, "gpu-count");
}

TEST(Lints, TheCompilerIsTheAlternativeThatTheSystemTakes) {
  const auto found_in = [](const std::string& body) {
    const Row row{
        "", head(body + "python setup.py bdist_wheel\n"), 0, "", {}, {.torch_version = "2.4.1"}};
    std::string all;
    for (const Finding& each : check(row))
      if (each.lint == "compiler") all += text_of(each);
    return all;
  };
  const std::string install = "sudo update-alternatives --install /usr/bin/gcc gcc /usr/bin/gcc-";
  const std::string slave = " --slave /usr/bin/g++ g++ /usr/bin/g++-";
  const std::string set = "sudo update-alternatives --set gcc /usr/bin/gcc-";
  EXPECT_EQ(found_in(set + "7\n" + set + "12\n"), "");
  EXPECT_NE(found_in(set + "12\n" + set + "7\n"), "");
  EXPECT_EQ(found_in(install + "7 70" + slave + "7\n" + install + "12 120" + slave + "12\n"), "");
  EXPECT_NE(found_in(install + "7 120\n" + install + "12 70\n"), "");
  EXPECT_NE(found_in(install + "7 70\n" + install + "12 120\n" + set + "7\n"), "");
}

// Lockstep leaves this launch unchanged: the words mean a separate world per node.
TEST(Lints, ATorchrunOfOneNodeOnSeveralIsSaidOfWhoeverLaunches) {
  const auto of = [](const std::string& line) {
    Row row{"", head(line), 0, ""};
    row.facts.lockstep_launches = true;
    std::string all;
    for (const Finding& each : check_job(read_job_script("job.sh", row.script), facts_of(row),
                                         {.lockstep_launches = true}))
      if (each.lint == "node-rank") all += text_of(each);
    return all;
  };
  EXPECT_NE(of("srun torchrun --nproc_per_node=4 t.py\n").find("warning: torchrun on 2 nodes"),
            std::string::npos);
  EXPECT_EQ(of("srun torchrun --nnodes=2 --nproc_per_node=4 t.py\n"), "");
  EXPECT_EQ(of("srun torchrun --nnodes=2 --rdzv_backend=c10d --node_rank=0 t.py\n"), "");
}

TEST(Lints, AScriptThatMayComeLaterOrElsewhereIsNotMissed) {
  for (const char* body :
       {"cd src\nsrun -K python gone.py\n", "git clone x y\nsrun -K python gone.py\n",
        "srun -K bash -c 'cd src && python gone.py'\n", "srun -K python $HOME/gone.py\n",
        "srun -K python /opt/gone.py\n", "srun -K python -m gone\n",
        "cat >gone.py <<E\nx\nE\nsrun -K python gone.py\n",
        "#SBATCH -D $X\nsrun -K python gone.py\n"}) {
    const Row row{"", head(body), 0, ""};
    for (const Finding& each : check(row))
      EXPECT_NE(each.lint, "script-missing") << body << text_of(each);
  }
}

TEST(Lints, WordsOfACommandLineAreAJob) {
  const auto settings =
      read_settings(std::vector<std::string>{"-N2", "--gpus-per-node", "4", "--mem=0"});
  const auto job = job_of_words("lockstep submit", settings->settings,
                                {"torchrun", "--nproc_per_node=8", "t.py"});
  const auto found = check_job(job, {}, {.lockstep_launches = true});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(text_of(found[0]).substr(0, 38), "lockstep submit: error: 8 ranks on a n");
  EXPECT_EQ(found[1].lint, "time-limit");
}

// Every value is longer than the last; together 400 MB.
TEST(Lints, AScriptWhoseValuesGrowIsReadInLittleMemory) {
  constexpr int kLines = 20'000;
  std::string text = "#!/bin/bash\n";
  for (int i = 0; i < kLines; ++i)
    text += "export A=${A}x\n";
  const JobScript script = read_job_script("job.sh", text);
  EXPECT_EQ(script.commands.size(), static_cast<std::size_t>(kLines));
  std::size_t bytes = 0;
  for (const ShellCommand& command : script.commands)
    for (const std::string& word : command.words)
      bytes += word.size();
  EXPECT_LT(bytes, 20U << 20);
}

TEST(Lints, AFindingIsALine) {
  const Finding finding{Severity::error, "time-limit", "a.sh", 3, "what", "why", "fix"};
  EXPECT_EQ(text_of(finding), "a.sh:3: error: what: why; fix [time-limit]");
}

}  // namespace
}  // namespace lockstep::slurm
