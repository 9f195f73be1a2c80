"""Lambda and RunPod with real machines behind their fakes: virtual machines that cloud-init sets up, and a container
that runs the start script. The client knows only what the providers tell it."""
import json
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from rented_world import CloudWorld  # noqa: E402

PACE = {"LOCKSTEP_CLOUD_PACE": "0.05"}


@pytest.fixture(name="world")
def rented_world(hosts, tmp_path):
    with CloudWorld(hosts, tmp_path) as made:
        made.fake.world.settings["limits"] = 0.02
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


def typed(world, *words, timeout=180):
    return world.lockstep(*words, env=PACE, timeout=timeout)


def up(world, provider, gpus, *more):
    ended = typed(world, "up", "lab", "--gpus", gpus, "--provider", provider, "-y", "--max-price", "3",
                  "--allow-from", f"{world.client.addr}/32", *more)
    assert ended.rc == 0, ended
    return ended


def bill(world):
    """Returns our cost and the fake's meter, in micro-USD."""
    told = json.loads(typed(world, "cost", "--since", "1d", "--json").out)["cost_micros"]
    return told, world.fake.world.micros()


@pytest.mark.parametrize("provider,gpus,more,user", [("lambda", "A10:1", ["--i-will-watch"], "ubuntu"),
                                                     ("runpod", "L4:2", [], "root")])
def test_a_machine_is_rented_used_and_given_back(world, provider, gpus, more, user):
    up(world, provider, gpus, *more)
    (machine,) = world.live()
    said = typed(world, "exec", "lab", "--", "whoami")
    assert said.rc == 0 and said.out == f"{user}\n", said
    assert machine.public_key.startswith("ssh-ed25519 ")
    ended = typed(world, "down", "lab", "-y")
    assert ended.rc == 0 and world.live() == [], ended
    told, meter = bill(world)
    assert told == pytest.approx(meter, rel=0.1), (told, meter)


def test_a_gang_at_lambda_is_asked_for_one_by_one_and_one_refusal_ends_all(world):
    world.fake.faults.add({"face": "lambda", "action": "launch", "skip": 1, "times": -1, "do": {"kind": "capacity"}})
    ended = typed(world, "up", "lab", "--gpus", "A10:1", "--nodes", "2", "--provider", "lambda", "-y",
                  "--max-price", "3", "--i-will-watch", "--wait", "1s", "--allow-from", f"{world.client.addr}/32")
    assert ended.rc != 0 and len(world.fake.world.machines) == 1 and world.live() == [], ended
    world.fake.faults.remove()
    up(world, "lambda", "A10:1", "--nodes", "2", "--i-will-watch")
    said = typed(world, "exec", "lab", "--", "hostname")
    assert said.rc == 0 and len(set(said.out.split())) >= 2, said
    assert typed(world, "down", "lab", "-y").rc == 0 and world.live() == []


def test_keep_goes_no_further_than_a_pod_of_runpods_lives(world):
    """RunPod deletes a pod at its terminateAfter, even if the lease was prolonged since."""
    said = typed(world, "up", "lab", "--gpus", "L4:1", "--provider", "runpod", "--max-price", "3", "--lifetime", "62m",
                 "--print")
    assert "keep: cannot extend this end: RunPod itself terminates the machines; give --lifetime now" in said.out, said
    up(world, "runpod", "L4:1", "--lifetime", "62m")
    (machine,) = world.live()
    kept = typed(world, "keep", "lab", "5h")
    assert kept.rc == 0 and "the provider ends the machine then and cannot move the end" in kept.out, kept
    told = json.loads(typed(world, "cost", "--json").out)["rentals"][0]["ends_ms"] / 1000
    assert machine.launched + 3600 < told <= machine.extra["terminate_after"] + 1, (told, machine.extra)
    shown = typed(world, "cluster", "show", "lab")
    assert time.strftime("%H:%M", time.localtime(told)) in shown.out, shown
    assert typed(world, "down", "lab", "-y").rc == 0 and world.live() == []


def test_a_pod_without_an_answer_is_found_by_its_name_and_used(world):
    world.fake.faults.add({"face": "runpod", "action": "graphql.podFindAndDeployOnDemand",
                           "do": {"kind": "cut", "when": "after"}})
    up(world, "runpod", "L4:1")
    assert len(world.fake.world.machines) == 1, "and no second one was asked for"
    assert typed(world, "exec", "lab", "--", "true").rc == 0
    assert typed(world, "down", "lab", "-y").rc == 0 and world.live() == []
