"""Jobs of Slurm's: lines that several ranks say at once are one for people, and all of them in the file."""
import os
import pty
import re
import threading

import pytest

from harness import WORKER
from slurm_cluster import SlurmCluster

LINES = 40


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 2)
    yield made
    made.close()


def on_a_terminal(cluster, *words):
    """The code, and what a person sees."""
    leader, follower = pty.openpty()
    seen = []

    def read():
        while True:
            try:
                seen.append(os.read(leader, 65536))
            except OSError:  # nobody has it open any more
                return
    run = cluster.start(*words, stdout=follower)
    os.close(follower)
    reader = threading.Thread(target=read)
    reader.start()
    ended = run.wait(120)
    reader.join(60)
    os.close(leader)
    return ended, b"".join(seen).decode().replace("\r\n", "\n")


def unfolded(text):
    said, folded = {rank: [] for rank in range(4)}, 0
    for ranks, line in re.findall(r"^\[([0-9,-]+)\] (.*)$", text, re.M):
        folded += ranks == "0-3"
        for part in ranks.split(","):
            low, _, high = part.partition("-")
            for rank in range(int(low), int(high or low) + 1):
                said[rank].append(line)
    return said, folded


def test_followed_and_shown_again(cluster):
    say = [action for number in range(LINES) for action in (f"out=step {number}\\n", "sleep=20")]
    ended, seen = on_a_terminal(cluster, "submit", "--fold", "auto", "-N2", "--ntasks-per-node=2", "-t5", "--follow",
                                "--env=OMP_NUM_THREADS=1", "--", "--no-python",
                                WORKER, *say, "@1", "out=mine\\n")
    assert ended.rc == 0, (ended, seen)
    job = re.search(r"Submitted batch job (\d+)\n", seen)[1]
    said, folded = unfolded(seen)
    steps = [f"step {number}" for number in range(LINES)]
    assert said == {rank: steps + (["mine"] if rank == 1 else []) for rank in range(4)}
    assert folded > LINES // 4, seen
    # The file has every line, and so has a pipe.
    lines = (cluster.work / f"slurm-{job}.out").read_text().splitlines()
    assert sorted(lines) == sorted(f"[rank{rank}]: {line}" for rank in said for line in said[rank])
    assert cluster.run("logs", job).out.splitlines() == lines
    again, folded = unfolded(cluster.run("logs", "--fold", "always", job).out)
    assert again == said and folded > LINES // 4
    assert unfolded(on_a_terminal(cluster, "logs", job)[1])[0] == said
    assert "-" not in on_a_terminal(cluster, "logs", "--fold=never", job)[1]
    assert on_a_terminal(cluster, "logs", "--rank", "1", job)[1].count("[rank1]: ") == LINES + 1


def test_the_file_has_every_line_whatever_is_shown(cluster):
    """--fold only affects what is shown: the agents of a job fold nothing."""
    say = [action for number in range(LINES) for action in (f"out=step {number}\\n", "sleep=20")]
    ended = cluster.run("submit", "--fold", "always", "-N2", "--ntasks-per-node=2", "-t5", "--follow",
                        "--env=OMP_NUM_THREADS=1", "--", "--no-python", WORKER, *say)
    assert ended.rc == 0, ended
    said, folded = unfolded(ended.out)
    assert said == {rank: [f"step {number}" for number in range(LINES)] for rank in range(4)}
    assert folded > LINES // 4, ended
    job = re.search(r"Submitted batch job (\d+)\n", ended.out)[1]
    lines = (cluster.work / f"slurm-{job}.out").read_text().splitlines()
    assert sorted(lines) == sorted(f"[rank{rank}]: {line}" for rank in said for line in said[rank])
