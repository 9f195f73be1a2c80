"""A training as the launcher sees one on a PyTorch with Kineto: kineto_side.py KIND.

Each rank behaves as libkineto of 2023 to 2026 with KINETO_USE_DAEMON=1: it opens a datagram socket of its own, polls
the daemon for orders (every 0.1 s instead of 5 s), waits 90 ms for each answer, and writes a trace that it renames at
its end. Rank 1 goes wrong in the way of KIND. The file RANK.folder says where the sockets are."""
import json
import os
import pathlib
import re
import socket
import struct
import sys
import time
import uuid

KIND, RANK = sys.argv[1], int(os.environ["RANK"])
ODD = RANK == 1
FOLDER = os.environ["KINETO_IPC_SOCKET_DIR"]
DAEMON = f"{FOLDER}/dynolog"


def message(kind, payload):
    return struct.pack("<Q32s", len(payload), kind) + payload


def poll(pids=()):
    pids = pids or (os.getpid(), os.getppid(), 1)
    return message(b"req", struct.pack(f"<iiq{len(pids)}i", 3, len(pids), 0, *pids))


class Client:
    def __init__(self, name=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.path = f"{FOLDER}/{name or f'dynoconfigclient{uuid.uuid4()}'}"
        assert len(self.path) < 108
        self.socket.bind(self.path)
        os.chmod(self.path, 0o666)

    def send(self, bytes):
        """Returns whether the daemon's queue had room."""
        try:
            self.socket.sendto(bytes, socket.MSG_DONTWAIT, DAEMON)
            return True
        except OSError:
            return False

    def ask(self, bytes, limit=0.09):
        # As libkineto's sync_send(): 10 tries, each pause twice the one before.
        any(self.send(bytes) or time.sleep(0.01 * 2 ** i) for i in range(10))
        self.socket.settimeout(limit)
        try:
            answer = self.socket.recv(1 << 16)
        except OSError:
            return None
        size, kind = struct.unpack("<Q32s", answer[:40])
        assert size == len(answer) - 40 and kind.rstrip(b"\0") in (b"req", b"ctxt"), answer
        return answer[40:]


def events(order):
    pid = os.getpid()
    return {
        "schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1791000000000000000,
        "traceEvents": [
            {"ph": "M", "name": "process_name", "ts": 1, "pid": pid, "tid": 0, "args": {"name": "python"}},
            {"ph": "X", "cat": "cpu_op", "name": f"order {sorted(order)}", "pid": pid, "tid": pid, "ts": 1, "dur": 2},
            {"ph": "s", "id": 1, "pid": pid, "tid": pid, "ts": 1, "cat": "ac2g", "name": "ac2g"}],
        "traceName": "x"}


def write(order):
    # As Config::handleOption() of 2026: a path elsewhere is ignored.
    while ODD and KIND == "late" and not os.path.exists("go"):
        time.sleep(0.01)
    path = order["ACTIVITIES_LOG_FILE"]
    assert path.startswith(os.environ["KINETO_ONDEMAND_TRACE_DIR"] + "/") and ".." not in path, path
    path = re.sub(r"\.json", f"_{os.getpid()}.json", path, count=1)
    text = json.dumps(events(order), indent=1)
    if ODD and KIND == "cut":
        text = text[:-100]
    if ODD and KIND == "link":
        return os.symlink("/etc/passwd", path)
    with open(path + ".tmp", "w") as file:
        file.write(text)
    os.rename(path + ".tmp", path)


def attack():
    """Sends datagrams that are not Kineto's, which must have no effect."""
    odd = Client("odd")
    mine = Client()
    for bytes in (b"", b"x", poll()[:-1], poll() + b"y", message(b"req", b""), message(b"ctxt", b"1" * 15),
                  message(b"req", struct.pack("<iiq", 3, 1 << 30, 0)), message(b"z" * 32, b"1" * 16), b"\xff" * 60_000):
        assert mine.ask(bytes, 0.02) is None, bytes
    assert odd.ask(poll(), 0.02) is None
    unbound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for _ in range(2000):
        mine.send(b"\0" * 2048)
        try:
            unbound.sendto(poll(), socket.MSG_DONTWAIT, DAEMON)
        except OSError:
            pass


pathlib.Path(f"{RANK}.folder").write_text(FOLDER)
if ODD and KIND == "none":
    time.sleep(3600)
if ODD and KIND == "attack":
    attack()
    pathlib.Path("attacked").write_text("")
client = Client()
assert client.ask(message(b"ctxt", struct.pack("<iiq", 0, os.getpid(), 0)), 5) is not None
while True:
    text = client.ask(poll())
    if text:
        write(dict(line.split("=", 1) for line in text.decode().splitlines()))
    time.sleep(0.1)
