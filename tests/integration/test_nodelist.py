"""Lists of nodes: src/codec/nodelist expands them as Slurm's own `scontrol show hostnames` does.

scontrol needs no controller for this, only a configuration file.
"""
import concurrent.futures
import json
import random
import subprocess

import pytest

from harness import BUILD

DUMP = BUILD / "src/codec/nodelist_dump"

# Slurm's words and ours are the same for these as well.
FORMS = """
n1 n01 n001 n[1] n[01] n[1-1] n[0] n[00] n[0-0] n[000-010] n[8-11] n[08-11] n[008-11] n[9-010] n[09-10] n[99-101]
n[099-101] n[0099-101] n[2-02] n[1-002] n[001-2] n[01-2,3] n[1,1] n[3,1-2] n[1-3,5,7-9,010] n[1-2],n[2-3]
c1,c1 a,,b a, ,a
[1-2] [1-2]b[1] n[1][2] n[1-2][3-4] a[1-2]b[1-2]c[1-2] a[1-2]b[1-2]c[1-2]d[1-2] a[1-2]b[1-2]c[1-2]d[1-2]e[1-2]
a[1,3]b[2,4] a[1-2,7]b[03-05]c[1,9] 10.0.0.[1-3] user@a[1-2] a-b_c.d[1-2] a1-3 a{1-2} node(1) (null) a:b
n[123456789012345678] n[4294967295-4294967297] n[0-65535] n[1-65536] x[1-30000],y[1-30000] a[1-1000]b[1-65]
""".split() + ["a b", " n1", "n1 ", "n1 ,n2", "n1\t,n2", "a  b"]

# Neither knows what these mean. Slurm then prints nothing, and says so.
REFUSED = """
, n[] n[1,] n[,1] n[-1] n[x] n[3-1] n[1-2-3] n[[1]] n[0x1] n[1_0] n[1-2]] n[1]]b n[1-65537] n[1-70000] n[1-999999999]
""".split() + ["n[1 ]", ""]

# Differences, with the reason: Slurm 22.05's answer, and ours (None: refused).
DIFFERENT = {
    # A typing error must not become another name.
    "n[": (["n]"], None), "n[1": (["n]"], None), "n]": (["n]"], None), "n[1-]": (["n1"], None),
    "n[+1]": (["n01"], None), "n[ 1]": (["n01"], None),
    # Numbers above 64 bits become the largest 64-bit number.
    "n[18446744073709551616]": (["n18446744073709551615"], None),
    # Slurm 24.11 and later accept text behind the last bracket.
    "n[1-2]-ib": ([], ["n1-ib", "n2-ib"]), "a[0-1]b[0-1]c": ([], ["a0b0c", "a0b1c", "a1b0c", "a1b1c"]),
}


def generated(count=500, seed=20261122):
    """Lists from the grammar: items of text and brackets, ranges with and without zeros, in no order."""
    rand = random.Random(seed)

    def bracket():
        ranges = []
        for _ in range(rand.choice((1, 1, 1, 2, 3, 6))):
            low = rand.choice((rand.randrange(10), rand.randrange(100), rand.randrange(2000)))
            width = rand.choice((0, 0, 2, 3, 5))
            text = f"{low:0{width}d}"
            if rand.random() < 0.6:
                high = low + rand.choice((0, 1, 2, 3, 9, 95))
                text += f"-{high:0{rand.choice((0, width))}d}"
            ranges.append(text)
        return f"[{','.join(ranges)}]"

    def item():
        name = rand.choice(("n", "node", "gpu-a", "c1-", "rack_", "x.y", "n0", "", "r7n"))
        brackets = rand.choice((0, 1, 1, 1, 1, 2, 2, 3))
        if not brackets:
            return (name or "n") + rand.choice(("", "1", "007", "12", "-login"))
        return name + "".join(rand.choice(("", "b", "-")) * (number > 0) + bracket() for number in range(brackets))

    lists = []
    while len(lists) < count:
        text = ",".join(item() for _ in range(rand.choice((1, 1, 2, 3, 8))))
        if size(text) <= 65536:
            lists.append(text)
    return lists


def size(text):
    """At most so many names; both stop at bounds of their own."""
    total, times = 0, 1
    for part in text.replace("[", " [").replace("]", "] ").split():
        if part.startswith("["):
            pairs = [one.split("-") for one in part[1:-1].split(",")]
            times *= sum(int(pair[-1]) - int(pair[0]) + 1 for pair in pairs)
        if part.startswith(","):
            total, times = total + times, 1
    return total + times


@pytest.fixture
def theirs(tmp_path):
    config = tmp_path / "slurm.conf"
    config.write_text("ClusterName=none\nSlurmctldHost=none\n")
    env = {"SLURM_CONF": str(config), "PATH": "/usr/bin:/bin"}

    def one(text):
        done = subprocess.run(["scontrol", "show", "hostnames", text], env=env, capture_output=True, text=True,
                              timeout=60, check=True)
        return done.stdout.splitlines()

    def ask(lists):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(pool.map(one, lists))
    return ask


def ours(lists):
    done = subprocess.run([DUMP], input="".join(text + "\n" for text in lists), capture_output=True, text=True,
                          timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_corpus_of_500(theirs):
    lists = generated()
    assert len(lists) == 500 and sum(text.count("[") > 1 for text in lists) > 150
    names = theirs(lists)
    assert sum(map(len, names)) > 100_000
    for text, their, our in zip(lists, names, ours(lists), strict=True):
        assert our == their, text


def test_every_odd_form(theirs):
    for text, their, our in zip(FORMS, theirs(FORMS), ours(FORMS), strict=True):
        assert our == their != [], text
    for text, their, our in zip(REFUSED, theirs(REFUSED), ours(REFUSED), strict=True):
        assert (their, our) == ([], None), text


def test_where_we_differ(theirs):
    for text, their, our in zip(DIFFERENT, theirs(DIFFERENT), ours(DIFFERENT), strict=True):
        assert (their, our) == DIFFERENT[text], text
