"""Lockstep agents and real torchrun agents (2.6, and 2.14 where it differs) in one job: hosting and being hosted,
ranks, restarts, joining, leaving, closing, and clocks that differ."""
import re
import signal

import pytest

from harness import BUILD, SCRIPTS, SUPPORT, one_line, peer, until
from nodes import SHOW, Job, ends, listening, ranks, starts, states, tells

LATE = 75  # torchrun gives its workers 30 s to heed its signal before it goes on
with_both = pytest.mark.parametrize("version", ["2.6", "2.14"])  # whose torchrun, and whose workers


@pytest.fixture
def version():
    return "2.6"


@pytest.fixture
def job(lockstep, version):
    return Job(lockstep, version=version)


def worker_env(version):
    return {"PYTHON_EXEC": peer(version), "PYTHONPATH": SUPPORT / "torch-2.6", "OMP_NUM_THREADS": 1}


@pytest.fixture
def go(lockstep):
    return lockstep.folder / "go"


def both_end_well(ours, theirs):
    ended = ends(ours, theirs, timeout=LATE)
    assert "Traceback" not in ended[1].err and "rror waiting on exit barrier" not in ended[1].err, str(ended[1])
    return ended


# Rows 52 and 54: both ways round, unequal nodes, PyTorch workers under both agents: one sum. Ours has the lower
# address in one case, and with it rank 0 and the workers' store.
@with_both
@pytest.mark.parametrize("we_host, we_are_first", [(True, False), (False, True)])
def test_all_reduce(job, we_host, we_are_first):
    ours, theirs = (0, 1) if we_are_first else (1, 0)
    script = SCRIPTS / "all_reduce.py"
    their_run = job.torchrun(theirs, "-t", 1, script=script, nproc=2, host=not we_host)
    our_run = job.script(ours, script, args=("-t", 1), env=worker_env(job.version), host=we_host)
    our_end, their_end = both_end_well(our_run, their_run)
    assert re.findall(r"rank (\d) sum (\S+)", our_end.out) == [("0" if we_are_first else "2", "6.0")]
    assert sorted(re.findall(r"rank (\d) sum (\S+)", their_end.out)) == [
        (rank, "6.0") for rank in ("12" if we_are_first else "01")]


# The same with a restart between: the failed worker is ours; torchrun counts its own failures alone.
@with_both
def test_all_reduce_again_after_a_restart(job):
    script, once = SCRIPTS / "all_reduce.py", ("--fail-once", job.lockstep.folder / "once")
    their_run = job.torchrun(1, "-t", 1, "--max-restarts", 1, script=script, script_args=once, host=False)
    our_run = job.script(0, script, *once, args=("-t", 1, "--max-restarts", 1), env=worker_env(job.version), host=True)
    our_end, their_end = both_end_well(our_run, their_run)
    found = [re.findall(r"attempt (\d) rank (\d) sum (\S+)", end.out) for end in (our_end, their_end)]
    assert found == [[("0", "0", "3.0"), ("1", "0", "3.0")], [("0", "1", "3.0"), ("0", "1", "3.0")]]


# Row 58 the other way: a worker of torchrun's fails.
@with_both
def test_a_failure_of_theirs_restarts_ours(job):
    marks = job.lockstep.folder
    there = f"wait={marks}/ours"
    theirs = job.torchrun(0, "--max-restarts", 1, script_args=(SHOW, "%0", there, "exit=3"), host=True)
    ours = job.node(1, "--max-restarts", 1, actions=(SHOW, f"mark={marks}/ours", f"wait={marks}/again"), host=False)
    again = starts(ours, 2, LATE)
    assert starts(theirs, 2)[1]["TORCHELASTIC_RESTART_COUNT"] == "1"
    (marks / "again").touch()
    both_end_well(ours, theirs)
    assert [worker["RANK"] for worker in again] == ["1", "1"]
    assert len(tells(ours, "MASTER_PORT") | tells(theirs, "MASTER_PORT")) == 1


# Row 53: three kinds of agents in one job, each with workers of its own PyTorch.
def test_both_torchruns_and_ours(job):
    script = SCRIPTS / "all_reduce.py"
    theirs = [job.torchrun(number, "-t", 1, script=script, version=version, nnodes="3", host=False)
              for number, version in ((1, "2.14"), (2, "2.6"))]
    ours = job.script(0, script, args=("-t", 1), env=worker_env("2.14"), nnodes="3", host=True)
    ended = ends(ours, *theirs, timeout=LATE)
    assert [re.findall(r"torch (\d+\.\d+).* rank (\d) sum (\S+)", end.out) for end in ended] == [
        [("2.14", "0", "6.0")], [("2.14", "1", "6.0")], [("2.6", "2", "6.0")]]


# Row 53, with two of ours: ranks follow the addresses, whoever hosts and completes the round, and no order of ours.
def test_three_agents(job):
    ours = [job.node(2, "--rank-order", "host", nnodes="3", host=True),
            job.node(0, "--rank-order", "host", nnodes="3", host=False)]
    theirs = job.torchrun(1, nnodes="3", nproc=2, script_args=(SHOW,), host=False)
    ends(*ours, theirs, timeout=LATE)
    assert ranks(ours[1]) == [0] and sorted(ranks(theirs)) == [1, 2] and ranks(ours[0]) == [3]


