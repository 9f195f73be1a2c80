"""The lockstep backend in the real binary: the rules that all backends share (the tests of test_nodes.py over
lockstep), the job token, nodes that are lost, frozen and replaced, and strangers at the hub's port."""
import os
import signal
import socket
import struct

import pytest

from harness import read, until
from nodes import QUICK, SHOW, Job, ends, kill_agent, listening, need_torchrun, ranks, says, shown, starts
from tcp_store import closed_by_peer
# The same promises: collected here with this file's `job` and `dynamic`.
from test_nodes import (  # noqa: F401
    test_a_failure_reaches_a_node_that_is_done, test_a_node_that_is_told_to_stop_tells_at_once,
    test_a_signal_to_one_agent_of_a_fixed_job_ends_it,
    test_a_signal_to_one_agent_of_an_elastic_job_leaves_the_others, test_a_signal_while_waiting_for_others,
    test_a_wrong_endpoint, test_exit_code_of_the_root_cause_on_every_node, test_one_restart_counter,
    test_rank_order, test_restarts_left_are_the_same_on_every_node, test_restarts_of_all_nodes_share_one_limit,
    test_roles, test_the_last_failure_is_told_to_all_at_once)
from test_nodes_lost import (  # noqa: F401
    test_a_frozen_guest_learns_that_it_was_given_up, test_a_lost_node_where_min_does_not_allow_it,
    test_the_host_of_the_store_is_killed)

SECRET = "s3cret-of-this-job"
PREAMBLE = b"LOCKSTEP HUB\r\n\r\n"
HELLO = struct.pack("<HB", 4, 0) + bytes(32)  # of no token, as far as the nonces


def frame(kind, fields=b""):
    return struct.pack("<IB", len(fields) + 1, kind) + fields


def line(text):
    return struct.pack("<I", len(text)) + text.encode()


class HubJob(Job):
    """The node that is started first hosts."""

    def __init__(self, lockstep):
        super().__init__(lockstep, "lockstep")
        self.is_hosted = False

    def node(self, *args, **options):
        run = super().node(*args, **options)
        if not self.is_hosted and options.get("host") is not False:
            listening(self.port)
            self.is_hosted = True
        return run


@pytest.fixture
def job(lockstep):
    return HubJob(lockstep)


@pytest.fixture
def dynamic(job):
    return job


@pytest.fixture
def go(lockstep):
    return lockstep.folder / "go"


def held(job, count, *args, wait, **options):
    """Nodes whose workers wait for a file; number 0 hosts."""
    runs = [job.node(number, *args, actions=(SHOW, f"wait={wait}"), **options) for number in range(count)]
    for run in runs:
        starts(run, 1)
    return runs


# --- ranks ---


def test_the_host_is_first_and_then_the_addresses(job):
    host = job.node(1, nnodes="3", nproc=2)
    runs = [job.node(0, nnodes="3"), host, job.node(2, nnodes="3", nproc=3)]
    ends(*runs)
    assert [sorted(ranks(run)) for run in runs] == [[2], [0, 1], [3, 4, 5]]
    for run in runs:
        assert {(worker["WORLD_SIZE"], worker["MASTER_ADDR"]) for worker in shown(run)} == {("6", "127.0.0.3")}


def test_without_a_word_on_backends(job):
    """--nnodes and an endpoint are all that a user gives."""
    runs = [job.lockstep.start_worker("--nnodes", 2, "--rdzv-endpoint", job.endpoint, actions=(SHOW,))
            for _ in range(2)]
    ended = ends(*runs)
    assert sorted(ranks(runs[0]) + ranks(runs[1])) == [0, 1]
    assert not any(end.err for end in ended), "a loopback endpoint is open to nobody else"


def test_a_hub_that_the_network_reaches_says_once_that_it_is_open(job):
    name = socket.gethostname()
    runs = [job.node(0, "--rdzv-endpoint", f"{name}:{job.port}", host=True)]
    runs.append(job.node(1, host=False))
    ended = ends(*runs)
    assert ended[0].err.count("no job token is set: any program that reaches port") == 1
    assert "--rdzv-token-file" in ended[0].err
    assert "no job token" not in ended[1].err


