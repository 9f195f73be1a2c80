"""Commands in docs/cloud.md, cloud-lifecycle.md, cloud-reference.md and the README, against the fakes: those that
cost nothing do what they say, and of all others every word is known."""
import re
import shlex
import subprocess

import pytest

from fake_clouds import cloud, machines, server  # noqa: F401
from harness import BINARY, REPOSITORY

PAGES = "".join((REPOSITORY / f"docs/cloud{part}.md").read_text() for part in ("", "-lifecycle", "-reference"))
README = re.search(r"^## On rented machines\n(.*?)^## ", (REPOSITORY / "README.md").read_text(), re.M | re.S)[1]
# The answer about a cluster that an earlier command of the page has rented.
NOT_RENTED = re.compile(r"nothing is rented for 'lab'|there is no cluster|'lab' is not known|no host is called|lab: |"
                        r"there is no job 'NAME'|desk.example.org does not resolve")


def commands(text):
    """Returns (line, whether its block costs nothing)."""
    free = False
    for line in text.splitlines():
        if line.startswith("```"):
            free = line == "```sh"
        elif line.removeprefix("    ").startswith("lockstep ") and (free or line.startswith("    ")):
            yield line.strip(), free


FOUND = [*commands(PAGES), *commands(README)]


@pytest.fixture
def run(cloud, tmp_path):  # noqa: F811
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("print('trained')\n")

    def started(words):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LOCKSTEP_CHECKIP_URL": cloud.url, **cloud.env}
        return subprocess.run([BINARY, *words], env=env, cwd=project, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)
    return started


def test_the_page_has_commands():
    assert sum(free for _, free in FOUND) >= 10 and sum(not free for _, free in FOUND) >= 8


@pytest.mark.parametrize("line", sorted({line for line, free in FOUND if free}))
def test_what_costs_nothing_does_what_it_says(run, cloud, line):  # noqa: F811
    ended = run(shlex.split(line, comments=True)[1:])
    assert ended.returncode == 0 and ended.stdout.strip() and not machines(cloud), ended


@pytest.mark.parametrize("line", sorted({line for line, free in FOUND if not free}))
def test_every_word_of_the_others_is_known(run, cloud, line):  # noqa: F811
    words = shlex.split(line, comments=True)[1:]
    if words[0] == "up" or (words[0] == "run" and "--on-demand" in words):
        words.insert(1, "--print")
    ended = run(words)
    assert ended.returncode == 0 or NOT_RENTED.search(ended.stderr), ended
    assert not machines(cloud)
