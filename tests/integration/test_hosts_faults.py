"""Jobs on hosts that fail, or whose network fails: a toy training on several hosts.

The training's record says which hosts did each step. `-s` shows how long the survivors took to go on.
"""
import os
import signal
import time
import uuid

import pytest

from chaos import CONF, TrainingJob
from harness import SCRIPTS, alive, until

BACKENDS = ["c10d", "lockstep"]


class Job(TrainingJob):
    """The same command on every host."""

    def __init__(self, hosts, backend, nnodes, endpoint="node0:29400", conf=""):
        super().__init__(hosts)
        self.backend, self.nnodes, self.endpoint = backend, nnodes, endpoint
        self.conf = CONF[backend] + conf

    def start(self, *hosts, options=(), env=None):
        for host in hosts:
            token = uuid.uuid4().hex
            self.runs[host] = host.start(
                "--nnodes", self.nnodes, "--rdzv-backend", self.backend, "--rdzv-endpoint", self.endpoint,
                "--rdzv-id", "job",
                "--rdzv-conf", self.conf, "--max-restarts", 100, "--restart-backoff", 0, *options,
                SCRIPTS / "toy_training.py", self.training.folder, 10, token=token,
                env={"TOY_AGENT_LOG": host.folder / f"err.{token}", "LOGLEVEL": "INFO", **(env or {})})

    def worker_of(self, host):
        """The toy's pid on this host, as we see it."""
        started = [line for line in self.training.lines("events") if line["what"] == "start"
                   and line["host"] == host.name]
        return host.outer(started[-1]["pid"])


@pytest.fixture
def job(hosts):
    return lambda *args, **options: Job(hosts, *args, **options)


def figure(what, backend, since, step):
    print(f"{backend}: {what}: {(step['at'] - since) * 1000:.0f} ms until the first step of the new round")


FAULTS = {"cut": lambda host: host.cut(), "drop_in": lambda host: host.drop_in(),
          "drop_out": lambda host: host.drop_out()}


# Nobody sees a FIN: heartbeats alone can tell.
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_that_cannot_be_heard_is_left_out_and_comes_back(job, hosts, backend, fault):
    a, b, c = hosts(3)
    job = job(backend, "2:3")
    job.start(a, b, c)
    job.goes_on_with(a, b, c)
    since = time.monotonic()
    FAULTS[fault](c)
    figure(fault, backend, since, job.goes_on_with(a, b))
    since = time.monotonic()
    c.heal()
    figure(f"{fault} healed", backend, since, job.goes_on_with(a, b, c))
    job.ends_well(a, b, c)


# Shorter than what heartbeats allow for: no new round.
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_short_cut_is_sat_out(job, hosts, backend):
    a, b = hosts(2)
    job = job(backend, "1:2")
    job.start(a, b)
    first = job.goes_on_with(a, b)
    b.cut()
    time.sleep(0.5)  # the cut itself, not a wait for something
    b.heal()
    assert job.goes_on_with(a, b)["round"] == first["round"]
    job.ends_well(a, b)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_frozen_agent_is_left_out_and_its_workers_end_when_it_wakes(job, hosts, backend):
    a, b, c = hosts(3)
    job = job(backend, "2:3")
    job.start(a, b, c)
    job.goes_on_with(a, b, c)
    worker, agent = job.worker_of(c), c.agent()
    since = time.monotonic()
    c.freeze(agent)
    figure("agent frozen", backend, since, job.goes_on_with(a, b))
    c.thaw(agent)
    until(lambda: not alive(worker), 5, "the old worker is gone")
    job.goes_on_with(a, b, c)
    job.ends_well(a, b, c)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_killed_agent_is_left_out_and_replaced(job, hosts, backend):
    a, b, c = hosts(3)
    job = job(backend, "2:3")
    job.start(a, b, c)
    job.goes_on_with(a, b, c)
    since = time.monotonic()
    os.kill(c.agent(), signal.SIGKILL)
    figure("agent killed", backend, since, job.goes_on_with(a, b))
    job.runs[c].wait()
    job.start(c)
    job.goes_on_with(a, b, c)
    job.ends_well(a, b, c)


