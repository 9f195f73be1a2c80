"""A gang whose command is killed: when a machine is lost, the course moves the whole gang to other machines. Real
machines behind the fake of AWS (follow_world.py)."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from follow_world import following, kill_client  # noqa: E402
from harness import until  # noqa: E402
from rented_jobs import run_ids  # noqa: E402


@pytest.fixture
def world(hosts, tmp_path):
    with following(hosts, tmp_path) as made:
        yield made


def both_began(log, step):
    return all(any(f"began at step {step}" in line and f" rank {rank} of 2 " in line for line in log().splitlines())
               for rank in range(2))


@pytest.mark.parametrize("watched", ["--spot", "--guard=here"])
def test_a_gang_that_loses_a_machine_when_its_command_is_gone(world, watched):
    """With spot by a notice, on demand without one."""
    run = world.train("--nodes", "2", watched, "--resume-arg=--resume")
    until(lambda: both_began(run.out, 0) or run.process.poll() is not None, 150, "it trains")
    assert both_began(run.out, 0), (run.out(), run.err())
    kill_client(world)
    until(lambda: both_began(world.log, 0), 60, "it is followed from its first lines on")
    first = sorted(world.live(), key=lambda machine: machine.launched)
    assert len(first) == 2
    (lost,) = [machine for machine in first if world.machines.by_id[machine.id].number == 2]
    if watched == "--spot":
        world.fake.world.notify(lost, 60)
    else:
        world.fake.world.end(lost, "Server.InternalError")
    until(lambda: len(world.fake.world.machines) > 2 or not world.followers(), 120, "others are asked for")
    assert not any(machine.alive() for machine in first), world.log()
    until(lambda: not world.live() and not world.followers(), 180, "it goes on, and ends")
    log = world.log()
    assert both_began(world.log, 1) and "args ['--resume'] attempt 2" in log, log
    assert "rank 0 saved 1" in log and len(run_ids(log)) == 1, log
    assert (world.project / "out/checkpoint").read_text() == "1" and (world.project / "out/result").exists()
    assert len(world.machines.all) == 4
    world.told("exit code 0, outputs in out, ")
    until(lambda: not world.guards(), 30, "nothing is left to guard")
