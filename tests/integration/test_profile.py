"""Profiles of PyTorch on demand: fake workers of Kineto, whose protocol is that of libkineto."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import uuid

import pytest

from harness import BINARY, SCRIPTS, peer, until
from ssh_hosts import SshWorld

SIDE = SCRIPTS / "kineto_side.py"


class Profiled:
    """A job of two ranks that can be profiled, and the command."""

    def __init__(self, lockstep, kind, *options):
        self.lockstep = lockstep
        self.run = lockstep.start("--profile", "--nproc-per-node", 2, *options, SIDE, kind)
        self.output = lockstep.folder / "traces"

    def command(self, *words):
        return [BINARY, "profile", "-o", str(self.output), *map(str, words), f"pid-{self.run.pid}"]

    def profile(self, *words, timeout=60):
        return subprocess.run(self.command(*words), env=self.lockstep.environment(), capture_output=True, text=True,
                              timeout=timeout)

    def folder(self):
        file = self.lockstep.work / "0.folder"
        return pathlib.Path(until(lambda: file.exists() and file.read_text(), 30, "a worker has begun"))

    def trace(self, name):
        return json.loads((self.output / name).read_text())

    def end(self):
        folder = self.folder()
        self.run.signal(signal.SIGTERM)
        ended = self.run.wait(60)
        assert not folder.exists()
        return ended


def complaints(said):
    """Returns the lines of the command except those about a long wait."""
    return [line for line in said.stderr.splitlines() if "waiting for" not in line]


@pytest.fixture
def job(lockstep):
    jobs = []

    def begin(*words):
        jobs.append(Profiled(lockstep, *words))
        jobs[-1].folder()
        return jobs[-1]

    yield begin
    for each in jobs:
        each.run.kill()


def test_all_ranks_make_one_trace(job):
    run = job("good")
    assert (run.folder().stat().st_mode & 0o777, run.folder().stat().st_uid) == (0o700, os.getuid())
    said = run.profile("--steps", 3, "--multiple-of", 10)
    assert (said.returncode, complaints(said)) == (0, []), said
    assert said.stdout == f"{run.output}/profile.json: ranks 0-1\n"
    assert sorted(path.name for path in run.output.iterdir()) == ["profile.json", "rank-0.json", "rank-1.json"]
    events = run.trace("profile.json")["traceEvents"]
    assert len(events) == 6 and len({event["pid"] for event in events}) == 2, events
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == ["rank 0: python", "rank 1: python"]
    assert len({event["id"] for event in events if event["ph"] == "s"}) == 2
    order = run.trace("rank-1.json")["traceEvents"][1]["name"]
    assert "ACTIVITIES_ITERATIONS" in order and "PROFILE_START_ITERATION_ROUNDUP" in order, order
    # Again, by time, and of one rank.
    said = run.profile("--seconds", 0.5, "--ranks", "1")
    assert (said.returncode, complaints(said)) == (0, []), said
    assert said.stdout == f"{run.output}/profile.json: rank 1\n"
    assert "PROFILE_START_TIME" in run.trace("rank-1.json")["traceEvents"][1]["name"]
    assert not list(run.folder().glob("profile-*")), "traces are moved"
    run.end()


def test_a_rank_without_kineto_is_named(job):
    run = job("none")
    said = run.profile("--steps", 1)
    assert said.returncode == 1, said
    assert "rank 1: no process asks for profiles: PyTorch without Kineto" in said.stderr, said
    assert said.stdout == f"{run.output}/profile.json: rank 0\n"
    assert len(run.trace("profile.json")["traceEvents"]) == 3
    run.end()


def test_a_broken_trace_spoils_no_other(job):
    run = job("cut")
    said = run.profile()
    assert said.returncode == 1 and "not in profile.json: rank 1: the trace is not whole" in said.stderr, said
    assert len(run.trace("profile.json")["traceEvents"]) == 3
    run.end()


def test_a_link_is_not_followed(job):
    run = job("link")
    said = run.profile()
    assert said.returncode == 1 and "Too many levels" in said.stderr, said
    assert sorted(path.name for path in run.output.iterdir()) == ["profile.json", "rank-0.json"]
    run.end()


def test_an_agent_that_misses_a_look_has_not_ended(job):
    """A busy machine may not run the agent for 5 s."""
    run = job("late")
    command = subprocess.Popen(run.command(), env=run.lockstep.environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    until((run.output / "rank-0.json").exists, 30, "the first trace is here")
    agent = run.run.agent()

    def asked():
        """Returns the agent's sockets: the listener, and one for each question that is not yet accepted."""
        lines = pathlib.Path(f"/proc/{run.run.pid}/net/unix").read_text().splitlines()
        return sum(f"@lockstep/{os.getuid()}/{run.run.pid}-" in line for line in lines)
    os.kill(agent, signal.SIGSTOP)
    try:
        before = asked()
        until(lambda: asked() >= before + 2, 30, "a question has no answer, and the next one comes")
    finally:
        os.kill(agent, signal.SIGCONT)
    (run.lockstep.work / "go").touch()
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out) == (0, f"{run.output}/profile.json: ranks 0-1\n"), err
    run.end()


