"""Lines that several ranks say at about the same time become one, for people: --fold."""
import os
import pty
import re
import threading

import pytest

from harness import one_line

WORKERS, LINES = 4, 40
ALL = [0, 1, 2, 3]


def saying(lockstep):
    """Returns the workers' actions: all print the same in step, and rank 2 also prints its own line."""
    go = lockstep.folder / "go"
    actions = [f"touch={lockstep.facts}", f"wait={go}"]
    for number in range(LINES):
        actions += [f"out=step {number}\\n", "sleep=5"]
        if number % 10 == 5:
            actions += ["@2", f"out=only mine {number}\\n", "@*"]
    return go, actions


def expected(rank):
    return [line for number in range(LINES)
            for line in (f"step {number}", *([f"only mine {number}"] if rank == 2 and number % 10 == 5 else []))]


class Terminal:
    """A pty that keeps all output, as a person would see it."""

    def __init__(self):
        self.leader, self.follower = pty.openpty()
        self.seen = b""

    def read(self):
        while True:
            try:
                got = os.read(self.leader, 65536)
            except OSError:  # nobody has it open any more
                return
            self.seen += got

    def run(self, lockstep, *args, actions, go=None):
        run = lockstep.start_worker(*args, actions=actions, stdin=self.follower, stdout=self.follower,
                                    stderr=self.follower, env={"OMP_NUM_THREADS": "1"})
        os.close(self.follower)
        reader = threading.Thread(target=self.read)
        reader.start()
        if go:
            lockstep.ready(WORKERS)
            go.touch()
        ended = run.wait(60)
        reader.join(60)
        os.close(self.leader)
        return ended, self.seen.decode().replace("\r\n", "\n")


def ranks_of(text):
    return [rank for part in text.split(",") for low, _, high in [part.partition("-")]
            for rank in range(int(low), int(high or low) + 1)]


def unfolded(text, prefix=r"\[default([0-9,-]+)\]:"):
    """Returns each rank's lines, and the number of lines that all ranks share."""
    said, folded = {rank: [] for rank in ALL}, 0
    for line in text.splitlines():
        ranks, line = re.fullmatch(prefix + "(.*)", line).groups()
        folded += ranks == "0-3"
        for rank in ranks_of(ranks):
            said[rank].append(line)
    return said, folded


def files(lockstep, name="stdout.log"):
    return {int(path.parent.name): path.read_text().splitlines() for path in lockstep.logs.rglob(name)}


def test_on_a_terminal(lockstep):
    go, actions = saying(lockstep)
    ended, seen = Terminal().run(lockstep, "--nproc-per-node", WORKERS, "-t", 1, "--log-dir", lockstep.logs,
                                 actions=actions, go=go)
    assert ended.rc == 0, seen
    said, folded = unfolded(seen)
    assert said == {rank: expected(rank) for rank in ALL}
    assert folded, seen  # a busy machine may hold a rank up for longer than lines wait for one another
    assert files(lockstep) == said


@pytest.mark.parametrize("args", [("-t", 1, "--fold", "never"), ("-t", 1, "--fold=auto", "--local-ranks-filter", "1")])
def test_not_on_a_terminal(lockstep, args):
    go, actions = saying(lockstep)
    ended, seen = Terminal().run(lockstep, "--nproc-per-node", WORKERS, *args, actions=actions, go=go)
    assert ended.rc == 0 and "-" not in re.sub("[^-]*:", "", seen)
    said, folded = unfolded(seen)
    shown = [1] if "1" in args else ALL
    assert (said, folded) == ({rank: expected(rank) if rank in shown else [] for rank in ALL}, 0)


def test_a_pipe_has_every_line(lockstep):
    go, actions = saying(lockstep)
    run = lockstep.start_worker("--nproc-per-node", WORKERS, "-t", 1, actions=actions)
    lockstep.ready(WORKERS)
    go.touch()
    ended = run.wait(60)
    assert unfolded(ended.out) == ({rank: expected(rank) for rank in ALL}, 0)


def test_always(lockstep):
    """Output without tee is tagged and folded too, and makes no file."""
    go, actions = saying(lockstep)
    run = lockstep.start_worker("--nproc-per-node", WORKERS, "--fold", "always", "--log-line-prefix-template",
                                "[${rank}] ", "--log-dir", lockstep.logs, actions=actions)
    lockstep.ready(WORKERS)
    go.touch()
    ended = run.wait(60)
    said, folded = unfolded(ended.out, r"\[([0-9,-]+)\] ")
    assert said == {rank: expected(rank) for rank in ALL}
    assert folded, ended
    assert files(lockstep) == {}


def test_a_template_without_a_rank_still_tells_the_ranks(lockstep):
    go, actions = saying(lockstep)
    run = lockstep.start_worker("--nproc-per-node", WORKERS, "--fold=always", "--log-line-prefix-template", "out: ",
                                actions=actions)
    lockstep.ready(WORKERS)
    go.touch()
    assert "[0-3] out: step" in run.wait(60).out


def test_a_prompt_does_not_wait(lockstep):
    ended, seen = Terminal().run(lockstep, "--nproc-per-node", 2, "-t", 1, actions=[
        "@1", "pause", "@0", "out=hello\\nname: ", f"touch={lockstep.facts}", "sleep=300", "out=x\\n", "exit=1"])
    assert ended.rc == 1 and "[default0]:hello\n[default0]:name: x\n" in seen, seen


def test_the_last_words_come_before_the_report(lockstep):
    ended, seen = Terminal().run(lockstep, "--nproc-per-node", 2, "-t", 3, actions=[
        "@1", "out=last\\n", "exit=7", "@0", "pause"])
    assert ended.rc == 1
    assert seen.index("[default1]:last\n") < seen.index("Root Cause"), seen


def test_one_worker_is_as_it_was(lockstep):
    ended = lockstep.run_worker("--fold", "always", "-t", 1, actions=["out=a\\n", "out=a\\n"])
    assert ended.out == "[default0]:a\n[default0]:a\n"
    assert lockstep.run_worker("--fold", "always", actions=["out=a\\n"]).out == "a\n"


def test_bad_words(lockstep):
    one_line(lockstep.run_worker("--fold", "sometimes", actions=[]), 2, "--fold", "auto", "always", "never")
