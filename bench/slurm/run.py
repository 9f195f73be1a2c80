"""Jobs on a real Slurm whose nodes are namespaces of this machine: how long until a rank speaks, and what is near it.

  LOCKSTEP_BUILD=build/release python3 bench/slurm/run.py [first [torchrun]]    (TRIES=9, MB=2000)
"""
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

import harness  # noqa: E402
import hosts as several_hosts  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402

TRIES = int(os.environ.get("TRIES", "9"))
BYTES = int(os.environ.get("MB", "2000")) * 1_000_000  # of the writers
WRITERS, LINES = 64, 2000
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", "build/release")).resolve()
PYTHON = "/usr/bin/python3"
# The moment at which Slurm has taken a job, whoever calls sbatch.
SBATCH = """#!/bin/sh
/usr/bin/sbatch "$@"; code=$?
date +%s.%N >{folder}/taken
exit $code
"""
# What the layouts of before say. A port of its own for each try: the last one's may still be taken.
DIRECT = """#!/bin/sh
#SBATCH -N2 --ntasks-per-node=2 -t 5
srun {python} -u {script}
"""
TORCHRUN = """#!/bin/sh
#SBATCH -N2 --ntasks-per-node=1 -t 5
srun {python} -u -m torch.distributed.run --nnodes 2 --nproc_per_node 2 --rdzv_backend c10d \\
  --rdzv_endpoint {host}:{port} --rdzv_id $SLURM_JOB_ID {script}
"""


def row(what, ours, beside, ratio, goal):
    print(f"| {what} | {ours} | {beside} | {ratio} | {goal} |", flush=True)


def seconds_text(values):
    return f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"


class FirstLine:
    """From the moment when sbatch has taken the job until the first line of a rank is in the job's output."""

    def __init__(self, cluster):
        self.cluster = cluster
        folder = cluster.folder / "bin"
        folder.mkdir()
        (folder / "sbatch").write_text(SBATCH.format(folder=folder))
        (folder / "sbatch").chmod(0o755)
        self.taken = folder / "taken"
        self.env = {"PATH": f"{folder}:{cluster.env['PATH']}", "PYTHON_EXEC": PYTHON}
        self.script = cluster.script("first.py", "import sys\nprint('first line', flush=True)\n")
        help_text = subprocess.run([BUILD / "lockstep", "submit", "--help"], capture_output=True, text=True,
                                   check=True).stdout
        self.quick = ("--preflight", "quick") if "--preflight" in help_text else ()
        self.tries = 0

    def of(self, *command, program):
        ended = self.cluster.run(*command, program=program, env=self.env)
        found = re.search(r"Submitted batch job (\d+)", ended.out)
        assert found, ended
        output = self.cluster.work / f"slurm-{found[1]}.out"
        limit = time.monotonic() + 120
        while time.monotonic() < limit:
            if output.exists() and "first line" in output.read_text():
                # The very moment: later lines come within it.
                spoke = time.time()
                self.over(found[1])
                return spoke - float(self.taken.read_text())
            time.sleep(0.005)
        raise TimeoutError(f"job {found[1]} says nothing: {output.read_text() if output.exists() else ''}")

    def over(self, job):
        harness.until(lambda: self.cluster.job(job).get("JobState") == "COMPLETED", 60, f"job {job} is done")
        self.cluster.ready()

    def ours(self):
        return self.of("submit", "-N2", "--ntasks-per-node=2", "-t", "5", *self.quick, "--", self.script,
                       program=(BUILD / "lockstep",))

    def script_of(self, text):
        self.tries += 1
        return self.cluster.script("job.sh", text.format(python=PYTHON, script=self.script, port=20000 + self.tries,
                                                         host=self.cluster.nodes[0].name))

    def direct(self):
        return self.of(self.script_of(DIRECT), program=("sbatch",))

    def torchrun(self):
        return self.of(self.script_of(TORCHRUN), program=("sbatch",))


def first_lines(cluster):
    first = FirstLine(cluster)
    first.ours(), first.direct()  # caches
    taken = {"ours": [], "direct": [], "torchrun": []}
    for number in range(TRIES):
        taken["ours"].append(first.ours())
        taken["direct"].append(first.direct())
        if "torchrun" in sys.argv and number % 3 == 0:
            taken["torchrun"].append(first.torchrun())
    more = statistics.median(a - b for a, b in zip(taken["ours"], taken["direct"]))
    row("sbatch took the job → first line of a rank, 2 nodes of 2 ranks", seconds_text(taken["ours"]),
        f"srun python {seconds_text(taken['direct'])}", f"{more:+.2f} s", "at most +0.3 s")
    if taken["torchrun"]:
        row("the same", seconds_text(taken["ours"]), f"srun torchrun {seconds_text(taken['torchrun'])}",
            f"{statistics.median(taken['torchrun']) / statistics.median(taken['ours']):.1f} x", "")


