"""Jobs of a fixed number of nodes: a lost node is replaced while restarts are left. Agents with another command are
turned away, as members and as spares."""
import json
import signal

import pytest

from harness import read, until
from nodes import QUICK, SHOW, Job, ends, held, kill_agent, listening, says, shown, starts


@pytest.fixture(params=["lockstep", "c10d", "static"])
def job(lockstep, request):
    return Job(lockstep, request.param)


@pytest.fixture
def go(lockstep):
    return lockstep.folder / "go"


def kill_node(run):
    """Agent and guardian at once, as when a container goes."""
    run.signal(signal.SIGKILL, run.agent())
    run.signal(signal.SIGKILL, run.pid)
    run.wait()


RESTARTS = ("--max-restarts", 2)


def newcomer(job):
    """Returns the number of a later node. With static, the node has the --node-rank of the lost one."""
    return 1 if job.backend == "static" else 2


def test_a_new_node_takes_the_place_of_a_lost_one(job, go):
    report = job.lockstep.folder / "report"
    runs = [job.node(0, *RESTARTS, "--report", report, settings=QUICK, actions=(SHOW, f"wait={go}"))]
    listening(job.port)  # the host, which stays
    runs += [job.node(1, *RESTARTS, settings=QUICK, actions=(SHOW, f"wait={go}"))]
    for run in runs:
        starts(run, 1)
    kill_node(runs[1])
    patience = 900 if job.backend == "static" else 600
    says(runs[0], f"restart 1 of 2, and up to {patience} s for another node to take its place")
    says(runs[0], "a new node may replace a lost one", "; gives up in ", deadline=20)
    new = job.node(newcomer(job), *RESTARTS, settings=QUICK, actions=(SHOW, f"wait={go}"))
    again = starts(runs[0], 2)[1]
    (taken,) = starts(new, 1)
    go.touch()
    ends(runs[0], new)
    assert (again["RANK"], taken["RANK"], again["WORLD_SIZE"]) == ("0", "1", "2")
    assert again["TORCHELASTIC_RESTART_COUNT"] == taken["TORCHELASTIC_RESTART_COUNT"] == "1"
    assert json.loads(read(report))["outcome"] == "succeeded"


def test_no_replacement_ends_the_job(job):
    runs = held(job, 2, *RESTARTS, "--no-replacement", settings=QUICK)
    kill_agent(runs[1])
    (ended,) = ends(runs[0], rc=1)
    why = "is gone (no heartbeat for 2 s)" if job.backend == "static" else "of at least 2"
    assert why in ended.err and "take its place" not in ended.err, str(ended)


def test_a_replacement_that_never_comes(job):
    runs = held(job, 2, *RESTARTS,
                settings=QUICK + ("," if job.backend != "static" else ",timeout=3,") + "join_timeout=3")
    kill_agent(runs[1])
    (ended,) = ends(runs[0], rc=1)
    assert "take its place" in ended.err and "timed out" in ended.err, str(ended)


def test_another_program_is_turned_away_and_no_spare(job, go):
    runs = held(job, 2, actions=(f"wait={go}",))
    other = job.lockstep.folder / "eval.py"
    other.write_text("")
    stranger = job.script(newcomer(job), other)
    (ended,) = ends(stranger, rc=1)
    assert " launches eval.py, " in ended.err and " launches test_worker, " in ended.err, str(ended)
    assert "entrypoint=any" in ended.err, str(ended)
    says(runs[0], " launches eval.py, ", "turned")
    go.touch()
    ends(*runs)


# Its own agent is there: the newcomer waits for its loss, and a stranger never takes part.
def test_a_static_place_has_one_node(lockstep, go):
    job = Job(lockstep, "static")
    runs = held(job, 2, *RESTARTS, settings=QUICK, actions=(f"wait={go}",))
    (ended,) = ends(job.node(1, *RESTARTS, nnodes="3"), rc=1)
    assert "with --nnodes 3" in ended.err and "with --nnodes 2" in ended.err, str(ended)
    (ended,) = ends(job.node(1, *RESTARTS, settings="timeout=2"), rc=1)
    assert "has a living node with node rank 1" in ended.err, str(ended)
    new = job.node(1, *RESTARTS, settings=QUICK, actions=(SHOW, f"wait={go}"))
    says(new, "this node replaces that node if it is lost", deadline=20)
    kill_node(runs[1])
    (taken,) = starts(new, 1)
    assert taken["TORCHELASTIC_RESTART_COUNT"] == "1"
    starts(runs[0], 2)
    go.touch()
    ends(runs[0], new)


def test_a_lost_static_host_ends_the_job(lockstep):
    job = Job(lockstep, "static")
    runs = held(job, 2, *RESTARTS, settings=QUICK)
    kill_agent(runs[0])
    (ended,) = ends(runs[1], rc=1)
    assert "the store of node rank 0" in ended.err and "take its place" not in ended.err, str(ended)


@pytest.mark.parametrize("job", ["lockstep", "c10d"], indirect=True)  # static has no spares
def test_a_spare_that_was_never_used_says_so(job, go):
    runs = held(job, 2, actions=(f"wait={go}",))
    report = job.lockstep.folder / "report"
    other = job.lockstep.folder / "eval.py"
    other.write_text("")
    spare = job.script(2, other, args=("--report", report), settings="entrypoint=any")
    says(spare, "spare", deadline=20)
    go.touch()
    ended = ends(*runs, spare)[2]
    assert shown(spare) == [] and "this node was a spare and was never used" in ended.err, str(ended)
    assert json.loads(read(report))["outcome"] == "spare"


def test_other_numbers_of_arguments_are_a_warning(job):
    runs = [job.node(0, "--max-restarts", 1), job.node(1, actions=(SHOW, "exit=0"))]
    for ended in ends(*runs):
        assert "test_worker is launched with different numbers of arguments: 1 (" in ended.err, str(ended)
        assert "the nodes differ in --max-restarts, the lowest counts: 0 (" in ended.err, str(ended)
    assert until(lambda: [len(shown(run)) for run in runs] == [1, 1])
