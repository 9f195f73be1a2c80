"""A host whose whole userland is busybox: no bash, coreutils, Python, rsync or git. Only the binary is added."""
import json
import os
import re
import shutil
import subprocess

import pytest

from harness import BINARY, until
from ssh_hosts import SshWorld

BUSYBOX = "/bin/busybox"


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


@pytest.fixture
def host(world):
    """(client, server, where). sshd puts the user into a chroot, with busybox's shell."""
    client, server = world(users={"me": "/bin/sh"})
    inside = server._inside
    inside("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/srv")
    for folder in ("bin", "dev", "etc", "home/me", "proc", "tmp"):
        inside("mkdir", "-p", f"/srv/{folder}")
    inside("cp", BUSYBOX, "/srv/bin/busybox")
    inside("chroot", "/srv", "/bin/busybox", "--install", "-s", "/bin")
    inside("cp", "/etc/passwd", "/srv/etc/passwd")
    inside("chmod", "1777", "/srv/tmp")
    inside("mount", "--bind", server.homes["me"], "/srv/home/me")
    inside("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/srv/dev")
    for name in ("null", "zero", "urandom"):
        inside("touch", f"/srv/dev/{name}")
        inside("mount", "--bind", f"/dev/{name}", f"/srv/dev/{name}")
    inside("mkdir", "-m", "1777", "/srv/dev/shm")
    inside("mount", "--rbind", "/proc", "/srv/proc")
    # Only a release build is static: another build needs its libraries.
    linked = subprocess.run(["ldd", BINARY], capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", linked):
        inside("install", "-D", "-m", "755", library, f"/srv{library}")
    server.stop_sshd()
    server.start_sshd("ChrootDirectory /srv")
    return client, server, f"me@{server.addr}"


def test_a_host_of_busybox_alone(host):
    client, server, where = host
    ended = client.exec(where, "ls", "/bin/bash", "/usr/bin/env", "/usr/bin/python3")
    assert ended.rc == 1 and ended.out == "" and ended.err.count("No such file") == 3, ended
    assert client.run("exec", "--shell", "echo $0 $HOME; exit 3", where).out.split()[-1] == "/home/me"
    odd = ["", "-n", "a b\n'\"$HOME\\", "é"]
    assert client.exec(where, "printf", "%s|", *odd).out == "".join(word + "|" for word in odd)
    assert client.exec(where, "python3").rc == 127
    project = client.folder / "code"
    (project / "data").mkdir(parents=True)
    for number in range(30):
        (project / f"data/{number}").write_bytes(os.urandom(1_000_000))
    (project / "job.sh").write_text(
        "#!/bin/sh\necho rank $RANK of $WORLD_SIZE\nwhile [ ! -e ~/go ]; do sleep 0.1; done\n")
    (project / "job.sh").chmod(0o755)
    for _ in range(2):
        ended = client.run("sync", "--json", where, cwd=project, timeout=120)
        assert ended.rc == 0 and json.loads(ended.out)["hosts"][0]["code"] == 0, ended
    there = server.homes["me"] / "code"
    for path in (project / "data").iterdir():
        assert (there / "data" / path.name).read_bytes() == path.read_bytes()
    shutil.rmtree(project / "data")
    run = client.start("run", "--on", where, "--nproc-per-node", "2", "--no-python", "./job.sh", cwd=project)
    until(lambda: run.out().count("of 2") == 2 or run.process.poll() is not None, 60, "both workers speak")
    assert not (there / "data").exists() and run.process.poll() is None, run.err()
    (job,) = json.loads(client.run("jobs", "--json").out)["jobs"]
    assert client.run("cancel", job["id"]).out == f"{job['id']}: canceled\n"
    assert run.wait(30).rc != 0
    server.nothing_left()
    said = client.run("logs", job["id"]).out
    assert sorted(said.splitlines()) == [f"[rank{rank}]: rank {rank} of 2" for rank in (0, 1)], said
    (server.homes["me"] / "go").touch()
    ended = client.run("run", "--on", where, "--no-python", "./job.sh", cwd=project)
    assert (ended.rc, ended.out) == (0, "rank 0 of 1\n"), ended
    ended = client.run("cluster", "check", "--json", where)
    told = json.loads(ended.out)
    facts = told["nodes"][0]["facts"]
    assert facts["user"] == "me" and not any(facts[name]["path"] for name in ("python", "rsync", "git", "uv")), facts
    assert "no-python" in [finding["what"] for finding in told["findings"]], told["findings"]
    server.nothing_left()
