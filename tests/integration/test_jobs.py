"""lockstep run --on, jobs, logs, wait and cancel on hosts with a real sshd: a job runs as on this machine, outlives its
client, is followed to the byte, ends on all hosts, and leaves nothing behind."""
import base64
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import socket
import sqlite3
import subprocess
import termios
import time

import pytest

from hang_kinds import HANG, line_of
from harness import BINARY, one_line, until
from ssh_hosts import SshWorld

# One write a line: Python without a buffer writes each word by itself, and a machine that is full may stop in between.
SAY = """
import os, sys, time
sys.stdout.write(f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']} on {os.uname().nodename}\\n")
print('to stderr', file=sys.stderr, flush=True)
"""
# Draws a bar that has no end, and waits.
BAR = """
import sys, time
sys.stderr.write("\\r 10%|#         | 1/10")
sys.stderr.flush()
time.sleep(600)
"""
# Runs until a file is there, and says so before.
PARKED = SAY + """
while not os.path.exists(os.path.expanduser('~/go')):
    time.sleep(0.02)
print('went', os.environ['RANK'], flush=True)
sys.exit(int(os.environ.get('CODE', '0')))
"""


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def script(server, text, name="job.py", user="me"):
    """A script in the user's home there."""
    path = server.homes[user] / name
    path.write_text(text)
    path.chmod(0o644)
    return name


def on(client, where, *words, options=(), **more):
    return client.run("run", "--on", where, "--sync", "none", "--cwd", ".", *options, *words, **more)


def detached(client, where, *words, options=(), **more):
    ended = on(client, where, *words, options=("--detach", *options), **more)
    assert ended.rc == 0 and re.fullmatch(r"[0-9a-f]{8}\n", ended.out), ended
    return ended.out.strip()


def add_cluster(client, servers):
    hosts = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    assert client.run("cluster", "add", "gpus", *hosts).rc == 0


def go(*servers):
    for server in servers:
        (server.homes["me"] / "go").touch()


def job_processes(server):
    return {pid: comm for pid, comm in server.commands().items() if not comm.startswith("ssh")}


def test_one_host_is_as_at_home(world):
    client, server = world()
    where = f"me@{server.addr}"
    ended = on(client, where, script(server, SAY))
    assert (ended.rc, ended.out) == (0, f"rank 0 of 1 on {server.name}\n"), ended
    assert "to stderr\n" in ended.err
    assert "job.py, as all words" not in ended.err
    ended = on(client, where, script(server, SAY + "sys.exit(7)"), "--nproc_per_node", "2", "--lr=1",
               options=("--exit-code", "worker"))
    assert ended.err.count("--nproc-per-node goes to job.py, as all words behind the script do") == 1, ended
    assert ended.rc == 7 and ended.err.count("job.py FAILED") == 1, ended
    report = client.folder / "report.json"
    assert on(client, where, "job.py", options=("--report", report)).rc == 1
    assert json.loads(report.read_text())["outcome"] == "failed"
    ended = on(client, where, "job.py", options=("--report", report, "--detach"))
    assert ended.rc == 2 and "--report" in ended.err, ended
    server.nothing_left()


def test_several_hosts_are_one_job_with_one_report(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED.replace("sys.exit", "sys.exit(3) if os.environ['RANK'] == '3' else time.sleep"))
    run = client.start("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--nproc-per-node", "2", "job.py")
    until(lambda: run.out().count("of 4 on") == 4, 90, "all ranks have spoken")
    go(two)
    ended = run.wait(60)
    assert ended.rc == 1, ended
    assert sorted(line for line in ended.out.splitlines() if "went" not in line) == [
        f"gpus-{node}: [rank{2 * node + local}]: rank {2 * node + local} of 4 on {server.name}"
        for node, server in enumerate((one, two)) for local in range(2)], ended
    assert ended.err.count("job.py FAILED") == 1, ended.err
    assert ended.err.count("OMP_NUM_THREADS is not set") == 1, ended.err
    assert "rank      : 3" in ended.err and f"host      : {two.name}" in ended.err, ended.err
    for server in (one, two):
        server.nothing_left()


SAME = """import os, sys, time
for step in range(20):
    print("step", step, flush=True)
for step in range(0, 101, 4):  # as tqdm draws it
    sys.stderr.write(f"\\rEpoch:  {step}%|##  | {step}/100 [00:0{step % 7}<00:09, {step % 11}.{step}it/s]")
    sys.stderr.flush()
    time.sleep(0.05)
sys.stderr.write("\\n")
print("mine", os.environ["RANK"], flush=True)
"""


def test_lines_that_all_ranks_say_are_one_for_people(world):
    """By the client: the hosts keep each line."""
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, SAME)
    ended = on(client, "gpus", "job.py", options=("--nproc-per-node", "2", "--fold", "always"), timeout=90)
    assert ended.rc == 0, ended
    # Each line of each rank, in its order, and some of them together.
    folded = re.findall(r"^\[([0-9,-]+)\] (.*)$", ended.out, re.M)
    for rank in range(4):
        assert [line for ranks, line in folded if rank in numbers_in(ranks)] == [
            *(f"step {step}" for step in range(20)), f"mine {rank}"], ended.out
    assert len(folded) < 84 and "[rank" not in ended.out and "gpus-" not in ended.out, ended.out
    bars = re.findall(r"^\[([0-9,-]+)\] Epoch: ", ended.err, re.M)
    assert "0-3" in bars and ended.err.count("Epoch:") < 52, ended.err
    id_ = json.loads(client.run("jobs", "--json").out)["jobs"][0]["id"]
    assert client.run("logs", id_).out.count(": step 3\n") == 4
    assert client.run("logs", "--fold", "always", id_).out.count(" mine ") == 4


