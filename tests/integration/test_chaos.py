"""Small chaos runs for CI. By hand: chaos.py --faults 200 [--seed N]. The seed replays a run."""
import json
import os
import re
import signal
import time

import pytest

from chaos import Chaos, Training, make_plan
from chaos_oracle import Facts, judge
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


class Broken(Chaos):
    """A run with faults outside of the plan: an agent crashes, a step is lost, and a worker of node2 lies."""

    def start(self, host, **env):
        return super().start(host, **env, **({"TOY_LIES": json.dumps({"restarts": 7})} if host.name == "node2" else {}))

    def inflict(self, number, fault):
        self.progress("a step of the job")
        os.kill(self.nodes[1].agent()[0], signal.SIGSEGV)
        self.wait(lambda: self.facts.agents[1]["rc"] is not None, 30, "the end of the agent that crashed")
        (self.training.folder / "steps/1").unlink()


def test_a_job_that_is_really_broken_is_seen_to_be(hosts):
    wrong = Broken(hosts, seed=SEED, faults=1, count=3, min_nodes=2).run()
    crash = [line for line in wrong if "the agent on node1 ended with 139 (SIGSEGV)" in line]
    step = [line for line in wrong if line == "steps are missing: [1]"]
    lies = [line for line in wrong if re.match(r"several restart counts in round \d+: \[[0-6], 7\]$", line)]
    assert len(crash) == len(step) == 1 and lies and len(wrong) == 2 + len(lies), wrong


def test_two_jobs_in_one_folder_break_the_rules(lockstep):
    """Workers of the same round and rank at the same time, though no store was replaced; steps that both would
    commit."""
    training = Training(lockstep.folder / "training")
    runs = []
    for name in ("one", "two"):
        (lockstep.folder / name).write_text("round 0: node 0 of 1\n")
        runs.append(lockstep.start("--standalone", SCRIPTS / "toy_training.py", training.folder, 5,
                                   env={"TOY_AGENT_LOG": lockstep.folder / name}))
    until(lambda: any(line["what"] == "a step committed twice" for line in training.lines("violations")))
    assert sum(len(worker["beside"]) for worker in training.workers()) in (1, 2)
    training.finish()
    assert sorted(run.wait().rc for run in runs) == [0, 1]
    training.look_for_the_dead(time.monotonic())
    wrong = judge(Facts(workers=training.workers(), steps=training.steps(), violations=training.lines("violations")))
    assert len(wrong) == 2 and "a step committed twice" in wrong[0] and "two jobs at once" in wrong[1], wrong
