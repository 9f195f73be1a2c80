"""Tests of the test hosts (hosts.py): plain sockets and processes, no launcher.

To show without waiting that nothing arrives, a test lets a third host send something afterwards, which arrives first.
"""
import os
import select
import signal
import socket
import subprocess
import sys

import pytest

from harness import WORKER, alive, until
from hosts import Hosts

PORT = 7000


def udp(host, address=""):
    with host.network():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, PORT))
    made.settimeout(5)
    return made


def tcp(client, server):
    """A connection between two hosts: both ends."""
    with server.network():
        listener = socket.create_server((server.addr, PORT))
    with client.network():
        near = socket.create_connection((server.addr, PORT), 5)
    far, _ = listener.accept()
    listener.close()
    near.settimeout(5), far.settimeout(5)
    return near, far


def events(*ends):
    """Returns what the sockets report now: data, a FIN, a RST, an error."""
    poll = select.poll()
    for end in ends:
        poll.register(end, select.POLLIN | select.POLLRDHUP)
    return poll.poll(0)


def arrives(sender, receiver, witness, address):
    """Returns whether a datagram arrives. The witness's datagram, sent later, arrives in any case."""
    sender.sendto(b"x", (address, PORT))
    witness.sendto(b"end", (address, PORT))
    got = receiver.recv(10)
    return got == b"x" and receiver.recv(10) == b"end"


def test_each_host_has_its_own_name_address_and_processes(hosts):
    a, b = hosts(2)
    look = ("hostname; getent ahostsv4 node0 node1 | grep STREAM; ip -br -4 address show eth0; echo $$; "
            "ls -d /proc/[0-9]*")
    seen = [host.run("-c", look, program=("/bin/sh",)).out for host in (a, b)]
    for host, text in zip((a, b), seen):
        lines = text.split("\n")
        assert lines[0] == host.name
        assert [line.split()[0] for line in lines[1:3]] == [a.addr, b.addr]
        assert f"{host.addr}/24" in lines[3]
        assert int(lines[4]) < 30 and text.count("/proc/") < 5  # its own processes only
    assert socket.gethostname() not in (a.name, b.name)


def test_more_hosts_come_later_and_are_known_to_all(hosts):
    (a,) = hosts(1)
    (b,) = hosts(1)
    assert b.addr in a.run(b.name, program=("getent", "hosts")).out
    tcp(a, b)


def test_two_networks_on_one_machine_do_not_meet(hosts, tmp_path):
    lockstep = type("Other", (), {"folder": tmp_path / "other"})
    lockstep.folder.mkdir()
    other = Hosts(lockstep)
    try:
        (a, b), (c, d) = hosts(2), other(2)
        assert (a.addr, b.addr) == (c.addr, d.addr)
        here, there = udp(b), udp(d)
        udp(a).sendto(b"here", (b.addr, PORT))
        udp(c).sendto(b"there", (d.addr, PORT))
        assert (here.recv(10), there.recv(10)) == (b"here", b"there")
    finally:
        other.close()


def test_a_cut_is_silent_and_heals(hosts):
    a, b, c = hosts(3)
    near, far = tcp(a, b)
    from_a, to_b, from_c = udp(a), udp(b), udp(c)
    assert arrives(from_a, to_b, from_c, b.addr)
    a.cut()
    assert not arrives(from_a, to_b, from_c, b.addr)
    near.sendall(b"from a"), far.sendall(b"from b")
    assert events(near, far) == []
    a.heal()
    assert (near.recv(10), far.recv(10)) == (b"from b", b"from a")  # sent again by the kernel
    assert arrives(from_a, to_b, from_c, b.addr)
    near.close()
    assert far.recv(10) == b""


# Whoever is cut off learns nothing from a peer that ends meanwhile.
def test_no_fin_passes_a_cut(hosts):
    a, b = hosts(2)
    near, far = tcp(a, b)
    a.cut()
    near.close()
    assert events(far) == []
    a.heal()
    assert far.recv(10) == b""


