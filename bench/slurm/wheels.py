#!/usr/bin/python3
"""100 MB to the four nodes of a Slurm job: a wheel by `lockstep submit --wheel`, and the same file by plain sbcast, in
turn, on one real Slurm cluster of hosts in network namespaces of this machine (tests/integration/slurm_cluster.py). All
nodes share this machine's cores and its memory as network, so only the ratio says something. sbcast's time is that of
the command in a batch script; ours is that of the slowest node from its first question for the wheel until all of it
lies on its disk, within the step that starts the agents anyway. Unpacking and importing are not in it. Prints markdown.

  wheels.py [DRAWS]"""
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import harness  # noqa: E402
import hosts as several_hosts  # noqa: E402
from package_index import write_wheel  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402

SIZE = 100_000_000
SBCAST = """#!/bin/sh
#SBATCH -N4 -t5
began=$(date +%s.%N)
sbcast --force {file} /tmp/sbcast.whl
echo took $began $(date +%s.%N)
srun -n4 --ntasks-per-node=1 sh -c 'cksum < /tmp/sbcast.whl; rm /tmp/sbcast.whl'
"""


def by_sbcast(cluster, path):
    script = cluster.script("sbcast.sh", SBCAST.format(file=path))
    cluster.slurm("sbatch", "--wait", "--output", cluster.work / "sbcast.out", script, timeout=300)
    out = (cluster.work / "sbcast.out").read_text()
    began, ended = map(float, re.search(r"took (\S+) (\S+)", out).groups())
    assert len(set(re.findall(r"^\d+ \d{9,}$", out, re.M))) == 1, out
    return ended - began


def by_lockstep(cluster, path):
    ended = cluster.run("submit", "-N4", "-t5", "--no-check", "--wait", "--json", "--wheel", path, "--", "--no-python",
                        "/bin/true", timeout=300)
    assert ended.rc == 0, ended
    folder = pathlib.Path(json.loads(ended.out)["folder"]) / "wheels"
    rows = [json.loads(each.read_text())[0] for each in folder.glob("0-*.json")]
    assert len(rows) == 4 and sum(row["from"].startswith("node") for row in rows) == 3, rows
    return max(row["get_s"] for row in rows)


def main():
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sent, broadcast = [], []
    with tempfile.TemporaryDirectory() as folder:
        lockstep = harness.Lockstep(pathlib.Path(folder))
        hosts = several_hosts.Hosts(lockstep)
        cluster = None
        try:
            cluster = SlurmCluster(hosts, 4)
            for draw in range(draws):
                path = write_wheel(cluster.work, f"bench{draw}", "1.0", "")
                with zipfile.ZipFile(path, "a") as archive:  # what does not compress
                    archive.writestr("blob/blob", os.urandom(SIZE))
                broadcast.append(by_sbcast(cluster, path))
                sent.append(by_lockstep(cluster, path))
                path.unlink()
                for node in cluster.nodes:
                    node.run("-rf", "/tmp/lockstep-0", program=("/bin/rm",))
        finally:
            if cluster:
                cluster.close()
            hosts.close()
            lockstep.close()
    ours, theirs = statistics.median(sent), statistics.median(broadcast)
    print("| 100 MB to the 4 nodes of a Slurm job | `submit --wheel`: median | worst | `sbcast`: median | worst | "
          "ratio | goal |\n|---|---|---|---|---|---|---|")
    print(f"| {draws} draws in turn | {ours:.2f} s | {max(sent):.2f} s | {theirs:.2f} s | {max(broadcast):.2f} s "
          f"| {ours / theirs:.2f} | 0.6 |\n")


main()
