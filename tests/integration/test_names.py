"""Host names on a machine with another C library than the binary's, and with name service modules of its own."""
import os
import socket
import subprocess

import pytest

from harness import BINARY, PEERS, WORKER, skip

ROOT = PEERS / "trixie"
MODULES = ["libnss_mdns4_minimal.so.2", "libnss_resolve.so.2", "libnss_myhostname.so.2", "libnss_mymachines.so.2"]
FEDORA = "files myhostname resolve [!UNAVAIL=return] dns"
UBUNTU = "files mdns4_minimal [NOTFOUND=return] dns mymachines"
DEBIAN = "files mymachines resolve [!UNAVAIL=return] myhostname dns"
SHORT = "files dns myhostname"

# A network of its own, in which no DNS answers; files of this test over the root's own, in a private mount namespace.
INSIDE = """
ip link set lo up
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$2/nsswitch.conf" "$1/etc/nsswitch.conf"
mount --bind "$2/hosts" "$1/etc/hosts"
mount --bind "$2" "$1/tmp"
here=$1
shift 2
exec chroot "$here" env PATH=/tmp/bin:/usr/bin:/bin timeout 30 /tmp/lockstep "$@"
"""


@pytest.fixture
def machine(tmp_path):
    if os.getuid() != 0:
        skip("chroot needs root")
    if "INTERP" in subprocess.run(["readelf", "-l", BINARY], capture_output=True, text=True).stdout:
        pytest.skip("only a static binary has a C library of its own")
    missing = [name for name in MODULES if not (ROOT / "usr/lib" / f"{os.uname().machine}-linux-gnu" / name).exists()]
    if missing:
        skip(f"no {missing} in .cache/peers/trixie: run ./dev peers")
    subprocess.run(["cp", BINARY, tmp_path / "lockstep"], check=True)
    subprocess.run(["cp", WORKER, tmp_path / "worker"], check=True)
    (tmp_path / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n127.0.0.7 known-here\n")
    (tmp_path / "bin").mkdir()
    return tmp_path


def run(machine, line, *args):
    (machine / "nsswitch.conf").write_text(f"passwd: files\ngroup: files\n{line}\n")
    return subprocess.run(
        ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-ec", INSIDE, "sh", ROOT, machine, "run",
         *args],
        capture_output=True, text=True, timeout=60)


def run_at(machine, line, name, *more, join_timeout=20):
    return run(machine, line, "--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{name}:29400",
               "--rdzv-conf", f"timeout=2,join_timeout={join_timeout},last_call_timeout=1", *more,
               "--no-python", "/tmp/worker", "out=hello\\n")


@pytest.mark.parametrize("line", [FEDORA, UBUNTU, DEBIAN, SHORT])
def test_a_name_nobody_knows(machine, line):
    ended = run_at(machine, f"hosts: {line}", "node7.local", join_timeout=2)
    assert ended.returncode == 1, ended.stderr
    assert "look up the host name 'node7.local': 'getent ahosts node7.local' knows no address" in ended.stderr
    assert f"'{line}'" in ended.stderr


@pytest.mark.parametrize("line", [FEDORA, DEBIAN, SHORT])
def test_a_name_that_only_a_module_knows(machine, line):
    ended = run_at(machine, f"hosts: {line}", "job.localhost")  # of myhostname
    assert (ended.returncode, ended.stdout) == (0, "hello\n"), ended.stderr


@pytest.mark.parametrize("line", [FEDORA, UBUNTU, DEBIAN, SHORT])
def test_a_name_in_etc_hosts_starts_no_getent(machine, line):
    getent(machine, "touch /tmp/asked")
    ended = run_at(machine, f"hosts: {line}", "known-here", "--local-addr", "127.0.0.7")
    assert (ended.returncode, ended.stdout) == (0, "hello\n"), ended.stderr
    assert not (machine / "asked").exists()


@pytest.mark.parametrize("line",
                         ["hosts: files dns", "hosts: dns [!UNAVAIL=return] files", "# no such line", "hosts: files ["])
def test_files_and_dns_start_no_getent(machine, line):
    getent(machine, "touch /tmp/asked")
    ended = run_at(machine, line, "node7.local", join_timeout=2)
    assert ended.returncode == 1, ended.stderr
    assert "look up the host name 'node7.local': " in ended.stderr
    assert not (machine / "asked").exists()


def test_the_words_of_getent(machine):
    getent(machine, "echo the directory is down >&2; exit 2")
    ended = run_at(machine, f"hosts: {FEDORA}", "node7.local", join_timeout=2)
    assert ended.returncode == 1, ended.stderr
    assert "'getent ahosts node7.local' knows no address: the directory is down" in ended.stderr


def getent(machine, script):
    path = machine / "bin/getent"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
