"""A job on rented machines whose command is killed: a course carries the job on, and the guard starts a course if there
is none. Real machines behind the fake of AWS, which terminate themselves."""
import ctypes
import json
import os
import pathlib
import re
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from follow_world import begun, following, kill, kill_all, kill_client  # noqa: E402
from harness import alive, read, status_of, until  # noqa: E402
from rented_jobs import laptop, run_ids  # noqa: E402


@pytest.fixture
def world(hosts, tmp_path):
    with following(hosts, tmp_path) as made:
        yield made


def exchange(one, other):
    """Two paths, at once: a follower that finds no book of jobs makes another, and knows nothing of the job."""
    in_place, both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.renameat2(in_place, bytes(one), in_place, bytes(other), both) == 0, os.strerror(ctypes.get_errno())


def test_a_spot_job_whose_command_is_gone_goes_on_elsewhere(world):
    run = world.train("--spot", "--resume-arg=--resume", "--secret", "TOKEN", env={"TOKEN": "s3cret"})
    begun(world, run)
    kill_client(world)
    (first,) = world.live()
    world.fake.world.notify(first, 60)
    until(lambda: not world.live() and not world.followers(), 180, f"it goes on, and ends: {world.log()}")
    log = world.log()
    assert "saved 1" in log and "began at step 1 args ['--resume'] attempt 2" in log, log
    assert len(run_ids(log)) == 1, "one run id over both attempts"
    assert log.count("began") == log.count(" secret s3cret\n"), "its secret is that of the command"
    assert (world.project / "out/checkpoint").read_text() == "1" and (world.project / "out/result").exists()
    first, second = world.fake.world.machines.values()
    assert first.zone != second.zone and len(world.machines.all) == 2
    line = world.told("exit code 0, outputs in out, ")
    assert str(world.state / "rentals/lab.log") in line, line
    assert (world.state / "rentals/lab.log").stat().st_mode & 0o777 == 0o600
    assert b"s3cret" not in (world.state / "rentals.db").read_bytes()


def test_guards_and_followers_that_are_killed_are_followed_by_one(world):
    run = world.train("--guard", "here", "--env", "END_WITH=7")
    begun(world, run)
    kill(world, *laptop(world))
    (guard,) = world.guards()
    until(lambda: world.log().count("began") == 2, 30, "the guard has started another, which begins at the first line")
    assert "no process follows its job" in read(world.state / "guard.log")
    kill(world, guard)
    (follower,) = world.followers()
    ended = world.lockstep("cost")
    assert "the guard of 'lab' did not run; it runs again" in ended.err, ended
    (guard,) = until(world.guards, 20, "a guard")
    kill(world, follower)
    until(lambda: world.followers() not in ([], [follower]), 30, "another goes on")
    until(lambda: world.log().count("began") == 3, 30, "from the job's first line")
    assert len(world.followers()) == 1
    world.go()
    until(lambda: not world.live() and not world.followers(), 120, f"it ends: {world.log()}")
    assert (world.project / "out/result").read_text() == "done", "outputs come back first"
    world.told("exit code 1, outputs in out, ")
    until(lambda: not alive(guard), 30, "nothing is left to guard")
    assert len(world.machines.all) == 1


def test_a_course_that_is_killed_is_begun_again_by_its_command(world):
    """Without a guard, which would also start the course."""
    run = world.train()
    begun(world, run)
    assert world.guards() == []
    (course,) = world.followers()
    kill(world, course)
    until(lambda: run.out().count("began at step 0") == 2, 60, f"another shows it from its first line: {run.err()}")
    assert "has ended before the job" in run.err() and len(world.followers()) == 1, run.err()
    world.go()
    ended = run.wait(120)
    assert ended.rc == 0 and "it cost" in ended.err and world.live() == [], ended
    assert (world.project / "out/result").read_text() == "done" and not world.followers()
    assert world.lockstep("cost").err == "" and len(world.machines.all) == 1


