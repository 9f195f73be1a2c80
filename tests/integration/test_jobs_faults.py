"""Jobs on hosts whose parts are killed: nothing of a log is lost, nothing of a job is left behind, and the commands
that a person types next explain what happened and mend it."""
import contextlib
import json
import os
import random
import signal

import pytest

from harness import until
from ssh_hosts import SshWorld

LINES, CUTS = 1_000_000, 100
# One part of the lines for every cut; it waits before each for a file.
TALKER = f"""
import os, sys, time
for part in range({CUTS}):
    while not os.path.exists(os.path.expanduser(f'~/go{{part}}')):
        time.sleep(0.002)
    first = part * {LINES // CUTS}
    sys.stdout.write(''.join(f'line {{i}}\\n' for i in range(first, first + {LINES // CUTS})))
    sys.stdout.flush()
"""
PARKED = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('rank', os.environ['RANK'], 'is', os.getpid(), flush=True)
while not os.path.exists(os.path.expanduser('~/go')):
    time.sleep(0.05)
"""
SEED = int(os.environ.get("LOCKSTEP_CHAOS_SEED", "1"))
FAULTS = int(os.environ.get("LOCKSTEP_CHAOS_FAULTS", "12"))


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def named(server, name):
    return [pid for pid, comm in server.host.processes().items() if comm == name]


def test_a_million_lines_over_a_hundred_cuts(world):
    client, server = world()
    home = server.homes["me"]
    (home / "job.py").write_text(TALKER)
    assert client.exec(f"me@{server.addr}", "true").rc == 0
    output = client.folder / "output"
    with open(output, "wb") as out:
        follower = client.start("run", "--on", f"me@{server.addr}", "--sync", "none", "--cwd", ".", "job.py",
                                stdout=out)
    text = "".join(f"line {i}\n" for i in range(LINES)).encode()
    end = 0
    for part in range(CUTS):
        # The connection is cut while a part of the lines is under way.
        (home / f"go{part}").touch()
        kill(named(client, "ssh"))
        end = text.index(b"line %d\n" % ((part + 1) * (LINES // CUTS)), end) if part + 1 < CUTS else len(text)
        until(lambda end=end: output.stat().st_size >= end, 60, f"part {part} has come")
    ended = follower.wait(60)
    assert ended.rc == 0, ended.err[-2000:]
    assert output.read_bytes() == text
    # A cut may meet a connection that is still being made, and the last one may come at the very end.
    assert ended.err.count("is back") >= CUTS * 3 // 4, ended.err.count("is back")


class Round:
    """A job on all hosts with its client, of which one part is killed."""

    def __init__(self, client, servers):
        self.client, self.servers = client, servers
        self.run = client.start("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--max-restarts", "1",
                                "--rdzv-conf", "heartbeat_timeout=2", "job.py")
        with contextlib.suppress(AssertionError):  # told below, with what was said
            until(lambda: self.run.out().count(" is ") >= len(servers) or self.run.process.poll() is not None, 60)
        said = self.run.out(), self.run.err(), [server.commands() for server in servers]
        assert said[0].count(" is ") >= len(servers) and self.run.process.poll() is None, said
        self.id = json.loads(client.run("jobs", "--json").out)["jobs"][0]["id"]

    def supervisor(self, server):
        state = json.loads((server.homes["me"] / f".local/state/lockstep/jobs/{self.id}/state.json").read_text())
        return server.host.outer(state["supervisor"])

    def strike(self, fault, server):
        if fault == "client":
            kill([self.run.process.pid])
        elif fault == "supervisor":
            kill([self.supervisor(server)])
        elif fault == "worker":
            kill(named(server, "python3"))
        elif fault == "connection":
            kill(named(self.client, "ssh"))
        elif fault == "sshd":
            server.stop_sshd()
            server.start_sshd()
        elif fault == "power":
            server.switch_off()
            server.switch_on()
        else:
            kill(named(server, fault))

    def state(self):
        (job,) = [job for job in json.loads(self.client.run("jobs", "--json").out)["jobs"] if job["id"] == self.id]
        return job["state"]


KINDS = ("client", "supervisor", "lockstep-agent", "lockstep-guard", "worker", "connection", "sshd", "power")


def test_whatever_is_killed_the_next_commands_explain_and_mend(world):
    client, *servers = world(2)
    words = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    assert client.run("cluster", "add", "gpus", *words).rc == 0
    for server in servers:
        (server.homes["me"] / "job.py").write_text(PARKED)
    assert client.run("exec", "gpus", "--", "true", timeout=120).rc == 0
    chance = random.Random(SEED)
    kinds = [*KINDS, *chance.choices(KINDS, k=max(0, FAULTS - len(KINDS)))][:FAULTS]
    chance.shuffle(kinds)
    for number, fault in enumerate(kinds):
        server = chance.choice(servers)
        what = f"seed {SEED}, round {number}: {fault} on {server.name}"
        print(what)
        job = Round(client, servers)
        job.strike(fault, server)
        # Whatever it was, it is told as it is: what is lost can be resumed, and the rest goes on.
        state = job.state()
        assert state in ("running", "ended", "lost"), (what, state)
        if chance.random() < 0.5:
            ended = client.run("resume", job.id)
            refused = ended.rc == 2 and "is lost" in ended.err or ended.rc == 255 and ended.err
            assert ended.rc == 0 or refused, (what, ended)
        ended = client.run("cancel", "--json", job.id, timeout=90)
        assert ended.rc == 0, (what, ended)
        told = json.loads(ended.out)
        assert {host["state"] for host in told["hosts"]} <= {"ended", "lost"}, (what, told)
        ended = job.run.wait(60)  # the client that followed it
        assert ended.rc != 0, (what, ended)
        for each in servers:
            each.nothing_left()
        ended = client.run("wait", job.id)
        assert ended.rc != 0 and job.state() in ("ended", "lost"), (what, ended)
    ended = client.run("cluster", "check", "gpus", "--repair", "--json")
    assert ended.rc in (0, 1) and all(node["reached"] for node in json.loads(ended.out)["nodes"]), ended
    for server in servers:
        (server.homes["me"] / "go").touch()
    ended = client.run("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "job.py", timeout=90)
    assert ended.rc == 0 and ended.out.count(" is ") == len(servers), ended
