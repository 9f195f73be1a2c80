"""Sweeps on a real Slurm cluster: one array job, each of whose tasks runs a row."""
import json
import re

import pytest

from hang_kinds import LIGHT
from harness import PYTHON, WORKER, until
from slurm_cluster import SlurmCluster


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 2)
    yield made
    made.close()


def submit(cluster, *words, **options):
    return cluster.run("submit", "--no-check", "-t5", *words, **options)


def number_of(ended):
    assert ended.rc == 0, ended
    return re.fullmatch(r"Submitted batch job (\d+)\n", ended.out)[1]


def told_of(cluster, job):
    return next(each for each in json.loads(cluster.run("jobs", "--json").out)["jobs"] if each["job"] == job)


def worker(*actions):
    return ("--", "--no-python", WORKER, *actions)


SHOW = "show=RANK,WORLD_SIZE,LOCKSTEP_SWEEP_ROW,LOCKSTEP_SWEEP_TEXT,LOCKSTEP_JOB_ID"


def test_every_row_is_a_task_with_its_values(cluster):
    """Two ranks on each of two nodes; each row has an output file, and is shown by its number or its values."""
    ended = submit(cluster, "--sweep", "text=one,two,three", "--sweep", "code=0", "--at-once=2", "-N2",
                   "--gpus-per-node=2", "--wait", "--env=OMP_NUM_THREADS=1",
                   *worker(SHOW, "exit={code}"))
    assert ended.rc == 0, ended
    job = ended.out.split()[-1]
    told = told_of(cluster, job)
    assert (told["state"], told["code"], told["why"]) == ("succeeded", 0, "3 done"), told
    for row, text in enumerate(("one", "two", "three")):
        shown = sorted((cluster.work / f"slurm-{job}_{row}.out").read_text().splitlines())
        assert shown == [f"[rank{rank}]: show RANK={rank} WORLD_SIZE=4 LOCKSTEP_SWEEP_ROW={row} "
                         f"LOCKSTEP_SWEEP_TEXT={text} LOCKSTEP_JOB_ID={told['id']}" for rank in range(4)]
        for word in (f"{told['id']}[{row}]", f"{job}[text={text}]"):
            assert sorted(cluster.run("logs", word).out.splitlines()) == shown
    assert cluster.run("wait", job).rc == 0
    logs = cluster.run("logs", job)
    assert logs.rc == 2 and "each row of job" in logs.err, logs


def test_a_row_that_fails_is_counted_explained_and_resumed(cluster):
    mark = cluster.work / "mended"
    script = cluster.script(
        "row.sh", '#!/bin/sh\necho "at $((3 + RANK)) of step 9"\n'
                  # A failed rank 1 might end rank 0 before it prints.
                  f'[ "$1$RANK" != bad0 ] || [ -e {mark} ] || {{ echo no luck >&2; exit 7; }}\n')
    ended = submit(cluster, "--sweep", "how=good,bad,fine,bad", "--wait", "--env=ONE=1", "--nproc-per-node=2",
                   "--progress=at ([0-9]+)", "--", "--no-python", script, "{how}")
    assert ended.rc == 7, ended
    job = ended.out.split()[-1]
    told = told_of(cluster, job)
    assert (told["state"], told["code"], told["why"]) == ("failed", 7, "2 done, 2 failed"), told
    assert re.search(rf"{told['id']} .* failed: 2 done, 2 failed ", cluster.run("jobs").out)
    why = cluster.run("why", job)
    assert why.rc == 0 and "2 done, 2 failed" in why.out and "  2 rows: no luck\n" in why.out, why
    rows = json.loads(cluster.run("why", "--json", job).out)["rows"]
    assert [each["state"] for each in rows] == ["done", "failed", "done", "failed"], rows
    assert {(each["step"], each["step_line"]) for each in rows} == {(3, "at 3 of step 9")}, rows
    for word in (f"{job}[1]", f"{told['id']}[1]"):
        row = cluster.run("why", word)
        assert re.fullmatch(rf"row 1 of job {told['id']} \(row.sh\) on slurm: failed \(7\)\n  how=bad\n"
                            r"  on node\d, \d+\.\d s\n  step 3: at 3 of step 9\nreason: no luck\n"
                            r"root cause: rank 0 on node\d, exit code 7\n  no luck\n(  .*\n)*"
                            rf"lockstep logs '{told['id']}\[1\]' shows the output\n", row.out), row
    several = cluster.run("why", f"{job}[how=bad]")
    assert several.rc == 2 and "2 rows have how=bad: 1,3" in several.err, several
    row = json.loads(cluster.run("why", "--json", f"{job}[how=fine]").out)
    assert (row["row"], row["state"], row["code"], row["root_cause"]) == (2, "done", 0, None), row
    # The values of variables are kept nowhere.
    refused = cluster.run("resume", told["id"])
    assert refused.rc == 2 and "the variable ONE" in refused.err, refused
    mark.touch()
    again = cluster.run("resume", told["id"], "--env=ONE=1")
    assert again.rc == 0, again
    assert cluster.run("wait", told["id"]).rc == 0
    second = told_of(cluster, again.out.split()[-1])
    assert (second["id"], second["why"]) == (told["id"], "4 done"), second
    outputs = sorted(path.name for path in cluster.work.glob("slurm-*.out"))
    assert outputs == sorted([f"slurm-{job}_{row}.out" for row in range(4)] +
                             [f"slurm-{second['job']}_{row}.out" for row in (1, 3)])
    refused = cluster.run("resume", told["id"], "--env=ONE=1")
    assert refused.rc == 2 and "are done" in refused.err, refused


