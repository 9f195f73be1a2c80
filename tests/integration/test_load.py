"""Peers that feed a store, or a job, the worst that its limits allow: whoever else is served goes on being served."""
import threading
import time

import pytest

from harness import until
from nodes import Job, ends
from test_store_wire import A, D, Server, keys, s, u64

PATIENCE = 10  # seconds; two watchers once took 35, and an error file 21


@pytest.fixture
def server():
    made = Server()
    yield made
    assert made.process.poll() is None, "the server died"
    made.process.terminate()
    assert made.process.wait(20) == 0


class Heartbeat:
    """One peer that adds 1 again and again; `longest` is the longest that it waited for a reply."""

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
        """Until the server has seen all that was sent so far, and who has gone."""
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
    """Its restart and its reason are not lost, and the other node does not give it up."""
    job = Job(lockstep)
    script = lockstep.folder / "worker.py"
    script.write_text(WORKER)
    began = time.monotonic()
    runs = [job.script(number, script, args=("--max-restarts", "1")) for number in range(2)]
    ended = ends(*runs, timeout=60)
    print(f"the job took {time.monotonic() - began:.1f} s")
    assert "the reason" in ended[0].err
    assert all("is gone" not in end.err for end in ended)
