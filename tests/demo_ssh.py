#!/usr/bin/env python3
"""`./dev demo ssh`: a training on two hosts over SSH, on a single machine.

The hosts are made on the spot, as network namespaces with a real sshd, users and homes of their own; the client is a
third one. The digits training (examples/digits) is synced, runs on both as one job, loses a host, gets it back, and
is followed although its first client is long gone. Everything is taken down at the end. Needs root.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "integration"))

import hosts  # noqa: E402
import root_mount  # noqa: E402
from demo_screen import Shown, say, type_out  # noqa: E402
from demo_training import place_training  # noqa: E402
from harness import Lockstep  # noqa: E402
from ssh_hosts import SshWorld  # noqa: E402

EPOCHS = 16


class Demo:
    def __init__(self, world, project, needs):
        self.client, self.one, self.two = world(2)
        self.project, self.needs = project, needs

    def type(self, *words):
        return type_out(self.client.start, *words, cwd=self.project)

    def run(self, checkpoints):
        say("two hosts get a name")
        self.type("cluster", "add", "lab", "--host", f"me@{self.one.addr}", "--host", f"me@{self.two.addr}")
        self.type("cluster", "check", "lab")
        say("the project is synced, its folder put on the path, and the job starts on both; the client goes away")
        self.type("run", "--on", "lab", "--detach", "--name", "digits", "--install", "local:./",
                  "--max-restarts", "3", "--rdzv-conf", "heartbeat_timeout=5", *self.needs, "train.py",
                  "--epochs", str(EPOCHS), "--checkpoint-dir", str(checkpoints))
        self.type("jobs")
        say("another client follows it")
        follower = Shown(self.client.start, ("logs", "-f", "digits"), cwd=self.project)
        follower.until_said("epoch  3 of")
        say(f"the power cord of {self.two.name} is pulled")
        self.two.switch_off()
        say(f"{self.two.name} is back, and what was lost of the job begins again")
        self.two.switch_on()
        self.type("resume", "digits")
        code = follower.end()
        say("how it ended")
        self.type("jobs")
        [job] = json.loads(self.client.run("jobs", "--json").out)["jobs"]
        if code != 0 or job["code"] != 0 or "test accuracy 9" not in follower.run.out():
            sys.exit(f"demo: the job ended with {code}, or its accuracy is below 90 %")


def main():
    root_mount.ensure()
    with tempfile.TemporaryDirectory(prefix="lockstep-demo-") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        project = folder / "digits"
        needs = place_training(project)
        checkpoints = folder / "checkpoints"  # as on a file system that both hosts share
        checkpoints.mkdir(mode=0o777)
        checkpoints.chmod(0o777)
        subprocess.run(["git", "init", "-q", project], check=True)
        (folder / "lockstep").mkdir()
        made = hosts.Hosts(Lockstep(folder / "lockstep"))
        world = SshWorld(made)
        try:
            Demo(world, project, needs).run(checkpoints)
        finally:
            world.close()
            made.close()


if __name__ == "__main__":
    main()
