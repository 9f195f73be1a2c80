"""lockstep exec and sync beside ssh and rsync over an open ControlMaster, on hosts in namespaces with a real sshd."""
import itertools
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

import harness  # noqa: E402
import hosts as several_hosts  # noqa: E402
from ssh_hosts import SshWorld  # noqa: E402

PAIRS = int(os.environ.get("PAIRS", "60"))
COPIES = int(os.environ.get("COPIES", "6"))
SIZE = 256 << 20


class Shell:
    """Starts commands on the client's host, without a process in between that would be measured too."""

    def __init__(self, client):
        self.client = client
        self.environment = {**os.environ, **{k: str(v) for k, v in client.environment().items() if v is not None}}
        self.environment.pop("SSH_AUTH_SOCK", None)
        # This process's children are born on the client's host from here on.
        for kind in ("net", "pid", "mnt"):
            with open(f"/proc/{client.host.holder.pid}/ns/{kind}") as namespace:
                if several_hosts._libc.setns(namespace.fileno(), 0) != 0:
                    raise OSError(f"setns {kind}")

    def seconds(self, argv, **popen):
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **popen}
        began = time.monotonic()
        subprocess.run([str(part) for part in argv], env=self.environment, check=True, **popen)
        return time.monotonic() - began


def pairs(shell, ours, theirs, count, **popen):
    """Medians of both, run in turn, and the median of the ratios."""
    taken = [(shell.seconds(ours, **popen), shell.seconds(theirs, **popen)) for _ in range(count)]
    return (statistics.median(a for a, _ in taken), statistics.median(b for _, b in taken),
            statistics.median(a / b for a, b in taken))


def row(what, ours, beside, ratio, goal):
    print(f"| {what} | {ours} | {beside} | {ratio} | {goal} |")


def ms(seconds):
    return f"{seconds * 1000:.1f} ms"


