#!/usr/bin/python3
"""A node of a Slurm step loses power: three hosts in network namespaces (tests/integration/hosts.py), two train and one
is a spare. The victim is cut off the network and all that runs on it is killed, so that nobody sees a connection end;
how long until the survivor notices (its workers are told to stop) and until both nodes of the next round have started
their workers. Half of the draws take the first host, which holds the rendezvous. Prints markdown.

  power_cut.py [DRAWS]"""
import pathlib
import re
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import harness  # noqa: E402
import hosts as several_hosts  # noqa: E402
from test_succession import step  # noqa: E402

WORKER = 'echo "START $(date +%s.%N)"; exec sleep 1000'
NOTICED = re.compile(r"^W\d{4} (\d\d):(\d\d):([\d.]+) .*stopping the workers of this node", re.M)


def starts(run):
    return [float(line.split()[1]) for line in run.out().splitlines() if line.startswith("START ")]


def noticed(run):
    """The time of day, in seconds, at which this agent stopped its workers."""
    found = NOTICED.search(run.err())
    return found and int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3])


def once(victim):
    with tempfile.TemporaryDirectory() as folder:
        lockstep = harness.Lockstep(pathlib.Path(folder))
        hosts = several_hosts.Hosts(lockstep)
        try:
            nodes = hosts(3)
            runs = {}
            for node in nodes:
                if node is nodes[2]:
                    harness.until(lambda: starts(runs[nodes[0]]) and starts(runs[nodes[1]]), 60, "two train")
                env = {name: str(value) for name, value in step(node.number, 3).items()}
                runs[node] = node.start("--spares", 1, "--no-python", "/bin/sh", "-c", WORKER, env=env)
            harness.until(lambda: "this one is a spare" in runs[nodes[2]].err(), 20, "the third waits")
            time.sleep(0.1 * (once.draw % 5))  # anywhere within a heartbeat
            cut = time.time()
            nodes[victim].vanish()
            (survivor,) = {nodes[0], nodes[1]} - {nodes[victim]}
            again = harness.until(lambda: len(starts(runs[survivor])) > 1 and starts(runs[nodes[2]])
                                  and (starts(runs[survivor])[1], starts(runs[nodes[2]])[0]), 60, "two train again")
            local = time.localtime(cut)
            day = local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec + cut % 1
            return noticed(runs[survivor]) - day, max(again) - cut
        finally:
            hosts.close()
            lockstep.close()


def main():
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("| node loses power, 2 nodes and a spare in a Slurm step | noticed: median | worst | goal "
          "| all workers started again: median | worst | goal |\n|---|---|---|---|---|---|---|")
    for victim, what in ((0, "the first node, which hosts the rendezvous"), (1, "the second node")):
        times = []
        for once.draw in range((draws + 1) // 2):
            times.append(once(victim))
        seen, again = zip(*times)
        print(f"| {what} | {statistics.median(seen):.2f} s | {max(seen):.2f} s of {len(times)} | 3 s "
              f"| {statistics.median(again):.2f} s | {max(again):.2f} s | 6 s |", flush=True)
    print()


main()
