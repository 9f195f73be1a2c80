"""Peers that load a store, or a job, up to its limits: other peers are still served."""
import base64
import json
import socket
import struct
import threading
import time

import pytest

from harness import free_port, until
from nodes import QUICK, SHOW, Job, ends, listening, starts
from tcp_store import Client
from test_lockstep_backend import HELLO, PREAMBLE, frame, line
from test_store_wire import A, D, keys, s, server, u64  # noqa: F401

PATIENCE = 10  # seconds; two watchers once took 35, and an error file 21


class Heartbeat:
    """A peer that adds 1 again and again. longest: the longest wait for a reply."""

    def __init__(self, server):
        self.peer = server.peer(D)
        self.longest = 0.0
        self.beats = 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.beat)

    def beat(self):
        while not self.stop.is_set():
            began = time.monotonic()
            self.peer.send("add", s("beat") + u64(1))
            self.peer.read(8)
            self.longest = max(self.longest, time.monotonic() - began)
            self.beats += 1
            time.sleep(0.01)

    def go_on(self):
        """Waits until the server has handled all that was sent so far, and all disconnects."""
        seen = self.beats
        until(lambda: self.beats >= seen + 20, 120, "the heart beats on")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *what):
        self.stop.set()
        self.thread.join()
        print(f"the longest gap: {self.longest * 1000:.0f} ms")
        assert self.longest < PATIENCE


def say(peer, blob):
    """Sends without reading; the server may close."""
    try:
        peer.socket.sendall(blob)
    except OSError:
        pass


def watches(server, go):
    peers = [server.peer(A), server.peer(A)]
    for peer in peers:
        say(peer, (bytes([A["watch"]]) + s("/k")) * 131_072)
    for peer in peers:
        peer.read(131_072)
    go.send("set", s("/k") + s("1"))
    for peer in peers:
        peer.close()


def changes_for_watchers(server, go):
    watching = [server.peer(A) for _ in range(50)]
    for peer in watching:
        say(peer, b"".join(bytes([A["watch"]]) + s(f"/w{i}") for i in range(1000)))
    say(go, (bytes([D["set"]]) + s("/w1") + s("x")) * 50_000)
    for peer in watching:
        peer.close()


def waits_for_many_keys(server, go):
    peer = server.peer(D)
    say(peer, (bytes([D["wait"]]) + keys(*["/never"] * 100_000)) * 20)
    many = server.peer(D)
    say(many, bytes([D["wait"]]) + keys(*(f"/q/{i}" for i in range(100_000))))
    say(go, b"".join(bytes([D["push"]]) + s(f"/q/{i}") + s("") for i in range(100_000)))
    many.close()
    peer.close()


def appends(server, go):
    watcher = server.peer(A)
    say(watcher, bytes([A["watch"]]) + s("/other"))
    say(go, bytes([D["set"]]) + s("/big") + s(b" " * (64 << 20)))
    say(go, (bytes([D["append"]]) + s("/big") + s("x")) * 2000)
    go.send("get", s("/not there"))  # the number is asked for once all of that is there
    go.read(8)
    for _ in range(10):
        blank = server.peer(D)
        say(blank, bytes([D["add"]]) + s("/big") + u64(1))
        assert blank.closed()
    watcher.close()


def replies_not_read(server, go):
    peers = [server.peer(D) for _ in range(20)]
    for peer in peers:
        say(peer, bytes([D["list"]]) * 100_000)
        say(peer, bytes([D["get"]]) + s("/big"))
    for peer in peers:
        peer.close()


@pytest.mark.parametrize("worst", [watches, changes_for_watchers, waits_for_many_keys, appends, replies_not_read])
def test_a_heartbeat_goes_on_beside(server, worst):
    go = server.peer(D)
    with Heartbeat(server) as heart:
        worst(server, go)
        go.send("get", s("/not there"))  # all before it has been served
        go.read(8)
        heart.go_on()
    go.close()


WORKER = """
import os, sys, time
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if attempt == 0 and os.environ["RANK"] == "0":
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
        file.write('{"message":{"message":"the reason","extraInfo":{"py_callstack":"Traceback: the reason"}')
        for i in range(95_000):
            file.write(',"%d":0' % i)
        file.write('}}')
    assert os.path.getsize(file.name) <= 1 << 20
    sys.exit(7)
if attempt == 0:
    time.sleep(600)
"""


