"""The etcd3 backend when etcd, its leader or another node dies, freezes or comes back at a bad moment. Real agents,
real etcd."""
import os
import re
import signal
import time

import pytest

import etcd_server as etcd
from harness import children, until
from nodes import Job, ends, says, shown


@pytest.fixture
def server(tmp_path):
    cluster = etcd.Cluster(tmp_path / "etcd").start()
    yield cluster
    cluster.close()


@pytest.fixture
def job(lockstep, server):
    made = Job(lockstep, "etcd3")
    made.endpoint = server.places
    return made


def leading(job, server):
    return server.ctl("get", f"/lockstep/rendezvous/{job.id}/leader", "--print-value-only").strip()


def test_etcd_goes_as_the_job_ends(job, server, tmp_path):
    """The leader cannot write its last record, loses its lease, and ends all the same."""
    done = tmp_path / "done"
    work = (f"touch={tmp_path}", f"wait={done}")
    nodes = [job.node(i, actions=work, settings="read_timeout=6,close_timeout=10") for i in range(2)]
    until(lambda: len([f for f in tmp_path.iterdir() if f.name in "01"]) == 2)
    server.members[0].signal(signal.SIGSTOP)
    done.touch()
    ended = [node.wait(30) for node in nodes]
    server.members[0].signal(signal.SIGCONT)
    assert [end.rc for end in ended] == [0, 0], "\n\n".join(map(str, ended))
    assert max(end.seconds for end in ended) < 12


SHOW = "show=RANK,WORLD_SIZE,TORCHELASTIC_RESTART_COUNT"


def three(job, server, nnodes="2:3", settings="last_call_timeout=1"):
    """The first of them leads."""
    nodes = [job.node(0, nnodes=nnodes, actions=(SHOW, "pause"), settings=settings)]
    until(lambda: leading(job, server))
    nodes += [job.node(i, nnodes=nnodes, actions=(SHOW, "pause"), settings=settings) for i in (1, 2)]
    for node in nodes:
        until(lambda node=node: "WORLD_SIZE=3" in node.out(), 15, "three workers")
    return nodes


def rounds(node):
    return [int(number) for number in re.findall(r"round (\d+): node", node.err())]


def agent(run):
    return children(run.pid)[0]


def stop(nodes):
    for node in nodes:
        node.process.terminate()
    ends(*nodes, rc=1)


@pytest.mark.parametrize("who", [0, 1])
def test_a_frozen_agent(job, server, who):
    """An agent, leader or guest, is frozen beyond its lease: the others miss it, and it comes back as a guest."""
    nodes = three(job, server)
    others = [node for node in nodes if node is not nodes[who]]
    os.kill(agent(nodes[who]), signal.SIGSTOP)
    started = time.monotonic()
    for node in others:
        until(lambda node=node: shown(node)[-1]["WORLD_SIZE"] == "2", 15, "a round of two")
    print(f"re-formed after {time.monotonic() - started:.2f} s")
    os.kill(agent(nodes[who]), signal.SIGCONT)
    for node in nodes:
        until(lambda node=node: len(rounds(node)) > 1 and shown(node)[-1]["WORLD_SIZE"] == "3", 15, "a round of three")
    assert all(worker["TORCHELASTIC_RESTART_COUNT"] == "0" for node in nodes for worker in shown(node))
    assert len({rounds(node)[-1] for node in nodes}) == 1
    # etcd itself was never away.
    says(nodes[who], "this process did not run for", "this node asks for a new lease")
    assert "out of reach" not in nodes[who].err()
    stop(nodes)


def test_a_killed_leader(job, server):
    """The remaining nodes go on as soon as the lease is gone, with a new round number."""
    nodes = three(job, server)
    last = rounds(nodes[1])[-1]
    os.kill(agent(nodes[0]), signal.SIGKILL)
    started = time.monotonic()
    for node in nodes[1:]:
        until(lambda node=node: shown(node)[-1]["WORLD_SIZE"] == "2", 15, "a round of two")
    took = time.monotonic() - started
    print(f"re-formed after {took:.2f} s")
    assert took < 5
    assert {rounds(node)[-1] for node in nodes[1:]} == {last + 1}
    for node in nodes[1:]:
        says(node, "leads the rendezvous now: the last leader, 127.0.0.2:",
             ": 127.0.0.2, which led the rendezvous, is gone")
    assert sum("this node leads the rendezvous now" in node.err() for node in nodes[1:]) == 1
    stop(nodes[1:])


def test_no_round_while_etcd_is_away(job, server):
    """A round is not placed before etcd has recorded it, which happens once etcd answers again."""
    nodes = three(job, server, settings="last_call_timeout=1,lease_ttl=15")
    server.members[0].signal(signal.SIGSTOP)
    os.kill(agent(nodes[2]), signal.SIGKILL)
    until(lambda: "stopping the workers" in nodes[1].err(), 10, "the loss is noticed")
    counts = [len(rounds(node)) for node in nodes[:2]]
    time.sleep(1.5)  # nothing is to happen
    assert [len(rounds(node)) for node in nodes[:2]] == counts
    server.members[0].signal(signal.SIGCONT)
    for node in nodes[:2]:
        until(lambda node=node: shown(node)[-1]["WORLD_SIZE"] == "2", 15, "a round of two")
    stop(nodes[:2])


def test_etcd_away_for_good(job, server):
    """A clear end on every node, of about two leases."""
    nodes = three(job, server)
    server.members[0].signal(signal.SIGSTOP)
    started = time.monotonic()
    for end in ends(*nodes, rc=1):
        assert "etcd was out of reach for longer than the lease" in end.err
    assert time.monotonic() - started < 12
    server.members[0].signal(signal.SIGCONT)