def numbers_in(ranks):
    """Of "0,2-3"."""
    ends = [part.partition("-") for part in ranks.split(",")]
    return {number for low, _, high in ends for number in range(int(low), int(high or low) + 1)}


def test_a_job_outlives_its_client(world):
    client, server = world()
    where = f"me@{server.addr}"
    id_ = detached(client, where, script(server, PARKED))
    client.forget_masters()
    follower = client.start("logs", "-f", id_)
    until(lambda: "rank 0 of 1" in follower.out(), 60, "the first line comes")
    listed = json.loads(client.run("jobs", "--json").out)["jobs"]
    assert [(job["id"], job["state"]) for job in listed] == [(id_, "running")], listed
    go(server)
    ended = follower.wait(30)
    assert (ended.rc, ended.out) == (0, f"rank 0 of 1 on {server.name}\nwent 0\n"), ended
    assert client.run("wait", id_).rc == 0
    listed = json.loads(client.run("jobs", "--json").out)["jobs"]
    assert [(job["state"], job["code"]) for job in listed] == [("succeeded", 0)], listed


def test_a_reader_that_has_seen_enough_ends_the_following_and_not_the_job(world):
    """The job prints nothing more, so that no write fails."""
    client, server = world()
    id_ = detached(client, f"me@{server.addr}", script(server, PARKED))
    reader, writer = os.pipe()
    follower = client.start("logs", "-f", id_, stdout=writer)
    os.close(writer)
    assert os.read(reader, 6) == b"rank 0"
    os.close(reader)
    ended = follower.wait(30)
    assert ended.rc == 128 + signal.SIGPIPE and ended.err in ("", "to stderr\n"), ended
    go(server)
    assert client.run("wait", id_).rc == 0


def test_a_follower_comes_back_at_the_very_byte(world):
    client, server = world()
    text = SAY + """
for i in range(200000):
    print('line', i)
    if i % 20000 == 0:
        sys.stdout.flush()
        while not os.path.exists(os.path.expanduser(f'~/go{i}')):
            time.sleep(0.01)
"""
    follower = client.start("run", "--on", f"me@{server.addr}", "--sync", "none", "--cwd", ".", script(server, text))
    for step in range(0, 200000, 20000):
        until(lambda step=step: f"line {step}\n" in follower.out(), 60, f"line {step} comes")
        # The connection is cut while more is under way.
        (server.homes["me"] / f"go{step}").touch()
        client.forget_masters()
    ended = follower.wait(120)
    lines = "".join(f"line {i}\n" for i in range(200000))
    assert ended.rc == 0, ended.err[-2000:]
    assert ended.out == f"rank 0 of 1 on {server.name}\n{lines}"
    assert "trying again" in ended.err and "is back" in ended.err


