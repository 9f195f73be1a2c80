"""The store on the wire, against `lockstep store`: every operation in both dialects byte for byte, peers
that misbehave, and PyTorch's own clients (this interpreter's 1.13, and the newer ones of `./dev peers`)."""
import pathlib
import select
import socket
import struct
import subprocess
import threading
import time

import pytest

import harness

HELLO = bytes.fromhex("00CEF7853C0D99120000")
D = dict(set=1, cas=2, get=3, add=4, check=5, wait=6, num_keys=7, delete=8, append=9, multi_get=10,
         multi_set=11, cancel=12, ping=13, push=14, pop=15, len=16, list=17, barrier=18)
A = dict(set=0, cas=1, get=2, add=3, check=4, wait=5, num_keys=6, watch=7, delete=8, multi_get=9,
         multi_set=10, cancel=11)


def u64(number):
    return struct.pack("<q", number)


def s(text):
    data = text.encode() if isinstance(text, str) else text
    return u64(len(data)) + data


def keys(*names):
    return u64(len(names)) + b"".join(map(s, names))


class Peer:
    """A raw client of one dialect."""

    def __init__(self, port, table):
        self.table = table
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if table is D:
            self.socket.sendall(HELLO)
            assert self.read(4) == HELLO[6:]

    def send(self, op, body=b""):
        self.socket.sendall(bytes([self.table[op]]) + body)

    def read(self, size):
        got = b""
        while len(got) < size:
            chunk = self.socket.recv(size - len(got))
            if not chunk:
                raise EOFError(f"closed after {got!r}")
            got += chunk
        return got

    def ask(self, op, body, reply):
        """Sends, and sees exactly this reply and nothing more (a CANCEL_WAIT's answer follows it)."""
        self.send(op, body)
        self.send("cancel")
        assert self.read(len(reply) + 1) == reply + b"\1", op

    def closed(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self):
        self.socket.close()


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([harness.BINARY, "store", "--host", "127.0.0.1", "--port", "0", *options],
                                        stdout=subprocess.PIPE, text=True)
        words = self.process.stdout.readline().split()
        assert words[:2] == ["listening", "on"], words
        self.host, port = words[2].rsplit(":", 1)
        self.port = int(port)

    def peer(self, table=D):
        return Peer(self.port, table)

    def rss_kb(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")


@pytest.fixture
def server():
    made = Server()
    yield made
    assert made.process.poll() is None, "the server died"
    made.process.terminate()
    assert made.process.wait(20) == 0


@pytest.mark.parametrize("table", [A, D], ids=["A", "D"])
def test_operations_both_dialects(server, table):
    p = server.peer(table)
    p.ask("add", s("init/") + u64(1), u64(1))
    p.ask("set", s("/k1") + s("v1"), b"")
    p.ask("wait", keys("/k1"), b"\0")
    p.ask("wait", keys(), b"\0")
    p.ask("get", s("/k1"), s("v1"))
    p.ask("set", s("/ctr") + s("5"), b"")
    p.ask("add", s("/ctr") + u64(-7), u64(-2))
    p.ask("get", s("/ctr"), s("-2"))
    p.ask("set", s("/text") + s("12abc"), b"")
    p.ask("add", s("/text") + u64(1), u64(13))
    p.ask("check", keys("/k1", "/nope"), b"\1")
    p.ask("check", keys("/k1"), b"\0")
    p.ask("cas", s("/cas") + s("") + s("A"), s("A"))
    p.ask("cas", s("/cas") + s("") + s("B"), s("A"))
    p.ask("cas", s("/cas") + s("A") + s("B"), s("B"))
    p.ask("cas", s("/cas2") + s("X") + s("A"), s("X"))
    p.ask("num_keys", b"", u64(5))
    p.ask("multi_set", u64(2) + s("/m1") + s("1") + s("/m2") + s(""), b"")
    p.ask("multi_get", keys("/m2", "/m1"), s("") + s("1"))
    p.ask("delete", s("/m1"), u64(1))
    p.ask("delete", s("/m1"), u64(0))


def test_operations_of_d(server):
    p = server.peer(D)
    p.ask("ping", b"\1\2\3\4", b"\1\2\3\4")
    p.ask("get", s("/none"), s(""))
    p.ask("multi_get", keys("/none"), s(""))
    p.ask("append", s("/a") + s(b"\0x"), b"")
    p.ask("append", s("/a") + s("y"), b"")
    p.ask("get", s("/a"), s(b"\0xy"))
    p.ask("pop", s("/q"), u64(0))
    p.ask("push", s("/q") + s("one"), b"")
    p.ask("push", s("/q") + s("two"), b"")
    p.ask("len", s("/q"), u64(2))
    p.ask("check", keys("/q"), b"\0")
    p.ask("pop", s("/q"), u64(2) + s("one"))
    p.ask("list", b"", u64(1) + s("/a"))
    p.ask("barrier", s("/b") + u64(1), b"\0")
    p.ask("get", s("/b"), s("1"))


def test_watch_key_of_a(server):
    p, q = server.peer(A), server.peer(D)
    p.send("watch", s("/w"))
    assert p.read(1) == b"\3"
    q.send("set", s("/w") + s("1"))
    q.send("set", s("/w") + s("2"))
    q.ask("delete", s("/w"), u64(1))
    notices = b"\1" + s("/w") + s("") + s("1") + b"\0" + s("/w") + s("1") + s("2") + b"\2" + s("/w") + s("2") + s("")
    assert p.read(len(notices)) == notices


@pytest.mark.parametrize("table", [A, D], ids=["A", "D"])
def test_a_parked_wait_ends_by_any_write_and_holds_up_nothing(server, table):
    p, q = server.peer(table), server.peer(D)
    for op, body in [("set", s("/x")), ("cas", s("") + s("/x")), ("add", u64(1)), ("append", s("x")),
                     ("push", s("x"))]:
        key = "/by_" + op
        p.send("wait", keys(key))
        p.send("num_keys")
        p.read(8)
        q.send(op, s(key) + body)
        assert p.read(1) == b"\0", op


def test_split_at_every_byte(server):
    p = server.peer(A)
    body = bytes([A["set"]]) + s("/slow") + s("value") + bytes([A["get"]]) + s("/slow")
    for byte in body:
        p.socket.sendall(bytes([byte]))
    assert p.read(13) == s("value")


CLOSING = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("16030100c8010000c4"),
    "wrong magic": bytes.fromhex("00DEADBEEF0D99120000"),
    "validate twice": HELLO[:5] * 2,
    "unknown operation": HELLO[:5] + b"\x63",
    "1 GB value": HELLO[:5] + b"\1" + s("/k") + u64(1 << 30),
    "1 GB key": HELLO[:5] + b"\1" + u64(1 << 30),
    "2^63 keys": HELLO[:5] + b"\6" + struct.pack("<Q", 1 << 63),
    "get missing (A)": bytes([A["get"]]) + s("/missing"),
    "add to text (A)": bytes([A["set"]]) + s("/t") + s("abc") + bytes([A["add"]]) + s("/t") + u64(1),
}