def test_why_of_running_rows_and_of_a_hung_row(cluster):
    """Two rows run on the same nodes, and only the agents of the named row answer."""
    script = cluster.script("row.py", "import sys, time\nif sys.argv[1] == '0':\n"
                                      "    time.sleep(1000)\ntime.sleep(1000)\n")
    env = {"PYTHON_EXEC": PYTHON, "TEST_FOLDER": str(cluster.work)}
    job = number_of(submit(cluster, "--sweep", "n=0-1", "-N2", "--", script, "{n}", env=env))
    for row, line in enumerate((3, 4)):
        until(lambda: f"row.py:{line}" in cluster.run("why", f"{job}[n={row}]").out, 60, "the agents of the row answer")
        said = cluster.run("why", f"{job}[{row}]")
        assert f": running\n  n={row}\n" in said.out and f"row.py:{7 - line}" not in said.out, said
    assert cluster.run("cancel", job).rc == 0
    job = number_of(submit(cluster, "--sweep", "n=0-1", "--sweep-only=1", "-N2", "--ntasks-per-node=2", "--hang-after",
                           "5", "--on-hang", "end", "--", LIGHT, "sleep", "3", env=env))
    assert cluster.run("wait", job).rc == 1
    said = cluster.run("why", f"{job}[1]")
    assert re.search(r"^hang: hung for \d+ s: rank 3 ", said.out, re.M), said
    evidence = re.findall(r"^  evidence on (node[12]): (\S+)/hang-\*\.txt$", said.out, re.M)
    assert sorted(node for node, _ in evidence) == ["node1", "node2"], said
    assert all("/ranks/1/" in folder for _, folder in evidence), said


def test_cancel_ends_running_and_waiting_rows(cluster):
    job = number_of(submit(cluster, "--sweep", "n=0-5", "--at-once=2", *worker("pause")))
    until(lambda: told_of(cluster, job)["why"] == "0 done, 2 running, 4 queued", 60, "two rows run")
    assert told_of(cluster, job)["state"] == "running"
    canceled = cluster.run("cancel", job)
    assert canceled.rc == 0, canceled
    told = told_of(cluster, job)
    assert (told["state"], told["why"]) == ("canceled", "0 done, 6 canceled"), told
    assert cluster.run("wait", job).rc not in (0, 255)


def test_one_row_that_is_canceled_leaves_the_others(cluster):
    """The array's last task has the number of the whole array, and must not be taken for it."""
    script = cluster.script("row.sh", f"#!/bin/sh\nuntil [ -e {cluster.work}/go ]; do sleep 0.1; done\n")
    job = number_of(submit(cluster, "--sweep", "n=0-2", "--", "--no-python", script))
    until(lambda: told_of(cluster, job)["why"] == "0 done, 3 running", 60, "all rows run")
    cluster.slurm("scancel", f"{job}_2")
    until(lambda: told_of(cluster, job)["why"] == "0 done, 2 running, 1 canceled", 60, "the row has ended")
    (cluster.work / "go").touch()
    assert cluster.run("wait", job).rc not in (0, 255)
    assert told_of(cluster, job)["why"] == "2 done, 1 canceled"


