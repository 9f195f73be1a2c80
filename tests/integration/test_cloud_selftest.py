"""`lockstep cloud selftest` against a fake provider with a real machine, which terminates itself or fails to."""
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from harness import until  # noqa: E402
from rented_world import CloudWorld  # noqa: E402


@pytest.fixture
def world(hosts, tmp_path):
    with CloudWorld(hosts, tmp_path) as made:
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


def selftest(world, *more, provider="aws"):
    return world.start("cloud", "selftest", provider, "-y", "--allow-from", f"{world.client.addr}/32", *more)


def lines(ended):
    """Returns the lines of the report by their first word."""
    return [tuple(re.split(r" +(?:[0-9.]+ s)? *", line, maxsplit=1)) for line in ended.out.splitlines()]


def is_public(world, ended):
    """Checks that the report has no data of the account: users send the report to other people."""
    for secret in (*(machine.addr for machine in world.machines.all), world.client.addr, "AKIA", "ssh-ed25519",
                   "123456789012", str(world.client.root_home)):
        assert secret not in ended.out, (secret, ended.out)


def machine_of(world, face):
    """Waits for the rented machine, and returns the real machine behind it."""
    def found():
        there = world.machines.by_id
        return [there[one.id] for one in world.fake.world.find(face=face) if one.id in there]
    until(found, 60, f"a machine of {face}")
    return found()[0]


def test_one_ends_itself_one_cannot_and_one_does_not_although_it_should(world):
    """All at once: each self-test is slow, and none may take another's machine for a leftover."""
    runs = {provider: selftest(world, "--patience", patience, provider=provider)
            for provider, patience in (("aws", "60s"), ("gcp", "3s"), ("lambda", "60s"))}
    # A power-off on this machine silently does nothing.
    machine_of(world, "gce").put("/usr/local/sbin/poweroff", "#!/bin/sh\nexit 0\n", 0o755)
    ended = {provider: run.wait(180) for provider, run in runs.items()}
    assert world.live() == [], ended
    for one in ended.values():
        for words in ("cheapest of", "says that the machine runs", "sshd answers", "host key", "healthy",
                      "its lease runs", "terminated: the provider lists nothing", "found 0 unwanted machines",
                      "the bill: 0."):
            assert words in one.out, (words, one)
        assert "cost: " in one.err, "the price was said first"
        is_public(world, one)
    types = {one.face: (one.type, one.gpus) for one in world.fake.world.machines.values()}
    assert types["ec2"] == ("t3.micro", 0) and types["gce"] == ("e2-small", 0) and types["lambda"][1] > 0, types
    for provider in ("aws", "gcp"):
        assert "no GPUs, 0.02 USD an hour" in ended[provider].out, ended
        assert ("note", "the machine has no GPUs: driver and GPUs were not checked") in lines(ended[provider]), ended
    assert "GPUs, driver, disk" in ended["lambda"].out, ended
    good = ended["aws"]
    assert good.rc == 0 and "FAILED" not in good.out and lines(good)[-1] == ("result:", "ok"), good
    assert "the machine ended itself" in good.out and machine_of(world, "ec2").said_off, good
    bad = ended["gcp"]
    assert bad.rc == 1 and "still lists the machine" in bad.err, bad
    assert ("FAILED", "the machine has not ended itself") in lines(bad) and lines(bad)[-1] == ("result:", "FAILED"), bad
    other = ended["lambda"]
    assert other.rc == 0 and "this command terminates the machine" in other.out and "FAILED" not in other.out, other


def test_ctrl_c_gives_back(world):
    run = selftest(world, "--type", "any")
    until(lambda: "the lease ends in" in run.out(), 120, f"it runs: {run.out()} {run.err()}")
    run.process.send_signal(2)
    ended = run.wait(120)
    assert ended.rc == 130 and "stopped by the user" in ended.out and world.live() == [], ended
    assert "GPUs, driver, disk" in ended.out and "the machine has no GPUs" not in ended.out, ended
    assert [one.gpus for one in world.fake.world.machines.values()] == [1], ended


def test_it_asks_and_takes_only_that_type(world):
    refused = world.lockstep("cloud", "selftest", "aws")
    assert refused.rc == 2 and "give -y" in refused.err and world.fake.world.machines == {}, refused
    none = selftest(world, "--type", "t3.nano").wait(60)
    assert none.rc == 1 and "nobody offers" in none.err and world.fake.world.machines == {}, none
    # No other command ever shows machines without GPUs.
    offers = world.lockstep("offers", "L4:1", "--at-least", "--json")
    assert "g6.xlarge" in offers.out and "t3.micro" not in offers.out, offers
