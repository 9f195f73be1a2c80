"""The etcd-v2 backend in the real commands: `lockstep run` and torchrun 2.6 with --rdzv-backend etcd-v2 as nodes of one
job on a real etcd. test_etcd_v2.py tests the parts of the backend beside PyTorch's classes."""
import json
import re
import subprocess
import urllib.error

import pytest

from harness import BUILD, SCRIPTS, SUPPORT, until
from nodes import SHOW, TRIXIE, Job, ranks, starts, tells
from test_etcd_legacy import modules, server  # noqa: F401
from test_nodes_torchrun import LATE, both_end_well


class V2Job(Job):
    def __init__(self, lockstep, cluster, modules):  # noqa: F811
        super().__init__(lockstep, "etcd-v2")
        self.endpoint = cluster.places
        self.cluster = cluster
        self.python = {"PYTHONPATH": f"{SUPPORT / 'torch-2.6'}:{modules}", "OMP_NUM_THREADS": 1}

    def torchrun(self, *args, env=None, **options):
        return super().torchrun(*args, env={**self.python, **(env or {})}, **options)

    def state(self):
        try:
            value = self.cluster.v2(f"/torch/elastic/rendezvous/{self.id}")["value"]
        except urllib.error.HTTPError:
            return {}
        found = subprocess.run([BUILD / "tests/state_tool", "decode"], input=value.encode() + b"\n",
                               capture_output=True, check=True)
        return json.loads(found.stdout)

    def joined(self, count):
        """So many nodes are in the state that both read."""
        until(lambda: len(self.state().get("participants", [])) == count, LATE, f"{count} participants: {self.state()}")


@pytest.fixture
def job(lockstep, server, modules):  # noqa: F811
    return V2Job(lockstep, server, modules)


def both(job, first, ours, theirs):
    """Starts one agent, and the other once the first is in the shared state."""
    runs = {}
    for kind in ("ours", "theirs") if first == "ours" else ("theirs", "ours"):
        runs[kind] = (ours if kind == "ours" else theirs)()
        if len(runs) == 1:
            job.joined(1)
    return runs["ours"], runs["theirs"]


# Ranks follow the addresses, whoever comes first.
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("number", [0, 1])
def test_one_job(job, first, number):
    ours, theirs = both(job, first, lambda: job.node(number),
                        lambda: job.torchrun(1 - number, nproc=2, script_args=(SHOW,)))
    both_end_well(ours, theirs)
    assert ranks(ours) == [2 * number]
    assert sorted(ranks(theirs)) == ([1, 2] if number == 0 else [0, 1])
    assert tells(ours, "WORLD_SIZE") == tells(theirs, "WORLD_SIZE") == {"3"}
    for key in ("MASTER_ADDR", "MASTER_PORT", "GROUP_WORLD_SIZE"):
        assert len(tells(ours, key) | tells(theirs, key)) == 1, key


# PyTorch 2.6 workers under both agents, one sum; ours fails once.
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_all_reduce_with_a_restart(job, first):
    script, once = SCRIPTS / "all_reduce.py", ("--fail-once", job.lockstep.folder / "once")
    ours, theirs = both(
        job, first,
        lambda: job.script(0, script, *once, args=("-t", 1, "--max-restarts", 1),
                           env={"PYTHON_EXEC": TRIXIE, **job.python}),
        lambda: job.torchrun(1, "-t", 1, "--max-restarts", 1, script=script, script_args=once))
    our_end, their_end = both_end_well(ours, theirs)
    found = [re.findall(r"attempt (\d) rank (\d) sum (\S+)", end.out) for end in (our_end, their_end)]
    assert found == [[("0", "0", "3.0"), ("1", "0", "3.0")], [("0", "1", "3.0"), ("0", "1", "3.0")]]


def test_a_failure_of_theirs_restarts_ours(job):
    marks = job.lockstep.folder
    theirs = job.torchrun(0, "--max-restarts", 1, script_args=(SHOW, "%0", f"wait={marks}/ours", "exit=3"))
    ours = job.node(1, "--max-restarts", 1, actions=(SHOW, f"mark={marks}/ours", f"wait={marks}/again"))
    again = starts(ours, 2, LATE)
    assert starts(theirs, 2, LATE)[1]["TORCHELASTIC_RESTART_COUNT"] == "1"
    (marks / "again").touch()
    both_end_well(ours, theirs)
    assert [worker["RANK"] for worker in again] == ["1", "1"]


def test_a_node_of_ours_comes_to_a_job_of_torchruns(job):
    go = job.lockstep.folder / "go"
    options = dict(nnodes="1:2", settings="last_call_timeout=1")
    theirs = job.torchrun(0, script_args=(SHOW, f"wait={go}"), **options)
    assert starts(theirs, 1, LATE)[0]["WORLD_SIZE"] == "1"
    ours = job.node(1, actions=(SHOW, f"wait={go}"), **options)
    assert starts(ours, 1, LATE)[0]["RANK"] == "1"
    assert starts(theirs, 2, LATE)[1]["WORLD_SIZE"] == "2"
    go.touch()
    both_end_well(ours, theirs)