def test_print_shows_the_rows(cluster):
    ended = submit(cluster, "--print", "--sweep", "lr=1e-3,3e-4", "--sweep-only=1", "--", "train.py", "--lr", "{lr}")
    assert ended.rc == 0, ended
    assert "#SBATCH --array=1\n" in ended.out and ended.out.endswith("#    1  lr=3e-4  train.py --lr 3e-4\n"), ended
    assert cluster.slurm("squeue", "-h").out == ""


def test_what_a_sweep_cannot_have_is_refused(cluster):
    for words, why in ((("--sweep=n=0-1200", "--output=%a.out"), "would write to the same files"),
                       (("--sweep=n=0-2", "--chain"), "--chain does not go with --sweep"),
                       (("--sweep=n=0-2", "--output=all.out"), "all rows would write to this file"),
                       (("--sweep=n=0-2", "--gpus-per-job=1"), "--gpus-per-job is not for jobs of Slurm's"),
                       (("--sweep=n=0-2", "--on=elsewhere"), "--sweep does not go with --on")):
        ended = submit(cluster, *words, *worker("exit=0"))
        assert ended.rc == 2 and why in ended.err, ended
    assert not (cluster.home / ".local/state/lockstep/slurm").exists()


@pytest.fixture
def small_arrays(hosts):
    """A site whose arrays have ten tasks."""
    made = SlurmCluster(hosts, 2, extra=("MaxArraySize=11",))
    yield made
    made.close()


def queue(cluster):
    """Returns array job -> dependency of the arrays that wait or run."""
    listed = cluster.slurm("squeue", "-h", "-o", "%F %E").out
    return dict(line.split(maxsplit=1) for line in listed.splitlines())


def test_many_rows_are_one_job_of_several_arrays(small_arrays):
    """25 rows are three arrays, of which one runs at a time; the numbers and values of rows are those of the sweep."""
    cluster = small_arrays
    script = cluster.script("row.sh", "#!/bin/sh\n"
                            f"until [ -e {cluster.work}/go ]; do sleep 0.1; done\n"
                            f"[ -e {cluster.work}/mended ] || case $1 in a3|a14|a24) echo no luck >&2; exit 7;; esac\n"
                            'echo "row $LOCKSTEP_SWEEP_ROW has $1"\n')
    ended = submit(cluster, "--sweep", "v=" + ",".join(f"a{row}" for row in range(25)), "--at-once=4", "--name=big",
                   "--", "--no-python", script, "{v}")
    first = number_of(ended)
    assert "25 rows need 3 array jobs, of 10 rows at most, which run one after the other" in ended.err, ended
    until(lambda: told_of(cluster, first)["why"] == "0 done, 4 running, 21 queued", 60, "four rows run")
    told = told_of(cluster, first)
    numbers = told["jobs"]
    assert numbers[0] == first and len(json.loads(cluster.run("jobs", "--json").out)["jobs"]) == 1, told
    waits = queue(cluster)
    assert set(waits) == set(numbers), waits
    assert waits[numbers[1]].startswith(f"afterany:{numbers[0]}"), waits
    assert waits[numbers[2]].startswith(f"afterany:{numbers[1]}"), waits
    (cluster.work / "go").touch()
    assert cluster.run("wait", "big").rc == 7
    assert told_of(cluster, first)["why"] == "22 done, 3 failed"
    for word in ("big[12]", "big[v=a12]", f"{numbers[1]}[12]"):
        shown = cluster.run("logs", word)
        assert shown.out == "row 12 has a12\n", shown
    assert (cluster.work / f"slurm-{numbers[1]}_2.out").read_text() == "row 12 has a12\n"
    why = cluster.run("why", "big")
    assert why.rc == 0 and "  3 rows: no luck\n" in why.out, why
    rows = json.loads(cluster.run("why", "--json", "big").out)["rows"]
    assert [each["row"] for each in rows if each["state"] == "failed"] == [3, 14, 24], rows
    (cluster.work / "mended").touch()
    again = cluster.run("resume", "big")
    assert again.rc == 0, again
    assert cluster.run("wait", "big").rc == 0
    told = json.loads(cluster.run("jobs", "--json").out)["jobs"][0]
    assert told["why"] == "25 done" and not set(told["jobs"]) & set(numbers), told
    assert cluster.run("logs", "big[14]").out == "row 14 has a14\n"
    assert (cluster.work / f"slurm-{told['jobs'][1]}_4.out").read_text() == "row 14 has a14\n"


