"""A job that stands still says in which collective: fake workers of NCCL, which dump flight recorders on request."""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from harness import BINARY, RECORDER_NAMES, SCRIPTS, SUPPORT, peer, until

SIDE = SCRIPTS / "nccl_side.py"
CULPRIT = 2


def line_of(mark):
    (number,) = [number for number, line in enumerate(SIDE.read_text().splitlines(), 1) if line.endswith(f"# {mark}")]
    return f"nccl_side.py:{number}"


@pytest.fixture
def start(lockstep):
    """start(KIND, OPTION...): a job of four ranks, which is killed after the test."""
    jobs = []
    with tempfile.TemporaryDirectory(dir="/tmp") as temp:
        def begin(kind, *options, **env):
            jobs.append(lockstep.start("--nproc-per-node", 4, "--log-dir", lockstep.logs, *options, SIDE, kind, CULPRIT,
                                       env={"TEST_FOLDER": temp, **env}))
            return jobs[-1]

        begin.folder = pathlib.Path(temp)
        yield begin
        for job in jobs:
            job.kill()


def told(job):
    """Returns the job's lines about its hang, with the evidence."""
    until(lambda: "evidence:" in job.err(), 60, f"the hang is told: {job.err()[-2000:]}")
    time.sleep(0.3)
    return job.err()[job.err().index("hang: "):]


def end(job):
    job.signal(signal.SIGTERM)
    return job.wait(60)


def files_of(folder):
    return sorted(path.name for path in folder.iterdir() if not path.is_dir())


def test_a_rank_that_never_entered_is_named(lockstep, start):
    job = start("never", "--hang-after", 6)
    said = told(job)
    assert f"rank {CULPRIT} never entered #8 nccl:all_reduce of default_pg, 4 KB" in said, said
    assert re.search(rf"rank 2 +never entered #8: sleep +{line_of('never')}", said), said
    assert re.search(rf"ranks 0-1, 3 +all_reduce #8 of default_pg, 4 KB +{line_of('sleeps')}", said), said
    assert "never entered #8" in pathlib.Path(re.search(r"evidence: (\S+)", said)[1]).read_text()
    why = subprocess.run([BINARY, "why", f"pid-{job.pid}"], env=lockstep.environment(), capture_output=True, text=True)
    assert "rank 2 never entered #8 nccl:all_reduce" in why.stdout, why
    assert re.search(rf"ranks 0-1, 3 +all_reduce #8 of default_pg, 4 KB +{line_of('sleeps')}", why.stdout), why
    end(job)
    # The dumps are evidence, and stay. So does a dump that comes at the end, because PyTorch may have made it at a time
    # limit. Nothing else stays.
    folder = pathlib.Path(re.search(r"flight recorders: (\S+)/hang-1_rank_\*", said)[1])
    files = [name for name in files_of(folder) if not re.fullmatch(r"(trace|timeout)_rank_\d", name)]
    assert files == ["hang-1.txt", *(f"hang-1_rank_{rank}" for rank in range(4))]


def test_dumps_that_come_late_are_told_later(start):
    """A hang is told at most 3 s later for the sake of its recorders."""
    job = start("slow", "--hang-after", 4)
    assert "never entered" not in told(job)
    sentence = f"hang: rank {CULPRIT} never entered #8 nccl:all_reduce of default_pg, 4 KB"
    until(lambda: sentence in job.err(), 40, f"the collective is told: {job.err()[-2000:]}")


def test_a_mismatch_names_both_collectives(start):
    said = told(start("mismatch", "--hang-after", 6))
    assert "mismatch in #8 of default_pg: nccl:all_gather (rank 2) against nccl:all_reduce (ranks 0-1, 3)" in said, said
    assert re.search(r"rank 2 +all_gather #8 of default_pg ", said), said