# --- nodes that come, go and freeze ---


def test_a_second_node_joins_and_nobody_counts_a_restart(job, go):
    options = dict(nnodes="1:2", settings="last_call_timeout=1", actions=(SHOW, f"wait={go}"))
    first = job.node(1, **options)
    assert starts(first, 1)[0]["WORLD_SIZE"] == "1"
    second = job.node(0, **options)
    again, joined = starts(first, 2)[1], starts(second, 1)[0]
    go.touch()
    ended = ends(first, second)
    assert [(worker["RANK"], worker["WORLD_SIZE"], worker["TORCHELASTIC_RESTART_COUNT"])
            for worker in (again, joined)] == [
        ("0", "2", "0"), ("1", "2", "0")]
    assert "new nodes want to take part" in ended[0].err


# Of three spares one is told to go, one takes the killed node's place, one was not needed.
def test_spares(job, go):
    runs = held(job, 2, wait=go)
    told, *spares = [job.node(number, actions=(SHOW, f"wait={go}")) for number in (2, 3, 4)]
    for spare in (told, *spares):
        says(spare, "this one is a spare")
    told.signal(signal.SIGTERM)
    assert told.wait().rc == 143
    kill_agent(runs[1])
    again = starts(runs[0], 2, 5)[1]
    (taken,) = until(lambda: shown(spares[0]) + shown(spares[1]), 5)
    go.touch()
    ends(runs[0], *spares)
    assert (again["RANK"], taken["RANK"], taken["WORLD_SIZE"]) == ("0", "1", "2")
    assert again["TORCHELASTIC_RESTART_COUNT"] == taken["TORCHELASTIC_RESTART_COUNT"] == "0"
    assert len(shown(spares[0]) + shown(spares[1])) == 1


def test_a_killed_agent_where_min_allows_it(job, go):
    runs = held(job, 3, nnodes="2:3", settings="last_call_timeout=1", wait=go)
    kill_agent(runs[1])
    for run, rank in ((runs[0], "0"), (runs[2], "1")):
        again = starts(run, 2, 3)[1]  # closed connections are seen at once
        assert (again["WORLD_SIZE"], again["RANK"], again["TORCHELASTIC_RESTART_COUNT"]) == ("2", rank, "0")
    go.touch()
    ends(runs[0], runs[2])


# Every node here is called the same; the hosts of test_hosts_faults.py have names.
def test_a_killed_agent_where_min_does_not_allow_it(job, go):
    runs = held(job, 3, nnodes="3", wait=go)
    kill_agent(runs[1])
    for end in ends(runs[0], runs[2], rc=1, timeout=5):
        assert f"{socket.gethostname()} is gone: " in end.err and "2 nodes are left of at least 3" in end.err, str(end)


def test_the_host_is_killed(job, go):
    host, *others = held(job, 3, nnodes="2:3", settings="last_call_timeout=1", wait=go)
    kill_agent(host)
    for end in ends(*others, rc=1, timeout=8):
        assert f"the host of the rendezvous at 127.0.0.1:{job.port} is gone" in end.err, str(end)


def finished(run):
    """Waits until the node's worker has ended, and the node waits for the others."""
    starts(run, 1)
    until(lambda: "test_worker" not in run.living().values(), what="the worker's end")


# They have nothing left to do, and nobody could tell them more: the run counts as good.
def test_the_host_is_killed_when_the_others_are_done(job, go):
    host, *others = [job.node(number, nnodes="3", actions=(SHOW, f"wait={go}") if number == 0 else (SHOW,))
                     for number in range(3)]
    for run in others:
        finished(run)
    kill_agent(host)
    for end in ends(*others, rc=0, timeout=8):
        assert f"the host of the rendezvous at 127.0.0.1:{job.port} is gone" in end.err, str(end)
    assert [len(shown(run)) for run in others] == [1, 1]


