"""Slurm jobs whose nodes die, whose ranks fail, or that a user stops: real Slurm on our hosts.

LOCKSTEP_SLURM_CUTS and LOCKSTEP_SLURM_FAILURES set how many nodes lose power and how many ranks fail (CI: few).
"""
import collections
import json
import os
import random
import re
import signal
import subprocess

import pytest

from harness import SCRIPTS, WORKER, until
from slurm_cluster import SlurmCluster

CUTS = int(os.environ.get("LOCKSTEP_SLURM_CUTS", "2"))
FAILURES = int(os.environ.get("LOCKSTEP_SLURM_FAILURES", "4"))
SEED = int(os.environ.get("LOCKSTEP_SLURM_SEED", "1"))
TRAINING = SCRIPTS / "ddp_training.py"


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 4)
    yield made
    made.close()


class Job:
    """A job that is submitted and followed, and the records in its folder."""

    def __init__(self, cluster, *words, env=None):
        self.cluster = cluster
        self.running = cluster.start("submit", "--follow", "--env=LOGLEVEL=INFO", *words, env=env)
        self.number = until(lambda: re.search(r"Submitted batch job (\d+)\n", self.running.out()), 60,
                            "it is submitted")[1]

    def state(self):
        """Its state.json; the job book knows the folder."""
        for path in (self.cluster.home / ".local/state/lockstep/slurm").glob("*/state.json"):
            state = json.loads(path.read_text())
            if state["job"] == self.number:
                return {**state, "folder": path.parent}
        return {"state": "none"}

    def stuck(self):
        """Returns the job's output and the connections of its ranks, for messages."""
        return self.running.out()[-3000:] + "".join(
            f"\n{node} {pid} {name}\n" + "".join(open(f"/proc/{pid}/net/tcp").readlines())
            for node in self.cluster.nodes if node.up for pid, name in node.processes().items() if "python" in name)

    def has_spares(self, count):
        """A spare that has not come yet when the first node dies is none."""
        until(lambda: self.running.out().count("this one is a spare") >= count, 60, "the spares wait")

    def first_node(self):
        return next(node for node in self.cluster.nodes if node.name == self.state()["host"])

    def said_in_ranks(self):
        """Returns line -> count of the ranks' own lines in all attempts."""
        files = self.state()["folder"].glob("ranks/*/*/*/stdout.log")
        return collections.Counter(line for path in files for line in path.read_text().splitlines())

    def said_in_output(self):
        lines = (self.cluster.work / f"slurm-{self.number}.out").read_text().splitlines()
        return collections.Counter(re.sub(r"^\[rank\d+\]: ", "", line) for line in lines)

    def is_over_in_slurm(self, *states):
        until(lambda: self.cluster.job(self.number)["JobState"] in states, 60,
              f"{self.number} is over, but {self.cluster.job(self.number).get('JobState')}")


class Training:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def words(self, pause=0.1):
        return "--env=OMP_NUM_THREADS=1", "--", TRAINING, self.folder, pause

    def starts(self):
        path = self.folder / "starts"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def checkpoint(self):
        import torch
        path = self.folder / "checkpoint"
        return torch.load(path) if path.exists() else {"step": 0}

    def is_beyond(self, step):
        until(lambda: self.checkpoint()["step"] > step, 90, f"a step after {step}, but {self.starts()}")

    def finish(self):
        (self.folder / "finish").touch()


def expected_total(steps, world):
    code = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import ddp_training; " \
           f"print(ddp_training.expected({steps}, {world}))"
    return float(subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=True).stdout)


# --- nodes lose power

def power_cut(cluster, folder, chosen):
    """One of two training nodes loses power, and the spare replaces it. chosen: picks it from the job's nodes."""
    training = Training(folder)
    job = Job(cluster, "-N2", "--spare", "1", "-t10", *training.words())
    job.has_spares(1)
    training.is_beyond(5)
    nodes = {node.name: node for node in cluster.nodes}
    first, others = job.first_node(), [nodes[name] for name in training.starts()[0]["hosts"]]
    dead = first if chosen == "first" else random.Random(chosen).choice(sorted({first, *others}, key=str))
    trained = dead in others
    step = training.checkpoint()["step"]
    cluster.power_cut(dead)
    if trained:
        try:
            until(lambda: len(training.starts()) > 1, 180, f"it goes on without {dead}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{job.stuck()}") from None
        assert training.starts()[1]["step"] >= step, "it has not gone on from its checkpoint"
    training.is_beyond(training.checkpoint()["step"] + 5)
    training.finish()
    ended = job.running.wait(120)
    assert ended.rc == 0, ended
    final = training.checkpoint()
    assert final["total"] == pytest.approx(expected_total(final["step"], 2), abs=2e-3)
    return job, dead, ended, dead is first


