"""Our agents and real torchrun 2.6 agents in one job."""
import re
import signal
import pytest
from harness import BUILD, SCRIPTS, WORKER, one_line, until
from nodes import *

@pytest.fixture(autouse=True)
def peer():
    need_torchrun()

@pytest.fixture
def job(lockstep):
    return Job(lockstep)

PEER_WORKER = {"PYTHON_EXEC": TRIXIE, "PYTHONPATH": SUPPORT / "torch-2.6", "OMP_NUM_THREADS": 1}

@pytest.mark.parametrize("ahead", [8, 20, -20])
def test_skew(job, ahead):
    go = job.lockstep.folder / "go"
    ours = job.node(0, host=True, actions=(SHOW, f"wait={go}"))
    theirs = job.torchrun(1, host=False, script_args=(SHOW, f"wait={go}"), env={"PEER_CLOCK_AHEAD": ahead})
    try:
        starts(ours, 1, 12), starts(theirs, 1, 12)
        go.touch()
        ends(ours, theirs)
    finally:
        for r in (ours, theirs):
            print(r.out(), r.err())
