"""An x86-64 client and a host for arm64. `./dev arm64` calls this file: the binary of the build is for arm64 and runs
in an emulator, and LOCKSTEP_CLIENT names the binary of the client."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import BINARY
from ssh_hosts import SshWorld

CLIENT = pathlib.Path(os.environ["LOCKSTEP_CLIENT"])
# All hosts share the client's kernel, so an account's login shell gets a `uname` that says aarch64. The emulator tells
# the binary the same.
SHELL = '#!/bin/sh\nPATH=/home/me/programs:$PATH exec /bin/sh "$@"\n'
UNAME = '#!/bin/sh\n/bin/uname "$@" | sed s/x86_64/aarch64/\n'
SAY = "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], flush=True)\n"


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def installed(tmp_path):
    """The client's binary, and the packed one for arm64 where a .deb has it."""
    place = tmp_path / "usr"
    for folder in ("bin", "lib/lockstep"):
        (place / folder).mkdir(parents=True)
    shutil.copy(CLIENT, place / "bin/lockstep")
    plain = tmp_path / "plain"
    subprocess.run(["aarch64-linux-gnu-strip", "-o", plain, BINARY], check=True)
    (place / "lib/lockstep/lockstep-aarch64.gz").write_bytes(gzip.compress(plain.read_bytes(), 1))
    return place


def arm_host(world):
    host = world(users={"me": "/home/me/shell"})[1]
    program(host.homes["me"] / "shell", SHELL)
    program(host.homes["me"] / "programs/uname", UNAME)
    return host


def machine_of(program):
    return re.search(r"Machine:\s+(.*)", subprocess.run(["readelf", "-h", program], check=True, text=True,
                                                        capture_output=True).stdout)[1]


def test_a_client_brings_the_binary_and_runs_jobs(world, installed):
    host = arm_host(world)
    client = world.client
    client.binary = installed / "bin/lockstep"
    where = f"me@{host.addr}"
    ended = client.exec(where, "sh", "-c", "cat; echo err >&2; exit 3", stdin=open(__file__))
    assert (ended.rc, ended.out, ended.err) == (3, open(__file__).read(), "err\n"), ended
    (binary,) = (host.homes["me"] / ".cache/lockstep/bin").glob("lockstep-*")
    assert machine_of(binary) == "AArch64"
    (host.homes["me"] / "job.py").write_text(SAY)
    words = ("--sync", "none", "--cwd", ".")
    ended = client.run("run", "--on", where, *words, "--nproc-per-node", "2", "job.py")
    assert ended.rc == 0 and sorted(re.findall(r"rank \d of 2", ended.out)) == ["rank 0 of 2", "rank 1 of 2"], ended
    other = world(1)[1]
    (other.homes["me"] / "job.py").write_text(SAY)
    assert client.run("cluster", "add", "mixed", "--host", where, "--host", f"me@{other.addr}").rc == 0
    ended = client.run("run", "--on", "mixed", *words, "job.py")
    assert ended.rc == 2 and "aarch64 (mixed-0), x86_64 (mixed-1)" in ended.err, ended
    ended = client.run("run", "--on", "mixed", *words, "--mixed-hosts", "job.py")
    assert ended.rc == 0 and sorted(re.findall(r"rank \d of 2", ended.out)) == ["rank 0 of 2", "rank 1 of 2"], ended
    for each in (host, other):
        each.nothing_left()


def test_a_damaged_file_is_named(world, installed):
    host = arm_host(world)
    world.client.binary = installed / "bin/lockstep"
    packed = installed / "lib/lockstep/lockstep-aarch64.gz"
    packed.write_bytes(packed.read_bytes()[:-100])
    ended = world.client.exec(f"me@{host.addr}", "true")
    assert ended.rc == 255 and ended.err.count("error:") == 1 and "lockstep-aarch64.gz is damaged" in ended.err, ended
    host.nothing_left()


def test_segments_fit_pages_of_64_kib():
    said = subprocess.run(["readelf", "-lW", BINARY], check=True, text=True, capture_output=True).stdout
    sizes = [int(size, 16) for size in re.findall(r"^\s+LOAD\s.*\s(0x[0-9a-f]+)$", said, re.M)]
    assert sizes and min(sizes) >= 65536, said