def test_the_first_node_loses_power(cluster, tmp_path):
    """The batch script, srun and the rendezvous' host die with it, and Slurm goes on showing the job as running."""
    job, dead, ended, _ = power_cut(cluster, tmp_path / "training", "first")
    state = job.state()
    assert (state["state"], state["cause"], state["code"]) == ("ended", "success", 0)
    assert state["host"] != dead.name
    assert f"{dead.name}, where the script of job {job.number} ran, is gone; {state['host']} speaks for the job now" \
        in ended.out, ended
    # The followed output, the job's file and the ranks' own agree, but for what died with the node.
    said, ranks = job.said_in_output(), job.said_in_ranks()
    missing = {line: count for line, count in ranks.items() if said[line] < count}
    twice = {line: count for line, count in said.items() if 0 < ranks[line] < count}
    assert not missing and not twice, (missing, twice, ended)
    # The job does not hold nodes until its time limit, and other commands show the true end.
    job.is_over_in_slurm("CANCELLED")
    assert cluster.run("wait", job.number).rc == 0
    listed = json.loads(cluster.run("jobs", "--json").out)["jobs"][0]
    assert (listed["state"], listed["code"]) == ("succeeded", 0)


def test_nodes_that_lose_power(cluster, tmp_path):
    for draw in range(CUTS):
        job, dead, _, first = power_cut(cluster, tmp_path / str(draw), f"{SEED} {draw}")
        print(f"draw {draw}: {dead}{', the first node' if first else ''}, {job.state()['cause']}", flush=True)
        cluster.power_on(dead)
        cluster.ready()


def test_the_first_node_dies_and_then_a_rank_fails(cluster, tmp_path):
    job = Job(cluster, "-N2", "--spare", "1", "--max-restarts", "0", "-t10", "--", "--no-python", WORKER,
              f"touch={tmp_path}", f"wait={tmp_path}/go", "@1", "exit=7")
    until(lambda: len(list(tmp_path.glob("[01]"))) == 2, 60, "both ranks run")
    job.has_spares(1)
    dead = job.first_node()
    cluster.power_cut(dead)
    until(lambda: job.state()["host"] != dead.name, 60, "another node speaks for it")
    (tmp_path / "go").touch()
    ended = job.running.wait(90)
    assert ended.rc == 7, ended
    assert re.search(r"worker: rank 1 on node\d exited with 7", ended.out), ended
    assert cluster.run("wait", job.number).rc == 7
    job.is_over_in_slurm("CANCELLED")


def test_the_first_node_dies_and_then_the_time_limit_comes(cluster, tmp_path):
    """Slurm's signal before the limit goes to the script alone, and that is gone."""
    job = Job(cluster, "-N2", "--spare", "1", "-t10", "--", "--no-python", WORKER, f"touch={tmp_path}", "pause")
    runs(job, tmp_path)
    job.has_spares(1)
    dead = job.first_node()
    lead = job.state()["lead_s"]
    cluster.power_cut(dead)
    # The shortest limit that is not near yet.
    cluster.slurm("scontrol", "update", f"JobId={job.number}", "TimeLimit=2")
    until(lambda: job.state()["host"] != dead.name, 60, "another node speaks for it")
    ended = job.running.wait(120)
    assert ended.rc == 124 and job.state()["cause"] == "time limit", ended
    state = job.state()
    assert 60 < lead < 120 and state["ended_ms"] - state["started_ms"] < 120_000, state
    job.is_over_in_slurm("CANCELLED")


def test_the_first_two_nodes_die_one_after_the_other(cluster, tmp_path):
    training = Training(tmp_path / "training")
    job = Job(cluster, "-N2", "--spare", "2", "-t10", *training.words())
    job.has_spares(2)
    for _ in range(2):
        training.is_beyond(training.checkpoint()["step"] + 3)
        dead = job.first_node()
        cluster.power_cut(dead)
        until(lambda dead=dead: job.state()["host"] != dead.name, 60, "another node speaks for it")
    training.is_beyond(training.checkpoint()["step"] + 3)
    training.finish()
    ended = job.running.wait(120)
    assert ended.rc == 0, ended
    final = training.checkpoint()
    assert final["total"] == pytest.approx(expected_total(final["step"], 2), abs=2e-3)
    # The first of the two may die before its own words are in the output.
    assert 1 <= ended.out.count("speaks for the job now") <= 2, ended


