"""Chaos: a toy training on several hosts under random faults.

    chaos.py [--seed 1] [--faults 200] [--hosts 8] [--min-nodes 4] [--backend lockstep] [--longest-cut 20] [...]

Faults come at random: a worker killed, an agent killed (alone, or with its guardian), an agent stopped for a while,
a host's link cut for a while. Meanwhile a scheduler starts a new agent a little later wherever an agent has ended
without success. The plan is a function of the seed alone. At the end the training is told to finish, all agents must
end with success, and no process may be left on any host. Everything is recorded, and chaos_oracle.py judges the record.
"""
import argparse
import dataclasses
import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import uuid

import chaos_oracle
from harness import SCRIPTS, Lockstep, until
from hosts import Hosts

KINDS = ("worker kill", "agent kill", "agent stop", "link cut")
# Settings of a user who wants faults noticed within seconds.
CONF = dict.fromkeys(["c10d", "lockstep"], "keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=1")
CONF["static"] = "keep_alive_interval=1,keep_alive_max_attempt=3"
# Seconds until a node notices by itself that the rendezvous is gone (docs/protocols). c10d: TCP's own probes of the
# store. lockstep: three silent heartbeats, then three seconds of refused connections.
DETECTION = {"lockstep": 6.0}
DETECTION_BY_TCP = 20.0
MAX_RESTARTS = 100000
STUCK = 60.0


class Stuck(Exception):
    pass


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # the process has just ended


@dataclasses.dataclass
class Fault:
    pause: float  # s after the fault before it
    kind: str
    host: int
    seconds: float  # duration, for a stop or a cut
    both: bool  # agent kill: the guardian too

    def __str__(self):
        lasting = f" for {self.seconds:.1f} s" if self.kind in ("agent stop", "link cut") else ""
        guardian = " with guardian" if self.kind == "agent kill" and self.both else ""
        return f"{self.kind}{guardian} on node{self.host}{lasting}"


def make_plan(seed, faults, hosts, longest_cut):
    chance = random.Random(seed)
    return [Fault(pause=chance.uniform(0, 2), kind=chance.choice(KINDS), host=chance.randrange(hosts),
                  seconds=chance.uniform(1, longest_cut), both=chance.random() < 0.5) for _ in range(faults)]


class Training:
    """The job's folder (toy_training.py)."""

    def __init__(self, folder):
        self.folder = folder
        self.gone = {}  # life -> when it was first seen to be over
        for name in ("steps", "drafts", "lives"):
            (folder / name).mkdir(parents=True)

    def last(self):
        return max((int(entry.name) for entry in os.scandir(self.folder / "steps")), default=0)

    def lines(self, name):
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def finish(self):
        (self.folder / "finish").touch()

    def step(self, number):
        return json.loads((self.folder / f"steps/{number}").read_text())

    def steps(self):
        found = [self.step(entry.name) for entry in os.scandir(self.folder / "steps")]
        return sorted(found, key=lambda step: step["step"])

    def workers(self):
        """Returns each worker's record of its start, and "gone": when look_for_the_dead() saw its end."""
        return [{**line, "gone": self.gone.get(line["life"])} for line in self.lines("events")
                if line["what"] == "start"]

    def broken_rules(self):
        """Judges a job by the records of its workers alone."""
        self.look_for_the_dead(time.monotonic())
        facts = chaos_oracle.Facts(max_restarts=MAX_RESTARTS, workers=self.workers(), steps=self.steps(),
                                   violations=self.lines("violations"))
        return chaos_oracle.judge(facts, chaos_oracle.OF_WORKERS)

    def look_for_the_dead(self, now):
        for entry in os.scandir(self.folder / "lives"):
            if entry.name in self.gone:
                continue
            with open(entry.path) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    self.gone[entry.name] = now
                except BlockingIOError:
                    pass  # it lives


