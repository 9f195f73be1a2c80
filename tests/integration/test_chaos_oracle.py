"""Tests of the oracle of chaos.py: each test breaks one rule in an otherwise good record."""
import signal

import pytest

from chaos_oracle import Facts, judge

DETECTION = 20.0


def agent(name, host, at, ended=None, rc=None):
    return {"agent": name, "host": host, "at": at, "ended": ended, "rc": rc}


def worker(agent, host, rank, number, at, gone, *, master="node0:1", world=2, restarts=0, beside=()):
    return {"agent": agent, "host": host, "rank": rank, "round": number, "at": at, "gone": gone, "master": master,
            "world": world, "restarts": restarts, "life": f"round_{number}.rank_{rank}.{agent}", "beside": list(beside)}


def step(number, at, final=False):
    return {"step": number, "at": at, "world": 2, "final": final, "done_by": {"0": "a", "1": "b"}}


def good():
    """Two nodes: a worker fails, then the second agent is killed as planned and replaced, then the job ends."""
    return Facts(
        nodes=2, min_nodes=1, max_restarts=3, detection=DETECTION, finish=50.0, over=60.0,
        agents=[agent("a", "node0", 0, 51, 0), agent("b", "node1", 0, 20, 137), agent("c", "node1", 21, 51, 0)],
        signals=[{"agent": "b", "signal": signal.SIGKILL, "at": 19.9}],
        troubles=[{"host": "node1", "kind": "agent kill", "at": 19.9, "until": 19.9}],
        workers=[worker("a", "node0", 0, 0, 1, 10), worker("b", "node1", 1, 0, 1, 10),
                 worker("a", "node0", 0, 1, 11, 21, restarts=1), worker("b", "node1", 1, 1, 11, 20.1, restarts=1),
                 worker("a", "node0", 0, 2, 22, 50.5, restarts=1), worker("c", "node1", 1, 2, 22, 50.5, restarts=1)],
        steps=[step(1, 5), step(2, 15), step(3, 50.2, final=True)])


def replaced():
    """The c10d store's host is killed as planned while node1 is cut off: node1 stays in the old round 1 for a while.

    The new store has not heard of it, and so there is a second worker of round 1 and rank 1 meanwhile.
    """
    facts = Facts(
        nodes=3, min_nodes=2, max_restarts=3, detection=DETECTION, finish=90.0, over=100.0,
        agents=[agent("a", "node0", 0, 20, 137), agent("b", "node1", 0, 38, 1), agent("c", "node2", 0, 20.5, 1),
                agent("d", "node0", 21, 91, 0), agent("e", "node2", 21, 91, 0)],
        signals=[{"agent": "a", "signal": signal.SIGKILL, "at": 19.9}],
        troubles=[{"host": "node1", "kind": "link cut", "at": 18, "until": 36},
                  {"host": "node0", "kind": "agent kill", "at": 19.9, "until": 19.9}],
        workers=[worker("a", "node0", 0, 1, 1, 20.1, world=3), worker("b", "node1", 1, 1, 1, 38.1, world=3),
                 worker("c", "node2", 2, 1, 1, 20.4, world=3),
                 worker("d", "node0", 0, 0, 23, 24, master="node0:2"),
                 worker("e", "node2", 1, 0, 23, 24, master="node0:2"),
                 worker("d", "node0", 0, 1, 25, 90.5, master="node0:2", restarts=1),
                 worker("e", "node2", 1, 1, 25, 90.5, master="node0:2", restarts=1, beside=["round_1.rank_1.b"])],
        steps=[step(1, 30), step(2, 90.2, final=True)])
    return facts


def test_a_good_record_is_good():
    assert judge(good()) == []


def test_a_replaced_store_begins_a_new_generation():
    assert judge(replaced()) == []


def test_a_new_store_may_get_the_port_of_an_old_one():
    facts = replaced()
    for worker in facts.workers[3:]:
        worker["master"] = "node0:1"
    facts.workers[0]["round"] = facts.workers[1]["round"] = facts.workers[2]["round"] = 0
    assert judge(facts) == []


def ends(name, rc, at=None):
    def plant(facts):
        of = next(agent for agent in facts.agents if agent["agent"] == name)
        of.update(rc=rc, ended=at if at is not None else of["ended"])
    return plant


def says(place, **changes):
    return lambda facts: facts.workers[place].update(changes)