@pytest.mark.parametrize("way", ["in", "out"])
def test_a_one_way_drop_drops_one_way(hosts, way):
    a, b, c = hosts(3)
    at = {host: udp(host) for host in (a, b, c)}
    for host in (a, b, c):  # the drop hides ARP too, so they know each other before
        for other in (a, b, c):
            at[host].sendto(b"hello", (other.addr, PORT))
    for host in (a, b, c):
        assert [at[host].recv(10) for _ in range(3)] == [b"hello"] * 3
    a.drop_in() if way == "in" else a.drop_out()
    assert arrives(at[a], at[b], at[c], b.addr) == (way == "in")
    if way == "out":
        assert arrives(at[b], at[a], at[c], a.addr)
    else:
        at[b].sendto(b"x", (a.addr, PORT))
        at[a].sendto(b"own", (a.addr, PORT))
        assert at[a].recv(10) == b"own"
    a.heal()
    assert arrives(at[b], at[a], at[c], a.addr) and arrives(at[a], at[b], at[c], b.addr)


def test_a_host_that_vanished_says_nothing_and_can_come_back(hosts):
    a, b = hosts(2)
    with b.network():
        listener = socket.create_server((b.addr, PORT))
    script = ("import os, socket, time; from socket import *\n"
              f"s = create_connection(('{b.addr}', {PORT})); s.send(b'hello')\n"
              "os.fork() and os.setsid(); s.recv(1)")
    run = a.start("-c", script, program=(sys.executable,))
    far, _ = listener.accept()
    far.settimeout(5)
    assert far.recv(10) == b"hello"
    until(lambda: len(a.processes()) == 2)
    a.vanish()
    assert not a.processes() and not run.living()
    far.sendall(b"still there?")
    assert events(far) == []
    a.boot()
    with pytest.raises(ConnectionResetError):  # the new host knows of no such connection
        far.recv(1)
    assert a.run(b.name, program=("getent", "hosts")).rc == 0


def test_a_second_nic_reaches_only_those_that_have_one(hosts):
    a, b, c = hosts(3)
    second = a.second_nic(), b.second_nic()
    assert second[0] != second[1] and a.addr not in second
    from_a, to_b, from_c = udp(a), udp(b), udp(c)
    from_a.sendto(b"x", (second[1], PORT))
    assert to_b.recvfrom(10) == (b"x", (second[0], PORT))
    with pytest.raises(OSError, match="unreachable"):
        from_c.sendto(b"x", (second[1], PORT))
    b.cut()
    from_a.sendto(b"second", (second[1], PORT)), from_a.sendto(b"first", (b.addr, PORT))
    to_b.sendto(b"own", ("127.0.0.1", PORT))
    assert to_b.recv(10) == b"own"
    b.heal()
    from_a.sendto(b"again", (second[1], PORT))
    assert to_b.recv(10) == b"again"


def test_freeze_and_thaw(hosts, tmp_path):
    (a,) = hosts(1)
    run = a.start(f"touch={tmp_path}", f"wait={tmp_path}/go", f"mark={tmp_path}/went", program=(WORKER,))
    local = int(until(lambda: (tmp_path / "0").exists() and (tmp_path / "0").read_text()))
    assert local != run.pid and a.outer(local) == run.pid
    a.freeze(run.pid)
    (tmp_path / "go").touch()
    assert alive(run.pid) and not (tmp_path / "went").exists()
    a.thaw(run.pid)
    assert run.wait().rc == 0 and (tmp_path / "went").exists()


def test_what_is_left_on_a_host_is_seen_whatever_it_did(hosts):
    (a,) = hosts(1)
    for program in (("env", "-i", WORKER), ("setsid", "env", "-i", "unshare", "-pf", "--kill-child", WORKER)):
        a.start("daemon", "exit=0", program=program).wait()
    until(lambda: list(a.processes().values()).count("test_worker") >= 1)
    with pytest.raises(AssertionError, match="nothing left"):
        hosts.none_left(0)
    a.off()
    hosts.none_left(0)


