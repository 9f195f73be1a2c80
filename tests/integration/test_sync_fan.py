"""lockstep sync to several hosts that reach each other: one host gets the files from the client, and the other hosts
get them from that host. If the hosts cannot reach each other, or the transfer breaks off, the client sends the files
itself."""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import threading

import pytest

from harness import until
from test_sync import Project, tree, world  # noqa: F401

TOTAL = 30_000_000


def inside(host, *argv):
    subprocess.run(["nsenter", "--target", str(host.host.holder.pid), "--net", "--", *argv], check=True)


def sent_by(host):
    """Returns the bytes that have left the host's network interface."""
    for line in pathlib.Path(f"/proc/{host.host.holder.pid}/net/dev").read_text().splitlines():
        if line.strip().startswith("eth0:"):
            return int(line.split(":")[1].split()[8])
    raise AssertionError("there is no eth0")


def listening(host):
    """TCP ports that something listens on, but for sshd's."""
    ports = set()
    for kind in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{host.host.holder.pid}/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports - {22}


def shape(host, rate):
    """Limits the outgoing rate of a host, so that the test has time to look."""
    inside(host, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "64kb",
           "latency", "400ms")


def unshape(host):
    inside(host, "tc", "qdisc", "del", "dev", "eth0", "root")


def drafts(project, servers):
    return [path for server in servers for path in project.there(server).rglob(".lockstep-part-*")]