def test_bad_peers_hurt_only_themselves(server):
    good = [server.peer(D if i % 2 else A) for i in range(50)]
    half = server.peer(D)
    half.socket.sendall(bytes([D["set"]]) + u64(5) + b"/ha")  # the rest never comes
    big = server.peer(D)
    big.socket.sendall(bytes([D["set"]]) + s("/big") + u64(200 << 20) + b"x")  # allowed, and never comes
    for name, data in CLOSING.items():
        bad = socket.create_connection(("127.0.0.1", server.port))
        bad.sendall(data)
        bad.settimeout(10)
        try:
            while bad.recv(4096):
                pass
        except ConnectionResetError:
            pass
        except socket.timeout:
            pytest.fail(f"{name}: still open")
        for number, peer in enumerate(good):
            peer.ask("add", s(f"/{name}/{number}") + u64(number), u64(number))
    assert server.rss_kb() < 64 << 10
    half.socket.sendall(b"lf" + s("v"))
    half.ask("get", s("/half"), s("v"))


def test_large_value_while_others_work(server):
    value = bytes(range(256)) * (64 << 12)  # 64 MiB
    p, q = server.peer(D), server.peer(D)
    sender = threading.Thread(target=lambda: p.send("set", s("/large") + s(value)))
    sender.start()
    slowest = 0.0
    while sender.is_alive():
        start = time.monotonic()
        q.ask("num_keys", b"", u64(0)) if sender.is_alive() and not slowest else q.ask("ping", b"abcd", b"abcd")
        slowest = max(slowest, time.monotonic() - start)
    sender.join()
    assert slowest < 2
    q.send("wait", keys("/large"))
    assert q.read(1) == b"\0"
    q.send("get", s("/large"))
    assert q.read(8) == u64(len(value))
    assert q.read(len(value)) == value