def test_a_job_without_a_guard_outlives_its_command(world):
    """Its outputs come, its machine goes, and the end is told."""
    run = world.train("--env", "END_WITH=7")
    begun(world, run)
    kill_client(world)
    world.go()
    until(lambda: not world.live() and not world.followers(), 120, f"it ends: {world.log()}")
    assert (world.project / "out/result").read_text() == "done"
    world.told("exit code 1, outputs in out, ")


def test_a_detached_job_ends_with_its_machine(world):
    left = world.train("--detach", "--json").wait(120)
    started = json.loads(left.out)
    assert left.rc == 0 and "'lab' goes on" in left.err and "began" not in left.out, left
    until(lambda: "began at step 0" in world.lockstep("logs", started["id"]).out, 60, "it runs")
    world.go()
    until(lambda: not world.live() and not world.followers(), 120, f"it ends: {world.log()}")
    world.told("exit code 0, outputs in out, ")


def test_a_job_that_may_be_done_does_not_begin_again(world):
    """This machine was off: meanwhile the job has ended, and its machine, being idle, has ended itself."""
    run = world.train("--guard", "here")
    begun(world, run)
    kill_all(world)
    (machine,) = world.live()
    world.fake.world.end(machine, "Client.InstanceInitiatedShutdown: Instance initiated shutdown")
    until(lambda: not machine.alive(), 30, "it is gone")
    world.lockstep("cost")
    until(lambda: "it is not begun again" in world.log() or world.live(), 120, "the provider is asked")
    until(lambda: not world.followers(), 60, "it ends")
    world.told("whether it was done is not known")
    assert len(world.machines.all) == 1, "nobody has rented another"


def test_a_job_with_secrets_does_not_begin_again_in_another_environment(world):
    run = world.train("--spot", "--secret", "TOKEN", "--env", "PLACE", "--env", "A=b",
                      env={"TOKEN": "s3cret", "PLACE": "here"})
    begun(world, run)
    kill(world, *laptop(world))
    until(lambda: world.log().count("secret s3cret") == 2, 60, "its machine knows it, so the guard's follower goes on")
    (machine,) = world.live()
    world.fake.world.notify(machine, 60)
    until(lambda: not world.live() and not world.followers(), 180, f"it ends: {world.log()}")
    assert (world.project / "out/checkpoint").read_text() == "1" and not (world.project / "out/result").exists()
    world.told("exit code 1, its job does not begin again: TOKEN, PLACE was in the environment of its command")
    assert len(world.machines.all) == 1


def test_a_command_that_is_killed_while_it_rents_is_followed_too(world):
    keys = {name: os.path.relpath(world.fake.env[name], world.project)
            for name in ("AWS_SHARED_CREDENTIALS_FILE", "GOOGLE_APPLICATION_CREDENTIALS")}
    run = world.train("--spot", env=keys)
    until(lambda: "lab-0:" in run.err(), 60, f"a machine boots: {run.err()}")
    found = set(read(world.state / "guard.lock").split())
    assert {"aws", "gcp"} <= found, "the guard, which lives elsewhere, has found the keys"
    kill_client(world)
    until(lambda: "is followed, as its command is gone" in world.log(), 60)
    until(lambda: "began at step 0" in world.log(), 120, f"it is set up and runs: {world.log()}")
    (follower,) = world.followers()
    follower = int(status_of(follower)["NSpid"].split()[-1])  # as its host calls it
    shown = world.lockstep("cluster", "show", "lab")
    assert re.search(rf"lab: its job \(\w+, attempt 1, working\) is followed by process {follower}: .*/lab.log",
                     shown.out), shown
    job = json.loads(world.lockstep("cluster", "show", "lab", "--json").out)["job"]
    assert (job["by"], job["pid"], job["stage"], job["attempt"]) == ("follower", follower, "working", 1), job
    shown = world.lockstep("logs", "lab")
    assert shown.rc == 0 and shown.out.startswith("began at step 0"), shown
    world.go()
    until(lambda: not world.live() and not world.followers(), 120, f"it ends: {world.log()}")
    shown = world.lockstep("logs", "lab")
    assert shown.rc == 0 and shown.out == world.log(), "its machine is gone, its follower's words are there"
    assert world.lockstep("logs", "lab", "-n", "2").out.splitlines() == world.log().splitlines()[-2:]
    world.told("exit code 0, outputs in out, ")
    assert len(world.machines.all) == 1


