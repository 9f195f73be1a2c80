"""Scripts of jobs on rented machines, and a run on spot machines that are preempted."""
import contextlib

from harness import until
from rented_world import CloudWorld

# One step per life: a request to end makes the script save one more step. It succeeds at step LAST, or once the file
# `go` is in its home. With TICKS its first rank prints that it works.
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
    """Makes a project of these scripts. Without a train.py of its own, the project gets LASTING."""
    project = folder / "project"
    project.mkdir()
    for name, text in {"train": LASTING, **scripts}.items():
        (project / f"{name}.py").write_text(text)
    return project


def laptop(world):
    """Returns the processes of the world's only job on this machine: its command and its course."""
    return [*world.processes(b"run", b"--on-demand"), *world.processes(b"follow-rented")]


def run_ids(output):
    """Returns the run ids of all lives of LASTING in the output."""
    return {line.split(" run ")[1].split()[0] for line in output.splitlines() if "began at step" in line}


class SilentWorld(CloudWorld):
    """silent: the numbers, from 1, of machines whose sshd does not start."""

    def __init__(self, hosts, folder):
        self.silent = set()
        super().__init__(hosts, folder, boot=self.boot)

    def boot(self, machine):
        if machine.number not in self.silent:
            machine.power_on()


def taken(world, machine):
    """Preempts the machine at once, without notice."""
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
        """Waits for the fact while the run goes on."""
        with contextlib.suppress(AssertionError):  # the text of this error would be out of date
            until(lambda: fact() or self.run.process.poll() is not None, deadline, what)
        assert fact(), f"no {what}; it has ended with {self.run.process.poll()}: {self.all()}"
        return fact()

    def said(self, text, deadline=150):
        self.waits_for(lambda: text in self.all(), f"'{text}'", deadline)

    def all(self):
        return self.run.out() + self.run.err()

    def launched(self, number):
        """Waits for the launch with this number, from 1, and returns the machine."""
        return self.waits_for(lambda: self.machines()[number - 1:number], f"machine {number}")[0]

    def machines(self):
        return list(self.world.fake.world.machines.values())

    def ends_well(self, machines, timeout=180):
        """Waits for success and returns the output. No machine may be left, and the cost must equal the meter's."""
        ended = self.run.wait(timeout)
        assert ended.rc == 0, ended
        assert len(self.world.machines.all) == machines and self.world.live() == [], ended
        assert ended.err.count("it cost") == 1, ended
        self.world.bill_is_the_meters()
        return ended
