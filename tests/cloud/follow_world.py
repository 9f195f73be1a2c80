"""A world for tests of jobs whose command is killed, and the ways to kill commands. Real machines behind the fake of
AWS, which terminate themselves."""
import contextlib
import os
import re
import signal

from harness import alive, read, until
from rented_jobs import laptop, project_in
from rented_world import FAST_GUARD, CloudWorld

# A log marks its streams: notes, which end with their line, and single marks.
NOTES = re.compile("\x1c[^\n]*\n|[\x1d\x1e\x1f]")


def plain_text(text):
    """Returns a log without its notes and marks."""
    return NOTES.sub("", text)


class FollowWorld(CloudWorld):
    def start(self, *words, env=None, **options):
        return super().start(*words, env={**FAST_GUARD, **(env or {})}, **options)

    def train(self, *options, **more):
        return self.start("run", "--on-demand", "L4:1", "--provider", "aws", "-y", "--name", "lab", "--back", "out",
                          "--allow-from", f"{self.client.addr}/32", *options, "train.py", cwd=self.project, **more)

    def followers(self):
        return self.processes(b"follow-rented")

    def log(self):
        return self.log_part("")

    def log_part(self, ending):
        """Returns a part of the log as plain text."""
        path = self.state / f"rentals/lab.log{ending}"
        return plain_text(read(path)) if path.exists() else ""

    def go(self):
        """Lets the script on the machine end."""
        for machine in self.live():
            there = self.machines.by_id[machine.id]
            there.path(f"/home/{there.user}/go").touch()

    def told(self, word):
        """Returns the next command's line about the end of a followed job, which must come once."""
        ended = self.bill_is_the_meters()
        assert self.lockstep("cost").err == "", ended
        line = [line for line in ended.err.splitlines() if "was followed" in line]
        assert len(line) == 1 and word in line[0], ended
        return line[0]


def kill(world, *pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not any(alive(pid) for pid in pids), 10)


def kill_client(world):
    kill(world, *world.processes(b"run", b"--on-demand"))


def kill_all(world):
    """Kills the command, its course, and the guard, which would start another course: as in a power cut."""
    kill(world, *world.guards(), *laptop(world))


def begun(world, run):
    until(lambda: "began at step 0" in run.out(), 120, f"it trains: {run.out()} {run.err()}")


@contextlib.contextmanager
def following(hosts, folder):
    """A FollowWorld with a project to train."""
    with FollowWorld(hosts, folder) as made:
        made.project = project_in(folder)
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []
