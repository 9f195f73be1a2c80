#!/usr/bin/python3
"""A node is lost: eight hosts in network namespaces (tests/integration/hosts.py), the agent and guardian of one killed
with SIGKILL; how long until the last survivor has started its worker in the next round. Prints markdown."""
import contextlib
import pathlib
import signal
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import harness  # noqa: E402
import hosts as several_hosts  # noqa: E402

WORKER = 'echo "START $WORLD_SIZE $(date +%s.%N)"; exec sleep 1000'
NODES = 8


def started(run, world):
    """When this host's worker of a world of that size started, or None."""
    for line in run.out().splitlines():
        if line.startswith(f"START {world} "):
            return float(line.split()[2])
    return None


def once(backend, victim):
    with tempfile.TemporaryDirectory() as folder:
        lockstep = harness.Lockstep(pathlib.Path(folder))
        hosts = several_hosts.Hosts(lockstep)
        try:
            nodes = hosts(NODES)
            endpoint = f"{nodes[0].addr}:29400"
            if backend == "etcd3":
                (keeper,) = hosts(1)
                urls = f"http://{keeper.addr}:2379"
                keeper.start("--data-dir", f"{folder}/etcd", "--listen-client-urls", "http://0.0.0.0:2379",
                             "--advertise-client-urls", urls, program=("/usr/bin/etcd",))
                endpoint = f"{keeper.addr}:2379"
            runs = []
            for node in nodes:
                runs.append(node.start("--nnodes", f"{NODES // 2}:{NODES}", "--rdzv-backend", backend,
                                       "--rdzv-id", "lost",
                                       "--rdzv-endpoint", endpoint, "--no-python", "/bin/sh", "-c", WORKER))
                if backend == "etcd3" and node is nodes[0]:  # node 0 shall lead
                    harness.until(lambda: "can join" in runs[0].err(), 20, "node 0 leads")
            for run in runs:
                harness.until(lambda run=run: started(run, NODES), 60, "all nodes run")
            agent = nodes[victim].agent()
            killed = time.time()
            for pid in (runs[victim].pid, agent):
                with contextlib.suppress(ProcessLookupError):  # one's end may already have ended the other
                    runs[victim].signal(signal.SIGKILL, pid)
            rest = [run for run in runs if run is not runs[victim]]
            times = [harness.until(lambda run=run: started(run, NODES - 1), 60, "survivors run") for run in rest]
            for run in rest:
                run.signal(signal.SIGTERM)
            for run in rest:
                run.wait(20)
            return max(times) - killed
        finally:
            hosts.close()
            lockstep.close()


def main():
    print("| agent killed, 8 hosts, survivors' workers started again | median | worst | goal |\n|---|---|---|---|")
    for backend, victim, what, goal in (("lockstep", 5, "lockstep", "1.5 s"), ("etcd3", 5, "etcd3", "5 s"),
                                        ("etcd3", 0, "etcd3, node 0, which leads", "5 s")):
        times = [once(backend, victim) for _ in range(3)]
        print(f"| {what} | {statistics.median(times):.2f} s | {max(times):.2f} s of {len(times)} | {goal} |",
              flush=True)
    print()


main()
