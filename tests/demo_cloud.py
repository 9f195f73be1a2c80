#!/usr/bin/env python3
"""`./dev demo cloud`: machines on demand, without an account at a provider.

No provider is contacted: stand-ins for AWS, Google, Lambda and RunPod answer on this machine, each with a meter. Their
machines are as real as one computer allows: network namespaces that Debian's cloud-init sets up from the
user data, with real sshd. The digits training (examples/digits) runs on two spot machines, loses one, goes on elsewhere
from its checkpoint, and all machines are terminated. Needs root.
"""
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "cloud"), str(HERE / "integration")]

import hosts  # noqa: E402
import root_mount  # noqa: E402
from demo_screen import Shown, say, type_out  # noqa: E402
from demo_training import place_training  # noqa: E402
from harness import Lockstep  # noqa: E402
from rented_world import CloudWorld  # noqa: E402

EPOCHS = 60  # enough that the training outlasts the seconds until its machine hears of the notice


class Demo:
    def __init__(self, world, project, needs):
        self.world, self.project, self.needs = world, project, needs
        self.options = {"cwd": project, "env": {"PYTHON_EXEC": "/usr/bin/python3"}}
        self.allow = ["--allow-from", f"{world.client.addr}/32"]

    def type(self, *words, most=None):
        return type_out(self.world.start, *words, most=most, **self.options)

    def run(self):
        say("what machines with one L4 cost, spot included, at all (stand-ins of) providers")
        self.type("offers", "L4:1", "--spot", most=8)
        say("the plan for two of them; nothing is rented yet")
        machines = ["--on-demand", "L4:1", "--nodes", "2", "--spot", "--provider", "aws", "--budget", "5"]
        self.type("run", *machines, *self.allow, "--print", "train.py")
        say("rented, met, synced, started: two machines, one rank each")
        run = Shown(self.world.start, ("run", *machines, *self.allow, "--back", "checkpoints", "--max-restarts", "0",
                                       "--env", "PYTHON_EXEC=/usr/bin/python3", *self.needs, "train.py",
                                       "--epochs", str(EPOCHS), "--checkpoint-dir", "checkpoints"), **self.options)
        run.until_said("epoch  3 of")
        taken = self.world.live()[1]
        say(f"the provider takes one away, with notice: {taken.id} in {taken.zone}")
        self.world.fake.world.notify(taken, 60)
        code = run.end()
        if code != 0 or "attempt 2" not in run.run.out():
            sys.exit(f"demo: the job ended with {code}, and did not go on elsewhere")
        say("nothing is left, and this is the bill; the providers' own meter beside it")
        self.type("cost", "--since", "1d")
        told = json.loads(self.world.lockstep("cost", "--since", "1d", "--json").out)["cost_micros"] / 1e6
        print(f"the stand-ins' meter: {self.world.fake.world.micros() / 1e6:.2f} USD, ours: {told:.2f} USD; "
              f"machines alive: {len(self.world.live())}")
        if self.world.live():
            sys.exit("demo: a machine is alive")


def main():
    root_mount.ensure()
    print("No provider is reached: stand-ins for them answer on this machine. Machines are network namespaces with "
          "real cloud-init and sshd; GPUs are stand-ins, too, and the training runs on CPUs.", flush=True)
    with tempfile.TemporaryDirectory(prefix="lockstep-demo-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        needs = place_training(folder / "digits")
        (folder / "lockstep").mkdir()
        made = hosts.Hosts(Lockstep(folder / "lockstep"))
        try:
            with CloudWorld(made, folder) as world:
                Demo(world, folder / "digits", needs).run()
        finally:
            made.close()


if __name__ == "__main__":
    main()
