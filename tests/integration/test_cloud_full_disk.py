"""The journal's disk is full before or during a rental. Lockstep must not ask for a machine that it cannot note, must
terminate the machines, and must say why in one line. Once the disk has room, `down --all` leaves nothing, and the bill
is right."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from cloud_worlds import (cloud, laptop, laptops, machines, meter, nothing_rented, server, until)  # noqa: F401

from test_cloud_impatient import in_use
from test_cloud_sweep import rented_and_killed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from rented_world import CloudWorld  # noqa: E402

AWS = ("--gpus", "L4:1", "--provider", "aws", "-y")


@contextlib.contextmanager
def small_disk(folder, holder=None):
    """holder: the process with a host's namespaces, which then has this disk."""
    folder.mkdir(parents=True, exist_ok=True)
    enter = ["nsenter", "--target", str(holder), "--mount", "--"] if holder else []
    subprocess.run([*enter, "mount", "-t", "tmpfs", "-o", "size=1024k", "tmpfs", folder], check=True)
    try:
        yield pathlib.Path(f"/proc/{holder}/root{folder}" if holder else folder)
    finally:
        if not holder:  # else it goes with the host
            subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def disk(laptop):  # noqa: F811
    with small_disk(laptop.home / ".local/state") as folder:
        yield folder


def fill(folder, free_kb=0):
    filler = folder / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    os.truncate(filler, filler.stat().st_size - 1024 * free_kb)
    return filler


def one_clear_line(ended, *words):
    errors = [line for line in ended.error_lines if ": error: " in line]
    assert ended.rc == 1 and len(errors) == 1 and errors[0] == ended.error_lines[-1], ended
    for word in ("the disk is full", "free space", *words):
        assert word in errors[0], (word, errors)


def given_back_and_accounted(cloud, laptop, run, filler):  # noqa: F811
    """The command itself terminates machines that it could not note."""
    one_clear_line(run.wait(60), "no machine is left")
    until(lambda: meter(cloud)["live"] == [], 20, "the machine ends")
    filler.unlink()
    accounted(cloud, laptop)


def accounted(cloud, laptop):  # noqa: F811
    """Once there is room nothing is left, and the bill is the meter's."""
    ended = laptop.down()
    assert ended.rc == 0 and meter(cloud)["live"] == [], ended
    assert len(machines(cloud)) <= 1
    cost, bill = laptop.cost(), meter(cloud)
    assert all(row["closed_ms"] for row in cost["rentals"]), cost
    rate = sum(bill["rate"] for machine in machines(cloud) for bill in machine["bills"])
    assert abs(cost["cost_micros"] - bill["micros"]) <= rate * 4 / 3600 + 2, (cost, bill)


@pytest.mark.parametrize("free_kb", [0, 8, 24, 48])
def test_before_anything_is_rented(laptop, disk, free_kb):  # noqa: F811
    """The command asks for no machine that it cannot note."""
    assert laptop.run("cost").rc == 0
    filler = fill(disk, free_kb)
    ended = laptop.run("up", "gpus", *AWS, timeout=60)
    assert nothing_rented(laptop.cloud), ended
    assert "the disk is full" in ended.error_lines[-1] and "free space" in ended.error_lines[-1], ended
    filler.unlink()
    assert laptop.down().rc == 0


def test_between_a_launch_and_its_answer(cloud, laptop, disk):  # noqa: F811
    with laptop.held("after", action="RunInstances") as hold:
        run = laptop.start("up", "gpus", *AWS)
        hold.arrived()
        filler = fill(disk)
    given_back_and_accounted(cloud, laptop, run, filler)


def test_while_it_boots(cloud, laptop, disk):  # noqa: F811
    cloud.world.settings["boot_s"] = 3.0
    run = laptop.start("up", "gpus", *AWS)
    until(lambda: "it is booting" in run.err() or run.process.poll() is not None, 60, "it boots")
    given_back_and_accounted(cloud, laptop, run, fill(disk))


def test_what_is_in_use_stays(cloud, laptop, disk):  # noqa: F811
    """`up` of a cluster where a job may run terminates nothing."""
    rented_and_killed(laptop)
    with in_use(laptop):
        with laptop.held("before", action="DescribeInstances") as hold:
            run = laptop.start("up", "gpus", *AWS)
            hold.arrived()
            filler = fill(disk)
        ended = run.wait(60)
        assert len(meter(cloud)["live"]) == 1, ended
    last = ended.error_lines[-1]
    assert ended.rc == 1 and all(words in last for words in ("the disk is full", "stays as it is", "free space")), ended
    filler.unlink()
    accounted(cloud, laptop)


def test_at_first_contact(hosts, tmp_path):
    """With a real machine, so that the command reaches the first contact."""
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    with CloudWorld(hosts, tmp_path) as world:
        with small_disk(tmp_path / "state", world.client.host.holder.pid) as folder:
            run = world.start("up", "lab", "--gpus", "L4:1", "--provider", "aws", "-y", "--allow-from",
                              f"{world.client.addr}/32", env=state)
            until(lambda: "waits for sshd" in run.err() or run.process.poll() is not None, 60, "it waits for sshd")
            filler = fill(folder)
            one_clear_line(run.wait(120), "no machine is left")
            until(lambda: not world.live(), 20, "the machine ends")
            filler.unlink()
            ended = world.lockstep("down", "--all", env=state)
            assert ended.rc == 0 and len(world.fake.world.machines) == 1, ended


def test_while_it_is_given_back(cloud, laptop, disk):  # noqa: F811
    run = laptop.start("up", "gpus", *AWS)
    until(lambda: "waits for sshd" in run.err() or run.process.poll() is not None, 60, "it waits for sshd")
    run.signal(signal.SIGKILL)
    run.wait()
    with laptop.held("after", action="TerminateInstances") as hold:
        run = laptop.start("down", "gpus")
        hold.arrived()
        filler = fill(disk)
    ended = run.wait(60)
    one_clear_line(ended, "the machines are gone")
    assert meter(cloud)["live"] == [], "what cannot be noted is ended all the same"
    filler.unlink()
    accounted(cloud, laptop)


def test_a_client_that_cannot_even_read_says_so(cloud, laptop, disk):  # noqa: F811
    """With a running machine: it terminates itself, and commands say why they cannot."""
    run = laptop.start("up", "gpus", *AWS)
    until(lambda: "waits for sshd" in run.err() or run.process.poll() is not None, 60, "it waits for sshd")
    run.signal(signal.SIGKILL)
    run.wait()
    filler = fill(disk)
    for words in (("down", "gpus"), ("down", "--all"), ("cost",), ("offers", "L4:1"), ("up", "gpus", *AWS)):
        ended = laptop.run(*words, timeout=60)
        if ended.rc != 0:
            assert "the disk is full" in ended.error_lines[-1], ended
        if meter(cloud)["live"] == []:
            break
    filler.unlink()
    accounted(cloud, laptop)
