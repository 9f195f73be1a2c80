#!/usr/bin/python3
"""What the status page costs the agent: without a viewer, with 50, and by request. Prints markdown; `./dev bench`
collects it."""
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/integration"))
from harness import Lockstep  # noqa: E402
from test_page import Page  # noqa: E402

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
        viewers = [page.live() for _ in range(VIEWERS)]
        for viewer in viewers:
            threading.Thread(target=read_all, args=(viewer,), daemon=True).start()
        watched = share(agent)
        for viewer in viewers:
            viewer.shutdown(2)
        metrics, history = milliseconds(page, "/metrics"), milliseconds(page, "/history?span=600")
        size = len(page.get("/")[2])
        run.kill()
    print(f"""| what | measured | beside it | ratio | goal |
|---|---|---|---|---|
| the page | {size / 1024:.1f} KB |  |  | at most 80 KB |
| agent of {RANKS} ranks with {VIEWERS} viewers | {watched:.2f} % of a core | none {alone:.2f} % | \
{(watched - alone) / VIEWERS:.3f} % a viewer | at most 0.1 % a viewer |
| /metrics of {RANKS} ranks, asked to answered | {metrics:.2f} ms |  |  | at most 2 ms |
| /history of 10 minutes | {history:.2f} ms |  |  |  |""")


if __name__ == "__main__":
    main()
