"""lockstep cluster check: what hosts have, and what would stop a job there, each with its remedy. --repair removes
leftovers of killed clients, and nothing that is in use."""
import json
import os
import pathlib
import platform
import shutil
import socket
import subprocess
import time

import pytest

from harness import until
from lying_host import LyingHost
from ssh_hosts import SshWorld


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def make_cluster(client, *servers, name="gpus"):
    hosts = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    assert client.run("cluster", "add", name, *hosts).rc == 0


def checked(client, where, *options):
    """Exit code and JSON of a check."""
    ended = client.run("cluster", "check", where, "--json", *options)
    return ended.rc, json.loads(ended.out)


def what(report):
    return {(finding["weight"], finding["what"]): finding for finding in report["findings"]}


def test_a_host_tells_what_it_is_and_has(world):
    client, server = world()
    code, report = checked(client, f"me@{server.addr}")
    (node,) = report["nodes"]
    facts = node["facts"]
    assert node["reached"] and 0 < node["latency_ms"] < 1000
    assert (facts["user"], facts["uid"], facts["host"]) == ("me", 2001, server.name)
    assert facts["arch"] == platform.machine() and facts["kernel"] == platform.release()
    assert facts["cpus"] == len(os.sched_getaffinity(0))
    assert facts["home"]["path"] == "/home/me" and facts["home"]["writable"] and facts["home"]["free"] > 0
    assert facts["python"]["path"] and facts["python"]["version"].startswith("3.")
    assert facts["rsync"]["version"] and facts["git"]["version"]
    # The host has this machine's clock.
    assert abs(node["clock"]["ahead_ms"]) <= node["clock"]["error_ms"] + 50
    assert code == (1 if any(weight == "trouble" for weight, _ in what(report)) else 0)
    ended = client.run("cluster", "check", f"me@{server.addr}")
    assert ended.rc == code and f"me (2001) on {server.name}" in ended.out, ended
    server.nothing_left()


