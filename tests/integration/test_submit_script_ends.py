"""The ends of jobs with the user's own batch script: time limit, preemption, scancel, lost nodes; and different
shells."""
import json
import pathlib
import re

import pytest

from harness import WORKER, until
from slurm_cluster import SlurmCluster


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 4)
    yield made
    made.close()


class Script:
    """A script that is submitted and followed."""

    def __init__(self, cluster, head, body, *words, shebang="#!/bin/bash", name="old.slurm"):
        self.cluster = cluster
        lines = [shebang, *(f"#SBATCH {line}" for line in head.split("|")), "", body]
        self.path = cluster.script(name, "\n".join(lines) + "\n")
        self.running = cluster.start("submit", "--follow", "--env=LOGLEVEL=INFO", *words, self.path)
        self.job = until(lambda: re.search(r"Submitted batch job (\d+)\n", self.running.out()), 60,
                         self.running.err())[1]

    def ended(self, rc, timeout=180):
        ended = self.running.wait(timeout)
        assert ended.rc == rc, ended
        return ended

    def state(self):
        (path,) = (self.cluster.home / ".local/state/lockstep/slurm").glob("*/state.json")
        return json.loads(path.read_text())

    def is_over_in_slurm(self, *states):
        until(lambda: self.cluster.job(self.job)["JobState"] in states, 60, f"{self.cluster.job(self.job)}")


HEAD = "--nodes=2|--ntasks-per-node=1|--time=30"


def torchrun(command, nodes=2, each=1):
    return f"srun torchrun --nnodes {nodes} --nproc_per_node {each} --no-python {command}"


def runs(folder, ranks=2):
    until(lambda: len(list(folder.glob("[0-9]"))) == ranks, 60, "all ranks run")


def said(ended, text):
    return len(re.findall(rf"^(?:\[rank\d+\]: )?{text}$", ended.out, re.M))


# --- Slurm or a user ends it

def test_the_time_limit_comes_near(cluster, tmp_path):
    """The script sets no signal: all ranks get one, save, and the script runs again."""
    rank = f"""/bin/sh -c 'trap "echo saved; exit 0" TERM; touch {tmp_path}/$RANK; while :; do sleep 0.1; done'"""
    job = Script(cluster, HEAD, f"""
[ "$SLURM_RESTART_COUNT" = 1 ] && {{ echo again; exit 0; }}
{torchrun(rank)}
""", "--requeue")
    runs(tmp_path)
    cluster.slurm("scancel", "--batch", "--signal=USR1", job.job)
    ended = job.ended(0)
    assert said(ended, "again") == 1 and said(ended, "saved") >= 2, ended
    assert job.state()["earlier"] == ["time limit"]


def test_a_trap_for_the_signal_of_the_script_itself(cluster, tmp_path):
    """Its own --signal=B:USR1: the trap tells the ranks through srun's process, and has the job queued again."""
    job = Script(cluster, HEAD + "|--signal=B:USR1@120|--requeue|--open-mode=append", f"""
[ "$SLURM_RESTART_COUNT" = 1 ] && {{ echo again; exit 0; }}
near_the_end() {{
  echo "near the end"
  kill -USR1 $launch
  wait $launch
  echo "srun ended with $?"
  scontrol requeue $SLURM_JOB_ID
  while :; do sleep 0.1; done
}}
trap near_the_end USR1
srun torchrun --nnodes 2 --nproc_per_node 1 --no-python /bin/bash -c \
  'trap "echo saved; exit 0" USR1; touch {tmp_path}/$RANK; while :; do sleep 0.1; done' &
launch=$!
wait $launch
echo "not reached by the first run"
""")
    runs(tmp_path)
    cluster.slurm("scancel", "--batch", "--signal=USR1", job.job)
    ended = job.ended(0)
    assert said(ended, "near the end") == 1 and said(ended, "saved") >= 2 and said(ended, "again") == 1, ended
    assert said(ended, "srun ended with 0") == 1, ended
    assert cluster.job(job.job)["Restarts"] == "1"


def test_scancel_ends_it_for_good(cluster, tmp_path):
    rank = f"/bin/sh -c 'touch {tmp_path}/$RANK; while :; do sleep 0.1; done'"
    job = Script(cluster, HEAD, torchrun(rank), "--requeue")
    runs(tmp_path)
    cluster.slurm("scancel", job.job)
    job.ended(143)
    job.is_over_in_slurm("CANCELLED")
    assert cluster.job(job.job)["Restarts"] == "0" and job.state()["cause"] == "stopped"
    assert cluster.run("wait", job.job).rc == 143


