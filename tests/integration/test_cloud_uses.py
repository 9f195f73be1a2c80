"""Uses of rented machines besides jobs: ssh, ports, packages; and all of these from another address than at the launch.
Real machines behind fakes of the providers (rented_world.py)."""
import http.server
import json
import pathlib
import socket
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from harness import until  # noqa: E402
from hosts import _within  # noqa: E402
from package_index import small_source_files  # noqa: E402
from rented_world import CloudWorld  # noqa: E402


class CheckIp(http.server.ThreadingHTTPServer):
    """Tells the client its public address, as the internet would."""

    def __init__(self, client):
        self.says, self.asked = client.addr, 0
        with client.host.network():
            super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked += 1
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.server.says.encode() + b"\n")

        def log_message(self, *_):
            pass

    def env(self):
        return {"LOCKSTEP_CHECKIP_URL": f"http://127.0.0.1:{self.server_port}"}


@pytest.fixture
def world(hosts, tmp_path):
    with CloudWorld(hosts, tmp_path) as made:
        made.checkip = CheckIp(made.client)
        made.fake.env.update(made.checkip.env())
        yield made
        made.checkip.shutdown()
        assert made.fake.failures == [] and made.fake.world.errors == []


def up(world, *more):
    ended = world.lockstep("up", "gpus", "--gpus", "L4:1", "--provider", "aws", "-y", *more, timeout=180)
    assert ended.rc == 0, ended
    (machine,) = world.machines.all
    return machine


def open_to(world):
    """The addresses that may reach port 22 of our machines."""
    world_now = world.fake.world
    with world_now.lock:
        groups = list(world.fake.face("ec2").places.groups.values())
        return {rule[4] for group in groups for rule in group["rules"] if rule[1] == 22 and rule[3] == "cidr"}


def move(world, machine, address):
    """The laptop is elsewhere: connections are cut, and the machine's firewall does not know it."""
    world.client.forget_masters()
    world.checkip.says = address
    machine.drop_in()


def let_in(world, machine, address):
    """Waits until the provider's firewall is open to the address, and connects the machine again."""
    until(lambda: open_to(world) == {f"{address}/32"}, 30, f"the port is open to {address}: {open_to(world)}")
    machine.heal()


MOVED = "lockstep: your address changed from {} to {}: the machines' ssh port is open to the new one"


def test_each_use_follows_the_user_to_another_address(world, tmp_path):
    machine = up(world)
    assert open_to(world) == {f"{world.client.addr}/32"}
    asked = world.checkip.asked
    assert world.lockstep("exec", "gpus", "--", "true").rc == 0
    assert world.checkip.asked == asked, "who gets through asks nobody"
    before = f"{world.client.addr}/32"
    for number, words in enumerate((["exec", "gpus", "--", "echo", "there"], ["ssh", "gpus", "--", "echo", "there"])):
        address = f"203.0.113.{number + 1}"
        move(world, machine, address)
        begun = time.monotonic()
        run = world.start(*words)
        let_in(world, machine, address)
        ended = run.wait(60)
        assert ended.rc == 0 and ended.out == "there\n", ended
        assert ended.err.splitlines() == [MOVED.format(before, f"{address}/32")], ended
        assert time.monotonic() - begun < 14, "one try of ssh was enough"
        before = f"{address}/32"
    assert world.lockstep("down", "gpus").rc == 0 and world.live() == []


def test_what_keeps_a_user_out_is_one_line_with_what_to_do(world):
    machine = up(world)
    move(world, machine, "203.0.113.1")
    denied = world.fake.faults.add({"face": "ec2", "action": "AuthorizeSecurityGroupIngress", "times": -1,
                                    "do": {"kind": "error", "code": "UnauthorizedOperation", "message": "no",
                                           "status": 403}})
    ended = world.lockstep("exec", "gpus", "--", "true")
    (line,) = [line for line in ended.err.splitlines() if line.startswith("lockstep: AWS EC2 us-east-1:")]
    assert ended.rc == 255 and "'gpus' is not open to 203.0.113.1/32" in line and "UnauthorizedOperation" in line, ended
    world.fake.faults.remove(denied)
    # An address that the user has given changes only by the user.
    run = world.start("up", "gpus", "--allow-from", "198.51.100.0/24")
    until(lambda: open_to(world) == {"198.51.100.0/24"}, 30, f"it is open to that: {open_to(world)}")
    machine.heal()
    assert run.wait(60).rc == 0
    move(world, machine, "203.0.113.2")
    ended = world.lockstep("exec", "gpus", "--", "true")
    line = "the ssh port of 'gpus' is open to 198.51.100.0/24 alone (--allow-from), and this machine is at " \
        "203.0.113.2/32 now; lockstep up gpus --allow-from 203.0.113.2/32 opens it"
    assert ended.rc == 255 and f"lockstep: AWS EC2 us-east-1: {line}" in ended.err.splitlines(), ended
    world.checkip.says = "198.51.100.9"
    world.fake.world.end(world.live()[0], "Client.UserInitiatedShutdown")
    until(lambda: world.live() == [], 30, "it is gone")
    ended = world.lockstep("exec", "gpus", "--", "true")
    assert ended.rc == 255 and "AWS EC2 us-east-1: a machine of 'gpus' has ended; lockstep up gpus" in ended.err, ended


def test_ssh_ports_and_packages(world, tmp_path):
    machine = up(world)
    ended = world.lockstep("ssh", "gpus", "--", "hostname; id -un")
    assert ended.rc == 0 and ended.out.split() == [machine.name, machine.user], ended
    with _within(machine.holder.pid, "net"):
        server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    threading.Thread(target=lambda: server.accept()[0].sendall(b"from the machine"), daemon=True).start()
    run = world.start("forward", "gpus", f"0:{port}")
    until(lambda: "127.0.0.1:" in run.out() or run.process.poll() is not None, 60, "it forwards")
    with _within(world.client.host.holder.pid, "net"):
        here = socket.create_connection(("127.0.0.1", int(run.out().split(":")[1].split()[0])), 10)
    with here, server:
        assert here.recv(100) == b"from the machine"
    run.process.terminate()
    run.wait(20)
    project = tmp_path / "small"
    project.mkdir()
    for name, text in small_source_files("small", "1.0", "WORD = 'installed'\n").items():
        (project / name).write_text(text)
    ended = world.lockstep("install", "--json", "gpus", "pip:./", cwd=project, timeout=300)
    assert ended.rc == 0, ended
    (host,) = json.loads(ended.out)
    ended = world.lockstep("exec", "gpus", "--", host["environment"]["python"], "-c", "import small; print(small.WORD)")
    assert ended.rc == 0 and ended.out == "installed\n", ended
    assert world.lockstep("down", "gpus", "--force").rc == 0 and world.live() == []
