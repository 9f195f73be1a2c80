"""Clients that are killed at every step of renting, and answers that are lost or cut. In all cases `down --all` (or the
end of the leases) leaves nothing billed, no node that is wanted ever has two machines, and `lockstep cost` equals the
provider's meter.

Many more runs by hand: LOCKSTEP_KILLS=200 pytest test_cloud_kills.py -k random_kills, and likewise
LOCKSTEP_KILLS_ELSEWHERE=100 with -k random_kills_elsewhere

The machines have no sshd: a client that waits for sshd has rented all its machines. Costs may differ by TOLERANCE_S of
each machine's rate: times that a provider does not tell come from the client's clock, a round trip and a look at the
list later.
"""
import contextlib
import json
import os
import random
import signal
import sqlite3

import pytest

from cloud_worlds import (GUARD_S, cloud, fault, guard_timers, laptop, laptops, machines, meter,  # noqa: F401
                          most_alive_at_once, server, until, without_keys)
from harness import alive, read

RUNS = int(os.environ.get("LOCKSTEP_KILLS", "12"))
RUNS_ELSEWHERE = int(os.environ.get("LOCKSTEP_KILLS_ELSEWHERE", "2"))  # of each provider
TOLERANCE_S = 3
AGE_S = 120
LAUNCH = {"aws": "RunInstances", "gcp": "instances.insert", "lambda": "launch",
          "runpod": "graphql.podFindAndDeployOnDemand"}
END = {"aws": "TerminateInstances", "gcp": "instances.delete", "lambda": "terminate", "runpod": "pods.delete"}
GPUS = {"aws": "L4:1", "gcp": "L4:1", "lambda": "A10:1", "runpod": "L4:1"}
WHEN = ("before", "middle", "after")
CUTS = {"nothing-done": {"kind": "cut", "when": "before"}, "all-done": {"kind": "cut", "when": "after"},
        "half": {"kind": "half"}, "nine-bytes": {"kind": "cut_at", "bytes": 9}}


def wish(provider, *more, guard=("--i-will-watch",)):
    guard = guard if provider == "lambda" else ()
    return ("--gpus", GPUS[provider], "--provider", provider, "-y", *guard, *more)


def kill(run):
    with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
        run.signal(signal.SIGKILL)
    run.wait()


def rented_and_killed(laptop, provider):  # noqa: F811
    run = laptop.start("up", "gpus", *wish(provider))
    until(lambda: "waits for sshd" in run.err() or run.process.poll() is not None, 60, "it waits for sshd")
    kill(run)
    assert "waits for sshd" in run.err(), run.err()


def slack(cloud, seconds):  # noqa: F811
    """Returns what all machines cost in this time, in micro-USD."""
    rate = sum(bill["rate"] for machine in machines(cloud) for bill in machine["bills"])
    return rate * seconds / 3600 + 2


def check(cloud, *found, tolerance_s=TOLERANCE_S):  # noqa: F811
    """Checks that all machines of these laptops are terminated, and that costs equal the meter."""
    until(lambda: not meter(cloud)["billed"] and not meter(cloud)["live"], 20, "nothing is billed")
    assert most_alive_at_once(cloud) <= 1, machines(cloud)
    costs, bill = [laptop.cost() for laptop in found], meter(cloud)  # noqa: F811
    assert all(row["closed_ms"] for cost in costs for row in cost["rentals"]), costs
    assert abs(sum(cost["cost_micros"] for cost in costs) - bill["micros"]) <= slack(cloud, tolerance_s), (costs, bill)


@pytest.mark.parametrize("provider", ["aws", "lambda"])
def test_cost_counts_a_machine_whose_launch_was_not_answered(cloud, laptop, provider):  # noqa: F811
    """The machine may be alive, so a cost of zero would be wrong."""
    with laptop.held(action=LAUNCH[provider], when="after") as hold:
        run = laptop.start("up", "gpus", *wish(provider))
        hold.arrived()
        kill(run)
    assert len(meter(cloud)["live"]) == 1
    ended = laptop.run("cost", "--json", env=without_keys())
    (row,) = json.loads(ended.out)["rentals"]
    rate = sum(bill["rate"] for machine in machines(cloud) for bill in machine["bills"])
    assert row["unanswered"] and abs(row["micros_per_hour"] - rate) < 0.01 * rate, (row, rate)
    assert "a launch without an answer" in laptop.run("cost", env=without_keys()).out
    down(laptop)
    check(cloud, laptop)


def down(laptop, **options):  # noqa: F811
    ended = laptop.down(timeout=100, **options)
    if "machines there are not known" in ended.err:  # a list was cut: it says so, and is asked again
        assert ended.rc == 1 and "leftover machines" not in ended.out, ended
        ended = laptop.down(timeout=100, **options)
    assert ended.rc == 0, ended