def test_who_never_reads_is_not_read_from(server):
    p, q = server.peer(D), server.peer(D)
    q.ask("set", s("/v") + s(b"v" * (1 << 20)), b"")
    request = bytes([D["get"]]) + s("/v")
    p.socket.setblocking(False)
    asked = 0
    try:
        while asked < 200 << 20:  # 100,000 GiB of replies, had the server taken them all
            asked += p.socket.send(request * 1000)
            if not select.select([], [p.socket], [], 1)[1]:
                break
    except BlockingIOError:
        pass
    q.ask("ping", b"abcd", b"abcd")
    assert server.rss_kb() < 64 << 10


def test_thousand_idle_connections_are_cheap(server):
    server.peer().ask("num_keys", b"", u64(0))
    before = server.rss_kb()
    idle = [server.peer(D) for _ in range(1000)]
    assert server.rss_kb() - before < 2000
    go = server.peer(D)
    for peer in idle:
        peer.send("wait", keys("/go"))
        peer.send("ping", b"sync")
    for peer in idle:
        assert peer.read(4) == b"sync"
    start = time.monotonic()
    go.send("set", s("/go") + s(""))
    for peer in idle:
        assert peer.read(1) == b"\0"
    assert time.monotonic() - start < 2
    for peer in idle:
        peer.close()


# Run by PyTorch's own client: argv HOST PORT, then it says "fine".
TORCH = """
import sys, datetime
import torch.distributed as dist
host, port = sys.argv[1], int(sys.argv[2])
new = hasattr(dist.TCPStore, "multi_get")
libuv = {"use_libuv": False} if new else {}  # Debian builds it without; it concerns the server alone
patience = datetime.timedelta(seconds=20)
make = lambda **more: dist.TCPStore(host, port, is_master=False, timeout=patience, **more, **libuv)
a, b, c = make(), make(world_size=3, wait_for_workers=False), make()
a.set("k", "v"); assert b.get("k") == b"v"
assert a.add("n", 5) == 5 and b.add("n", -7) == -2 and a.get("n") == b"-2"
assert a.compare_set("c", "", "A") == b"A" and b.compare_set("c", "X", "B") == b"A"
assert a.compare_set("c2", "X", "A") == b"X"
a.wait(["k", "n"], datetime.timedelta(seconds=5))
assert a.check(["k"]) and not a.check(["k", "none"]) if hasattr(a, "check") else True
assert a.delete_key("k") and not a.delete_key("k")
big = b"x" * (9 << 20)
a.set("big", big); assert b.get("big") == big
base = a.num_keys(); a.set("one more", "1"); b.get("one more"); assert b.num_keys() == base + 1
try:
    c.wait(["never"], datetime.timedelta(milliseconds=200))
except Exception as e:
    assert "imeout" in str(e), e
else:
    assert False, "waited for nothing"
if new:
    a.append("ap", "x"); a.append("ap", "y"); assert a.get("ap") == b"xy"
    a.multi_set(["m1", "m2"], ["1", "2"]); b.wait(["m2"]); assert b.multi_get(["m2", "m1"]) == [b"2", b"1"]
    assert c.add("after the timeout", 1) == 1
prefixed = dist.PrefixStore("worker", b); prefixed.set("p", "1"); assert a.get("worker/p") == b"1"
print("fine")
"""


def run_torch(command, port):
    done = subprocess.run([*command, "-c", TORCH, "127.0.0.1", str(port)], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stdout + done.stderr


def test_torch_of_this_system(server):
    run_torch([harness.PYTHON], server.port)


@pytest.mark.parametrize("version", ["2.6", "2.14"])
def test_newer_torch(server, version):
    run_torch([harness.peer(version)], server.port)
