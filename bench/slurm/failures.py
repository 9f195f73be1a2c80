#!/usr/bin/python3
"""Ranks of a job on real Slurm fail (tests/integration/slurm_cluster.py): of four ranks on two nodes one exits with
some code or dies of some signal. The others notice that its connection is closed (a pipe that they read from) and exit
with 1 a tenth of a second later, which a Python takes for its traceback at least. How often the job's exit code is that
of the rank that failed first, and how often the launcher names that rank as what failed first, beside `srun -K` and
`srun -K torchrun`. Prints markdown.

  failures.py [DRAWS]"""
import os
import pathlib
import random
import re
import signal
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import harness  # noqa: E402
import hosts as several_hosts  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402

SEED = 1
# As every recipe has it: the first node's name, a port; -r and -t keep Debian's torchrun 1.13 from a bug of its own.
TORCHRUN = """head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun -K --ntasks-per-node=1 -n2 torchrun --nnodes 2 --nproc_per_node 2 --rdzv_backend c10d --rdzv_id $SLURM_JOB_ID \\
  --rdzv_endpoint $head:29511 -r 9:1 -t 9:1 --no_python {worker}"""
SRUN = "srun -K -n4 --ntasks-per-node=2 sh -c 'RANK=$SLURM_PROCID exec {worker}'"
# FOLDER CULPRIT HOW
RANK = """#!/bin/sh
cd "$1"
if [ "$RANK" = "$2" ]; then
  exec 3<>connection
  while [ "$(ls | grep -c '^[0-3]$')" -lt 3 ]; do sleep 0.1; done
  case $3 in exit=*) exit "${3#exit=}" ;; *) kill -"${3#raise=}" $$ ;; esac
fi
exec 4<connection
: > "$RANK"
read nothing <&4
sleep 0.1
exit 1
"""


def draws(count):
    """(rank, action of the worker, exit code), half of them signals."""
    chosen = random.Random(SEED)
    for draw in range(count):
        rank = chosen.randrange(4)
        if draw % 2:
            number = chosen.choice([1, 2, 6, 9, 11, 13, 15])
            yield rank, f"raise={signal.Signals(number).name[3:]}", 128 + number
        else:
            code = chosen.randrange(1, 126)
            yield rank, f"exit={code}", code


def worker(cluster, name, rank, action):
    """What every rank runs, and its folder."""
    folder = cluster.work / name
    folder.mkdir()
    os.mkfifo(folder / "connection")
    return folder, [str(cluster.script("rank.sh", RANK)), str(folder), str(rank), action]


def by_sbatch(cluster, name, step, rank, action):
    """The code that the script has from its step, and all that is in its output."""
    folder, words = worker(cluster, name, rank, action)
    script = cluster.script(f"{name}.sh", f"#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=2 -t5 -o {folder}/out\n"
                                          f"{step.format(worker=' '.join(words))}\n" 'echo "the code is $?"\n')
    number = cluster.slurm("sbatch", "--parsable", script).out.strip()
    output = folder / "out"
    harness.until(lambda: output.exists() and "the code is" in output.read_text(), 240, f"{name} is over")
    harness.until(lambda: cluster.job(number)["JobState"] == "COMPLETED", 60, f"{number} is over")
    text = output.read_text()
    return int(re.search(r"^the code is (\d+)", text, re.M)[1]), text


def srun(cluster, name, rank, action):
    code, text = by_sbatch(cluster, name, SRUN, rank, action)
    first = re.search(r"^srun: error: (?:\S+: )?tasks? ([\d,-]+): (?!Terminated)", text, re.M)
    return code, first is not None and first[1] == str(rank)


def torchrun(cluster, name, rank, action):
    code, text = by_sbatch(cluster, name, TORCHRUN, rank, action)
    roots = re.findall(r"^\s*Root Cause .*\n\[\d+\]:\n.*\n.*\n\s*rank +: (\d+)", text, re.M)
    return code, set(roots) == {str(rank)}


def lockstep(cluster, name, rank, action):
    _, words = worker(cluster, name, rank, action)
    ended = cluster.run("submit", "--follow", "-N2", "--ntasks-per-node=2", "-t5", "--", "--no-python", *words)
    named = re.findall(r": worker: rank (\d+) on node\d ", ended.out)
    return ended.rc, named == [str(rank)]


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    tallies = {each: [0, 0, 0] for each in (lockstep, srun, torchrun)}
    with tempfile.TemporaryDirectory() as folder:
        starter = harness.Lockstep(pathlib.Path(folder))
        hosts = several_hosts.Hosts(starter)
        cluster = SlurmCluster(hosts, 2)
        try:
            for number, (rank, action, expected) in enumerate(draws(count)):
                for launch, tally in tallies.items():
                    code, named = launch(cluster, f"{launch.__name__}{number}", rank, action)
                    print(f"{launch.__name__}: rank {rank} {action}: {code}, {'named' if named else 'not named'}",
                          file=sys.stderr, flush=True)
                    tally[0] += code == expected
                    tally[1] += named
                    tally[2] += code == expected and named
        finally:
            cluster.close()
            hosts.close()
            starter.close()
    print(f"| one of 4 ranks on 2 nodes fails, {count} draws | its code returned | it is what failed first "
          "| both | goal |\n|---|---|---|---|---|")
    for what, launch, goal in (("lockstep submit", lockstep, f"{count} of {count}"), ("srun -K", srun, ""),
                               ("srun -K torchrun 1.13", torchrun, "")):
        print(f"| {what} | " + " | ".join(f"{each} of {count}" for each in tallies[launch]) + f" | {goal} |")


main()
