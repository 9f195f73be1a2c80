"""Jobs on a real Slurm whose nodes are namespaces of this machine: how long until a rank speaks, and what is near it.

  LOCKSTEP_BUILD=build/release python3 bench/slurm/run.py [lists] [check] [writers] [first]    (TRIES=9, MB=2000)
"""
import os
import pathlib
import random
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
# The moment at which Slurm starts it, on each of its nodes.
PROLOG = """#!/bin/sh
date +%s.%N >>{folder}/started
"""
# What the layouts of before say. Debian's torchrun 1.13 fails in Python 3.11 without values for -r and -t.
DIRECT = """#!/bin/sh
#SBATCH -N2 --ntasks-per-node=2 -t 5
srun {python} -u {script}
"""
TORCHRUN = """#!/bin/sh
#SBATCH -N2 --ntasks-per-node=1 -t 5
srun {python} -u -m torch.distributed.run -r 9:1 -t 9:1 --nnodes 2 --nproc_per_node 2 --rdzv_backend c10d \\
  --rdzv_endpoint {host}:{port} --rdzv_id $SLURM_JOB_ID {script}
"""
BESIDE = {"direct": "srun python", "torchrun": "srun torchrun"}


def row(what, ours, beside, ratio, goal):
    print(f"| {what} | {ours} | {beside} | {ratio} | {goal} |", flush=True)


def seconds_text(values):
    return f"{statistics.median(values):.3f} s ({min(values):.3f} to {max(values):.3f})"


class FirstLine:
    """From the moment when Slurm starts a job that it has taken until the first line of a rank is in the job's output.

    Slurm looks at its queue about once a second, and each job would be handed in a moment after the end of the one
    before: whichever follows a slow one would find a short rest of that second. So all begin at any moment of it, and
    what is compared is the time from Slurm's start on, which is the prolog on the first of the job's nodes.
    """

    def __init__(self, cluster):
        self.cluster = cluster
        folder = cluster.folder / "bin"
        folder.mkdir()
        (folder / "sbatch").write_text(SBATCH.format(folder=folder))
        (folder / "sbatch").chmod(0o755)
        self.taken = folder / "taken"
        self.started = folder / "started"
        prolog = cluster.folder / "etc/prolog"
        prolog.write_text(PROLOG.format(folder=folder))
        self.env = {"PATH": f"{folder}:{cluster.env['PATH']}", "PYTHON_EXEC": PYTHON}
        self.script = cluster.script("first.py", "import sys\nprint('first line', flush=True)\n")
        self.tries = 0
        self.random = random.Random(1)
        self.told = {}

    def of(self, layout, *command, program):
        self.tries += 1
        time.sleep(self.random.random())
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
                started = min(map(float, self.started.read_text().split()))
                self.started.unlink()
                taken = float(self.taken.read_text())
                self.told.setdefault(layout, []).append((spoke - started, started - taken))
                return
            time.sleep(0.002)
        raise TimeoutError(f"job {found[1]} says nothing: {output.read_text() if output.exists() else ''}")

    def over(self, job):
        harness.until(lambda: self.cluster.job(job).get("JobState") == "COMPLETED", 60, f"job {job} is done")
        self.cluster.ready()

    def ours(self, layout, *options):
        self.of(layout, "submit", "-N2", "--ntasks-per-node=2", "-t", "5", *options, "--", self.script,
                program=(BUILD / "lockstep",))

    def theirs(self, layout, text):
        # A port of its own for each try: the last one's may still be taken.
        script = self.cluster.script("job.sh", text.format(python=PYTHON, script=self.script, port=20000 + self.tries,
                                                           host=self.cluster.nodes[0].name))
        self.of(layout, script, program=("sbatch",))

    def all(self, number):
        self.ours("shared", "--preflight", "quick", "--binary", "shared")
        self.theirs("direct", DIRECT)
        self.ours("sbcast", "--preflight", "quick", "--binary", "sbcast")
        if number % 3 == 0:
            self.ours("full", "--preflight", "full", "--binary", "shared")
            self.theirs("torchrun", TORCHRUN)

    def tell(self, what, layout, beside, goal=""):
        ours, other = ([spoke for spoke, _ in self.told[name]] for name in (layout, beside))
        more = statistics.median(ours) - statistics.median(other)
        row(what, seconds_text(ours), f"{BESIDE[beside]} {seconds_text(other)}", f"{more:+.3f} s", goal)


def first_lines(cluster):
    first = FirstLine(cluster)
    first.all(0)  # caches
    first.told.clear()
    for number in range(TRIES):
        first.all(number)
    ours, others = ([wait for name, told in first.told.items() if (name in BESIDE) == beside for _, wait in told]
                    for beside in (False, True))
    row("sbatch took the job → Slurm starts it", seconds_text(ours), f"the others {seconds_text(others)}", "", "")
    first.tell("Slurm starts the job → first line of a rank, 2 nodes of 2 ranks, home shared", "shared", "direct",
               "at most +0.3 s")
    first.tell("the same, the binary by sbcast", "sbcast", "direct", "at most +0.3 s")
    first.tell("the same, home shared", "shared", "torchrun")
    first.tell("the same, with the whole pre-flight, which imports PyTorch", "full", "direct")
    first.tell("the same", "full", "torchrun")


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


def writers(cluster):
    writers_of_an_agent()
    writers_of_a_job(cluster)


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
    wanted = sys.argv[1:] or ("lists", "check", "writers", "first")
    with tempfile.TemporaryDirectory(prefix="bench_slurm_") as folder:
        lockstep = harness.Lockstep(pathlib.Path(folder))
        hosts = several_hosts.Hosts(lockstep)
        try:
            print("| what | measured | beside it | | goal |\n|---|---|---|---|---|")
            if "lists" in wanted:
                node_list()
            cluster = SlurmCluster(hosts, 2, cpus=WRITERS // 2)
            for part, measure in {"check": check_time, "writers": writers, "first": first_lines}.items():
                if part in wanted:
                    measure(cluster)
            cluster.close()
        finally:
            hosts.close()


if __name__ == "__main__":
    main()
