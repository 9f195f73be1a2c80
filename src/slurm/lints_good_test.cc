// Correct scripts in the style of real users. No lint may complain.
#include "slurm/lints.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace lockstep::slurm {
namespace {

constexpr const char* kGood[] = {
    // 1: torchrun, c10d, the first node's name from Slurm
    R"sh(#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=96
#SBATCH --mem=0
#SBATCH --time=20:00:00
#SBATCH --output=logs/%x-%j.out
set -euo pipefail
module load cuda/12.4
source ~/venv/bin/activate
head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((10000 + SLURM_JOB_ID % 20000))
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" torchrun \
  --nnodes="$SLURM_JOB_NUM_NODES" --nproc_per_node=8 \
  --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$head_node:$port" \
  train.py --lr 1e-4
)sh",
    // 2: torchrun, static, the rank expanded in the task
    R"sh(#!/bin/bash
#SBATCH -N 2
#SBATCH --gres=gpu:a100:4
#SBATCH --exclusive
#SBATCH -t 10:00:00
export MASTER_ADDR=$(hostname)
export MASTER_PORT=29500
srun bash -c 'torchrun --nnodes=$SLURM_NNODES --nproc_per_node=4 --node_rank=$SLURM_NODEID \
  --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT train.py'
)sh",
    // 3: accelerate as its example, mended
    R"sh(#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=32
#SBATCH --mem=200G
#SBATCH --time=01:59:00
source activateEnvironment.sh
export GPUS_PER_NODE=4
head_node_ip=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export LAUNCHER="accelerate launch \
    --num_processes $((SLURM_NNODES * GPUS_PER_NODE)) \
    --num_machines $SLURM_NNODES \
    --rdzv_backend c10d \
    --main_process_ip $head_node_ip \
    --main_process_port $((12000 + SLURM_JOB_ID % 10000)) \
    --machine_rank \$SLURM_PROCID \
    "
export SCRIPT="complete_nlp_example.py"
export SCRIPT_ARGS="--mixed_precision fp16 --output_dir out"
export CMD="$LAUNCHER $SCRIPT $SCRIPT_ARGS"
srun bash -c "$CMD"
)sh",
    // 4: plain ranks by srun
    R"sh(#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --mem-per-gpu=60G
#SBATCH --time=1-00:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_PORT=$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 4))
export PYTHONUNBUFFERED=1
srun --kill-on-bad-exit=1 --cpus-per-task=$SLURM_CPUS_PER_TASK bash -c \
  'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS exec python train.py'
)sh",
    // 5: Lightning
    R"sh(#!/bin/bash -l
#SBATCH --nodes=4
#SBATCH --gres=gpu:2
#SBATCH --ntasks-per-node=2
#SBATCH --mem=0
#SBATCH --time=0-02:00:00
#SBATCH --signal=SIGUSR1@180
conda activate $1
export NCCL_DEBUG=INFO
srun -K1 -c $SLURM_CPUS_ON_NODE python3 train.py
)sh",
    // 6: requeue before the limit, as a trap wants it
    R"sh(#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem=32G
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue --open-mode=append
requeue() {
  echo "time is up, again"
  scontrol requeue "$SLURM_JOB_ID"
}
trap requeue USR1
srun python train.py --resume &
wait $!
)sh",
    // 7: an array
    R"sh(#!/bin/bash
#SBATCH --array=0-9%4
#SBATCH --gres=gpu:1
#SBATCH --mem=16G
#SBATCH --time=30
#SBATCH -o logs/%A_%a.out
#SBATCH -e logs/%A_%a.err
set -u
seeds=(1 2 3 4 5 6 7 8 9 10)
python train.py --seed "${seeds[$SLURM_ARRAY_TASK_ID]}" --run "${SLURM_RESTART_COUNT:-0}"
)sh",
    // 8: DeepSpeed without ssh, once per node
    R"sh(#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gres=gpu:8 --exclusive --mem=0
#SBATCH --time=12:00:00
export MASTER_ADDR=$(scontrol show hostnames $SLURM_NODELIST | head -n 1)
export TORCH_CUDA_ARCH_LIST="8.0;9.0"
srun bash -c 'deepspeed --no_ssh --node_rank $SLURM_NODEID --num_nodes 2 --num_gpus 8 \
  --master_addr $MASTER_ADDR --master_port 29500 train.py --deepspeed ds_config.json'
)sh",
    // 9: DeepSpeed over a hostfile that the script writes
    R"sh(#!/bin/bash