@pytest.fixture
def fan(world):  # noqa: F811
    """(client, project, hosts). The hosts do not have the project yet."""
    def make(count=3):
        client, *servers = world(count)
        hosts = [word for server in servers for word in ("--host", f"me@{server.addr}")]
        assert client.run("cluster", "add", "gpus", *hosts).rc == 0
        assert client.exec("gpus", "true").rc == 0  # brings the binary, which is not counted
        project = Project(client)
        for number in range(20):
            project.write(f"data/{number:02}.bin", os.urandom(TOTAL // 20))
        project.write("run.sh", "#!/bin/sh\n").chmod(0o755)
        project.write("empty", "")
        project.write("deep/er/new\nline", "x")
        (project.folder / "link").symlink_to("data/00.bin")
        return client, project, servers
    return make


def same_everywhere(project, servers):
    for server in servers:
        assert tree(project.there(server)) == project.sent(), server.name
        # The host's end hears of the end of the sync a moment after the client.
        until(lambda: not listening(server), 10, f"{server.name} no longer listens")
    assert not drafts(project, servers)


def test_the_uplink_carries_the_files_once(fan):
    client, project, servers = fan(4)
    before = sent_by(client)
    reports = project.sync("gpus")
    went = sent_by(client) - before
    assert [report.get("from") for report in reports] == [None, "gpus-0", "gpus-0", "gpus-0"], reports
    assert [report["bytes"] for report in reports[1:]] == [TOTAL + 11] * 3, reports
    assert TOTAL < went < 1.3 * TOTAL, f"{went} bytes left the client for {TOTAL}"
    same_everywhere(project, servers)
    assert [report["files"] for report in project.sync("gpus")] == [0] * 4
    # Only what is new goes, and a little goes to each from here.
    project.write("data/00.bin", "changed")
    (project.folder / "run.sh").unlink()
    reports = project.sync("gpus")
    assert [(report["files"], report["removed"], report.get("from")) for report in reports] == [(1, 1, None)] * 4
    same_everywhere(project, servers)


def test_a_host_behind_a_firewall_gets_its_files_from_the_client(fan):
    client, project, servers = fan(3)
    servers[2].host.holder.nft("add table inet wall", "add chain inet wall in { type filter hook input priority 0; }",
                               f"add rule inet wall in ip saddr {servers[0].addr} drop")
    ended = client.run("sync", "gpus", cwd=project.folder)
    assert ended.rc == 0, ended
    remarks = [line for line in ended.err.splitlines() if "from here" in line]
    assert len(remarks) == 1 and "warning: gpus-2 gets its files from here and not from gpus-0: " in remarks[0], ended
    assert servers[0].addr in remarks[0], ended
    assert "sent by gpus-0" in ended.out.splitlines()[1] and "sent by" not in ended.out.splitlines()[2], ended
    same_everywhere(project, servers)


def arrived(project, server):
    """Files that are whole there."""
    return len(list((project.there(server) / "data").glob("[0-9]*.bin")))


def under_way(client, project, servers, *args):
    """A sync whose takers have got some files and not all."""
    shape(client, "60mbit")
    run = client.start("sync", *args, "gpus", cwd=project.folder)
    until(lambda: min(arrived(project, server) for server in servers[1:]) >= 2 or run.process.poll() is not None, 60,
          "files are under way between hosts")
    assert run.process.poll() is None and arrived(project, servers[-1]) < 20, run.err()
    unshape(client)
    shape(client, "100mbit")
    return run


def of_host(server, word):
    """Processes there with this word in their command line."""
    found = []
    for pid in server.host.processes():
        try:
            if word in pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                found.append(pid)
        except OSError:
            continue
    return found


def nothing_left(servers):
    for server in servers:
        server.nothing_left()
        assert not listening(server), f"{server.name} listens on {listening(server)}"


def test_takers_get_files_while_others_still_come_to_the_seed(fan):
    client, project, servers = fan(3)
    run = under_way(client, project, servers)
    assert arrived(project, servers[0]) < 20
    assert run.wait(60).rc == 0, run.err()
    assert not run.err(), run.err()
    same_everywhere(project, servers)


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_client_that_is_ended_leaves_nothing(fan, how):
    client, project, servers = fan(3)
    shape(servers[0], "30mbit")
    run = under_way(client, project, servers)
    assert listening(servers[0])
    until(lambda: drafts(project, servers[1:]), 30, "a file is half there")
    if how == "killed":
        run.process.kill()
        run.wait(30)
    else:
        run.signal(signal.SIGINT)
        ended = run.wait(30)
        errors = [line for line in ended.err.splitlines() if "error:" in line]
        assert ended.rc == 128 + signal.SIGINT, ended
        assert len(errors) == 3 and all("the next sync goes on" in line for line in errors), ended
    nothing_left(servers)
    assert not drafts(project, servers)
    whole = {path: what for path, what in project.sent().items()}
    for server in servers:  # each file is whole, or not there
        for path, what in tree(project.there(server)).items():
            assert what == whole[path], path
    unshape(client)
    unshape(servers[0])
    assert all(report["code"] == 0 for report in project.sync("gpus"))
    same_everywhere(project, servers)
    assert [report["files"] for report in project.sync("gpus")] == [0] * 3


@pytest.mark.parametrize("what", ["seed", "taker", "files"])
def test_what_breaks_half_way_comes_from_the_client(fan, what):
    client, project, servers = fan(3)
    run = under_way(client, project, servers)
    if what == "files":  # what comes to the seed is not what was offered, so the takers wait for it in vain
        project.write("data/19.bin", os.urandom(TOTAL // 20 + 1))
    else:
        for pid in of_host(*((servers[0], "serve") if what == "seed" else (servers[1], "take"))):
            with contextlib.suppress(ProcessLookupError):  # one of them ends by the other's end
                os.kill(pid, signal.SIGKILL)
    unshape(client)
    ended = run.wait(90)
    remarks = [line for line in ended.err.splitlines() if "gets its files from here and not from gpus-0: " in line]
    told = sorted(line.split("warning: ")[1].split()[0] for line in remarks)
    assert ended.rc == 0, ended
    assert told == (["gpus-1"] if what == "taker" else ["gpus-1", "gpus-2"]), ended
    if what == "files":
        project.sync("gpus")  # which has the file as it is now
    same_everywhere(project, servers)
    nothing_left(servers)


def test_strangers_get_nothing_and_hold_nothing_up(fan):
    client, project, servers = fan(3)
    shape(client, "20mbit")
    run = client.start("sync", "--json", "gpus", cwd=project.folder)
    until(lambda: min(arrived(project, server) for server in servers) > 0, 60, "files arrive everywhere")
    (port,) = listening(servers[0])
    held = []
    with servers[2].host.network():
        for number in range(100):
            stranger = socket.create_connection((servers[0].addr, port), timeout=20)
            held.append(stranger)
            if number % 2:
                stranger.sendall(os.urandom(300) if number % 3 else b"GET / HTTP/1.0\r\n\r\n")
    held[-1].settimeout(30)
    with contextlib.suppress(ConnectionResetError):
        while held[-1].recv(100):  # answered with an alert or not at all; all before it were let in by then
            pass
    assert len(of_host(servers[0], "serve")) <= 1 + 32 + 2, "each stranger has a process there"
    # A silent peer is disconnected long before the end of the sync.
    mute = held[-2]
    mute.settimeout(20)
    assert mute.recv(1) == b"", "a stranger was told something"
    assert run.process.poll() is None, "the end of the sync has hung up on him"
    for stranger in held[1:-1:2]:
        said = b""
        try:
            stranger.settimeout(20)
            while part := stranger.recv(100):
                said += part
        except OSError:
            pass
        assert len(said) < 100, said  # TLS's own alert at most
    unshape(client)
    ended = run.wait(60)
    assert ended.rc == 0 and ended.err == "", ended
    assert ended.out.count('"from":"gpus-0"') == 2, ended.out
    for stranger in held:
        stranger.close()
    same_everywhere(project, servers)
    nothing_left(servers)


class Wire:
    """Records the frames that arrive at a host's interface."""

    def __init__(self, server, words):
        self.words, self.seen, self.frames = words, set(), 0
        with server.host.network():
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.settimeout(0.2)
        self.over = False
        self.thread = threading.Thread(target=self._look)
        self.thread.start()

    def _look(self):
        while True:
            try:
                frame = self.socket.recv(1 << 16)
            except TimeoutError:
                if self.over:
                    return
                continue
            self.frames += 1
            self.seen |= {word for word in self.words if word in frame}

    def close(self):
        self.over = True
        self.thread.join(30)
        self.socket.close()


def test_nothing_can_be_read_on_the_way(fan):
    client, project, servers = fan(2)
    for number in range(20):
        project.write(f"data/{number:02}.bin", b"SECRET CONTENT! " * (TOTAL // 20 // 16))
    wire = Wire(servers[1], [b"SECRET CONTENT", b"data/00.bin", b"lockstep-peer"])
    try:
        assert [report.get("from") for report in project.sync("gpus")] == [None, "gpus-0"]
    finally:
        wire.close()
    # That the key has this name is no secret, and shows that the way was looked at.
    assert wire.frames > 100 and wire.seen == {b"lockstep-peer"}, (wire.frames, wire.seen)
    same_everywhere(project, servers)
