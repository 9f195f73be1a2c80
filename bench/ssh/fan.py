"""lockstep sync to several hosts whose client sits behind one shaped uplink, beside the same sync to one of them."""
import os
import statistics
import subprocess
import sys

from run import bench, ms, row

HOSTS = int(os.environ.get("HOSTS", "8"))
RATE = os.environ.get("RATE", "200mbit")
COPIES = int(os.environ.get("COPIES", "6"))
FILES, BYTES = 400, 250_000


def clear(path):
    subprocess.run(["rm", "-rf", path], check=True)


def measure(shell, servers):
    tree = shell.client.root_home / "tree"
    for number in range(FILES):
        file = tree / f"folder{number // 20:02}" / f"file{number % 20:02}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(BYTES))
    add = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    shell.seconds([shell.client.binary, "cluster", "add", "gpus", *add])
    shell.seconds([shell.client.binary, "exec", "gpus", "--", "true"])  # brings the binary
    # This process is on the client's host by now.
    subprocess.run(["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", RATE, "burst", "256kb",
                    "latency", "100ms"], check=True)

    def seconds(*nodes):
        for server in servers:
            clear(server.homes["me"] / "tree")
        os.sync()
        return shell.seconds([shell.client.binary, "sync", "gpus", tree, *nodes])

    taken = [(seconds(), seconds("--nodes", "0")) for _ in range(COPIES)]
    every, one = (statistics.median(times) for times in zip(*taken))
    ratio = statistics.median(a / b for a, b in taken)
    print("| what | measured | beside it | ratio | goal |\n|---|---|---|---|---|")
    row(f"sync of {FILES} files / {FILES * BYTES / 1e6:.0f} MB to {len(servers)} hosts, uplink of {RATE}", ms(every),
        f"one host {ms(one)}", f"{ratio:.2f} x", "at most 1.5 x" if len(servers) == 8 else "")


if __name__ == "__main__":
    bench(HOSTS, measure)
    sys.stdout.flush()