class TrainingJob:
    """The toy training on several hosts. Its record says which hosts did each step. `runs`: host -> its agent."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.training = Training(hosts.lockstep.folder / "training")
        self.runs = {}

    def goes_on_with(self, *hosts, deadline=30.0):
        """Waits for a new step that exactly these hosts have done, and returns the step."""
        names, known = {host.name for host in hosts}, self.training.last()

        def look():
            steps = [step for step in self.training.steps() if step["step"] > known]
            return next((step for step in steps if set(step["done_by"].values()) == names), None)
        try:
            return until(look, deadline, f"a step done by {sorted(names)}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.words()}") from None

    def words(self):
        return "\n".join(f"--- {host} ({run.process.poll()})\n{run.err()[-3000:]}" for host, run in self.runs.items())

    def ends_well(self, *hosts):
        self.training.finish()
        for host in hosts:
            ended = self.runs[host].wait(30)
            assert ended.rc == 0, f"{host}: {ended}"
        assert self.training.broken_rules() == []
        self.hosts.none_left()


class Node:
    """A host as its scheduler sees it: the agent that must run there, and the current fault."""

    def __init__(self, host, start):
        self.host = host
        self.start = start
        self.run = start(host)
        self.again_at = None
        self.said = ""
        self.succeeded = False
        self.trouble_ends = 0.0

    def agent(self):
        """The agent's pid and its guardian's (the same without a guardian); None while there is no agent."""
        if self.again_at is not None or self.run.process.poll() is not None:
            return None
        found = self.host.processes()
        for pid, comm in found.items():
            if comm == "lockstep-agent":
                return pid, self.run.pid
        return None

    def workers(self):
        found = []
        for pid in self.host.processes():
            try:
                argv = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            before, script, _ = argv.partition(b"toy_training.py")
            if script and b"python3\0" in before and b"--nnodes" not in argv:
                found.append(pid)
        return sorted(found)


class Chaos:
    def __init__(self, hosts, *, seed, faults, count=8, min_nodes=4, backend="lockstep", longest_cut=20.0, step_ms=20,
                 conf=None, say=print):
        self.say_to = say
        self.seed, self.faults, self.backend, self.step_ms = seed, faults, backend, step_ms
        self.conf = conf if conf is not None else CONF.get(backend, "")
        self.min_nodes = min_nodes
        self.plan = make_plan(seed, faults, count, longest_cut)
        self.chance = random.Random(seed + 1)  # the scheduler's
        self.hosts = hosts
        self.training = Training(hosts.lockstep.folder / "training")
        self.began = time.monotonic()
        self.ends = []  # (when, what is said, what is done): heals and thaws
        self.wrong = []
        self.facts = chaos_oracle.Facts(nodes=count, min_nodes=min_nodes, max_restarts=MAX_RESTARTS,
                                        detection=DETECTION.get(backend, DETECTION_BY_TCP))
        self.nodes = [Node(host, self.start) for host in hosts(count)]
        self.look_at = 0.0
        self.step, self.step_at, self.longest = 0, time.monotonic(), (0.0, 0)
        self.starts = count

    def say(self, text):
        self.say_to(f"{time.monotonic() - self.began:7.2f} s  step {self.step:5d}  {text}", flush=True)

    def start(self, host, **env):
        token = uuid.uuid4().hex
        self.facts.agents.append({"agent": f"err.{token}", "host": host.name, "at": time.monotonic(), "ended": None,
                                  "rc": None})
        return host.start("--nnodes", f"{self.min_nodes}:{len(self.hosts.all)}", "--nproc-per-node", 1,
                          "--max-restarts",
                          MAX_RESTARTS, "--restart-backoff", 0, "--rdzv-backend", self.backend, "--rdzv-endpoint",
                          "node0:29400", "--rdzv-id", f"chaos-{self.seed}", "--rdzv-conf", self.conf,
                          SCRIPTS / "toy_training.py", self.training.folder, self.step_ms, token=token,
                          env={"TOY_AGENT_LOG": host.folder / f"err.{token}", "LOGLEVEL": "INFO", **env})

    # --- every turn

    def tick(self):
        now = time.monotonic()
        for end in [end for end in self.ends if end[0] <= now]:
            self.ends.remove(end)
            self.say(end[1])
            end[2]()
        for node in self.nodes:
            self.schedule(node, now)
        if now >= self.look_at:
            self.training.look_for_the_dead(now)
            self.look_at = now + 0.1
        last = self.training.last()
        if last != self.step:
            self.longest = max(self.longest, (now - self.step_at, last))
            self.step, self.step_at = last, now
        if now - self.step_at > STUCK and not self.finishing():
            raise Stuck(f"no step for {STUCK:.0f} s after step {self.step}")
        time.sleep(0.01)

    def schedule(self, node, now):
        if node.again_at is not None:
            if now >= node.again_at:
                node.again_at = None
                node.run = node.start(node.host)
                self.starts += 1
            return
        rc = node.run.process.poll()
        if rc is None:
            return
        record = self.record(node)
        if record["rc"] is None:
            record.update(ended=now, rc=rc)
        if rc == 0 and self.finishing():
            if not node.succeeded:
                self.say(f"     {node.host}: success")
            node.succeeded = True
            return
        last = [line for line in node.run.err().splitlines() if line.strip()][-1:]
        text = f"agent ended ({rc}): {' '.join(last)[:160]}"
        if text != node.said:
            node.said = text
            self.say(f"     {node.host}: {text}")
        node.again_at = now + self.chance.uniform(0.2, 1.0)

    def record(self, node):
        return next(agent for agent in reversed(self.facts.agents) if agent["agent"] == f"err.{node.run.token}")

    def finishing(self):
        return (self.training.folder / "finish").exists()

    def wait(self, fact, deadline, what):
        """Lets time pass until fact() is true."""
        end = time.monotonic() + deadline
        while not fact():
            if time.monotonic() > end:
                raise Stuck(f"{what}: not within {deadline:.0f} s")
            self.tick()

    def progress(self, what):
        before = self.step
        self.wait(lambda: self.step > before, STUCK, what)

    # --- faults

    def troubled(self, now):
        return [node for node in self.nodes if node.trouble_ends > now or node.agent() is None]

    def eligible(self, node, kind):
        now = time.monotonic()
        others = [other for other in self.troubled(now) if other is not node]
        return (node.trouble_ends <= now and node.agent() and len(others) < len(self.nodes) - self.min_nodes and
                (kind != "worker kill" or node.workers()))

    def inflict(self, number, fault):
        node = self.nodes[fault.host]
        self.wait(lambda: self.eligible(node, fault.kind), STUCK, f"fault {number}: {fault} is possible")
        agent, guardian = node.agent()
        now = time.monotonic()
        self.say(f"{number:3d}: {fault}")
        if fault.kind == "worker kill":
            for pid in node.workers()[:1]:
                send(pid, signal.SIGKILL)
        elif fault.kind == "agent kill":
            self.troubled_by(node, fault, now, now)
            self.facts.signals.append({"agent": self.record(node)["agent"], "signal": signal.SIGKILL, "at": now})
            for pid in (guardian, agent) if fault.both else (agent,):
                send(pid, signal.SIGKILL)
        elif fault.kind == "agent stop":
            send(agent, signal.SIGSTOP)
            self.troubled_by(node, fault, now, now + fault.seconds)
            self.ends.append((node.trouble_ends, f"     {node.host}: agent goes on",
                              lambda: send(agent, signal.SIGCONT)))
        else:
            node.host.cut()
            self.troubled_by(node, fault, now, now + fault.seconds)
            self.ends.append((node.trouble_ends, f"     {node.host}: link is back", node.host.heal))

    def troubled_by(self, node, fault, now, until):
        node.trouble_ends = until
        self.facts.troubles.append({"host": node.host.name, "kind": fault.kind, "at": now, "until": until})

    # --- the run

    def run(self):
        """Returns a line for each broken rule; empty: all is well."""
        self.say(f"seed {self.seed}: {self.faults} faults, {len(self.nodes)} hosts, backend {self.backend}, "
                 f"--nnodes {self.min_nodes}:{len(self.nodes)}")
        try:
            self.progress("the first step")
            for number, fault in enumerate(self.plan):
                pause_over = time.monotonic() + fault.pause
                self.wait(lambda: time.monotonic() >= pause_over, STUCK, "a pause")
                self.inflict(number, fault)
            self.wait(lambda: not self.ends, STUCK, "all faults are over")
            before = self.training.last()
            self.wait(lambda: self.all_at_work(before), STUCK, "a step done by all after the last fault")
            self.facts.finish = time.monotonic()
            self.training.finish()
            self.say("finish")
            self.wait(self.all_succeeded, STUCK, "success everywhere")
        except Stuck as error:
            self.wrong.append(str(error))
        try:
            self.hosts.none_left()
        except AssertionError as error:
            self.wrong.append(str(error))
        self.wrong += chaos_oracle.judge(self.all_facts())
        rounds = {(step["round"], step["master"]) for step in self.training.steps()}
        self.say(f"{self.training.last()} steps in {len(rounds)} rounds, {self.starts} agents started, longest time "
                 f"without a step {self.longest[0]:.2f} s (before step {self.longest[1]}), "
                 f"{len(self.wrong)} things wrong")
        for line in self.wrong:
            self.say(f"WRONG {line}")
        return self.wrong

    def all_facts(self):
        now = time.monotonic()
        self.training.look_for_the_dead(now)
        return dataclasses.replace(self.facts, over=now, workers=self.training.workers(), steps=self.training.steps(),
                                   violations=self.training.lines("violations"))

    def all_at_work(self, before):
        """Returns whether all nodes are in the last round: a node outside would join a job that is over. before: the
        last step under faults."""
        if self.step <= before:
            return False
        last = self.training.step(self.step)
        return last["world"] == len(self.nodes) and all(node.agent() for node in self.nodes)

    def all_succeeded(self):
        return all(node.again_at is None and node.run.process.poll() == 0 for node in self.nodes)

    def logs(self):
        """Returns the logs of all agents, for a person who looks for the cause."""
        return "\n".join(f"--- {host}, agent {number}\n{run.err()}" for host in self.hosts.all
                         for number, run in enumerate(host.runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--min-nodes", type=int, default=4)
    parser.add_argument("--backend", default="lockstep")
    parser.add_argument("--longest-cut", type=float, default=20.0)
    parser.add_argument("--rdzv-conf", help="instead of what chaos.py sets")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    given = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="chaos-"))
    hosts = Hosts(Lockstep(folder))
    try:
        chaos = Chaos(hosts, seed=given.seed, faults=given.faults, count=given.hosts, min_nodes=given.min_nodes,
                      backend=given.backend, longest_cut=given.longest_cut, conf=given.rdzv_conf)
        wrong = chaos.run()
        (folder / "agents.log").write_text(chaos.logs())
        (folder / "facts.json").write_text(json.dumps(dataclasses.asdict(chaos.all_facts())))
    finally:
        hosts.close()
        hosts.lockstep.close()
    if given.keep or wrong:
        print(f"logs: {folder}/agents.log")
    else:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
