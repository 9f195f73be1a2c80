#!/usr/bin/python3
"""Node 0 of three loses power, with `--nnodes 2:3`: under `lockstep run --on`, on hosts in network namespaces
(tests/integration/hosts.py) with a real sshd; with --rented under `lockstep run --on-demand`, on stand-ins for rented
machines (tests/cloud/machines.py). Node 0, which hosts the rendezvous, is cut off the network and all that runs on it
is killed, so that nobody sees a connection end; how long until the ranks of the next round run on both other nodes. In
every draw the training has to go on behind its last checkpoint, and the client has to end with 0. The provider lists a
rented machine that has lost power as running, in every second draw as ended. Prints markdown.

  power_cut_on.py [DRAWS] [--rented]"""
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cloud"), str(ROOT / "tests/integration")]
import harness  # noqa: E402
import hosts as several_hosts  # noqa: E402
from rented_training import RentedTraining  # noqa: E402
from rented_world import CloudWorld  # noqa: E402
from ssh_hosts import SshWorld  # noqa: E402
from test_jobs_node_zero import Job  # noqa: E402


def goes_on(job, draw, zero, others, cut):
    """Seconds from the cut until the others' ranks run again."""
    time.sleep(0.1 * (draw % 5))  # anywhere within a heartbeat
    before = job.training.last()
    at = cut(zero)
    started = harness.until(lambda: len(job.starts_after(at)) > 1 and job.starts_after(at), 60, "two ranks run again")
    assert job.goes_on_with(*others)["step"] > before
    job.ends()
    return max(started) - at


def on_hosts(hosts, _, draw):
    world = SshWorld(hosts)
    try:
        job = Job(world, 3)
        job.begin("--nnodes", "2:3")
        return goes_on(job, draw, job.servers[0], job.servers[1:], job.cut)
    finally:
        world.close()


def rented(hosts, folder, draw):
    with CloudWorld(hosts, folder) as world:
        world.fake.world.settings.update(boot_s=0.0, end_s=0.0, operation_s=0.0, limits=0)
        job = RentedTraining(world, 3, "--nnodes", "2:3")
        zero = job.node_zero()
        others = [machine for machine in world.machines.all if machine is not zero]
        return goes_on(job, draw, zero, others, lambda machine: job.cut(machine, listed=draw % 2 == 0))


def once(way, draw):
    with tempfile.TemporaryDirectory(prefix="lockstep-cut-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "lockstep").mkdir()
        lockstep = harness.Lockstep(folder / "lockstep")
        hosts = several_hosts.Hosts(lockstep)
        try:
            return way(hosts, folder, draw)
        finally:
            hosts.close()
            lockstep.close()


def main():
    is_rented = "--rented" in sys.argv
    draws = int(next((word for word in sys.argv[1:] if word.isdigit()), 20))
    times = []
    for draw in range(draws):
        times.append(once(rented if is_rented else on_hosts, draw))
        print(f"{times[-1]:.2f} s", file=sys.stderr, flush=True)
    print(f"| node 0 of three under `run {'--on-demand' if is_rented else '--on'}` loses power "
          "| ranks run again on the other two: median | worst | goal |\n"
          "|---|---|---|---|\n"
          f"| it hosts the rendezvous | {statistics.median(times):.2f} s | {max(times):.2f} s of {draws} | 3 s |\n")


main()
