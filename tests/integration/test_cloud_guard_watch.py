"""`--guard HOST` and a job: that host watches it, and where the command is gone at the job's end it brings the outputs
to itself and gives the machine back; the next command fetches them. Client, host and rented machines are network
namespaces with real sshds; the host reaches the fakes by a way of its own, so that the client's network can be cut."""
import contextlib
import json
import os
import re
import signal
import sqlite3

import pytest

from harness import read, until
from test_cloud_guard_host import HostWorld  # first: it says where the fakes are

import cloud_keys  # noqa: I100
from follow_world import MARKS, FollowWorld, kill  # noqa: I100
from rented_jobs import LASTING, laptop, project_in  # noqa: I100

SECRET = "s3cret-of-the-job"


class WatchWorld(HostWorld, FollowWorld):
    """With AWS's key in the home of the host's user, too."""

    def __init__(self, hosts, folder):
        super().__init__(hosts, folder)
        aws = self.home / ".aws"
        aws.mkdir()
        self.aws_key = aws / "credentials"
        self.aws_key.write_text(read(self.fake.env["AWS_SHARED_CREDENTIALS_FILE"]))
        self.aws_key.chmod(0o600)
        self.give(".aws", ".aws/credentials")
        self.begin_again()
        self.project = project_in(folder)

    def begin_again(self):
        self.restart_sshd(self.relay.url, AWS_ENDPOINT_URL=self.relay.url, AWS_EC2_METADATA_DISABLED="true",
                          AWS_REGION="us-east-1")

    def train(self, *options, gpus="L4:1", provider="aws", **more):
        return self.start("run", "--on-demand", gpus, "--provider", provider, "--guard", self.where, "-y", "--name",
                          "lab", "--back", "out", "--allow-from", f"{self.client.addr}/32", *options, "train.py",
                          cwd=self.project, **more)

    def sleep(self):
        """The laptop: nothing of the job runs there."""
        self.asleep = laptop(self)
        assert len(self.asleep) == 2, self.asleep
        for pid in self.asleep:
            os.kill(pid, signal.SIGSTOP)

    def wake(self):
        for pid in self.asleep:
            os.kill(pid, signal.SIGCONT)

    def watchers(self):
        return [pid for pid, words in self.host_words() if words[:2] == [b"lockstep", b"follow-rented"]]

    def host_words(self):
        for pid in self.server.host.processes():
            with contextlib.suppress(OSError):
                yield pid, open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")

    def host_jobs(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.host_state()}/rentals.db?mode=ro", uri=True)) as journal:
            return [json.loads(row[0]) for row in journal.execute("SELECT json FROM records WHERE kind = 'job'")]

    def watch_log(self):
        return "".join(map(read, self.host_state().glob("rentals/lab-*.log*"))).translate(MARKS)

    def host_files(self):
        return [path for path in self.host_state().rglob("*") if path.is_file()]

    def told(self, all_fetched=True):
        """What the next command says of a job that was watched: once."""
        ended, again = self.lockstep("cost"), self.lockstep("cost")
        assert ended.rc == 0 and again.err == "", (ended, again)
        lines = [line for line in ended.err.splitlines() if f"was watched by {self.where}" in line]
        assert len(lines) == 1, ended
        left = [*self.host_state().glob("watched/*"), *self.host_state().glob("rentals/*.log*")]
        assert not all_fetched or self.host_jobs() == [] and left == [], "nothing is left there"
        return lines[0]


@pytest.fixture
def world(hosts, tmp_path):
    with WatchWorld(hosts, tmp_path) as made:
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


def watched(world, run):
    until(lambda: "began at step 0" in run.out(), 120, f"it trains: {run.out()} {run.err()}")
    until(lambda: "began at step 0" in world.watch_log(), 60, "it is watched")


