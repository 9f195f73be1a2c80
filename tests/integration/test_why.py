"""lockstep why: explains what Slurm says about a job, on a real Slurm cluster of hosts on this machine."""
import json
import re
import shutil

import pytest

from harness import BINARY, until
from slurm_cluster import SlurmCluster


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 2, extra=["PartitionName=short Nodes=ALL MaxTime=10 MaxNodes=1 State=UP"])
    yield made
    made.close()


def submit(cluster, *args):
    return cluster.slurm("sbatch", "--parsable", "-o", "/dev/null", *args).out.strip()


def why(cluster, job):
    ended = cluster.run("why", job)
    assert ended.rc == 0 and not ended.err, ended
    return ended.out


def facts(cluster, job):
    ended = cluster.run("why", job, "--json")
    assert ended.rc == 0, ended
    (only,) = json.loads(ended.out)["jobs"]
    return only


def refused(ended, code, *words):
    assert ended.rc == code and ended.out == "", ended
    (line,) = ended.err.splitlines()
    assert all(word in line for word in words), ended


def reason(cluster, job, word):
    until(lambda: word in cluster.job(job).get("Reason", ""), 60,
          f"{job} waits for {word}, but {cluster.job(job).get('Reason')}")


def state(cluster, job, word):
    until(lambda: cluster.job(job).get("JobState") == word, 60, f"{job} is {word}, but {cluster.job(job)}")


def test_jobs_that_wait(cluster):
    runs = submit(cluster, "-N2", "--exclusive", "-t", "10", "-J", "train", "--wrap", "sleep 600")
    state(cluster, runs, "RUNNING")
    assert "the job runs for " in why(cluster, runs) and " on node[1-2]; the time limit ends in " in why(cluster, runs)
    next_one = submit(cluster, "-N2", "-t", "5", "--gres=gpu:2", "--wrap", "true")
    until(lambda: cluster.job(next_one).get("StartTime") != "Unknown", 60, "the start is planned")
    told = facts(cluster, next_one)
    assert told["outlook"] == "starts-by-itself" and 0 < told["expected_start"] - told["submitted"] <= 700, told
    text = why(cluster, next_one)
    assert "start   expected 20" in text and re.search(
        "2 nodes, gres[:/]gpu:2 on each, time 00:05:00, partition gpu", text), text

    held = submit(cluster, "--hold", "--wrap", "true")
    assert "the owner holds the job" in why(cluster, held) and f"scontrol release {held}" in why(cluster, held)
    assert facts(cluster, held)["outlook"] == "held"

    long = submit(cluster, "-p", "short", "-t", "60", "--wrap", "true")
    reason(cluster, long, "PartitionTimeLimit")
    assert "the job asks for 01:00:00, longer than partition short allows (00:10:00 at most)" in why(cluster, long)
    wide = submit(cluster, "-p", "short", "-N2", "-t", "5", "--wrap", "true")
    reason(cluster, wide, "PartitionNodeLimit")
    assert "the job asks for 2 nodes" in why(cluster, wide) and "(1 node at most for a job)" in why(cluster, wide)
    assert facts(cluster, wide)["outlook"] == "never"

    cluster.slurm("scancel", runs)
    failed = submit(cluster, "-N1", "-t", "1", "--wrap", "exit 4")
    state(cluster, failed, "FAILED")
    assert "the script ended with code 4" in why(cluster, failed)
    assert facts(cluster, failed)["exit_code"] == 4
    # A text in place of a reason: Slurm holds the job.
    special = submit(cluster, "-N1", "-t", "1", "--wrap", "exit 5")
    state(cluster, special, "FAILED")
    cluster.slurm("scontrol", "requeuehold", "State=SpecialExit", special)
    reason(cluster, special, "job_requeued_in_held_state")
    assert "the job was queued again and is held" in why(cluster, special)
    assert facts(cluster, special)["outlook"] == "held"
    after = submit(cluster, "-d", f"afterok:{failed}", "--wrap", "true")
    reason(cluster, after, "DependencyNeverSatisfied")
    assert f"afterok:{failed}" in why(cluster, after) and f"scancel {after}" in why(cluster, after)
    assert facts(cluster, after)["outlook"] == "never"

    cancelled = submit(cluster, "--hold", "--wrap", "true")
    cluster.slurm("scancel", cancelled)
    state(cluster, cancelled, "CANCELLED")
    assert "the job was canceled" in why(cluster, cancelled)
    # Newer versions make the folder where they can.
    lost = cluster.slurm("sbatch", "--parsable", "-o", "/proc/no/folder/%j", "--wrap", "true").out.strip()
    state(cluster, lost, "FAILED")
    assert "the folder of the job's output" in why(cluster, lost) and "/proc/no/folder/" in why(cluster, lost)

    array = submit(cluster, "--array=1-3", "--hold", "--wrap", "true")
    assert facts(cluster, array)["ids"] == [f"{array}_[1-3]"]
    assert facts(cluster, f"{array}_2")["reason"] == "JobHeldUser"
    refused(cluster.run("why", f"{array}_9"), 1, f"Slurm knows no job {array}_9")

    parts = submit(cluster, "-J", "hetty", "--hold", "-N1", ":", "-N1", "--wrap", "true")
    assert facts(cluster, parts)["name"] == "hetty"