def test_cancel_ends_all_arrays(small_arrays):
    job = number_of(submit(small_arrays, "--sweep", "n=0-24", "--at-once=2", *worker("pause")))
    until(lambda: told_of(small_arrays, job)["why"] == "0 done, 2 running, 23 queued", 60, "two rows run")
    assert small_arrays.run("cancel", job).rc == 0
    assert told_of(small_arrays, job)["why"] == "0 done, 25 canceled"
    until(lambda: queue(small_arrays) == {}, 60, "all arrays have left the queue")


def with_sbatch(cluster, text):
    """The environment of a command that finds this sbatch first."""
    folder = cluster.folder / "before"
    folder.mkdir(exist_ok=True)
    (folder / "sbatch").write_text(f"#!/bin/bash\n{text}\n")
    (folder / "sbatch").chmod(0o755)
    return {"PATH": f"{folder}:{cluster.env['PATH']}"}


REAL = '/usr/bin/sbatch "$@"'


REASONS = "/usr/bin/squeue -h -o %r"


def test_nothing_is_half_submitted(small_arrays):
    """An sbatch that refuses the third array. No row runs before Slurm has all arrays."""
    reasons = small_arrays.folder / "reasons"
    env = with_sbatch(small_arrays, f'[ "${{!#}}" = 20 ] && {REASONS} >{reasons} && echo "sbatch: error: no more" >&2 '
                                    f"&& exit 1\n{REAL}")
    ended = submit(small_arrays, "--sweep", "n=0-24", *worker("pause"), env=env)
    assert re.search(r"sbatch: error: no more; the arrays submitted so far are canceled: \d+, \d+", ended.err), ended
    assert "submit fewer rows: --sweep-only 0-19" in ended.err, ended
    assert ended.rc != 0 and ended.out == ""
    assert reasons.read_text().split() == ["JobHeldUser"] * 2
    until(lambda: queue(small_arrays) == {}, 60, "both arrays have ended")
    assert json.loads(small_arrays.run("jobs", "--json").out)["jobs"] == []
    assert list(small_arrays.work.glob("slurm-*.out")) == []


def test_a_submission_that_is_cut_off_runs_nothing(small_arrays):
    """lockstep is killed as soon as Slurm has the second of three arrays."""
    env = with_sbatch(small_arrays, f'[ "${{!#}}" = 10 ] || exec {REAL}\n{REAL} >&2; kill -9 $PPID')
    assert submit(small_arrays, "--sweep", "n=0-24", "--name=twice", *worker("exit=0"), env=env).rc != 0
    held = set(queue(small_arrays))
    assert len(held) == 2 and small_arrays.slurm("squeue", "-h", "-o", "%r").out.split() == ["JobHeldUser"] * 2
    number_of(submit(small_arrays, "--sweep", "n=0-24", "--name=twice", *worker("exit=0")))
    assert small_arrays.run("wait", "twice").rc == 0
    # Slurm lists an array for a moment after its last task.
    until(lambda: set(queue(small_arrays)) == held, 60, "the second submission has left the queue")
    assert len(list(small_arrays.work.glob("slurm-*.out"))) == 25


def test_a_users_own_hold_is_kept(small_arrays):
    job = number_of(submit(small_arrays, "--hold", "--sweep", "n=0-14", *worker("exit=0")))
    numbers = told_of(small_arrays, job)["jobs"]
    assert small_arrays.slurm("squeue", "-h", "-o", "%r").out.split() == ["JobHeldUser"] * 2
    small_arrays.slurm("scontrol", "release", ",".join(numbers))
    assert small_arrays.run("wait", job).rc == 0


