"""Machines on demand from Python, with a stand-in for the binary that records its arguments."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import lockstep  # noqa: E402
from lockstep import _ondemand  # noqa: E402

# Its world is one folder: `calls` has a line for each call, `rented` is there while something is rented, `ids` names
# the machines, `up.fails` is what `up` says, `up.waits` has it wait for one signal, after which it takes its time.
STAND_IN = """#!/usr/bin/python3
import json, os, pathlib, signal, sys, time
here = pathlib.Path(__file__).parent
words = sys.argv[1:]
with open(here / "calls", "a") as calls:
    calls.write(json.dumps(words) + "\\n")
there = here / "rented"
ids = (here / "ids").read_text().split()
row = {"name": "lab", "nodes": [{"id": name, "address": "10.0.0.1", "zone": "z"} for name in ids],
       "micros_per_hour": 1500000, "cost_micros": 250000, "created_ms": 1000, "closed_ms": 0,
       "ends_ms": int(time.time() * 1000) + 10**7}
if words[0] == "up":
    if (here / "up.fails").exists():
        sys.exit("lockstep up: error: " + (here / "up.fails").read_text())
    there.touch()
    if (here / "up.waits").exists():
        signals = []
        signal.signal(signal.SIGINT, lambda *_: signals.append(1))
        (here / "up.waits").write_text("it waits")
        while not signals:
            time.sleep(0.01)
        time.sleep(0.5)
        there.unlink()
        (here / "up.waits").write_text(f"{len(signals)} signals, terminated")
        sys.exit(130)
    print(json.dumps(row))
elif words[0] == "down":
    if "--force" not in words and (here / "job").exists():
        sys.exit("lockstep down: error: job 7 may still run on 'lab'; give --force, or cancel it first")
    there.unlink()
    print(json.dumps([row]))
elif words[0] == "cost":
    rows = [row | {"created_ms": 10, "closed_ms": 20}] if (here / "earlier").exists() else []
    rows += [row] if there.exists() else [row | {"closed_ms": 9}] if (here / "closed").exists() else []
    print(json.dumps({"rentals": rows, "cost_micros": 0}))
elif words[0] == "sync":
    print(json.dumps({"files": 1}))
elif words[0] == "exec":
    print("hello")
