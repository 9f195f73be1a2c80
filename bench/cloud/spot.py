#!/usr/bin/env python3
"""What it takes when a spot machine is taken away with notice: AWS's fake, real machines behind it (network namespaces
with sshd), one rank. Boots take no time here, so the whole is recovery beyond boot. Needs root.

    LOCKSTEP_BUILD=build/release bench/cloud/spot.py
"""
import os
import pathlib
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
from test_cloud_run import LASTING, words  # noqa: E402

TRIES = int(os.environ.get("TRIES", "5"))


def one(folder):
    """Seconds: notice to what the rank says when it has TERM; machine gone to the next launch; notice to training."""
    (folder / "lockstep").mkdir()
    (folder / "project").mkdir()
    (folder / "project/lasting.py").write_text(LASTING)
    made = hosts.Hosts(Lockstep(folder / "lockstep"))
    try:
        with CloudWorld(made, folder) as world:
            run = world.start(*words(world, "--spot", "--back", "out", "lasting.py"), cwd=folder / "project")
            until(lambda: "began at step 0" in run.out(), 120)
            (machine,) = world.live()
            began = time.monotonic()
            world.fake.world.notify(machine, 60)
            until(lambda: "saved 1" in run.out(), 60)
            told = time.monotonic() - began
            until(lambda: not machine.alive(), 60)
            gone = time.monotonic()
            until(lambda: len(world.fake.world.machines) == 2, 60)
            asked = time.monotonic() - gone
            until(lambda: "began at step 1" in run.out(), 60)
            again = time.monotonic() - began
            ended = run.wait(60)
            assert ended.rc == 0, ended
            return told, asked, again
    finally:
        made.close()


def main():
    times = []
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="lockstep-spot-") as name:
            folder = pathlib.Path(name)
            folder.chmod(0o755)
            times.append(one(folder))
    print("| what | median | worst | goal |\n|---|---|---|---|")
    for what, goal, each in zip(("spot notice → the rank's own words after TERM are here",
                                 "machine gone → the next launch has come",
                                 "spot notice → the job trains again elsewhere"),
                                ("at most 2.5 s", "at most 1 s", "at most 5 s beyond boot"), zip(*times)):
        print(f"| {what} | {statistics.median(each):.2f} s | {max(each):.2f} s | {goal} |")


if __name__ == "__main__":
    main()
