"""The ways in which a rented machine ends: no client comes, the lease is over, the machine is idle, or it is preempted.
Debian's real cloud-init sets the machines up (tests/cloud/machines.py), with real sshd, sudo and a power switch."""
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

import metadata_service  # noqa: E402
from harness import until  # noqa: E402
from rented_world import (NOTICE_EC2, NOTICE_GCE, PATIENT, RentedWorld, daemon, host_script, output,  # noqa: E402
                          sleepers)


@pytest.fixture
def world(hosts, tmp_path):
    made = RentedWorld(hosts, tmp_path)
    yield made
    made.close()


def test_nobody_comes_and_the_machine_ends_itself(world):
    machine = world.launch(guard_s=6)
    assert sleepers(machine) == ["lockstep-guard"]
    machine.powered_off(30)


def passed(since, seconds):
    """Waits for this time, in which something must not happen."""
    until(lambda: time.monotonic() - since > seconds, seconds + 60)


def test_the_end_of_the_lease_stops_jobs_and_ends_the_machine(world):
    machine = world.launch()
    host_script(machine, PATIENT)
    assert world.contact(machine, terms={"lives_s": 600})[0]["outcome"] == "ready"
    job = world.job(machine)
    until(lambda: "begun" in output(machine, job), 60, "the job runs")
    begun = time.monotonic()
    world.lease(machine, "keep", lives_s=12)
    until(lambda: "saved" in output(machine, job), 60, "the job is asked to end")
    asked = time.monotonic() - begun
    until(lambda: world.job_state(machine, job)["stage"] == "ended", 30, "it has ended")
    state = world.job_state(machine, job)
    assert state["canceled"] and state["problem"] == "the machine's lease is over", state
    machine.powered_off(60)
    assert asked < time.monotonic() - begun - 1, "no time to save anything"
    assert time.monotonic() - begun > 10


def test_an_idle_machine_ends_and_one_that_works_does_not(world):
    machine = world.launch()
    host_script(machine, PATIENT)
    assert world.contact(machine, terms={"lives_s": 600})[0]["outcome"] == "ready"
    job = world.job(machine)
    until(lambda: "begun" in output(machine, job), 60, "the job runs")
    until(lambda: world.lease(machine)["jobs"] == 1, 60, "the job is seen")
    world.lease(machine, "keep", lives_s=600, idle_s=3)
    passed(time.monotonic(), 6)
    state = world.lease(machine)
    assert not machine.is_off() and state["jobs"] == 1 and state["idle_ms"] == 0, state
    # A user's log-in keeps the machine too. A client that only asks does not.
    login = world.client.start("-i", world.key, "-o", "StrictHostKeyChecking=yes", "-o",
                               f"UserKnownHostsFile={world.pins}", f"{machine.user}@{machine.addr}",
                               "until [ -e leave ]; do sleep 0.1; done", program=("/usr/bin/ssh",))
    until(lambda: world.lease(machine)["sessions"] > 0, 60, "somebody is logged in")
    machine.path(f"/home/{machine.user}/go").touch()
    until(lambda: world.job_state(machine, job)["stage"] == "ended", 60, "the job has ended")
    passed(time.monotonic(), 6)
    assert not machine.is_off()
    machine.path(f"/home/{machine.user}/leave").touch()
    assert login.wait(60).rc == 0
    machine.powered_off(60)


def test_changes_at_the_same_time_are_all_made(world):
    """Each change arms a new timer and disarms the old one. One timer is left, whose number counts all changes."""
    machine = world.launch()
    assert world.contact(machine, terms={"lives_s": 600})[0]["outcome"] == "ready"
    with concurrent.futures.ThreadPoolExecutor(6) as clients:
        list(clients.map(lambda number: world.lease(machine, "keep", lives_s=600 + number), range(6)))
    assert sleepers(machine) == ["lockstep-lease-7"]


