"""why, top, events and page of a running Slurm job: its agents are asked inside the job's nodes, on a real cluster."""
import contextlib
import json
import pathlib
import re
import signal

import pytest

from hang_kinds import HANG, LIGHT, line_of
from harness import PYTHON, SCRIPTS, WORKER, until
from slurm_cluster import Page, SlurmCluster


@pytest.fixture
def cluster(hosts):
    """Its TaskProlog prints lines before the first byte of every program."""
    prolog = hosts.lockstep.folder / "task-prolog"
    prolog.write_text("#!/bin/sh\necho print '[welcome: to]'\necho print $SLURMD_NODENAME\n")
    prolog.chmod(0o755)
    made = SlurmCluster(hosts, 2, extra=[f"TaskProlog={prolog}"])
    yield made
    made.close()


def number_of(ended):
    assert ended.rc == 0, ended
    return re.fullmatch(r"Submitted batch job (\d+)\n", ended.out)[1]


def asked(cluster, *words, **options):
    ended = cluster.run(*words, timeout=60, **options)
    assert ended.rc == 0 and not ended.err, ended
    return ended.out


def rows(cluster, job):
    """Rank -> row of `top`; no rows while the agents do not answer yet."""
    return {row["rank"]: row for node in json.loads(asked(cluster, "top", "--json", job))["nodes"]
            for row in node["rows"]}


def steps(cluster):
    return cluster.slurm("squeue", "-h", "-s", "-o", "%i").out.split()


def gone(cluster, job):
    """The job and its steps have left nothing."""
    assert cluster.run("cancel", job).rc == 0
    until(lambda: not steps(cluster), 60, f"its steps end: {steps(cluster)}")


def test_a_rank_that_sleeps_on_another_node(cluster):
    """The step of the agents has all CPUs, memory and GPUs of both nodes."""
    env = {"PYTHON_EXEC": PYTHON, "OMP_NUM_THREADS": "1"}
    job = number_of(cluster.run("submit", "-N2", "--ntasks-per-node=2", "--exclusive", "--mem=0", "--gres=gpu:8", "-t9",
                                "--no-check", "--hang-after", "5", "--", HANG, "sleep", "3", env=env))
    line = line_of("sleep")
    told = []

    def stands():  # the three others come to their collective one after the other
        told.append(cluster.run("why", job).out)
        return line in told[-1] and "ranks 0-2 " in told[-1]

    until(stands, 120, f"rank 3 sleeps, and the others wait: {cluster.run('logs', job)}")
    assert told[-1].startswith(f"job {job} hang.py of ") and "rank 3 " in told[-1], told[-1]
    until(lambda: re.search(r"^hung for \d+ s: rank 3 ", cluster.run("why", job).out, re.M), 60, "it hangs")
    both = json.loads(asked(cluster, "why", job, "--json"))
    assert both["jobs"][0]["ids"] == [job], both
    assert sorted(look["node"] for look in both["looks"]) == ["node1", "node2"], both

    for rank, where in ((3, line), (0, "in train")):  # one on each node
        threads = asked(cluster, "why", job, "--rank", rank)
        assert threads.startswith(f"rank {rank}, pid ") and "main thread" in threads and where in threads, threads
    none = cluster.run("why", job, "--rank", "4")
    assert none.rc == 1 and "does not run" in none.err, none

    seen = rows(cluster, job)
    assert sorted(seen) == [0, 1, 2, 3] and seen[3]["node"] == "node2" and line in seen[3]["where"], seen
    table = asked(cluster, "top", "--once", job)
    assert "hang.py" in table and "4 of 4 ranks" in table and line in table, table

    events = asked(cluster, "events", job)
    assert "training" in events, events

    # A shell inside another allocation has variables that srun would take for options.
    inside = {"SLURM_JOB_ID": "999", "SLURM_JOBID": "999", "SLURM_NNODES": "1", "SLURM_NTASKS": "7",
              "SLURM_JOB_NODELIST": "node1", "SLURM_MEM_PER_CPU": "9000", "SLURM_STEP_ID": "0"}
    both = json.loads(asked(cluster, "why", job, "--json", env=inside))
    assert sorted(look["node"] for look in both["looks"]) == ["node1", "node2"], both

    assert cluster.job(job)["JobState"] == "RUNNING"
    # The agents' step and the script.
    until(lambda: len(steps(cluster)) == 2, 20, f"no other step is left: {steps(cluster)}")
    gone(cluster, job)
    ended = asked(cluster, "events", job)
    assert "training" in ended, ended
    late = cluster.run("top", "--once", job)
    assert late.rc == 1 and "has ended" in late.err, late


