"""The job outlives the node that hosts its rendezvous. The agents know the hosts from a Slurm step's environment, from
the user's list, or, with one endpoint, from the hub."""
import os
import re
import signal
import uuid

import pytest

from chaos import TrainingJob
from harness import BINARY, SCRIPTS, until

PORT = 20123  # of step 123.0


def step(number, count):
    """The variables of task `number` of a step over `count` nodes."""
    return {"SLURM_JOB_ID": "123", "SLURM_JOB_NUM_NODES": count, "SLURM_JOB_NODELIST": f"node[0-{count - 1}]",
            "SLURM_NNODES": count, "SLURM_NTASKS": count, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": count,
            "SLURM_STEP_NUM_TASKS": count, "SLURM_STEP_NODELIST": f"node[0-{count - 1}]", "SLURM_PROCID": number,
            "SLURM_NODEID": number}


class Job(TrainingJob):
    """One agent on every host. way: how they know the hosts ("step", "list" or "endpoint")."""

    def __init__(self, hosts, count, *options, way="step"):
        super().__init__(hosts)
        self.options, self.way = options, way
        self.nodes = hosts(count)

    def endpoint(self):
        return ",".join(f"{node.name}:{PORT}" for node in self.nodes[:1 if self.way == "endpoint" else None])

    def start(self, *hosts):
        for host in hosts:
            token = uuid.uuid4().hex
            where, env = ("--rdzv-endpoint", self.endpoint(), "--rdzv-backend", "lockstep", "--rdzv-id", "job"), {}
            if self.way == "step":
                where, env = (), {name: str(value) for name, value in step(host.number, len(self.nodes)).items()}
            self.runs[host] = host.start(
                *where, *self.options, "--max-restarts", 10, "--restart-backoff", 0, SCRIPTS / "toy_training.py",
                self.training.folder, 10,
                token=token, env={"TOY_AGENT_LOG": host.folder / f"err.{token}", "LOGLEVEL": "INFO", **env})

    def says(self, host, *texts, deadline=20.0):
        for text in texts:
            try:
                until(lambda text=text: text in self.runs[host].err(), deadline, f"{text!r} on {host}")
            except AssertionError as error:
                raise AssertionError(f"{error}\n{self.words()}") from None

    def hosts_now(self, *nodes):
        """Which of them took over from node0. With one endpoint, their order is that in which they joined."""
        text = "this node hosts the rendezvous now: the last host, node0, is gone"
        try:
            return until(lambda: next((node for node in nodes if text in self.runs[node].err()), None), 20, text)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.words()}") from None

    def trains_on(self, *trainers, spares=()):
        """The step's first tasks train, the others wait: so many of each, whoever they are."""
        self.start(*trainers)
        self.goes_on_with(*trainers)
        self.start(*spares)
        for spare in spares:
            self.says(spare, "this one is a spare")

    def tells_of_no_hang_and_goes_on_with(self, *hosts):
        """Asks each host for its ranks until all of them have done a step."""
        names, known = {host.name for host in hosts}, self.training.last()

        def goes_on():
            for host in hosts:
                said = host.start(program=(BINARY, "why")).wait(20)
                assert said.rc == 0 and not re.search(r"\bh[au]ng\b", said.out), f"{host}: {said}"
            return any(step["step"] > known and set(step["done_by"].values()) == names
                       for step in self.training.steps())
        until(goes_on, 30, f"a step done by {sorted(names)}")

    def goes_on_without(self, host):
        until(lambda: any(host.name not in line["done_by"].values() for line in self.training.steps()), 30,
              f"a step without {host}")


@pytest.fixture
def job(hosts):
    return lambda *args, **options: Job(hosts, *args, **options)


every_way = pytest.mark.parametrize("way", ["step", "list", "endpoint"])


@every_way
def test_the_first_host_loses_power_and_the_spare_takes_its_place(job, way):
    nodes = {"step": (), "list": ("--nnodes", 2), "endpoint": ("--nnodes", 2, "--spares", 1)}[way]
    job = job(3, *nodes, *(("--spares", 1) if way == "step" else ()), way=way)
    a, b, c = job.nodes
    job.trains_on(a, b, spares=[c])
    a.vanish()
    job.tells_of_no_hang_and_goes_on_with(b, c)
    job.hosts_now(b, c)
    job.ends_well(b, c)


def test_the_first_hosts_agent_is_killed(job):
    job = job(3, "--nnodes", 2)
    a, b, c = job.nodes
    job.trains_on(a, b, spares=[c])
    os.kill(a.agent(), signal.SIGKILL)
    job.goes_on_with(b, c)
    job.ends_well(b, c)