def test_a_preempted_script_goes_on(cluster, tmp_path):
    rank = f"""/bin/sh -c 'trap "touch {tmp_path}/$RANK.saved; exit 0" TERM; touch {tmp_path}/$RANK; """ \
           "while :; do sleep 0.1; done'"
    job = Script(cluster, "--nodes=4|--exclusive|--ntasks-per-node=1|--time=30", f"""
[ "$SLURM_RESTART_COUNT" = 1 ] && exit 0
{torchrun(rank, 4)}
""")
    runs(tmp_path, 4)
    cluster.slurm("sbatch", "-p", "urgent", "-N4", "--exclusive", "-t5", "--wrap", "true")
    until(lambda: len(list(tmp_path.glob("*.saved"))) == 4, 60, "all ranks have saved")
    job.ended(0)
    assert cluster.job(job.job)["Restarts"] == "1"


# --- the first node dies, and the script's shell with it

def hold(folder, more=""):
    return f"{WORKER} touch={folder} wait={folder}/go {more}"


def without_first_node(cluster, job, folder):
    runs(folder)
    until(lambda: "this one is a spare" in job.running.out(), 60, "the spare waits")
    dead = next(node for node in cluster.nodes if node.name == job.state()["host"])
    cluster.power_cut(dead)
    until(lambda: "speaks for the job now" in job.running.out(), 60, "another node speaks for the job")
    return dead


def test_the_first_node_dies_and_the_launch_goes_on(cluster, tmp_path):
    job = Script(cluster, HEAD, f"{torchrun(hold(tmp_path))}\necho behind", "--spare", "1")
    dead = without_first_node(cluster, job, tmp_path)
    (tmp_path / "go").touch()
    ended = job.ended(0)
    assert f"{dead.name}, where the script of job {job.job} ran, is gone" in ended.out, ended
    state = job.state()
    assert (state["state"], state["code"], state["cause"]) == ("ended", 0, "success"), state
    assert "behind" not in said_words(ended) and f"died with {dead.name}" in state["words"], state
    job.is_over_in_slurm("CANCELLED")
    assert cluster.run("wait", job.job).rc == 0


def said_words(ended):
    return [re.sub(r"^\[rank\d+\]: ", "", line) for line in ended.out.splitlines()]


def test_the_first_node_dies_and_then_a_rank_fails(cluster, tmp_path):
    job = Script(cluster, HEAD, torchrun(hold(tmp_path, "@1 exit=7")), "--spare", "1", "--max-restarts", "1",
                 "--requeue")
    without_first_node(cluster, job, tmp_path)
    (tmp_path / "go").touch()
    ended = job.ended(7)
    assert re.search(r"worker: .*rank 1 on node\d exited with 7", ended.out), ended
    job.is_over_in_slurm("CANCELLED")
    assert cluster.run("wait", job.job).rc == 7


def test_the_first_node_dies_and_the_script_runs_again(cluster, tmp_path):
    job = Script(cluster, HEAD, f"""
[ "$SLURM_RESTART_COUNT" = 1 ] && {{ echo again; exit 0; }}
{torchrun(hold(tmp_path))}
""", "--requeue")
    runs(tmp_path)
    dead = next(node for node in cluster.nodes if node.name == job.state()["host"])
    cluster.power_cut(dead)
    ended = job.ended(0, 240)
    assert said(ended, "again") == 1, ended
    assert job.state()["earlier"] == ["node lost"] and job.state()["host"] != dead.name
    assert cluster.job(job.job)["Restarts"] == "1"


# --- shapes

def test_tasks_that_slurm_has_shared_out_unevenly(cluster):
    """-n without --ntasks-per-node: Slurm fills a node first. Agents with as many ranks each would not be where the
    GPUs are."""
    program = cluster.work / "train.py"
    program.write_text("import os\nprint('task', os.environ['SLURMD_NODENAME'], flush=True)\n")
    job = Script(cluster, "--nodes=2|--ntasks=4|--gpus-per-task=2|--time=5", "srun python3 train.py", "--no-check")
    ended = job.ended(0)
    assert "left unchanged, without Lockstep: its nodes have 3,1 tasks" in ended.out, ended
    assert sorted(line for line in said_words(ended) if line.startswith("task")) == ["task node1"] * 3 + ["task node2"]


@pytest.mark.parametrize("shape", ("--ntasks-per-node=2|--gpus-per-task=1", "--ntasks-per-node=1|--gpus-per-task=3",
                                   "--ntasks-per-node=2|--gpus=8|--gpus-per-task=2"))