def test_lockstep_runs_on_a_host(hosts):
    (a,) = hosts(1)
    run = a.start_worker("--isolation", "pidns", "--nproc-per-node", 2,
                         actions=["daemon", "loaders=2", "await"])
    until(lambda: list(a.processes().values()).count("test_worker") == 8)
    assert a.agent() == run.agent()
    assert [path.parent for path in a.logs.iterdir()] == [a.logs]
    run.signal(signal.SIGTERM)
    run.wait()
    hosts.none_left()


def test_a_crashed_test_leaves_nothing(lockstep, tmp_path):
    """SIGKILL, so that no cleanup code runs."""
    script = f"""
import pathlib, sys, time
sys.path.insert(0, {os.path.dirname(__file__)!r})
import harness, hosts
place = pathlib.Path({str(tmp_path)!r}) / "inner"
place.mkdir()
made = hosts.Hosts(harness.Lockstep(place))
for host in made(2):
    host.start("daemon", "pause", program=(harness.WORKER,))
print(*(host._inode for host in made.all), made.switch.network_inode(), flush=True)
time.sleep(600)
"""
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    inodes = {int(word) for word in run.stdout.readline().split()}
    assert len(inodes) == 3

    def inside():
        found = set()
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                found.add(os.stat(f"/proc/{name}/ns/net").st_ino)
            except OSError:
                pass
        return inodes & found
    until(lambda: inside() == inodes)
    run.kill()
    run.wait()
    run.stdout.close()
    until(lambda: not inside(), what="the networks are empty")


def test_a_folder_that_is_hidden_keeps_the_checkout_and_the_tests_folder(hosts, lockstep, monkeypatch, tmp_path):
    """Hosts have a /tmp and a /home of their own, and a checkout may lie in either."""
    place = tmp_path / "place"
    for name in ("others", "checkout/build", "deep/in/test"):
        (place / name).mkdir(parents=True)
        (place / name / "file").write_text(name)
    monkeypatch.setattr("hosts.REPOSITORY", place / "checkout")
    monkeypatch.setattr("hosts.BUILD", place / "checkout/build")
    (host,) = hosts(1)
    monkeypatch.setattr(lockstep, "folder", place / "deep/in/test")
    host.hide(place)
    monkeypatch.undo()

    def seen():
        return host.run(place, "-type", "f", program=("/usr/bin/find",)).out.split()
    assert sorted(seen()) == [f"{place}/checkout/build/file", f"{place}/deep/in/test/file"]
    (place / "checkout/new").touch()
    assert f"{place}/checkout/new" in seen()
    assert (place / "others/file").exists()


def test_a_chroot_whose_root_is_no_mount_point_can_have_hosts(tmp_path):
    """The kernel refuses a private mount namespace there, and entering one would leave the chroot."""
    root = tmp_path / "root"
    for name in ("proc", "usr", "etc", "dev", "tmp", "mnt"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc/mark").write_text("chroot")
    program = f"""
import os, subprocess, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import root_mount
root_mount.ensure()
private = ["unshare", "--mount", "--propagation", "private"]
subprocess.run([*private, "nsenter", "--mount=/proc/self/ns/mnt", "cat", "/etc/mark"], check=True)
"""
    (root / "program.py").write_text(program)
    os.makedirs(f"{root}{os.path.dirname(__file__)}")
    script = f"""
mount --rbind /usr {root}/usr
mount --rbind /dev {root}/dev
mount --bind {os.path.dirname(__file__)} {root}{os.path.dirname(__file__)}
mount -t proc proc {root}/proc
exec chroot {root} /usr/bin/python3 /program.py
"""
    ended = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-ec", script], capture_output=True,
                           text=True)
    assert (ended.returncode, ended.stdout) == (0, "chroot"), ended
