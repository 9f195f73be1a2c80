"""Rented machines with systemd as process 1: cloud-init runs in a real boot, timers are systemd's, and the end is a
real power-off."""
import os
import pathlib
import signal
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from harness import until  # noqa: E402
from rented_world import RentedWorld, daemon, sleepers  # noqa: E402


@pytest.fixture
def world(hosts, tmp_path):
    made = RentedWorld(hosts, tmp_path)
    yield made
    made.close()


def timers(machine):
    rows = machine.systemctl("list-timers", "--all", "--no-legend", "--plain", "--no-pager", "lockstep-*").splitlines()
    return sorted(word.removesuffix(".timer") for row in rows for word in row.split() if word.endswith(".timer"))


def test_the_first_boot_is_not_held_up_and_ends_where_nobody_comes(world):
    """A timer ordered after units that follow cloud-init would hang the boot for ever."""
    machine = world.launch(systemd=True, guard_s=30)
    assert timers(machine) == ["lockstep-guard"] and sleepers(machine) == []
    assert machine.systemctl("is-active", "lockstep-guard.timer") == "active"
    assert [path.name for path in machine.path("/etc/ssh").glob("ssh_host_*_key")] == ["ssh_host_ed25519_key"]
    machine.powered_off(120)


def test_the_lease_outlives_its_daemon(world):
    machine = world.launch(systemd=True)
    (found,) = world.contact(machine, terms={"lives_s": 600, "idle_s": 300})
    assert found["outcome"] == "ready" and found["fresh_key"], found
    assert timers(machine) == ["lockstep-lease-1"] and sleepers(machine) == [] and daemon(machine)
    world.client.forget_masters()  # no session of ours is left: the daemon stays
    state = world.lease(machine)
    assert state["error"] == "" and state["watched"], state
    os.kill(daemon(machine), signal.SIGKILL)
    until(lambda: not daemon(machine), 30, "it is dead")
    assert world.lease(machine, "keep", lives_s=8)["watched"]
    assert timers(machine) == ["lockstep-lease-2"]
    os.kill(daemon(machine), signal.SIGKILL)
    begun = time.monotonic()
    machine.powered_off(120)
    assert time.monotonic() - begun > 6


def test_an_idle_machine_powers_off(world):
    machine = world.launch(systemd=True)
    assert world.contact(machine, terms={"lives_s": 600, "idle_s": 4})[0]["outcome"] == "ready"
    machine.powered_off(60)


def test_a_reboot_takes_the_lease_along(world):
    machine = world.launch(systemd=True)
    assert world.contact(machine, terms={"lives_s": 900, "idle_s": 600})[0]["outcome"] == "ready"
    before = world.lease(machine)
    world.client.forget_masters()
    machine.reboot()
    until(lambda: timers(machine) == ["lockstep-lease-1"], 60, f"the timer of the first boot is off: {timers(machine)}")
    state = world.lease(machine)
    assert state["watched"] and 700_000 < state["left_ms"] < before["left_ms"], (before, state)
    assert state["idle_limit_ms"] == 600_000
    assert world.lease(machine, "keep", lives_s=8)["watched"]
    machine.powered_off(120)


def test_an_image_of_a_machine_has_no_lease(world):
    """A copy of its disk boots as another machine, with another identity from the provider."""
    machine = world.launch(systemd=True)
    assert world.contact(machine, terms={"lives_s": 900, "idle_s": 600})[0]["outcome"] == "ready"
    kept = "/var/lib/lockstep/lease.json"
    assert machine.path(kept).exists()
    world.client.forget_masters()
    machine.path("/var/lib/cloud/seed/nocloud/meta-data").write_text("instance-id: another\nlocal-hostname: another\n")
    machine.reboot()
    until(lambda: not machine.path(kept).exists(), 60, "the lease of another machine is removed")
    until(lambda: machine.systemctl("is-active", "lockstep-lease.service") == "inactive", 30)
    assert not list(machine.path("/etc/systemd/system").rglob("lockstep-lease.service"))
    assert timers(machine) == ["lockstep-guard"], "it has the time of a first boot"
