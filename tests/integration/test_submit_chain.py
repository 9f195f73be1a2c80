"""Slurm jobs that go on after their time limit, queued again or as another job. Real Slurm on our hosts.

Slurm's own signal comes up to a minute early or late, so most tests send the signal themselves.
"""
import json
import re

import pytest

from harness import until
from slurm_cluster import SlurmCluster


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 4)
    yield made
    made.close()


def shell(text):
    return ("--", "--no-python", "/bin/sh", "-c", text)


def training(folder, steps, more=""):
    """Ranks that count their runs in a file, save when they are stopped, and succeed in run number `steps`."""
    return (f'run=$(ls {folder} | grep -c "^$RANK.runs"); touch {folder}/$RANK.runs.$run; {more} '
            f'[ $run = {steps} ] && exit 0; '
            f'trap "echo saved $run; touch {folder}/$RANK.saved.$run; exit 0" TERM; while :; do sleep 0.1; done')


def has(folder, what, run, ranks=2):
    until(lambda: all((folder / f"{rank}.{what}.{run}").exists() for rank in range(ranks)), 120,
          f"all ranks: {what} {run}; {sorted(path.name for path in folder.iterdir())}")


def queue_is_empty(cluster):
    """Slurm lists a job for a moment after its end."""
    until(lambda: cluster.slurm("squeue", "-h").out == "", 60, "the queue is empty")


def first_job(running):
    return until(lambda: re.search(r"Submitted batch job (\d+)\n", running.out()), 60, running.err())[1]


def near_its_limit(cluster, job):
    cluster.slurm("scancel", "--batch", "--signal=USR1", job)


def listed(cluster):
    return json.loads(cluster.run("jobs", "--json").out)["jobs"][0]


def test_a_real_time_limit_queues_the_job_again(cluster, tmp_path):
    running = cluster.start("submit", "-N2", "-t1", "--chain=3", "--follow", *shell(training(tmp_path, 2)))
    ended = running.wait(400)
    assert ended.rc == 0, ended
    job = first_job(running)
    for run in range(2):
        has(tmp_path, "saved", run)
    assert cluster.job(job)["Restarts"] == "2"
    told = listed(cluster)
    assert told["earlier"] == [{"job": job, "cause": "time limit"}] * 2 and told["chain"] == 3, told
    assert "continued 2 of 3 times after a time limit" in cluster.run("why", job).out


def test_where_slurm_does_not_queue_it_again_another_job_goes_on(cluster, tmp_path):
    """One output and one end under any number: followed, waited for, explained and cancelled as one job."""
    running = cluster.start("submit", "-N2", "-t30", "--chain", "2", "--no-requeue", "--comment=it's", "--follow",
                            "--env=FROM_HERE=a b", *shell(training(tmp_path, 9, 'echo "has $FROM_HERE $run";')))
    job = first_job(running)
    has(tmp_path, "runs", 0)
    near_its_limit(cluster, job)
    has(tmp_path, "runs", 1)
    told = listed(cluster)
    assert told["earlier"] == [{"job": job, "cause": "time limit"}] and told["state"] == "running", told
    second = told["job"]
    assert second != job and cluster.job(second)["Comment"] == "it's"
    assert cluster.job(job)["JobState"] == "FAILED" and cluster.job(job)["ExitCode"] == "124:0"
    assert cluster.job(second)["StdOut"] == str(cluster.work / f"slurm-{job}.out")
    for number in (job, second):
        why = cluster.run("why", number).out
        assert f"job {second} sh" in why and f"earlier job {job}; continued 1 of 2" in why, why
    near_its_limit(cluster, second)
    has(tmp_path, "runs", 2)
    third = listed(cluster)["job"]
    # The budget is used up: the ranks are stopped as before, and that is the end.
    near_its_limit(cluster, third)
    ended = running.wait(120)
    assert ended.rc == 124, ended
    has(tmp_path, "saved", 2)
    said = [re.sub(r"^\[rank\d\]: ", "", line) for line in ended.out.splitlines()]
    assert all(said.count(f"has a b {run}") == 2 for run in range(3)), ended
    assert f"job {job} goes on as job {second}" in ended.out and "the chain is over" in ended.out, ended
    assert (cluster.work / f"slurm-{job}.out").read_text() == ended.out.split("\n", 1)[1]
    for number in (job, second, third):
        assert cluster.run("wait", number).rc == 124
        assert cluster.run("logs", number).out == ended.out.split("\n", 1)[1]
    queue_is_empty(cluster)
    assert [each["job"] for each in listed(cluster)["earlier"]] == [job, second]