def test_a_job_whose_laptop_is_gone_is_seen_to_its_end(world):
    much = 'print(("x" * 99 + "\\n") * 100_000)\nprint("done"'
    (world.project / "train.py").write_text(LASTING.replace('print("done"', much))
    run = world.train("--secret", "TOKEN", "--env", "END_WITH=7", gpus="A10:1", provider="lambda",
                      env={"TOKEN": SECRET})
    watched(world, run)
    assert f"gone: if this command is gone, {world.where} watches the job to its end" in run.err(), run.err()
    assert world.guards() == [] and len(world.followers()) == 1, "no guard is here"
    kill(world, *laptop(world))
    world.client.host.cut()
    (watcher,) = world.watchers()
    os.kill(watcher, signal.SIGKILL)
    until(lambda: world.watchers() not in ([], [watcher]), 60, "the guard there has started another")
    world.go()
    until(lambda: not world.live() and not world.watchers(), 120, f"it ends: {world.watch_log()}")
    log = world.watch_log()
    assert "done" in log and "its outputs come here" in log and "it cost" in log, log
    outputs = world.host_state() / "watched"
    assert outputs.stat().st_mode & 0o777 == 0o700
    (result,) = outputs.glob("*/project/out/result")
    assert not (world.project / "out").exists()
    for path in world.host_files():
        for secret in (SECRET, cloud_keys.AWS_SECRET, cloud_keys.LAMBDA_KEY, "train.py", "PRIVATE KEY"):
            assert ".log" in path.name or secret.encode() not in path.read_bytes(), (path, secret)
    world.client.host.heal()
    line = world.told()
    assert "exit code 1, its machines are given back" in line and f"are in {world.project} now" in line, line
    assert (world.project / "out/result").read_text() == "done" and not result.exists()
    (log,) = world.state.glob("rentals/lab-*.log")
    assert str(log) in line and "this log is long: it begins in lab-" in read(log)
    assert "began at step 0" in read(f"{log}.1"), "what was put aside is here, too"
    assert len(world.machines.all) == 1


def test_a_laptop_that_slept_at_the_end_finds_what_it_missed(world):
    run = world.train("--spot")
    watched(world, run)
    world.sleep()
    world.go()
    until(lambda: not world.live() and not world.watchers(), 120, f"it ends: {world.watch_log()}")
    assert not (world.project / "out").exists()
    world.wake()
    ended = run.wait(60)
    assert ended.rc == 0 and f"{world.where} has not heard of this command at the job's end" in ended.err, ended
    assert f"was watched by {world.where}" in ended.err and "goes on elsewhere" not in ended.err, ended
    assert (world.project / "out/result").read_text() == "done"
    assert len(world.machines.all) == 1, "nothing was rented in its place"
    assert world.host_jobs() == []
    ended = world.lockstep("cost")
    assert "lab: its machines are gone; it cost" in ended.err and world.lockstep("cost").err == "", ended


def test_a_spot_machine_that_is_taken_leaves_its_outputs_on_the_host(world):
    run = world.train("--spot", "--back", "missing")  # which costs none of the others
    watched(world, run)
    run.process.send_signal(signal.SIGHUP)  # its terminal is gone
    ended = run.wait(30)
    assert ended.rc == 129 and f"followed from here, and {world.where} watches it" in ended.err, ended
    kill(world, *world.followers())  # and the laptop is off
    assert world.lockstep("cost").err == "" and len(world.host_jobs()) == 1, "there is nothing to tell yet"
    (machine,) = world.live()
    world.fake.world.notify(machine, 30)
    until(lambda: not world.live() and not world.watchers(), 120, f"it ends: {world.watch_log()}")
    (world.project / "out").mkdir()
    (world.project / "out/checkpoint").write_text("mine")
    line = world.told(all_fetched=False)
    # As the last of its notice may find it or not.
    assert "its provider took a machine away, " in line or "its machines were taken away, or have " in line, line
    assert "exit code 0" not in line, line
    assert "with what was not brought" in line and "missing: " in read(*world.state.glob("rentals/lab-*.log")), line
    (there,) = world.host_state().glob("watched/*/project/out/checkpoint")
    place = there.relative_to(world.host_state()).parents[1]
    assert f"newer here, or no file here, so these stay: out/checkpoint; {world.where} keeps it in" in line, line
    assert f"/{place};" in line, line
    assert (world.project / "out/checkpoint").read_text() == "mine" and there.read_text() == "1"
    assert len(world.machines.all) == 1


def test_a_laptop_that_slept_when_its_machine_was_taken_goes_on_with_what_was_saved(world):
    run = world.train("--spot", "--resume-arg=--resume")
    watched(world, run)
    world.sleep()
    (machine,) = world.live()
    world.fake.world.notify(machine, 30)
    until(lambda: not world.live() and "the job of 'lab" in world.watch_log(), 120, f"it is lost: {world.watch_log()}")
    world.wake()
    ended = run.wait(120)
    assert ended.rc == 0 and "its job goes on elsewhere (attempt 2)" in ended.err, ended
    assert "began at step 1 args ['--resume'] attempt 2" in ended.out and "was watched" not in ended.err, ended
    assert (world.project / "out/result").read_text() == "done" and len(world.machines.all) == 2
    assert world.host_jobs() == [] and world.live() == []


