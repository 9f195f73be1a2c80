"""Machines that vanish without notice during a job of several nodes: destroyed by the provider, terminated in the
console, or cut off for a while. Real machines behind the fake of AWS (rented_world.py)."""
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from harness import until  # noqa: E402
from rented_jobs import SilentWorld, SpotRun, project_in, run_ids  # noqa: E402


@pytest.fixture
def world(hosts, tmp_path):
    with SilentWorld(hosts, tmp_path) as made:
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


@pytest.fixture
def project(tmp_path):
    return project_in(tmp_path)


def begins(run, step, attempt, ranks=2):
    """All ranks train; their machines, in the order of the nodes."""
    for rank in range(ranks):
        run.said(f"began at step {step} args {['--resume'] if attempt > 1 else []} "
                 f"attempt {attempt if attempt > 1 else None} rank {rank} of {ranks}")
    nodes = sorted(run.world.live(), key=lambda machine: machine.name)
    assert len(nodes) == ranks, nodes
    return nodes


def go(world, machines):
    """Their job may end."""
    for machine in machines:
        world.machines.by_id[machine.id].path("/home/ubuntu/go").touch()


@pytest.mark.parametrize("spot", ["--spot", None])
def test_one_of_two_is_gone_without_a_notice(world, project, spot):
    """The other machine's rank is asked to end. All machines are seen gone before two new ones are asked for."""
    run = SpotRun(world, project, "--nodes", "2", last=2, spot=spot)
    first = begins(run, 0, 1)
    world.fake.world.end(first[1], "Client.UserInitiatedShutdown")
    run.said("rank 0 saved 1")
    run.launched(3)
    assert not any(machine.alive() for machine in first), "seen gone before others are asked for"
    second = begins(run, 1, 2)
    world.fake.world.end(second[0], "Server.InternalError")
    run.said("rank 1 saved 2")
    third = begins(run, 1, 3)
    assert not any(machine.alive() for machine in second)
    go(world, third)
    ended = run.ends_well(machines=6)
    assert len(run_ids(ended.out)) == 1, "one run id over all attempts"
    assert (project / "out/result").read_text() == "done"


@pytest.mark.parametrize("spot", ["--spot", None])
def test_one_of_two_is_cut_off_for_half_a_minute(world, project, spot):
    """The job fails, since the other node gives this node up. No other machine is rented while it is alive."""
    run = SpotRun(world, project, "--nodes", "2", spot=spot)
    nodes = begins(run, 0, 1)
    there = world.machines.by_id[nodes[1].id]
    there.cut()
    until_healed = time.monotonic() + 30
    run.said("rank 0 saved 1")
    # The job is over once the other node has given this one up, and the machine may be terminated before the cut ends.
    until(lambda: time.monotonic() > until_healed or run.run.process.poll() is not None, 60)
    if run.run.process.poll() is None and any(each.id == nodes[1].id for each in world.live()):
        there.heal()
    ended = run.run.wait(120)
    assert ended.rc != 0 and "goes on elsewhere" not in ended.err, ended
    assert (project / "out/checkpoint").read_text() == "1", "outputs are here"
    assert len(world.machines.all) == 2 and world.live() == [] and ended.err.count("it cost") == 1, ended
    world.bill_is_the_meters()


def test_one_of_four_has_ended_before_it_was_met(world, project):
    """The other three are terminated before four are asked for elsewhere."""
    world.silent = {3}
    run = SpotRun(world, project, "--nodes", "4", last=0, spot=None)
    run.launched(4)
    first = run.machines()
    for node in (0, 1, 3):
        run.said(f"-{node}: waits for sshd")
    (lost,) = [machine for machine in first if world.machines.by_id[machine.id].number == 3]
    run.said("is checked")
    world.fake.world.end(lost, "Server.InternalError")
    run.launched(5)
    assert not any(machine.alive() for machine in first)
    ended = run.ends_well(machines=8)
    assert all(f"rank {rank} of 4" in ended.out for rank in range(4)), ended
