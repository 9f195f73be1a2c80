#!/usr/bin/python3
"""The agent itself: start to exit, memory, restart. Prints markdown; `./dev bench` collects it.

Every ratio comes from runs taken in turn on the same machine. torchrun is PyTorch 2.6's from the
peers folder (./dev peers), where there is one.
"""
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build/release"))
LOCKSTEP = str(BUILD / "lockstep")
# PyTorch 2.6's torchrun in its folder, patched to run without libuv (which Debian's build lacks).
PEER = ["env", "PEER_PROGRAM=/usr/bin/torchrun", f"PYTHONPATH={ROOT}/tests/support/torch-2.6", "OMP_NUM_THREADS=1",
        str(ROOT / "tests/support/python-trixie")]


def pairs(runs, a, b):
    """Median ms of a and of b, median ratio a/b."""
    out = subprocess.run([BUILD / "bench/bench_pairs", str(runs), "--", *a, "--", *b],
                         check=True, capture_output=True, text=True).stdout.split()
    return float(out[0]), float(out[1]), float(out[2])


def have_peer():
    return subprocess.run([*PEER, "--help"], capture_output=True).returncode == 0


def start_to_exit():
    ours = [LOCKSTEP, "run", "--nproc-per-node", "2", "--no-python", "/bin/true"]
    floor = [str(BUILD / "bench/bench_floor"), "2", "/bin/true"]
    a, b, ratio = pairs(200, ours, floor)
    rows = [("2 x /bin/true, start to exit", f"{a:.2f} ms", f"C floor {b:.2f} ms", f"{ratio:.2f} x the floor",
             "at most 2.2 x")]
    # On a disk that is told of freed blocks at once (discard), each removed directory waits for it.
    os.environ["TMPDIR"] = "/dev/shm"
    in_memory, there, ratio = pairs(200, ours, floor)
    del os.environ["TMPDIR"]
    rows.append(("the same with TMPDIR in memory", f"{in_memory:.2f} ms", f"C floor {there:.2f} ms",
                 f"{ratio:.2f} x the floor", "at most 2.2 x"))
    bare = [*ours[:2], "--isolation", "none", *ours[2:]]
    guarded, unguarded, _ = pairs(200, ours, bare)
    rows.append(("the same with --isolation auto", f"{guarded:.2f} ms", f"with none {unguarded:.2f} ms",
                 f"{guarded - unguarded:+.2f} ms", "at most 1 ms more"))
    if have_peer():
        theirs, _, _ = pairs(5, [*PEER, "--nproc-per-node", "2", "--no-python", "/bin/true"], floor)
        rows.append(("the same under torchrun 2.6", f"{theirs:.0f} ms", f"lockstep {a:.2f} ms",
                     f"{theirs / a:.0f} x slower", "at least 300 x"))
    return rows


def tree(pid):
    """pid and its launcher processes below it (the guardian's child), not the workers."""
    out = [pid]
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if pathlib.Path(f"/proc/{child}/comm").read_text().startswith("lockstep"):
            out += tree(int(child))
    return out


def memory_kb(pid):
    """PSS, which counts a shared page once for all who have it, and the anonymous part of it, which nobody
    can take back."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return [int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1)) for name in ("Pss", "Pss_Anon")]


def wait_for_lines(path, count, deadline=60):
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        if path.exists() and len(path.read_text().splitlines()) >= count:
            return [line.split() for line in path.read_text().splitlines()]
        time.sleep(0.002)
    raise SystemExit(f"{path}: fewer than {count} lines after {deadline} s")


def sleepers_below(pid):
    kids = [int(k) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for k in (task / "children").read_text().split()]
    own = pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "sleep"
    return own + sum(sleepers_below(k) for k in kids)


def memory_of(launcher, nproc, measure):
    """measure(pid of the launcher) while nproc workers sleep."""
    job = subprocess.Popen([*launcher, "--nproc-per-node", str(nproc), "--no-python", "/bin/sleep", "300"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while sleepers_below(job.pid) < nproc:
            time.sleep(0.01)
        return measure(job.pid)
    finally:
        job.send_signal(signal.SIGTERM)
        job.wait(60)


def memory():
    each = memory_of([LOCKSTEP, "run"], 8, lambda pid: [memory_kb(p) for p in tree(pid)])
    ours = sum(pss for pss, _ in each) / 1024
    anonymous = sum(part for _, part in each) / 1024
    rows = [("memory of agent and guardian, 8 workers running", f"{ours:.1f} MB PSS",
             f"{anonymous:.2f} MB of it anonymous", f"{len(each)} processes", "at most 4.6 MB")]
    if have_peer():
        theirs = memory_of(PEER, 8, lambda pid: memory_kb(pid)[0]) / 1024
        rows.append(("the same, torchrun 2.6", f"{theirs:.0f} MB PSS", "", f"{theirs / ours:.0f} x", ""))
    return rows


def restart():
    rounds, nproc = 40, 8

    def body(stamps):
        took = []
        for attempt in range(rounds):
            lines = wait_for_lines(stamps, nproc * (attempt + 1))
            victim = next(int(l[3]) for l in lines if l[0] == str(attempt) and l[1] == str(attempt % nproc))
            killed = time.monotonic_ns()
            os.kill(victim, signal.SIGKILL)
            lines = wait_for_lines(stamps, nproc * (attempt + 2))
            took.append((max(int(l[2]) for l in lines if l[0] == str(attempt + 1)) - killed) / 1e6)
        return took

    with tempfile.TemporaryDirectory() as folder:
        stamps = pathlib.Path(folder) / "stamps"
        job = subprocess.Popen([LOCKSTEP, "run", "--nproc-per-node", str(nproc), "--log-dir", folder,
                                "--max-restarts", str(rounds + 1), "--restart-backoff", "0", "--no-python",
                                str(BUILD / "bench/bench_stamp"), str(stamps)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            took = body(stamps)
        finally:
            job.send_signal(signal.SIGTERM)
            job.wait(60)
    return [("worker killed -> all 8 of the next attempt exec'ed", f"{statistics.median(took):.2f} ms median",
             f"{max(took):.2f} ms worst of {rounds}", "workers end at once on SIGTERM", "at most 10 ms")]


def main():
    print("| what | measured | beside it | ratio | goal |\n|---|---|---|---|---|")
    parts = {"start": start_to_exit, "memory": memory, "restart": restart}
    for name in sys.argv[1:] or parts:
        for row in parts[name]():
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