def test_a_job_that_can_not_begin_has_ended_and_says_why(world):
    (world.project / "variables").write_text("A=1\n")
    run = world.train("--spot", "--env-file", "variables")
    until(lambda: "lab-0:" in run.err(), 60, f"a machine boots: {run.err()}")
    (world.project / "variables").unlink()
    kill_client(world)
    until(lambda: not world.live() and not world.followers(), 120, f"it ends: {world.log()}")
    world.told("exit code 1, it did not begin: --env-file: open variables: ")
    assert len(world.machines.all) == 1


def test_who_lives_is_not_followed_and_down_ends_a_followed_job(world):
    run = world.train("--spot")
    begun(world, run)
    (client,) = world.processes(b"run", b"--on-demand")
    os.kill(client, signal.SIGSTOP)  # as a laptop that sleeps
    second = world.train("--guard", "here").wait(60)
    assert second.rc == 1 and "another lockstep has a job on 'lab' already" in second.err, second
    assert world.live()
    os.kill(client, signal.SIGCONT)
    os.kill(client, signal.SIGHUP)  # its terminal is gone
    ended = run.wait(30)
    assert ended.rc == 129 and "'lab' goes on" in ended.err and "rentals/lab.log" in ended.err, ended
    assert "began at step 0" in world.log() and world.followers()
    ended = world.lockstep("down", "lab", "--force")
    assert ended.rc == 0 and "was followed" not in ended.err and not world.live(), ended
    until(lambda: not world.followers(), 60, f"nothing is left to follow: {world.log()}")
    assert world.lockstep("cost").err == "" and len(world.machines.all) == 1, world.log()


def test_a_follower_that_cannot_see_the_job_throws_nothing_away(world):
    run = world.train("--guard", "here")
    begun(world, run)
    book, hidden = world.state / "state.db", world.state / "hidden"
    hidden.mkdir()
    exchange(book, hidden)
    kill(world, *laptop(world))
    until(lambda: world.log().count("is followed, as its command is gone") > 1, 60, f"others try: {world.log()}")
    assert world.live() and world.log().count("began") == 1
    exchange(book, hidden)
    until(lambda: world.log().count("began at step 0") == 2, 60, f"one of them sees it: {world.log()}")
    world.go()
    until(lambda: not world.live() and not world.followers(), 120, f"it ends: {world.log()}")
    assert (world.project / "out/result").read_text() == "done"
    world.told("exit code 0, outputs in out, ")
    assert len(world.machines.all) == 1


def test_down_ends_a_job_that_nobody_has_machines_for(world):
    world.fake.faults.add({"action": "RunInstances", "times": -1, "do": {"kind": "capacity"}})
    run = world.train("--spot", "--wait", "forever")
    until(lambda: "checked again in" in run.err(), 60, f"nobody has any: {run.err()}")
    kill_client(world)
    until(lambda: "checked again in" in world.log(), 60, f"its follower asks on: {world.log()}")
    ended = world.lockstep("down", "lab", timeout=60)
    assert ended.rc == 0 and "another lockstep has 'lab' in hands" in ended.err, ended
    until(lambda: not world.followers(), 20, f"nobody follows it: {world.log()}")
    assert json.loads(world.lockstep("cost", "--json").out)["rentals"] == []
    until(lambda: not world.guards(), 30, "nothing is left to guard")
    assert not world.followers() and not world.machines.all and world.lockstep("cost").err == ""