@pytest.mark.parametrize("victim", [1, 2], ids=["a guest", "the spare"])
def test_another_host_loses_power(job, victim):
    job = job(4, "--nnodes", 2)
    a, b, c, d = job.nodes
    job.trains_on(a, b, spares=[c])
    job.nodes[victim].vanish()
    if victim == 1:
        job.goes_on_with(a, c)
        job.start(d)
        job.says(d, "this one is a spare")
        # The voters are those who are there now, so the host may be lost next.
        a.vanish()
        job.goes_on_with(c, d)
        job.ends_well(c, d)
    else:
        job.goes_on_with(a, b)
        job.start(d)
        job.says(d, "this one is a spare")
        a.vanish()
        job.goes_on_with(b, d)
        job.ends_well(b, d)


@pytest.mark.parametrize("way", ["step", "endpoint"])
def test_two_hosts_lose_power_one_after_the_other(job, way):
    job = job(4, "--nnodes", 2, "--spares", 2, way=way)
    a, b, c, d = job.nodes
    job.trains_on(a, b, spares=[c, d])
    a.vanish()
    job.goes_on_without(a)
    b.vanish()
    job.goes_on_with(c, d)
    job.ends_well(c, d)


@pytest.mark.parametrize("way", ["step", "endpoint"])
def test_two_of_five_hosts_lose_power_at_once(job, way):
    job = job(5, "--nnodes", 3, way=way)
    a, b, c, d, e = job.nodes
    job.trains_on(a, b, c, spares=[d, e])
    a.vanish()
    b.vanish()
    job.goes_on_with(c, d, e)
    job.hosts_now(c, d, e)
    job.ends_well(c, d, e)


@pytest.mark.parametrize("way", ["step", "endpoint"])
def test_a_partition_that_heals(job, way):
    job = job(4, "--nnodes", 2, "--spares", 2, way=way)
    a, b, c, d = job.nodes
    job.trains_on(a, b, spares=[c, d])
    a.cut()  # a hosts, and is alone; b, c and d are three of four
    job.goes_on_without(a)
    job.says(a, "this node does not host the rendezvous any more: only 1 of 4 nodes of the job can be reached")
    last = job.training.last()
    a.heal()
    job.says(a, "hosts the rendezvous now: the last host, node0, is gone")
    job.says(a, "this one is a spare")
    until(lambda: job.training.last() > last + 2, 20, "the training goes on")
    job.ends_well(a, b, c, d)


# Which of two is gone, and which is cut off, neither can know. The one that hosts goes on.
def test_of_two_nodes_only_the_host_goes_on_alone(job):
    job = job(2, "--nnodes", "1:2", "--rdzv-conf", "succession_timeout=5,last_call_timeout=3")
    a, b = job.nodes
    job.start(a, b)
    job.goes_on_with(a, b)
    b.cut()
    job.goes_on_with(a)
    ended = job.runs[b].wait(40)
    assert ended.rc == 1
    assert re.search(r"the host of the rendezvous, node0, is gone, and in 5 s too few of the 2 nodes came together",
                     ended.err), ended.err
    b.heal()
    job.training.finish()  # its rules are not judged: an agent that is alone names no rounds
    assert job.runs[a].wait(30).rc == 0


def test_a_node_that_comes_later_finds_the_new_host(job):
    job = job(4, "--nnodes", 2)
    a, b, c, d = job.nodes
    job.trains_on(a, b, spares=[c])
    a.vanish()
    job.goes_on_with(b, c)
    job.start(d)
    job.says(d, "this one is a spare")
    c.vanish()
    job.goes_on_with(b, d)
    job.ends_well(b, d)


# Its fresh agent knows nothing of the job. The others look for nodes at another host, and call the endpoint too.
@pytest.mark.parametrize("way", ["list", "endpoint"])
def test_the_first_host_is_started_again_by_hand(job, way):
    job = job(3, "--nnodes", 3, way=way)
    a, b, c = job.nodes
    job.start(a, b, c)
    job.goes_on_with(a, b, c)
    a.vanish()
    next_host = job.hosts_now(b, c)
    a.boot()
    job.start(a)
    job.says(a, "the rendezvous 'job' goes on at ")
    job.goes_on_with(a, b, c)
    # The node is a voter like the others, so the next host may be lost too.
    next_host.vanish()
    next_host.boot()
    job.start(next_host)
    job.goes_on_with(a, b, c)
    job.ends_well(a, b, c)


# It hosts again before another host does, and without a word of the job.
def test_the_first_hosts_agent_is_killed_and_started_again_at_once(job):
    job = job(3, "--nnodes", 3, way="endpoint")
    a, b, c = job.nodes
    job.start(a, b, c)
    job.goes_on_with(a, b, c)
    killed = job.runs[a]
    os.kill(a.agent(), signal.SIGKILL)
    killed.wait(20)
    job.start(a)
    job.goes_on_with(a, b, c)
    job.ends_well(a, b, c)
