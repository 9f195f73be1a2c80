"""A client with rented machines (machines.py), and helpers for their tests."""
import contextlib
import json
import os
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

import fake_cloud  # noqa: E402
import machines  # noqa: E402
from harness import BUILD, alive, status_of, until  # noqa: E402
from ssh_hosts import Client  # noqa: E402

TOOL = BUILD / "tests/contact_tool"
NOTICE_EC2, NOTICE_GCE = 1, 2
FAST_GUARD = {"LOCKSTEP_GUARD_SPEED": "10"}  # looks each second
# Prints that it is asked to end, and ends.
PATIENT = """import os, signal, sys, time
def end(*_):
    print('saved', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print('begun', flush=True)
while not os.path.exists(os.path.expanduser('~/go')):
    time.sleep(0.05)
"""


class RentedWorld:
    """A client with rented machines."""

    def __init__(self, hosts, folder):
        self.hosts, self.folder = hosts, folder
        self.client = Client(hosts(1)[0])
        self.client.binary = TOOL
        self.client.keep_packed(TOOL)
        self.machines = machines.Machines(hosts)
        self.pins = folder / "pins"
        self.key = folder / "keys/login"

    def ask(self, request, timeout=120):
        run = self.start(request)
        ended = run.wait(timeout)
        assert ended.rc == 0, ended
        return json.loads(ended.out)

    def start(self, request):
        path = self.folder / f"request.{time.monotonic_ns()}"
        path.write_text(json.dumps(request))
        with open(path) as given:
            return self.client.start("first-contact", stdin=given)

    def user_data(self, **options):
        made = self.ask({"user_data": str(self.folder / "keys"), **options})
        self.host_key, self.start_command = made["host_public_key"], made["start_command"]
        return made["text"]

    def launch(self, gpus=None, boot=True, systemd=False, **options):
        return self.machines.launch(self.user_data(**options), gpus, boot, systemd=systemd)

    def request(self, *rented, host_key=None, **more):
        hosts = [{"name": f"gpus-{i}", "address": machine.addr, "user": machine.user, "key_path": str(self.key),
                  "host_public_key": host_key or self.host_key} for i, machine in enumerate(rented)]
        return {"hosts": hosts, "pins": str(self.pins), **more}

    def contact(self, *rented, **more):
        return self.ask(self.request(*rented, **more))

    def lease(self, machine, ask="status", **more):
        (state,) = self.ask(self.request(machine, ask=ask, **more))
        return state

    def job(self, machine, name="job.py"):
        """Starts a job in the background."""
        where = f"{machine.user}@{machine.addr}"
        ended = self.client.run("run", "--on", where, "--key-path", self.key, "--sync", "none", "--cwd", ".",
                                "--detach", name)
        assert ended.rc == 0, ended
        return ended.out.strip()

    def job_state(self, machine, job):
        return json.loads(machine.path(f"/home/{machine.user}/.local/state/lockstep/jobs/{job}/state.json").read_text())

    def close(self):
        self.machines.close()
        self.client.forget_masters()


def daemon(machine):
    """Returns the pid of the lease's daemon in this process's namespace."""
    for pid, name in machine.processes().items():
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if name.startswith("lockstep") and words[1:3] == [b"host-lease", b"watch"]:
                return pid
    return None


def sleepers(machine):
    """Returns the armed timers of the machine, by the markers that they watch."""
    return sorted(path.name for path in machine.path("/run").glob("lockstep-*"))


def host_script(machine, text, name="job.py"):
    path = machine.path(f"/home/{machine.user}/{name}")
    path.write_text(text)
    path.chmod(0o644)


def output(machine, job):
    path = machine.path(f"/home/{machine.user}/.local/state/lockstep/jobs/{job}/out")
    return path.read_text() if path.exists() else ""


def ours(host, *wanted):
    """Returns the processes of our program on a host with these words, as the kernel knows them."""
    found = []
    for pid in host.processes():
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"lockstep") and tuple(words[1:len(wanted) + 1]) == wanted:
                found.append(pid)
    # A child that is about to exec ssh still looks like our program.
    left = []
    for pid in found:
        with contextlib.suppress(OSError):
            if alive(pid) and int(status_of(pid)["PPid"]) not in found:
                left.append(pid)
    return left


class CloudWorld:
    """A client with the keys of a FakeCloud, which listens on the client's loopback and launches real machines:
    `with CloudWorld(hosts, tmp_path) as world: world.lockstep("up", "gpus", "--gpus", "A100:8", "-y")`."""

    def __init__(self, hosts, folder, binary=None, **plug):
        self.client = Client(hosts(1)[0])
        if binary:
            self.client.binary = binary
        with self.client.host.network():  # the fake's socket belongs to the client's network
            self.fake = fake_cloud.FakeCloud(folder / "fake")
        self.machines = machines.Machines(hosts)
        self.machines.plug(self.fake, **plug)

    def start(self, *words, env=None, **options):
        return self.client.start(*words, env={**self.fake.env, **(env or {})}, **options)

    def lockstep(self, *words, timeout=120, **options):
        return self.start(*words, **options).wait(timeout)

    def live(self):
        return self.fake.world.live()

    @property
    def state(self):
        return self.client.root_home / ".local/state/lockstep"

    def processes(self, *wanted):
        return ours(self.client.host, *wanted)

    def guards(self):
        return self.processes(b"guard-rentals")

    def bill_is_the_meters(self):
        """Checks that `lockstep cost` shows what the meter shows."""
        ended = self.lockstep("cost", "--since", "1d", "--json")
        assert ended.rc == 0, ended
        told, meter = json.loads(ended.out)["cost_micros"], self.fake.world.micros()
        assert abs(told - meter) <= 0.1 * meter, ("the bill", told, meter)
        return ended

    def close(self):
        def gone():  # a guard may be starting a follower, and a process may be slow to die in a write
            left = [*self.guards(), *self.processes(b"follow-rented")]
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left
        until(gone, 20, "no guard and no follower is left")
        self.fake.close()
        self.machines.close()
        self.client.forget_masters()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
