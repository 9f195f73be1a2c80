"""docs/frameworks.md: the statements that the page calls tested, with Debian sid's packages."""
import re

import pytest

from harness import SCRIPTS, SUPPORT, peer


@pytest.fixture
def start(lockstep):
    env = {"PYTHON_EXEC": peer("2.14"), "PYTHONPATH": SUPPORT / "torch-2.6", "OMP_NUM_THREADS": 1, "HF_HUB_OFFLINE": 1}

    def run(*args, **more):
        ended = lockstep.run("--nproc-per-node", 2, *args, env={**env, **more}, timeout=120)
        assert ended.rc == 0, str(ended)
        return ended
    return run


def test_accelerate(start):
    ended = start(SCRIPTS / "accelerated.py", ACCELERATE_USE_CPU="true", ACCELERATE_MIXED_PRECISION="bf16")
    assert sorted(re.findall(r"^accelerate (.*)$", ended.out, re.M)) == [
        f"rank {rank} of 2 steps 4 sum 2.0 bf16 DistributedDataParallel" for rank in (0, 1)], str(ended)


def test_trainer_and_its_restart(start, lockstep):
    ended = start("--max-restarts", 1, SCRIPTS / "trained.py", lockstep.work / "out")
    assert sorted(re.findall(r"^trainer (.*)$", ended.out, re.M)) == [
        f"attempt {attempt} rank {rank} of 2 steps 3 DistributedDataParallel" for attempt in (0, 1) for rank in (0, 1)
    ], str(ended)
