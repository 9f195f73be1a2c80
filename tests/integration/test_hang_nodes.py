"""A job of several nodes that hangs: the first node judges the ranks of all nodes, and each node knows the verdict."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import pytest

from hang_kinds import HANG, LIGHT, line_of
from harness import BINARY, SCRIPTS, until
from nodes import SHOW, Job, listening, need_torchrun, starts
from test_hang import why

NODES = 3
EACH = 2  # ranks of a node
AFTER = 5


class World:
    """Three agents with two ranks each, in which rank `culprit` goes wrong: on gloo (HANG), or without PyTorch."""

    def __init__(self, lockstep, backend, temp, script):
        self.lockstep = lockstep
        self.job = Job(lockstep, backend)
        self.temp = temp
        self.script = script
        self.runs = []

    def start(self, kind, culprit, *options):
        for number in range(NODES):
            env = {"TEST_FOLDER": self.temp, "TMPDIR": self.temp, "OMP_NUM_THREADS": "1"}
            self.runs.append(self.job.script(
                number, self.script, kind, culprit, nproc=EACH, nnodes=NODES, env=env,
                args=("--hang-after", AFTER, "--log-dir", self.lockstep.folder / f"logs{number}", *options)))
            listening(self.job.port)
        return self

    def said(self, text):
        """Returns, for each node, how often its agent has said this."""
        return [run.err().count(text) for run in self.runs]

    def err(self):
        return "\n".join(f"--- node {number}\n{run.err()[-3000:]}" for number, run in enumerate(self.runs))

    def leader(self):
        """Returns the agent with group rank 0, which hosts the rendezvous."""
        return self.runs[0]

    def hangs(self, deadline=120):
        until(lambda: sum(self.said("hang: no rank")), deadline, f"the hang is told: {self.err()}")
        until(lambda: sum(self.said("evidence: ")) == NODES, 10, f"each node keeps evidence: {self.err()}")
        said = self.leader().err()
        return said[said.index("hang: no rank"):]


@pytest.fixture
def world(lockstep, request):
    made = []
    with tempfile.TemporaryDirectory(dir="/tmp") as temp:
        def begin(kind, culprit, *options, backend="lockstep", script=LIGHT):
            made.append(World(lockstep, backend, temp, script))
            return made[-1].start(kind, culprit, *options)

        yield begin
        for each in made:
            for run in each.runs:
                run.kill()


def evidence_of(run):
    return pathlib.Path(re.search(r"evidence: (\S+)", run.err())[1]).read_text()


@pytest.mark.parametrize("kind, backend", [("sleep", "lockstep"), ("sleep", "c10d"), ("sleep", "static"),
                                           ("lock", "lockstep"), ("init", "c10d")])
def test_the_rank_of_another_node_is_named_once(lockstep, world, kind, backend):
    culprit = 3  # on node 1
    job = world(kind, culprit, backend=backend, script=HANG)
    said = job.hangs()
    lines = [line for line in said.splitlines() if re.search(rf"\brank {culprit}\b", line)]
    assert lines and line_of(kind) in lines[0], said
    assert "6 ranks" in said.splitlines()[0], said
    time.sleep(3)
    assert job.said("hang: no rank") == [1, 0, 0], job.err()
    assert line_of(kind) in evidence_of(job.runs[1])
    # Whichever node is asked, the answer covers all nodes.
    for run in job.runs:
        told = until(lambda: (told := why(lockstep, run)) and "hung for" in told.stdout and told, 10, "the verdict")
        assert f"rank {culprit}" in told.stdout and line_of(kind) in told.stdout, told.stdout
        (looks,) = json.loads(why(lockstep, run, "--json").stdout)["looks"]
        ranks = [rank for group in looks["fold"]["groups"] for names in group["ranks"].values()
                 for part in names.split(", ") for rank in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]
        assert sorted(ranks) == list(range(NODES * EACH)), looks
        assert looks["state"] == "hung" and looks["whole"], looks
    assert all(run.process.poll() is None for run in job.runs), "a hang ends nothing"


def test_a_hang_is_told_within_seconds(lockstep, world):
    job = world("sleep", 2)
    line = line_of("sleep", LIGHT)
    seen = until(lambda: line in why(lockstep, job.runs[1]).stdout and time.monotonic(), 120, "the sleep")
    until(lambda: sum(job.said("hang: no rank")), AFTER + 3, job.err())
    assert time.monotonic() - seen <= AFTER + 3


def test_long_work_of_one_rank_is_a_wait(lockstep, world):
    job = world("loop", 5, script=HANG)
    until(lambda: sum(job.said("waiting: ")), 120, f"the wait is told: {job.err()}")
    line = next(line for line in job.leader().err().splitlines() if "waiting: " in line)
    assert f"5 ranks wait for rank 5 at {line_of('loop')}" in line, line
    time.sleep(AFTER * 2)
    assert sum(job.said("hang: ")) == 0, job.err()
    assert job.said("waiting: ") == [1, 0, 0], job.err()


def test_a_silent_agent_is_no_hang(lockstep, world):
    """A stopped agent tells nothing about its ranks, so nothing is claimed about the job."""
    job = world("sleep", 2, "--rdzv-conf", "keep_alive_interval=5,keep_alive_max_attempt=20")
    until(lambda: line_of("sleep", LIGHT) in why(lockstep, job.leader()).stdout, 120, "the sleep is seen")
    os.kill(job.runs[2].agent(), signal.SIGSTOP)
    said = until(lambda: "has not told for" in (told := why(lockstep, job.leader()).stdout) and told, 20, "the silence")
    assert re.search(r"node \S+ has not told for \d+ s", said), said
    time.sleep(AFTER)
    assert sum(job.said("hang: ")) == 0, job.err()
    os.kill(job.runs[2].agent(), signal.SIGCONT)
    job.hangs(30)


def test_a_killed_agent_is_no_hang(lockstep, world):
    job = world("sleep", 2)
    until(lambda: line_of("sleep", LIGHT) in why(lockstep, job.leader()).stdout, 120, "the sleep is seen")
    job.runs[2].signal(signal.SIGKILL, job.runs[2].agent())
    for run in job.runs[:2]:
        run.wait(60)
    assert sum(job.said("hang: ")) == 0, job.err()


@pytest.mark.parametrize("then, backend", [("end", "lockstep"), ("end", "static"), ("restart", "lockstep"),
                                           ("restart", "c10d")])
def test_a_hang_acts_once_for_all_nodes(lockstep, world, then, backend):
    reports = [lockstep.folder / f"report.{number}" for number in range(NODES)]
    job = world("sleep", 2, "--on-hang", then, "--max-restarts", 1, "--shutdown-timeout", 5, "--report", reports[1],
                backend=backend)
    for run in job.runs:
        ended = run.wait(200)
        assert ended.rc == 1, job.err()
    attempts = 2 if then == "restart" else 1
    assert job.said("hang: no rank") == [attempts, 0, 0], job.err()
    assert job.said("evidence: ") == [attempts] * NODES, job.err()
    assert len(json.loads(reports[1].read_text())["attempts"]) == attempts, job.err()


def test_a_spare_takes_the_place_of_a_host_whose_rank_is_in_state_d(lockstep):
    job = World(lockstep, "lockstep", tempfile.mkdtemp(dir=lockstep.folder), LIGHT)
    try:
        for number in range(3):  # the last one is a spare
            job.runs.append(job.job.script(
                number, LIGHT, "vfork", 1, nproc=1, nnodes=2, env={"TEST_FOLDER": job.temp},
                args=("--hang-after", AFTER, "--on-hang", "restart", "--max-restarts", 1, "--shutdown-timeout", 1)))
            listening(job.job.port)
            if number == 1:
                until(lambda: "training" in job.runs[0].out(), 30, "the first two nodes train")
        until(lambda: job.runs[0].out().count("training") == 2, 60, f"the job trains again: {job.err()}")
        assert "rank 1 is in state D: a spare takes the place of this node" in job.runs[1].err(), job.err()
        assert "rank 1" in why(lockstep, job.runs[2]).stdout, "the spare has its rank"
        assert "no worker runs now" in why(lockstep, job.runs[1]).stdout, why(lockstep, job.runs[1])
    finally:
        for run in job.runs:
            run.kill()


@pytest.fixture
def recorded(lockstep):
    """recorded(KIND, BACKEND): two nodes of two ranks with flight recorders (nccl_side.py); rank 2 goes wrong."""
    runs = []
    with tempfile.TemporaryDirectory(dir="/tmp") as temp:
        def begin(kind, backend="lockstep", after=8):
            job = Job(lockstep, backend)
            for number in range(2):
                runs.append(job.script(number, SCRIPTS / "nccl_side.py", kind, 2, nproc=2, env={"TEST_FOLDER": temp},
                                       args=("--hang-after", after, "--log-dir", lockstep.folder / f"logs{number}")))
                listening(job.port)
            return runs

        yield begin
        for run in runs:
            run.kill()


@pytest.mark.parametrize("backend", ["lockstep", "c10d"])
def test_recorders_of_all_nodes_are_compared_and_each_node_keeps_its_own_dumps(recorded, backend):
    runs = recorded("never", backend)
    told = "rank 2 never entered #8 nccl:all_reduce of default_pg, 4 KB"
    until(lambda: told in runs[0].err(), 60, f"the first node names the rank: {runs[0].err()}")
    until(lambda: re.search(r"ranks 0-1, 3 +all_reduce #8 of default_pg", runs[0].err()), 30, "who waits is told")
    for number, run in enumerate(runs):
        until(lambda run=run: "flight recorders: " in run.err(), 60, f"dumps of node {number}")
        kept = pathlib.Path(re.search(r"flight recorders: (\S+)/hang-1_rank_\*", run.err())[1])
        found = sorted(path.name for path in kept.iterdir() if path.name.startswith("hang-1_"))
        assert found == [f"hang-1_rank_{rank}" for rank in (2 * number, 2 * number + 1)], run.err()
        assert told in evidence_of(run), evidence_of(run)


@pytest.mark.parametrize("kind, backend, rank", [("signal", "lockstep", 0), ("line", "lockstep", 3),
                                                 ("line", "c10d", 3)])
def test_when_a_watchdog_times_out_every_node_keeps_evidence_before_the_workers_end(recorded, kind, backend, rank):
    runs = recorded(kind, backend, after=100)
    told = f"timeout: the NCCL watchdog of rank {rank} has timed out (attempt 1, 4 ranks"
    until(lambda: told in runs[0].err(), 30, f"the first node tells the timeout: {runs[0].err()}")
    for number, run in enumerate(runs):
        until(lambda run=run: "flight recorders: " in run.err(), 12, f"dumps of node {number}: {run.err()}")
        # A node that sees the timeout itself does not wait for the first node, and knows its own ranks only.
        assert told.split(", ")[0] in evidence_of(run) and "nccl_side.py" in evidence_of(run), evidence_of(run)
        assert run.err().count("evidence: ") == 1 and run.process.poll() is None, run.err()
    assert "hang: no rank" not in runs[0].err(), runs[0].err()


def test_ranks_of_two_nodes_that_spin_while_no_collective_moves_hang(lockstep, recorded):
    runs = recorded("spin")
    stuck = "ranks 0-3 entered #8 nccl:all_reduce of default_pg, 4 KB, and none has left: network or library"
    until(lambda: "hang: nothing that counts has moved" in runs[0].err() and stuck in runs[0].err(), 60,
          f"the hang is told: {runs[0].err()}")

    def hung():
        """The other node shows its ranks by the verdict of the first one, once it has heard it."""
        ended = subprocess.run([BINARY, "top", f"pid-{runs[1].pid}", "--once", "--json"], env=lockstep.environment(),
                               capture_output=True, text=True, timeout=60)
        (node,) = json.loads(ended.stdout)["nodes"]
        return node["state"] == "hung" and node

    node = until(hung, 60, "the other node has heard")
    assert {row["rank"]: row["state"] for row in node["rows"]} == dict.fromkeys(range(4), "waiting"), node
    assert {row["rank"] for row in node["rows"] if row["pid"]} == {2, 3}, "processes of this node"


@pytest.mark.parametrize("peer", ["ours", "torchrun"])
def test_nodes_of_torchrun_tell_nothing_so_nothing_is_claimed(lockstep, peer):
    """Two nodes whose workers stand still: a hang, unless torchrun runs one of the nodes."""
    job = Job(lockstep, "c10d")
    if peer == "torchrun":
        need_torchrun()
    ours = job.node(0, "--hang-after", 3, actions=(SHOW, "pause"), host=True)
    listening(job.port)
    other = (job.torchrun(1, script_args=(SHOW, "pause")) if peer == "torchrun" else
             job.node(1, "--hang-after", 3, actions=(SHOW, "pause")))
    try:
        starts(ours, 1, deadline=60)
        if peer == "ours":
            until(lambda: "hang: " in ours.err(), 20, ours.err())
            return
        until(lambda: "node 1 of the round has told nothing (run by torchrun, or not heard)" in
              why(lockstep, ours).stdout, 20, "the silence")
        time.sleep(8)
        assert "hang: " not in ours.err(), ours.err()
    finally:
        ours.kill()
        other.kill()
