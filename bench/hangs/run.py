#!/usr/bin/python3
"""Does Lockstep name the right rank and line? Real gloo jobs in which one rank goes wrong (hangs), healthy jobs that
look dead (healthy), and jobs with one slow rank (stragglers). Prints a table for each; exit code 1 if a cell is wrong.

    bench/hangs/run.py                                   # everything but PyTorch 2.14: some hours
    bench/hangs/run.py hangs --kinds vfork,gil --ranks 8 --nodes 3 --torch 2.6
    bench/hangs/run.py stragglers --repeat 3 --at-once 2

Times count on a quiet machine only; ranks and lines must be right on a loaded one as well.
"""
import argparse
import concurrent.futures
import contextlib
import http.server
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/integration"))
from hang_kinds import HANG, HANGS, HEALTHY, STRAGGLES, can_happen, line_of  # noqa: E402
from harness import BINARY, PYTHON, SUITES, SUPPORT, Lockstep, peer  # noqa: E402
from nodes import Job, listening  # noqa: E402

CULPRIT = 2
AFTER = 5  # --hang-after
GOAL = 8   # seconds from the fault to the line
START = 150  # for a job on a loaded machine
LOOKS_DEAD = ("prepare", "write", "download", "retries", "child", "validation", "debugger", "checkpoint", "slow",
              "alone")
SLOW = ("sleep", "cpu", "forward", "backward", "loader")
PERCENT = (10, 30, 100)


class Failed(Exception):
    """A cell is wrong, in words."""


def need(fact, seconds, what):
    """The first true value of fact(). Tools are started in it, so it looks less often than the tests' until()."""
    end = time.monotonic() + seconds
    while not (value := fact()):
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return value


def interpreter(torch):
    if torch == "1.13":
        return {"PYTHON_EXEC": PYTHON}
    return {"PYTHON_EXEC": peer(torch), "PYTHONPATH": SUPPORT / "torch-2.6"}


