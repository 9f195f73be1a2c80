#!/usr/bin/env python3
"""`./dev demo slurm`: a training on a Slurm cluster that the demo makes.

Slurm's own controller and four nodes are started on this machine, as network namespaces. The digits training
(examples/digits) with a C++ extension (examples/augment) is submitted on two nodes and a spare: the wheel of the
extension is built once and comes to every node, one node is cut off, and the spare takes its place. Everything is
taken down at the end. Needs root.
"""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "integration"))

import hosts  # noqa: E402
import root_mount  # noqa: E402
from demo_screen import Shown, say, type_out  # noqa: E402
from demo_training import EXAMPLES, place_training  # noqa: E402
from harness import Lockstep  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402

PYTHON = "/usr/bin/python3"
EPOCHS = 16


class Demo:
    def __init__(self, cluster, needs):
        self.cluster, self.needs = cluster, needs
        self.options = {"cwd": cluster.work / "digits", "env": {"PYTHON_EXEC": PYTHON}}

    def type(self, *words):
        return type_out(self.cluster.start, *words, **self.options)

    def run(self):
        say("what the cluster has")
        self.type("cluster", "add", "lab", "--slurm")
        self.type("cluster", "show", "lab")
        say("the C++ extension becomes a wheel, once")
        wheel = re.search(r"^/\S+\.whl$", self.type("wheel", "../augment", "--python", PYTHON), re.M)[0]
        say("two nodes and a spare are asked for; the wheel goes to all of them")
        follower = Shown(self.cluster.start, ("submit", "-N", "2", "--spare", "1", "--time", "20", "--mem", "2000",
                                              "--wheel", wheel, "--follow", *self.needs, "train.py", "--augment",
                                              "--epochs", EPOCHS, "--checkpoint-dir", "checkpoints"), **self.options)
        follower.until_said("epoch  3 of")
        number = re.search(r"Submitted batch job (\d+)", follower.run.out())[1]
        lost = self.second_trainer(number)
        say(f"{lost.name}, one of the two that train, is cut off")
        self.cluster.power_cut(lost)
        follower.until_said("resumed from")
        code = follower.end()
        say("how it ended")
        self.type("jobs")
        self.type("why", number)
        [job] = json.loads(self.cluster.run("jobs", "--json", **self.options).out)["jobs"]
        if code != 0 or job["code"] != 0 or "test accuracy 9" not in follower.run.out():
            sys.exit(f"demo: the job ended with {code}, or its accuracy is below 90 %")

    def second_trainer(self, number):
        """Returns the node of the second trainer: not the node of the batch script, and not the spare."""
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
    root_mount.ensure()
    if not os.path.ismount("/sys/fs/cgroup"):
        sys.exit("demo: slurmd does not start without /sys/fs/cgroup, which is not mounted here; "
                 "if this is a chroot, run `mount --rbind /sys CHROOT/sys` outside of it")
    with tempfile.TemporaryDirectory(prefix="lockstep-demo-", dir="/var/tmp") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        (folder / "lockstep").mkdir()
        made = hosts.Hosts(Lockstep(folder / "lockstep"))
        cluster = None
        try:
            say("Slurm's controller and four nodes start on this machine")
            cluster = SlurmCluster(made, 4)
            shutil.copytree(EXAMPLES / "augment", cluster.work / "augment")
            Demo(cluster, place_training(cluster.work / "digits")).run()
        finally:
            if cluster is not None:
                cluster.close()
            made.close()


if __name__ == "__main__":
    main()
