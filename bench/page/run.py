#!/usr/bin/python3
"""What the status page costs the agent and the workers: without a viewer, with 50, and by request. Prints markdown;
`./dev bench` collects it."""
import importlib.util
import os
import pathlib
import socket
import statistics
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "tests/integration"))
from harness import Lockstep, until  # noqa: E402
from test_page import Page  # noqa: E402

spec = importlib.util.spec_from_file_location("bench_looks", HERE.parents[1] / "looks/run.py")
looks = importlib.util.module_from_spec(spec)  # the workers that count their steps
spec.loader.exec_module(looks)

RANKS = 16
VIEWERS = 50
WINDOW = 20
SCRIPT = "import time\nwhile True:\n    print('step', flush=True)\n    time.sleep(0.2)\n"


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share(pid):
    """Percent of a core, over a window."""
    begun, before = time.monotonic(), cpu_seconds(pid)
    time.sleep(WINDOW)
    return (cpu_seconds(pid) - before) / (time.monotonic() - begun) * 100


def read_all(fd):
    try:
        while fd.recv(1 << 16):
            pass
    except OSError:
        pass


def come(page):
    """The viewers. They have seen the first state, which is larger than later ones."""
    viewers = [page.live() for _ in range(VIEWERS)]
    for viewer in viewers:
        viewer.recv(1 << 16)
        threading.Thread(target=read_all, args=(viewer,), daemon=True).start()
    return viewers


def leave(viewers):
    for viewer in viewers:
        viewer.shutdown(socket.SHUT_RDWR)


def steps_ratio(folder):
    """Median of the ratios of neighbouring windows of one job: with viewers to without. The viewers use the same cores
    as the workers, as no viewer on another machine would."""
    script, counts = folder / "count.py", folder / "counts"
    script.write_text(looks.STEPS)
    counts.mkdir()
    (folder / "workers").mkdir()
    run = Lockstep(folder / "workers").start("--nproc-per-node", looks.RANKS, "--status-page", script, counts)
    try:
        page, ratios = Page(run), []
        until(lambda: len(list(counts.iterdir())) == looks.RANKS and looks.steps_of(counts) > 1000, 60, "ranks count")
        for _ in range(looks.WINDOWS):
            viewers = come(page)
            watched = looks.rate(counts)
            leave(viewers)
            ratios.append(watched / looks.rate(counts))
    finally:
        run.kill()
    return statistics.median(ratios), min(ratios), max(ratios)


def milliseconds(page, target):
    times = []
    for _ in range(300):
        begun = time.perf_counter()
        page.get(target)
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def main():
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "steps.py"
        script.write_text(SCRIPT)
        lockstep = Lockstep(folder)
        run = lockstep.start("--nproc-per-node", RANKS, "-r", 3, "--log-dir", f"{folder}/logs", "--status-page", script)
        page = Page(run)
        agent = run.agent()
        time.sleep(3)
        alone = share(agent)
        viewers = come(page)
        watched = share(agent)
        leave(viewers)
        metrics, history = milliseconds(page, "/metrics"), milliseconds(page, "/history?span=600")
        size = len(page.get("/")[2])
        run.kill()
        ratio, least, most = steps_ratio(pathlib.Path(folder))
    print(f"""| what | measured | beside it | ratio | goal |
|---|---|---|---|---|
| the page | {size / 1024:.1f} KB |  |  | at most 80 KB |
| agent of {RANKS} ranks with {VIEWERS} viewers | {watched:.2f} % of a core | none {alone:.2f} % | \
{(watched - alone) / VIEWERS:.3f} % a viewer | at most 0.1 % a viewer |
| steps of {looks.RANKS} workers, {VIEWERS} viewers against none | {looks.WINDOWS} pairs of windows in turn | \
{least:.2f} to {most:.2f} | {ratio:.3f} | at least 0.99 |
| /metrics of {RANKS} ranks, asked to answered | {metrics:.2f} ms |  |  | at most 2 ms |
| /history of 10 minutes | {history:.2f} ms |  |  |  |""")


if __name__ == "__main__":
    main()
