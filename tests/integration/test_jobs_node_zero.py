"""`lockstep run --on` three hosts. Node 0, which hosts the rendezvous, loses power, and the job goes on."""
import json
import subprocess
import time

import pytest

from chaos import TrainingJob
from harness import SCRIPTS, until
from ssh_hosts import SshWorld

# The toy training, in a folder that all hosts share; the round of a worker is read from its own agent's log.
WORKER = f"""
import os, sys
home, job = os.path.expanduser('~'), os.environ['LOCKSTEP_JOB_ID']
log = f'{{home}}/err.{{job}}.{{os.uname().nodename}}'
if not os.path.islink(log):
    os.symlink(f'{{home}}/.local/state/lockstep/jobs/{{job}}/err', log)
os.environ['TOY_AGENT_LOG'] = log
os.execv(sys.executable, [sys.executable, {str(SCRIPTS / 'toy_training.py')!r}, '/home/training', '10'])
"""


class Job(TrainingJob):
    """A job of a client on all hosts, and its training."""

    def __init__(self, world, count):
        super().__init__(world.hosts)
        self.client, *self.servers = world(count)
        words = [word for server in self.servers for word in ("--host", f"me@{server.addr}")]
        assert self.client.run("cluster", "add", "gpus", *words).rc == 0
        for server in self.servers:
            (server.homes["me"] / "job.py").write_text(WORKER)
        self.share()

    def share(self):
        subprocess.run(["chown", "-R", "2001", self.training.folder], check=True)
        for server in self.servers:
            if server.host.up:
                server._inside("mkdir", "-p", "/home/training")
                server._inside("mount", "--bind", self.training.folder, "/home/training")

    def begin(self, *options):
        self.run = self.client.start("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--max-restarts", "3",
                                     "--env", "LOGLEVEL=INFO", *options, "job.py")
        self.runs = {"the client": self.run}
        self.goes_on_with(*self.servers, deadline=90)
        return self.run

    def id(self):
        return json.loads(self.client.run("jobs", "--json").out)["jobs"][0]["id"]

    def cut(self, server):
        """When the power of a host went."""
        at = time.monotonic()
        server.switch_off()
        return at

    def starts_after(self, at):
        """When each worker started that began after a moment."""
        return [line["at"] for line in self.training.lines("events") if line["what"] == "start" and line["at"] > at]

    def ends(self, rc=0):
        self.training.finish()
        ended = self.run.wait(60)
        assert ended.rc == rc, f"{ended}"
        assert self.training.broken_rules() == []
        return ended


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def test_the_job_goes_on_from_its_checkpoint_and_ends_well(world):
    job = Job(world, 3)
    zero, one, two = job.servers
    job.begin("--nnodes", "2:3")
    before = job.training.last()
    job.cut(zero)
    step = job.goes_on_with(one, two)
    assert step["step"] > before, "it goes on behind the last checkpoint"
    ended = job.ends()
    said = [line for line in ended.err.splitlines() if "the host is taken for lost" in line]
    assert len(said) == 1 and "gpus-0: " in said[0] and said[0].endswith("has ended, with exit code 0"), ended.err
    (told,) = json.loads(job.client.run("jobs", "--json").out)["jobs"]
    assert (told["state"], told["code"]) == ("succeeded", 0), told


def test_the_codes_of_the_nodes_that_are_left_are_the_jobs(world):
    """A lost host has no record of success, so its part does not count as one."""
    job = Job(world, 3)
    zero, one, two = job.servers
    job.begin("--nnodes", "2:3", "--max-restarts", "0", "--exit-code", "worker")
    job.cut(zero)
    job.goes_on_with(one, two)
    (victim,) = one.host.spoken("/home/training")
    subprocess.run(["kill", "-KILL", str(victim)], check=True)
    ended = job.run.wait(60)
    assert ended.rc == 137 and "the host is taken for lost" in ended.err, ended


def test_node_zero_comes_back_as_a_guest(world):
    """It held the rendezvous, which another node holds now."""
    job = Job(world, 3)
    zero, one, two = job.servers
    job.begin("--nnodes", "2:3")
    job.cut(zero)
    job.goes_on_with(one, two)
    zero.switch_on()
    job.share()
    until(lambda: "lockstep resume" in job.run.err(), 60, "the client says what can be done")
    resumed = job.client.run("resume", job.id())
    assert resumed.rc == 0 and "gpus-0" in resumed.out, resumed
    job.goes_on_with(zero, one, two)
    # Node 0 has a vote again, so the next host may be lost.
    one.switch_off()
    job.goes_on_with(zero, two)
    job.ends()


def test_a_way_between_two_nodes_that_is_closed_is_named_before_the_start(world):
    job = Job(world, 3)
    zero, one, two = job.servers
    one.host.holder.nft("add table inet wall", f"table inet wall {{ chain in {{ type filter hook input priority 0; "
                        f"ip saddr {two.addr} tcp flags & (syn | ack) == syn drop; }}; }}")
    job.begin("--nnodes", "2:3")
    said = [line for line in job.run.err().splitlines() if "cannot reach" in line]
    assert len(said) == 1 and f"gpus-2 cannot reach gpus-1 at any address ({one.addr}, " in said[0], said
    assert said[0].endswith(": if gpus-0 is lost, gpus-1 cannot host the rendezvous in its place"), said
    one.host.holder.nft("delete table inet wall")  # the training needs that way
    job.cut(zero)
    job.goes_on_with(one, two)
    job.ends()
