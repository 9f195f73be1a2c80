"""Profiles of PyTorch on demand: fake workers of Kineto, whose protocol is that of libkineto."""
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
    """What the command wrote beside the lines of a long wait."""
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
