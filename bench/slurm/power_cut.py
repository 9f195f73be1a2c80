#!/usr/bin/python3
"""A node of a job on real Slurm loses power (tests/integration/slurm_cluster.py): two nodes train, one is a spare. How
long until the node that is left notices (its workers are told to stop) and until both ranks run again on it and the
spare. Half of the draws take the first node, where the batch script and srun die too. Prints markdown.

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
from slurm_cluster import SlurmCluster  # noqa: E402

NOTICED = re.compile(r"^W\d{4} (\d\d):(\d\d):([\d.]+) .*stopping the workers of this node", re.M)


def second_of_day(moment):
    local = time.localtime(moment)
    return local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec + moment % 1


def once(cluster, folder, victim, draw):
    """Seconds until it is noticed, and until both ranks run again."""
    folder.mkdir()
    worker = f'echo "$(hostname) $(date +%s.%N)" >> {folder}/starts; while [ ! -e {folder}/go ]; do sleep 0.2; done'
    running = cluster.start("submit", "--follow", "-N2", "--spare", "1", "-t10", "--env=LOGLEVEL=INFO", "--",
                            "--no-python",
                            "/bin/sh", "-c", worker)

    def starts():
        path = folder / "starts"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    harness.until(lambda: len(starts()) == 2 and "this one is a spare" in running.out(), 90, "two train, one waits")
    first = cluster.job(re.search(r"job (\d+)\n", running.out())[1])["BatchHost"]
    # The first node always trains here: its agent is told first that it hosts the rendezvous.
    names = {name for name, _ in starts()}
    name = first if victim == 0 else min(names - {first})
    time.sleep(0.1 * (draw % 5))  # anywhere within a heartbeat
    cut = time.time()
    cluster.power_cut(next(node for node in cluster.nodes if node.name == name))
    trained = name in names
    again = harness.until(lambda: len(starts()) == 4 and starts()[2:], 90, "two train again") if trained else []
    seen = harness.until(lambda: NOTICED.search(running.out()), 60, "what was noticed is said") if trained else None
    (folder / "go").touch()
    ended = running.wait(120)
    assert ended.rc == 0, ended
    if not trained:
        return None
    noticed = int(seen[1]) * 3600 + int(seen[2]) * 60 + float(seen[3]) - second_of_day(cut)
    return noticed, max(float(at) for _, at in again) - cut


def main():
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("| node of a job on Slurm 22.05 loses power, 2 nodes and a spare | noticed: median | worst | goal "
          "| both ranks run again: median | worst | goal |\n|---|---|---|---|---|---|---|")
    every = []
    for victim, what in ((0, "the first node, where the script runs"), (1, "another one")):
        times = []
        while len(times) < (draws + 1) // 2:
            with tempfile.TemporaryDirectory() as folder:
                lockstep = harness.Lockstep(pathlib.Path(folder))
                hosts = several_hosts.Hosts(lockstep)
                cluster = SlurmCluster(hosts, 3)
                try:
                    measured = once(cluster, cluster.work / "draw", victim, len(times))
                    times += [measured] if measured else []
                finally:
                    cluster.close()
                    hosts.close()
                    lockstep.close()
        every += times
        print(row(what, times), flush=True)
    print(row("all", every) + "\n")


def row(what, times):
    seen, again = zip(*times)
    return (f"| {what} | {statistics.median(seen):.2f} s | {max(seen):.2f} s of {len(times)} | 3 s "
            f"| {statistics.median(again):.2f} s | {max(again):.2f} s | 6 s |")


main()
