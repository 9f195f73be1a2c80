"""A job that hangs says so, and names the rank and the line: real gloo jobs in which one rank goes wrong."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest

from hang_kinds import HANG, LIGHT, can_happen, line_of
from harness import BINARY, PYTHON, SCRIPTS, SUPPORT, peer, until

CULPRIT = 2
HUNG = ["sleep", "lock", "gil", "fifo", "skipped", "wrong", "init", "new_group", "loader", "vfork",
        "loader_fuse"]


@pytest.fixture
def start(lockstep):
    """start(KIND, OPTION...): a job of four ranks on gloo (or without PyTorch), which is killed after the test."""
    jobs = []
    # Loaders send file descriptors through sockets in TMPDIR, whose paths must be short.
    with tempfile.TemporaryDirectory(dir="/tmp") as temp:
        def begin(kind, *options, script=HANG, version="1.13"):
            env = {} if version == "1.13" else {"PYTHON_EXEC": peer(version), "PYTHONPATH": SUPPORT / "torch-2.6"}
            jobs.append(lockstep.start("--nproc-per-node", 4, "--log-dir", lockstep.logs, *options,
                                       script, kind, CULPRIT,
                                       env={"TEST_FOLDER": temp, "TMPDIR": temp, "OMP_NUM_THREADS": "1", **env}))
            return jobs[-1]

        yield begin
        for job in jobs:
            job.kill()


def why(lockstep, job, *options):
    return subprocess.run([BINARY, "why", f"pid-{job.pid}", *options], env=lockstep.environment(),
                          capture_output=True, text=True, timeout=20)


def ranks_in(sentence, world):
    """The ranks of "the other 7 ranks were in ..." or "ranks 0-1, 5 were in ..."."""
    if sentence.startswith("the other "):
        return [rank for rank in range(world) if rank != CULPRIT]
    found = []
    for part in re.match(r"ranks? ([\d, -]+) (?:was|were|had)", sentence)[1].split(", "):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def trains(job):
    until(lambda: "training" in job.out(), 60, f"the job trains: {job.err()[-2000:]}")


@pytest.mark.parametrize("kind, version", [*((kind, "1.13") for kind in HUNG), ("sleep", "2.14"), ("init", "2.6")])
def test_a_hang_names_the_rank_and_the_line(lockstep, start, kind, version):
    if not can_happen(kind):
        pytest.skip("a dead file server needs root and FUSE")
    job = start(kind, "--hang-after", 5, version=version)
    if kind == "init":
        waits = f"waiting: 3 ranks wait for rank {CULPRIT} at {line_of(kind)} since "
        told = until(lambda: waits in (told := why(lockstep, job).stdout) and told, 60, "why names the rank")
        assert f" for the key of rank {CULPRIT}" in told and "hang: " not in job.err(), told
    until(lambda: "evidence:" in job.err(), 90, f"the hang is told: {kind}")
    said = job.err()[job.err().index("hang: "):]
    lines = [line for line in said.splitlines() if re.search(rf"\brank {CULPRIT}\b", line)]
    assert lines and line_of(kind) in lines[0], said
    assert re.search(r"\b3 ranks\b|\branks 0-1, 3\b", said), said
    evidence = pathlib.Path(re.search(r"evidence: (\S+)", said)[1])
    assert line_of(kind) in evidence.read_text(), said
    assert job.process.poll() is None, "a hang ends nothing"


def test_a_rank_that_computes_is_waited_for_and_does_not_hang(lockstep, start):
    job = start("loop", "--hang-after", 5)
    until(lambda: "waiting: " in job.err(), 90, "the wait is told")
    (line,) = [line for line in job.err().splitlines() if "waiting: " in line]
    assert f"3 ranks wait for rank {CULPRIT} at {line_of('loop')}" in line, line
    assert "hang: " not in job.err()


def test_a_stopped_rank_is_named(lockstep, start):
    job = start("stop", "--hang-after", 5, script=LIGHT)
    until(lambda: "stopped: " in job.err(), 90, "the stopped rank is told")
    said = job.err()[job.err().index("stopped: "):]
    assert line_of("stop", LIGHT) in said and f"rank {CULPRIT}" in said, said


def test_why_shows_what_the_ranks_of_a_running_job_do(lockstep, start):
    job = start("sleep", "--hang-after", "off")
    trains(job)
    said = until(lambda: (told := why(lockstep, job)).stdout.count(line_of("sleep")) and told, 60, "the sleep is seen")
    assert said.returncode == 0 and f"rank {CULPRIT}" in said.stdout, said
    assert re.search(r"3 ranks|ranks 0-1, 3", said.stdout), said
    (looks,) = json.loads(why(lockstep, job, "--json").stdout)["looks"]
    assert looks["world"] == 4 and looks["attempt"] == 1
    groups = looks["fold"]["groups"]
    assert sorted(rank for group in groups for ranks in group["ranks"].values()
                  for rank in ranks.split(", ")) == ["0-1", "2", "3"], groups
    threads = why(lockstep, job, "--rank", str(CULPRIT))
    assert threads.returncode == 0 and "main thread" in threads.stdout, threads
    assert re.search(r"hang\.py:\d+ in sleep\n.*hang\.py:\d+ in \S*step\n", threads.stdout), threads
    absent = why(lockstep, job, "--rank", "9")
    assert absent.returncode == 1 and "rank 9 of pid-" in absent.stderr, absent
    assert "hang: " not in job.err()
    # The socket of an agent is not seen from another network namespace.
    apart = subprocess.run(["unshare", "-n", BINARY, "why", f"pid-{job.pid}"], env=lockstep.environment(),
                           capture_output=True, text=True, timeout=20)
    assert apart.returncode == 0 and "no agent of the job answers" in apart.stdout, apart


def test_a_wrapper_is_looked_through(lockstep, start, tmp_path):
    """A shell runs one program after the other, with a helper beside them."""
    (tmp_path / "parked.py").write_text("import time\ntime.sleep(1000)\n")
    script = f"{PYTHON} -c 'import time; time.sleep(3)'; touch {tmp_path}/first; {PYTHON} {tmp_path}/parked.py"
    job = lockstep.start("--hang-after", "off", "--no-python", "/bin/sh", "-c", script)
    try:
        until((tmp_path / "first").exists, 30, "the first program has ended")
        until(lambda: "parked.py:2" in why(lockstep, job).stdout, 30, "the second program is seen")
    finally:
        job.kill()


def test_a_program_on_a_dead_file_server_holds_up_nothing(lockstep):
    """The agent looks for an interpreter in the files of a program, but not in one whose server may be dead."""
    if not can_happen("fuse"):
        pytest.skip("a dead file server needs root and FUSE")
    job = lockstep.start("--hang-after", "off", SCRIPTS / "on_dead_server.py", env={"TEST_FOLDER": lockstep.folder})
    try:
        until((lockstep.folder / "dead").exists, 30, f"the file server is dead: {job.err()}")
        until(lambda: "does not run CPython" in why(lockstep, job).stdout, 15, "the program has been looked at")
        job.signal(signal.SIGTERM)
        assert "ended by SIGTERM" in job.wait(15).err
    finally:
        job.kill()


def test_the_report_says_where_the_others_were(lockstep, start):
    job = start("sleep", "--hang-after", "off", "--nproc-per-node", 8, "--report", lockstep.folder / "report.json")
    trains(job)
    until(lambda: line_of("sleep") in why(lockstep, job).stdout, 60, "the sleep is seen")
    (pid,) = {looks["pid"] for looks in
              [json.loads(why(lockstep, job, "--rank", str(CULPRIT), "--json").stdout)["ranks"][0]]}
    os.kill(pid, signal.SIGKILL)
    ended = job.wait(60)
    assert ended.rc == 1
    others = json.loads((lockstep.folder / "report.json").read_text())["others"]
    assert others and all(f"\n  others    : {line}\n" in ended.err for line in others), str(ended)
    # gloo tells the others of the death at once, so on a loaded machine one may have left before it is looked at.
    assert line_of("the others") in others[0], others
    named = [rank for line in others for rank in ranks_in(line, 8)]
    assert sorted(named) == [rank for rank in range(8) if rank != CULPRIT], others


def test_why_while_the_job_restarts_and_while_it_ends(lockstep):
    """No rank runs at that time. The answer says so, and the job goes on."""
    fails = ("%0", "exit=3", "%1", "exit=3", "%2", "exit=3")  # the last restart waits for a second
    job = lockstep.start_worker("--max-restarts", 3, "--shutdown-timeout", 60,
                                actions=(*fails, "%3", "ignore=TERM", f"touch={lockstep.folder}",
                                         f"wait={lockstep.folder / 'over'}"))
    told = until(lambda: "no worker runs now" in (told := why(lockstep, job)).stdout and told, 10, "the pause is told")
    assert told.returncode == 0 and not told.stderr, told
    lockstep.ready(1, folder=lockstep.folder)
    until(lambda: "rank 0" in why(lockstep, job).stdout, 10, "the last attempt is shown")
    job.signal(signal.SIGTERM)
    told = until(lambda: "no worker runs now" in (told := why(lockstep, job)).stdout and told, 10, "the end is told")
    assert told.returncode == 0 and not told.stderr and job.process.poll() is None, told
    (lockstep.folder / "over").touch()
    job.wait(20)
    told = why(lockstep, job)
    assert told.returncode != 0 and len(told.stderr.splitlines()) == 1, told


@pytest.mark.parametrize("then", ["end", "restart"])
def test_a_hang_can_end_or_restart_the_job(lockstep, start, then):
    job = start("sleep", "--hang-after", 5, "--on-hang", then, "--max-restarts", 1,
                "--shutdown-timeout", 5, "--report", lockstep.folder / "report.json", script=LIGHT)
    ended = job.wait(150)
    assert ended.rc == 1, str(ended)
    report = json.loads((lockstep.folder / "report.json").read_text())
    attempts = report["attempts"]
    assert len(attempts) == (1 if then == "end" else 2), str(ended)
    assert attempts[-1]["ended_by"] == "hang" and f"rank {CULPRIT}" in attempts[-1]["why"], attempts
    assert ended.err.count("hang: ") == len(attempts), str(ended)
    # The report shows the places of all ranks before the stop, also of the culprit.
    (culprit,) = [line for line in report["others"] if line.startswith(f"rank {CULPRIT} was in ")]
    assert "hang_light.py:" in culprit and f"  others    : {culprit}\n" in ended.err, str(ended)
    # The run is over, and is explained by its report.
    said = subprocess.run([BINARY, "why", "--from", lockstep.folder / "report.json"], env=lockstep.environment(),
                          capture_output=True, text=True, timeout=20)
    assert said.returncode == 0 and f"\n  {culprit}\n" in said.stdout, said
    assert re.search(rf"\nhang: hung for \d+ s: rank {CULPRIT}\b", said.stdout), said
    folder = re.search(r"\n  evidence on \S+: (\S+)/hang-\*\.txt\n", said.stdout)
    assert folder and list(pathlib.Path(folder[1]).glob("hang-*.txt")), said


def test_a_file_that_is_no_report_is_refused(lockstep):
    path = lockstep.folder / "report.json"
    for text in (b"", b"[]", b'{"schema": 2}', b"\xff\x00" * 100, b"[" * 100000):
        path.write_bytes(text)
        said = subprocess.run([BINARY, "why", "--from", path], env=lockstep.environment(), capture_output=True,
                              text=True, timeout=20)
        assert said.returncode == 1 and said.stderr.count("\n") == 1, said
        assert "not a report of lockstep run" in said.stderr, said
    path.write_text('{"schema": 2, "outcome": "failed", "reason": "\\u001b[2J", "others": ["\\u001b]0;x"]}')
    said = subprocess.run([BINARY, "why", "--from", path], env=lockstep.environment(), capture_output=True, text=True,
                          timeout=20)
    assert said.returncode == 0 and "\x1b" not in said.stdout and "reason: \\x1b[2J" in said.stdout, said
    assert subprocess.run([BINARY, "why", "--from", path, "job"], env=lockstep.environment(),
                          capture_output=True, timeout=20).returncode == 2


def test_a_signal_is_passed_on_after_the_places_are_read(lockstep, start):
    """Slurm's time limit is such a signal."""
    job = start("sleep", "--hang-after", "off", "--report", lockstep.folder / "report.json", script=LIGHT)
    until(lambda: line_of("sleep", LIGHT) in why(lockstep, job).stdout, 60, "the sleep is seen")
    job.signal(signal.SIGTERM)
    ended = job.wait(60)
    report = json.loads((lockstep.folder / "report.json").read_text())
    assert report["outcome"] == "interrupted", str(ended)
    assert any(f"rank {CULPRIT} was in " in line and "hang_light.py:" in line for line in report["others"]), report