def test_a_chain_ends_with_a_failure_and_with_its_users_will(cluster, tmp_path):
    running = cluster.start("submit", "-N2", "-t30", "--chain", "--follow",
                            *shell(training(tmp_path, 9, '[ $run$RANK = 11 ] && exit 7;')))
    job = first_job(running)
    has(tmp_path, "runs", 0)
    near_its_limit(cluster, job)
    ended = running.wait(120)
    assert ended.rc == 7, ended
    assert cluster.job(job)["Restarts"] == "1"
    assert [each["cause"] for each in listed(cluster)["earlier"]] == ["time limit"]


@pytest.mark.parametrize("how", ("--requeue", "--no-requeue"))
def test_who_cancels_it_while_it_saves_has_the_last_word(cluster, tmp_path, how):
    """After the signal before the limit, while the ranks save, the user cancels the job."""
    running = cluster.start("submit", "-N2", "-t30", "--chain", how, "--follow", *shell(
        f'trap "touch {tmp_path}/$RANK.saved.0; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; exit 0" TERM; '
        f'touch {tmp_path}/$RANK.runs.0; while :; do sleep 0.1; done'))
    job = first_job(running)
    has(tmp_path, "runs", 0)
    near_its_limit(cluster, job)
    has(tmp_path, "saved", 0)
    cluster.slurm("scancel", job)
    (tmp_path / "go").touch()
    ended = running.wait(90)
    assert ended.rc != 0, ended
    until(lambda: cluster.job(job)["JobState"] == "CANCELLED", 60, cluster.job(job))
    assert cluster.job(job)["Restarts"] == "0" and "goes on" not in ended.out, ended
    queue_is_empty(cluster)


def test_a_job_that_waits_for_its_turn_in_the_chain_is_cancelled(cluster, tmp_path):
    running = cluster.start("submit", "-N4", "--exclusive", "-t30", "--chain", "--no-requeue", "--follow",
                            *shell(training(tmp_path, 9)))
    job = first_job(running)
    has(tmp_path, "runs", 0, 4)
    other = cluster.slurm("sbatch", "--parsable", "-N4", "--exclusive", "-t5", "--wrap", "sleep 600").out.strip()
    near_its_limit(cluster, job)
    until(lambda: cluster.job(other)["JobState"] == "RUNNING", 60, "the other job runs")
    second = until(lambda: (told := listed(cluster))["job"] != job and told, 30, "it waits")
    assert second["state"] == "queued", second
    assert f"job {second['job']} sh" in cluster.run("why", job).out
    ended = cluster.run("cancel", job)
    assert ended.rc == 0 and ended.out.startswith(f"{second['job']}: "), ended
    assert running.wait(60).rc != 0
    assert cluster.job(second["job"])["JobState"] == "CANCELLED"
    cluster.slurm("scancel", other)


def test_a_preemption_costs_nothing_of_the_chain(cluster, tmp_path):
    """Slurm would end the job, which must not be requeued. Another job goes on."""
    running = cluster.start("submit", "-N4", "--exclusive", "-t30", "--chain=1", "--no-requeue", "--follow",
                            *shell(training(tmp_path, 2)))
    job = first_job(running)
    has(tmp_path, "runs", 0, 4)
    urgent = cluster.slurm("sbatch", "--parsable", "-p", "urgent", "-N4", "--exclusive", "-t5", "--wrap", "true").out
    has(tmp_path, "runs", 1, 4)
    assert cluster.job(urgent.strip())["JobState"] == "COMPLETED"
    told = listed(cluster)
    assert told["earlier"] == [{"job": job, "cause": "preempted"}], told
    near_its_limit(cluster, told["job"])
    ended = running.wait(180)
    assert ended.rc == 0, ended
    assert [each["cause"] for each in listed(cluster)["earlier"]] == ["preempted", "time limit"]


