#!/usr/bin/python3
"""Node 0 of a job of `lockstep run --on` loses power: three hosts in network namespaces (tests/integration/hosts.py)
with a real sshd, `--nnodes 2:3`. Node 0, which hosts the rendezvous, is cut off the network and all that runs on it is
killed, so that nobody sees a connection end; how long until the ranks of the next round run on both other hosts. In
every draw the training has to go on behind its last checkpoint, and the client has to end with 0. Prints markdown.

  power_cut_on.py [DRAWS]"""
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import harness  # noqa: E402
import hosts as several_hosts  # noqa: E402
from ssh_hosts import SshWorld  # noqa: E402
from test_jobs_node_zero import Job  # noqa: E402


def once(draw):
    with tempfile.TemporaryDirectory() as folder:
        lockstep = harness.Lockstep(pathlib.Path(folder))
        hosts = several_hosts.Hosts(lockstep)
        world = SshWorld(hosts)
        try:
            job = Job(world, 3)
            zero, one, two = job.servers
            job.begin("--nnodes", "2:3")
            time.sleep(0.1 * (draw % 5))  # anywhere within a heartbeat
            before = job.training.last()
            at = job.cut(zero)
            started = harness.until(lambda: len(job.starts_after(at)) > 1 and job.starts_after(at), 60,
                                    "two ranks run again")
            assert job.goes_on_with(one, two)["step"] > before
            job.ends()
            return max(started) - at
        finally:
            world.close()
            hosts.close()
            lockstep.close()


def main():
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    times = []
    for draw in range(draws):
        times.append(once(draw))
        print(f"{times[-1]:.2f} s", file=sys.stderr, flush=True)
    print("| node 0 of three under `run --on` loses power | ranks run again on the other two: median | worst | goal |\n"
          "|---|---|---|---|\n"
          f"| it hosts the rendezvous | {statistics.median(times):.2f} s | {max(times):.2f} s of {draws} | 3 s |\n")


main()