# What it had to do is not done: the others do it, those that were done as well.
def test_a_guest_is_killed_when_the_others_are_done(job, go):
    runs = [job.node(number, nnodes="2:3", settings="last_call_timeout=1",
                     actions=(SHOW, f"wait={go}") if number == 1 else (SHOW,))
            for number in range(3)]
    for run in (runs[0], runs[2]):
        finished(run)
    starts(runs[1], 1)
    kill_agent(runs[1])
    for run in (runs[0], runs[2]):
        ends(run)
        assert [worker["WORLD_SIZE"] for worker in shown(run)] == ["3", "2"]


# A frozen agent can't stop its workers; they go as soon as it wakes, and it is let in again.
def test_a_frozen_agent_wakes(job, go):
    runs = held(job, 3, nnodes="2:3", settings=QUICK + ",last_call_timeout=1", wait=go)
    frozen = runs[2].agent()
    (old,) = [pid for pid, comm in runs[2].living().items() if comm == "test_worker"]
    os.kill(frozen, signal.SIGSTOP)
    for run in runs[:2]:
        assert starts(run, 2, 8)[1]["WORLD_SIZE"] == "2"
    os.kill(frozen, signal.SIGCONT)
    until(lambda: old not in runs[2].living(), 3, "the old worker is gone")
    for run in runs[:2]:
        assert starts(run, 3)[2]["WORLD_SIZE"] == "3"
    assert starts(runs[2], 2)[1]["TORCHELASTIC_RESTART_COUNT"] == "0"
    says(runs[2], "the other nodes took this node for gone")
    go.touch()
    ends(*runs)


# With as few beats as may be missed, beside the host's own pauses: nobody is gone.
def test_a_host_that_was_frozen_finds_its_nodes_again(job, go):
    runs = held(job, 2, settings=QUICK, wait=go)
    os.kill(runs[0].agent(), signal.SIGSTOP)
    says(runs[1], "no sign of life for")
    os.kill(runs[0].agent(), signal.SIGCONT)
    for run in runs:
        assert starts(run, 2)[1]["TORCHELASTIC_RESTART_COUNT"] == "0"
    go.touch()
    ends(*runs)


def test_the_exit_barrier_can_be_bounded(job, go):
    host = job.node(0, actions=(SHOW, f"wait={go}"), settings=QUICK)
    guest = job.node(1, "--exit-barrier-timeout", 1, settings=QUICK)
    ended = guest.wait(10)
    assert ended.rc == 0 and "this node does not wait longer" in ended.err and 1 <= ended.seconds < 10, str(ended)
    go.touch()
    ends(host)


# It says that it stays, and for whom.
def test_a_host_out_of_patience_stays(job, go):
    host = job.node(0, "--exit-barrier-timeout", 1)
    guest = job.node(1, actions=(SHOW, f"wait={go}"))
    name = socket.gethostname()
    says(host, "this node does not wait longer",
         f"this node hosts the rendezvous and stays until the other nodes have left: {name} is still there")
    go.touch()
    ends(host, guest)


def test_a_host_that_leaves_before_the_others_says_so(job, go):
    host = job.node(0, "--exit-barrier-timeout", 0, settings="close_timeout=1")
    guest = job.node(1, actions=(SHOW, f"wait={go}"))
    ended = host.wait(20)
    assert ended.rc == 0, str(ended)
    assert "close_timeout (1 s) is over: this node hosts the rendezvous no longer for " in ended.err, str(ended)
    assert guest.wait(30).rc == 1


def test_the_exit_barrier_names_those_who_are_not_there(job, go):
    guest = job.node(0, nnodes="3", actions=(SHOW, f"wait={go}")), job.node(1, nnodes="3", actions=(SHOW, f"wait={go}"))
    done = job.node(2, nnodes="3")
    name = socket.gethostname()
    says(done, f"waiting for 5 s: the workers of 2 of 3 nodes to end: {name}, {name}")
    go.touch()
    ends(*guest, done)


# --- timeouts: no node has a place, so none is a spare ---