def test_the_first_node_dies_and_another_job_goes_on_without_it(cluster, tmp_path):
    """The deputy submits the next job, and ends the empty old one."""
    running = cluster.start("submit", "-N2", "-t30", "--chain", "--no-requeue", "--follow",
                            *shell(training(tmp_path, 1)))
    job = first_job(running)
    has(tmp_path, "runs", 0)
    cluster.power_cut(cluster.nodes[0])
    ended = running.wait(240)
    assert ended.rc == 0, ended
    told = listed(cluster)
    assert told["job"] != job and told["earlier"] == [{"job": job, "cause": "node lost"}], told
    assert cluster.job(told["job"])["ExcNodeList"] == "node1"
    assert cluster.job(job)["JobState"] == "CANCELLED"


def test_a_script_of_the_users_own(cluster, tmp_path):
    """With its arguments and its own shell. Each run has the folders and verdicts of its launches."""
    path = cluster.script("old.slurm", f"""#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --time=30
echo "run of $1"
srun torchrun --nnodes 2 --nproc_per_node 1 --no-python /bin/sh -c '{training(tmp_path, 1)}'
""")
    running = cluster.start("submit", "--chain=1", "--no-requeue", "--follow", path, "a b")
    job = first_job(running)
    has(tmp_path, "runs", 0)
    near_its_limit(cluster, job)
    ended = running.wait(180)
    assert ended.rc == 0, ended
    assert ended.out.count("run of a b") == 2, ended
    assert listed(cluster)["earlier"] == [{"job": job, "cause": "time limit"}]


def test_what_is_shown_and_refused(cluster):
    shown = cluster.run("submit", "--print", "--no-check", "-N2", "-t2:00:00", "--chain", "5", "--", "train.py").out
    assert "# At the time limit the job is queued again, or a new job continues, 5 times at most.\n" in shown
    assert "#SBATCH --requeue\n" in shown and " --chain 5 " in shown and "train.py" in shown
    shown = cluster.run("submit", "--print", "--no-check", "-t2:00:00", "--chain", "--", "train.py").out
    assert " --chain 0 " in shown
    for words, text in ((("--chain", "--", "train.py"), "--chain needs a time limit"),
                        (("-t5", "--chain=0", "--", "train.py"), "--chain must be a number from 1 to"),
                        (("-t5", "--chain=x", "--", "train.py"), "--chain must be a number from 1 to 10000 (got x)")):
        ended = cluster.run("submit", *words)
        assert ended.rc == 2 and text in ended.err and ended.err.count("\n") <= 2, ended


def test_an_answer_of_slurm_that_is_lost(cluster, tmp_path):
    """scontrol reports a failed requeue that in fact succeeded: nothing may run twice."""
    tools = cluster.work / "tools"
    tools.mkdir()
    wrapper = cluster.script("tools/scontrol", '#!/bin/sh\n/usr/bin/scontrol "$@" && [ "$1" != requeue ]\n')
    running = cluster.start("submit", "-N2", "-t30", "--chain", "--follow",
                            f"--env=PATH={wrapper.parent}:{cluster.env['PATH']}", *shell(training(tmp_path, 1)))
    job = first_job(running)
    has(tmp_path, "runs", 0)
    near_its_limit(cluster, job)
    ended = running.wait(120)
    assert ended.rc == 0 and "goes on as job" not in ended.out, ended
    assert listed(cluster)["earlier"] == [{"job": job, "cause": "time limit"}]
    assert cluster.job(job)["Restarts"] == "1"
    queue_is_empty(cluster)