def test_a_node_whose_check_fails_is_named(cluster):
    cluster.bad_prolog(cluster.nodes[1])
    job = submit(cluster, "-w", "node2", "-N1", "--wrap", "true")
    reason(cluster, job, "launch_failed_requeued_held")
    text = why(cluster, job)
    assert "a node could not start the job" in text and "node2 (drain" in text and "Prolog error" in text, text
    assert f"ExcNodeList=node2 and scontrol release {job}" in text, text
    assert facts(cluster, job)["outlook"] == "held" and facts(cluster, job)["restarts"] == 1
    # The advice starts the job, which had insisted on the node.
    cluster.slurm("scontrol", "update", f"JobId={job}", "NodeList=", "ExcNodeList=node2")
    cluster.slurm("scontrol", "release", job)
    state(cluster, job, "COMPLETED")
    assert "the job succeeded" in why(cluster, job)


def test_jobs_that_nobody_knows_and_a_controller_that_is_away(cluster, lockstep):
    refused(cluster.run("why"), 1, "no job is named")
    refused(cluster.run("why", "train"), 2, "'train' is neither a Slurm job id")
    refused(cluster.run("why", "--", "-h"), 2, "is neither a Slurm job id")
    refused(cluster.run("why", "999"), 1, "Slurm knows no job 999")
    refused(lockstep.run("why", "1", env={"PATH": "/nowhere"}, program=(BINARY,)), 1, "job 1: find squeue in PATH",
            "--on")
    cluster.stop_controller()
    refused(cluster.run("why", "1"), 1, "job 1: Slurm does not answer: Unable to contact slurm controller",
            "scontrol ping")


def ours(cluster, *words):
    """Submits a job with `lockstep submit`, waits for its end, and returns its number."""
    ended = cluster.run("submit", "-t5", "--no-check", "--wait", "--json", *words)
    return json.loads(ended.out)["job"]


def test_a_job_of_ours_is_explained_by_its_agents(cluster, tmp_path):
    """The answer shows the first failed worker, its last words and its log, in place of Slurm's exit code."""
    job = ours(cluster, "-N2", "--name", "train", "--", "--no-python", "/bin/sh", "-c",
               '[ $RANK = 1 ] || exec sleep 600; echo first >&2; printf "bad \\033[31mbatch\\n" >&2; exit 9')
    state(cluster, job, "FAILED")  # Slurm may still call the job running when the batch step has ended
    text = why(cluster, "train")
    assert text == why(cluster, job)
    assert f"job {job} train of root: FAILED" in text and "why     rank 1 on node2 exited with 9 after " in text, text
    assert "  said    first\n          bad batch\n" in text, text
    log = [line.split()[1] for line in text.splitlines() if line.startswith("  log ")][0]
    assert log.endswith("/attempt_0/0/stderr.log") and "the script ended" not in text, text
    # Slurm forgets it; we do not.
    cluster.stop_controller()
    for path in (cluster.folder / "state").glob("*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    cluster.start_controller()
    cluster.ready()
    assert "why     rank 1 on node2 exited with 9 after " in why(cluster, "train")
    refused(cluster.run("why", str(int(job) + 1)), 1, "Slurm knows no job")
    # Slurm counts anew: the next job has the same number, and is another one.
    again = submit(cluster, "-J", "other", "--wrap", "exit 3")
    assert again == job
    state(cluster, again, "FAILED")
    assert "the script ended with code 3" in why(cluster, again) and "rank 1" not in why(cluster, again)


def test_earlier_runs_of_a_job_of_ours(cluster, tmp_path):
    running = cluster.start("submit", "-N1", "-t30", "--requeue", "--follow", "--no-check", "--", "--no-python",
                            "/bin/sh", "-c", f'touch {tmp_path}/run$SLURM_RESTART_COUNT; '
                            '[ "$SLURM_RESTART_COUNT" = 1 ] && exit 4; trap "exit 0" TERM; while :; do sleep 0.1; done')
    until((tmp_path / "run").exists, 60, "it runs")
    job = running.out().split()[3]
    cluster.slurm("scancel", "--batch", "--signal=USR1", job)
    assert running.wait(120).rc == 4
    state(cluster, job, "FAILED")
    text = why(cluster, job)
    assert "rank 0 on node1 exited with 4" in text and "  before  one run ended: time limit\n" in text, text
    assert "Slurm has requeued the job once" in text, text
