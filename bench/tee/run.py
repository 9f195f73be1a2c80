"""How fast does the output of 8 workers reach files and console, against one stream through tee(1)?

  LOCKSTEP_BUILD=build/release python3 bench/tee/run.py [--gb 4] [--dir /dev/shm] [--room-only]

Both move the same number of bytes from writers into files on the same file system and through a pipe
to a reader that drops them. They take turns; the medians of the rates are compared. Needs the targets
tee_writer and tee_discard (and tee_capture_rate for --room-only, which leaves the agent out).
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKERS = 8


def timed(producers, discard, expect):
    """Runs a pipeline that ends in the discarder; returns seconds. expect: bytes at least."""
    begin = time.perf_counter()
    running, source = [], None
    for argv in producers:
        process = subprocess.Popen(argv, stdin=source, stdout=subprocess.PIPE)
        if source is not None:
            source.close()
        source = process.stdout
        running.append(process)
    end = subprocess.run([str(discard)], stdin=source, stderr=subprocess.PIPE, text=True, check=True)
    took = time.perf_counter() - begin
    for process, argv in zip(running, producers):
        if process.wait() != 0:
            sys.exit(f"{argv[0]} failed with {process.returncode}")
    if int(end.stdout or end.stderr) < expect:
        sys.exit(f"output lost: {end.stderr.strip()} bytes of {expect}")
    return took


def through_tee(tools, total, where):
    return timed([[tools["writer"], str(total)], ["tee", f"{where}/tee.log"]], tools["discard"], total)


def through_lockstep(tools, total, where, room_only):
    each = str(total // WORKERS)
    if room_only:
        argv = [tools["room"], tools["writer"], each, str(WORKERS), where]
    else:
        argv = [tools["lockstep"], "run", "--nproc-per-node", str(WORKERS), "-t", "3",
                "--log-dir", where, "--no-python", tools["writer"], each]
    took = timed([argv], tools["discard"], total)
    written = sum(f.stat().st_size for f in Path(where).rglob("*.log"))
    if written != total:
        sys.exit(f"the files have {written} bytes, not {total}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=4)
    parser.add_argument("--dir", default="/dev/shm", help="file system of the log files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--room-only", action="store_true")
    options = parser.parse_args()
    build = Path(os.environ.get("LOCKSTEP_BUILD", "build/release")).resolve()
    tools = {"lockstep": str(build / "lockstep"), "writer": str(build / "bench/tee/tee_writer"),
             "discard": str(build / "bench/tee/tee_discard"),
             "room": str(build / "bench/tee/tee_capture_rate")}
    total = int(options.gb * 1e9) // (100 * WORKERS) * 100 * WORKERS
    rates = {"tee": [], "lockstep": []}
    for _ in range(options.rounds):
        for name in rates:
            where = tempfile.mkdtemp(prefix="bench_tee_", dir=options.dir)
            try:
                took = (through_tee(tools, total, where) if name == "tee" else
                        through_lockstep(tools, total, where, options.room_only))
            finally:
                shutil.rmtree(where)
            rates[name].append(total / 1e6 / took)
    ratio = statistics.median(rates["lockstep"]) / statistics.median(rates["tee"])
    print(f"| {options.gb:g} GB to files in {options.dir} and a discarding reader | MB/s, median | each round |\n"
          "|---|---|---|")
    labels = {"tee": "tee, one stream", "lockstep": f"lockstep run -t 3, {WORKERS} workers"}
    for name, values in rates.items():
        print(f"| {labels[name]} | {statistics.median(values):.0f} | {', '.join(f'{value:.0f}' for value in values)} |")
    print(f"| ratio (goal: at least 0.5) | {ratio:.2f} | |")
    return 0 if ratio >= 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
