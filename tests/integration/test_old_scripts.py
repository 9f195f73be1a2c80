"""Published batch scripts (old_scripts/) through `lockstep submit FILE` on a real Slurm cluster: each does the same
as with sbatch, and Lockstep says where it runs the ranks, or why not. Stand-ins replace programs that are not
installed."""
import pathlib
import re

import pytest

import container_image
from slurm_cluster import SlurmCluster

SCRIPTS = pathlib.Path(__file__).parent / "old_scripts"
TRAIN = """import os, sys, time
rank, world = os.environ.get("RANK", os.environ.get("SLURM_PROCID")), os.environ.get("WORLD_SIZE",
                                                                                    os.environ.get("SLURM_NTASKS"))
if sys.argv[1:2] == ["--fail"] and sys.argv[2] != rank:
    time.sleep(1000)
print("rank", rank, "of", world, *sys.argv[1:], flush=True)
sys.exit(7 if sys.argv[1:] == ["--fail", rank] else 0)
"""
STAND_INS = {
    "apptainer": 'while [ "$1" != torchrun ]; do shift; done; echo "apptainer: $*"',
    "docker": 'while [ "$1" != torchrun ]; do shift; done; echo "docker: $*"',
    "mpirun": 'for rank in 0 1; do RANK=$rank WORLD_SIZE=$2 "$3" "$4"; done',
}
FILES = {
    "work/start-tr11": "TR11_ARGS=--lr=6e-5\n",
    "work/.env": "WANDB_PROJECT=mine\n",
    "work/one_node.py": "import os\nprint('alone on', os.uname().nodename, os.environ.get('NODE'), flush=True)\n",
    "work/modules.sh": 'module() { [ "$1" = purge ] || { shift; LOADEDMODULES="$*"; }; }\n',
    "home/miniconda3/etc/profile.d/conda.sh": "conda() { CONDA_DEFAULT_ENV=$2; }\n",
}
OURS, LEFT = "lockstep", "left unchanged"  # what the output says where Lockstep starts the ranks, and where not
TWO, FOUR = ["rank 0 of 2", "rank 1 of 2"], [f"rank {rank} of 4" for rank in range(4)]

# The output of each script, in any order, and Lockstep's line about the script.
EXPECTED = {
    "pytorch_tutorial": (["Node IP: node1", *(f"{line} 50 10" for line in TWO)], OURS),
    "bigscience": ([f"{line} --tensor-model-parallel-size 1 --lr=6e-5" for line in FOUR], OURS),
    "lightning": (FOUR, OURS),
    "conda": (["env llm", *FOUR], OURS),
    "modules": (["modules python/3.11 cuda/12.2 in WORK/env", *TWO], OURS),
    "heredoc": (TWO, OURS),
    "loop_of_sruns": (["alone on node1 0", "alone on node2 1"], ""),
    "megatron": ([f"{line} --num-layers 12 --hidden-size 512 --save my checkpoints" for line in TWO], OURS),
    "launch_use_env": ([f"{line} --batch-size 4" for line in TWO], OURS),
    "python_variable": (["alone on here None", *(f"{line} --config a b.yaml" for line in TWO)], OURS),
    "pyxis": ([f"{line} in the image" for line in TWO], OURS),
    "apptainer": (["apptainer: torchrun --nnodes 2 --node_rank 0 --nproc_per_node 1 --master_addr node1 train.py"] * 2,
                  LEFT),
    "docker": (["docker: torchrun --nnodes 2 --nproc_per_node 1 train.py"] * 2, LEFT),
    "array": (["seed 11", "seed 22", "seed 33", *(f"rank 0 of 1 --seed {seed}" for seed in (11, 22, 33))], ""),
    "config_file": ([f"{line} --project mine" for line in TWO], OURS),
    "mpirun": (TWO, ""),  # said at once: below
    "requeue_trap": ([*TWO, "code 0"], OURS),
    "steps_before_and_after": (["alone on node1 None"] * 2 + FOUR, OURS),
    "fails": (["rank 1 of 2 --fail 1", "training failed with 7"], "exited with 7"),
}


@pytest.fixture
def cluster(hosts, tmp_path):
    made = SlurmCluster(hosts, 2)
    for name, text in FILES.items():
        path = made.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (made.work / "train.py").write_text(TRAIN)
    (made.work / "bin").mkdir()
    for name, body in STAND_INS.items():
        path = made.work / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    container_image.make(made.work / "image")
    yield made
    made.close()


def submit(cluster, name):
    path = cluster.work / f"{name}.sbatch"
    path.write_text((SCRIPTS / path.name).read_text())
    ended = cluster.run("submit", "--follow", path, env={"PATH": f"{cluster.work}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                                         "HOME": cluster.home})
    # The tasks of an array have an output each.
    out = "".join(cluster.run("logs", f"{ended.out.split()[3]}[{task}]").out for task in range(3)) \
        if name == "array" else ended.out
    lines = [re.sub(r"^(\[\w+\]: ?|\d+: )+", "", line) for line in out.splitlines()]
    shown = re.compile(r"(rank|alone|env|modules|seed|code|training|Node) |\w+: torchrun")
    return ended, [line for line in lines if shown.match(line)]


def test_each_script_does_what_it_did(cluster):
    assert {path.stem for path in SCRIPTS.iterdir()} == {*EXPECTED, "pyxis_directive"}
    for name, (printed, said) in EXPECTED.items():
        ended, lines = submit(cluster, name)
        expected = sorted(line.replace("WORK", str(cluster.work)) for line in printed)
        assert sorted(lines) == expected, f"{name}: {ended}"
        assert ended.rc == (7 if name == "fails" else 0) and said in ended.out, f"{name}: {ended}"
        assert (LEFT in ended.out) == (said == LEFT), f"{name}: {ended}"


def test_what_lockstep_does_not_see_is_said_at_once(cluster):
    ended, _ = submit(cluster, "mpirun")
    assert "mpirun.sbatch:5: warning: mpirun starts the ranks itself: Lockstep does not see them" in ended.err, ended


def test_a_script_that_would_run_in_the_image_is_refused(cluster):
    ended, _ = submit(cluster, "pyxis_directive")
    assert ended.rc == 2 and "--container-image" in ended.err and ended.err.count("\n") <= 2, ended