def test_busy_gpus_and_a_hold_keep_an_idle_machine(world):
    busy, held = world.launch(gpus=(1,)), world.launch()
    busy.use_gpus(80)
    assert [each["outcome"] for each in world.contact(busy, held, terms={"lives_s": 600})] == ["ready", "ready"]
    until(lambda: world.lease(busy)["gpu_percent"] == 80, 60, "the GPU is seen to work")
    world.lease(busy, "keep", lives_s=600, idle_s=12)  # GPUs are looked at every ten seconds
    assert world.lease(held, "hold", seconds=12)["held_ms"] > 0
    assert world.lease(held, "hold", seconds=1)["held_ms"] > 5000, "who needs it longer has it"
    world.lease(held, "keep", lives_s=600, idle_s=2)
    begun = time.monotonic()
    passed(begun, 8)
    assert not held.is_off()
    passed(begun, 14)
    assert not busy.is_off()
    held.powered_off(60)
    busy.use_gpus(0)
    busy.powered_off(60)


def test_keep_moves_the_end(world):
    machine = world.launch()
    assert world.contact(machine, terms={"lives_s": 600})[0]["outcome"] == "ready"
    begun = time.monotonic()
    world.lease(machine, "keep", lives_s=6)
    state = world.lease(machine, "keep", lives_s=300, idle_s=200)
    assert 250_000 < state["left_ms"] <= 300_000 and state["idle_limit_ms"] == 200_000, state
    assert sleepers(machine) == ["lockstep-lease-3"]
    passed(begun, 8)
    assert not machine.is_off() and world.lease(machine)["watched"]
    assert world.lease(machine, "keep", lives_s=3)["idle_limit_ms"] == 200_000
    machine.powered_off(60)


def test_a_killed_daemon_changes_nothing(world):
    machine = world.launch()
    assert world.contact(machine, terms={"lives_s": 300})[0]["outcome"] == "ready"
    os.kill(daemon(machine), signal.SIGKILL)
    until(lambda: not daemon(machine), 30, "it is dead")
    state = world.lease(machine)
    assert state["phase"] == "running" and not state["watched"], state
    assert world.lease(machine, "keep", lives_s=6)["watched"], "keep starts another one"
    begun = time.monotonic()
    os.kill(daemon(machine), signal.SIGKILL)
    machine.powered_off(90)
    assert time.monotonic() - begun > 5


@pytest.mark.parametrize("kind,source", [("ec2", NOTICE_EC2), ("gce", NOTICE_GCE)])
def test_a_notice_ends_the_ranks_with_the_reason(world, kind, source):
    machine = world.launch()
    machine.start_metadata(kind)
    host_script(machine, PATIENT)
    assert world.contact(machine, terms={"lives_s": 600, "notice": source})[0]["outcome"] == "ready"
    job = world.job(machine)
    until(lambda: "begun" in output(machine, job), 20, "the job runs")
    assert world.lease(machine)["notice"] == ""
    follower = world.client.start("-i", world.key, "-o", "StrictHostKeyChecking=yes", "-o",
                                  f"UserKnownHostsFile={world.pins}", f"{machine.user}@{machine.addr}",
                                  "exec .cache/lockstep/bin/lockstep-* host-lease follow", program=("/usr/bin/ssh",),
                                  stdin=subprocess.PIPE)
    until(lambda: '"notice":""' in follower.out(), 60, "the first line")
    told = time.monotonic()
    if kind == "ec2":
        metadata_service.tell(machine.says, instance_action={"action": "terminate", "time": "2026-11-23T08:00:00Z"})
    else:
        metadata_service.tell(machine.says, preempted=True)
    until(lambda: "saved" in output(machine, job), 20, "the ranks are told")
    assert time.monotonic() - told < 8
    until(lambda: world.job_state(machine, job)["stage"] == "ended", 10, "the job has ended")
    state = world.job_state(machine, job)
    words = {"ec2": "terminate 2026-11-23T08:00:00Z", "gce": "preempted"}[kind]
    assert state["canceled"] and state["problem"] == f"the provider takes the machine away: {words}", state
    until(lambda: f'"notice":"{words}"' in follower.out(), 30, "whoever follows is told")
    follower.process.stdin.close()
    assert follower.wait(30).rc == 0
    state = world.lease(machine)
    assert state["notice"] == words and state["notice_ms"] > 0 and not machine.is_off(), state
    # Another daemon in the place of a killed one still knows.
    os.kill(daemon(machine), signal.SIGKILL)
    until(lambda: not daemon(machine), 5, "it is dead")
    assert world.lease(machine, "keep", lives_s=600)["notice"] == words