@pytest.mark.parametrize("foreign", [0, 50_000])
def test_a_watchdog_that_times_out_makes_evidence_once(lockstep, start, foreign):
    """The watchdog's key is also found in a store full of other keys."""
    job = start("signal", "--hang-after", 100, TEST_FOREIGN_KEYS=str(foreign))
    until(lambda: "flight recorders: " in job.err(), 30, f"the evidence is told: {job.err()[-2000:]}")
    said = job.err()[job.err().index("timeout: "):]
    assert said.startswith("timeout: the NCCL watchdog of rank 0 has timed out (attempt 1, 4 ranks"), said
    assert job.process.poll() is None and said.count("evidence: ") == 1, said
    assert "rank 2 never entered #8 nccl:all_reduce of default_pg, 4 KB" in said, said
    ended = job.wait(60)
    assert ended.rc != 0 and ended.err.count("timeout: the NCCL watchdog") == 1, ended.err


def test_ranks_in_one_collective_blame_nobody(start):
    said = told(start("network", "--hang-after", 6))
    assert "ranks 0-3 entered #8 nccl:all_reduce of default_pg, 4 KB, and none has left: network or libra" in said, said
    assert "hang: no rank has run" in said, said


def test_ranks_that_spin_while_no_collective_moves_hang(start):
    job = start("spin", "--hang-after", 6)
    said = told(job)
    assert said.startswith("hang: nothing that counts has moved for "), said
    assert "none has left: network or library" in said and line_of("spins") in said, said


def test_ranks_that_spin_while_collectives_move_do_not_hang(start):
    job = start("moves", "--hang-after", 4)
    until(lambda: "training" in job.out(), 60, "the job trains")
    time.sleep(20)
    assert "hang: " not in job.err() and "waiting: " not in job.err(), job.err()


def test_a_rank_that_computes_is_waited_for_and_does_not_hang(start):
    job = start("computes", "--hang-after", 4)
    until(lambda: "waiting: " in job.err(), 60, f"the wait is told: {job.err()[-2000:]}")
    (line,) = [line for line in job.err().splitlines() if "waiting: " in line]
    assert f"3 ranks wait for rank 2 at {line_of('spins')}" in line, line
    time.sleep(5)
    assert "hang: " not in job.err(), job.err()


@pytest.mark.parametrize("kind, words", [
    ("unread", None),
    ("gil", "the flight recorder of rank 2 did not answer: stopped, or Python's lock is held"),
    ("cut", "the flight recorder of rank 2 gave a dump that cannot be read"),
    ("huge", "the flight recorder of rank 2 gave a dump that cannot be read"),
    ("hostile", "the flight recorder of rank 2 gave a dump that cannot be read")])
def test_a_dump_that_is_missing_or_bad_costs_only_its_own_facts(start, kind, words):
    job = start(kind, "--hang-after", 22)
    said = told(job)
    assert "ranks 0-1, 3 entered #8 nccl:all_reduce of default_pg, 4 KB, and none has left; nothing is known of" in said
    assert words is None or words in said, said
    assert re.search(r"rank 2\b.*nccl_side\.py", said), said
    assert job.process.poll() is None and not (start.folder / "owned").exists()


def test_a_job_that_ends_leaves_no_files(lockstep, start):
    assert start("ends").wait(60).rc == 0
    assert [path.name for path in lockstep.attempt(0).iterdir() if not path.name.isdigit()] == []


def test_a_dump_of_pytorchs_own_time_limit_stays(lockstep, start):
    ended = start("times out").wait(60)
    assert ended.rc == 1
    folder = lockstep.attempt(0)
    assert files_of(folder) == [f"trace_rank_{CULPRIT}"], ended
    assert f"PyTorch has dumped flight recorders to {folder}" in ended.err, ended


def test_names_before_pytorch_2_9(start):
    said = told(start("never", "--hang-after", 6, TORCH_NCCL_TRACE_BUFFER_SIZE="2000"))
    assert "rank 2 never entered #8 nccl:all_reduce of default_pg, 4 KB" in said, said


