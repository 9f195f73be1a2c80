"""Events, health port, metrics, and the watchdogs that environment variables enable."""
import contextlib
import json
import os
import re
import signal
import stat
import urllib.error
import urllib.request

import pytest

from harness import BINARY, SCRIPTS, events, free_port, until

PREFIX = "torchelastic.worker.status."


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
        return reply.status, reply.headers, reply.read().decode()


def test_console_events(lockstep):
    ended = lockstep.run_worker("--event-log-handler", "console", "--nproc-per-node", 2, "--role", "trainer",
                                "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job3",
                                actions=["exit=0"])
    assert ended.rc == 0, str(ended)
    seen = events(ended.err)
    names = [event["name"] for event in seen]
    assert names[:2] == [PREFIX + "RENDEZVOUS", PREFIX + "ASSIGN_WORKER_RANKS"]
    assert names.count(PREFIX + "START") in (1, 2) and names.count(PREFIX + "SUCCEEDED") >= 2
    for event in seen:
        assert set(event) == {"name", "source", "timestamp", "metadata"}
        assert event["source"] in ("AGENT", "WORKER")
        metadata = event["metadata"]
        assert (metadata["run_id"], metadata["role"], metadata["rdzv_backend"]) == ("job3", "trainer", "c10d")
        inner = json.loads(metadata["metadata"])
        assert inner["group_world_size"] == 1
    assert "duration_ms" in seen[0]["metadata"] or "duration_ms" in seen[1]["metadata"]
    workers = [event["metadata"] for event in seen if event["source"] == "WORKER"
               and event["name"].endswith("SUCCEEDED")]
    assert sorted(worker["global_rank"] for worker in workers) == [0, 1]
    assert all(worker["worker_id"].isdigit() for worker in workers)
    assert sorted(json.loads(worker["metadata"])["local_rank"] for worker in workers) == [[0], [1]]


def test_console_events_of_a_failure(lockstep):
    ended = lockstep.run_worker("--event-log-handler", "console", "--nproc-per-node", 2, actions=[
        "@0", "exit=3", "@1", "pause"])
    seen = events(ended.err)
    failed = [event for event in seen if event["name"] == PREFIX + "FAILED" and event["source"] == "WORKER"]
    assert [3] in [json.loads(event["metadata"]["metadata"])["exit_code"] for event in failed]


def test_no_events_by_default(lockstep):
    assert events(lockstep.run_worker(actions=["exit=0"]).err) == []


@pytest.fixture
def served(lockstep):
    port = free_port()
    run = lockstep.start_worker("--nproc-per-node", 2, "--max-restarts", 1, "--role", "trainer",
                                env={"TORCHELASTIC_HEALTH_CHECK_PORT": port},
                                actions=[f"touch={lockstep.facts}", f"touch={lockstep.folder}", "await"])
    pids = lockstep.ready(2)
    yield run, port, pids
    run.signal(signal.SIGTERM)
    run.wait()


def test_health(served):
    _, port, _ = served
    code, _, body = get(port, "/health")
    assert code == 200 and body
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(port, "/nothing")
    assert refused.value.code == 404


def test_metrics(served, lockstep):
    _, port, pids = served
    code, headers, body = get(port, "/metrics")
    assert code == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    for line in body.splitlines():
        assert line.startswith("#") or re.fullmatch(r'[a-z_:]+(\{[^}]*\})? [-+0-9.e]+', line), line
    assert 'role="trainer"' in body
    (lockstep.facts / "0").unlink(), (lockstep.facts / "1").unlink()
    os.kill(pids[0], signal.SIGKILL)
    lockstep.ready(2)
    later = get(port, "/metrics")[2]
    assert re.search(r"(?m)^lockstep_workers_restarts_total\{.*\} 1$", later), later


def test_health_port_that_is_taken(lockstep):
    import socket
    with socket.socket() as holder:
        holder.bind(("0.0.0.0", 0))
        holder.listen()
        port = holder.getsockname()[1]
        ended = lockstep.run_worker(env={"TORCHELASTIC_HEALTH_CHECK_PORT": port}, actions=["exit=0"])
    assert ended.rc == 0 and str(port) in ended.err, str(ended)  # said; the job does not depend on it


def test_health_is_not_served_unless_asked(lockstep):
    run = lockstep.start_worker(actions=[f"env={lockstep.facts}", f"touch={lockstep.facts}", "await"])
    lockstep.ready(1)
    listening = set()
    agent = run.agent()
    inodes = set()
    for fd in os.listdir(f"/proc/{agent}/fd"):
        # The agent opens files of /proc for a moment while it looks at its workers.
        with contextlib.suppress(FileNotFoundError):
            inodes.add(os.readlink(f"/proc/{agent}/fd/{fd}"))
    for table in ("tcp", "tcp6"):
        for line in open(f"/proc/net/{table}").read().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                listening.add(fields[1])
    run.signal(signal.SIGTERM)
    run.wait()
    assert len(listening) == 1  # the store's, and
    address, port = listening.pop().split(":")
    assert int(port, 16) == int(lockstep.worker_env()["MASTER_PORT"])
    assert address in ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")  # loopback


@pytest.fixture
def timer(lockstep):
    fifo = lockstep.folder / "timer"
    yield fifo
    assert not fifo.exists()


def timed(lockstep, script, fifo, *args):
    return lockstep.start(*args, SCRIPTS / "timer.py", script, env={
        "TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": fifo, "OUT_DIR": lockstep.facts})


def test_file_timer_kills_the_worker_and_ends_the_agent(lockstep, timer):
    run = timed(lockstep, "expire", timer, "--nproc-per-node", 2)
    lockstep.ready(2, 60)
    until(lambda: lockstep.run("why", f"pid-{run.pid}", program=(BINARY,)).out.count("timer.py:") == 2, 60,
          "both ranks are seen")
    (lockstep.facts / "go").touch()
    ended = run.wait(60)
    assert ended.rc != 0 and "the timer 'step' of process" in ended.err, str(ended)
    # Read before the rank was killed.
    assert re.findall(r"\n  others    : rank (\d) was in <module>, timer\.py:\d+", ended.err) == ["0", "1"], str(ended)
    run.none_left()


def test_file_timer_that_is_released_does_nothing(lockstep, timer):
    ended = timed(lockstep, "release", timer).wait(60)
    assert ended.rc == 0, str(ended)


def test_file_timer_is_a_fifo_that_workers_are_told_about(lockstep):
    run = lockstep.start_worker(env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"},
                                actions=[f"env={lockstep.facts}", f"touch={lockstep.facts}", "await"])
    lockstep.ready(1)
    path = lockstep.worker_env()["TORCHELASTIC_TIMER_FILE"]
    assert stat.S_ISFIFO(os.stat(path).st_mode)
    run.signal(signal.SIGTERM)
    run.wait()
    until(lambda: not os.path.exists(path))
