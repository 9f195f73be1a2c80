#!/usr/bin/python3
"""What looks at a job cost: the workers' steps, the agent's CPU and memory, and the answers of `lockstep why`. Prints
markdown; `./dev bench` collects it.

The workers' figure comes from one job: windows with an agent that looks, and in turn windows with a stopped agent.
"""
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/integration"))
from harness import BINARY, Lockstep, until  # noqa: E402

RANKS = 8
WINDOWS = 20  # pairs
WINDOW = 2
CPU_WINDOW = 20
LOADERS = 4
THREADS = 64

# Each rank counts its steps in a file of 8 bytes. A step is some hundred calls of Python.
STEPS = """import mmap, os, struct, sys
path = os.path.join(sys.argv[1], os.environ["RANK"])
with open(path, "wb") as file:
    file.write(bytes(8))
file = open(path, "r+b")
count = mmap.mmap(file.fileno(), 8)
step = 0
def inner(n):
    return n + 1
while True:
    for _ in range(500):
        step = inner(step)
    count[:] = struct.pack("<q", step // 500)
"""

# Ranks with loaders and threads, as a training has them, which mostly sleep.
IDLE = f"""import os, threading, time
for _ in range({LOADERS}):
    if os.fork() == 0:
        while True:
            time.sleep(0.05)
for _ in range({THREADS}):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
def step():
    time.sleep(0.02)
while True:
    step()
"""


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share_of_core(pid):
    begun, before = time.monotonic(), cpu_seconds(pid)
    time.sleep(CPU_WINDOW)
    return (cpu_seconds(pid) - before) / (time.monotonic() - begun) * 100


def memory_mb(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def steps_of(folder):
    return sum(int.from_bytes((folder / str(rank)).read_bytes(), "little") for rank in range(RANKS))


def rate(folder):
    begun, before = time.monotonic(), steps_of(folder)
    time.sleep(WINDOW)
    return (steps_of(folder) - before) / (time.monotonic() - begun)


def steps_ratio(folder):
    """Median of the ratios of neighbouring windows: watched to unwatched."""
    script, counts = folder / "steps.py", folder / "counts"
    script.write_text(STEPS)
    counts.mkdir()
    run = Lockstep(folder).start("--nproc-per-node", RANKS, "--hang-after", "off", script, counts)
    try:
        until(lambda: len(list(counts.iterdir())) == RANKS and steps_of(counts) > 1000, 60, "the ranks count")
        agent, ratios = run.agent(), []
        for _ in range(WINDOWS):
            watched = rate(counts)
            os.kill(agent, signal.SIGSTOP)
            alone = rate(counts)
            os.kill(agent, signal.SIGCONT)
            ratios.append(watched / alone)
    finally:
        run.kill()
    return statistics.median(ratios), min(ratios), max(ratios)


def why_ms(pid):
    times = []
    for _ in range(50):
        begun = time.perf_counter()
        subprocess.run([BINARY, "why", f"pid-{pid}"], capture_output=True, check=True)
        times.append((time.perf_counter() - begun) * 1000)
    return times[0], statistics.median(times[1:])


def costs(folder, ranks):
    script = folder / "idle.py"
    script.write_text(IDLE)
    run = Lockstep(folder).start("--nproc-per-node", ranks, "--hang-after", "off", script)
    try:
        time.sleep(5)
        agent = run.agent()
        return share_of_core(agent), memory_mb(agent), why_ms(run.pid)
    finally:
        run.kill()


def in_folder(measure, *args):
    with tempfile.TemporaryDirectory() as folder:
        return measure(pathlib.Path(folder), *args)


def main():
    median, least, most = in_folder(steps_ratio)
    cpu, memory, (first, warm) = in_folder(costs, RANKS)
    many, _, _ = in_folder(costs, 8 * RANKS)
    print(f"""| what | measured | beside it | ratio | goal |
|---|---|---|---|---|
| steps of {RANKS} ranks, looked at | {WINDOWS} windows in turn with a stopped agent | {least:.3f} to {most:.3f} | \
{median:.3f} | at least 0.99 |
| agent of {RANKS} ranks, each with {LOADERS} loaders and {THREADS} threads | {cpu:.2f} % of a core | \
{memory:.1f} MB PSS |  | at most 1 % |
| agent of {8 * RANKS} such ranks | {many:.2f} % of a core |  | {many / cpu:.1f} x | at most 6 x |
| `lockstep why` of {RANKS} ranks | {warm:.1f} ms | the first one {first:.1f} ms |  | at most 10 ms, first 100 ms |""")


if __name__ == "__main__":
    main()
