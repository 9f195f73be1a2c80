"""A job on rented machines ends, and all its processes are killed at each step of the end in turn: the next command
must tell the end, once. Real machines behind the fake of AWS."""
import contextlib
import pathlib
import re
import signal
import sqlite3
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from follow_world import begun, following, kill, kill_client  # noqa: E402
from harness import read, until  # noqa: E402

ENDING, UNWANTED = "NEW.json LIKE '%\"stage\":\"ending\"%'", "NEW.json LIKE '%\"wanted\":false%'"
CLOSED, ENDED = "NEW.kind = 'rental' AND NEW.open = 0", "NEW.json LIKE '%\"stage\":\"ended\"%'"


@pytest.fixture
def world(hosts, tmp_path):
    with following(hosts, tmp_path) as made:
        yield made


class Steps:
    """Stops a process at a chosen write to the journal, until the process is killed."""

    def __init__(self, world):
        self.world, self.path = world, world.state / "rentals.db"
        with self.journal() as journal:
            journal.execute("CREATE TABLE slow AS WITH RECURSIVE n(i) AS "
                            "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n")

    @contextlib.contextmanager
    def journal(self, timeout=20):
        with contextlib.closing(sqlite3.connect(self.path, timeout=timeout)) as journal, journal:
            yield journal

    def set(self, when=None):
        with self.journal() as journal:
            for act in ("INSERT", "UPDATE"):
                journal.execute(f"DROP TRIGGER IF EXISTS step_{act}")
                if when:
                    journal.execute(f"CREATE TRIGGER step_{act} BEFORE {act} ON records WHEN {when} BEGIN "
                                    "SELECT count(*) FROM slow a, slow b, slow c, slow d, slow e, slow f; END")

    def somebody_is_there(self):
        """Only then a write takes longer than an instant."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=2)) as journal:
            try:
                journal.execute("BEGIN IMMEDIATE")
                return False
            except sqlite3.OperationalError:
                return True

    def killed_there(self, what):
        until(self.somebody_is_there, 120, f"{what}: {self.world.log()}")
        everybody = [pid for word in (b"run", b"cost", b"follow-rented", b"guard-rentals")
                     for pid in self.world.processes(word)]
        assert everybody
        kill(self.world, *everybody)


def test_killed_at_one_step_of_the_end_after_the_other(world):
    run = world.train("--guard", "here", "--env", "END_WITH=7")
    begun(world, run)
    steps = Steps(world)
    steps.set(ENDING)
    world.go()
    steps.killed_there("the command says how it ended")
    assert (world.project / "out/result").exists(), "its outputs are here by then"
    for step in (ENDING, UNWANTED, CLOSED):
        steps.set(step)
        world.start("cost")
        steps.killed_there(step)
    steps.set()
    said = []
    until(lambda: said.append(world.lockstep("cost").err) or "was followed" in said[-1], 60, said)
    assert "exit code 1, outputs in out, " in said[-1] and world.lockstep("cost").err == "", said
    assert not world.live() and len(world.machines.all) == 1
    world.bill_is_the_meters()


def test_what_a_follower_writes_is_bounded(world):
    (world.project / "train.py").write_text("import os, time\nos.makedirs('out', exist_ok=True)\n"
                                            "for i in range(300_000):\n"
                                            "    print(i, 'x' * 100, flush=i % 50_000 == 0)\n"
                                            "    if i % 50_000 == 0: time.sleep(1)\n"
                                            "print('the end')\n")
    assert world.train("--spot", "--detach").wait(120).rc == 0
    until(lambda: not world.live() and not world.followers(), 120, "it ends")
    parts = {part: world.log_part(part) for part in ("", ".1", ".2")}
    assert all(len(text) < 17 << 20 for text in parts.values()), {part: len(text) for part, text in parts.items()}
    assert parts[".1"].startswith("0 xxx") and "\nthe end\n" in parts[".2"] + parts[""]
    kept = parts[".2"].split("\n", 1)[1] + parts[""].split("\n", 1)[1]  # a line may be cut, and both begin with one
    # The first line may be cut.
    numbers = [int(number) for number in re.findall(r"^(\d+) x{100}$", kept, re.M)][1:]
    assert numbers[-1] == 299_999 and numbers == list(range(numbers[0], 300_000)), "the end has no gap"
    assert parts[""].startswith("lockstep: this log is long: it begins in "), parts[""][:200]
    assert "it begins in lab.log.1; lab.log.2 came before" in parts[""][:200]
    assert world.lockstep("logs", "lab", "-n", "1").out == world.log().splitlines()[-1] + "\n"
    refused = world.lockstep("logs", "lab", "--rank", "0")
    assert refused.rc == 2 and "--rank" in refused.err and "rentals/lab.log" in refused.err, refused
    world.told("exit code 0, ")
    # Another job of the same name starts a new log.
    (world.project / "train.py").write_text("print('the second')\n")
    assert world.start("run", "--on-demand", "L4:1", "--provider", "aws", "-y", "--name", "lab", "--spot", "--detach",
                       "--allow-from", f"{world.client.addr}/32", "train.py", cwd=world.project).wait(120).rc == 0
    until(lambda: not world.live() and not world.followers(), 120, "it ends")
    assert "the second\n" in world.log() and "the end" not in world.log(), world.log()
    assert len(list(world.state.glob("rentals/lab.log*"))) == 1
    # A newer job of that name, and one elsewhere, is what `logs` means.
    for column, value in (("created_ms", 4_000_000_000_000), ("place", "'hpc'")):
        with contextlib.closing(sqlite3.connect(world.state / "state.db")) as book, book:
            book.execute(f"UPDATE jobs SET id = 'x' || substr(id, 2), {column} = {value} WHERE name = 'lab'")
        shown = world.start("logs", "lab")
        with pytest.raises(AssertionError, match="still running"):
            shown.wait(3)  # its host is asked, which is gone
        assert shown.out() == "", column
        kill(world, *world.processes(b"logs"))
        with contextlib.closing(sqlite3.connect(world.state / "state.db")) as book, book:
            book.execute("UPDATE jobs SET created_ms = 1 WHERE name = 'lab'")


def test_the_last_note_is_lost(world):
    run = world.train("--spot", "--env", "END_WITH=7")
    begun(world, run)
    kill_client(world)
    steps = Steps(world)
    steps.set(ENDED)
    world.go()
    steps.killed_there("the follower says that the machines are terminated")
    assert not world.live()
    steps.set()
    world.told("exit code 1, outputs in out, terminated, ")
