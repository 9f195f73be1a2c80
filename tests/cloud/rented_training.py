"""The toy training (tests/support/workers/toy_training.py) on rented machines that lose power during the run. Its
checkpoints lie in a folder that all machines share, in place of an object store."""
import pathlib
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

from chaos import TrainingJob  # noqa: E402
from harness import SCRIPTS, until  # noqa: E402

# Reads a worker's round from the log of its agent.
JOB = """
import os, sys
home, job = os.path.expanduser('~'), os.environ['LOCKSTEP_JOB_ID']
log = f'{home}/err.{job}.{os.uname().nodename}.{os.environ.get("LOCKSTEP_ATTEMPT")}'
if not os.path.islink(log):
    os.symlink(f'{home}/.local/state/lockstep/jobs/{job}/err', log)
os.environ['TOY_AGENT_LOG'] = log
os.execv(sys.executable, [sys.executable, 'toy_training.py', '/shared', '10'])
"""


class RentedTraining(TrainingJob):
    """A job of `lockstep run --on-demand` on `count` machines of a CloudWorld."""

    def __init__(self, world, count, *options):
        super().__init__(world.machines.hosts)
        self.world, self.count = world, count
        for path in (self.training.folder, *self.training.folder.iterdir()):
            path.chmod(0o777)
        world.machines.shared = self.training.folder
        project = world.client.folder / "project"
        project.mkdir()
        (project / "job.py").write_text(JOB)
        for source in (SCRIPTS / "toy_training.py", HERE.parent / "integration/tcp_store.py"):
            shutil.copy(source, project)
        self.run = world.start("run", "--on-demand", "L4:1", "--provider", "aws", "-y", "--nodes", count,
                               "--name", "lab", "--allow-from", f"{world.client.addr}/32", "--max-restarts", 3,
                               "--env", "LOGLEVEL=INFO", *options, "job.py", cwd=project)
        self.runs = {"the client": self.run}
        until(lambda: len(world.machines.all) == count or self.run.process.poll() is not None, 90, "they are rented")
        self.step = self.goes_on_with(*world.machines.all, deadline=90)

    def node_zero(self):
        """The machine of rank 0, which hosts the rendezvous."""
        return next(machine for machine in self.world.machines.all if machine.name == self.step["host"])

    def cut(self, machine, listed):
        """Cuts the power of a machine and returns the time. listed: the provider still lists the machine as running."""
        at = time.monotonic()
        machine.vanish()
        if not listed:
            (known,) = [each for each in self.world.live() if self.world.machines.by_id[each.id] is machine]
            self.world.fake.world.end(known, "Server.InternalError")
        return at

    def starts_after(self, at):
        """Returns the start times of workers that started after this moment."""
        return [line["at"] for line in self.training.lines("events") if line["what"] == "start" and line["at"] > at]

    def ends(self, rc=0, timeout=60):
        self.training.finish()
        ended = self.run.wait(timeout)
        assert ended.rc == rc, f"{ended}"
        assert self.training.broken_rules() == [] and self.world.live() == []
        return ended
