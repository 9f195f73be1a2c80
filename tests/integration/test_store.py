"""The command `lockstep store`, the byte samples of the protocol's two dialects, and its limits in number and
size. Every operation and every kind of bad peer is in test_store_wire.py."""
import os
import re
import resource
import signal
import socket
import struct
import time

import pytest

from harness import BINARY, status_of, until
from tcp_store import ECHO, HANDSHAKE, Client, text


@pytest.fixture
def store(lockstep):
    """A store of its own process; the address, and the run."""
    def many():
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    run = lockstep.start("--host", "127.0.0.1", "--port", 0, program=[BINARY, "store"], preexec_fn=many)
    said = until(lambda: re.search(r":(\d+)\s*$", run.out() + run.err(), re.M), what="the port")
    run.address = ("127.0.0.1", int(said[1]))
    yield run
    assert run.process.poll() is None
    run.signal(signal.SIGTERM)
    assert run.wait().rc in (0, 1, 143, -15)


@pytest.mark.parametrize("dialect", ["A", "D"])
def test_byte_samples(store, dialect):
    one = 1 if dialect == "D" else 0
    peer = Client(store.address, dialect)

    def exchange(opcode, rest, reply=""):
        peer.send(bytes([opcode + one]) + bytes.fromhex(rest))
        assert peer.receive(len(bytes.fromhex(reply))) == bytes.fromhex(reply)

    exchange(3, "0500000000000000 696E69742F 0100000000000000", "0100000000000000")  # ADD init/ 1
    exchange(0, "0300000000000000 2F6B31 0200000000000000 7631")  # SET k1=v1
    exchange(5, "0100000000000000 0300000000000000 2F6B31", "00")  # WAIT [k1]
    exchange(2, "0300000000000000 2F6B31", "0200000000000000 7631")  # GET k1
    exchange(3, "0400000000000000 2F637472 0500000000000000", "0500000000000000")  # ADD ctr 5
    exchange(3, "0400000000000000 2F637472 F9FFFFFFFFFFFFFF", "FEFFFFFFFFFFFFFF")  # ADD ctr -7
    exchange(2, "0400000000000000 2F637472", "0200000000000000 2D32")  # "-2"
    exchange(4, "0200000000000000 0300000000000000 2F6B31 0500000000000000 2F6E6F7065", "01")  # CHECK [k1, nope]
    exchange(1, "0400000000000000 2F636173 0000000000000000 0100000000000000 41", "0100000000000000 41")  # CAS ""->A
    exchange(1, "0500000000000000 2F63617332 0100000000000000 58 0100000000000000 41", "0100000000000000 58")
    exchange(6, "", "0400000000000000")  # init/, k1, ctr, cas


def test_both_dialects_share_the_keys(store):
    old, new = Client(store.address, "A"), Client(store.address, "D")
    old.set("/k", b"\0\xff binary")
    old.get("/k")  # a SET has no answer: only what follows on its connection is sure to come after it
    assert new.get("/k") == b"\0\xff binary"
    assert new.add("/n", 3) == 3 and old.add("/n", 4) == 7
    assert old.delete("/k") == 1 and new.delete("/k") == 0


def test_multi_get_of_4096_keys(store):
    peer = Client(store.address)
    names = [f"/key{i}" for i in range(4096)]
    peer.op(11, struct.pack("<Q", len(names)), *(text(n) + text(n.upper()) for n in names))
    peer.keys(10, names)
    assert [peer.value() for _ in names] == [n.upper().encode() for n in names]


def test_pipelined_requests_are_answered_in_order(store):
    peer = Client(store.address)
    peer.send(b"".join(bytes([4]) + text("/n") + struct.pack("<q", 1) for _ in range(10000)))
    assert [peer.number() for _ in range(10000)] == list(range(1, 10001))


def test_a_claimed_gigabyte_is_not_reserved(store):
    before = int(status_of(store.pid)["VmRSS"].split()[0])
    peers = [Client(store.address) for _ in range(20)]
    for peer in peers:
        peer.send(bytes([1]) + text("/k") + struct.pack("<Q", 1 << 29) + b"x" * 1000)
    assert Client(store.address).add("/n", 1) == 1
    assert int(status_of(store.pid)["VmRSS"].split()[0]) - before < 16 << 10


def test_vanished_clients_leave_nothing(store):
    for _ in range(200):
        peer = Client(store.address)
        peer.wait("/never")
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.socket.close()
    other = Client(store.address)
    other.set("/never", "x")
    until(lambda: len(os.listdir(f"/proc/{store.pid}/fd")) < 40)


def test_ten_thousand_connections(store):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 10000
    if hard < count + 200:
        pytest.skip(f"at most {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    peers = []
    try:
        for _ in range(count):
            peers.append(socket.create_connection(store.address, 10))
        for peer in peers[::100]:
            peer.sendall(HANDSHAKE)
        for peer in peers[::100]:
            assert peer.recv(4) == ECHO
        assert Client(store.address).add("/n", 1) == 1
    finally:
        for peer in peers:
            peer.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# Row 70 of the specification's table: as a large c10d job does it, in the bytes of its state.
def test_two_thousand_agents_and_the_state_of_a_thousand_nodes(store):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    state = b"A" * 160_000  # PyTorch bounds the state of 1,000 nodes to that
    peers = [Client(store.address) for _ in range(2000)]
    peers[0].set("/torch.rendezvous.big", state)
    assert peers[0].get("/torch.rendezvous.big") == state  # there for the others, too
    start = time.monotonic()
    for peer in peers:  # all ask at once, nobody reads yet: the store must not hold all answers for long
        peer.op(3, text("/torch.rendezvous.big"))  # GET
    for peer in peers:
        assert peer.value() == state
    for peer in peers:
        peer.op(4, text("/joined"), struct.pack("<q", 1))  # ADD
    counts = [peer.number() for peer in peers]
    assert sorted(counts) == list(range(1, 2001))
    assert time.monotonic() - start < 10
    peak_kb = int(status_of(store.pid)["VmHWM"].split()[0])
    assert peak_kb < 512 << 10, f"{peak_kb} kB"


def test_stats_are_printed(lockstep):
    run = lockstep.start("--port", 0, "--print-stats", program=[BINARY, "store"])
    said = until(lambda: re.search(r":(\d+)\s*$", run.out() + run.err(), re.M), what="the port")
    peer = Client(("127.0.0.1", int(said[1])))
    peer.set("/k", "v")
    assert peer.add("/n", 1) == 1
    until(lambda: re.search(r"(?i)\bset\b.*1", run.err()), 4, "counts of requests")
    run.signal(signal.SIGTERM)
    assert run.wait().rc == 0


def test_port_taken(lockstep):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        ended = lockstep.run("--port", holder.getsockname()[1], program=[BINARY, "store"])
    assert ended.rc == 1
    assert str(os.getpid()) in ended.err
