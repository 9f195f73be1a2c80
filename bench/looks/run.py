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
from harness import BINARY, Lockstep, free_port, until  # noqa: E402

RANKS = 8
WINDOWS = 20  # pairs
WINDOW = 2
CPU_WINDOW = 20
TRIES = 20
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


# The ranks tell the moment of SIGTERM. Nobody can read the stack of Perl.
PYTHON = """import os, signal, sys, time
def told(*_):
    with open(os.path.join(sys.argv[1], os.environ["RANK"]), "w") as file:
        file.write(repr(time.monotonic()))
    os._exit(0)
signal.signal(signal.SIGTERM, told)
open(os.path.join(sys.argv[1], "ready" + os.environ["RANK"]), "w").close()
def step():
    time.sleep(1000)
step()
"""
PERL = """use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);
$SIG{TERM} = sub { my $now = clock_gettime(CLOCK_MONOTONIC);
  open(my $file, '>', "$ARGV[0]/$ENV{RANK}"); printf $file "%.9f", $now; close $file; exit 0; };
open(my $ready, '>', "$ARGV[0]/ready$ENV{RANK}"); close $ready;
sleep 1000;
"""


def first_signal_ms(lockstep, folder, program):
    """From the death of a rank to the first SIGTERM of another one."""
    for old in folder.iterdir():
        old.unlink()
    run = lockstep.start("--nproc-per-node", RANKS, "--no-python", *program, folder)
    try:
        until(lambda: len(list(folder.glob("ready*"))) == RANKS, 60, "the ranks wait")
        agent = run.agent()
        victim = min(int(pid) for pid in pathlib.Path(f"/proc/{agent}/task/{agent}/children").read_text().split())
        begun = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        until(lambda: run.process.poll() is not None, 60, "the job ends")
        return (min(float(path.read_text()) for path in folder.iterdir() if path.name.isdigit()) - begun) * 1000
    finally:
        run.kill()


def first_signals_ms(folder):
    """With the evidence of Python's stacks, and in turn without any."""
    lockstep, counts, read, unread = Lockstep(folder), folder / "counts", [], []
    counts.mkdir()
    python, perl = folder / "told.py", folder / "told.pl"
    python.write_text(PYTHON)
    perl.write_text(PERL)
    for _ in range(TRIES):
        read.append(first_signal_ms(lockstep, counts, ["/usr/bin/python3", python]))
        unread.append(first_signal_ms(lockstep, counts, ["/usr/bin/perl", perl]))
    return statistics.median(read), statistics.median(unread)


def nodes_why_ms(folder):
    """Three nodes, of which one is asked about all ranks."""
    script = folder / "idle.py"
    script.write_text(IDLE)
    lockstep, runs = Lockstep(folder), []
    port = free_port()
    try:
        for _ in range(3):
            runs.append(lockstep.start("--nnodes", 3, "--nproc-per-node", RANKS, "--hang-after", "off",
                                       "--rdzv-backend", "lockstep", "--rdzv-endpoint", f"127.0.0.1:{port}",
                                       "--rdzv-id", "bench", script))
        ask = [BINARY, "why", f"pid-{runs[1].pid}"]
        until(lambda: f"{3 * RANKS} ranks" in subprocess.run(ask, capture_output=True, text=True).stdout, 60,
              "all nodes are known")
        return why_ms(runs[1].pid)[1]
    finally:
        for run in runs:
            run.kill()


def in_folder(measure, *args):
    with tempfile.TemporaryDirectory() as folder:
        return measure(pathlib.Path(folder), *args)


def main():
    median, least, most = in_folder(steps_ratio)
    cpu, memory, (first, warm) = in_folder(costs, RANKS)
    many, _, _ = in_folder(costs, 8 * RANKS)
    read, unread = in_folder(first_signals_ms)
    three = in_folder(nodes_why_ms)
    print(f"""| what | measured | beside it | ratio | goal |
|---|---|---|---|---|
| steps of {RANKS} ranks, looked at | {WINDOWS} windows in turn with a stopped agent | {least:.3f} to {most:.3f} | \
{median:.3f} | at least 0.99 |
| agent of {RANKS} ranks, each with {LOADERS} loaders and {THREADS} threads | {cpu:.2f} % of a core | \
{memory:.1f} MB PSS |  | at most 1 % |
| agent of {8 * RANKS} such ranks | {many:.2f} % of a core |  | {many / cpu:.1f} x | at most 6 x |
| `lockstep why` of {RANKS} ranks | {warm:.1f} ms | the first one {first:.1f} ms |  | at most 10 ms, first 100 ms |
| the same of three nodes, asked at one | {three:.1f} ms | one node {warm:.1f} ms | {three - warm:+.1f} ms | \
2 round trips more |
| a rank of {RANKS} is killed -> first signal to another, stacks read | {read:.2f} ms | \
nothing to read {unread:.2f} ms | {read - unread:+.2f} ms | at most 3 ms more |""")


if __name__ == "__main__":
    main()
