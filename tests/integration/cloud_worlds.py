"""Whole runs of the binary against the fake clouds: laptops with their own homes, answers that a test holds back and
releases, and the provider's meter.

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
GUARD_S = 20 * 60  # the timer of the first boot, until the first log-in
ALL = ("aws", "gcp", "lambda", "runpod")


class Hold:
    """Holds one answer back until the test releases it. when: "before" (the fake has done nothing), "after" (the fake
    has done all), "middle" (the fake has done all, and sent half of the answer)."""

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
        face.read(request)  # tells the place; reading again below does no harm
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
        """Returns all rentals of the last day, in micro-USD."""
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
    """Returns variables that hide the keys of these providers (default: all)."""
    variables = {"aws": {"AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials", "AWS_CONFIG_FILE": "/nowhere/config"},
                 "gcp": {"GOOGLE_APPLICATION_CREDENTIALS": None}, "lambda": {"LAMBDA_API_KEY": None},
                 "runpod": {"RUNPOD_API_KEY": None}}
    return {name: value for provider in names or ALL for name, value in variables[provider].items()}


def meter(cloud):
    return fake_cloud.control(cloud.url, "meter")


def nothing_rented(cloud):
    """Returns whether no machine was ever rented."""
    return machines(cloud) == []


def fault(cloud, do, **rule):
    return fake_cloud.control(cloud.url, "faults", {"do": do, **rule})


def guard_timers(cloud):
    """Gives each machine the timer of its first boot, which powers the machine off unless a client logs in. These
    machines have no sshd, so no client ever does."""
    def booted(machine):
        with cloud.world.lock:
            cloud.world.after(GUARD_S, lambda: cloud.world.power_off(machine))
        return None
    cloud.world.on_launch = booted


def most_alive_at_once(cloud, node_of=lambda machine: machine["name"]):
    """Returns the largest number of machines that lived at the same moment for one node."""
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
