#!/usr/bin/env python3
"""`./dev demo slurm`: a training on a Slurm cluster, for somebody who has none.

Slurm's own controller and four nodes are started on this machine, as network namespaces. The digits training
(examples/digits) with a C++ extension (examples/augment) is submitted on two nodes and a spare: the wheel of the
extension is built once and comes to every node, one node is cut off, and the spare takes its place. Everything is
taken down at the end. Needs root.
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "integration"))

import hosts  # noqa: E402
from harness import Lockstep, until  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
PYTHON = "/usr/bin/python3"
EPOCHS = 16


def say(text):
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


class Demo:
    def __init__(self, cluster):
        self.cluster = cluster
        self.options = {"cwd": cluster.work / "digits", "env": {"PYTHON_EXEC": PYTHON}}

    def start(self, *words):
        print("$ lockstep", *words, flush=True)
        return self.cluster.start(*words, **self.options)

    def type(self, *words):
        """What a user types, shown, with its output."""
        ended = self.start(*words).wait(600)
        print(ended.out, ended.err, sep="", end="", flush=True)
        if ended.rc != 0:
            sys.exit(f"demo: lockstep {words[0]} ended with {ended.rc}")
        return ended.out

    def run(self):
        say("what the cluster has")
        self.type("cluster", "add", "lab", "--slurm")
        self.type("cluster", "show", "lab")
        say("the C++ extension becomes a wheel, once")
        wheel = self.type("wheel", "../augment", "--python", PYTHON).strip()
        say("two nodes and a spare are asked for; the wheel goes to all of them")
        follower = self.start("submit", "-N", "2", "--spare", "1", "--time", "20", "--mem", "2000",
                              "--wheel", wheel, "--follow", "train.py", "--augment",
                              "--epochs", EPOCHS, "--checkpoint-dir", "checkpoints")
        shown = self.said("epoch  3 of", follower, 0)
        number = re.search(r"Submitted batch job (\d+)", follower.out())[1]
        lost = self.second_trainer(number)
        say(f"{lost.name}, one of the two that train, is cut off")
        self.cluster.power_cut(lost)
        shown = self.said("resumed from", follower, shown)
        ended = follower.wait(600)
        print(ended.out[shown:], ended.err, sep="", end="", flush=True)
        say("how it ended")
        self.type("jobs")
        self.type("why", number)
        [job] = json.loads(self.cluster.run("jobs", "--json", **self.options).out)["jobs"]
        if ended.rc != 0 or job["code"] != 0 or "test accuracy 9" not in ended.out:
            sys.exit(f"demo: the job ended with {ended.rc}, or its accuracy is below 90 %")

    def said(self, text, follower, shown):
        """Waits for it, and shows what was said; returns how far."""
        until(lambda: text in follower.out() or follower.process.poll() is not None, 600, f"the job says '{text}'")
        told = follower.out()
        print(told[shown:], end="", flush=True)
        if text not in told:
            sys.exit(f"demo: the job ended before it said '{text}':\n{follower.err()}")
        return len(told)

    def second_trainer(self, number):
        """Not the node that the job's own script runs on, and not the one that waits."""
        first = self.cluster.job(number)["BatchHost"]
        for node in self.cluster.nodes:
            if node.name != first and any("train.py" in words and "python" in words[0] for words in commands(node)):
                return node
        sys.exit("demo: no second node trains")


def commands(node):
    for pid in node.processes():
        try:
            yield pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            continue


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-demo-", dir="/var/tmp") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        (folder / "lockstep").mkdir()
        made = hosts.Hosts(Lockstep(folder / "lockstep"))
        cluster = None
        try:
            say("Slurm's controller and four nodes start on this machine")
            cluster = SlurmCluster(made, 4)
            for example in ("digits", "augment"):
                shutil.copytree(EXAMPLES / example, cluster.work / example)
            Demo(cluster).run()
        finally:
            if cluster is not None:
                cluster.close()
            made.close()


if __name__ == "__main__":
    main()
