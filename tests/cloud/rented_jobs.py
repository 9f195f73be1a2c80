"""Jobs that tests run on rented machines: what they run, and a run of it on spot machines that are taken away."""
import contextlib

from harness import until
from rented_world import CloudWorld

# One step a life: goes on from its checkpoint until step LAST, which only being asked to end brings nearer, or until
# the file `go` is in its home. With TICKS its first rank says that it works.
LASTING = """import os, signal, sys, time
rank, last = os.environ["RANK"], int(os.environ.get("LAST", "1"))
os.makedirs("out", exist_ok=True)
path = "out/checkpoint"
step = int(open(path).read()) if os.path.exists(path) else 0
def save(*_):
    if rank == "0":
        with open(path, "w") as file:
            file.write(str(step + 1))
    print("rank", rank, "saved", step + 1, flush=True)
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("began at step", step, "args", sys.argv[1:], "attempt", os.environ.get("LOCKSTEP_ATTEMPT"), "rank", rank, "of",
      os.environ["WORLD_SIZE"], "run", os.environ["TORCHELASTIC_RUN_ID"], "secret", os.environ.get("TOKEN"), flush=True)
ticks = 0
while step < last and not os.path.exists(os.path.expanduser("~/go")):
    time.sleep(0.05)
    ticks += 1
    if rank == "0" and "TICKS" in os.environ:
        print("tick", ticks, flush=True)
with open("out/result", "w") as file:
    file.write("done")
print("done", flush=True)
sys.exit(int(os.environ.get("END_WITH", "0")))
"""


def project_in(folder, **scripts):
    """A project of these scripts; LASTING is its train.py if it has no other."""
    project = folder / "project"
    project.mkdir()
    for name, text in {"train": LASTING, **scripts}.items():
        (project / f"{name}.py").write_text(text)
    return project


def laptop(world):
    """The processes of the world's one job here: its command, which shows it, and its course."""
    return [*world.processes(b"run", b"--on-demand"), *world.processes(b"follow-rented")]


def run_ids(output):
    """Of all lives of LASTING that it shows."""
    return {line.split(" run ")[1].split()[0] for line in output.splitlines() if "began at step" in line}


class SilentWorld(CloudWorld):
    """silent: numbers of machines, from 1 on, whose sshd does not come up."""

    def __init__(self, hosts, folder):
        self.silent = set()
        super().__init__(hosts, folder, boot=self.boot)

    def boot(self, machine):
        if machine.number not in self.silent:
            machine.power_on()


def taken(world, machine):
    """At once, without a notice."""
    with world.fake.world.lock:
        machine.extra["preempted"]()


class SpotRun:
    """`lockstep run --on-demand L4:1 --spot` of a project whose train.py is LASTING."""

    def __init__(self, world, project, *more, last=1, spot="--spot"):
        self.world = world
        self.run = world.start("run", "--on-demand", "L4:1", *[spot] * bool(spot), "--provider", "aws", "-y",
                               "--allow-from", f"{world.client.addr}/32", "--back", "out", "--resume-arg=--resume",
                               "--env", f"LAST={last}", *more, "train.py", cwd=project)

    def waits_for(self, fact, what, deadline=150):
        """While it runs."""
        with contextlib.suppress(AssertionError):  # its text would be older
            until(lambda: fact() or self.run.process.poll() is not None, deadline, what)
        assert fact(), f"no {what}; it has ended with {self.run.process.poll()}: {self.all()}"
        return fact()

    def said(self, text, deadline=150):
        self.waits_for(lambda: text in self.all(), f"'{text}'", deadline)

    def all(self):
        return self.run.out() + self.run.err()

    def launched(self, number):
        """The machine that was asked for as the number-th, from 1 on."""
        return self.waits_for(lambda: self.machines()[number - 1:number], f"machine {number}")[0]

    def machines(self):
        return list(self.world.fake.world.machines.values())

    def ends_well(self, machines, timeout=180):
        """Its output; nothing is left, and the bill is the meter's."""
        ended = self.run.wait(timeout)
        assert ended.rc == 0, ended
        assert len(self.world.machines.all) == machines and self.world.live() == [], ended
        assert ended.err.count("it cost") == 1, ended
        self.world.bill_is_the_meters()
        return ended
