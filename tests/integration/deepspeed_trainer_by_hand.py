"""The recipe with the real DeepSpeed: a wheel of its source with two ops, Transformers' Trainer with
`--deepspeed ds_config.json` on CPUs, on one machine and as a job of two nodes with two spares on a real Slurm.

By hand, not in CI: Debian has no DeepSpeed. Its source is in .cache/peers/deepspeed, and sid's folder has, beside what
`./dev peers` puts there, python3-hjson python3-cpuinfo python3-msgpack python3-pydantic python3-einops ninja-build g++
libtorch-dev pybind11-dev python3-dev python3-pip python3-setuptools python3-wheel. The wheel takes some minutes and
stays in .cache/peers/deepspeed-wheels. It is built by lockstep inside sid's folder, so with the static binary:

    cd tests/integration && python3 -m pytest -q -p no:cacheprovider deepspeed_trainer_by_hand.py
"""
import json
import re
import shutil
import zipfile

import pytest

from harness import BINARY, PEERS, SCRIPTS, SUPPORT, peer
from slurm_cluster import SlurmCluster

SOURCE, WHEELS = PEERS / "deepspeed", PEERS / "deepspeed-wheels"
# ZeRO with the optimizer on the CPU is what needs the op cpu_adam; shm_comm is built when it is first used where it is
# not in the wheel, which is some minutes of silence.
CONFIG = {"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto", "gradient_accumulation_steps": "auto",
          "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
          "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto",
                                                    "weight_decay": "auto"}}}
# On CPUs accelerate prefers MPI, where every rank finds itself alone; Debian's PyTorch has no libuv (torch-2.6).
WORDS = ("--output_dir", "out", "--max_steps", 3, "--per_device_train_batch_size", 4, "--report_to", "none",
         "--save_strategy", "no", "--disable_tqdm", "true", "--use_cpu", "--ddp_backend", "gloo",
         "--deepspeed", "ds_config.json")
ENV = {"PYTHONPATH": SUPPORT / "torch-2.6", "OMP_NUM_THREADS": 1, "HF_HUB_OFFLINE": 1, "PYTHONDONTWRITEBYTECODE": 1}

pytestmark = pytest.mark.skipif(not (SOURCE / "op_builder").is_dir(), reason=f"no DeepSpeed in {SOURCE}")


@pytest.fixture
def wheel(lockstep):
    """The wheel, which is built where it is not there yet."""
    if not list(WHEELS.glob("*.whl")):
        shutil.copytree(SOURCE, lockstep.work / "DeepSpeed", symlinks=True)
        program = shutil.copy(BINARY, lockstep.folder / "program")  # sid sees /tmp
        ended = lockstep.run("wheel", f"deepspeed@{lockstep.work}/DeepSpeed", "--ops", "cpu_adam,shm_comm",
                             "--python", "/usr/bin/python3", "-o", lockstep.work / "dist", program=(peer("2.14"),),
                             env={"PEER_PROGRAM": program, "PYTHON_EXEC": None}, timeout=1800)
        assert ended.rc == 0, ended
        shutil.copytree(lockstep.work / "dist", WHEELS)
    (path,) = WHEELS.glob("*.whl")
    told = json.loads(path.with_name(path.name + ".json").read_text())
    assert told["ops_built"] == ["cpu_adam", "deepspeed_shm_comm"], told
    return path, told


def trained(ended, count, place):
    assert ended.rc == 0, ended
    found = re.findall(r"trainer (rank .*)$", ended.out, re.M)
    assert sorted(found) == [f"rank {rank} of {count} steps 3 DeepSpeedEngine DeepSpeedCPUAdam same=True from={place}"
                             for rank in range(count)], ended


def prepare(folder):
    (folder / "ds_config.json").write_text(json.dumps(CONFIG))
    shutil.copy(SCRIPTS / "deepspeed_trained.py", folder / "train.py")


def test_here(lockstep, wheel):
    prepare(lockstep.work)
    site = lockstep.folder / "site"
    zipfile.ZipFile(wheel[0]).extractall(site)
    ended = lockstep.run("--nproc-per-node", 2, "train.py", *WORDS, timeout=300, env={
        **ENV, "PYTHON_EXEC": peer("2.14"), "PYTHONPATH": f"{site}:{ENV['PYTHONPATH']}"})
    trained(ended, 2, site / "deepspeed")
    print(f"{ended.seconds:.1f} s")


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 4)
    yield made
    made.close()


def test_on_slurm(cluster, wheel):
    """The wheel goes to the disks of all nodes, spares too, is imported there, and two ranks train with it."""
    prepare(cluster.work)
    path = shutil.copy(wheel[0], cluster.work)
    ended = cluster.run("submit", "-N2", "--spare", 2, "-t10", "--follow", "--wheel", path, "--", "train.py", *WORDS,
                        timeout=500, env={**ENV, "PYTHON_EXEC": peer("2.14")})
    told = wheel[1]
    trained(ended, 2, f"/tmp/lockstep-0/overlays/{told['name']}-{told['version']}-{told['sha256'][:12]}/deepspeed")
    told = {each.stem: json.loads(each.read_text())
            for each in cluster.home.glob(".local/state/lockstep/slurm/*/wheels/*.json")}
    assert len(told) == 4, told
    print(f"{ended.seconds:.1f} s", told)
