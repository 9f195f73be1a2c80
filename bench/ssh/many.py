"""lockstep on 32 hosts at once beside one of them, and the way of a job's line from the worker to the terminal."""
import os
import statistics
import subprocess
import sys
import time

from run import bench, ms, pairs, row

HOSTS = int(os.environ.get("HOSTS", "32"))
LINES = int(os.environ.get("LINES", "400"))
PAIRS = int(os.environ.get("PAIRS", "60"))

# Every line is the moment at which it was written, by the clock that all hosts of this machine share.
STAMPS = f"""
import time
for _ in range({LINES}):
    print(time.monotonic_ns(), flush=True)
    time.sleep(0.01)
"""


def all_hosts(shell, servers):
    add = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    shell.seconds([shell.client.binary, "cluster", "add", "many", *add])
    shell.seconds([shell.client.binary, "exec", "many", "--", "true"])  # brings the binary
    every = [shell.client.binary, "exec", "many", "--", "true"]
    one = [shell.client.binary, "exec", "many", "--nodes", "0", "--", "true"]
    ours, theirs, ratio = pairs(shell, every, one, max(PAIRS // 3, 5))
    row(f"warm exec -- true on {len(servers)} hosts", ms(ours), f"one host {ms(theirs)}", f"{ratio:.1f} x",
        "at most 8 x" if len(servers) == 32 else "")
    sockets = [path for path in (shell.client.runtime / "lockstep").iterdir() if path.is_socket()]
    assert len(sockets) == len(servers), sockets
    # The floor: what the user's own ssh takes for it, over the very same connections.
    by_ssh = ["sh", "-c", 'for socket in "$@"; do ssh -S "$socket" x true & done; wait', "sh", *sockets]
    ours, theirs, ratio = pairs(shell, every, by_ssh, max(PAIRS // 3, 5))
    row("the same", ms(ours), f"{len(servers)} ssh at once over the same connections {ms(theirs)}",
        f"{ratio:.2f} x", "")


def way_of_a_line(shell, server):
    script = server.homes["me"] / "stamps.py"
    script.write_text(STAMPS)
    script.chmod(0o644)
    argv = [shell.client.binary, "run", "--on", f"me@{server.addr}", "--sync", "none", "--cwd", ".", "stamps.py"]
    taken = []
    with subprocess.Popen([str(part) for part in argv], env=shell.environment, stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        for line in run.stdout:
            taken.append((time.monotonic_ns() - int(line)) / 1e9)
    assert run.returncode == 0 and len(taken) == LINES, (run.returncode, len(taken))
    taken.sort()
    row("a job's line, from the worker to the client's output", ms(statistics.median(taken)),
        f"worst of {LINES}: {ms(taken[-1])}", "", "median at most 5 ms")


def measure(shell, servers):
    print("| what | measured | beside it | ratio | goal |\n|---|---|---|---|---|")
    all_hosts(shell, servers)
    way_of_a_line(shell, servers[0])


if __name__ == "__main__":
    bench(HOSTS, measure)
    sys.stdout.flush()