#SBATCH -N2 -t 60 --gres=gpu:4 --exclusive
HOSTFILE=hosts.$SLURM_JOB_ID
for host in $(scontrol show hostnames); do echo "$host slots=4"; done > $HOSTFILE
deepspeed --hostfile $HOSTFILE train.py --deepspeed_config ds_raw.json
)sh",
    // 10: conda with its hook, pipefail, a log beside
    R"sh(#!/bin/bash
#SBATCH --gpus=4
#SBATCH --nodes=1
#SBATCH --mem=0
#SBATCH --time=2:00:00
set -eo pipefail
eval "$(conda shell.bash hook)"
conda activate train
torchrun --standalone --nproc_per_node=4 train.py 2>&1 | tee train.log
)sh",
    // 11: a build with exported variables, then the training
    R"sh(#!/bin/bash
#SBATCH --gres=gpu:v100:2
#SBATCH --mem=64G
#SBATCH --time=3:00:00
module load gcc/11.3 cuda/12.1
export TORCH_CUDA_ARCH_LIST="7.0"
DS_BUILD_CPU_ADAM=1 DS_BUILD_UTILS=1 \
  pip install deepspeed --no-cache-dir
deepspeed --num_gpus 2 train.py --deepspeed ds_config.json
)sh",
    // 12: a container by pyxis
    R"sh(#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=4:00:00
srun --container-image=nvcr.io/nvidia/pytorch:24.05-py3 --container-mounts=$PWD:/workspace \
  torchrun --nnodes 2 --nproc-per-node gpu --rdzv-backend c10d --rdzv-endpoint $(hostname):29500 train.py
)sh",
    // 13: a container by apptainer
    R"sh(#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=1 --gres=gpu:4 --cpus-per-task=40 --exclusive -t 5:00:00
HEAD=$(hostname)
srun apptainer exec --nv image.sif torchrun --nnodes 2 --nproc_per_node 4 \
  --rdzv_backend=c10d --rdzv_endpoint=$HEAD:29500 train.py
)sh",
    // 14: nothing but a program
    R"sh(#!/usr/bin/env bash
#SBATCH --time=5
#SBATCH --mem=1G
hostname
srun hostname
)sh",
    // 15: a chain of jobs with checkpoints
    R"sh(#!/bin/sh
#SBATCH --dependency=singleton
#SBATCH --job-name=chain
#SBATCH --time=01:00:00 --mem=10G --gres=gpu:1
#SBATCH --mail-type=END
##SBATCH --mail-user=me@example.org
python -u run_clm.py --output_dir out --resume_from_checkpoint out/last --bf16
)sh",
    // 16: Lockstep itself
    R"sh(#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=4 --mem=0 -t 1:00:00
srun lockstep run train.py --epochs 3
)sh",
    // 17: words in a here-document, which are not commands
    R"sh(#!/bin/bash
#SBATCH --time=1:00:00 --mem=4G
cat > job.sh <<'EOF'
#SBATCH --nodes=3
conda activate other
srun -u python x.py | tee y
EOF
python prepare.py
)sh",
    // 18: a preparation, then ranks in functions and loops
    R"sh(#!/bin/bash
#SBATCH --nodes=2 --ntasks=8 --gpus-per-node=4 --time=2:00:00 --mem=0 --exclusive

# sbatch this file; see the wiki
export SLURM_KILL_BAD_EXIT=1
run() {
  srun --output=logs/%t.log python train.py --fold "$1"
}
for fold in 1 2 3; do
  run $fold || exit $?
done
)sh",
    // 19: HF's Trainer with a ds_config of "auto"
    R"sh(#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=20:00:00
#SBATCH --export=ALL
export NCCL_SOCKET_IFNAME=ib0
export HF_HUB_OFFLINE=1
MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
ARGS=(
  --model_name_or_path ./models/llama
  --per_device_train_batch_size 4
  --gradient_accumulation_steps 2
  --bf16
  --deepspeed ds_auto.json
)
srun torchrun --nnodes=2 --nproc_per_node=8 --rdzv_id=$RANDOM --rdzv_backend=c10d \
  --rdzv_endpoint="${MASTER}:29500" run_clm.py "${ARGS[@]}"
)sh",
    // 20: a heterogeneous job
    R"sh(#!/bin/bash
#SBATCH --nodes=1 --mem=8G --time=60 --cpus-per-task=4
#SBATCH hetjob
#SBATCH --nodes=2 --mem=0 --gpus-per-node=8
export SRUN_CPUS_PER_TASK=4
srun --het-group=0,1 -K1 ./mixed
)sh",
    // 21: submitit's shape
    R"sh(#!/bin/bash