def age(laptop):  # noqa: F811
    """The rental is two minutes older: nobody waits here for what a provider may list late."""
    path = laptop.home / ".local/state/lockstep/rentals.db"
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as journal, journal:
        for ident, text in journal.execute("SELECT id, json FROM records WHERE kind = 'rental'").fetchall():
            rental = json.loads(text)
            for attempt in rental["attempts"]:
                for name in ("asked_ms", "answered_ms"):
                    attempt[name] = max(0, attempt.get(name, 0) - AGE_S * 1000)
            journal.execute("UPDATE records SET json = ? WHERE kind = 'rental' AND id = ?", (json.dumps(rental), ident))


def killed_at(laptop, action, when, *args, skip=0):  # noqa: F811
    """Kills the client at a request: before the action, in the middle of the answer, or before the answer."""
    with laptop.held(when, skip=skip, action=action) as hold:
        run = laptop.start(*args)
        until(lambda: hold.is_here() or "waits for sshd" in run.err() or run.process.poll() is not None, 60, action)
        kill(run)
        return hold.is_here()


# Kills during the launch, and during the termination.

@pytest.mark.parametrize("when", WHEN)
def test_killed_at_the_launch(cloud, laptop, when):  # noqa: F811
    assert killed_at(laptop, LAUNCH["aws"], when, "up", "gpus", *wish("aws"))
    down(laptop)
    check(cloud, laptop)


def test_killed_at_the_launch_where_machines_are_listed_late(cloud, laptops):  # noqa: F811
    """What is not listed counts as not there after a minute only: all at once, so that there is one minute. Machines
    whose launch nobody has heard of are paid from when they were asked for, and that is made AGE_S earlier here."""
    killed = []
    for provider in ("gcp", "lambda", "runpod"):
        for when in WHEN:
            killed.append(laptops(f"{provider}-{when}"))
            assert killed_at(killed[-1], LAUNCH[provider], when, "up", "gpus", *wish(provider))
            age(killed[-1])
    # Then only: termination asks again for the launch, and another one's is held.
    ending = [(one, one.start("down", "gpus")) for one in killed]
    for _, run in ending:
        ended = run.wait(150)
        assert ended.rc == 0, ended
    check(cloud, *[one for one, _ in ending], tolerance_s=AGE_S + TOLERANCE_S)


@pytest.mark.parametrize("provider", ["aws", "gcp", "runpod"])
@pytest.mark.parametrize("when", WHEN)
def test_killed_while_it_gives_back(cloud, laptop, provider, when):  # noqa: F811
    rented_and_killed(laptop, provider)
    age(laptop)
    assert killed_at(laptop, END[provider], when, "down", "gpus")
    down(laptop)
    check(cloud, laptop)
    assert len(machines(cloud)) == 1


# Answers that are lost or cut, with a client that lives.

@pytest.mark.parametrize("provider", ["aws", "gcp"])
@pytest.mark.parametrize("cut", CUTS)
def test_a_launch_whose_answer_is_cut(cloud, laptop, provider, cut):  # noqa: F811
    fault(cloud, CUTS[cut], action=LAUNCH[provider])
    rented_and_killed(laptop, provider)
    assert len([each for each in machines(cloud) if each["alive"]]) == 1
    age(laptop)
    down(laptop)
    check(cloud, laptop)


@pytest.mark.parametrize("cut", CUTS)
def test_an_end_whose_answer_is_cut(cloud, laptop, cut):  # noqa: F811
    rented_and_killed(laptop, "aws")
    fault(cloud, CUTS[cut], action=END["aws"])
    down(laptop)
    check(cloud, laptop)


# Anything, anywhere.

@pytest.mark.parametrize("seed", range(RUNS))
def test_random_kills(cloud, laptop, seed):  # noqa: F811
    rng = random.Random(seed)
    if rng.random() < 0.4:
        fault(cloud, CUTS[rng.choice(list(CUTS))], action=rng.choice([LAUNCH["aws"], END["aws"], "DescribeInstances"]),
              skip=rng.randrange(2))
    for number in range(rng.randint(1, 3)):
        args = ("up", "gpus", *wish("aws")) if number == 0 or rng.random() < 0.6 else ("down", "gpus")
        action = rng.choice(["*", "*", "Describe*", LAUNCH["aws"], END["aws"]])
        killed_at(laptop, action, rng.choice(WHEN), *args, skip=rng.randrange(60 if action == "*" else 3))
    down(laptop)
    check(cloud, laptop)


