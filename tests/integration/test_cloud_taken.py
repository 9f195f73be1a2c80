"""Spot machines that are preempted before they answer, during the sync, and while the job runs; and a client that
sleeps or loses its network meanwhile. `lockstep run --on-demand` against the fake of AWS with real machines (network
namespaces that Debian's cloud-init sets up, with real sshd); only GPUs are stand-ins."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from harness import until  # noqa: E402
from package_index import small_source_files  # noqa: E402
from rented_jobs import SilentWorld, SpotRun, laptop, project_in, run_ids, taken  # noqa: E402

# The project's build backend: on the first machine it never ends.
BACKEND = """import os, socket, time
if socket.gethostname() == "node1":
    open(os.path.expanduser("~/building"), "w").close()
    time.sleep(600)
"""


@pytest.fixture
def world(hosts, tmp_path):
    with SilentWorld(hosts, tmp_path) as made:
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


@pytest.fixture
def project(tmp_path):
    return project_in(tmp_path)


def test_taken_while_it_boots_and_while_its_sshd_does_not_answer(world, project):
    """The course asks for the next machine at once, and does not wait for the lost machine."""
    settings = world.fake.world.settings
    world.silent, settings["boot_s"] = {2}, 3600
    run = SpotRun(world, project, last=0)
    run.said("it is booting")
    settings["boot_s"] = 0
    taken(world, run.launched(1))
    run.said("waits for sshd")
    taken(world, run.launched(2))
    ended = run.ends_well(machines=3)
    zones = [machine.zone for machine in world.fake.world.machines.values()]
    assert len(set(zones)) == 3, "what took a machine away is not asked again"
    assert "attempt None" in ended.out and ended.seconds < 90, ended


def test_taken_while_packages_are_installed_and_while_it_is_met(world, project):
    """Before the job has begun nothing is brought back from there, and the rest is as in training."""
    files = small_source_files("toy", "1.0", "")
    files["backend.py"] = BACKEND + files["backend.py"]
    for name, text in files.items():
        (project / name).write_text(text)
    run = SpotRun(world, project, "--install", "pip:.", last=0)
    first = run.launched(1)
    until(lambda: first.id in world.machines.by_id, 60)
    building = world.machines.by_id[first.id].path("/home/ubuntu/building")
    until(lambda: building.exists() or run.run.process.poll() is not None, 150)
    assert building.exists(), run.all()
    taken(world, first)
    second = run.launched(2)
    run.said("logs in\n" + "lockstep run --on-demand: ")
    taken(world, second)
    ended = run.ends_well(machines=3)
    assert ended.err.count("was taken away by its provider") == 1 and "was not brought back" not in ended.err, ended
    assert "args ['--resume'] attempt 2" in ended.out, ended


def test_a_notice_before_the_job_has_begun(world, project):
    world.silent = {1}
    run = SpotRun(world, project)
    run.said("waits for sshd")
    first = run.launched(1)
    world.fake.world.notify(first, 60)
    world.machines.by_id[first.id].power_on()
    ended = run.ends_well(machines=2)
    assert "attempt 2" in ended.out, ended


def test_twice_in_a_row_and_then_without_a_notice(world, project):
    """One run id, attempts counted, --resume once. Outputs that came back go to the next machine, although git ignores
    them and the second loss came without notice."""
    subprocess.run(["git", "init", "--quiet", project], check=True)
    (project / ".gitignore").write_text("out/\n")
    run = SpotRun(world, project, last=2)
    run.said("at step 0")
    world.fake.world.notify(run.launched(1), 60)
    run.said("at step 1")
    taken(world, run.launched(2))
    run.said("['--resume'] attempt 3")
    world.fake.world.notify(run.launched(3), 60)
    ended = run.ends_well(machines=4)
    began = [line.split("began at step ")[1] for line in ended.out.splitlines() if "began at step" in line]
    assert [line.split(" rank ")[0] for line in began] == [
        "0 args [] attempt None", "1 args ['--resume'] attempt 2", "1 args ['--resume'] attempt 3",
        "2 args ['--resume'] attempt 4"], ended
    assert len(run_ids(ended.out)) == 1, "one run id over all attempts"
    assert (project / "out/checkpoint").read_text() == "2" and (project / "out/result").read_text() == "done"


def test_events_go_on_with_the_next_attempt(world, project):
    """`lockstep events -f` that was started during the first attempt, of a job that a notice and then a loss move."""
    run = SpotRun(world, project, last=2)
    run.said("at step 0")
    follower = world.start("events", "-f", "--json")

    def nodes():
        """Returns the nodes that reported the start of their ranks, by attempt."""
        events = [json.loads(line) for line in follower.out().splitlines()]
        return [event["node"] for event in events if event["event"] == "ranks_started"]
    for number in (1, 2):
        run.said(f"at step {number - 1}")
        until(lambda: len(nodes()) == number, 150, f"attempt {number} in {follower.out()} {follower.err()}")
        if number == 1:
            world.fake.world.notify(run.launched(1), 60)
    taken(world, run.launched(2))
    run.said("['--resume'] attempt 3")
    until(lambda: len(nodes()) == 3, 150, f"attempt 3 in {follower.out()} {follower.err()}")
    world.fake.world.notify(run.launched(3), 60)
    run.ends_well(machines=4)
    ended = follower.wait(60)
    assert ended.rc == 0 and len(nodes()[:3]) == len(set(nodes()[:3])), ended


def test_one_of_four_is_taken(world, project):
    """All ranks get the notice, the old machines are seen gone, and four new ones come: all or none. Restarts that are
    left do not make ranks wait for a node that will not come."""
    run = SpotRun(world, project, "--nodes", "4", "--max-restarts", "3")
    for rank in range(4):
        run.said(f"rank {rank} of 4")
    old = list(world.fake.world.machines.values())
    world.fake.world.notify(old[2], 60)
    until(lambda: len(world.fake.world.machines) > 4, 60, f"new ones; {run.all()}")
    assert not any(machine.alive() for machine in old), "the old ones are gone before new ones are asked for"
    ended = run.ends_well(machines=8)
    for rank in range(4):
        assert f"rank {rank} saved 1" in ended.out, ended
        assert f"began at step 1 args ['--resume'] attempt 2 rank {rank} of 4" in ended.out, ended
    assert {machine.zone for machine in old}.isdisjoint(machine.zone for machine in run.machines()[4:])


def test_taken_when_nobody_has_used_it_lately(world, project):
    """Neither the job itself nor `lockstep exec` meanwhile terminates what the job is about to replace."""
    run = SpotRun(world, project, "--autostop", "never", "--name", "gpus")
    run.said("at step 0")
    first = run.launched(1)
    asleep = laptop(world)
    for pid in asleep:
        os.kill(pid, signal.SIGSTOP)
    try:
        taken(world, first)
        other = world.lockstep("exec", "gpus", "--", "true")
    finally:
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)
    assert other.rc != 0 and "the machines of 'gpus' are not there" in other.err, other
    run.said("attempt 2 rank")
    world.fake.world.notify(run.launched(2), 60)
    ended = run.ends_well(machines=3)
    assert "at step 1 args ['--resume'] attempt 3" in ended.out, ended


def test_prefer_takes_what_is_on_demand_where_spot_is_sold_out(world, project):
    zones = world.fake.world.catalog["aws"]["regions"]["us-east-1"]["zones"]
    for zone in zones:
        world.fake.face("ec2").change("stock", {"type": "g6.xlarge", "zone": zone, "none": True, "spot": True})
    run = SpotRun(world, project, "--region", "us-east-1", last=0, spot="--spot=prefer")
    ended = run.ends_well(machines=1)
    assert not run.machines()[0].spot and ended.err.count("(InsufficientInstanceCapacity)") == len(zones), ended


def test_prefer_takes_what_is_on_demand_where_spot_was_lost_three_times(world, project):
    run = SpotRun(world, project, last=3, spot="--spot=prefer")
    for step in range(3):
        run.said(f"at step {step}")
        world.fake.world.notify(run.launched(step + 1), 60)
    ended = run.ends_well(machines=4)
    assert [machine.spot for machine in run.machines()] == [True, True, True, False], ended
    assert "at step 3 args ['--resume'] attempt 4" in ended.out, ended


def test_a_laptop_that_sleeps_and_one_without_a_network(world, project):
    """The job goes on. Its output of this time appears here afterwards, once, and its files too."""
    run = SpotRun(world, project, "--env", "TICKS=1")
    run.said("tick 1\n")
    machine = world.machines.by_id[run.launched(1).id]
    said = machine.path("/home/ubuntu/.local/state/lockstep/jobs")

    def ticks():
        return max(path.read_text().count("tick") for path in said.glob("*/out"))
    client = world.client.host
    asleep = list(client.processes())
    for pid in asleep:
        client.freeze(pid)
    began = ticks()
    until(lambda: ticks() > began + 40, 60, "it trains on")
    for pid in asleep:
        client.thaw(pid)
    run.said(f"tick {began + 30}\n")
    client.holder.ip("link set eth0 down", "link set lo down")
    run.said("trying again", 90)
    began = ticks()
    until(lambda: ticks() > began + 20, 60, "it trains on")
    client.holder.ip("link set lo up", "link set eth0 up")
    run.said("is back")
    machine.path("/home/ubuntu/go").touch()
    ended = run.ends_well(machines=1)
    heard = [int(line.split()[1]) for line in ended.out.splitlines() if line.startswith("tick")]
    assert heard == list(range(1, len(heard) + 1)) and ended.out.endswith("done\n"), "each word once, to the last"


def test_whoever_gives_it_up_is_not_given_another(world, project):
    """Ctrl-C while a machine is being taken, and `lockstep down` from elsewhere."""
    run = SpotRun(world, project)
    run.said("at step 0")
    world.fake.world.notify(run.launched(1), 60)
    run.said("saved 1")
    run.run.signal(signal.SIGINT)
    ended = run.run.wait(90)
    assert ended.rc != 0 and world.live() == [] and len(world.machines.all) == 1, ended
    run = SpotRun(world, project, "--name", "other", last=9)
    run.said("began at step 1")
    down = world.lockstep("down", "other", "--force")
    assert down.rc == 0, down
    ended = run.run.wait(90)
    assert ended.rc != 0 and "was terminated by another lockstep" in ended.err, ended
    assert world.live() == [] and len(world.machines.all) == 2, ended
