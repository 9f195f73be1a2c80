"""`--guard HOST`: a guard on another machine, started over the user's ssh, terminates machines that cannot terminate
themselves. Client, host and rented machines are network namespaces with real sshds. The host reaches the fake of Lambda
by its own route, so tests can cut the client's network."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import sqlite3
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

import cloud_keys  # noqa: E402
import fake_cloud  # noqa: E402
from guard_world import GuardWorld  # noqa: E402
from harness import alive, read, until  # noqa: E402
from relay import pass_both  # noqa: E402
from rented_world import FAST_GUARD, ours  # noqa: E402
from ssh_hosts import SshHost  # noqa: E402


class Relay:
    """A port on a host's loopback that leads to another host's loopback. target() connects there."""

    def __init__(self, host, target):
        self.target = target
        with host.network():
            self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                threading.Thread(target=self.serve_one, args=(peer,), daemon=True).start()

    def serve_one(self, peer):
        with contextlib.suppress(OSError), self.target() as server, peer:
            pass_both(peer, server)

    def close(self):
        self.listener.close()


class HostWorld(GuardWorld):
    """A world with a host that is always on and has Lambda's key in the user's home."""

    def __init__(self, hosts, folder):
        super().__init__(hosts, folder)
        self.server = SshHost(hosts(1)[0], public_key=self.client.public_key)
        self.home = self.server.homes["me"]
        self.where = f"me@{self.server.addr}"
        self.relay = Relay(self.server.host, self.to_fake)
        (self.home / "run").mkdir(mode=0o700)
        self.give("run")
        self.key_file = self.home / ".lambda_cloud/lambda_keys"
        self.key_file.parent.mkdir()
        self.key_file.write_text(f"api_key = {cloud_keys.LAMBDA_KEY}\n")
        self.key_file.chmod(0o600)
        self.give(".lambda_cloud", ".lambda_cloud/lambda_keys")
        self.restart_sshd(self.relay.url)

    def give(self, *names):
        for name in names:
            os.chown(self.home / name, 2001, 2001)

    def to_fake(self):
        with self.client.host.network():
            return socket.create_connection(self.fake.server.server_address[:2])

    def restart_sshd(self, url, **more):
        env = {"LOCKSTEP_LAMBDA_ENDPOINT": url, "XDG_RUNTIME_DIR": "/home/me/run", **FAST_GUARD, **more}
        self.server.stop_sshd()
        self.server.start_sshd("SetEnv " + " ".join(f"{name}={value}" for name, value in env.items()))

    def host_guards(self):
        return ours(self.server.host, b"guard-rentals")

    def host_guard(self):
        (pid,) = until(self.host_guards, 20, "a guard on the host")
        return pid

    def host_state(self):
        (state,) = (self.home / ".local/state/lockstep/guards").glob("*/lockstep")
        return state

    def host_log(self):
        return read(self.host_state() / "guard.log")

    def host_rental(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.host_state()}/rentals.db?mode=ro", uri=True)) as journal:
            rows = journal.execute("SELECT json FROM records WHERE kind = 'rental' ORDER BY at_ms").fetchall()
        return json.loads(rows[-1][0])

    def launches(self):
        return [each for each in self.fake.records if each.get("path", "").endswith("/launch")]

    def close(self):
        self.server.kill_all()
        self.relay.close()
        super().close()


@pytest.fixture
def world(hosts, tmp_path):
    with HostWorld(hosts, tmp_path) as made:
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


def test_a_lease_ends_although_the_client_was_killed_and_its_network_is_gone(world):
    run = world.up("--guard", world.where, "--lifetime", "60s")
    until(lambda: "gets its lease" in run.err() or run.process.poll() is not None, 100, "the first contact")
    guard = world.host_guard()
    assert os.getsid(guard) == guard and world.guards() == [], "it is there, and none is here"
    (client,) = world.processes(b"up", b"lab")
    os.kill(client, signal.SIGKILL)
    world.client.host.cut()
    (machine,) = world.live()
    until(lambda: not world.live(), 120, "the end of its lease")
    assert machine.ended - machine.launched < 60 + 60, (machine.ended, machine.launched)
    until(lambda: not alive(guard), 30, "nothing is left to guard")
    log = world.host_log()
    assert ": its lease is over; ending it" in log and log.endswith("nothing is left to guard\n"), log
    # The only secret there was the ssh key of these machines, which was removed with them.
    assert cloud_keys.LAMBDA_KEY not in log
    assert not [path for path in world.host_state().rglob("*") if path.is_file()
                and b"PRIVATE KEY" in path.read_bytes()]
    assert not list((world.home / ".local/state/lockstep").glob("rentals*")), "its user's own state is another"
    world.client.host.heal()
    ended = world.lockstep("down", "lab")
    assert ended.rc == 0 and "is terminated; it cost" in ended.err, ended


def test_a_killed_guard_there_is_started_again_and_ends_an_idle_machine(world):
    ended = world.up("--guard", world.where, "--autostop", "60s").wait(120)
    assert ended.rc == 0 and ended.err.rstrip().endswith(f"at the latest, guarded on {world.where}"), ended
    first = world.host_guard()
    (key,) = world.host_state().glob("rentals/lab-*/user_key")
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.read_text() == read(world.state / "rentals/lab/user_key")
    os.kill(first, signal.SIGKILL)
    until(lambda: not alive(first), 10)
    logs = [world.state / f"rentals/{name}.log" for name in ("gone", "gone-lately", "lab")]
    for log in logs:
        log.write_text("what a follower said\n")
        os.utime(log, None if log.stem == "gone-lately" else (0, 0))
    ended = world.lockstep("cost")
    assert [log.exists() for log in logs] == [False, True, True], "one is over for more than 30 days"
    assert f"the guard of 'lab' on {world.where} did not run; it runs again" in ended.err, ended
    assert f"rented, guarded on {world.where}" in ended.out and world.guards() == [], ended
    second = world.host_guard()
    ended = world.lockstep("cluster", "list")
    assert ended.err == "" and f"guarded on {world.where}" in ended.out and world.host_guard() == second, ended
    assert world.live(), "it was not idle for so long yet"
    until(lambda: not world.live(), 150, "it is ended when it is idle")
    until(lambda: not alive(second), 30, "nothing is left to guard")
    assert "idle" in world.host_log() and not key.exists()
    ended = world.lockstep("cost")
    assert f"the guard on {world.where} has ended 'lab'" in ended.err, ended


def test_keep_and_down_reach_it_or_say_that_they_do_not(world):
    assert world.lockstep("cluster", "add", "always-on", "--host", world.where).rc == 0
    ended = world.up("--guard", "always-on", "--lifetime", "10m").wait(120)
    assert ended.rc == 0 and "guarded on always-on" in ended.err, ended
    guard, before = world.host_guard(), world.host_rental()
    ended = world.lockstep("keep", "lab", "2h")
    assert ended.rc == 0, ended
    after = world.host_rental()
    assert after["ends_ms"] > before["ends_ms"] + 3600_000 and after["ends_ms"] == world.rentals()[0]["ends_ms"]
    # A key that is good no more ends nothing.
    key = world.key_file.read_text()
    world.key_file.write_text("api_key = secret_of_nobody_0123456789abcdef.lambda\n")
    ended = world.lockstep("cost")
    assert "nobody ends 'lab': the guard on always-on: Lambda Cloud" in ended.err, ended
    assert "nobody ends it but you" in ended.out, ended
    world.key_file.write_text(key)
    ended = world.lockstep("cost")
    assert ended.err == "" and "guarded on always-on" in ended.out, ended
    # The host is off the network.
    world.server.stop_sshd()
    world.client.forget_masters()
    ended = world.lockstep("keep", "lab", "9h")
    assert ended.rc == 1 and "the guard on always-on: " in ended.err, ended
    assert "nothing is changed: the guard ends 'lab'" in ended.err, ended
    assert world.host_rental()["ends_ms"] == after["ends_ms"] == world.rentals()[0]["ends_ms"]
    ended = world.lockstep("cost")
    assert "'lab' may be without a guard" in ended.err and "which does not answer now" in ended.out, ended
    ended = world.lockstep("down", "lab")
    assert ended.rc == 0 and not world.live() and "the guard notices by itself" in ended.err, ended
    until(lambda: not alive(guard), 60, "nothing of it is left")
    assert "nothing of it is left" in world.host_log() or "idle" in world.host_log(), world.host_log()
    # Again under the same name, and told of the end.
    world.restart_sshd(world.relay.url)
    ended = world.up("--guard", "always-on").wait(120)
    assert ended.rc == 0, ended
    guard = world.host_guard()
    ended = world.lockstep("down", "lab")
    assert ended.rc == 0 and "guard" not in ended.err and not world.live(), ended
    assert world.host_rental()["closed_ms"] > 0 and not list(world.host_state().glob("rentals/*/*"))
    until(lambda: not alive(guard), 30, "it goes by itself")


def test_a_host_that_cannot_guard_is_refused_in_one_line(world):
    def refused(*words, guard=world.where, rc=1):
        ended = world.up(f"--guard={guard}").wait(60)
        assert ended.rc == rc and all(word in ended.err for word in words), ended
        assert len(ended.err.splitlines()) == 1, ended

    refused("that is this machine", guard="local", rc=2)
    refused("'-oProxyCommand=x' is not a host", guard="-oProxyCommand=x", rc=2)
    refused("--guard must name a machine", guard="", rc=2)
    assert world.lockstep("cluster", "add", "two", "--host", world.where, "--host", world.client.addr).rc == 0
    refused("it has 2 nodes", guard="two", rc=2)
    world.key_file.rename(world.key_file.with_suffix(".away"))
    refused(f"the guard on {world.where}: no key of Lambda Cloud is there", "LAMBDA_API_KEY",
            ".lambda_cloud/lambda_keys")
    world.key_file.write_text("api_key = secret_of_nobody_0123456789abcdef.lambda\n")
    refused(f"the guard on {world.where}: Lambda Cloud", "key")
    world.key_file.with_suffix(".away").rename(world.key_file)
    assert world.fake.world.machines == {} and world.launches() == [] and world.host_guards() == []
    # Another account's key.
    with world.server.host.network():
        other = fake_cloud.FakeCloud(world.home / "other")
    with other:
        other.world.settings.update(limits=0)
        world.restart_sshd(other.url)
        ended = world.up("--guard", world.where).wait(60)
        assert ended.rc == 1 and "its key of Lambda Cloud is of another account than yours" in ended.err, ended
    world.server.stop_sshd()
    world.client.forget_masters()
    refused(f"the guard on {world.where}: ", "refused")
    assert world.fake.world.machines == {} and world.launches() == [] and world.host_guards() == []


def test_the_machines_let_in_the_guard_on_its_host(world):
    with world.client.host.network():
        here = AddressServer(world.client.addr)
    with world.server.host.network():
        there = AddressServer(world.server.addr)
    with contextlib.closing(here), contextlib.closing(there):
        world.restart_sshd(world.relay.url, LOCKSTEP_CHECKIP_URL=there.url)
        ended = world.lockstep("up", "lab", "--gpus", "A10:1", "--provider", "lambda", "-y", "--guard", world.where,
                               env={"LOCKSTEP_CHECKIP_URL": here.url})
    assert ended.rc == 0, ended
    (rules,) = world.fake.face("lambda").rulesets.values()
    assert [rule["source_network"] for rule in rules["rules"]] == [f"{world.client.addr}/32", f"{world.server.addr}/32"]
    ended = world.lockstep("down", "lab")
    assert ended.rc == 0, ended


class AddressServer(Relay):
    """Tells everybody one address."""

    def __init__(self, address):
        self.answer = (f"HTTP/1.1 200 OK\r\nContent-Length: {len(address) + 1}\r\nConnection: close\r\n\r\n"
                       f"{address}\n").encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve_one(self, peer):
        with contextlib.suppress(OSError), peer:
            peer.recv(65536)
            peer.sendall(self.answer)