def test_cancel_ends_every_process_on_every_host(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    id_ = detached(client, "gpus", "job.py", options=("--nproc-per-node", "2"))
    until(lambda: len(job_processes(one)) > 3, 60, "its workers run")
    ended = client.run("cancel", id_)
    assert (ended.rc, ended.out) == (0, f"{id_}: canceled\n"), ended
    assert not job_processes(one) and not job_processes(two)
    assert client.run("wait", id_).rc != 0
    assert client.run("cancel", "no-such").rc == 2


def test_ctrl_c_ends_the_job_and_a_hangup_does_not(world):
    client, server = world()
    where = f"me@{server.addr}"
    script(server, PARKED)
    words = ("run", "--on", where, "--sync", "none", "--cwd", ".", "job.py")
    first = client.start(*words)
    until(lambda: "rank 0" in first.out(), 60, "it runs")
    first.process.send_signal(signal.SIGINT)
    ended = first.wait(60)
    assert ended.rc != 0 and "stopped on 1 host; once more hurries the end, a third time leaves" in ended.err, ended
    server.nothing_left()
    second = client.start(*words)
    until(lambda: "rank 0" in second.out(), 60, "it runs")
    second.process.send_signal(signal.SIGHUP)
    ended = second.wait(30)
    assert ended.rc == 128 + signal.SIGHUP and "goes on; lockstep logs -f" in ended.err, ended
    go(server)
    assert client.run("wait", "job.py").rc == 0


@pytest.mark.parametrize("fold", ["never", "always"])
def test_a_message_never_shares_a_line_with_a_progress_bar(world, fold):
    client, server = world()
    script(server, BAR)
    screen, terminal = pty.openpty()
    run = client.start("run", "--on", f"me@{server.addr}", "--sync", "none", "--cwd", ".", "--fold", fold, "job.py",
                       stdout=terminal, stderr=terminal)
    os.close(terminal)
    seen = b""
    while b"10%|#" not in seen:
        seen += os.read(screen, 4096)
    server.kill_all()
    while b"trying again" not in seen:
        seen += os.read(screen, 4096)
    assert re.search(r"10%\|#[^\n]*\nW[^\n]*trying again", seen.decode().replace("\r\n", "\n")), seen
    run.process.send_signal(signal.SIGHUP)
    run.wait(30)
    os.close(screen)


def test_nohup_keeps_a_client_whose_terminal_goes_away(world):
    client, server = world()
    master, terminal = pty.openpty()

    def take_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    follower = client.start("run", "--on", f"me@{server.addr}", "--sync", "none", "--cwd", ".",
                            script(server, PARKED), program=("/usr/bin/nohup", client.binary), stdin=terminal,
                            process_group=None, preexec_fn=take_terminal)
    os.close(terminal)
    until(lambda: "rank 0" in follower.out(), 60, "it runs")
    os.close(master)  # the kernel sends SIGHUP to the session's leader
    go(server)
    ended = follower.wait(60)
    assert ended.rc == 0 and "went 0\n" in ended.out, ended
    server.nothing_left()


def test_node_0_has_closed_its_trial_before_anybody_is_told_to_go(lockstep):
    """Otherwise a host that has begun could reach the trial at this port, instead of the job."""
    spec = {"id": "trial1", "name": "job", "node": 0, "nodes": 2, "run": ["--", "true"], "env": [],
            "folder": str(lockstep.home), "client": "test", "queue": False, "created_ms": 1, "after": [],
            "resumes": False}
    with subprocess.Popen([BINARY, "host-job", "start"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=lockstep.environment(), bufsize=1) as supervisor:
        def ask(request):
            supervisor.stdin.write(json.dumps(request) + "\n")
            return json.loads(supervisor.stdout.readline())
        facts = ask({"prepare": spec})["prepared"]
        with socket.create_connection(("127.0.0.1", facts["port"]), 10) as guest:
            assert guest.recv(100).decode() == facts["secret"]
        assert ask({"tried": True}) == {"closed": True}
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", facts["port"]), 10)
        supervisor.stdin.close()  # without a "go" the supervisor leaves nothing
        assert supervisor.stdout.read() == ""


@pytest.mark.parametrize("victim", ["supervisor", "lockstep-guard", "lockstep-agent"])
def test_a_killed_part_takes_all_with_it(world, victim):
    client, server = world()
    id_ = detached(client, f"me@{server.addr}", script(server, PARKED))
    state = json.loads((server.homes["me"] / f".local/state/lockstep/jobs/{id_}/state.json").read_text())
    # The job has begun before its agent has its name.
    (pid,) = [server.host.outer(state["supervisor"])] if victim == "supervisor" else \
        until(lambda: [pid for pid, comm in server.commands().items() if comm == victim], 20, f"there is a {victim}")
    os.kill(pid, signal.SIGKILL)
    server.nothing_left()
    ended = client.run("wait", id_)
    assert ended.rc == (255 if victim == "supervisor" else ended.rc) and ended.rc != 0, ended


def test_all_hosts_start_or_none(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    script(one, PARKED)
    ended = client.run("run", "--on", "gpus", "--sync", "none", "--cwd", "only-there", "job.py")
    assert ended.rc == 255 and "only-there: No such file or directory" in ended.err, ended
    (one.homes["me"] / "only-there").mkdir()
    ended = client.run("run", "--on", "gpus", "--sync", "none", "--cwd", "only-there", "job.py")
    assert ended.rc == 255 and "gpus-1: /home/me/only-there" in ended.err, ended
    two.stop_sshd()
    client.forget_masters()
    ended = on(client, "gpus", "job.py")
    assert ended.rc == 255 and "gpus-1: " in ended.err and "connection refused" in ended.err, ended
    one.nothing_left()
    assert not list(one.homes["me"].glob(".local/state/lockstep/jobs/*"))
    assert json.loads(client.run("jobs", "--json").out)["jobs"] == []


def test_a_host_that_cannot_begin_takes_the_others_back(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    # Looked at only when the job begins, when all hosts were ready.
    closed = two.homes["me"] / ".local/state/lockstep/projects"
    closed.mkdir(parents=True)
    subprocess.run(["chown", "-R", str(two.homes["me"].stat().st_uid), two.homes["me"] / ".local"], check=True)
    closed.chmod(0)
    ended = on(client, "gpus", "job.py")
    assert ended.rc == 255 and "gpus-1" in ended.err, ended
    one.nothing_left()
    two.nothing_left()
    assert json.loads(client.run("jobs", "--json").out)["jobs"] == []
    ended = on(client, "gpus", "job.py", options=("--explain",))
    assert ended.rc == 2 and "--explain" in ended.err, ended


def test_hosts_that_do_not_reach_each_other_are_named(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    script(one, SAY)
    one.host.holder.nft("add table inet wall", f"table inet wall {{ chain in {{ type filter hook input priority 0; "
                        f"ip saddr {two.addr} drop; }}; }}")
    ended = on(client, "gpus", "job.py")
    assert ended.rc == 255 and "gpus-1 cannot reach gpus-0 at any address" in ended.err, ended
    one.nothing_left()


# A login shell whose programs see another processor from then on.
OTHER_PROCESSOR = """#!/bin/sh
[ ! -e ~/other ] || exec setarch i686 /bin/bash "$@"
exec /bin/bash "$@"
"""


def test_hosts_of_different_processors_are_one_job_only_if_asked(world):
    client, one = world()
    two = world(users={"me": "/home/me/shell"})[1]
    (two.homes["me"] / script(two, OTHER_PROCESSOR, "shell")).chmod(0o755)
    add_cluster(client, (one, two))
    # The binary is brought there before the host changes, since there is none for an i686.
    assert client.exec("gpus", "true").rc == 0
    (two.homes["me"] / "other").touch()
    for server in (one, two):
        script(server, SAY)
    ended = on(client, "gpus", "job.py")
    assert ended.rc == 2 and "i686 (gpus-1), x86_64 (gpus-0)" in ended.err and "--mixed-hosts" in ended.err, ended
    assert " of 2 on" not in ended.out and json.loads(client.run("jobs", "--json").out)["jobs"] == [], ended
    ended = on(client, "gpus", "job.py", options=("--mixed-hosts",))
    assert ended.rc == 0 and ended.out.count(" of 2 on") == 2, ended
    assert on(client, "gpus", "job.py", options=("--nodes", "1")).rc == 0
    for server in (one, two):
        server.nothing_left()


def test_jobs_wait_for_their_turn(world):
    client, server = world()
    where = f"me@{server.addr}"
    script(server, PARKED)
    first = detached(client, where, "job.py")  # without the queue: it holds the GPUs all the same
    second = detached(client, where, "job.py", options=("--queue",))
    states = {job["id"]: job["state"] for job in json.loads(client.run("jobs", "--json").out)["jobs"]}
    assert states == {first: "running", second: "queued"}
    # Started again, it waits for its turn again.
    state = json.loads((server.homes["me"] / f".local/state/lockstep/jobs/{second}/state.json").read_text())
    os.kill(server.host.outer(state["supervisor"]), signal.SIGKILL)
    ended = client.run("resume", second)
    assert ended.rc == 0 and ended.out.startswith(f"{second}: is queued on "), ended
    kept = {job["id"]: job["state"] for job in json.loads(client.run("jobs", "--json", "--offline").out)["jobs"]}
    assert kept == states, kept
    third = detached(client, where, "job.py", options=("--queue",))
    assert client.run("cancel", third).rc == 0
    go(server)
    assert client.run("wait", second).rc == 0
    assert client.run("wait", first).rc == 0


def test_a_name_means_the_job_that_goes_on(world):
    """And where there are several of it, none is ended by chance: a second one has a name of its own."""
    client, server = world()
    where = f"me@{server.addr}"
    script(server, PARKED)
    (server.homes["me"] / "short.py").write_text("pass")
    old = detached(client, where, "job.py", options=("--name", "big"))
    ended = on(client, where, "job.py", options=("--name", "big", "--detach"))
    assert ended.rc == 0 and "a job named big has not ended: this job is named big-2" in ended.err, ended
    (second,) = [job for job in json.loads(client.run("jobs", "--json").out)["jobs"] if job["name"] == "big-2"]
    assert client.run("cancel", "big-2").out == f"{second['id']}: canceled\n"
    # As an older version has left it: a newer job of the same name has ended.
    book = client.root_home / ".local/state/lockstep/state.db"
    with contextlib.closing(sqlite3.connect(book)) as db, db:
        db.execute("UPDATE jobs SET name = 'big'")
    waiting = client.start("wait", "--json", "big")
    until(lambda: server.host.spoken("host-job", "follow"), 30, "the job that goes on is waited for")
    assert client.run("cancel", "big").out == f"{old}: canceled\n"
    told = json.loads(waiting.wait(30).out)
    assert (told["id"], told["canceled"]) == (old, True), told
    server.nothing_left()
    two = [detached(client, where, "job.py", options=("--name", name)) for name in ("a", "b")]
    with contextlib.closing(sqlite3.connect(book)) as db, db:
        db.execute("UPDATE jobs SET name = 'big'")
    refused = client.run("cancel", "big")
    assert refused.rc == 2 and "2 jobs are named big" in refused.err, refused
    assert all(id_ in refused.err for id_ in two) and old not in refused.err, refused
    for id_ in two:
        assert client.run("cancel", id_).rc == 0


def test_jobs_says_at_once_that_a_host_is_off(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    far = [detached(client, f"me@{two.addr}", "job.py", options=("--name", f"far{n}")) for n in range(2)]
    near = detached(client, f"me@{one.addr}", "job.py")
    two.host.cut()
    ended = client.run("jobs", "--json")
    away = {job["id"]: "unreachable_since_ms" in job for job in json.loads(ended.out)["jobs"]}
    assert away == {near: False, far[0]: True, far[1]: True}, ended
    assert {job["state"] for job in json.loads(ended.out)["jobs"]} == {"running"}, "as it was last known"
    assert ended.seconds < 12 and ended.err.count("no answer within 5 s") == 1, ended
    since = re.search(r"unreachable since (20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)", client.run("jobs", "--offline").out)
    assert since, ended
    two.host.heal()
    client.forget_masters()
    for id_ in (near, *far):
        assert client.run("cancel", id_).rc == 0


def test_this_machine_is_a_host_too(world):
    client, _ = world()
    path = client.folder / "job.py"
    path.write_text(SAY)
    ended = client.run("run", "--on", "local", "--nproc-per-node", "2", path)
    assert ended.rc == 0 and sorted(ended.out.splitlines()) == [
        f"[rank{rank}]: rank {rank} of 2 on {client.name}" for rank in range(2)], ended


def test_jobs_shows_plain_runs_of_this_machine(world):
    client, _ = world()
    path = client.folder / "job.py"
    path.write_text(PARKED)
    plain = client.start("run", path)
    until(lambda: "rank 0" in plain.out(), 60, "it runs")
    runs = json.loads(client.run("jobs", "--json").out)["runs"]
    assert len(runs) == 1 and client.host.outer(runs[0]["pid"]) == plain.process.pid, runs
    assert abs(runs[0]["started_ms"] / 1000 - time.time()) < 60, runs
    time.sleep(1.1)  # so that a time that was taken anew would differ
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("2")  # the kernel forgets when it made the folders of /proc
    again = json.loads(client.run("jobs", "--json").out)["runs"]
    assert abs(again[0]["started_ms"] - runs[0]["started_ms"]) < 100, (runs, again)
    assert str(path) in runs[0]["command"] and f"pid-{runs[0]['pid']}" in client.run("jobs").out
    plain.process.send_signal(signal.SIGTERM)
    plain.wait(30)
    assert json.loads(client.run("jobs", "--json").out)["runs"] == []




def test_a_plain_run_is_awaited_and_canceled_as_any_job(world):
    client, _ = world()
    path = client.folder / "job.py"
    path.write_text(PARKED)
    plain = client.start("run", path)
    until(lambda: "rank 0" in plain.out(), 60, "it runs")
    name = f"pid-{json.loads(client.run('jobs', '--json').out)['runs'][0]['pid']}"
    ended = client.run("logs", name)
    assert ended.rc == 2 and f"the output of {name} goes to the terminal" in ended.err, ended
    assert client.run("resume", name).rc == 2
    ended = client.run("why", name)
    assert ended.rc == 0 and ": running\n" in ended.out and "job.py:" in ended.out, ended
    assert ended.out.endswith(f"\nlockstep wait {name} waits for the end\n"), ended
    waiting = client.start("wait", name)
    ended = client.run("cancel", "--json", name)
    assert ended.rc == 0 and json.loads(ended.out)["state"] == "canceled", ended
    assert plain.wait(60).rc == 1
    # No host has recorded the end, so the job does not count as a success.
    ended = waiting.wait(60)
    assert ended.rc == 255 and "the result is not known" in ended.err, ended
    ended = client.run("cancel", name)
    assert ended.rc == 2 and f"there is no job '{name}'" in ended.err, ended
def test_logs_shows_the_last_lines_and_one_rank(world):
    client, server = world()
    text = SAY + "[print('line', i) for i in range(1000)]"
    id_ = detached(client, f"me@{server.addr}", script(server, text), options=("--nproc-per-node", "2"))
    assert client.run("wait", id_).rc == 0
    ended = client.run("logs", "--rank", "1", id_)
    assert ended.out == f"[rank1]: rank 1 of 2 on {server.name}\n" + "".join(
        f"[rank1]: line {i}\n" for i in range(1000)), ended.out[-500:]
    ended = client.run("logs", "-n", "2", id_)
    assert len(ended.out.splitlines()) == 2 and ended.out.endswith("line 999\n"), ended
    assert client.run("logs", "-n", "-1", id_).rc == 2


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_lines_for_programs_keep_every_byte(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    said = b"caf\xc3\xa9 \"quoted\"\r\n\xff\x00\n[rank7]: not ours\n" + b"x" * 70000 + b"\nno end"
    for server in (one, two):
        script(server, f"import os, sys; os.write(1, {said!r}); os.write(2, b'bad\\n')")
    id_ = detached(client, "gpus", "job.py", options=("--nproc-per-node", "2", "--redirects", "0", "--tee", "0"))
    assert client.run("wait", id_).rc == 0
    lines = objects(client.run("logs", "--json", "-f", id_).out)
    for node in ("gpus-0", "gpus-1"):
        mine = [line for line in lines if (line["node"], line["stream"]) == (node, "stdout")]
        # Both workers write to the same pipe, each of their writes whole.
        whole = b"".join((f"[rank{line['rank']}]: " if "rank" in line else "").encode() +
                         (base64.b64decode(line["text_base64"]) if "text_base64" in line else line["text"].encode()) +
                         (b"" if line.get("cut") else b"\n") for line in mine)
        assert whole == (one.homes["me"] / f".local/state/lockstep/jobs/{id_}/out").read_bytes(), whole[-300:]
        assert whole.count(b"caf\xc3\xa9 \"quoted\"\r\n\xff\x00\n") == 2
        assert [line["text"] for line in lines
                if (line["node"], line["stream"]) == (node, "stderr") and line["text"] == "bad"] == ["bad"] * 2
    id_ = detached(client, "gpus", "job.py", options=("--nproc-per-node", "2"))
    client.run("wait", id_)
    lines = objects(client.run("logs", "--json", "--rank", "3", id_).out)
    assert {(line["node"], line["rank"]) for line in lines} == {("gpus-1", 3)}, lines
    assert [line["text"] for line in lines if line["stream"] == "stderr"] == ["bad"], lines
    assert any(line["text"] == "[rank7]: not ours" for line in lines)


def test_endings_and_resumed_parts_for_programs(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    id_ = detached(client, "gpus", "job.py", options=("--name", "big"))
    ended = client.run("cancel", "--json", id_)
    assert ended.rc == 0, ended
    told = json.loads(ended.out)
    assert (told["id"], told["name"], told["state"], told["canceled"]) == (id_, "big", "canceled", True), told
    ended = client.run("wait", "--json", id_)
    again = json.loads(ended.out)
    assert again == told and ended.rc == told["code"] != 0, (again, told)
    # A part may end with its peer before the word reaches its own host.
    states = [host["state"] for host in told["hosts"]]
    assert [host["name"] for host in told["hosts"]] == ["gpus-0", "gpus-1"], told
    assert "canceled" in states and set(states) <= {"canceled", "failed"}, told
    (row,) = [line for line in client.run("jobs").out.splitlines() if line.startswith(id_)]
    assert " canceled " in row and "exit" not in row and "failed" not in row, row
    id_ = detached(client, "gpus", "job.py", env={"KEY": "s3cret"}, options=(
        "--max-restarts", "3", "--rdzv-conf", "heartbeat_timeout=2", "--env", "WORD=kept", "--secret", "KEY"))
    state = json.loads((two.homes["me"] / f".local/state/lockstep/jobs/{id_}/state.json").read_text())
    os.kill(two.host.outer(state["supervisor"]), signal.SIGKILL)
    two.nothing_left()
    ended = client.run("resume", "--json", id_)
    assert ended.rc == 2 and "--secret KEY" in ended.err, ended
    book = client.root_home / ".local/state/lockstep/state.db"
    assert b"s3cret" not in book.read_bytes() and book.stat().st_mode & 0o077 == 0
    ended = client.run("resume", "--json", "--secret", "KEY", id_, env={"KEY": "s3cret"})
    assert ended.rc == 0 and json.loads(ended.out) == {
        "id": id_, "state": "running", "nodes": ["gpus-1"], "ahead": []}, ended
    (worker,) = until(lambda: [pid for pid, comm in two.commands().items() if comm == "python3"], 60, "it runs again")
    given = pathlib.Path(f"/proc/{worker}/environ").read_bytes().split(b"\0")
    assert b"WORD=kept" in given and b"KEY=s3cret" in given, given
    go(one, two)
    ended = client.run("wait", "--json", id_)
    assert (ended.rc, json.loads(ended.out)["state"]) == (0, "succeeded"), ended
    one.stop_sshd()
    client.forget_masters()
    ended = client.run("resume", id_)
    assert ended.rc == 255 and "no answer from gpus-0" in ended.err and "may still run" in ended.err, ended
    assert f"lockstep resume {id_} once all hosts answer" in ended.err and not ended.out, ended
    two.stop_sshd()
    client.forget_masters()
    told = json.loads(client.run("cancel", "--json", id_).out)
    assert told["hosts"][1] == {"name": "gpus-1", "state": "unknown"}, told


FAILING = """import os, sys
if os.environ["RANK"] == "1":
    print("ValueError: the batch is empty", file=sys.stderr)
    sys.exit(3)
"""


def test_why_and_top_show_what_the_ranks_on_all_hosts_do(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    id_ = detached(client, "gpus", "--nproc-per-node", "2", "job.py")
    parked = PARKED.splitlines().index("    time.sleep(0.02)") + 1

    def looks():
        said = json.loads(client.run("why", "--json", id_).out).get("looks", [])
        seen = [group["at"]["line"] for look in said for group in look["fold"]["groups"] if "line" in group["at"]]
        return len(said) == 2 and set(seen) <= {f"job.py:{parked - 1}", f"job.py:{parked}"} and said

    said = until(looks, 30, "both hosts tell")
    assert {look["world"] for look in said} == {4}
    text = client.run("why", id_)
    assert text.rc == 0 and "ranks 0-3" in text.out, text
    rank = client.run("why", id_, "--rank", 3)
    stack = r"rank 3, pid \d+, state .*\n  main thread\n.*job\.py:\d+ in <module>\n$"
    assert rank.rc == 0 and re.match(stack, rank.out), rank
    # The ranks move between two lines.
    block = r"ranks 0-3, state .*\n  main thread\n.*job\.py:\d+ in <module>\n$"
    until(lambda: re.match(block, client.run("why", id_, "--threads").out), 60, "the ranks of both hosts are one block")
    native = client.run("why", id_, "--native").out
    assert re.findall(r"\branks? (\S+), ", native) and "    native: " in native, native
    nodes = json.loads(client.run("top", "--json", id_).out)["nodes"]
    assert [[row["rank"] for row in node["rows"]] for node in nodes] == [[0, 1], [2, 3]], nodes
    table = client.run("top", "job.py")
    assert table.rc == 0 and f"job {id_} on gpus: job.py, attempt 1, 4 of 4 ranks\n" in table.out, table
    folded = re.compile(r"^0-3 +2 nodes .*job\.py:\d+", re.M)
    until(lambda: folded.search(client.run("top", "job.py").out), 60, "the ranks are one line")
    assert client.run("cancel", id_).rc == 0
    ended = client.run("top", id_)
    assert ended.rc == 1 and f"job {id_} has ended: canceled" in ended.err, ended


def test_a_hang_on_another_host_is_told_with_its_rank_and_line(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, HANG.read_text(), HANG.name)
    id_ = detached(client, "gpus", "--nproc-per-node", "2", "--hang-after", "5", HANG.name, "sleep", "3")
    hang = re.compile(r"hang: no rank .*(\n.*){2}")
    told = until(lambda: hang.search(client.run("logs", id_).err), 150, "the hang is told")
    named = rf"\n.*\brank 3\b.*{re.escape(line_of('sleep'))}"
    assert re.search(named, told[0]), told[0]
    why = client.run("why", id_)
    assert why.rc == 0 and "\nhung for " in why.out and re.search(named, why.out), why
    assert client.run("cancel", id_).rc == 0


def test_why_names_the_worker_that_failed_first(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, FAILING)
    id_ = detached(client, "gpus", "job.py", options=("--name", "big"))
    assert client.run("wait", id_).rc == 1
    ended = client.run("why", "big")
    assert ended.rc == 0 and f"job {id_} (big) on gpus: failed (1)" in ended.out, ended
    assert re.search(r"root cause: rank 1 on \S+, exit code 3\n  ValueError: the batch is empty\n", ended.out), ended
    ended = client.run("why", "--json", id_)
    assert ended.rc == 0, ended
    told = json.loads(ended.out)
    assert (told["state"], told["code"], told["root_cause"]["rank"]) == ("failed", 1, 1), told
    assert [node["name"] for node in told["nodes"]] == ["gpus-0", "gpus-1"], told
    ended = client.run("why", "nosuch")
    assert ended.rc == 2 and "'nosuch' is neither a Slurm job id nor a job" in ended.err, ended


def test_a_started_job_for_programs(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    options = ("--detach", "--json", "--queue")
    ended = on(client, "gpus", "job.py", options=options)
    assert ended.rc == 0, ended
    first = json.loads(ended.out)
    assert re.fullmatch(r"[0-9a-f]{8}", first["id"]) and first == {
        "id": first["id"], "state": "running", "nodes": ["gpus-0", "gpus-1"], "ahead": []}
    second = json.loads(on(client, "gpus", "job.py", options=options).out)
    assert (second["state"], second["ahead"]) == ("queued", [first["id"]])
    for job in (second, first):
        assert client.run("cancel", job["id"]).rc == 0
    ended = on(client, "gpus", "job.py", options=("--json",))
    assert (ended.rc, ended.out) == (2, "") and "--detach" in ended.err, ended


def test_options_that_need_on_say_so(world):
    client, _ = world()
    ended = client.run("run", "--detach", "job.py")
    assert ended.rc == 2 and "--detach needs --on" in ended.err, ended


def test_the_project_comes_along_and_edits_count(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    project = client.folder / "proj"
    (project / "sub").mkdir(parents=True)
    (project / "lib").mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / "sub/train.py").write_text("import os, mine; print(mine.word, os.getcwd())")
    for word in ("first", "second"):
        (project / "lib/mine.py").write_text(f"word = '{word}'")
        ended = client.run("run", "--on", "gpus", "--install", "local:./lib", "train.py", cwd=project / "sub")
        assert ended.rc == 0, ended
        assert sorted(ended.out.splitlines()) == [
            f"gpus-{node}: [rank{node}]: {word} /home/me/proj/sub" for node in range(2)], ended
    ended = client.run("run", "--on", "gpus", project / "sub/train.py", cwd=project)
    assert ended.rc == 0 and ended.out.count("second /home/me/proj\n") == 2, ended
    ended = client.run("run", "--on", "gpus", "--install", "bogus:x", "train.py", cwd=project / "sub")
    assert ended.rc == 2 and "bogus" in ended.err, ended


def test_outputs_come_back_at_the_end(world):
    """Also those of a job that failed. A success without its outputs is none."""
    client, one = world()
    add_cluster(client, (one,))
    project = client.folder / "proj"
    project.mkdir()

    def run(*options, script):
        return client.run("run", "--on", "gpus", *options, "--no-python", "sh", "-c", script, cwd=project)

    ended = run("--back", "out", "--back", "log", script="mkdir out; echo 7 > out/step; echo bad > log; exit 3")
    assert ended.rc == 1 and "out: 1 file, 2 B brought back" in ended.err, ended
    assert ((project / "out/step").read_text(), (project / "log").read_text()) == ("7\n", "bad\n")
    parked = client.start("run", "--on", "gpus", "--back", "out", "--no-python", "sh", "-c",
                          "echo up; until test -e ~/go; do sleep 0.1; done", cwd=project)
    until(lambda: "up" in parked.out(), 60, "it runs")
    parked.process.send_signal(signal.SIGHUP)
    left = parked.wait(30)
    assert left.rc == 128 + signal.SIGHUP and "after the job's end: lockstep sync gpus --back PATH" in left.err, left
    (one.homes["me"] / "go").touch()
    assert client.run("wait", "sh").rc == 0
    ended = run("--back", "none", script="exit 0")
    assert ended.rc == 255 and "none" in ended.err.splitlines()[-1], ended
    for options, words in ((("--back", "out", "--detach"), ("--detach", "lockstep sync gpus --back PATH")),
                           (("--back", "out", "--sync", "none"), ("--sync none",)),
                           (("--back", "../x"), ("../x",))):
        one_line(run(*options, script="touch ran"), 2, *words)
    here = client.run("run", "--on", "local", "--sync", "none", "--back", "out", "--no-python", "true", cwd=project)
    one_line(here, 2, "the files are here")
    assert not (one.homes["me"] / "proj/ran").exists()


def test_a_job_runs_in_the_environment_that_its_install_names(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = client.folder / "proj"
    (project / "lib").mkdir(parents=True)
    (project / "lib/mine.py").write_text("word = 'mine'")
    (project / "train.py").write_text(
        "import mine, os, sys; print(mine.word, os.environ.get('VIRTUAL_ENV'), sys.prefix)")

    def run(*options):
        return client.run("run", "--on", where, *options, "train.py", cwd=project)
    ended = run("--install", "local:./lib", "--venv", "own")
    assert (ended.rc, ended.out) == (0, "mine /home/me/proj/own /home/me/proj/own\n"), ended
    ended = run()  # it stays the project's
    assert (ended.rc, ended.out) == (0, "mine /home/me/proj/own /home/me/proj/own\n"), ended
    ended = run("--install", "local:./lib", "--system")
    assert (ended.rc, ended.out) == (0, "mine None /usr\n"), ended
    for options, words in ((("--venv", "own"), "--venv says where --install puts packages"),
                           (("--install", "local:./lib", "--venv", "a", "--system"), "more than one of --venv"),
                           (("--install", "conda:x.yml", "--system"), "'conda:x.yml' can't go into")):
        ended = run(*options)
        assert ended.rc == 2 and words in ended.err, ended
    ended = client.run("run", "--venv", "own", "train.py", cwd=project)
    assert ended.rc == 2 and "--venv needs --on" in ended.err, ended


def test_a_failed_install_starts_nothing(world):
    client, server = world()
    project = client.folder / "proj"
    project.mkdir()
    (project / "train.py").write_text("print('ran')")
    ended = client.run("run", "--on", f"me@{server.addr}", "--install", "reqs:none.txt", "train.py", cwd=project)
    assert ended.rc not in (0, 2) and "none.txt" in ended.err and "ran" not in ended.out, ended
    assert json.loads(client.run("jobs", "--json").out)["jobs"] == []


def test_a_host_that_was_switched_off_comes_back_into_the_job(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    follower = client.start("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--max-restarts", "3",
                            "--rdzv-conf", "heartbeat_timeout=2", "job.py")
    until(lambda: follower.out().count("of 2 on") == 2, 90, "both run")
    two.stop_sshd()
    two.kill_all()
    until(lambda: "rank 0 of" in follower.out() and "gpus-1" in follower.err(), 60, "the loss is noticed")
    two.start_sshd()
    until(lambda: "lockstep resume" in follower.err(), 60, "the follower says what can be done")
    id_ = json.loads(client.run("jobs", "--json").out)["jobs"][0]["id"]
    ended = client.run("resume", id_)
    assert (ended.rc, ended.out) == (0, f"{id_}: runs again on gpus-1\n"), ended
    until(lambda: follower.out().count("of 2 on") == 4, 60, "both run again")
    go(one, two)
    ended = follower.wait(60)
    assert ended.rc == 0 and ended.out.count("went") == 2, ended
    ended = client.run("resume", id_)
    assert ended.rc == 2 and "is lost" in ended.err, ended


def test_a_silent_hosts_part_is_not_started_again(world):
    """The part may still run, or may have ended. Only the host's own answer makes it lost."""
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    follower = client.start("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--max-restarts", "3",
                            "--rdzv-conf", "heartbeat_timeout=2", "job.py")
    until(lambda: follower.out().count("of 2 on") == 2, 90, "both run")
    id_ = json.loads(client.run("jobs", "--json").out)["jobs"][0]["id"]
    one.stop_sshd()
    client.forget_masters()
    ended = client.run("resume", id_)
    assert ended.rc == 255 and "no answer from gpus-0" in ended.err and "may still run" in ended.err, ended
    assert f"lockstep resume {id_} once all hosts answer" in ended.err and not ended.out, ended
    two.stop_sshd()
    two.kill_all()
    two.start_sshd()
    ended = client.run("resume", id_)
    assert (ended.rc, ended.out) == (0, f"{id_}: runs again on gpus-1\n"), ended
    assert "no answer from gpus-0" in ended.err, ended
    one.start_sshd()
    until(lambda: follower.out().count("of 2 on") == 4, 90, "both run again, the first in the job that it kept")
    go(one, two)
    ended = follower.wait(60)
    assert ended.rc == 0 and ended.out.count("went") == 2, ended


def test_a_client_killed_at_any_moment_leaves_a_known_job_or_none(world):
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    assert client.run("exec", "gpus", "--", "true").rc == 0
    began = 0
    for round_ in range(12):
        run = client.start("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "job.py")
        # Killed after more and more of its steps, by what it has done so far: the steps take no fixed time.
        until(lambda round_=round_: len(one.commands()) + len(two.commands()) >= round_ or run.process.poll(), 30,
              f"{round_} processes run there")
        run.process.kill()
        run.process.wait(10)
        jobs = json.loads(client.run("jobs", "--json").out)["jobs"]
        for job in jobs:
            if job["state"] not in ("succeeded", "failed", "canceled", "lost"):
                began += 1
                assert client.run("cancel", job["id"]).rc in (0, 255)
        for server in (one, two):
            server.nothing_left()
    assert began > 0, "no round came as far as a running job"


def test_variables_and_secrets_reach_the_job_and_nothing_else(world):
    client, server = world()
    where = f"me@{server.addr}"
    script(server, PARKED.replace(
        "print('went'", "print(os.environ['A'], len(os.environ['KEY']), os.environ['B'], 'went'"))
    (client.folder / "file.env").write_text("# names\nB=from the file\n")
    secret = "s3cr3t-" + "x" * 20
    id_ = detached(client, where, "job.py", options=("--env", "A=1 2", "--env-file", client.folder / "file.env",
                                                    "--secret", "KEY"), env={"KEY": secret})
    for pid in {**server.commands(), **client.commands()}:
        assert secret.encode() not in (pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()), pid
    go(server)
    ended = client.run("logs", "-f", id_)
    assert ended.rc == 0 and "1 2 27 from the file went 0\n" in ended.out, ended
    for folder in (server.homes["me"], client.root_home):
        for path in folder.rglob("*"):
            assert not path.is_file() or path.is_symlink() or secret.encode() not in path.read_bytes(), path
    ended = on(client, where, "job.py", options=("--secret", "NOT_THERE"))
    assert ended.rc == 2 and "NOT_THERE" in ended.err, ended
    one_job = json.loads(client.run("jobs", "--json").out)["jobs"]
    assert len(one_job) == 1, one_job