"""


class World:
    def __init__(self, folder):
        self.folder = folder
        self.binary = folder / "lockstep"
        self.binary.write_text(STAND_IN)
        self.binary.chmod(0o755)
        self.ids("i-1")

    def ids(self, *names):
        (self.folder / "ids").write_text(" ".join(names))

    def set(self, name, text=""):
        (self.folder / name).write_text(text)

    def calls(self, kind=None):
        if not (self.folder / "calls").exists():
            return []
        calls = map(json.loads, (self.folder / "calls").read_text().splitlines())
        return [words for words in calls if kind in (None, words[0])]

    def rented(self):
        return (self.folder / "rented").exists()


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = World(tmp_path)
    monkeypatch.setenv("LOCKSTEP_BINARY", str(made.binary))
    return made


def options(**given):
    gpu = lockstep.ondemand_cluster(name="lab", **given)
    gpu.up_if_not()
    return gpu


PLAIN = ["up", "lab", "--gpus=A100:1", "--provider=cheapest", "--nodes=1", "--autostop=600s", "--yes", "--json"]


@pytest.mark.parametrize("given,words", [
    ({}, []), ({"instance_type": "H100:8"}, ["--gpus=H100:8"]), ({"provider": ["aws", "gcp"]}, ["--provider=aws,gcp"]),
    ({"use_spot": True}, ["--spot"]), ({"use_spot": "prefer"}, ["--spot=prefer"]), ({"num_nodes": 4}, ["--nodes=4"]),
    ({"region": "us-east-1"}, ["--region=us-east-1"]), ({"region": ["a", "b"]}, ["--region=a,b"]),
    ({"autostop_mins": 1.5}, ["--autostop=90s"]), ({"autostop_mins": -1}, ["--autostop=never"]),
    ({"max_price": 30}, ["--max-price=30"]), ({"budget": 0.1 + 0.2}, ["--budget=0.3"]),
    ({"disk_size": 200}, ["--disk=200"]),
    ({"image": "ami-1 x"}, ["--image=ami-1 x"]), ({"options": ["--lifetime", "6h"]}, ["--lifetime", "6h"])], ids=repr)
def test_options_become_words_of_the_binary(world, given, words):
    options(**given)
    (asked,) = world.calls()
    assert set(words) <= set(asked)
    named = {word.partition("=")[0] for word in words}
    assert [word for word in asked if word not in words] == [
        word for word in PLAIN if word.partition("=")[0] not in named]


@pytest.mark.parametrize("provider, more, words", [
    ("lambda", [], ["--guard", "here"]), (["aws", "lambda"], [], ["--guard", "here"]), ("lambda,aws", [], ["--guard"]),
    ("lambda", ["--guard", "me@desk"], ["--guard", "me@desk"]), ("lambda", ["--guard=me@desk"], ["--guard=me@desk"]),
    ("lambda", ["--i-will-watch"], ["--i-will-watch"]), ("aws", [], []), ("cheapest", [], [])], ids=repr)
def test_machines_that_can_not_end_their_own_bill_get_a_guard_and_it_is_said(world, capfd, provider, more, words):
    options(provider=provider, options=more)
    (asked,) = world.calls()
    assert set(words) <= set(asked) and sum(word.startswith("--guard") for word in asked) == ("--guard" in str(words))
    assert ("a guard on this machine ends lab's" in capfd.readouterr().err) == (not more and bool(words))


@pytest.mark.parametrize("given,error", [
    ({"use_spot": "False"}, "use_spot must be True, False or 'prefer' (got 'False')"), ({"use_spot": 1}, "(got 1)"),
    ({"num_nodes": 0}, "num_nodes must be more than 0 (got 0)"), ({"num_nodes": 1.5}, "whole"),
    ({"num_nodes": True}, "number"),
    ({"autostop_mins": 0}, "autostop_mins"), ({"autostop_mins": -2}, "(got -2)"),
    ({"max_price": float("nan")}, "max_price"), ({"max_price": "30"}, "max_price must be a number (got '30')"),
    ({"budget": -1}, "(got -1)"), ({"budget": 1e-9}, "millionth"), ({"region": []}, "region"),
    ({"provider": ""}, "provider"), ({"options": "--lifetime 6h"}, "options must be a list")], ids=repr)
def test_what_can_not_be_meant_is_refused_and_nothing_is_asked(world, given, error):
    with pytest.raises((TypeError, ValueError)) as refused:
        options(**given)
    assert error in str(refused.value) and not world.calls()


def test_machines_are_rented_at_the_first_use_and_given_back_at_the_end(world):
    with lockstep.ondemand_cluster(name="lab", project=str(world.folder)) as gpu:
        assert not world.calls()
        assert gpu.run(["echo hello"])[0].output == "hello\n" and world.rented()
        gpu.sync()
        gpu.run([["true"]])
        assert len(world.calls("up")) == 1 and world.calls()[0][0] == "up"
    assert not world.rented() and world.calls()[-1] == ["down", "lab", "--json", "--force"]


def test_what_was_never_used_is_not_asked_for(world):
    with lockstep.ondemand_cluster(name="lab"):
        pass
    assert not world.calls()


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_they_are_given_back_whatever_ends_the_block(world, error):
    with pytest.raises(type(error)):
        with lockstep.ondemand_cluster(name="lab") as gpu:
            gpu.up_if_not()
            raise error
    assert not world.rented()


def test_an_error_of_the_block_is_not_hidden_by_one_of_giving_back(world, capfd):
    with pytest.raises(ValueError):
        with lockstep.ondemand_cluster(name="lab") as gpu:
            gpu.up_if_not()
            world.binary.write_text("#!/bin/sh\necho 'lockstep down: error: aws does not answer' >&2; exit 1\n")
            raise ValueError
    assert "lab cannot be terminated: aws does not answer" in capfd.readouterr().err


def test_why_nothing_was_rented_is_raised(world):
    world.set("up.fails", "nobody has V100:3; near are V100:1, V100:8")
    with pytest.raises(lockstep.LockstepError) as refused:
        with lockstep.ondemand_cluster(name="lab") as gpu:
            gpu.run(["true"])
    assert str(refused.value) == "nobody has V100:3; near are V100:1, V100:8" and refused.value.code == 1
    assert not world.calls("exec") and not world.calls("down")  # nothing is open in the journal


def test_teardown_minds_jobs_and_does_nothing_where_nothing_is(world):
    gpu = options()
    world.set("job")
    with pytest.raises(lockstep.LockstepError, match="job 7 may still run"):
        gpu.teardown()
    assert world.rented()
    gpu.teardown(force=True)
    gpu.teardown()
    assert not world.rented() and len(world.calls("down")) == 2
    gpu.run(["true"])  # used again, rented again
    assert world.rented() and len(world.calls("up")) == 2


def test_other_machines_get_the_project_again(world, monkeypatch):
    gpu = lockstep.ondemand_cluster(name="lab", project=str(world.folder))
    gpu.sync()
    gpu.run(["true"])
    assert "--in-project" in world.calls("exec")[-1]
    world.ids("i-2")
    monkeypatch.setattr(gpu, "_seen", time.time() - gpu._believed)  # they may have ended when idle
    gpu.run(["true"])
    assert len(world.calls("up")) == 2 and "--in-project" not in world.calls("exec")[-1]
    monkeypatch.setitem(gpu._rented, "ends_ms", 0)  # their lifetime is over
    gpu.run(["true"])
    assert len(world.calls("up")) == 3


def test_keep_warm_and_cost(world):
    gpu = lockstep.ondemand_cluster(name="lab")
    assert gpu.cost() == 0
    gpu.keep_warm(90)
    assert world.calls()[-2][0] == "up" and world.calls()[-1] == ["keep", "lab", "5400s"]
    assert gpu.cost() == 0.25
    world.set("earlier")  # what was rented under that name before this program
    world.set("closed")
    gpu.teardown()
    assert gpu.cost() == 0.25
    with pytest.raises(ValueError, match="minutes must be more than 0"):
        gpu.keep_warm(0)


def test_a_function_rents_them(world):
    gpu = lockstep.ondemand_cluster(name="lab")
    with pytest.raises(lockstep.CallError):  # the stand-in calls nothing
        lockstep.function(fn=len, system=gpu, sync=False)([])
    assert [words[0] for words in world.calls()] == ["up", "call"]


@pytest.mark.parametrize("own", [{"ips": ["10.0.0.5"]}, {"ssh_creds": {"ssh_user": "me"}}], ids=repr)
@pytest.mark.parametrize("rented", [{"instance_type": "V100:1"}, {"provider": "cheapest"}, {"use_spot": False}],
                         ids=repr)
def test_hosts_of_your_own_and_machines_on_demand_exclude_each_other(world, own, rented):
    with pytest.raises(lockstep.LockstepError) as refused:
        lockstep.cluster(name="lab", **own, **rented)
    mine, theirs = next(iter(own)), next(iter(rented))
    assert str(refused.value).startswith(f"{mine} and {theirs} exclude each other: ")
    assert str(refused.value).endswith(f"leave out {mine}, or {theirs}") and not world.calls()


def test_the_cluster_of_the_script(world):
    gpu = lockstep.cluster(name="rh-cluster", instance_type="V100:1", provider="cheapest", use_spot=False)
    assert isinstance(gpu, lockstep.OnDemandCluster) and not world.calls()
    gpu.up_if_not()
    assert world.calls() == [["up", "rh-cluster", "--gpus=V100:1", *PLAIN[3:]]]
    with pytest.raises(lockstep.LockstepError, match="provider is for rented machines; say which"):
        lockstep.cluster(name="lab", provider="aws")
    with pytest.raises(lockstep.LockstepError, match="need a name"):
        lockstep.cluster(instance_type="V100:1")


def test_one_ctrl_c_while_they_are_rented_is_passed_on_once_and_waited_for(world, monkeypatch):
    world.set("up.waits")
    program = "import lockstep\nwith lockstep.ondemand_cluster(name='lab') as gpu: gpu.run(['true'])"
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(lockstep.__file__).parents[1])}
    started = subprocess.Popen([sys.executable, "-c", program], env=env, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while (world.folder / "up.waits").read_text() != "it waits" and time.monotonic() < deadline:
        time.sleep(0.01)
    started.send_signal(signal.SIGINT)
    err = started.communicate(timeout=30)[1]
    assert started.returncode == -signal.SIGINT and "KeyboardInterrupt" in err
    assert (world.folder / "up.waits").read_text() == "1 signals, terminated" and not world.rented()
    assert not world.calls("exec") and _ondemand._GRACE >= 300