def lost_while_it_slept(world):
    """A command whose spot machine was taken while it was stopped: HOST has seen that, and has what was saved."""
    run = world.train("--spot")
    watched(world, run)
    world.sleep()
    (machine,) = world.live()
    world.fake.world.notify(machine, 30)
    until(lambda: not world.live() and "the job of 'lab" in world.watch_log(), 120, f"it is lost: {world.watch_log()}")
    assert list(world.host_state().glob("watched/*/project/out/checkpoint")), world.watch_log()
    return run


def nothing_is_left_there(world):
    assert (world.project / "out/checkpoint").read_text() == "1" and len(world.machines.all) == 1
    assert world.host_jobs() == [] and not list(world.host_state().glob("watched/*"))
    assert "watched by" not in world.lockstep("cost").err


def test_a_command_that_is_ended_as_it_wakes_fetches_what_its_host_alone_has(world):
    run = lost_while_it_slept(world)
    run.process.send_signal(signal.SIGINT)
    world.wake()
    ended = run.wait(120)
    assert ended.rc != 0 and f"its outputs come from {world.where}" in ended.err, ended
    nothing_is_left_there(world)


def test_down_as_the_first_word_after_coming_back_fetches_first(world):
    run = lost_while_it_slept(world)
    kill(world, *laptop(world))
    run.wait(30)
    ended = world.lockstep("down", "lab", "--force")
    assert ended.rc == 0 and f"was watched by {world.where}" in ended.err, ended
    assert f"brings the outputs of 'lab' from {world.where}; Ctrl-C leaves them there" in ended.err, ended
    nothing_is_left_there(world)


def test_a_host_that_is_silent_as_its_command_wakes_is_asked_later(world):
    run = lost_while_it_slept(world)
    world.server.stop_sshd()
    world.client.forget_masters()
    world.wake()
    ended = run.wait(180)
    assert ended.rc != 0 and "goes on elsewhere" not in ended.err, ended
    assert f"asks {world.where} what it has of the job of 'lab'" in ended.err and not (world.project / "out").exists()
    ended = world.lockstep("cost")
    assert "is still to be asked" in ended.err and "lockstep down lab --force forgets it" in ended.err, ended
    world.begin_again()
    ended = world.lockstep("cost")
    assert f"was watched by {world.where}" in ended.err, ended
    nothing_is_left_there(world)


def test_who_is_there_does_all_itself(world):
    run = world.train()
    watched(world, run)
    world.go()
    ended = run.wait(60)
    assert ended.rc == 0 and "is given back; it cost" in ended.err and "watched by" not in ended.err, ended
    assert (world.project / "out/result").read_text() == "done"
    until(lambda: not world.watchers() and not world.host_guards(), 60, "nothing is left to watch")
    assert world.host_jobs() == [] and not list(world.host_state().glob("watched/*"))
    assert "its outputs come here" not in world.watch_log() and world.lockstep("cost").err == ""
    # The next one is ended by `down` when its command is gone.
    run = world.train()
    watched(world, run)
    shown = world.lockstep("cluster", "show", "lab").out
    assert re.search(rf"working\) is followed by process \d+: .*; {world.where} watches it, too\n", shown), shown
    kill(world, *laptop(world))
    shown = world.lockstep("cluster", "show", "lab").out
    assert f"working) is watched by {world.where}\n" in shown, shown
    job = json.loads(world.lockstep("cluster", "show", "lab", "--json").out)["job"]
    assert (job["by"], job["host"]) == ("host", world.where), job
    ended = world.lockstep("down", "lab", "--force")
    assert ended.rc == 0 and not world.live(), ended
    until(lambda: not world.watchers() and not world.host_guards(), 60, "nothing is left to watch")
    assert world.host_jobs() == [] and world.lockstep("cost").err == ""


def test_a_host_without_keys_of_what_may_be_rented_is_refused(world):
    key = read(world.aws_key)
    world.aws_key.unlink()
    ended = world.train().wait(60)
    assert ended.rc == 1 and f"the guard on {world.where}: no key of AWS EC2 is there" in ended.err, ended
    world.aws_key.write_text(key)
    world.give(".aws/credentials")
    world.server.stop_sshd()
    world.client.forget_masters()
    ended = world.train().wait(60)
    assert ended.rc == 1 and f"the guard on {world.where}: " in ended.err, ended
    assert world.fake.world.machines == {} and json.loads(world.lockstep("cost", "--json").out)["rentals"] == []