# Row 57: torchrun comes to a job of ours, and the other way round.
@with_both
@pytest.mark.parametrize("they_come", [True, False])
def test_elastic_join(job, go, they_come):
    options = dict(nnodes="1:2", settings="last_call_timeout=1")
    actions = (SHOW, f"wait={go}")
    def start(number, host):
        if (number == 1) == they_come:
            return job.torchrun(number, script_args=actions, host=host, **options)
        return job.node(number, actions=actions, host=host, **options)
    first = start(0, True)
    assert starts(first, 1, LATE)[0]["WORLD_SIZE"] == "1"
    second = start(1, False)
    (joined,) = starts(second, 1, LATE)
    again = starts(first, 2, LATE)[1]
    go.touch()
    both_end_well(*((first, second) if they_come else (second, first)))
    assert (again["RANK"], joined["RANK"]) == ("0", "1")
    assert again["WORLD_SIZE"] == joined["WORLD_SIZE"] == "2"
    assert again["TORCHELASTIC_RESTART_COUNT"] == "0"


# torchrun tells nobody that it goes: it is missed, and its place taken, when its heartbeat is 15 s old.
def test_a_node_of_ours_takes_the_place_of_a_lost_torchrun(job, go):
    actions = (SHOW, f"wait={go}")
    ours = job.node(0, actions=actions, host=True)
    theirs = job.torchrun(1, script_args=actions, host=False)
    starts(theirs, 1, LATE), starts(ours, 1)
    spare = job.node(2, actions=actions, host=False)
    until(lambda: states(job)["redundancy_list"], what="the spare is on its list")
    for pid in theirs.living():
        theirs.signal(signal.SIGKILL, pid)
    theirs.wait()
    (taken,) = starts(spare, 1, LATE)
    assert (taken["RANK"], taken["WORLD_SIZE"]) == ("1", "2")
    starts(ours, 2)
    go.touch()
    ends(ours, spare)


# Ours leaves a job of torchrun's; another one of ours comes in its place.
def test_a_node_of_ours_leaves(job, go):
    actions = (SHOW, f"wait={go}")
    theirs = job.torchrun(0, script_args=actions, host=True)
    ours = job.node(1, actions=actions, host=False)
    starts(theirs, 1, LATE), starts(ours, 1)
    ours.signal(signal.SIGTERM)
    ends(ours, rc=1)
    assert [node[0] for node, _ in states(job)["participants"]] == ["127.0.0.2"]
    other = job.node(2, actions=actions, host=False)
    starts(other, 1, LATE), starts(theirs, 2, LATE)
    go.touch()
    both_end_well(other, theirs)
    assert tells(other, "WORLD_SIZE") == {"2"}


# Row 61, over a store that outlives the job: closed is closed for both, whoever closed it.
def test_closed(job):
    store = job.lockstep.start("--port", job.port, program=(BUILD / "lockstep", "store"))
    listening(job.port)
    both_end_well(job.node(0, host=False), job.torchrun(1, script_args=(SHOW,), host=False))
    one_line(job.node(0, host=False).wait(10), 1, "is closed", "--rdzv-id")
    theirs = job.torchrun(1, script_args=(SHOW,), host=False).wait(LATE)
    assert theirs.rc == 1 and "RendezvousClosedError" in theirs.err, str(theirs)
    store.signal(signal.SIGTERM)
    store.wait()


# Row 59: the last failure of ours ends our agent, and torchrun, whose worker is done, is not kept in its barrier for
# 300 s when we host: the store is gone.
def test_the_last_failure_of_ours(job, go):
    theirs = job.torchrun(1, script_args=(SHOW, f"mark={go}"), host=False)
    ours = job.node(0, actions=(SHOW, f"wait={go}", "exit=3"), host=True, settings="close_timeout=1")
    ends(ours, rc=1, timeout=LATE)
    theirs.wait(10)


# ... and ours, whose worker is done, does not wait for a torchrun that has failed and closed the rendezvous.
def test_the_last_failure_of_theirs(job, go):
    theirs = job.torchrun(1, script_args=(SHOW, f"wait={go}", "exit=3"), host=False)
    ours = job.node(0, actions=(SHOW, f"mark={go}"), host=True)
    ends(theirs, rc=1, timeout=LATE)
    ended = ours.wait(10)
    assert ended.rc == 0, str(ended)


# Row 50 in both mixes: node rank 0 hosts, at the port that was given.
@with_both
@pytest.mark.parametrize("we_host", [True, False])
def test_static(lockstep, version, we_host):
    job = Job(lockstep, "static", version)
    ours, theirs = (0, 1) if we_host else (1, 0)
    their_run = job.torchrun(theirs, script_args=(SHOW,), nproc=2)
    our_run = job.node(ours, nproc=1)
    both_end_well(our_run, their_run)
    assert sorted(ranks(our_run)) == ([0] if we_host else [2])
    assert sorted(ranks(their_run)) == ([1, 2] if we_host else [0, 1])
    assert tells(our_run, "MASTER_PORT") == tells(their_run, "MASTER_PORT") == {str(job.port)}


# Row 71: 15 s and more make torchrun's agents evict one another; not us, whichever clock is wrong.
@pytest.mark.parametrize("ahead", [8, 20, -20])
def test_clocks_that_differ(job, go, ahead):
    actions = (SHOW, f"wait={go}")
    ours = job.node(0, actions=actions, host=True)
    listening(job.port)
    until(lambda: states(job)["participants"], what="we wait for torchrun")
    theirs = job.torchrun(1, script_args=actions, env={"PEER_CLOCK_AHEAD": ahead}, host=False)
    starts(ours, 1, LATE), starts(theirs, 1, LATE)
    go.touch()
    both_end_well(ours, theirs)
    assert tells(ours, "GROUP_WORLD_SIZE") == tells(theirs, "GROUP_WORLD_SIZE") == {"2"}