def test_arrays_that_cannot_be_released_are_named(small_arrays):
    folder = small_arrays.folder / "before"
    env = with_sbatch(small_arrays, REAL)
    (folder / "scontrol").write_text('#!/bin/bash\n[ "$1" = release ] || exec /usr/bin/scontrol "$@"\n'
                                     'echo "slurm_suspend error: Socket timed out" >&2; exit 1\n')
    (folder / "scontrol").chmod(0o755)
    ended = submit(small_arrays, "--sweep", "n=0-14", "--name=held", *worker("exit=0"), env=env)
    command = re.search(r"scontrol (release) (\d+,\d+) lets them begin", ended.err)
    assert ended.rc != 0 and "the rows are submitted and recorded, but held" in ended.err and command, ended
    small_arrays.slurm("scontrol", *command.groups())
    assert small_arrays.run("wait", "held").rc == 0


def test_an_array_whose_answer_is_lost_is_found_in_the_queue(small_arrays):
    """Slurm's queue shows the script of each array with the array's own first row."""
    env = with_sbatch(small_arrays, f'[ "${{!#}}" = 10 ] || exec {REAL}\n{REAL} >&2; kill -9 $$')
    job = number_of(submit(small_arrays, "--sweep", "n=0-24", "--at-once=1", *worker("pause"), env=env))
    waits = queue(small_arrays)
    assert set(told_of(small_arrays, job)["jobs"]) == set(waits) and len(waits) == 3, waits
    assert small_arrays.run("cancel", job).rc == 0


def test_a_resume_that_was_cut_off_is_known_to_the_next(small_arrays):
    """lockstep is killed as soon as Slurm has the second of two arrays."""
    script = small_arrays.script("row.sh", f"#!/bin/sh\n[ -e {small_arrays.work}/mended ]\n")
    ended = submit(small_arrays, "--sweep", "n=0-14", "--name=cut", "--", "--no-python", script)
    first = number_of(ended)
    assert small_arrays.run("wait", "cut").rc == 1
    numbers = told_of(small_arrays, first)["jobs"]
    (small_arrays.work / "mended").touch()
    env = with_sbatch(small_arrays, f'[ "${{!#}}" = 10 ] || exec {REAL}\n{REAL} >&2; kill -9 $PPID')
    assert small_arrays.run("resume", "cut", env=env).rc != 0
    assert small_arrays.slurm("squeue", "-h", "-o", "%r").out.split() == ["JobHeldUser"] * 2
    again = small_arrays.run("resume", "cut")
    assert again.rc == 2 and "has not ended" in again.err, again
    assert small_arrays.run("wait", "cut").rc == 0
    again = small_arrays.run("resume", "cut")
    assert again.rc == 2 and "are done" in again.err, again
    told = json.loads(small_arrays.run("jobs", "--json").out)["jobs"][0]
    assert told["why"] == "15 done" and len(told["jobs"]) == 2 and not set(told["jobs"]) & set(numbers), told


def test_a_row_behind_the_first_thousand(cluster):
    ended = submit(cluster, "--sweep", "n=0-1204", "--sweep-only=3,1204", "--wait", "--name=long",
                   *worker("show=LOCKSTEP_SWEEP_ROW,LOCKSTEP_SWEEP_N"))
    assert ended.rc == 0, ended
    for word in ("long[1204]", "long[n=1204]"):
        assert cluster.run("logs", word).out == "show LOCKSTEP_SWEEP_ROW=1204 LOCKSTEP_SWEEP_N=1204\n"
    second = told_of(cluster, ended.out.split()[-1])["jobs"][1]
    assert (cluster.work / f"slurm-{second}_204.out").exists()
    refused = cluster.run("logs", "long[4]")
    assert refused.rc == 2 and "row 4 was not submitted" in refused.err, refused


ARRAY = """#!/bin/bash
#SBATCH --array=1-7:3%2
#SBATCH --ntasks-per-node=1
#SBATCH --time=5
echo "task $SLURM_ARRAY_TASK_ID with $1, preflight $LOCKSTEP_PREFLIGHT"
cat > part-$SLURM_ARRAY_TASK_ID.sh <<'END'
#!/bin/sh
[ $SLURM_ARRAY_TASK_ID != 4 ] || [ -e mended ] || { echo no luck >&2; exit 7; }
echo "rank $RANK of $SLURM_ARRAY_TASK_ID"
END
chmod +x part-$SLURM_ARRAY_TASK_ID.sh
srun torchrun --nproc_per_node 2 --no-python ./part-$SLURM_ARRAY_TASK_ID.sh
"""