def test_the_ranks_are_stopped_before_the_limit_although_the_first_node_is_gone(cluster, tmp_path):
    """Slurm would signal only the dead batch step, so the deputy asks Slurm for the end time."""
    job = Job(cluster, "-N2", "--spare", "1", "-t30", "--", "--no-python", "/bin/sh", "-c",
              f'trap "touch {tmp_path}/$RANK.saved; exit 0" TERM; touch {tmp_path}/$RANK; while :; do sleep 0.1; done')
    runs(job, tmp_path)
    job.has_spares(1)
    cluster.power_cut(job.first_node())
    cluster.slurm("scontrol", "update", f"JobId={job.number}", "TimeLimit=3")
    until(lambda: "speaks for the job now" in job.running.out(), 60, "another node speaks for it")
    for path in tmp_path.glob("*.saved"):
        path.unlink()  # by those that began anew
    until(lambda: len(list(tmp_path.glob("*.saved"))) == 2, 120, f"both ranks save; {job.running.out()[-2000:]}")
    ended = job.running.wait(90)
    assert ended.rc == 124, ended
    assert (job.state()["cause"], job.state()["code"]) == ("time limit", 124)
    job.is_over_in_slurm("CANCELLED")


def test_without_a_spare_the_job_is_queued_again_without_the_first_node(cluster, tmp_path):
    training = Training(tmp_path / "training")
    job = Job(cluster, "-N2", "-t30", "--requeue", *training.words())
    training.is_beyond(3)
    dead = job.first_node()
    cluster.power_cut(dead)
    until(lambda: len(training.starts()) > 1, 240, "it runs again")
    second = training.starts()[1]
    assert second["step"] >= 3 and dead.name not in second["hosts"], second
    training.finish()
    ended = job.running.wait(120)
    assert ended.rc == 0, ended
    assert job.state()["earlier"] == ["node lost"]


# --- ranks fail

def test_the_rank_that_fails_is_named_and_its_code_returned(cluster):
    """The other ranks are stopped, or die of the failure themselves."""
    chosen = random.Random(SEED)
    for draw in range(FAILURES):
        rank = chosen.randrange(4)
        if draw % 2:
            number = chosen.choice([1, 2, 6, 9, 11, 13, 15])
            action, code = f"raise={signal.Signals(number).name[3:]}", 128 + number
            how = f"was killed by signal {number}"
        else:
            code = chosen.randrange(1, 126)
            action, how = f"exit={code}", f"exited with {code}"
        job = Job(cluster, "-N2", "--ntasks-per-node=2", "-t5", "--", "--no-python", WORKER, f"@{rank}", action,
                  "@*", "pause")
        ended = job.running.wait(90)
        assert ended.rc == code, (rank, action, ended)
        words = rf"job {job.number}: worker: rank {rank} on node{1 + rank // 2} {how}(: |$)"
        assert re.search(words, ended.out, re.M), ended
        job.is_over_in_slurm("FAILED")
        assert cluster.job(job.number)["ExitCode"] == f"{code}:0"
        print(f"draw {draw}: rank {rank} {how}", flush=True)


# --- a user or an event stops the job, or holds it up

def runs(job, folder, count=2):
    until(lambda: len(list(folder.glob("[0-9]"))) == count, 60, f"all ranks run; {job.running.err()[-2000:]}")


def test_a_job_that_its_user_cancels_is_not_queued_again(cluster, tmp_path):
    job = Job(cluster, "-N2", "-t5", "--requeue", "--", "--no-python", WORKER, f"touch={tmp_path}", "pause")
    runs(job, tmp_path)
    cluster.slurm("scancel", job.number)
    ended = job.running.wait(60)
    assert ended.rc == 143, ended
    job.is_over_in_slurm("CANCELLED")
    assert cluster.job(job.number)["Restarts"] == "0"
    assert job.state()["cause"] == "stopped"
    assert cluster.run("wait", job.number).rc == 143


