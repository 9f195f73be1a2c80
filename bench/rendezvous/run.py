#!/usr/bin/python3
"""The rendezvous: two nodes from start to exit, thousands of agents, failures. Prints markdown;
`./dev bench` collects it.

Every ratio comes from runs taken in turn on the same machine. torchrun and PyTorch's own rendezvous handlers are
PyTorch 2.6's from the peers folder (./dev peers).
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build/release"))
LOCKSTEP = str(BUILD / "lockstep")
TOGETHER = str(BUILD / "bench/bench_together")
TRIXIE = str(ROOT / "tests/support/python-trixie")
PATCH = {"PYTHONPATH": str(ROOT / "tests/support/torch-2.6"), "OMP_NUM_THREADS": "1"}
ENDPOINT = "127.0.0.1:29431"
CURVE = ROOT / "bench/rendezvous/curve.svg"


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def pairs(runs, a, b):
    """Median ms of a and of b, median ratio a/b."""
    out = subprocess.run([BUILD / "bench/bench_pairs", str(runs), "--", *a, "--", *b],
                         check=True, capture_output=True, text=True).stdout.split()
    return float(out[0]), float(out[1]), float(out[2])


def two(backend):
    return [TOGETHER, "2", LOCKSTEP, "run", "--nnodes", "2", "--rdzv-backend", backend, "--rdzv-id", "bench",
            "--rdzv-endpoint", ENDPOINT, "--local-addr", "127.0.0.%", "--no-python", "/bin/true"]


def two_torchruns():
    command = ["env", "PEER_PROGRAM=/usr/bin/torchrun", *(f"{k}={v}" for k, v in PATCH.items()), TRIXIE,
               "--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-id", "bench", "--rdzv-endpoint", ENDPOINT,
               "--local-addr", "127.0.0.%", "--no-python", "/bin/true"]
    times = []
    for _ in range(3):
        start = time.monotonic()
        subprocess.run([TOGETHER, "2", *command], check=True, capture_output=True)
        times.append((time.monotonic() - start) * 1e3)
    return statistics.median(times)


def start_to_exit():
    one = [TOGETHER, "1", LOCKSTEP, "run", "--no-python", "/bin/true"]
    rows = []
    ours = {}
    for backend, goal in (("lockstep", 2), ("c10d", 3)):
        a, b, ratio = pairs(100, two(backend), one)
        ours[backend] = a
        rows.append((f"2 nodes x /bin/true, {backend}", f"{a:.2f} ms", f"one node {b:.2f} ms", f"{ratio:.2f} x",
                     f"at most {goal} x"))
    theirs = two_torchruns()
    rows.append(("the same, torchrun 2.6, c10d", f"{theirs:.0f} ms", f"lockstep {ours['lockstep']:.2f} ms",
                 f"{theirs / ours['lockstep']:.0f} x slower", "at least 50 x"))
    table(("what", "measured", "beside it", "ratio", "goal"), rows)


def simulate(*args, runs=5, sim="hub_sim"):
    found = []
    for _ in range(runs):
        out = subprocess.run([BUILD / "bench" / sim, *args], capture_output=True, text=True, timeout=120)
        result = json.loads(out.stdout.splitlines()[-1])
        assert result["good"], out.stdout + out.stderr
        found.append(result)
    return {key: statistics.median(result[key] for result in found) for key in found[0] if key != "good"}


def handlers(count):
    env = {**os.environ, **PATCH, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    out = subprocess.run([TRIXIE, str(ROOT / "tests/support/handlers.py"), str(count)], env=env, capture_output=True,
                         text=True, timeout=120)
    return float(out.stdout.splitlines()[-1]) * 1e3


def scale():
    ours = {}
    rows = []
    for count in (8, 32, 64, 512, 4096):
        result = simulate("--agents", str(count))
        ours[count] = result["ranks_ms"]
        rows.append((count, f"{result['ranks_ms']:.1f} ms", f"{result['messages_per_agent']:.1f}",
                     "2 s at 4,096; at most 4 messages"))
    table(("agents, lockstep", "all have their ranks after", "messages an agent, the greeting included", "goal"), rows)
    c10d = {}
    rows = []
    goals = {256: "0.5 s", 1024: "5 s"}
    for count in (8, 32, 64, 128, 256, 1024):
        result = simulate("--agents", str(count), "--calm", runs=3, sim="c10d_sim")
        c10d[count] = result["ranks_ms"]
        rows.append((count, f"{result['ranks_ms']:.0f} ms", f"{result['ranks_requests'] / count:.0f}",
                     f"{result['ranks_host_cpu_ms']:.0f} ms", f"at most {goals[count]}" if count in goals else ""))
    table(("agents, our c10d", "all have their ranks after", "requests an agent", "the host's processor time", "goal"),
          rows)
    theirs = {}
    rows = []
    for count in (8, 32, 64):
        theirs[count] = statistics.median(handlers(count) for _ in range(3))
        rows.append((count, f"{theirs[count]:.0f} ms", f"{theirs[count] / ours[count]:.0f} x",
                     f"{theirs[count] / c10d[count]:.0f} x"))
    table(("handlers of PyTorch 2.6, threads, c10d", "all have their ranks after", "lockstep is faster by",
           "our c10d by"), rows)
    draw({"lockstep": ours, "our c10d": c10d, "torchrun 2.6 (c10d handlers)": theirs})
    print("![seconds until all agents have their ranks](rendezvous/curve.svg)\n")
    result = simulate("--agents", "64", "--fail", runs=20)
    table(("a worker fails at 64 agents", "measured, median", "goal"),
          [("all others told after", f"{result['told_ms']:.1f} ms", "100 ms"),
           ("all have the ranks of the next round after", f"{result['again_ms']:.1f} ms", "300 ms")])


def draw(curves):
    """All curves, logarithmic both ways, as a plain SVG."""
    import math
    width, height, left, bottom = 640, 400, 70, 50
    def x(count):
        return left + (math.log10(count) - math.log10(8)) / (math.log10(4096) - math.log10(8)) * (width - left - 20)
    def y(ms):
        return height - bottom - (math.log10(ms) - 0) / 4 * (height - bottom - 20)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for power, name in ((0, "1 ms"), (1, "10 ms"), (2, "100 ms"), (3, "1 s"), (4, "10 s")):
        at = y(10 ** power)
        parts.append(f'<path d="M{left} {at:.1f}H{width - 20}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{name}</text>')
    for count in sorted(set().union(*curves.values())):
        parts.append(f'<text x="{x(count):.1f}" y="{height - bottom + 18}" text-anchor="middle">{count}</text>')
    parts.append(f'<text x="{(left + width) / 2:.0f}" y="{height - 12}" text-anchor="middle">agents</text>')
    for (name, points), colour in zip(curves.items(), ("#0a7", "#07a", "#c33")):
        line = " ".join(f"{x(count):.1f},{y(max(ms, 1)):.1f}" for count, ms in sorted(points.items()))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for count, ms in points.items():
            parts.append(f'<circle cx="{x(count):.1f}" cy="{y(max(ms, 1)):.1f}" r="3" fill="{colour}"/>')
        last = max(points)
        parts.append(f'<text x="{x(last) - 6:.1f}" y="{y(max(points[last], 1)) - 10:.1f}" '
                     f'text-anchor="end" fill="{colour}">{name}</text>')
    CURVE.write_text("\n".join(parts) + "\n</svg>\n")


def main():
    start_to_exit()
    scale()
    sys.stdout.flush()
    subprocess.run([sys.executable, ROOT / "bench/rendezvous/lost.py"], check=True)
    subprocess.run([sys.executable, ROOT / "bench/rendezvous/power_cut.py"], check=True)


main()
