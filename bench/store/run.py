#!/usr/bin/python3
"""Measures `lockstep store` beside redis and PyTorch's own TCPStore server, and prints markdown tables.

    bench/store/run.py [--build build/release] [--peers .cache/peers/trixie] [--rounds 3]

The parties take turns within one run, so that a busy machine hurts both alike; the ratio is of the
medians. Needs redis-server; the PyTorch parts are left out where there is none.
"""
import argparse
import pathlib
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADS = [  # connections, requests in flight on each, requests on each
    (1, 2, 60_000), (1, 32, 800_000), (64, 2, 3_000), (64, 32, 30_000), (1000, 2, 200), (1000, 16, 2_000)]

# PyTorch's Python client against a server: argv HOST PORT (0: host one here), prints microseconds.
TORCH = """
import sys, time, datetime
import torch, torch.distributed as dist
host, port = sys.argv[1], int(sys.argv[2])
new = hasattr(dist.TCPStore, "multi_get")
more = {"use_libuv": False} if new else {}
wait = datetime.timedelta(seconds=60)
if port == 0:
    import os, signal
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=wait, **more)
        os.write(tell, str(server.port).encode()); time.sleep(600)
    port = int(os.read(ready, 16))
else:
    child = 0
store = dist.TCPStore(host, port, is_master=False, timeout=wait, **more)
value = "v" * 100
best = 1e9
for _ in range(3):
    start = time.perf_counter()
    for i in range(2000):
        store.set("key", value); store.get("key")
    best = min(best, time.perf_counter() - start)
line = "%.1f" % (best / 4000 * 1e6)
if new:
    keys = ["member/%d" % i for i in range(4096)]
    store.multi_set(keys, [value] * 4096)
    best = 1e9
    for _ in range(5):
        start = time.perf_counter(); store.multi_get(keys); best = min(best, time.perf_counter() - start)
    line += " %.2f" % (best * 1e3)
print(torch.__version__, line)
if child:
    os.kill(child, signal.SIGKILL)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until_open(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.02)
    sys.exit(f"nothing listens on {port}")


def start_lockstep(build):
    process = subprocess.Popen([build / "lockstep", "store", "--host", "127.0.0.1", "--port", "0"],
                               stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline().rsplit(":", 1)[1])


def start_redis():
    port = free_port()
    process = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                                "--appendonly", "no"], stdout=subprocess.DEVNULL)
    until_open(port)
    return process, port


def measure(client, protocol, server, load):
    process, port = server
    connections, depth, requests = load
    out = subprocess.run([client, "--protocol", protocol, "--port", str(port), "--connections",
                          str(connections), "--depth", str(depth), "--requests", str(requests), "--pid",
                          str(process.pid)], check=True, capture_output=True, text=True).stdout
    found = re.match(r"requests/s (\S+) cpu_us/request (\S+)", out)
    return float(found[1]), float(found[2])


def against_redis(client, lockstep, redis, rounds):
    print("| connections | in flight | store req/s | redis req/s | ratio | store CPU us/req | redis CPU us/req |")
    print("|---|---|---|---|---|---|---|")
    for load in LOADS:
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(measure(client, "store", lockstep, load))
            theirs.append(measure(client, "redis", redis, load))
        mine, other = ([statistics.median(column) for column in zip(*side)] for side in (ours, theirs))
        print(f"| {load[0]} | {load[1]} | {mine[0]:,.0f} | {other[0]:,.0f} | {mine[0] / other[0]:.2f} "
              f"| {mine[1]:.2f} | {other[1]:.2f} |", flush=True)


def torch_line(command, port):
    done = subprocess.run([*command, "-c", TORCH, "127.0.0.1", str(port)], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else None


def against_torch(port, peers):
    commands = [["/usr/bin/python3"]]
    if (peers / "usr/bin/python3").exists():
        enter = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        commands.append(["unshare", "-m", "sh", "-c", enter, str(peers), "python3"])
    print("\n| PyTorch client | server | us per set or get | ms per multi_get of 4,096 keys |\n|---|---|---|---|")
    for command in commands:
        for name, where in (("Lockstep", port), ("PyTorch's own", 0)):
            words = torch_line(command, where)
            if words:
                print(f"| {words[0]} | {name} | {words[1]} | {words[2] if len(words) > 2 else '-'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--client", type=pathlib.Path)
    parser.add_argument("--peers", type=pathlib.Path, default=ROOT / ".cache/peers/trixie")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    client = args.client or args.build / "bench/store/bench_store_client"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    servers = [start_lockstep(args.build)]
    try:
        if shutil.which("redis-server"):
            servers.append(start_redis())
            against_redis(client, *servers, args.rounds)
        against_torch(servers[0][1], args.peers)
    finally:
        for process, _ in servers:
            process.send_signal(signal.SIGTERM)
            process.wait()


if __name__ == "__main__":
    main()