def test_gpus_that_are_counted_by_task(cluster, shape):
    """The ranks see the same GPUs as under srun itself."""
    program = cluster.work / "train.py"
    names = "SLURM_PROCID SLURM_LOCALID SLURM_NTASKS SLURM_GPUS_PER_TASK CUDA_VISIBLE_DEVICES".split()
    program.write_text(f"import os\nprint('task', [(n, os.environ.get(n)) for n in {names!r}], flush=True)\n")
    job = Script(cluster, f"--nodes=2|{shape}|--time=5", "srun python3 train.py", "--no-check")
    lines = sorted(line for line in said_words(job.ended(0)) if line.startswith("task"))
    cluster.ready()  # The first job keeps its GPUs until Slurm has completed it, and the second would get others.
    plain = cluster.slurm("sbatch", "--wait", "--parsable", "-o", "plain.out", job.path, check=False)
    assert plain.rc == 0, plain
    assert lines == sorted((cluster.work / "plain.out").read_text().splitlines())
    assert len(lines) == (2 if "node=1" in shape else 4)


def test_launches_in_the_background(cluster, tmp_path):
    """Several at a time, each on one node, and their codes by wait."""
    job = Script(cluster, "--nodes=1|--ntasks-per-node=1|--time=5", f"""
srun --overlap torchrun --nproc_per_node 2 --no-python {WORKER} show=WORLD_SIZE touch={tmp_path} \\
  wait={tmp_path}/0 wait={tmp_path}/1 exit=3 &
first=$!
srun --overlap torchrun --nproc_per_node 1 --no-python {WORKER} show=WORLD_SIZE exit=0 &
second=$!
wait $first; a=$?
wait $second; b=$?
echo "codes $a $b"
wait
""")
    words = said_words(job.ended(0))
    assert words.count("show WORLD_SIZE=2") == 2 and words.count("show WORLD_SIZE=1") == 1, words
    assert "codes 3 0" in words, words


def test_functions_that_change_path(cluster):
    """module and conda are shell functions that put folders first in PATH. Our programs must still win."""
    other = cluster.work / "env/bin"
    other.mkdir(parents=True)
    (other / "torchrun").write_text("#!/bin/sh\necho not ours; exit 9\n")
    (other / "torchrun").chmod(0o755)
    job = Script(cluster, "--nodes=2|--ntasks-per-node=1|--time=5", f"""
module() {{ case $1 in load) PATH={other}:$PATH; export PATH;; esac; }}
conda() {{ if [ "$1" = activate ]; then local old=$PATH; export PATH={other}:$old CONDA_PREFIX={other.parent}; fi; }}
set -euo pipefail
module load cuda/12
srun torchrun --nnodes 2 --nproc_per_node 1 --no-python {WORKER} show=RANK
conda activate env
torchrun --nnodes 2 --nproc_per_node 1 --no-python {WORKER} show=RANK,CONDA_PREFIX
both() {{ module load y; torchrun --nnodes 2 --nproc_per_node 1 --no-python {WORKER} show=LOCAL_RANK; }}
both
(module load x && torchrun --nnodes 2 --nproc_per_node 1 --no-python {WORKER} show=WORLD_SIZE)
""")
    words = said_words(job.ended(0))
    assert "not ours" not in words, words
    assert sorted(line for line in words if line.startswith("show RANK")) == [
        "show RANK=0", f"show RANK=0 CONDA_PREFIX={other.parent}",
        "show RANK=1", f"show RANK=1 CONDA_PREFIX={other.parent}"], words
    assert words.count("show WORLD_SIZE=2") == 2 and words.count("show LOCAL_RANK=0") == 2, words


@pytest.mark.parametrize("shell", ("/bin/zsh", "/usr/bin/env zsh", "/bin/dash", "/bin/sh"))
def test_other_shells(cluster, shell):
    assert pathlib.Path("/bin/zsh").exists()
    other = cluster.work / "bin"
    other.mkdir()
    (other / "torchrun").write_text("#!/bin/sh\necho not ours; exit 9\n")
    (other / "torchrun").chmod(0o755)
    job = Script(cluster, "--nodes=1|--ntasks-per-node=1|--time=5", f"""
set -e
srun torchrun --nproc_per_node 2 --no-python {WORKER} show=RANK &
wait $!
export PATH={other}:$PATH
torchrun --nproc_per_node 1 --no-python {WORKER} show=WORLD_SIZE
false || code=$?
echo "code $code of $1"
exit 4
""", "--no-check", shebang="#!" + shell)
    words = said_words(job.ended(4))
    assert sorted(line for line in words if line.startswith("show")) == ["show RANK=0", "show RANK=1",
                                                                         "show WORLD_SIZE=1"], words
    assert "code 1 of " in words, words