@pytest.mark.parametrize("version", ["2.6", "2.14"])
def test_real_pytorch_on_gloo_does_not_mind_the_variables(lockstep, version):
    """Real NCCL needs GPUs. With the old name of the buffer's size, 2.14 would warn on each rank."""
    ended = lockstep.run("--nproc-per-node", 2, SCRIPTS / "all_reduce.py", timeout=120,
                         env={"PYTHON_EXEC": peer(version), "PYTHONPATH": SUPPORT / "torch-2.6"})
    assert ended.rc == 0 and ended.out.count("sum 3.0") == 2, ended
    assert "deprecated" not in ended.err and "TORCH_" not in ended.err, ended


@pytest.fixture
def gloo(lockstep):
    """gloo(COUNT, RANK, OPTION...): a job of real PyTorch on gloo, two ranks, which is killed after the test."""
    jobs = []

    def begin(*words, options=(), version="2.14"):
        env = {} if version == "1.13" else {"PYTHON_EXEC": peer(version), "PYTHONPATH": SUPPORT / "torch-2.6"}
        jobs.append(lockstep.start("--nproc-per-node", 2, "--log-dir", lockstep.logs, *options,
                                   SCRIPTS / "gloo_waits.py", *words, env={"OMP_NUM_THREADS": "1", **env}))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.kill()


def aid_folders(lockstep):
    return list(lockstep.temp.glob("lockstep-*/aid-*"))


def test_aid_names_the_rank_that_never_entered_a_collective_of_gloo(lockstep, gloo):
    """This PyTorch needs a sitecustomize that repairs it. That one is a user's, further down PYTHONPATH."""
    job = gloo(11, 1, options=["--hang-after", 6, "--aid"])
    said = told(job)
    assert "rank 1 never entered #12 gloo:all_reduce of default_pg, 1 KB" in said, said
    assert re.search(r"rank 0 +all_reduce #12 of default_pg, 1 KB +gloo_waits\.py", said), said
    (folder,) = aid_folders(lockstep)
    assert folder.stat().st_mode & 0o777 == 0o700 and {"0", "1"} <= {path.name for path in folder.iterdir()}
    end(job)
    assert aid_folders(lockstep) == []
    # The dumps are evidence, as they came: JSON.
    evidence = pathlib.Path(re.search(r"flight recorders: (\S+)/hang-1_rank_\*", said)[1])
    entries = json.loads((evidence / "hang-1_rank_0").read_text())["entries"]
    assert [entry["collective_seq_id"] for entry in entries] == list(range(1, 13))


def test_without_aid_collectives_of_gloo_are_not_told(lockstep, gloo):
    said = told(gloo(11, 1, options=["--hang-after", 6]))
    assert "hang: " in said and "entered" not in said, said
    assert aid_folders(lockstep) == []


@pytest.mark.parametrize("version", ["1.13", "2.6", "2.14"])
def test_a_job_with_aid_ends_as_one_without(lockstep, gloo, version):
    """PyTorch 1.13 has no control plane, and 2.6 has one without a recorder of gloo. Nothing is told of that."""
    ended = gloo(3, options=["--aid"], version=version).wait(120)
    assert ended.rc == 0 and ended.out.count("ended") == 2, ended
    assert "--aid" not in ended.err and "Error" not in ended.err, ended
    assert aid_folders(lockstep) == []


@pytest.mark.parametrize("given", ["unset", "plain", "second"])
def test_aid_leaves_pythons_path_and_sitecustomize_to_the_user(lockstep, given):
    first, second = lockstep.folder / "first", lockstep.folder / "second"
    for folder in (first, second):
        folder.mkdir()
    (second / "sitecustomize.py").write_text("import os\nos.environ['USERS_SITECUSTOMIZE'] = 'ran'\n")
    path = {"unset": None, "plain": first, "second": f"{first}:{second}"}[given]
    said = [lockstep.run(*options, SCRIPTS / "python_facts.py", env={"PYTHONPATH": path}).out
            for options in ([], ["--aid"])]
    assert said[0].count("sitecustomize.py") == 2, said
    assert ("user's: ran" in said[0]) == (given == "second"), said
    assert said[0] == said[1]
    assert aid_folders(lockstep) == []


def test_aid_is_taken_out_of_a_path_that_a_shell_script_has_changed(lockstep):
    script = f'PYTHONPATH=/first${{PYTHONPATH:+:$PYTHONPATH}} exec {sys.executable} {SCRIPTS / "python_facts.py"}'
    said = [lockstep.run(*options, "--no-python", "bash", "-c", script).out for options in ([], ["--aid"])]
    assert "/first" in said[0] and said[0] == said[1], said


def test_a_script_with_aid_may_wait_for_signals(lockstep):
    """PyTorch's threads must not take a signal that the script blocks."""
    script = lockstep.work / "waits.py"
    script.write_text("import torch.distributed, os, signal\nwanted = {signal.SIGUSR1}\n"
                      "signal.pthread_sigmask(signal.SIG_BLOCK, wanted)\nos.kill(os.getpid(), signal.SIGUSR1)\n"
                      "print('got', int(signal.sigwait(wanted)), len(os.listdir('/proc/self/task')), flush=True)\n")
    ended = lockstep.run("--aid", script, env={"PYTHON_EXEC": peer("2.14"), "PYTHONPATH": SUPPORT / "torch-2.6"},
                         timeout=60)
    assert ended.rc == 0 and (found := re.search(r"got 10 (\d+)", ended.out)), ended
    assert int(found[1]) > 5, "the control plane runs"


def test_aid_sets_one_variable_and_without_it_nothing_is_set(lockstep):
    def environment(*options, path=None):
        ended = lockstep.run_worker(*options, actions=[f"env={lockstep.facts}"], env={"PYTHONPATH": path})
        assert ended.rc == 0 and "--aid" not in ended.err, ended
        return lockstep.worker_env()

    plain, aided = environment(), environment("--aid")
    assert set(aided) - set(plain) == {"PYTHONPATH"}
    assert pathlib.Path(aided["PYTHONPATH"]).name.startswith("aid-")
    assert environment("--aid", path="/own")["PYTHONPATH"].endswith(":/own")
    assert environment(path="/own")["PYTHONPATH"] == "/own"
    ended = lockstep.run_worker("--aid", "--hang-after", "off", actions=["exit=0"])
    assert "--aid has no effect: --hang-after off" in ended.err, ended


def test_explain_lists_aid(lockstep):
    row = r"flight recorder +PYTHONPATH=a fresh folder, then the user's +option --aid"
    assert re.search(row, lockstep.run("--explain", "--aid", "--no-python", "true").out)
    assert "PYTHONPATH" not in lockstep.run("--explain", "--no-python", "true").out


def names_of(lockstep, *args, env=None, **options):
    ended = lockstep.run_worker(*args, actions=[f"env={lockstep.facts}"], env=env, **options)
    assert ended.rc == 0, ended
    return {name: value for name, value in lockstep.worker_env().items() if name in RECORDER_NAMES}


def test_variables_are_set_only_where_they_are_wanted(lockstep):
    found = names_of(lockstep)
    assert set(found) == RECORDER_NAMES
    assert not pathlib.Path(found["TORCH_FR_DUMP_TEMP_FILE"]).parent.exists(), "the folder goes with the attempt"
    assert names_of(lockstep, "--hang-after", "off") == {}
    assert names_of(lockstep, "--log-dir", "/dev/null") == {}
    own = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "/own"}
    assert names_of(lockstep, env=own) == own
    link = lockstep.folder / "torchrun"
    link.symlink_to(BINARY)
    assert names_of(lockstep, program=[link]) == {}


def test_explain_lists_the_variables(lockstep):
    ended = lockstep.run("--explain", "--no-python", "true")
    for name in RECORDER_NAMES:
        assert re.search(rf"flight recorder +{name}=.* rule: ", ended.out), ended
    assert re.search("flight recorder +not asked +--hang-after off",
                     lockstep.run("--explain", "--hang-after", "off", "--no-python", "true").out)