def test_the_controller_is_away_while_a_job_is_followed(cluster, tmp_path):
    job = Job(cluster, "-N2", "-t10", "--", "--no-python", WORKER, f"touch={tmp_path}", f"wait={tmp_path}/say",
              "out=still there\\n", f"touch={tmp_path}/said", f"wait={tmp_path}/go")
    (tmp_path / "said").mkdir()
    runs(job, tmp_path)
    cluster.stop_controller()

    def said():
        assert job.running.process.poll() is None, job.running.err()
        return "Slurm does not answer" in job.running.err() and "the job goes on" in job.running.err()
    # It asks every 15 s at most, a question may be on its way for 10 s, and squeue tries for 9 s. Load adds to that.
    until(said, 120, "the follower says so")
    (tmp_path / "say").touch()
    runs(job, tmp_path / "said")
    until(lambda: job.running.out().count("still there") == 2, 30, "the output goes on")
    cluster.start_controller()
    until(lambda: "Slurm answers again" in job.running.err(), 120, "the follower says so")
    (tmp_path / "go").touch()
    assert job.running.wait(90).rc == 0


def test_a_node_whose_check_fails_holds_the_job_and_the_follower_says_so(cluster, tmp_path):
    cluster.bad_prolog(cluster.nodes[1])
    job = Job(cluster, "-N2", "-w", "node1,node2", "-t5", "--", "--no-python", WORKER, f"touch={tmp_path}")
    until(lambda: f"lockstep why {job.number} explains the reason" in job.running.err() and
          "launch failed requeued held" in job.running.err().replace("_", " "), 90, job.running.err())
    assert "node2" in cluster.run("why", job.number).out
    cluster.slurm("scontrol", "update", f"JobId={job.number}", "NodeList=", "ExcNodeList=node2")
    cluster.slurm("scontrol", "release", job.number)
    assert job.running.wait(90).rc == 0


@pytest.fixture
def patient(hosts):
    """A cluster whose credentials are valid for two minutes, as by default."""
    made = SlurmCluster(hosts, 2, cred_expire=120)
    yield made
    made.close()


def test_a_node_that_starts_late_is_waited_for_and_named(patient, tmp_path):
    """Its slurmd hangs: srun has started the other agent, which waits; nothing is given up."""
    cluster, late = patient, patient.nodes[1]
    for pid, name in late.processes().items():
        if name == "slurmd":
            late.freeze(pid)
            frozen = pid
    job = Job(cluster, "-N2", "-w", "node1,node2", "-t5", "--binary=shared", "--", "--no-python", WORKER,
              f"touch={tmp_path}")
    try:
        until(lambda: re.search(r"waiting for \d+ s: .*1 of 2 nodes", job.running.out()), 60, job.running.out())
        assert job.running.process.poll() is None
    finally:
        late.thaw(frozen)
    ended = job.running.wait(90)
    assert ended.rc == 0 and len(list(tmp_path.glob("[01]"))) == 2, ended


def test_a_follower_that_is_killed_and_another_one(cluster, tmp_path):
    job = Job(cluster, "-N2", "-t5", "--", "--no-python", WORKER, f"touch={tmp_path}", "lines=200",
              f"wait={tmp_path}/go", "lines=300")
    runs(job, tmp_path)
    until(lambda: job.running.out().count("\n") > 100, 30, "it prints")
    os.kill(job.running.process.pid, signal.SIGKILL)
    job.running.process.wait(10)
    again = cluster.start("logs", "-f", job.number)
    (tmp_path / "go").touch()
    ended = again.wait(90)
    assert ended.rc == 0, ended
    whole = (cluster.work / f"slurm-{job.number}.out").read_text()
    assert ended.out == whole and sum("[rank" in line for line in whole.splitlines()) == 1000
    # The follower goes on where the other one was, whose output is the beginning of the same bytes.
    printed = job.running.out().split("\n", 1)[1]
    assert whole.startswith(printed)


def test_a_job_number_that_slurm_has_given_to_another_job(hosts, tmp_path):
    cluster = SlurmCluster(hosts, 1, extra=["FirstJobId=2", "MaxJobId=5", "MinJobAge=2"])
    try:
        job = Job(cluster, "-N1", "-t5", "--", "--no-python", WORKER, "exit=0")
        assert job.running.wait(90).rc == 0

        def other():
            told = cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "exit 9", check=False)
            return told.out.strip() == job.number
        until(other, 90, f"another job is {job.number}")
        until(lambda: cluster.job(job.number).get("JobState") == "FAILED", 30, "it has failed")
        assert cluster.run("wait", job.number).rc == 0
        (listed,) = json.loads(cluster.run("jobs", "--json").out)["jobs"]
        assert (listed["state"], listed["code"]) == ("succeeded", 0)
    finally:
        cluster.close()