# The connection of an agent that dies ends at once: nobody waits for heartbeats to be missed.
def test_seven_of_eight_go_on_within_a_second_and_a_half(job, hosts):
    eight = hosts(8)
    job = job("lockstep", "4:8")
    job.start(*eight)
    job.goes_on_with(*eight)
    since = time.monotonic()
    os.kill(eight[5].agent(), signal.SIGKILL)
    left = [host for host in eight if host is not eight[5]]
    step = job.goes_on_with(*left)
    figure("agent of one of eight killed", "lockstep", since, step)
    assert step["at"] - since < 1.5
    job.runs[eight[5]].wait()
    job.ends_well(*left)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_that_vanished_is_left_out_and_comes_back_after_a_boot(job, hosts, backend):
    a, b, c = hosts(3)
    job = job(backend, "2:3")
    job.start(a, b, c)
    job.goes_on_with(a, b, c)
    since = time.monotonic()
    c.vanish()
    figure("host gone", backend, since, job.goes_on_with(a, b))
    c.boot()
    job.start(c)
    job.goes_on_with(a, b, c)
    job.ends_well(a, b, c)


# Too few are left: all stop, and say whom they miss.
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fixed_job_that_lost_a_host_ends_with_its_name(job, hosts, backend):
    a, b, c = hosts(3)
    job = job(backend, "3")
    job.start(a, b, c, options=("--no-replacement",))
    job.goes_on_with(a, b, c)
    c.vanish()
    for host in (a, b):
        ended = job.runs[host].wait(30)
        assert ended.rc == 1 and (c.name in ended.err or c.addr in ended.err), f"{host}: {ended}"
        print(f"{backend}: {host} ended after {ended.seconds:.1f} s")
    hosts.none_left()


# Row 63: where all met is gone, and does not come back while the others would wait for it.
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_others_end_when_the_store_host_is_gone(job, hosts, backend):
    a, b, c = hosts(3)
    # Another host of three would take over in a rendezvous of ours (test_succession.py).
    alone = ",succession_timeout=0" if backend == "lockstep" else ""
    job = job(backend, "2:3", conf=",join_timeout=5" + alone)
    job.start(a, b, c)
    job.goes_on_with(a, b, c)
    since = time.monotonic()
    a.vanish()
    for host in (b, c):
        ended = job.runs[host].wait(30)
        assert ended.rc == 1 and "node0" in ended.err, f"{host}: {ended}"
    print(f"{backend}: all others ended {time.monotonic() - since:.1f} s after the store host was gone")
    hosts.none_left()


# The host that all met at cannot be heard: it misses the others as they miss it. Without --no-replacement it would wait
# for new ones in their place (test_nodes_replaced.py).
@pytest.mark.parametrize("fault", FAULTS)
def test_a_static_job_ends_when_its_first_host_cannot_be_heard(job, hosts, fault):
    a, b, c = hosts(3)
    job = job("static", "3")
    for rank, host in enumerate((a, b, c)):
        job.start(host, options=("--node-rank", rank, "--no-replacement"))
    job.goes_on_with(a, b, c)
    since = time.monotonic()
    FAULTS[fault](a)
    for host in (b, c):
        ended = job.runs[host].wait(12)
        assert ended.rc == 1 and "node rank 0 at node0:29400 is lost" in ended.err, f"{host}: {ended}"
    ended = job.runs[a].wait(12)
    assert ended.rc == 1 and "is gone (no heartbeat for 3 s)" in ended.err, f"{a}: {ended}"
    print(f"static: {fault}: all ended {time.monotonic() - since:.1f} s after the first host was not heard any more")
    hosts.none_left()


@pytest.mark.parametrize("nnodes", ["2:3", "3"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_late_host(job, hosts, backend, nnodes):
    a, b, c = hosts(3)
    job = job(backend, nnodes)
    job.start(a, b)
    if nnodes == "3":
        until(lambda: a.processes() and b.processes())
        assert job.training.last() == 0
    else:
        job.goes_on_with(a, b)
    since = time.monotonic()
    job.start(c)
    step = job.goes_on_with(a, b, c)
    figure("late host", backend, since, step)
    assert step["restarts"] == 0
    job.ends_well(a, b, c)


# Row 65: torchrun compares the endpoint with the first address of its host name only, and nobody hosts.
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_endpoint_may_be_a_second_nic(job, hosts, backend):
    a, b, c = hosts(3)
    second = a.second_nic()
    b.second_nic()
    job = job(backend, "2", endpoint=f"{second}:29400")
    job.start(a, b)
    step = job.goes_on_with(a, b)
    assert step["master"].rpartition(":")[0] in (second, second[:-1] + "1")  # the network that all of them reach
    stranger = c.start("--nnodes", 2, "--rdzv-backend", backend, "--rdzv-endpoint", f"{second}:29400",
                       "--rdzv-id", "job", "--no-python", "/bin/true")  # has no way there, and is told so
    until(lambda: "network is unreachable" in stranger.err().lower(), 10, "a reason")
    stranger.signal(signal.SIGTERM)
    stranger.wait()
    job.ends_well(a, b)