def measure(shell, servers):
    client, where = shell.client, f"me@{servers[0].addr}"
    master = ["ssh", "-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes", "-S", f"{client.runtime}/plain"]
    mine = [client.binary, "exec", where, "--"]
    cold = ["ssh", "-S", "none", "-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes", where, "true"]

    def first_contact():
        for socket in (client.runtime / "lockstep").glob("*[0-9a-f]"):
            subprocess.run(["ssh", "-q", "-S", socket, "-O", "exit", "x"], env=shell.environment, check=False,
                           stderr=subprocess.DEVNULL)
        return shell.seconds([*mine, "true"])

    shell.seconds(cold)
    shell.seconds([*mine, "true"])  # brings the binary
    print("| what | measured | beside it | ratio | goal |\n|---|---|---|---|---|")
    logins = [(first_contact(), shell.seconds(cold)) for _ in range(max(PAIRS // 4, 5))]
    ours, theirs = (statistics.median(times) for times in zip(*logins))
    row("first contact, the binary is there", ms(ours), f"ssh {ms(theirs)}",
        f"{statistics.median(a / b for a, b in logins):.2f} x", "at most 1.25 x")
    shell.seconds([*master, "-M", "-N", "-f", where])
    ours, theirs, ratio = pairs(shell, [*mine, "true"], [*master, where, "true"], PAIRS)
    row("warm exec -- true", ms(ours), f"ssh over a ControlMaster {ms(theirs)}", f"{ratio:.2f} x", "at most 1.3 x")
    function_calls(shell, where)
    copy = ["head", "-c", str(SIZE), "/dev/zero"]
    ours, theirs, ratio = pairs(shell, [*mine, *copy], [*master, where, *copy], COPIES)
    row(f"{SIZE >> 20} MB of output", f"{SIZE / ours / 1e6:.0f} MB/s", f"ssh {SIZE / theirs / 1e6:.0f} MB/s",
        f"{ratio:.2f} x the time", "200 MB/s")
    measure_sync(shell, where)


def measure_sync(shell, where):
    """10,000 files, 81 MB that can't be compressed, beside rsync over an open ControlMaster."""
    client = shell.client
    tree = client.root_home / "tree"
    for number in range(10_000):
        file = tree / f"folder{number // 100:03}" / f"file{number % 100:02}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(8_100))
    ssh = f"ssh -S {client.runtime}/plain"
    # A place of its own for each first sync: where files were removed a moment ago, ext4 looks long for a free inode.
    places = itertools.count()

    def both(count, before, new_place):
        taken = []
        for _ in range(count):
            before()
            os.sync()
            place = next(places) if new_place else 0
            ours = [client.binary, "sync", where, f"{tree}:ours{place}"]
            theirs = ["rsync", "-a", "-e", ssh, f"{tree}/", f"{where}:theirs{place}/"]
            taken.append((shell.seconds(ours), shell.seconds(theirs)))
        return (statistics.median(a for a, _ in taken), statistics.median(b for _, b in taken),
                statistics.median(a / b for a, b in taken))

    def nothing():
        pass

    def one_changed():
        (tree / "folder042/file42.bin").write_bytes(os.urandom(8_100))

    for what, count, before, goal in (("first sync", COPIES, nothing, "at most 1.1 x"),
                                      ("nothing changed", PAIRS // 2, nothing, "at most 0.5 x"),
                                      ("one file changed", PAIRS // 2, one_changed, "at most 1 x")):
        mine, beside, ratio = both(count, before, what == "first sync")
        row(f"sync, 10,000 files / 81 MB: {what}", ms(mine), f"rsync -a {ms(beside)}", f"{ratio:.2f} x", goal)


# Prints the median of seconds per call of a function that does nothing, in a program that runs already.
CALLS = """
import statistics, sys, time, lockstep, nothing
call = lockstep.function(nothing.nothing, lockstep.Cluster(sys.argv[1], one_host=True), sync=sys.argv[2] == "sync")
call()
taken = []
for _ in range(int(sys.argv[3])):
    began = time.monotonic()
    call()
    taken.append(time.monotonic() - began)
print(statistics.median(taken))
"""


def function_calls(shell, where):
    """A function that does nothing, beside a Python that does nothing, here."""
    project = shell.client.folder / "project"
    project.mkdir()
    (project / "nothing.py").write_text("def nothing(): pass\n")
    (project / "calls.py").write_text(CALLS)
    subprocess.run([shell.client.binary, "sync", where, project], env=shell.environment, check=True,
                   stdout=subprocess.DEVNULL)
    python = [harness.PYTHON, "-c", "pass"]
    call = [shell.client.binary, "call", where, "nothing:nothing", "--cwd", "project"]
    ours, theirs, ratio = pairs(shell, call, python, PAIRS)
    row("warm call of a function that does nothing", ms(ours), f"python3 -c pass {ms(theirs)}", f"{ratio:.2f} x",
        "at most 3 x")
    environment = {**shell.environment, "PYTHONPATH": str(ROOT / "python"), "LOCKSTEP_BINARY": str(shell.client.binary)}
    for how, what in (("placed", "the same from a Python program"), ("sync", "the same, the project is synced first")):
        said = subprocess.run([harness.PYTHON, "calls.py", where, how, str(PAIRS)], cwd=project, env=environment,
                              check=True, capture_output=True, text=True)
        theirs = statistics.median(shell.seconds(python) for _ in range(PAIRS))
        row(what, ms(float(said.stdout)), f"python3 -c pass {ms(theirs)}", f"{float(said.stdout) / theirs:.2f} x",
            "at most 3 x" if how == "placed" else "")


def bench(count, measured):
    """measured(shell, servers) on the client's host of a world with so many servers."""
    with tempfile.TemporaryDirectory() as folder:
        lockstep = harness.Lockstep(pathlib.Path(folder))
        machines = several_hosts.Hosts(lockstep)
        world = SshWorld(machines)
        try:
            client, *servers = world(count)
            sys.stdout.flush()
            child = os.fork()  # which moves to the client's host
            if child == 0:
                try:
                    measured(Shell(client), servers)
                    sys.stdout.flush()
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0, "the measurement failed"
        finally:
            world.close()
            machines.close()
            lockstep.close()


if __name__ == "__main__":
    bench(1, measure)
