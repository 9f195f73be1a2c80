"""lockstep cluster: hosts under a name, kept in a database; commands on all of its nodes at once."""
import contextlib
import json
import os
import sqlite3
import subprocess

import pytest

from harness import BINARY, PYTHON, REPOSITORY
from ssh_hosts import SshWorld


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def state(lockstep):
    return lockstep.folder / "state/lockstep/state.db"


def cluster(lockstep, *args):
    return lockstep.run("cluster", *args, program=(BINARY,),
                        env={"XDG_STATE_HOME": lockstep.folder / "state"})


def refused(ended, code, *words):
    assert ended.rc == code and ended.out == "", ended
    (line,) = ended.err.splitlines()
    assert all(word in line for word in words), ended


def test_a_cluster_is_added_shown_and_removed(lockstep):
    key = lockstep.folder / "key"
    key.touch()
    hostfile = lockstep.folder / "hostfile"
    hostfile.write_text("worker-0 slots=8\nroot@worker-1:2222 slots=4 # spare\n")
    ended = cluster(lockstep, "add", "gpus", "--host", "ubuntu@10.0.0.5", "--hosts-file", hostfile, "--user", "me",
                    "--key-path", key, "--jump", "j")
    assert (ended.rc, ended.out) == (0, "gpus: 3 nodes\n"), ended
    shown = json.loads(cluster(lockstep, "show", "gpus", "--json").out)
    assert [(node.get("user"), node["host"], node.get("port"), node.get("slots")) for node in shown["nodes"]] == [
        ("ubuntu", "10.0.0.5", None, None), ("me", "worker-0", None, 8), ("root", "worker-1", 2222, 4)]
    assert all(node["key_path"] == str(key) and node["jump"] == "j" for node in shown["nodes"])
    assert "1  me@worker-0  slots 8" in cluster(lockstep, "show", "gpus").out
    assert cluster(lockstep, "list").out.splitlines()[1].split()[:2] == ["gpus", "3"]
    assert [each["name"] for each in json.loads(cluster(lockstep, "list", "--json").out)] == ["gpus"]
    assert cluster(lockstep, "remove", "gpus").rc == 0
    added = json.loads(cluster(lockstep, "add", "two", "--host", "a", "--host", "b", "--json").out)
    assert added == json.loads(cluster(lockstep, "show", "two", "--json").out) and len(added["nodes"]) == 2
    assert json.loads(cluster(lockstep, "remove", "two", "--json").out) == added
    assert json.loads(cluster(lockstep, "list", "--json").out) == []
    assert os.stat(state(lockstep)).st_mode & 0o777 == 0o600


def test_bad_input_is_named_and_adds_nothing(lockstep):
    assert cluster(lockstep, "add", "known", "--host", "a").rc == 0
    refused(cluster(lockstep, "add", "known", "--host", "b"), 1, "cluster known already exists", "remove")
    refused(cluster(lockstep, "add", "--host", "a"), 2, "no cluster is named")
    refused(cluster(lockstep, "add", "x"), 2, "no host is given")
    refused(cluster(lockstep, "add", "x", "--slurm", "y"), 2, "'y' is one word too many")
    refused(cluster(lockstep, "add", "x", "--host", "a", "--key-path", "/no/key"), 2, "/no/key: there is no such file")
    refused(cluster(lockstep, "add", "x", "--host", "a", "--key-path", "/"), 2, "the key must be a regular file")
    refused(cluster(lockstep, "add", "a/b", "--host", "a"), 2, "'a/b' cannot be the name of a cluster")
    refused(cluster(lockstep, "add", "local", "--host", "a"), 2, "this machine")
    refused(cluster(lockstep, "add", "x", "--host=-oProxyCommand=id"), 2, "is not a host")
    refused(cluster(lockstep, "add", "x", "--host", "a", "--host", "a"), 2, "a is given twice")
    refused(cluster(lockstep, "add", "x", "--hosts-file", "/nowhere"), 1, "/nowhere")
    bad = lockstep.folder / "bad"
    bad.write_text("a\nb slots=x\n")
    refused(cluster(lockstep, "add", "x", "--hosts-file", bad), 2, "line 2", "slots=x")
    refused(cluster(lockstep, "show", "gpus"), 1, "there is no cluster gpus", "there are: known")
    refused(cluster(lockstep, "remove", "gpus"), 1, "there is no cluster gpus")
    assert [each["name"] for each in json.loads(cluster(lockstep, "list", "--json").out)] == ["known"]


def test_hosts_are_given_in_many_ways_and_come_and_go(lockstep):
    def hosts(name):
        return [node["host"] for node in json.loads(cluster(lockstep, "show", name, "--json").out)["nodes"]]
    assert cluster(lockstep, "add", "two", "--host", "a", "b").out == "two: 2 nodes\n"
    assert cluster(lockstep, "add", "more", "--hosts", "a,me@b", "--hosts", "c").out == "more: 3 nodes\n"
    assert cluster(lockstep, "add", "bare", "a", "b").rc == 0
    assert [hosts(name) for name in ("two", "more", "bare")] == [["a", "b"], ["a", "b", "c"], ["a", "b"]]
    refused(cluster(lockstep, "add", "two", "--host", "c"), 1, "lockstep cluster add-host two HOST")
    assert cluster(lockstep, "add-host", "two", "c", "--user", "me").out == "two: 3 nodes\n"
    refused(cluster(lockstep, "add-host", "two", "a"), 2, "a is given twice")
    refused(cluster(lockstep, "add-host", "two"), 2, "no host is given")
    refused(cluster(lockstep, "add-host", "none", "a"), 1, "there is no cluster none")
    for host, left in (("two-0", ["b", "c"]), ("me@c", ["b"])):
        assert cluster(lockstep, "remove-host", "two", host).rc == 0
        assert hosts("two") == left
    refused(cluster(lockstep, "remove-host", "two", "b"), 2, "two would have no host left", "cluster remove two")
    refused(cluster(lockstep, "remove-host", "more", "z"), 2, "more has no host z", "cluster show more")
    assert cluster(lockstep, "remove-host", "more", "me@b", "0").rc == 0 and hosts("more") == ["c"]


