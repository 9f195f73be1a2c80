#!/usr/bin/env python3
"""`./dev demo ssh`: a training on two hosts over SSH, for somebody who has no second machine.

The hosts are made on the spot, as network namespaces with a real sshd, users and homes of their own; the client is a
third one. The digits training (examples/digits) is synced, runs on both as one job, loses a host, gets it back, and
is followed although its first client is long gone. Everything is taken down at the end. Needs root.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "integration"))

import hosts  # noqa: E402
from harness import Lockstep, until  # noqa: E402
from ssh_hosts import SshWorld  # noqa: E402

EXAMPLE = pathlib.Path(__file__).parent.parent / "examples/digits"
EPOCHS = 16


def say(text):
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


class Demo:
    def __init__(self, world, project):
        self.client, self.one, self.two = world(2)
        self.project = project

    def type(self, *words):
        """What a user types, shown, with its output."""
        print("$ lockstep", *words, flush=True)
        ended = self.client.run(*words, cwd=self.project, timeout=300)
        print(ended.out, ended.err, sep="", end="", flush=True)
        if ended.rc != 0:
            sys.exit(f"demo: lockstep {words[0]} ended with {ended.rc}")
        return ended.out

    def said(self, text, follower):
        until(lambda: text in follower.out(), 300, f"'{text}' in the job's output, which is:\n{follower.out()}")

    def show(self, follower, shown=0):
        print(follower.out()[shown:], end="", flush=True)
        return len(follower.out())

    def run(self, checkpoints):
        say("two hosts get a name")
        self.type("cluster", "add", "lab", "--host", f"me@{self.one.addr}", "--host", f"me@{self.two.addr}")
        self.type("cluster", "check", "lab")
        say("the project is synced, its folder put on the path, and the job starts on both; the client goes away")
        id_ = self.type("run", "--on", "lab", "--detach", "--name", "digits", "--install", "local:./",
                        "--max-restarts", "3", "--rdzv-conf", "heartbeat_timeout=5", "train.py",
                        "--epochs", str(EPOCHS), "--checkpoint-dir", str(checkpoints)).strip()
        self.type("jobs")
        say("another client follows it")
        follower = self.client.start("logs", "-f", "digits", cwd=self.project)
        self.said("epoch  3 of", follower)
        shown = self.show(follower)
        say(f"the power cord of {self.two.name} is pulled")
        self.two.switch_off()
        say(f"{self.two.name} is back, and what was lost of the job begins again")
        self.two.switch_on()
        self.type("resume", id_)
        self.said("resumed from", follower)
        ended = follower.wait(300)
        self.show(follower, shown)
        print(ended.err, end="")
        say("how it ended")
        self.type("jobs")
        [job] = json.loads(self.client.run("jobs", "--json").out)["jobs"]
        if ended.rc != 0 or job["code"] != 0 or "test accuracy 9" not in ended.out:
            sys.exit(f"demo: the job ended with {ended.rc}, or its accuracy is below 90 %")


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-demo-") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        project = folder / "digits"
        shutil.copytree(EXAMPLE, project)
        checkpoints = folder / "checkpoints"  # as on a file system that both hosts share
        checkpoints.mkdir(mode=0o777)
        checkpoints.chmod(0o777)
        subprocess.run(["git", "init", "-q", project], check=True)
        (folder / "lockstep").mkdir()
        made = hosts.Hosts(Lockstep(folder / "lockstep"))
        world = SshWorld(made)
        try:
            Demo(world, project).run(checkpoints)
        finally:
            world.close()
            made.close()


if __name__ == "__main__":
    main()