def torn(text, writers):
    """Lines that are not whole, doubled, missing or in another order."""
    said, bad = {}, 0
    for line in text.splitlines():
        whole = re.fullmatch(r"\[rank(\d+)\]: (.*?)(\d+)( .*)?", line)
        if not whole or int(whole[3]) != said.get(whole[1], -1) + 1:
            bad += 1
        else:
            said[whole[1]] = int(whole[3])
    return bad + sum(LINES - 1 - said.get(str(rank), -1) for rank in range(writers))


def writers_of_a_job(cluster):
    """64 writers on two nodes, so that two agents' lines become one file."""
    ended = cluster.run("submit", "-N2", f"--ntasks-per-node={WRITERS // 2}", "-O", "-t", "5", "--follow",
                        "--env=OMP_NUM_THREADS=1", "--",
                        "--no-python", BUILD / "tests/test_worker", f"lines={LINES}", program=(BUILD / "lockstep",),
                        timeout=120)
    job = re.search(r"Submitted batch job (\d+)", ended.out)[1]
    bad = torn((cluster.work / f"slurm-{job}.out").read_text(), WRITERS)
    row(f"{WRITERS} writers of a job on two nodes: torn, lost or moved lines of {WRITERS * LINES:,}", bad, "", "", "0")
    return bad


def writers_of_an_agent():
    """64 writers through one agent into files and one merged stream."""
    total = BYTES // WRITERS // 100 * 100 * WRITERS
    rates = []
    for _ in range(3):
        where = tempfile.mkdtemp(prefix="bench_slurm_", dir="/dev/shm")
        began = time.monotonic()
        with subprocess.Popen([BUILD / "lockstep", "run", "--nproc-per-node", str(WRITERS), "-t", "1",
                               "--log-dir", where, "--no-python", BUILD / "bench/tee/tee_writer",
                               str(total // WRITERS)],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            got = subprocess.run([BUILD / "bench/tee/tee_discard"], stdin=run.stdout, stderr=subprocess.PIPE, text=True,
                                 check=True).stderr
        took = time.monotonic() - began
        subprocess.run(["rm", "-rf", where], check=True)
        assert run.returncode == 0 and int(got) > total, (run.returncode, got)
        rates.append(total / 1e6 / took)
    row(f"{WRITERS} writers through an agent, to files and one stream", f"{statistics.median(rates):.0f} MB/s", "", "",
        "at least 500 MB/s")


def check_time(cluster):
    script = cluster.script("old.slurm", "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=1 -t 60 --gres=gpu:2\n"
                            "export MASTER_ADDR=$(hostname)\nsrun torchrun --nproc_per_node=2 train.py\n")
    taken = []
    for _ in range(TRIES + 1):
        began = time.monotonic()
        subprocess.run([BUILD / "lockstep", "check", script], env={**os.environ, "PATH": "/bin"}, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        taken.append(time.monotonic() - began)
    row("lockstep check of a script, without Slurm", f"{statistics.median(taken[1:]) * 1000:.1f} ms", "", "",
        "at most 300 ms")


def node_list():
    lists = {"n[1-65000]": "n[1-65000]", "of 65,000 single names": ",".join(f"node{i}" for i in range(65000))}
    for what, text in lists.items():
        done = subprocess.run([BUILD / "src/codec/nodelist_dump", "time"], input=f"{text}\n" * TRIES, text=True,
                              capture_output=True, check=True)
        row(f"list of nodes {what}", f"{statistics.median(map(float, done.stdout.split())):.1f} ms", "", "",
            "at most 20 ms")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the hosts go, too
    with tempfile.TemporaryDirectory(prefix="bench_slurm_") as folder:
        lockstep = harness.Lockstep(pathlib.Path(folder))
        hosts = several_hosts.Hosts(lockstep)
        try:
            print("| what | measured | beside it | | goal |\n|---|---|---|---|---|")
            node_list()
            cluster = SlurmCluster(hosts, 2, cpus=WRITERS // 2)
            check_time(cluster)
            writers_of_an_agent()
            writers_of_a_job(cluster)
            if "first" in sys.argv:  # until the first line of a rank; a minute and more on a busy machine
                first_lines(cluster)
            cluster.close()
        finally:
            hosts.close()


if __name__ == "__main__":
    main()
