"""`lockstep run --on` two hosts: the client that follows has a vote, so either host may be lost."""
import signal

from harness import until
from test_jobs_node_zero import Job, world  # noqa: F401

VOTES = "the client of run --on votes in this rendezvous"


class Two(Job):
    def __init__(self, made):
        super().__init__(made, 2)

    def begin(self, *options):
        super().begin(*options)
        until(lambda: VOTES in self.run.err(), 20, "the client votes")

    def ends(self):
        """The rules of the training are not judged: an agent that is alone names no rounds."""
        self.training.finish()
        ended = self.run.wait(60)
        assert ended.rc == 0, f"{ended}"

    def err_on(self, server):
        (folder,) = (server.homes["me"] / ".local/state/lockstep/jobs").iterdir()
        return (folder / "err").read_text()

    def says(self, server, text, deadline=20.0):
        return until(lambda: text in self.err_on(server), deadline, f"{text!r} on {server.name}")

    def client_dies(self):
        self.run.signal(signal.SIGKILL)
        self.run.process.wait()
        self.says(self.servers[0], "the client of run --on votes no more")


def test_node_one_goes_on_when_node_zero_loses_power(world):  # noqa: F811
    job = Two(world)
    zero, one = job.servers
    job.begin("--nnodes", "1:2")
    before = job.training.last()
    at = job.cut(zero)
    step = job.goes_on_with(one)
    assert step["step"] > before, "it goes on behind the last checkpoint"
    print(f"ranks ran again {min(job.starts_after(at)) - at:.1f} s after the power cut")
    assert min(job.starts_after(at)) - at < 10
    job.ends()


def test_node_one_waits_for_node_zero_to_come_back(world):  # noqa: F811
    job = Two(world)
    zero, one = job.servers
    job.begin()
    job.cut(zero)
    job.says(one, "this node hosts the rendezvous now")
    zero.switch_on()
    job.share()
    until(lambda: "lockstep resume" in job.run.err(), 60, "the client says what can be done")
    resumed = job.client.run("resume", job.id())
    assert resumed.rc == 0 and "gpus-0" in resumed.out, resumed
    job.goes_on_with(zero, one)
    job.ends()


def test_node_zero_goes_on_when_node_one_loses_power(world):  # noqa: F811
    job = Two(world)
    zero, one = job.servers
    job.begin("--nnodes", "1:2")
    job.cut(one)
    job.goes_on_with(zero)
    job.ends()


def test_without_the_client_node_zero_goes_on_alone(world):  # noqa: F811
    job = Two(world)
    zero, one = job.servers
    job.begin("--nnodes", "1:2")
    job.client_dies()
    job.cut(one)
    job.goes_on_with(zero)
    job.training.finish()
    job.client.forget_masters()
    ended = job.client.run("logs", "-f", job.id())
    assert ended.rc == 0, ended


def test_without_the_client_node_one_ends_after_node_zero(world):  # noqa: F811
    job = Two(world)
    zero, one = job.servers
    job.begin("--nnodes", "1:2", "--rdzv-conf", "succession_timeout=4")
    job.client_dies()
    job.cut(zero)
    job.says(one, "is gone, and in 4 s too few of the 2 nodes came together to go on")
    assert "hosts the rendezvous now" not in job.err_on(one)
    one.nothing_left(30)


def test_a_node_zero_that_is_cut_off_stops_and_comes_back(world):  # noqa: F811
    job = Two(world)
    zero, one = job.servers
    job.begin("--nnodes", "1:2")
    zero.host.cut()
    job.goes_on_with(one)
    job.says(zero, "this node does not host the rendezvous any more: only 1 of 3 votes of the job can be reached")
    zero.host.heal()
    job.goes_on_with(zero, one)
    job.ends()