# Parameters
#SBATCH --cpus-per-task=10
#SBATCH --error=/checkpoint/%u/%x/%j_0_log.err
#SBATCH --gpus-per-node=8
#SBATCH --job-name=submitit
#SBATCH --mem=400GB
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --open-mode=append
#SBATCH --signal=USR2@90
#SBATCH --time=4320
#SBATCH --wckey=submitit

# command
export SUBMITIT_EXECUTOR=slurm
srun --output /checkpoint/log.out --error /checkpoint/log.err --kill-on-bad-exit -c 10 /usr/bin/python3 -u -m submitit.core._submit /checkpoint
)sh",
};

CheckFacts facts() {
  static const std::map<std::string, std::string> kFiles = {
      {"ds_config.json",
       R"({"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}})"},
      {"ds_raw.json", R"({"train_batch_size": 64})"},
      {"ds_auto.json",
       R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}})"},
      {"run_clm.py", "from transformers import Trainer\n"},
      {"train.py", "import deepspeed\n"},
      {"/home/u/.deepspeed_env", "NCCL_DEBUG=INFO\nHF_HOME=/data\n"},
  };
  CheckFacts facts{.slurm_version = "22.05.8",
                   .gcc_version = "12.2.0",
                   .torch_version = "2.4.1",
                   .home = "/home/u",
                   .environment = {{"USER", "me"}}};
  facts.is_folder = [](const std::string& path) {
    return path.starts_with("logs") || path.starts_with("./models") ||
           path == "/checkpoint/me/submitit";
  };
  facts.read_file = [](const std::string& path) -> std::optional<std::string> {
    const auto found = kFiles.find(path);
    return found == kFiles.end() ? std::nullopt : std::optional(found->second);
  };
  facts.list_folder = [](const std::string&) { return std::vector<std::string>(); };
  return facts;
}

TEST(GoodScripts, AreNotBlamed) {
  int number = 0;
  for (const char* text : kGood) {
    ++number;
    std::string all;
    for (const Finding& each : check_job(read_job_script("job.sh", text), facts()))
      all += text_of(each) + "\n";
    EXPECT_EQ(all, "") << "script " << number;
  }
  EXPECT_GE(std::size(kGood), 20U);
}

std::string said_of_old_script(const std::string& body) {
  const std::string text =
      "#!/bin/bash\n#SBATCH --time=1:00:00 --mem=0 --nodes=2 --ntasks-per-node=1 --exclusive\n" +
      body;
  CheckFacts facts;
  facts.lockstep_launches = true;
  std::string names;
  for (const Finding& each :
       check_job(read_job_script("old.sh", text), facts, {.lockstep_launches = true}))
    names += each.lint + " ";
  return names;
}

// Mistakes made harmless by Lockstep's launch must not be reported for lockstep submit.
TEST(LintsOfOldScripts, WhatOurLaunchMakesHarmlessIsNotSaid) {
  for (const char* body :
       {"srun torchrun --nnodes 2 --node_rank $SLURM_PROCID --nproc_per_node 4 t.py\n",
        "srun torchrun --nnodes 2 --node-rank=$SLURM_NODEID --nproc_per_node 4 t.py\n",
        "srun bash -c \"torchrun --nnodes 2 --node_rank $SLURM_PROCID --nproc_per_node 4 t.py\"\n",
        "srun accelerate launch --num_machines 2 --machine_rank $(hostname) t.py\n",
        "export MASTER_PORT=60000\nsrun --ntasks-per-node=4 torchrun --nnodes 2 t.py\n"})
    EXPECT_EQ(said_of_old_script(body), "") << body;
  EXPECT_EQ(said_of_old_script("srun torchrun --nnodes 2 t.py --seed $SLURM_PROCID\n"),
            "rank-too-early ");
  EXPECT_EQ(said_of_old_script("srun -n8 python t.py --rank $SLURM_PROCID\n"), "rank-too-early ");
  EXPECT_EQ(said_of_old_script("srun torchrun --nnodes 2 t.py | tee log\n"), "pipe-status ");
  EXPECT_EQ(said_of_old_script("python3 -m torch.distributed.run t.py\nmpirun -n 2 python t.py\n"),
            "unwatched unwatched ");
  EXPECT_EQ(said_of_old_script(
                "python3 prepare.py\nsrun python -m torch.distributed.run --nnodes 2 t.py\n"),
            "");
  EXPECT_EQ(said_of_old_script("trap x USR1\nsrun torchrun --nnodes 2 t.py\n"), "trap-wait ");
}

}  // namespace
}  // namespace lockstep::slurm