# The planted fault, and the words that report it. The ends of agents:
@pytest.mark.parametrize("rc, words", [(139, "(SIGSEGV)"), (134, "(SIGABRT)"), (-11, "(SIGSEGV)"), (-6, "(SIGABRT)"),
                                      (2, "ended with 2 at"), (143, "(SIGTERM)")])
def test_an_agent_that_dies_of_what_nobody_planned(rc, words):
    for who in ("b", "c"):  # also where a planned kill was on its way
        facts = good()
        ends(who, rc)(facts)
        (line,) = judge(facts)
        assert "nobody planned that" in line and words in line


def test_a_kill_is_planned_only_where_this_run_sent_it_just_then():
    facts = good()
    facts.signals.clear()
    assert ["but not by this run" in line for line in judge(facts)] == [True]
    for at in (5.0, 21.0):  # long before, and after
        facts = good()
        facts.signals[0]["at"] = at
        assert ["but not by this run" in line for line in judge(facts)] == [True]
    facts = good()
    facts.signals[0]["agent"] = "a"
    assert ["but not by this run" in line for line in judge(facts)] == [True]


def test_giving_up_needs_a_reason():
    facts = good()
    ends("c", 1, 49)(facts)
    assert judge(facts)[0].endswith("for no reason: nothing was done to it or to the rendezvous")
    facts.troubles.append({"host": "node0", "kind": "agent stop", "at": 30, "until": 33})
    assert not any("gave up" in line for line in judge(facts))


def test_success_before_the_end():
    facts = good()
    ends("b", 0)(facts)
    assert ["long before the job did" in line for line in judge(facts)] == [True]


BUGS = [
    (good, "the restart count went back: 1 in round 1, 0 in round 2",
     lambda facts: [facts.workers[n].update(restarts=0) for n in (4, 5)]),
    (good, "several restart counts in round 2: [1, 2]", says(5, restarts=2)),
    (good, "restart 4 in round 2, but --max-restarts is 3",
     lambda facts: [facts.workers[n].update(restarts=4) for n in (4, 5)]),
    (good, "a rank was given twice", says(5, rank=0)),
    (good, "rank 2 of 2", says(5, rank=2)),
    (good, "several world sizes", says(5, world=3)),
    (good, "an agent went back in rounds",
     lambda facts: [facts.workers[n].update(round=1, master="node0:9") for n in (4, 5)]),
    (good, "left behind: round_2.rank_1.c", says(5, gone=None)),
    (good, "left behind: round_1.rank_1.b", says(3, gone=30)),
    (good, "two alive with the same round and rank", says(5, beside=["round_1.rank_0.a"])),
    (good, "steps are missing: [2]", lambda facts: facts.steps.pop(1)),
    (good, "steps are there twice: [2]", lambda facts: facts.steps.insert(1, step(2, 14))),
    (good, "a step committed twice", lambda facts: facts.violations.append({"what": "a step committed twice"})),
    (good, "out of order", lambda facts: facts.steps[1].update(at=4)),
    (good, "not done by all", lambda facts: facts.steps[1].update(world=3)),
    (good, "final", lambda facts: facts.steps[2].update(final=False)),
    # A split brain: half of a rendezvous makes its own rounds.
    (good, "two alive with the same round and rank", lambda facts: facts.workers.append(
        worker("b", "node1", 0, 2, 23, 24, master="node1:7", world=1, restarts=1, beside=["round_2.rank_0.a"]))),
    (replaced, "two jobs at once: generation 1 began", lambda facts: facts.agents.pop(3)),
    (replaced, "of generation 0 lived until 49.00; generation 1 began at 23.00, and it had to notice by 48.00",
     lambda facts: (
        facts.workers[1].update(gone=49), ends("b", 1, 48.5)(facts))),
    (replaced, "two alive with the same round and rank", says(6, beside=["round_1.rank_0.d"])),
    (replaced, "the restart count went back", lambda facts: [facts.workers[n].update(restarts=2) for n in (3, 4)]),
]


@pytest.mark.parametrize("record, what, plant", BUGS, ids=[what for _, what, _ in BUGS])
def test_a_planted_bug_is_seen(record, what, plant):
    facts = record()
    plant(facts)
    assert [what in line for line in judge(facts)] == [True], judge(facts)


def test_a_stopped_agent_notices_nothing():
    facts = replaced()
    facts.workers[1]["gone"] = 60.0
    ends("b", 1, 60)(facts)
    facts.troubles.append({"host": "node1", "kind": "agent stop", "at": 37, "until": 55})
    assert judge(facts) == []
