"""Rules for a chaos run: pure functions over its record, without processes, clocks or files.

Records are dicts as chaos.py and toy_training.py write them. "at", "until", "gone" and "ended" are times of the
monotonic clock, which all hosts share.

A generation is the life of one rendezvous. The state of c10d ends with the agent of the hosting node, and a new
rendezvous counts rounds from 0 again. Agents that ever met in a round belong to one generation, so an agent unknown
to the new state stays in the old generation. c10d cannot avoid this: a node that is cut off from a dying store sees
neither its end nor its successor, only a silent connection. The node must stop its workers once TCP gives up the
connection.
"""
import dataclasses
import signal
from itertools import combinations

SLACK = 5.0  # for stopping workers, and for a busy machine
KILL = {-signal.SIGKILL, 128 + signal.SIGKILL}  # the guardian was killed too, or reports the kill


@dataclasses.dataclass
class Facts:
    hosting: str = "node0"  # where the rendezvous lives
    nodes: int = 8
    min_nodes: int = 4
    max_restarts: int = 0
    detection: float = 20.0  # how long a node may take to notice that the rendezvous is gone
    finish: float | None = None  # when the training was told to end
    over: float = 0.0  # the last look
    agents: list = dataclasses.field(default_factory=list)  # agent, host, at, ended, rc
    signals: list = dataclasses.field(default_factory=list)  # agent, signal, at: all that the run itself sent to agents
    troubles: list = dataclasses.field(default_factory=list)  # host, kind, at, until
    workers: list = dataclasses.field(default_factory=list)  # each worker's record of its start, and "gone"
    steps: list = dataclasses.field(default_factory=list)
    violations: list = dataclasses.field(default_factory=list)  # what workers found


# --- the ends of agents

def agents_that_ended(facts):
    for agent in facts.agents:
        rc, at = agent["rc"], agent["ended"]
        who = f"the agent on {agent['host']}"
        if rc is None:
            continue
        if rc == 0:
            if facts.finish is None or at < facts.finish:
                yield f"{who} ended with success at {at:.2f}, long before the job did"
        elif rc in KILL:
            if not any(sent["agent"] == agent["agent"] and sent["signal"] == signal.SIGKILL and
                       sent["at"] <= at <= sent["at"] + SLACK for sent in facts.signals):
                yield f"{who} was killed ({rc}) at {at:.2f}, but not by this run"
        elif rc == 1:
            if not may_give_up(facts, agent):
                yield f"{who} gave up (1) at {at:.2f} for no reason: nothing was done to it or to the rendezvous"
        else:
            yield f"{who} ended with {rc}{name_of(rc)} at {at:.2f}: nobody planned that"


def name_of(rc):
    try:
        return f" ({signal.Signals(-rc if rc < 0 else rc - 128).name})"
    except ValueError:
        return ""


def may_give_up(facts, agent):
    """Returns whether the agent may give up: shortly before, its host or the rendezvous had trouble, or too few hosts
    were left."""
    since = agent["ended"] - facts.detection - SLACK
    troubled = {trouble["host"] for trouble in facts.troubles
                if trouble["at"] <= agent["ended"] and trouble["until"] >= since}
    ended = {other["host"] for other in facts.agents
             if other["rc"] is not None and other is not agent and since <= other["ended"] <= agent["ended"]}
    return (agent["host"] in troubled or facts.hosting in troubled | ended or
            len(troubled | ended) > facts.nodes - facts.min_nodes)


# --- rounds, ranks, restarts

def meetings(facts):
    """Returns the workers by round and store. A store lives in the agent of its rank 0, and a later store may get the
    same port."""
    began = {agent["agent"]: agent["at"] for agent in facts.agents}
    hosting = {}  # address -> when the agents whose store it was began
    for worker in facts.workers:
        if worker["rank"] == 0 and worker["agent"] in began:
            hosting.setdefault(worker["master"], set()).add(began[worker["agent"]])
    found = {}
    for worker in facts.workers:
        store = sum(at <= worker["at"] for at in hosting.get(worker["master"], ()))
        found.setdefault((worker["round"], worker["master"], store), []).append(worker)
    return dict(sorted(found.items()))


def generations(facts):
    """Returns agent -> generation, numbered from 0 in the order of their first workers."""
    root = {}

    def find(name):
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for workers in meetings(facts).values():
        for worker in workers:
            root[find(worker["agent"])] = find(workers[0]["agent"])
    numbers = {}
    for worker in sorted(facts.workers, key=lambda worker: worker["at"]):
        numbers.setdefault(find(worker["agent"]), len(numbers))
    return {worker["agent"]: numbers[find(worker["agent"])] for worker in facts.workers}


def named(worker):
    return f"{worker['life']} of {worker['host']} at {worker['at']:.2f}"


def rounds_of_an_agent(facts):
    last = {}
    for worker in sorted(facts.workers, key=lambda worker: worker["at"]):
        before = last.get(worker["agent"])
        if before is not None and worker["round"] <= before["round"]:
            yield f"an agent went back in rounds: {named(before)}, then {named(worker)}"
        last[worker["agent"]] = worker