def test_a_hang_and_its_evidence_are_told_after_the_end(cluster):
    """The agents have ended the job, so `why` knows it by their reports only. No node was lost: --requeue leaves it."""
    env = {"PYTHON_EXEC": PYTHON, "TEST_FOLDER": str(cluster.work)}
    job = number_of(cluster.run("submit", "-N2", "--ntasks-per-node=2", "-t9", "--no-check", "--requeue",
                                "--hang-after", "5", "--on-hang", "end", "--", LIGHT, "sleep", "3", env=env))
    assert cluster.run("wait", job).rc == 1
    (told,) = json.loads(asked(cluster, "jobs", "--json"))["jobs"]
    assert (told["state"], told["earlier"]) == ("failed", []) and told["why"].startswith("hang: hung for "), told
    said = asked(cluster, "why", job)
    assert re.search(r"^  why     hung for \d+ s: rank 3 ", said, re.M), said
    assert re.search(r"^  do      --on-hang restart starts the ranks again", said, re.M) and "--spare" not in said, said
    assert re.search(r"^  hang    hung for \d+ s: rank 3 .*hang_light\.py:\d+", said, re.M), said
    evidence = re.findall(r"^ {10}evidence on (node[12]): (\S+)/hang-\*\.txt$", said, re.M)
    assert [node for node, _ in evidence] == ["node1", "node2"], said
    assert all(list(pathlib.Path(folder).glob("hang-*.txt")) for _, folder in evidence), said
    assert re.search(r"^ .*node2: rank 3 was in .*hang_light\.py:\d+", said, re.M), said
    facts = json.loads(asked(cluster, "why", job, "--json"))["jobs"][0]["facts"]
    assert facts["hang"][0].startswith("hung for ") and len(facts["hang"]) == 3, facts


def test_the_page_of_each_node(cluster):
    """The bytes go through one srun beside the ranks, which ends with its command and leaves the job alone."""
    go = cluster.work / "go"  # a worker waits for a minute at most
    job = number_of(cluster.run("submit", "-N2", "--ntasks-per-node=2", "--exclusive", "--mem=0", "--gres=gpu:8", "-t9",
                                "--no-check", "--", "--no-python", WORKER, *[f"wait={go}"] * 5))
    until(lambda: sorted(rows(cluster, job)) == [0, 1, 2, 3], 60, f"all ranks run: {cluster.run('logs', job)}")
    before = [host.processes() for host in (cluster.login, *cluster.nodes)]

    first = Page(cluster.start, cluster.login, job)
    assert first.get("/", token="wrong")[0] == 403 and first.get("/state", token="x" * 32)[0] == 403
    status, text = first.get("/")
    assert status == 200 and text.startswith("<!doctype html>") and len(text) > 20 << 10
    until(lambda: first.ranks() == [0, 1], 20, "the page knows the ranks of its node")
    assert first.get("/events?after=0")[0] == 200
    second = Page(cluster.start, cluster.login, "--node", "1", "--json", job)
    assert json.loads(second.run.out())["node"] == "node2" and second.token != first.token
    until(lambda: second.ranks() == [2, 3], 20, "the page of the other node")

    with first.connect() as live, contextlib.ExitStack() as crowd:
        live.sendall(f"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {first.token}\r\n\r\n".encode())
        seen = b""
        while seen.count(b"event: state") < 3:  # one a second
            seen += live.recv(65536)
        for _ in range(20):
            crowd.enter_context(first.connect())
        assert first.get("/state")[0] == 200, "beside connections that say nothing"
        assert len(steps(cluster)) == 4, "the script, the agents and a step for each page"

        first.run.signal(signal.SIGTERM)
        ended = first.run.wait(20)
        assert ended.rc == 128 + signal.SIGTERM and not ended.err, ended
        while live.recv(65536):
            pass
    second.run.signal(signal.SIGKILL)
    until(lambda: len(steps(cluster)) == 2, 20, f"the steps of the pages have ended: {steps(cluster)}")
    until(lambda: [host.processes() for host in (cluster.login, *cluster.nodes)] == before, 20,
          f"nothing is left of both: {[host.processes() for host in (cluster.login, *cluster.nodes)]}")
    assert sorted(rows(cluster, job)) == [0, 1, 2, 3], "the job goes on"

    last = Page(cluster.start, cluster.login, job)
    go.touch()
    ended = last.run.wait(60)
    assert ended.rc == 1 and ended.err.startswith("lockstep page: error: the status page is gone: node1: "), ended
    assert len(ended.err.splitlines()) == 1, ended
    until(lambda: cluster.job(job)["JobState"] == "COMPLETED", 30, f"the job succeeds: {cluster.job(job)}")
    late = cluster.run("page", job)
    assert late.rc == 1 and "no agent of" in late.err, late