def test_a_host_out_of_patience_takes_nobody_for_a_spare(job):
    runs = [job.node(0, nnodes="3", settings="join_timeout=6"), job.node(1, nnodes="3")]
    ended = ends(*runs, rc=1)
    words = f"joining the rendezvous '{job.id}' timed out after"
    assert words in ended[0].error_lines[-1], str(ended[0])
    given_up = f"{socket.gethostname()}, the host of the rendezvous, has given up: {words}"
    assert given_up in ended[1].error_lines[-1], str(ended[1])


def test_a_guest_out_of_patience_leaves_the_others_to_wait(job):
    host = job.node(0, nnodes="3")
    ended = job.node(1, nnodes="3", settings="join_timeout=2").wait(10)
    assert ended.rc == 1 and "timed out after 2 s" in ended.error_lines[-1], str(ended)
    ends(host, *[job.node(number, nnodes="3") for number in (2, 3)])


# --- the token ---


@pytest.fixture
def key(lockstep):
    path = lockstep.folder / "key"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return path


# By file on one side, by variable on the other; nobody else sees it.
def test_the_same_token_and_where_it_is_not(job, key, go):
    actions = (SHOW, f"env={job.lockstep.facts}", f"touch={job.lockstep.facts}", f"wait={go}")
    runs = [job.node(0, "--rdzv-token-file", key, "-r", 3, "--log-dir", job.lockstep.logs, actions=actions,
                     env={"LOGLEVEL": "DEBUG"}),
            job.node(1, actions=actions, env={"LOCKSTEP_RDZV_TOKEN": SECRET, "LOGLEVEL": "DEBUG"})]
    job.lockstep.ready(2)
    for run in runs:
        living = run.living()
        assert len(living) >= 3, living
        for pid in living:
            for part in ("cmdline", "environ"):
                assert SECRET not in read(f"/proc/{pid}/{part}"), f"{part} of {living[pid]}"
    for rank in (0, 1):
        assert SECRET not in str(job.lockstep.worker_env(rank))
    go.touch()
    for end in ends(*runs):
        assert SECRET not in end.out + end.err
    for path in job.lockstep.folder.rglob("*"):
        assert path == key or not path.is_file() or SECRET not in read(path), path


@pytest.mark.parametrize("host, guest, words", [
    (SECRET, "another", "the job token of {} does not match the rendezvous"),
    (SECRET, None, "wants a job token, and {} has none"),
    (None, SECRET, "{} has a job token, and the host of the rendezvous")])
def test_tokens_that_differ(job, host, guest, words):
    words = words.format(socket.gethostname())
    first = job.node(0, env={"LOCKSTEP_RDZV_TOKEN": host}, settings="join_timeout=60")
    ended = job.node(1, env={"LOCKSTEP_RDZV_TOKEN": guest}).wait(10)
    assert ended.rc == 1 and len(ended.error_lines) == 1, str(ended)
    assert words in ended.err and "--rdzv-token-file" in ended.err, str(ended)
    assert not any(secret and secret in ended.err + first.err() for secret in (host, guest))
    assert "the endpoint" not in ended.err, str(ended)
    says(first, "turned 127.0.0.1:", words)
    right = job.node(1, env={"LOCKSTEP_RDZV_TOKEN": host})  # it is still waited for
    ends(first, right)


def test_a_hub_that_does_not_know_the_token_is_not_believed(job):
    """A false host learns nothing and gets no node."""
    with socket.create_server(("127.0.0.1", job.port)) as fake:
        run = job.node(1, host=False, env={"LOCKSTEP_RDZV_TOKEN": SECRET})
        peer, _ = fake.accept()
        peer.sendall(PREAMBLE + frame(2, bytes(16)) + frame(4, bytes(32) + struct.pack("<II", 1000, 5000)))
        seen = b""
        while piece := peer.recv(65536):
            seen += piece
        peer.close()
    ended = run.wait()
    assert ended.rc == 1 and "the host does not know the job token" in ended.err, str(ended)
    assert seen.startswith(PREAMBLE) and SECRET.encode() not in seen


# --- settings that do not fit ---


