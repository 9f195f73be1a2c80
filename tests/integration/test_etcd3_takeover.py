"""The state of a job over etcd3 that survives its leader: workers that have succeeded, restarts, the end of the job."""
import json
import os
import pathlib
import signal

import pytest

from etcd_server import server  # noqa: F401
from harness import until
from nodes import SHOW, ends, kill_agent, ranks, shown, starts
from test_etcd3_jobs import EtcdJob

QUICK = "last_call_timeout=1"


@pytest.fixture
def meeting(lockstep, server):  # noqa: F811
    return EtcdJob(lockstep, server)


@pytest.fixture
def go(lockstep):
    return lockstep.folder / "go"


def facts(job):
    text = job.cluster.ctl("get", f"/lockstep/rendezvous/{job.id}/facts", "--print-value-only").strip()
    return json.loads(text) if text else {}


def three(job, actions, nnodes="2:3"):
    """The first of them leads and is rank 0."""
    runs = [job.node(0, nnodes=nnodes, settings=QUICK, actions=actions[0])]
    assert job.leader() == 0
    runs += [job.node(number, nnodes=nnodes, settings=QUICK, actions=actions[number])
             for number in range(1, len(actions))]
    for run in runs:
        starts(run, 1)
    return runs


def done(run):
    """Waits until the node's worker has ended, and the node waits for the others."""
    until(lambda: run.living() and "test_worker" not in run.living().values(), what="the worker's end")


def held(go):
    return (SHOW, f"wait={go}")


# --- workers that have ended well ---


def test_a_leader_that_had_finished_is_not_missed(meeting, go):
    """The last worker runs on under the next leader, and no worker restarts."""
    runs = three(meeting, [(SHOW,), (SHOW,), held(go)])
    until(lambda: facts(meeting).get("finished") == [0], what="the leader's own end is in etcd")
    done(runs[1])
    kill_agent(runs[0])
    until(lambda: meeting.leader() != 0, what="another leader")
    go.touch()
    ends(*runs[1:])
    assert [len(shown(run)) for run in runs] == [1, 1, 1]


def test_a_leader_that_had_not_finished_is_missed(meeting, go):
    """As with any node (test_lockstep_backend.py): its work is not done, so the other nodes do it."""
    runs = three(meeting, [held(go), (SHOW,), (SHOW,)])
    for run in runs[1:]:
        done(run)
    kill_agent(runs[0])
    ends(*runs[1:])
    for run in runs[1:]:
        assert [worker["WORLD_SIZE"] for worker in shown(run)] == ["3", "2"]
        assert shown(run)[1]["TORCHELASTIC_RESTART_COUNT"] == "0"


def test_a_leader_that_had_not_finished_and_is_needed(meeting, go):
    runs = three(meeting, [held(go), (SHOW,)], nnodes="2")
    done(runs[1])
    kill_agent(runs[0])
    (ended,) = ends(runs[1], rc=1)
    assert "1 node is left of at least 2" in ended.err and len(shown(runs[1])) == 1, str(ended)


# --- the end of the job ---


def test_a_final_failure_that_the_leader_never_hears_of(meeting, go):
    """The leader is frozen, and then killed. The others must not go on, as they would after the loss of a node."""
    fail = go.with_name("fail")
    runs = three(meeting, [held(go), (SHOW, f"wait={fail}", "exit=9"), held(go)], nnodes="1:3")
    os.kill(runs[0].agent(), signal.SIGSTOP)
    fail.touch()
    until(lambda: facts(meeting)["closed"], what="the end of the job in etcd")
    os.kill(runs[0].agent(), signal.SIGKILL)
    for end in ends(*runs[1:], rc=1):
        assert "(exitcode: 9)" in end.err, str(end)
    assert ranks(runs[2]) == [2]


# --- restarts ---


def restarted(job, go, count=2, **options):
    """Returns nodes that have used their only restart. The first node leads."""
    actions = (SHOW, "%0", "@0", "exit=5", "@*", f"wait={go}", "%1", f"wait={go}")
    runs = [job.node(0, "--max-restarts", 1, actions=actions, **options)]
    assert job.leader() == 0
    runs += [job.node(number, "--max-restarts", 1, actions=actions, **options) for number in range(1, count)]
    for run in runs:  # some may be stopped before they can show anything
        until(lambda run=run: counted(run)[-1:] == [("1", str(count))], 15, "the restart")
    return runs


def counted(run):
    return [(worker["TORCHELASTIC_RESTART_COUNT"], worker["WORLD_SIZE"]) for worker in shown(run)]


def is_pending(pid, number):
    fields = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return (int(fields["ShdPnd"], 16) | int(fields["SigPnd"], 16)) >> (number - 1) & 1 == 1


def test_a_job_that_was_stopped_begins_anew(meeting, go):
    runs = restarted(meeting, go)
    agents = [run.agent() for run in runs]
    for agent in agents:  # all are told before one can tell the others
        os.kill(agent, signal.SIGSTOP)
    for run in runs:
        run.signal(signal.SIGTERM)
    for agent in agents:  # the guardian in front of it passes the signal on in its own time
        until(lambda agent=agent: is_pending(agent, signal.SIGTERM), what="the signal is there")
    for agent in agents:
        os.kill(agent, signal.SIGCONT)
    ends(*runs, rc=1)
    before = facts(meeting)
    assert before["restarts"] == 1 and not before["closed"]
    again = restarted(meeting, go)
    assert counted(again[0]) == [("0", "2"), ("1", "2")]
    go.touch()
    ends(*again)


@pytest.mark.parametrize("lost", [0, 1])
def test_one_that_comes_back_into_a_running_job_does_not(meeting, go, lost):
    runs = restarted(meeting, go, count=3, nnodes="2:3", settings=QUICK)
    kill_agent(runs.pop(lost))
    for run in runs:
        until(lambda run=run: counted(run)[-1] == ("1", "2"), 15, "a round of two")
    back = meeting.node(lost, "--max-restarts", 1, nnodes="2:3", settings=QUICK, actions=(SHOW, f"wait={go}"))
    assert starts(back, 1)[0]["TORCHELASTIC_RESTART_COUNT"] == "1"
    go.touch()
    ends(back, *runs)