class Training:
    """A job with so many ranks on so many nodes, its first node the one that judges."""

    def __init__(self, setting, script, *words, options=(), env=None):
        self.ranks, self.nodes, self.torch = setting
        self.stack = contextlib.ExitStack()
        # Loaders send file descriptors through sockets in TMPDIR, whose paths must be short.
        self.temp = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        self.lockstep = Lockstep(self.stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        self.env = {"TEST_FOLDER": self.temp, "TMPDIR": self.temp, "OMP_NUM_THREADS": "1", **interpreter(self.torch),
                    **(env or {})}
        self.runs = list(self.start(script, words, options))

    def start(self, script, words, options):
        if self.nodes == 1:
            yield self.lockstep.start("--nproc-per-node", self.ranks, "--log-dir", self.lockstep.logs, *options,
                                      script, *words, env=self.env)
            return
        job = Job(self.lockstep, "lockstep")
        for number in range(self.nodes):
            share = self.ranks // self.nodes + (number < self.ranks % self.nodes)
            yield job.script(number, script, *words, nproc=share, nnodes=self.nodes, env=self.env,
                             args=("--log-dir", self.lockstep.folder / f"logs{number}", *options))
            listening(job.port)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for run in self.runs:
            run.kill()
        self.stack.close()

    def err(self):
        return "".join(run.err() for run in self.runs)

    def over(self):
        return all(run.process.poll() is not None for run in self.runs)

    def why(self):
        asked = subprocess.run([BINARY, "why", f"pid-{self.runs[0].pid}"], env=self.lockstep.environment(),
                               capture_output=True, text=True, timeout=30, check=False)
        return asked.stdout

    def fault(self):
        """When the last rank came to where the job stands still. Other kinds have one file, some one of each rank."""
        return max((float(text) for path in self.temp.glob("fault.*") if (text := path.read_text())), default=None)


# --- hangs ---

def check_words(kind, ranks, said, verdict):
    """What the job has told, and the verdict of `lockstep why`. Raises unless both name the culprit and the line."""
    line = line_of(kind)
    if HANGS[kind] == "waiting":
        if f"{ranks - 1} ranks wait for rank {CULPRIT} at {line}" not in said:
            raise Failed(said)
        return
    rows = [row for row in said.splitlines()[1:] if re.search(rf"\]   rank {CULPRIT}\b", row)]
    if len(rows) != 1 or line not in rows[0]:
        raise Failed(said)
    if HANGS[kind] == "stopped":
        if f"rank {CULPRIT} is stopped by a signal, {ranks - 1} ranks wait" not in said:
            raise Failed(said)
    elif not re.search(rf"hung for [^:\n]+: rank {CULPRIT} at {re.escape(line)}", verdict):
        raise Failed(f"{said}\n{verdict}")


def block(text, beginning):
    """From the first line of an alarm to its evidence. Empty: not all of it is there."""
    last = "since" if beginning == "waiting" else "evidence: "
    found = re.search(rf"\] {beginning}: (?s:.*?){last}.*\n", text)
    return found[0] if found else ""


def hang(kind, setting):
    ranks = setting[0]
    beginning = HANGS[kind]
    with Training(setting, HANG, kind, CULPRIT, options=("--hang-after", AFTER)) as job:
        said = need(lambda: block(job.err(), beginning), START, f"{beginning}: {job.err()[-1500:]}\n{job.why()}")
        seconds = time.monotonic() - (job.fault() or 0)
        if job.fault() is None:
            raise Failed(f"before the fault: {said}")
        check_words(kind, ranks, said, job.why())
        return f"{seconds:.1f} s", seconds > GOAL


# --- healthy jobs ---

class SlowServer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        self.send_response(200)
        self.end_headers()
        end = time.monotonic() + float(self.path[1:])
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                self.wfile.write(bytes(4096))
                time.sleep(0.4)

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def slow_server(seconds):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {"SLOW_URL": f"http://127.0.0.1:{server.server_port}/{seconds}"}
    server.shutdown()


def healthy(kind, seconds, setting):
    """The job must end with 0 without a claim, and "waiting" must name the rank that the others wait for."""
    line = "" if kind == "slow" else line_of(kind, HEALTHY)
    culprit = rf"wait for rank {CULPRIT} at {re.escape(line)} since"
    seen = set()
    options = () if kind in ("slow", "alone") else ("--hang-after", AFTER)
    with slow_server(seconds) as env, \
            Training(setting, HEALTHY, kind, CULPRIT, seconds, options=options, env=env) as job:
        end = time.monotonic() + seconds + START
        while not job.over() and time.monotonic() < end:
            seen.update(re.findall(r"waiting: .*", job.why()))
            time.sleep(0.5)
        codes = [run.process.poll() for run in job.runs]
        err = job.err() + job.why()
        if codes != [0] * len(codes) or re.search(r"\] (hang|stopped|straggler): ", err):
            raise Failed(f"{codes}: {err[-2000:]}")
        told = re.findall(r"waiting: .*", err)
        wrong = [line for line in told if not re.search(culprit, line)]
        right = [line for line in seen if re.search(culprit, line)]
        if wrong or (not right and kind not in ("slow", "alone")):
            raise Failed(f"waiting: {sorted(seen)}\n{err[-1000:]}")
        return (right or ["no wait"])[0].split(" since")[0], False


# --- stragglers ---

def straggler(kind, percent, seconds, setting):
    """Above 20 % the rank must be named; below, no other may be."""
    with Training(setting, STRAGGLES, kind, CULPRIT, percent, options=("--hang-after", "off")) as job:
        end = time.monotonic() + seconds
        wanted = kind != "none" and percent > 20
        told = []
        while time.monotonic() < end and not (wanted and told) and not job.over():
            told = re.findall(r"straggler: (.*makes the others wait.*)", job.err())
            time.sleep(0.5)
        if job.over() or any(not line.startswith(f"rank {CULPRIT} ") for line in told) or bool(told) < wanted or (
                kind == "none" and told):
            raise Failed(f"{told}\n{job.err()[-1500:]}")
        return (told or ["silent"])[0].split("makes the others wait: ")[-1], False


# --- the program ---

def run_cell(cell):
    name, work = cell
    began = time.monotonic()
    try:
        told, late = work()
        return name, told, late, ""
    except (Failed, AssertionError, subprocess.TimeoutExpired, OSError) as error:
        return name, "", False, f"{type(error).__name__} after {time.monotonic() - began:.0f} s: {error}"


def settings_of(options):
    return list(itertools.product(options.ranks, options.nodes, options.torch))


def cells_of(matrix, options):
    wanted = options.kinds
    for kind, percent in {"hangs": [(kind, 0) for kind in HANGS], "healthy": [(kind, 0) for kind in LOOKS_DEAD],
                          "stragglers": [("none", 0), *itertools.product(SLOW, options.percent)]}[matrix]:
        if (wanted and kind not in wanted) or not can_happen(kind):
            continue
        for setting in settings_of(options):
            name = (kind if not percent else f"{kind} +{percent} %", *setting)
            if matrix == "hangs":
                yield name, lambda kind=kind, setting=setting: hang(kind, setting)
            elif matrix == "healthy":
                yield name, lambda kind=kind, setting=setting: healthy(kind, options.seconds, setting)
            else:
                yield name, lambda kind=kind, percent=percent, setting=setting: straggler(kind, percent, 240, setting)


def numbers(text):
    return [int(word) for word in text.split(",")]


def words(text):
    return text.split(",")


def versions(text):
    known = ["1.13", *SUITES]
    if wrong := [word for word in words(text) if word not in known]:
        raise argparse.ArgumentTypeError(f"no PyTorch {', '.join(wrong)}; choose from {', '.join(known)}")
    return words(text)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("matrix", nargs="*", choices=[[], "hangs", "healthy", "stragglers"])
    parser.add_argument("--kinds", type=words, help="only these, between commas")
    parser.add_argument("--ranks", type=numbers, help="numbers of ranks: 4,8; stragglers 8")
    parser.add_argument("--nodes", type=numbers, help="numbers of nodes: 1,3; healthy jobs and stragglers 1")
    parser.add_argument("--torch", type=versions, default=["1.13", "2.6"], help="1.13, 2.6, 2.14 (not by default)")
    parser.add_argument("--percent", type=numbers, default=PERCENT)
    parser.add_argument("--seconds", type=int, default=40, help="for which a healthy job looks dead")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1, help="jobs beside each other")
    return parser.parse_args()


def print_matrix(matrix, options):
    """Returns the number of wrong cells."""
    defaults = {"hangs": ([4, 8], [1, 3]), "healthy": ([4], [1]), "stragglers": ([8], [1])}[matrix]
    own = argparse.Namespace(**{**vars(options), "ranks": options.ranks or defaults[0],
                                "nodes": options.nodes or defaults[1]})
    cells = list(cells_of(matrix, own)) * options.repeat
    wrong = late = 0
    print(f"\n### {matrix}\n\n| kind | ranks | nodes | torch | right | told |\n|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        for name, told, is_late, error in pool.map(run_cell, cells):
            wrong += bool(error)
            late += is_late
            right = "no" if error else "yes"
            print(f"| {' | '.join(map(str, name))} | {right} | {told}{' late' * is_late} |", flush=True)
            if error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
    print(f"\n{len(cells) - wrong} of {len(cells)} right" +
          (f", {late} of them later than {GOAL} s after the fault" if matrix == "hangs" else ""), flush=True)
    return wrong


def main():
    options = parse()
    wrong = sum(print_matrix(matrix, options) for matrix in options.matrix or ["hangs", "healthy", "stragglers"])
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