def test_the_launch_of_a_script_is_asked_and_a_dead_node_hides_no_other(cluster):
    script = cluster.script("old.sh", f"""#!/bin/bash
#SBATCH -N2 --ntasks-per-node=1 -t9
srun torchrun --nnodes 2 --nproc_per_node 1 --max_restarts 3 --rdzv_backend c10d --rdzv_endpoint $HOSTNAME:29511 \\
  --no-python {WORKER} pause
""")
    job = number_of(cluster.run("submit", "--no-check", "--use-bad-nodes", script))
    until(lambda: cluster.run("top", "--once", job).rc == 0, 60, f"it runs: {cluster.run('logs', job)}")
    until(lambda: sorted(rows(cluster, job)) == [0, 1], 30, "both ranks run")
    cluster.power_cut(cluster.nodes[1])
    left = cluster.run("top", "--json", job, timeout=30)
    assert left.rc == 0, left
    assert [node["node"] for node in json.loads(left.out)["nodes"]] == ["node1"], left
    assert "1 of 2 nodes have answered" in left.err, left
    cluster.power_on(cluster.nodes[1])
    gone(cluster, job)


def test_the_ranks_of_two_nodes_make_one_trace(cluster):
    """Traces go through the job's folder, which all nodes see."""
    job = number_of(cluster.run("submit", "-N2", "--ntasks-per-node=1", "-t9", "--no-check", "--",
                                SCRIPTS / "kineto_side.py", "good",
                                env={"PYTHON_EXEC": PYTHON, "LOCKSTEP_PROFILE": "1"}))
    places = [cluster.work / f"{rank}.folder" for rank in (0, 1)]
    until(lambda: all(place.exists() for place in places), 60, f"both ranks run: {cluster.run('logs', job)}")
    output = cluster.folder / "traces"
    ended = cluster.run("profile", "-o", output, "--steps", 3, job)
    assert (ended.rc, ended.out) == (0, f"{output}/profile.json: ranks 0-1\n"), ended
    events = json.loads((output / "profile.json").read_text())["traceEvents"]
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == ["rank 0: python", "rank 1: python"]
    left = list(cluster.home.rglob("lockstep-profile-*"))
    assert len(left) == 2 and not any(any(folder.iterdir()) for folder in left), left
    gone(cluster, job)


def test_a_job_that_waits_or_is_unknown_is_one_line(cluster):
    job = number_of(cluster.run("submit", "--hold", "-N2", "-t5", "--", "--no-python", WORKER, "pause"))
    assert "ranks" not in asked(cluster, "why", job)
    for words in (("why", "--rank", "0"), ("top", "--once"), ("events",)):
        ended = cluster.run(*words, job)
        assert ended.rc == 1 and ended.out == "" and len(ended.err.splitlines()) == 1, ended
        assert "no agent of " in ended.err, ended
    assert cluster.run("cancel", job).rc == 0
