"""Whole runs of the binary against the fakes of the clouds: laptops with homes of their own, answers that are held
until a test lets them go, and what the provider's meter says afterwards.

    def test_x(cloud, laptop):
        ended = laptop.up("gpus", "--gpus", "L4:1", "--provider", "aws")
        with laptop.held(action="RunInstances", when="after") as hold:   # done by the fake, not answered
            run = laptop.start("up", ...)
            hold.arrived()
            run.kill()
"""
import contextlib
import fnmatch
import json
import threading

import pytest

from fake_clouds import cloud, fake_cloud, machines, until  # noqa: F401
from harness import BINARY, Lockstep

PLACES = ("face", "action", "region", "zone", "type")
GUARD_S = 20 * 60  # the timer of the first boot, before anybody came
ALL = ("aws", "gcp", "lambda", "runpod")


class Hold:
    """One answer that is not given before the test says so. when: "before" (nothing was done), "after" (all was done),
    "middle" (all was done, and half of the answer is on its way)."""

    def __init__(self, when="after", skip=0, **place):
        self.when, self.skip, self.place = when, skip, place
        self._arrived, self._released, self.taken = threading.Event(), threading.Event(), False

    def matches(self, place):
        return all(fnmatch.fnmatchcase(str(place.get(name) or ""), self.place.get(name, "*")) for name in PLACES)

    def arrived(self, deadline=30):
        assert self._arrived.wait(deadline), f"no such request came: {self.place}"

    def is_here(self):
        return self._arrived.is_set()

    def release(self):
        self._released.set()

    def here(self, when):
        if when == self.when:
            self._arrived.set()
            self._released.wait(60)


class HoldingHandler(fake_cloud.Handler):
    def send(self, request, reply, cut_at):
        hold = getattr(request, "hold", None)
        if hold is None or reply is None or hold.when != "middle":
            return super().send(request, reply, cut_at)
        body = reply.body
        head = f"HTTP/1.1 {reply.status} Status\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body[:len(body) // 2])
        hold.here("middle")
        return self.cut()


class HoldingCloud(fake_cloud.FakeCloud):
    def __init__(self, folder):
        self.holds, self.holds_lock = [], threading.Lock()
        super().__init__(folder)
        self.server.RequestHandlerClass = HoldingHandler

    def answer_of(self, face, request, record):
        face.read(request)  # says where it is; read once more below, which does no harm
        with self.holds_lock:
            hold = next((each for each in self.holds if not each.taken and each.matches(request.place())), None)
            if request.params.get("DryRun") == "true":
                hold = None
            if hold is not None and hold.skip > 0:
                hold.skip -= 1
                hold = None
            if hold is not None:
                hold.taken = True
        request.hold = hold
        if hold is None:
            return super().answer_of(face, request, record)
        hold.here("before")
        try:
            return super().answer_of(face, request, record)
        finally:
            hold.here("after")


class Laptop(Lockstep):
    """An installation of lockstep: a home, and the keys of all providers."""

    def __init__(self, cloud, folder):
        folder.mkdir()
        super().__init__(folder)
        self.cloud = cloud
        self.keys = {**cloud.env, "LOCKSTEP_CHECKIP_URL": cloud.url, "HTTPS_PROXY": None, "https_proxy": None,
                     "HTTP_PROXY": None, "http_proxy": None, "ALL_PROXY": None, "all_proxy": None}

    def start(self, *args, env=None, program=(BINARY,), **options):
        return super().start(*args, env={**self.keys, **(env or {})}, program=program, **options)

    def down(self, *args, **options):
        return self.run("down", *(args or ("--all",)), **{"timeout": 60, **options})

    def cost(self, *names, **options):
        """All rentals of the last day, in micro-USD."""
        ended = self.run("cost", "--since", "1d", "--json", *names, **options)
        assert ended.rc == 0, ended
        return json.loads(ended.out)

    @contextlib.contextmanager
    def held(self, when="after", skip=0, **place):
        hold = Hold(when, skip, **place)
        self.cloud.holds.append(hold)
        try:
            yield hold
        finally:
            hold.release()
            self.cloud.holds.remove(hold)


def without_keys(*names):
    """The environment in which the keys of these providers (all) are not there."""
    variables = {"aws": {"AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials", "AWS_CONFIG_FILE": "/nowhere/config"},
                 "gcp": {"GOOGLE_APPLICATION_CREDENTIALS": None}, "lambda": {"LAMBDA_API_KEY": None},
                 "runpod": {"RUNPOD_API_KEY": None}}
    return {name: value for provider in names or ALL for name, value in variables[provider].items()}


def meter(cloud):
    return fake_cloud.control(cloud.url, "meter")


def nothing_rented(cloud):
    """Not now, and not before."""
    return machines(cloud) == []


def fault(cloud, do, **rule):
    return fake_cloud.control(cloud.url, "faults", {"do": do, **rule})


def guard_timers(cloud):
    """What every machine of ours has from its first second on: it powers itself off when nobody has come. Here nobody
    ever comes, since no sshd is behind these machines."""
    def booted(machine):
        with cloud.world.lock:
            cloud.world.after(GUARD_S, lambda: cloud.world.power_off(machine))
        return None
    cloud.world.on_launch = booted


def most_alive_at_once(cloud, node_of=lambda machine: machine["name"]):
    """How many machines for one node lived at the same moment, at most."""
    nodes = {}
    for machine in machines(cloud):
        nodes.setdefault(node_of(machine), []).append(machine)
    most = 0
    for found in nodes.values():
        for machine in found:
            at = machine["launched"]
            most = max(most, sum(each["launched"] <= at and (each["ended"] is None or at < each["ended"])
                                 for each in found))
    return most


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with HoldingCloud(tmp_path_factory.mktemp("fakes")) as made:
        yield made


@pytest.fixture
def laptops(cloud, tmp_path):  # noqa: F811
    """laptops("ann"): another installation."""
    made = []

    def make(name):
        made.append(Laptop(cloud, tmp_path / name))
        return made[-1]
    yield make
    for hold in list(cloud.holds):
        hold.release()
    cloud.holds.clear()
    left = {pid: name for each in made for pid, name in each.close().items()}
    assert not left, f"left running: {left}"


@pytest.fixture
def laptop(laptops):
    return laptops("laptop")


__all__ = ["GUARD_S", "cloud", "fake_cloud", "fault", "guard_timers", "laptop", "laptops", "machines", "meter",
           "most_alive_at_once", "nothing_rented", "server", "until", "without_keys"]
