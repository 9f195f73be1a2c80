"""Jobs on hosts whose processes are killed: no log is lost, nothing of a job is left behind, and the next commands of
the user explain and repair the job."""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import time

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
ENDED = ("succeeded", "failed", "canceled")
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
    # A connection that is cut before the job has begun ends the command: nothing was started then.
    until(lambda: server.host.spoken("host-job", "follow") or follower.process.poll() is not None, 60, "it is followed")
    assert follower.process.poll() is None, follower.err()
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
    """A job on all hosts with its client. One part of it is killed."""

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
        assert state in ("running", *ENDED, "lost"), (what, state)
        if chance.random() < 0.5:
            ended = client.run("resume", job.id)
            refused = ended.rc == 2 and "is lost" in ended.err or ended.rc == 255 and ended.err
            assert ended.rc == 0 or refused, (what, ended)
        ended = client.run("cancel", "--json", job.id, timeout=90)
        assert ended.rc == 0, (what, ended)
        told = json.loads(ended.out)
        assert {host["state"] for host in told["hosts"]} <= {*ENDED, "lost"}, (what, told)
        ended = job.run.wait(60)  # the client that followed it
        assert ended.rc != 0, (what, ended)
        for each in servers:
            each.nothing_left()
        ended = client.run("wait", job.id)
        assert ended.rc != 0 and job.state() in (*ENDED, "lost"), (what, ended)
    ended = client.run("cluster", "check", "gpus", "--repair", "--json")
    assert ended.rc in (0, 1) and all(node["reached"] for node in json.loads(ended.out)["nodes"]), ended
    for server in servers:
        (server.homes["me"] / "go").touch()
    ended = client.run("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "job.py", timeout=90)
    assert ended.rc == 0 and ended.out.count(" is ") == len(servers), ended


def test_only_the_jobs_own_record_is_its_end(world):
    """The process that passes the output on, or the link, may end in any way: the job itself has not ended."""
    client, server = world()
    (server.homes["me"] / "job.py").write_text(PARKED + "print('end', flush=True)\nsys.exit(5)\n")
    run = client.start("run", "--on", f"me@{server.addr}", "--sync", "none", "--cwd", ".", "--exit-code", "worker",
                       "job.py")
    until(lambda: "rank 0" in run.out(), 60, "it runs")
    id_ = json.loads(client.run("jobs", "--json").out)["jobs"][0]["id"]
    waiting = client.start("wait", "--json", id_)
    for number, words in ((signal.SIGKILL, ("host-job", "follow")), (signal.SIGTERM, ("host-job", "follow")),
                          (signal.SIGTERM, ("link",))):
        until(lambda words=words: len(server.host.spoken(*words)) >= 2, 30, f"two of {words}")
        old = server.host.spoken(*words)
        for pid in old:
            with contextlib.suppress(ProcessLookupError):  # a link's guardian goes with it
                os.kill(pid, number)
        until(lambda old=old: len(set(server.host.spoken("host-job", "follow")) - set(old)) == 2 or
              run.process.poll() is not None, 30, f"both are back after {words}")
        assert run.process.poll() is None and waiting.process.poll() is None, (words, run.err(), waiting.err())
    (server.homes["me"] / "go").touch()
    ended = run.wait(30)
    assert ended.rc == 5 and ended.out.count("rank 0") == 1 and ended.out.endswith("end\n"), ended
    assert "its follower was ended by SIGKILL" in ended.err, ended
    told = waiting.wait(30)
    assert (told.rc, json.loads(told.out)["code"], json.loads(told.out)["state"]) == (5, 5, "failed"), told


def test_a_follower_that_dies_after_the_jobs_end_costs_no_output(world):
    client, server = world()
    home = server.homes["me"]
    (home / "job.py").write_text(PARKED + "print('the end', flush=True)\n")
    run = client.start("run", "--on", f"me@{server.addr}", "--sync", "none", "--cwd", ".", "job.py")
    until(lambda: "rank 0" in run.out(), 60, "it runs")
    followers = server.host.spoken("host-job", "follow")
    for pid in followers:
        server.host.freeze(pid)
    (folder,) = (home / ".local/state/lockstep/jobs").iterdir()
    (home / "go").touch()
    until(lambda: json.loads((folder / "state.json").read_text())["stage"] == "ended", 30, "the job has ended")
    kill(followers)
    ended = run.wait(30)
    assert ended.rc == 0 and ended.out.endswith("the end\n"), ended


def test_a_follower_that_cannot_follow_is_tried_less_and_less_often(world):
    client, server = world()
    home = server.homes["me"]
    (home / "job.py").write_text(PARKED)
    assert client.exec(f"me@{server.addr}", "true").rc == 0
    run = client.start("run", "--on", f"me@{server.addr}", "--sync", "none", "--cwd", ".", "job.py")
    until(lambda: "rank 0" in run.out(), 60, "it runs")
    (folder,) = (home / ".local/state/lockstep/jobs").iterdir()
    (folder / "out").rename(folder / "kept")
    (folder / "out").mkdir()  # no follower can read that
    before = server.sshd.err().count("Starting session")
    kill(server.host.spoken("host-job", "follow"))
    until(lambda: run.err().count("for 10 s: ") == 1, 40, "it is said who is waited for")
    assert server.sshd.err().count("Starting session") - before < 15
    assert "waiting for" in run.err() and "Ctrl-C ends the job" in run.err(), run.err()
    assert run.err().count("trying again") == 1 and "is back" not in run.err(), run.err()
    (folder / "out").rmdir()
    (folder / "kept").rename(folder / "out")
    (home / "go").touch()
    assert run.wait(30).rc == 0


def test_every_command_says_which_host_it_waits_for(world):
    """Before the first log-in has failed, too, and while a host works on its answer."""
    client, server = world()
    where, home = f"me@{server.addr}", server.homes["me"]
    (home / "job.py").write_text(PARKED.replace("sys.exit(0)", "print('asked to end', flush=True)"))
    id_ = client.run("run", "--on", where, "--sync", "none", "--cwd", ".", "--detach", "job.py").out.strip()
    until(lambda: "rank 0" in client.run("logs", id_).out, 60, "it runs")
    cancel = client.start("cancel", id_)
    waits = f"waiting for {where} for 5 s: its answer; Ctrl-C ends this command"
    until(lambda: waits in cancel.err(), 20, "it is told")
    client.forget_masters()
    server.host.cut()
    follower = client.start("logs", "-f", id_)
    waits = f"waiting for {where} for 5 s: logging in; Ctrl-C stops waiting"
    until(lambda: waits in follower.err(), 20, "it is told")
    assert "trying again" not in follower.err(), "no log-in has failed yet"
    login = client.start("ssh", where)
    until(lambda: f"waiting for {where} for 5 s: logging in" in login.err(), 20, "it is told")
    login.process.kill()
    server.host.heal()
    (home / "go").touch()
    assert follower.wait(60).rc == client.run("wait", id_).rc != 0
    cancel.wait(60)


def test_output_that_cannot_be_passed_on_is_no_success(world):
    """Ten seconds, and then the host is named: the job has ended, so nothing is to be waited for."""
    client, server = world()
    home = server.homes["me"]
    (home / "job.py").write_text("print('said')\n")
    where = ("--on", f"me@{server.addr}", "--sync", "none", "--cwd", ".")
    assert client.run("run", *where, "job.py", timeout=60).out == "said\n"
    (folder,) = (home / ".local/state/lockstep/jobs").iterdir()
    assert client.run("logs", folder.name, timeout=60).out == "said\n"
    (folder / "out").unlink()
    (folder / "out").mkdir()  # no follower can read that
    ended = client.run("logs", folder.name, timeout=60)
    assert ended.rc == 255 and "the end of the job's output is missing here" in ended.err, ended
    ended = client.run("logs", "-f", folder.name, timeout=60)
    assert ended.rc == 0 and "the end of the job's output is missing here" in ended.err, ended  # the job's own code


def test_two_hosts_meet_by_our_backend_and_a_lost_one_ends_the_job(world):
    client, *servers = world(2)
    words = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    assert client.run("cluster", "add", "gpus", *words).rc == 0
    for server in servers:
        (server.homes["me"] / "job.py").write_text(PARKED)
    run = client.start("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--event-log-handler", "console",
                       "job.py")
    until(lambda: run.out().count(" is ") == 2, 90, "both run")
    assert set(re.findall(r'"rdzv_backend": "(\w+)"', until(run.err, 10, "events"))) == {"lockstep"}, run.err()
    one, two = servers
    (folder,) = (one.homes["me"] / ".local/state/lockstep/jobs").iterdir()
    environment = pathlib.Path(f"/proc/{named(one, 'lockstep-agent')[0]}/environ").read_bytes()
    assert b"LOCKSTEP_RDZV_TOKEN=" in environment  # and the hub refuses whoever does not have it
    off = time.monotonic()
    two.switch_off()
    until(lambda: json.loads((folder / "state.json").read_text())["stage"] == "ended", 30, "the job has failed")
    assert time.monotonic() - off < 13, time.monotonic() - off  # 5 s until it is noticed; static took 15
    client.forget_masters()
    ended = run.wait(40)
    assert ended.rc == 1 and "the other hosts say that job" in ended.err, ended


# Fills the disk, then fails; what it prints meanwhile has no room either.
GREEDY = """
import os, sys
print('begins', flush=True)
with open('much', 'wb', buffering=0) as file:
    try:
        while True:
            file.write(b'x' * 4096)
    except OSError:
        sys.stderr.write('no room\\\\n' * 1000)
os._exit(5)
"""


def test_a_job_that_fills_the_disk_ends_as_it_ended(world):
    """The host's records of all jobs stay whole. A job without room is refused, and the line names the place."""
    client, server = world()
    where, home = f"me@{server.addr}", "/home/me"
    server._inside("mount", "-t", "tmpfs", "-o", "size=40m,uid=2001,mode=0700", "tmpfs", home)
    server._inside("mkdir", f"{home}/.ssh")
    server._inside("sh", "-c", f"echo '{client.public_key.strip()}' > {home}/.ssh/authorized_keys")
    disk = pathlib.Path(f"/proc/{server.host.holder.pid}/root{home}")
    (disk / "job.py").write_text(GREEDY)
    words = ("run", "--on", where, "--sync", "none", "--cwd", ".", "--exit-code", "worker")
    ended = client.run(*words, "--name", "big", "job.py")
    assert ended.rc == 5 and "begins" in ended.out, ended
    (job,) = json.loads(client.run("jobs", "--json").out)["jobs"]
    assert (job["state"], job["code"]) == ("failed", 5), job
    (folder,) = (disk / ".local/state/lockstep/jobs").iterdir()
    assert json.loads((folder / "state.json").read_text())["code"] == 5
    refused = client.run(*words, "--name", "next", "job.py")
    assert refused.rc == 255 and f"no space left on {server.name}:{home}/.local/state" in refused.err, refused
    assert client.run("wait", "big").rc == 5
    (disk / "much").unlink()
    assert client.run(*words, "--no-python", "true").rc == 0