def test_an_array_of_an_old_script_has_its_tasks_as_rows(cluster):
    ended = submit(cluster, "--wait", "--preflight=off", cluster.script("old.slurm", ARRAY), "a b",
                   env={"SBATCH_ARRAY_INX": "0-9"})
    assert ended.rc == 7, ended
    job = ended.out.split()[-1]
    told = told_of(cluster, job)
    assert (told["state"], told["code"], told["why"], told["name"]) == ("failed", 7, "2 done, 1 failed",
                                                                      "old.slurm"), told

    def lines(array, task):
        text = (cluster.work / f"slurm-{array}_{task}.out").read_text()
        return sorted(line for line in text.splitlines() if re.match(r"task|\[rank\d\]: rank", line))
    expected = ["[rank0]: rank 0 of 7", "[rank1]: rank 1 of 7", "task 7 with a b, preflight off"]
    assert lines(job, 7) == expected
    for word in (f"{told['id']}[7]", f"{job}[task=7]"):
        shown = cluster.run("logs", word)
        assert set(expected) <= set(shown.out.splitlines()), shown
    why = cluster.run("why", job)
    assert why.rc == 0 and "  1 row: no luck\n" in why.out and "task=4" in why.out, why
    (cluster.work / "mended").touch()
    # Variables of this shell do not change what the rows are.
    again = cluster.run("resume", told["id"], env={"SBATCH_JOB_NAME": "another", "SBATCH_ARRAY_INX": "0-9"})
    assert again.rc == 0, again
    assert cluster.run("wait", told["id"]).rc == 0
    second = told_of(cluster, again.out.split()[-1])
    assert (second["id"], second["why"]) == (told["id"], "3 done"), second
    assert lines(second["job"], 4) == ["[rank0]: rank 0 of 4", "[rank1]: rank 1 of 4", "task 4 with a b, preflight off"]
    assert "JobName=old.slurm " in cluster.slurm("scontrol", "show", "job", "-o", second["job"]).out
    outputs = sorted(path.name for path in cluster.work.glob("slurm-*.out"))
    assert outputs == sorted([f"slurm-{job}_{task}.out" for task in (1, 4, 7)] + [f"slurm-{second['job']}_4.out"])


def test_a_script_with_arguments_whose_answer_is_lost_is_found(cluster):
    path = cluster.script("old.slurm", "#!/bin/bash\n#SBATCH --array=0-1\nexec sleep 600\n")
    job = number_of(submit(cluster, path, "a b", "c", env=with_sbatch(cluster, f"{REAL} >&2; kill -9 $$")))
    assert set(queue(cluster)) == {job}
    assert cluster.run("cancel", job).rc == 0


def test_cancel_ends_all_tasks_of_an_old_script(cluster):
    path = cluster.script("old.slurm", "#!/bin/bash\n#SBATCH --array=0-3%2\n"
                                       f"srun torchrun --no-python {WORKER} pause\n")
    job = number_of(submit(cluster, path))
    until(lambda: told_of(cluster, job)["why"] == "0 done, 2 running, 2 queued", 60, "two tasks run")
    assert cluster.run("cancel", job).rc == 0
    assert told_of(cluster, job)["why"] == "0 done, 4 canceled"


def test_what_an_array_of_an_old_script_cannot_have_is_refused(cluster):
    path = cluster.script("old.slurm", ARRAY)
    for words, why in ((("--chain",), "--chain does not go with --array"),
                       (("--array=0-3:0",), "--array=0-3:0 must be a list of tasks"),
                       (("--sweep=n=0-2",), "--sweep needs a training command"),
                       (("--on=elsewhere",), "a script with --array does not go with --on")):
        ended = submit(cluster, *words, path)
        assert ended.rc == 2 and why in ended.err, ended
    ended = submit(cluster, "--array=0-3", "--", "--no-python", path)
    assert ended.rc == 2 and "--array: an array is many jobs" in ended.err, ended
    assert not (cluster.home / ".local/state/lockstep/slurm").exists()