def test_foreign_datagrams_change_nothing(job):
    run = job("attack")
    until(lambda: (run.lockstep.work / "attacked").exists(), 30, "the flood is over")
    # A process that is not below a rank gets no answer, whatever pid it writes.
    rank = int(re.search(r"NSpid:.*?(\d+)$", pathlib.Path("/proc/self/status").read_text(), re.M)[1])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.bind(f"{run.folder()}/dynoconfigclient{uuid.uuid4()}")
        payload = struct.pack("<iiqi", 3, 1, 0, rank)
        stranger.sendto(struct.pack("<Q32s", len(payload), b"req") + payload, f"{run.folder()}/dynolog")
        said = run.profile("--steps", 1)
        assert (said.returncode, complaints(said)) == (0, []), said
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.recv(1)
    ended = run.end()
    assert "Traceback" not in ended.err, ended


def test_the_command_can_be_stopped(job):
    run = job("none")
    command = subprocess.Popen(run.command("--ranks", 1), env=run.lockstep.environment(), stderr=subprocess.PIPE,
                               text=True)
    until(run.output.exists, 30, "the command has begun")
    other = run.profile("--ranks", 1)
    assert other.returncode == 1 and "is not over" in other.stderr and "wait for its end" in other.stderr, other
    command.send_signal(signal.SIGINT)
    assert command.wait(20) == 130
    command.stderr.close()
    assert run.profile("--ranks", 0).returncode == 0
    run.end()


def test_a_job_without_the_option_says_so(lockstep):
    run = lockstep.start("--no-python", "sleep", 60)
    until(lambda: "sleep" in run.living().values(), 20, "the worker runs")
    said = subprocess.run([BINARY, "profile", f"pid-{run.pid}"], env=lockstep.environment(), capture_output=True,
                          text=True, timeout=30, cwd=lockstep.work)
    assert said.returncode == 1, said
    assert said.stderr == ("lockstep profile: error: the job was started without --profile; start it with lockstep run "
                           "--profile\n")
    assert not list(lockstep.work.iterdir())
    run.signal(signal.SIGTERM)
    run.wait(30)


def test_only_what_the_user_has_not_set_is_set(lockstep):
    said = lockstep.run("--profile", "--explain", "--no-python", "true")
    assert re.search(r"profiles +KINETO_USE_DAEMON=1 +option --profile", said.out), said
    assert re.search(r"profiles +KINETO_ONDEMAND_TRACE_DIR=a fresh folder +option --profile", said.out), said
    said = lockstep.run("--explain", "--no-python", "true", env={"LOCKSTEP_PROFILE": "1"})
    assert re.search(r"profiles +KINETO_USE_DAEMON=1 +environment variable LOCKSTEP_PROFILE", said.out), said
    said = lockstep.run("--profile", "--no-python", "env", env={"KINETO_USE_DAEMON": "mine"})
    assert "--profile has no effect: KINETO_USE_DAEMON is set" in said.err, said
    assert "KINETO_USE_DAEMON=mine" in said.out and "KINETO_IPC_SOCKET_DIR" not in said.out, said
    assert "KINETO" not in lockstep.run("--no-python", "env").out


TRAINS = """
import pathlib, time, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    pathlib.Path("trains").touch()
    time.sleep(0.01)
"""


def test_the_profiler_inside_pytorch(lockstep):
    script = lockstep.work / "trains.py"
    script.write_text(TRAINS)
    run = lockstep.start("--profile", script, env={"PYTHON_EXEC": peer("2.14"), "OMP_NUM_THREADS": 1})
    until((lockstep.work / "trains").exists, 120, "the training runs")
    output = lockstep.folder / "traces"
    said = subprocess.run([BINARY, "profile", "-o", output, "--steps", "3", f"pid-{run.pid}"], timeout=150,
                          env=lockstep.environment(), capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, f"{output}/profile.json: rank 0\n"), (said, run.err()[-2000:])
    events = json.loads((output / "profile.json").read_text())["traceEvents"]
    names = [event.get("name") for event in events]
    # A thread of Kineto ends the profile after the third step, later if the machine is busy.
    assert names.count("Optimizer.step#SGD.step") >= 3 and "aten::addmm" in names, names
    assert {"rank 0: python3"} == {event["args"]["name"] for event in events if event["name"] == "process_name"
                                   and event["pid"] in {e["pid"] for e in events if e.get("name") == "aten::addmm"}}
    run.signal(signal.SIGTERM)
    run.wait(60)


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


