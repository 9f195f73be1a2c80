#!/usr/bin/env python3
"""From "the machine runs and its sshd answers" to the job's first line here: `lockstep run --on-demand` beside
`lockstep run --on HOST` of the same command, at first contact with a machine of the same kind that has no binary of
ours, in turns; and how soon a machine that runs is noticed. AWS's fake, machines in network namespaces that Debian's
cloud-init has set up, with real sshd. Needs root.

    LOCKSTEP_BUILD=build/release [TRIES=10] bench/cloud/first_line.py
"""
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("LOCKSTEP_BUILD", str(ROOT / "build/release"))
os.environ["LOCKSTEP_BUILD"] = str(pathlib.Path(os.environ["LOCKSTEP_BUILD"]).resolve())
sys.path[:0] = [str(ROOT / "tests/cloud"), str(ROOT / "tests/integration")]

import hosts  # noqa: E402
from harness import Lockstep, until  # noqa: E402
from rented_world import CloudWorld  # noqa: E402
from test_cloud_run import words  # noqa: E402

TRIES = int(os.environ.get("TRIES", "10"))
SCRIPT = "print('the first line', flush=True)\n"
random.seed(1)


class Bench:
    def __init__(self, folder):
        self.folder = folder
        (folder / "lockstep").mkdir()
        (folder / "project").mkdir()
        (folder / "project/train.py").write_text(SCRIPT)
        self.hosts = hosts.Hosts(Lockstep(folder / "lockstep"))
        # A machine's sshd is there only once it was seen running: what that takes is told apart.
        self.world = CloudWorld(self.hosts, folder, boot=lambda machine: None)

    def seen(self, run, text, out=True):
        until(lambda: text in (run.out() if out else run.err()) or run.process.poll() is not None, 120,
              f"{text}: {run.out()} {run.err()}")
        return time.monotonic()

    def counts(self, machine):
        """Connections that came to the machine, and processes that began on it."""
        head, row = [line.split() for line in pathlib.Path(f"/proc/{machine.holder.pid}/net/snmp").read_text()
                     .splitlines() if line.startswith("Tcp:")]
        return int(row[head.index("PassiveOpens")]), int(machine.command("/bin/sh", "-c", "echo $$"))

    def rented(self):
        """Seconds from sshd to the first line, and from the provider's word to our next step; counts; the machine."""
        world = self.world
        world.fake.world.settings["boot_s"] = random.uniform(0.5, 3)
        run = world.start(*words(world, "train.py"), cwd=self.folder / "project")
        self.seen(run, "waits for sshd", out=False)
        noticed = time.monotonic()
        (rented,) = world.live()
        machine = world.machines.by_id[rented.id]
        noticed -= time.monotonic() - time.time() + rented.running_at
        time.sleep(random.uniform(0, 0.5))  # at no moment that the client could know
        machine.power_on()
        answers = time.monotonic()
        before = self.counts(machine)
        first = self.seen(run, "the first line") - answers
        after = self.counts(machine)
        ended = run.wait(60)
        assert ended.rc == 0 and "the first line" in ended.out, ended
        return first, noticed, [late - early for early, late in zip(before, after)], machine

    def plain(self, like):
        """Seconds that `run --on` takes with a machine that has the same user data, and lets this user in; counts."""
        world = self.world
        machine = world.machines.launch(like.user_data, like.gpus, boot=False)
        machine.path(f"/home/{machine.user}/.ssh/authorized_keys").write_text(world.client.public_key)
        machine.power_on()
        before = self.counts(machine)
        began = time.monotonic()
        run = world.client.start("run", "--on", f"{machine.user}@{machine.addr}", "train.py",
                                 cwd=self.folder / "project")
        taken = self.seen(run, "the first line") - began
        after = self.counts(machine)
        ended = run.wait(60)
        assert ended.rc == 0 and "the first line" in ended.out, ended
        machine.vanish()
        return taken, [late - early for early, late in zip(before, after)]

    def close(self):
        self.world.close()
        self.hosts.close()


def row(what, each, goal=""):
    print(f"| {what} | {statistics.median(each):.2f} s | {max(each):.2f} s | {goal} |")


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-first-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        bench = Bench(folder)
        try:
            rented, plain = [], []
            bench.rented()  # cloud-init runs once, and what both need is read from the disk
            for _ in range(TRIES):
                rented.append(bench.rented())
                plain.append(bench.plain(rented[-1][3]))
                if os.environ.get("VERBOSE"):
                    print(rented[-1][:3], plain[-1], file=sys.stderr)
        finally:
            bench.close()
    print("| what | median | worst | goal |\n|---|---|---|---|")
    row("sshd of a rented machine answers → the job's first line", [each[0] for each in rented])
    row("`run --on HOST` at first contact → the job's first line", [each[0] for each in plain])
    row("the first beyond the second", [one[0] - other[0] for one, other in zip(rented, plain)], "at most 0.5 s")
    row("the provider says that a machine runs → it is looked for", [each[1] for each in rented], "at most 1.2 s")
    for number, what in enumerate(("connections to the machine", "processes on it")):
        ours, theirs = (statistics.median(each) for each in ([one[2][number] for one in rented],
                                                             [one[1][number] for one in plain]))
        print(f"\n{what}: {ours:g} beside {theirs:g} (median)")


if __name__ == "__main__":
    main()
