"""PyTorch 2.14's own torchrun, asked what it has: its options, and what it gives to a worker."""
import json
import pathlib
import re
import subprocess

import pytest

import test_options_differential as model
from harness import SCRIPTS, SUPPORT, peer

AID = {"PYTHONPATH": SUPPORT / "torch-2.6", "OMP_NUM_THREADS": 1}

# Every action of its parser, as what the model in test_options_differential.py says about one.
TABLE = """
import json
from torch.distributed.run import get_args_parser
print(json.dumps([dict(names=sorted(a.option_strings), type=getattr(a.type, "__name__", None), nargs=a.nargs,
                       choices=a.choices and list(a.choices), default=a.default)
                  for a in get_args_parser()._actions]))
"""


def of_argparse(action):
    """What counts of one action; --numa-binding's choices are an enum there."""
    choices = action["choices"] and [str(choice) for choice in action["choices"]]
    return tuple(action["names"]), action["type"] if action["type"] in ("int", "float") else None, action["nargs"], \
        choices and tuple(choices)


def test_options(lockstep):
    done = subprocess.run([peer("2.14"), "-c", TABLE], capture_output=True, text=True, timeout=120,
                          env=lockstep.environment(AID))
    assert done.returncode == 0, done.stderr
    theirs = {of_argparse(action) for action in json.loads(done.stdout)}
    ours = {of_argparse(dict(names=sorted(a.option_strings), type=getattr(a.type, "__name__", None), nargs=a.nargs,
                             choices=a.choices and list(a.choices))) for a in model.reference_parser({})._actions}
    assert ours == theirs, (ours - theirs, theirs - ours)


def environment_of(lockstep, *args, program):
    """What a worker sees in its environment beyond what its launcher was given."""
    given = {"PYTHON_EXEC": peer("2.14"), **AID} if program is None else {
        "PEER_PROGRAM": "/usr/bin/torchrun", "PYTHON_EXEC": None, **AID}
    ended = lockstep.run("--standalone", "--nproc-per-node", 2, "--max-restarts", 3, *args, SCRIPTS / "show.py",
                         env=given, timeout=120, **({} if program is None else {"program": program}))
    assert ended.rc == 0, str(ended)
    workers = [json.loads(line)["env"] for line in ended.out.splitlines() if line.startswith("{")]
    return sorted(workers, key=lambda env: env["RANK"])


OWN = re.compile("LOCKSTEP_|PEER_|PYTHON_EXEC$|TMPDIR$|HOME$|PWD$|OLDPWD$|_$|SHLVL$")
DIFFER = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"}


@pytest.mark.parametrize("args", [(), ("--role", "trainer", "--signals-to-handle", "SIGTERM", "--virtual-local-rank")],
                         ids=["plain", "more"])
def test_environment_of_a_worker(lockstep, args):
    theirs = environment_of(lockstep, *args, program=(peer("2.14"),))
    ours = environment_of(lockstep, *args, program=None)
    assert len(ours) == len(theirs) == 2
    for our, their in zip(ours, theirs):
        our, their = ({name: value for name, value in env.items() if not OWN.match(name)} for env in (our, their))
        assert set(our) == set(their)
        assert {name for name in our if our[name] != their[name]} <= DIFFER
        assert pathlib.Path(our["TORCHELASTIC_ERROR_FILE"]).parts[-3:] == \
            pathlib.Path(their["TORCHELASTIC_ERROR_FILE"]).parts[-3:]
