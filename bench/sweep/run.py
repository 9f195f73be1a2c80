"""Sweeps of rows that do nothing, beside `xargs -P` over `lockstep run`: on this machine, and on hosts in namespaces
with a real sshd."""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/ssh"))

from run import bench, pairs, row  # noqa: E402

ROWS = int(os.environ.get("ROWS", "1000"))
HOSTS = int(os.environ.get("HOSTS", "4"))
SLOTS = 8
PAIRS = int(os.environ.get("PAIRS", "5"))


def seconds(value):
    return f"{value:.2f} s"


def tell(what, ours, beside, theirs, ratio):
    row(what, f"{seconds(ours)}, {1000 * ours / ROWS:.1f} ms a row", f"{beside} {seconds(theirs)}", f"{ratio:.2f} x",
        "at most 1.5 x")


def here(binary):
    """Without hosts: the sweep runs in this process's own namespaces."""
    axis = ["--sweep", f"x=0-{ROWS - 1}", "--at-once", str(SLOTS)]
    ours = [binary, "run", *axis, "--no-python", "/bin/true"]
    theirs = ["sh", "-c", f'seq {ROWS} | xargs -P {SLOTS} -I N "$0" run --no-python /bin/true N', binary]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TMPDIR": folder}

        def once(argv):
            began = time.monotonic()
            subprocess.run(argv, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            return time.monotonic() - began
        taken = [(once(ours), once(theirs)) for _ in range(PAIRS)]
    tell(f"{ROWS} rows of /bin/true here, {SLOTS} at once", statistics.median(a for a, _ in taken),
         f"xargs -P {SLOTS} lockstep run", statistics.median(b for _, b in taken),
         statistics.median(a / b for a, b in taken))


def on_hosts(shell, servers):
    add = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    shell.seconds([shell.client.binary, "cluster", "add", "gang", *add])
    shell.seconds([shell.client.binary, "exec", "gang", "--", "true"])  # brings the binary
    true = ["run", "--no-python", "/bin/true"]
    shell.seconds([shell.client.binary, "exec", "gang", "--", shell.client.binary, *true])  # the loops can do it
    ours = [shell.client.binary, "run", "--on", "gang", "--sync", "none", "--cwd", ".", "--sweep", f"x=0-{ROWS - 1}",
            "--at-once", str(SLOTS * len(servers)), "--no-python", "/bin/true"]
    # The user's own loops: on each host over the connection that is open, as many at once as the sweep has slots.
    loop = (f'for host; do seq {ROWS // len(servers)} | xargs -P {SLOTS} -I N "$0" exec --no-stdin "$host" -- '
            '"$0" run --no-python /bin/true N & done; wait')
    theirs = ["sh", "-c", loop, shell.client.binary, *[f"me@{server.addr}" for server in servers]]
    taken = pairs(shell, ours, theirs, PAIRS, stderr=subprocess.DEVNULL)
    tell(f"{ROWS} rows on {len(servers)} hosts, {SLOTS} at once on each", taken[0],
         f"xargs -P {SLOTS} lockstep exec HOST lockstep run, for each host", taken[1], taken[2])


def measure(shell, servers):
    on_hosts(shell, servers)


if __name__ == "__main__":
    print("| what | measured | beside it | ratio | goal |\n|---|---|---|---|---|")
    sys.stdout.flush()
    here(str(pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build/release")) / "lockstep"))
    bench(HOSTS, measure)
    sys.stdout.flush()