def test_a_job_outlives_an_error_file_of_many_members(lockstep):
    """The restart and its reason are not lost, and the other node does not give this node up."""
    job = Job(lockstep)
    script = lockstep.folder / "worker.py"
    script.write_text(WORKER)
    began = time.monotonic()
    runs = [job.script(number, script, args=("--max-restarts", "1")) for number in range(2)]
    ended = ends(*runs, timeout=60)
    print(f"the job took {time.monotonic() - began:.1f} s")
    assert "the reason" in ended[0].err
    assert all("is gone" not in end.err for end in ended)


# --- two nodes that give each other up after 2 s of silence, and a peer that floods them ---


def two_nodes(job, go, settings="", first_env=None):
    both = ",".join(part for part in (QUICK, settings) if part)
    runs = []
    for number in range(2):
        runs.append(job.node(number, actions=(SHOW, f"wait={go}"), settings=both,
                             env=first_env if number == 0 else None))
        if job.backend == "lockstep" and number == 0:
            listening(job.port)
    for run in runs:
        starts(run, 1)
    return runs


def end_well(runs, go):
    go.touch()
    for end in ends(*runs, timeout=60):
        assert "is gone" not in end.err and "restart" not in end.err, str(end)


def feed(port, *blobs):
    """Sends everything over one connection, and reads nothing."""
    with socket.create_connection(("127.0.0.1", port), 10) as peer:
        peer.settimeout(30)
        try:
            for blob in blobs:
                peer.sendall(blob)
        except OSError:
            pass  # it was turned away, which is as good


def as_member(job):
    """Returns the frames of a guest up to its welcome, without a token."""
    return PREAMBLE + frame(1, HELLO + line(job.id) + line("stranger"))


def json_of_many_members():
    text = json.dumps({"failures": [], **{str(number): 0 for number in range(85_000)}})
    assert len(text) < 1 << 20
    return text


def reports(job):
    said = frame(15, struct.pack("<I", 1000) + line("stranger") + struct.pack("<i", 0) + line(json_of_many_members()))
    for _ in range(4):
        feed(job.port, as_member(job), *[said] * 50)


def beats(job):
    feed(job.port, as_member(job), *[frame(19, line("x" * 4096)) * 100] * 100)


def strangers(job):
    for _ in range(300):
        feed(job.port, PREAMBLE + frame(1, bytes(2000)) * 50)


@pytest.mark.parametrize("worst", [reports, beats, strangers])
def test_a_hub_goes_on_beside(lockstep, worst):
    job, go = Job(lockstep, "lockstep"), lockstep.folder / "go"
    runs = two_nodes(job, go)
    worst(job)
    end_well(runs, go)


def test_a_health_port_goes_on_beside(lockstep):
    """Heads as long as they may be, and longer, in small lines."""
    job, go, port = Job(lockstep, "lockstep"), lockstep.folder / "go", free_port()
    runs = two_nodes(job, go, first_env={"TORCHELASTIC_HEALTH_CHECK_PORT": port})
    listening(port)
    for _ in range(50):
        feed(port, b"GET / HTTP/1.1\r\n", b"a: b\r\n" * 200_000)
    end_well(runs, go)


def test_a_file_of_many_records(lockstep):
    job, go = Job(lockstep), lockstep.folder / "go"
    job.endpoint = lockstep.folder / "store"
    runs = two_nodes(job, go, settings="store_type=file")
    record = struct.pack("<I", 4) + b"/k%02d" + struct.pack("<I", 1) + b"x"
    with open(job.endpoint, "ab", buffering=0) as file:
        file.write(b"".join(record % (number % 100) for number in range(500_000)))
        file.write(struct.pack("<I", 4) + b"/big" + struct.pack("<I", 32 << 20) + b"x" * (32 << 20))
    end_well(runs, go)


def test_a_shared_state_of_many_items(lockstep):
    """Garbage in place of the state must not end a running round."""
    job, go = Job(lockstep), lockstep.folder / "go"
    runs = two_nodes(job, go)
    # A tuple of two, of two, ... : 2 ** 30 items, written as 30.
    nested = b"".join(b"q%ch%c\x86" % (number, number) for number in range(30))
    worst = base64.b64encode(b"\x80\x02K\x01" + nested + b".")
    client = Client(("127.0.0.1", job.port))
    enough = time.monotonic() + 3  # both read it once a second
    while time.monotonic() < enough:
        client.set(f"/torch.rendezvous.{job.id}", worst)
        assert client.get(f"/torch.rendezvous.{job.id}") == worst
    client.socket.close()
    end_well(runs, go)