def test_what_would_stop_a_job_is_named_with_its_cure(world):
    client, server = world()
    server._inside("mount", "--bind", "/tmp", "/tmp")  # not another one: sshd's keys lie in this
    server._inside("mount", "-o", "remount,bind,noexec", "/tmp")
    server._inside("mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "tmpfs", "/dev/shm")
    subprocess.run(["prlimit", "--pid", str(server.sshd.process.pid), "--nofile=512:512"], check=True)
    code, report = checked(client, f"me@{server.addr}")
    assert code == 1
    assert {("trouble", "tmp-noexec"), ("trouble", "shm-small"), ("trouble", "few-open-files")} <= set(what(report))
    ended = client.run("cluster", "check", f"me@{server.addr}")
    lines = [line for line in ended.out.splitlines() if line.startswith("trouble: ")]
    assert ended.rc == 1 and len(lines) >= 3 and all("; " in line for line in lines), ended
    assert any("/tmp is mounted noexec" in line and "TMPDIR" in line for line in lines), ended


def test_a_home_that_can_not_be_written_to_any_more(world):
    client, server = world()
    assert client.exec(f"me@{server.addr}", "true").rc == 0
    os.chown(server.homes["me"], 0, 0)
    code, report = checked(client, f"me@{server.addr}")
    assert code == 1 and ("trouble", "home-not-writable") in what(report), report


def test_a_table_of_several_hosts_names_those_not_reached(world):
    client, *servers = world(3)
    make_cluster(client, *servers)
    servers[1].stop_sshd()
    ended = client.run("cluster", "check", "gpus")
    assert ended.rc == 255, ended
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["NODE", "gpus-0", "gpus-1", "gpus-2"], ended
    assert lines[2].split() == ["gpus-1", "-"] and servers[2].name in lines[3], ended
    (told,) = [line for line in lines if line.startswith("not reached: ")]
    assert told.startswith("not reached: gpus-1: ") and "connection refused" in told, ended
    code, report = checked(client, "gpus", "--nodes", "0,2")
    assert code != 255 and [node["node"] for node in report["nodes"]] == ["gpus-0", "gpus-2"]


def test_two_names_of_one_machine_are_found_out(world):
    client, one, other = world(2, users={"me": "/bin/bash", "you": "/bin/bash"})
    assert client.run("cluster", "add", "gpus", "--host", f"me@{one.addr}", "--host", f"me@{other.addr}",
                      "--host", f"you@{one.addr}").rc == 0
    code, report = checked(client, "gpus")
    found = what(report)[("trouble", "same-machine")]
    assert code == 1 and found["nodes"] == ["gpus-0", "gpus-2"], found


def old(path, seconds=3600):
    os.utime(path, (time.time() - seconds,) * 2)


def test_repair_removes_what_killed_clients_left_and_nothing_in_use(world):
    client, server = world()
    where = f"me@{server.addr}"
    assert client.exec(where, "true").rc == 0
    folder = server.homes["me"] / ".cache/lockstep/bin"
    (own,) = folder.iterdir()
    part, young, running, unused = (folder / name for name in (
        f"{own.name}.part0011", f"{own.name}.new0022", "lockstep-0.0.1-aaaa", "lockstep-0.0.1-bbbb"))
    part.write_bytes(b"x")
    young.write_bytes(b"x")
    for binary in (running, unused):
        shutil.copy("/bin/sleep", binary)
        os.chown(binary, 2001, 2001)
    for file in (part, running, unused, own):
        old(file)
    stray = client.root_home / ".local/state/lockstep/hosts-gone"
    stray.write_text("")
    push = client.root_home / ".cache/lockstep/push"
    draft = push / "lockstep-0.0.1-aaaa.gz.x7y8"
    draft.write_text("")
    old(draft)
    (compressed,) = (file for file in push.iterdir() if file != draft)
    old(compressed)
    # The folder lies in the client's own mount namespace.
    inside = pathlib.Path(f"/proc/{client.host.holder.pid}/root{client.runtime}")
    dead = inside / "lockstep/00112233445566ff"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(os.fspath(dead))
    (alive,) = (file for file in dead.parent.iterdir() if file.is_socket() and file != dead)

    # While the old binary runs, it stays.
    sleeper = client.start("exec", where, "--", f"./.cache/lockstep/bin/{running.name}", "1000")
    until(lambda: running.name[:15] in server.commands().values(), 30, "the old binary runs")
    code, report = checked(client, where, "--repair")
    assert code in (0, 1)
    assert not part.exists() and not unused.exists()
    assert own.exists() and young.exists() and running.exists() and compressed.exists() and alive.exists()
    assert not (stray.exists() or draft.exists() or dead.exists())
    told = report["nodes"][0]["repaired"] + report["repaired_here"]
    assert len(told) == 5 and all(any(str(path.name) in line for line in told)
                                  for path in (part, unused, stray, draft, dead)), told
    sleeper.process.kill()
    sleeper.wait(20)
    server.nothing_left()
    ended = client.run("cluster", "check", where, "--repair")
    assert f"removed {where}: an unused binary" in ended.out and not running.exists(), ended
    ended = client.run("cluster", "check", where, "--repair")
    assert "there was nothing to repair" in ended.out, ended
    assert client.exec(where, "echo", "hi").out == "hi\n"


def test_bad_input_is_named(world):
    client, server = world()
    for args, words in (((), "no cluster or host"), (("a", "b"), "one word too many"),
                        (("a", "--nodes", "7"), "--nodes 7"), (("-x",), "-x")):
        ended = client.run("cluster", "check", *args)
        assert ended.rc == 2 and words in ended.err, ended


def test_a_host_that_logs_in_and_then_says_nothing_is_not_waited_for(world):
    client, silent, greets = world(2)
    (silent.homes["me"] / ".bashrc").write_text("cat > /dev/null; exit\n")
    host = LyingHost(client, greets)
    host.lies("link.hello(); link.until_gone()")
    checks = [client.start("cluster", "check", f"me@{server.addr}") for server in (silent, greets)]
    for check, server, doing, words in zip(checks, (silent, greets), ("logging in", "its answer"), (
            "the log-in succeeded, but then nothing came for 60 s", "no answer within 60 s")):
        ended = check.wait(120)
        assert ended.rc == 255 and words in ended.out + ended.err, ended
        for seconds in (5, 40):
            assert (f"waiting for me@{server.addr} for {seconds} s: {doing}; Ctrl-C ends this command"
                    in ended.err), ended
