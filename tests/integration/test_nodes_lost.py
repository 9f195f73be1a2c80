"""Jobs of several Lockstep agents over c10d and static: a node is lost, frozen or given up, and a spare takes its
place. Every node is an agent with its own loopback address."""
import os
import shutil
import signal

import pytest

from harness import BUILD, until
from nodes import (  # noqa: F401
    QUICK, SHOW, alone, blames_no_worker, dynamic, ends, held, job, kill_agent, listening, says, shown, starts, states,
    static)
from tcp_store import Client


def test_a_spare_takes_the_place_of_a_lost_node(dynamic):
    go = dynamic.lockstep.folder / "go"
    runs = held(dynamic, 2, settings=QUICK, actions=(f"wait={go}",))
    spare = dynamic.node(2, settings=QUICK, actions=(SHOW, f"wait={go}"))
    until(lambda: states(dynamic)["redundancy_list"], what="the spare is on its list")
    kill_agent(runs[1])
    again = starts(runs[0], 2)[1]
    (taken,) = starts(spare, 1)
    go.touch()
    ends(runs[0], spare)
    assert (again["RANK"], taken["RANK"], again["WORLD_SIZE"]) == ("0", "1", "2")
    assert again["TORCHELASTIC_RESTART_COUNT"] == taken["TORCHELASTIC_RESTART_COUNT"] == "0"


def test_a_lost_node_where_min_allows_it(dynamic):
    go = dynamic.lockstep.folder / "go"
    runs = held(dynamic, 3, nnodes="2:3", settings=QUICK + ",last_call_timeout=1", actions=(f"wait={go}",))
    kill_agent(runs[1])
    for run, rank in ((runs[0], "0"), (runs[2], "1")):
        again = starts(run, 2)[1]
        assert (again["WORLD_SIZE"], again["RANK"], again["TORCHELASTIC_RESTART_COUNT"]) == ("2", rank, "0")
    go.touch()
    ended = ends(runs[0], runs[2])
    assert all("127.0.0.3 is gone (" in end.err for end in ended)
    for end in ended:
        assert "starting the workers of this node again with 2 nodes (this is not counted as a restart)" in end.err
        assert "restarting all workers" not in end.err


def test_a_lost_node_where_min_does_not_allow_it(job):
    runs = held(job, 3, nnodes="3", settings=QUICK, own=alone)
    kill_agent(runs[1])
    name = {"c10d": "127.0.0.3 is gone (connection closed)", "static": ") is gone (no heartbeat for 2 s)",
            "lockstep": "is gone: the connection was closed; 2 nodes are left of at least 3"}[job.backend]
    blames_no_worker(job, {0: runs[0], 2: runs[2]}, name)


# Workers of the other nodes that fail over it would fail the job: the agents know before that.
def test_a_lost_node_without_restarts(dynamic):
    go = dynamic.lockstep.folder / "go"
    runs = held(dynamic, 3, "--max-restarts", 0, nnodes="2:3", settings="last_call_timeout=1", actions=(f"wait={go}",))
    kill_agent(runs[1])
    for run in (runs[0], runs[2]):
        assert starts(run, 2, 5)[1]["WORLD_SIZE"] == "2"
    go.touch()
    for end in ends(runs[0], runs[2]):
        assert "127.0.0.3 is gone (connection closed)" in end.err, str(end)


# Left behind under another user id, and the agent has no CAP_KILL: as good as one that hangs in the kernel.
LEAVE_BEHIND = """
if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then
  setpriv --reuid=65534 --clear-groups sleep 1000 &
  until grep -q "^Uid:.65534" /proc/$!/status; do :; done
  exit 1
fi"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_heartbeats_go_on_while_a_leftover_cannot_be_killed(static):
    node0 = static.node(0, "--max-restarts", 1, settings=QUICK + ",entrypoint=any", actions=(SHOW, "%0", "pause"))
    listening(static.port)
    bound = ("setpriv", "--bounding-set=-kill", "--inh-caps=-kill")
    node1 = static.lockstep.start(*static.command(1, "--max-restarts", 1, settings=QUICK + ",entrypoint=any"),
                                  "--no-python", "/bin/sh", "-c", LEAVE_BEHIND,
                                  program=(*bound, BUILD / "lockstep", "run"))
    starts(node0, 1)
    (left,) = until(lambda: [pid for pid, comm in node1.living().items() if comm == "sleep"], what="a leftover")
    until(lambda: not any(comm == "sh" for comm in node1.living().values()), what="node 1 sweeps")
    peer = Client(("127.0.0.1", static.port))
    def beats():
        return peer.add(f"/{static.id}/lockstep/alive/1", 0)
    before = beats()
    until(lambda: beats() >= before + 3, 8, "heartbeats for longer than a silent node may live")
    assert len(shown(node0)) == 1, "the restart waits for the sweep"
    peer.socket.close()
    os.kill(left, signal.SIGKILL)
    ends(node0, node1)
    assert len(shown(node0)) == 2


# Row 63.
def test_the_host_of_the_store_is_killed(job):
    host, other = held(job, 2, own=alone)
    kill_agent(host)
    blames_no_worker(job, {1: other}, f"127.0.0.1:{job.port}", "is gone" if job.backend == "lockstep" else "is lost")


# Nobody closes its connections.
def test_the_host_of_the_store_is_frozen(static):
    host, other = held(static, 2, settings=QUICK)
    agent = host.agent()
    host.signal(signal.SIGSTOP, agent)
    (ended,) = ends(other, rc=1, timeout=10)
    assert "the store of node rank 0 at 127.0.0.1" in ended.err and "no heartbeat for 2 s" in ended.err, str(ended)
    host.signal(signal.SIGCONT, agent)
    (ended,) = ends(host, rc=1, timeout=10)
    assert "node 1" in ended.err, str(ended)


# Whichever is frozen until the other has given it up: the job failed, also for the one whose workers ended well
# meanwhile.
@pytest.mark.parametrize("frozen", [0, 1])
def test_a_frozen_node_ends_as_the_other_did(static, frozen):
    go = static.lockstep.folder / "go"
    runs = held(static, 2, settings=QUICK, actions=(f"wait={go}",))
    agent = runs[frozen].agent()
    runs[frozen].signal(signal.SIGSTOP, agent)
    go.touch()  # the workers of both end well
    (ended,) = ends(runs[1 - frozen], rc=1, timeout=15)
    runs[frozen].signal(signal.SIGCONT, agent)
    ends(runs[frozen], rc=1, timeout=15)


# The host says at once that the job has failed; the other one can't end well by itself.
def test_a_frozen_guest_learns_that_it_was_given_up(job):
    runs = held(job, 2, settings=QUICK)
    agent = runs[1].agent()
    runs[1].signal(signal.SIGSTOP, agent)
    says(runs[0], "the job has failed", "Root Cause (no worker failed by itself)")
    runs[1].signal(signal.SIGCONT, agent)
    ended = ends(*runs, rc=1)
    if job.backend == "c10d":
        assert "the job has failed: the other nodes gave up this node" in ended[1].err, str(ended[1])