class Afar:
    """A job of two hosts with a rank each, and the command on the client."""

    def __init__(self, world, kind):
        self.client, *self.servers = world(2)
        words = [word for server in self.servers for word in ("--host", f"me@{server.addr}")]
        assert self.client.run("cluster", "add", "gpus", *words).rc == 0
        for server in self.servers:
            (server.homes["me"] / "side.py").write_text(SIDE.read_text())
        ended = self.client.run("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--detach", "--profile",
                                "side.py", kind, timeout=90)
        assert ended.rc == 0, ended
        self.id = ended.out.strip()
        self.output = self.client.folder / "traces"
        for rank in (0, 1):
            self.folder(rank)

    def words(self, *words):
        return ("profile", "-o", self.output, *words, self.id)

    def profile(self, *words):
        return self.client.run(*self.words(*words), timeout=120)

    def folder(self, rank):
        """The folder of the rank's agent."""
        file = self.servers[rank].homes["me"] / f"{rank}.folder"
        return pathlib.Path(until(lambda: file.exists() and file.read_text(), 30, f"rank {rank} has begun"))

    def traces(self):
        return [path for rank in (0, 1) for path in self.folder(rank).glob("profile-*")]

    def asked(self):
        """The processes that the command has started on the hosts."""
        lines = []
        for server in self.servers:
            for pid in server.commands():
                with contextlib.suppress(OSError):
                    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                    lines += [words] if b"host-job" in words and any(b"profile" in word for word in words) else []
        return lines

    def end(self):
        folders = [self.folder(rank) for rank in (0, 1)]
        assert self.client.run("cancel", self.id, timeout=90).rc == 0
        assert not any(folder.exists() for folder in folders)
        for server in self.servers:
            server.nothing_left()


def test_the_ranks_of_two_hosts_make_one_trace(world):
    run = Afar(world, "good")
    ended = run.profile("--steps", 3)
    assert (ended.rc, ended.out) == (0, f"{run.output}/profile.json: ranks 0-1\n"), ended
    assert sorted(path.name for path in run.output.iterdir()) == ["profile.json", "rank-0.json", "rank-1.json"]
    events = json.loads((run.output / "profile.json").read_text())["traceEvents"]
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == ["rank 0: python", "rank 1: python"]
    assert len({event["pid"] for event in events}) == 2, events
    assert not run.traces(), "traces stay on no host"
    # Again, of a rank that only the second host has, and of one that no host has.
    ended = run.profile("--steps", 1, "--ranks", "1,7")
    assert (ended.rc, ended.out) == (1, f"{run.output}/profile.json: rank 1\n"), ended
    assert "rank 7: does not run, or no agent answers for it" in ended.err, ended
    run.end()
    ended = run.profile("--steps", 1)
    assert ended.rc == 1 and "no agent of the job answers" in ended.err, ended


def test_a_host_that_does_not_answer_is_a_line(world):
    run = Afar(world, "good")
    run.client.forget_masters()
    run.servers[1].stop_sshd()
    ended = run.profile("--steps", 1)
    assert (ended.rc, ended.out) == (1, f"{run.output}/profile.json: rank 0\n"), ended
    lines = [line for line in ended.err.splitlines() if "gpus-1" in line]
    assert len(lines) == 1 and lines[0].startswith("lockstep profile: ") and "refused" in lines[0], ended
    assert not run.traces()
    run.servers[1].start_sshd()
    run.end()


def test_a_trace_of_a_host_that_is_no_file_is_named(world):
    run = Afar(world, "link")
    ended = run.profile("--steps", 1)
    assert (ended.rc, ended.out) == (1, f"{run.output}/profile.json: rank 0\n"), ended
    assert "lockstep profile: rank 1: gpus-1: " in ended.err and "Too many levels" in ended.err, ended
    assert sorted(path.name for path in run.output.iterdir()) == ["profile.json", "rank-0.json"]
    run.end()


def test_ctrl_c_leaves_nothing_on_the_hosts(world):
    run = Afar(world, "none")
    command = run.client.start(*run.words("--timeout", 100))
    until(lambda: (run.output / "rank-0.json").exists(), 60, "the first trace is here")
    other = run.client.run("profile", "-o", run.client.folder / "other", run.id, timeout=60)
    assert other.rc == 1 and "another lockstep profile of this job is not over" in other.err, other
    assert not (run.client.folder / "other").exists()
    command.signal(signal.SIGINT)
    assert command.wait(30).rc == 130
    until(lambda: not run.asked(), 15, "no request is left on the hosts")
    assert not run.traces()
    assert run.profile("--ranks", 0).rc == 0, "the agents know of the end"
    run.end()
