"""A client with machines that cannot terminate themselves, and a guard that looks each second."""
import json

from harness import read, until
from rented_world import FAST_GUARD, CloudWorld


class GuardWorld(CloudWorld):
    def __init__(self, hosts, folder):
        super().__init__(hosts, folder)
        self.fake.world.settings.update(limits=0)

    def start(self, *words, env=None, **options):
        return super().start(*words, env={**FAST_GUARD, **(env or {})}, **options)

    def up(self, *options):
        return self.start("up", "lab", "--gpus", "A10:1", "--provider", "lambda", "-y",
                          "--allow-from", f"{self.client.addr}/32", *options)

    def guard(self):
        (pid,) = until(self.guards, 20, "a guard")
        return pid

    def log(self):
        return read(self.state / "guard.log")

    def rentals(self):
        return json.loads(self.lockstep("cost", "--since", "1d", "--json").out)["rentals"]