def test_two_agents_of_one_node_rank(job):
    first = job.node(0, "--rank-order", "node-rank", "--node-rank", 1, nnodes="3")
    ended = job.node(1, "--rank-order", "node-rank", "--node-rank", 1, nnodes="3").wait(10)
    assert ended.rc == 1 and "two nodes have --node-rank 1: " in ended.err, str(ended)
    assert "127.0.0.2" in ended.err and "127.0.0.3" in ended.err
    says(first, "turned 127.0.0.1:", "away: two nodes have --node-rank 1: ")
    first.signal(signal.SIGTERM)
    assert first.wait().rc == 143


def test_different_nnodes(job):
    first = job.node(0, nnodes="3")
    ended = job.node(1, nnodes="2:4").wait(10)
    assert ended.rc == 1 and "asks for --nnodes 2:4" in ended.err and "opened with --nnodes 3" in ended.err, str(ended)
    says(first, "turned 127.0.0.1:", f"away: {socket.gethostname()} asks for --nnodes 2:4")
    first.signal(signal.SIGTERM)
    assert first.wait().rc == 143


# A hub that is kept up by a guest that does not go takes nobody in any more; then the run id is as good as new.
def test_a_run_id_that_is_used_again(job):
    host = job.node(0, settings="close_timeout=3")
    with socket.create_connection(("127.0.0.1", job.port), 5) as idle:
        idle.sendall(PREAMBLE + frame(1, HELLO + line(job.id) + line("idle")))
        assert idle.recv(4096)
        job.node(1).wait()
        starts(host, 1)
        ended = job.node(1).wait()
        assert ended.rc == 1 and f"the rendezvous '{job.id}' is closed: the job has ended well" in ended.err, str(ended)
    ends(host)
    job.is_hosted = False
    again = [job.node(number) for number in (0, 1)]
    ends(*again)
    assert sorted(ranks(again[0]) + ranks(again[1])) == [0, 1]


# --- strangers ---


def test_a_torchrun_that_knocks_is_named(job, go):
    need_torchrun()
    first = job.node(0, settings="join_timeout=300")
    knock = Job(job.lockstep)
    knock.port, knock.endpoint = job.port, job.endpoint
    theirs = knock.torchrun(1, script_args=(SHOW,), host=False, settings="read_timeout=1")
    says(first, "a c10d client (torchrun, or --rdzv-backend c10d) at 127.0.0.1:", "--rdzv-backend c10d", deadline=120)
    theirs.kill()
    second = job.node(1)
    ends(first, second)


@pytest.mark.parametrize("sent", [
    b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x02\x00", bytes(range(256)) * 64,
    PREAMBLE + struct.pack("<I", 0xffffffff), PREAMBLE + struct.pack("<I", 0), PREAMBLE + frame(250),
    PREAMBLE + frame(1, b"\xff" * 2000), PREAMBLE + frame(13, bytes(8)),
    PREAMBLE + frame(1, HELLO + struct.pack("<I", 0x7fffffff) + b"job")], ids=lambda sent: repr(sent[:24]))
def test_garbage_closes_that_connection_only(busy, sent):
    with socket.create_connection(("127.0.0.1", busy.port), 5) as peer:
        peer.sendall(sent)
        assert closed_by_peer(peer)


# Unfinished greetings, byte by byte and not at all: nobody else waits for them.
def test_slow_strangers_hold_nobody_up(busy):
    peers = [socket.create_connection(("127.0.0.1", busy.port), 5) for _ in range(200)]
    for number, peer in enumerate(peers):
        peer.sendall((PREAMBLE + frame(1, HELLO))[:number % 50])
    third = busy.node(2, nnodes="3")
    assert "asks for --nnodes 3" in third.wait().err
    busy.lockstep.runs.remove(third)
    for peer in peers:
        peer.close()


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A job that runs under attacks on its port, and ends well in its first round."""
    from harness import Lockstep
    lockstep = Lockstep(tmp_path_factory.mktemp("busy"))
    job, go = HubJob(lockstep), lockstep.folder / "go"
    runs = held(job, 2, wait=go)
    yield job
    go.touch()
    try:
        ends(*lockstep.runs)
        assert [len(shown(run)) for run in runs] == [1, 1]
    finally:
        assert not lockstep.close()