LISTS = {"gcp": "instances.aggregatedList", "lambda": "instances.list", "runpod": "pods.list"}


def guards(laptop):  # noqa: F811
    """Returns the pid of the living guard from its lock file, or none."""
    path = laptop.home / ".local/state/lockstep/guard.lock"
    words = read(path).split() if path.exists() else []
    return [int(words[0])] if words and alive(int(words[0])) else []


@pytest.mark.parametrize("seed", range(RUNS_ELSEWHERE))
@pytest.mark.parametrize("provider", ["gcp", "lambda", "runpod"])
def test_random_kills_elsewhere(cloud, laptop, provider, seed):  # noqa: F811
    """Where a launch may be listed late: each rental is made AGE_S older after a kill, as nobody waits here. Lambda's
    machines have a guard, which is killed as well now and then."""
    rng = random.Random(f"{provider} {seed}")
    if rng.random() < 0.4:
        action = rng.choice([LAUNCH[provider], END[provider], LISTS[provider]])
        fault(cloud, CUTS[rng.choice(list(CUTS))], action=action, skip=rng.randrange(2))
    kills = rng.randint(1, 3)
    for number in range(kills):
        args = (("up", "gpus", *wish(provider, guard=("--guard", "here"))) if number == 0 or rng.random() < 0.6
                else ("down", "gpus"))
        action = rng.choice(["*", "*", LISTS[provider], LAUNCH[provider], END[provider]])
        killed_at(laptop, action, rng.choice(WHEN), *args, skip=rng.randrange(20 if action == "*" else 3))
        if rng.random() < 0.5:
            for pid in guards(laptop):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        age(laptop)
    down(laptop)
    check(cloud, laptop, tolerance_s=kills * AGE_S + TOLERANCE_S)
    left = guards(laptop)
    until(lambda: not any(alive(pid) for pid in left), 40, "the guard has nothing left to do")


# Nobody comes back.

@pytest.mark.parametrize("provider", ["aws", "gcp"])
def test_machines_end_themselves_when_the_client_never_comes_back(cloud, laptop, provider):  # noqa: F811
    """By the timer of the first boot. Only Google's disk is still billed, until a client removes it."""
    guard_timers(cloud)
    rented_and_killed(laptop, provider)
    cloud.world.advance(GUARD_S + 60)
    until(lambda: not meter(cloud)["live"], 20, "nothing lives")
    (machine,) = machines(cloud)
    assert GUARD_S - 5 <= machine["lived_s"] <= GUARD_S + 65, machine
    if provider == "aws":
        assert not machine["billed"], machine
    else:
        assert [bill["what"] for bill in machine["bills"] if bill["end"] is None] == ["disk"], machine
    age(laptop)
    down(laptop)
    until(lambda: not meter(cloud)["billed"], 20, "nothing is billed")


# Two laptops with one account.

def test_what_another_installation_has_rented_is_left_alone(cloud, laptops):  # noqa: F811
    ann, bob = laptops("ann"), laptops("bob")
    rented_and_killed(ann, "aws")
    (of_ann,) = machines(cloud)
    for args in (("down", "--all"), ("down", "--orphans"), ("up", "gpus", *wish("aws"))):
        run = bob.start(*args)
        until(lambda: "waits for sshd" in run.err() or run.process.poll() is not None, 60, args)
        if run.process.poll() is None:
            run.signal(signal.SIGINT)
        run.wait(100)
        assert of_ann["id"] in run.err() and "belongs to another installation" in run.err(), run.err()
    assert meter(cloud)["live"] == [of_ann["id"]]
    assert "gpus" not in bob.run("cost").out
    down(ann)
    assert meter(cloud)["live"] == []


def test_orphans_of_ours_are_ended_and_only_they(cloud, laptops):  # noqa: F811
    ann, bob = laptops("ann"), laptops("bob")
    for one in (ann, bob):
        rented_and_killed(one, "aws")
    of_ann, of_bob = machines(cloud)
    forget(ann)
    ended = ann.run("down", "--orphans", timeout=60)
    assert ended.rc == 0 and f"{of_ann['id']} in" in ended.err and "no longer wanted: ended" in ended.err, ended
    assert f"{of_bob['id']} in" in ended.err and "belongs to another installation" in ended.err, ended
    until(lambda: meter(cloud)["live"] == [of_bob["id"]], 20, "only the other's lives")
    down(bob)
    until(lambda: meter(cloud)["live"] == [], 20, "nothing lives")


def forget(laptop):  # noqa: F811
    """The journal is restored from a copy in which that was not rented yet."""
    path = laptop.home / ".local/state/lockstep/rentals.db"
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as journal, journal:
        journal.execute("DELETE FROM records WHERE kind = 'rental'")
