"""Ways in which one rank of a training goes wrong (tests/support/workers/hang.py), and what Lockstep must say. The
tests run some kinds, bench/hangs/run.py runs all."""
import os

from harness import SCRIPTS

HANG = SCRIPTS / "hang.py"
LIGHT = SCRIPTS / "hang_light.py"
HEALTHY = SCRIPTS / "healthy.py"
STRAGGLES = SCRIPTS / "straggles.py"

# The first word of Lockstep's line about each kind. A rank that computes does not prove a hang.
HANGS = {
    "sleep": "hang", "lock": "hang", "loop": "waiting", "stop": "stopped", "vfork": "hang", "gil": "hang",
    "fifo": "hang", "loader": "hang", "skipped": "hang", "wrong": "hang", "init": "hang", "new_group": "hang",
    "fuse": "hang", "loader_fuse": "hang",
}


def line_of(kind, script=HANG):
    """Returns the place where a worker stays in this kind of hang: the line that ends with "# KIND"."""
    lines = enumerate(script.read_text().splitlines(), 1)
    (number,) = [number for number, line in lines if line.endswith(f"# {kind}")]
    return f"{script.name}:{number}"


def can_happen(kind):
    """A dead file server needs root and FUSE."""
    return not kind.endswith("fuse") or (os.getuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK))