def test_hosts_are_replaced_at_once_and_nothing_else_is(lockstep):
    """The same from Python: a failed replacement must keep the known hosts."""
    folder = state(lockstep).parent

    def hosts(name):
        return [node["host"] for node in json.loads(cluster(lockstep, "show", name, "--json").out)["nodes"]]

    def python(arguments, code=0):
        text = f"import lockstep; lockstep.cluster({arguments})"
        ended = lockstep.run("-c", text, program=(PYTHON,), env={
            "XDG_STATE_HOME": lockstep.folder / "state", "PYTHONPATH": REPOSITORY / "python",
            "LOCKSTEP_BINARY": BINARY})
        assert ended.rc == code, ended
        return ended.err

    assert cluster(lockstep, "add", "own", "--host", "a", "b", "--replace").rc == 0 and hosts("own") == ["a", "b"]
    pins = folder / "hosts-own"
    pins.write_text("a ssh-ed25519 AAAA\n")
    assert cluster(lockstep, "add", "own", "--host", "c", "--replace").out == "own: 1 node\n"
    assert hosts("own") == ["c"] and pins.exists(), "an accepted host key was forgotten"
    assert "cluster own is now d; it was c" in python("name='own', ips=['d']") and hosts("own") == ["d"]
    assert pins.exists() and python("name='own', ips=['d']") == ""
    assert "'-oX' is not a host" in python("name='own', ips=['-oX']", code=1) and hosts("own") == ["d"]
    words = ["--on-demand", "A100:8", "-y"]
    assert cluster(lockstep, "add", "rented", *words).rc == 0
    replace = cluster(lockstep, "add", "rented", "--host", "a", "--replace")
    refused(replace, 2, "rented must be a cluster of your own hosts")
    refused(cluster(lockstep, "add", "rented", *words, "--replace"), 2, "--replace is for", "remove rented")
    refused(cluster(lockstep, "add", "own", "--slurm", "--replace"), 2, "--replace is for", "remove own")
    assert "rented must be a cluster of your own hosts" in python("name='rented', ips=['a']", code=1)
    assert cluster(lockstep, "show", "rented", "--json").rc == 0 and hosts("own") == ["d"]


def test_a_rented_cluster_is_added_with_its_wish_or_not_at_all(lockstep):
    words = ["--on-demand", "A100:8", "-y"]
    assert cluster(lockstep, "add", "first", *words).rc == 0
    with contextlib.closing(sqlite3.connect(state(lockstep).parent / "rentals.db")) as rentals:
        rentals.execute("CREATE TRIGGER full BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'no room'); END")
        refused(cluster(lockstep, "add", "rented", *words), 1, "no room")
        refused(cluster(lockstep, "show", "rented"), 1, "there is no cluster rented")
        rentals.execute("DROP TRIGGER full")
    assert cluster(lockstep, "add", "rented", *words).rc == 0


def test_a_damaged_database_is_kept_and_the_way_on_is_told(lockstep):
    state(lockstep).parent.mkdir(parents=True)
    state(lockstep).write_bytes(b"no database" * 1000)
    refused(cluster(lockstep, "list"), 1, "state.db is damaged", "move the file away")
    assert state(lockstep).read_bytes() == b"no database" * 1000


def test_many_clients_add_at_once(lockstep):
    environment = {"XDG_STATE_HOME": lockstep.folder / "state"}
    runs = [lockstep.start("cluster", "add", f"c{number}", "--host", "a", program=(BINARY,), env=environment)
            for number in range(8)]
    for run in runs:
        ended = run.wait(60)
        assert ended.rc == 0, ended
    assert len(json.loads(cluster(lockstep, "list", "--json").out)) == 8


def knows(pins, address):
    return subprocess.run(["ssh-keygen", "-F", address, "-f", pins], stdout=subprocess.DEVNULL).returncode == 0


def test_a_command_on_all_nodes(world):
    client, *servers = world(3)
    hosts = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    assert client.run("cluster", "add", "gpus", *hosts).rc == 0
    ended = client.exec("gpus", "sh", "-c", "hostname; hostname >&2")
    assert ended.rc == 0, ended
    assert sorted(ended.out.splitlines()) == [f"gpus-{i}: {server.name}" for i, server in enumerate(servers)]
    assert client.exec("gpus", "hostname", options=("--nodes", "1")).out == f"{servers[1].name}\n"
    assert sorted(client.run("exec", "gpus", "--nodes", "0,2", "hostname").out.splitlines()) == [
        f"gpus-0: {servers[0].name}", f"gpus-2: {servers[2].name}"]
    code = f"case $(hostname) in {servers[1].name}) exit 4;; {servers[2].name}) exit 5;; esac"
    assert client.exec("gpus", "sh", "-c", code).rc == 4
    pins = list((client.root_home / ".local/state/lockstep").glob("hosts-gpus"))
    assert pins and all(knows(pins[0], server.addr) for server in servers)
    servers[1].stop_sshd()
    client.forget_masters()
    ended = client.exec("gpus", "hostname")
    assert ended.rc == 255 and "gpus-1: " in ended.err and "connection refused" in ended.err, ended
    assert len(ended.out.splitlines()) == 2
