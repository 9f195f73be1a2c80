"""Chaos in small, as often as CI runs; 200 faults by hand: chaos.py --faults 200 [--seed N]. Replay with the seed."""
import json
import os

import pytest

from chaos import Chaos, Training, make_plan
from harness import SCRIPTS, until

SEED = int(os.environ.get("CHAOS_SEED", "1"))


@pytest.mark.parametrize("backend, faults", [("lockstep", 25), ("c10d", 10)])
def test_the_training_gets_through_chaos(hosts, backend, faults):
    chaos = Chaos(hosts, seed=SEED, faults=faults, backend=backend, longest_cut=5)
    wrong = chaos.run()
    assert not wrong, f"{wrong}\n{chaos.logs()[-20000:]}"


def test_the_seed_is_the_plan():
    assert make_plan(7, 50, 8, 20) == make_plan(7, 50, 8, 20) != make_plan(8, 50, 8, 20)
    assert make_plan(7, 50, 8, 20) == make_plan(7, 200, 8, 20)[:50]


def put_steps(training, *steps, **changes):
    for number in steps:
        step = {"at": number, "step": number, "world": 2, "final": number == steps[-1], "done_by": {"0": "a", "1": "b"}, **changes}
        (training.folder / f"steps/{number}").write_text(json.dumps(step))


# Each rule can be broken.
def test_the_record_of_a_good_training_is_good(tmp_path):
    training = Training(tmp_path)
    put_steps(training, 1, 2, 3)
    assert training.broken_rules() == []
    assert training.last() == 3


@pytest.mark.parametrize("steps, changes, what", [
    ((1, 3), {}, "missing"), ((1, 2), {"at": 5}, "out of order"), ((1, 2), {"world": 3}, "not done by all"),
    ((1, 2), {"final": False}, "final")])
def test_a_broken_rule_is_found(tmp_path, steps, changes, what):
    training = Training(tmp_path)
    put_steps(training, *steps, **changes)
    assert any(what in line for line in training.broken_rules())


def test_two_jobs_in_one_folder_break_the_rules(lockstep):
    """Two lives with the same round and rank at the same time, and steps that both would commit."""
    training = Training(lockstep.folder / "training")
    (lockstep.folder / "log").write_text("round 0: node 0 of 1\n")
    runs = [lockstep.start("--standalone", SCRIPTS / "toy_training.py", training.folder, 5,
                           env={"TOY_AGENT_LOG": lockstep.folder / "log"}) for _ in range(2)]
    until(lambda: {line["what"] for line in training.lines("violations")} ==
          {"two alive with the same round and rank", "a step committed twice"})
    training.finish()
    assert sorted(run.wait().rc for run in runs) == [0, 1]
    assert len(training.broken_rules()) == 2