def ranks_of_a_round(facts):
    for workers in meetings(facts).values():
        where = f"in round {workers[0]['round']} at {workers[0]['master']}"
        if len(worlds := {worker["world"] for worker in workers}) > 1:
            yield f"several world sizes {where}: {sorted(worlds)}"
        ranks = sorted(worker["rank"] for worker in workers)
        if len(set(ranks)) < len(ranks):
            yield f"a rank was given twice {where}: {ranks}"
        if ranks[-1] >= workers[0]["world"]:
            yield f"rank {ranks[-1]} of {workers[0]['world']} {where}"


def restart_counts(facts):
    of = generations(facts)
    last = {}  # by generation
    for (number, *_), workers in meetings(facts).items():
        counts = sorted({worker["restarts"] for worker in workers})
        if counts[-1] > facts.max_restarts:
            yield f"restart {counts[-1]} in round {number}, but --max-restarts is {facts.max_restarts}"
        if len(counts) > 1:
            yield f"several restart counts in round {number}: {counts}"
            continue
        before = last.get(of[workers[0]["agent"]])
        if before is not None and counts[0] < before["restarts"]:
            yield (f"the restart count went back: {before['restarts']} in round {before['round']}, "
                   f"{counts[0]} in round {number}")
        last[of[workers[0]["agent"]]] = workers[0]


# --- who lives when

def alive_twice(facts):
    of = generations(facts)
    by_life = {worker["life"]: worker for worker in facts.workers}
    for worker in facts.workers:
        for other in worker["beside"]:
            # A worker that was killed before it wrote its record has no known generation.
            if other in by_life and of[by_life[other]["agent"]] == of[worker["agent"]]:
                yield f"two alive with the same round and rank: {named(worker)}, {named(by_life[other])}"


def generations_at_once(facts):
    """An old generation ends with its store. Nodes that cannot see this end within the time of detection."""
    of = generations(facts)
    members = {}
    for worker in sorted(facts.workers, key=lambda worker: worker["at"]):
        members.setdefault(of[worker["agent"]], []).append(worker)
    for (old, older), (new, newer) in combinations(sorted(members.items()), 2):
        began = newer[0]["at"]
        left = [worker for worker in older if gone(facts, worker) > began]
        if left and not any(agent["host"] == facts.hosting and older[0]["at"] < agent["at"] <= began
                            for agent in facts.agents):
            yield (f"two jobs at once: generation {new} began at {began:.2f} beside generation {old}, "
                   "whose host was not replaced")
        for worker in left:
            limit = patience(facts, worker["host"], began)
            if gone(facts, worker) > limit:
                yield (f"{named(worker)} of generation {old} lived until {gone(facts, worker):.2f}; generation {new} "
                       f"began at {began:.2f}, and it had to notice by {limit:.2f}")


def gone(facts, worker):
    return facts.over if worker["gone"] is None else worker["gone"]


def patience(facts, host, since):
    """Returns when a host must have noticed. The time in which its agent was stopped does not count."""
    limit = since + facts.detection + SLACK
    for trouble in sorted(facts.troubles, key=lambda trouble: trouble["at"]):
        stopped = trouble["host"] == host and trouble["kind"] == "agent stop"
        if stopped and trouble["until"] > since and trouble["at"] < limit:
            limit = max(limit, trouble["until"] + facts.detection + SLACK)
    return limit


def workers_left_behind(facts):
    ends = {agent["agent"]: agent["ended"] for agent in facts.agents if agent["rc"] is not None}
    for worker in facts.workers:
        if worker["agent"] in ends and gone(facts, worker) > ends[worker["agent"]] + SLACK:
            yield f"left behind: {named(worker)}, its agent ended at {ends[worker['agent']]:.2f}"


# --- what was done

def steps_done(facts):
    steps = sorted(facts.steps, key=lambda step: step["step"])
    numbers = [step["step"] for step in steps]
    if missing := sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers)):
        yield f"steps are missing: {missing}"
    if twice := sorted({before for before, after in zip(numbers, numbers[1:]) if before == after}):
        yield f"steps are there twice: {twice}"
    for before, after in zip(steps, steps[1:]):
        if before["at"] >= after["at"]:
            yield f"out of order: {before} {after}"
    for step in steps:
        if sorted(map(int, step["done_by"])) != list(range(step["world"])):
            yield f"not done by all: {step}"
    if [step["step"] for step in steps if step["final"]] != numbers[-1:]:
        yield "the last step, and it alone, should be final"


# OF_WORKERS: the rules that need no records of agents.
OF_WORKERS = (rounds_of_an_agent, ranks_of_a_round, restart_counts, alive_twice, steps_done)
RULES = (agents_that_ended, *OF_WORKERS, generations_at_once, workers_left_behind)


def judge(facts, rules=RULES):
    """Returns a line for each broken rule."""
    return [*map(str, facts.violations), *(line for rule in rules for line in rule(facts))]
