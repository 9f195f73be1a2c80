"""What a person learns when workers fail, and how the job goes on."""
import json
import os
import pty
import re
import signal
import time

import pytest

from harness import SCRIPTS, read, report_of, until

FAIL = SCRIPTS / "fail.py"
STAMP = r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d"


def entry(index, rank, code, name=None, trace=None, file="<N/A>"):
    shown = f"  exitcode  : {code} (pid: PID) " + (f" ({name})" if name else "")
    if trace is None:
        trace = (f"Signal {-code} ({name}) received by PID PID" if code < 0
                 else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html")
    return [f"[{index}]:", "  time      : TIME", "  host      : HOST", f"  rank      : {rank} (local_rank: {rank})",
            shown, f"  error_file: {file}", f"  traceback : {trace}"]


def masked(lines):
    text = "\n".join(lines)
    text = re.sub(STAMP, "TIME", text)
    text = re.sub(r"(?m)^  host      : \S+$", "  host      : HOST", text)
    text = re.sub(r"(?m)^(  \d+ workers? .*: ranks? .*) on \S+$", r"\1 on HOST", text)
    text = re.sub(r"\(pid: \d+\)", "(pid: PID)", text)
    return re.sub(r"PID \d+", "PID PID", text).splitlines()


def inner(err):
    """The report without borders and rules (their width is checked), masked."""
    lines = report_of(err)
    assert lines, err
    widest = max(len(line) for line in lines)
    assert lines[0] == lines[-1] == "=" * min(60, max(len(line) for line in lines[1:-1] if set(line) != {"-"}))
    rules = [line for line in lines if set(line) == {"-"}]
    assert rules and all(len(rule) == len(lines[0]) for rule in rules), widest
    return masked(line for line in lines[1:-1] if set(line) != {"-"})


def test_report_of_one_failure_and_the_peer_that_was_stopped(lockstep):
    ended = lockstep.run("--nproc-per-node", 2, FAIL, 3)
    assert ended.rc == 1, str(ended)
    assert inner(ended.err) == [
        f"{FAIL} FAILED", "Failures:", "  <NO_OTHER_FAILURES>", "  1 worker was stopped: rank 1 on HOST",
        "Root Cause (first observed failure):", *entry(0, 0, 3)]
    assert re.search(r"failed \(exitcode: 3\) local_rank: 0 \(pid: \d+\) of binary: /usr/bin/python3", ended.err)
    assert "ChildFailedError" in ended.err
    assert ended.out == ""


def test_the_long_report_is_torchruns(lockstep):
    ended = lockstep.run("--nproc-per-node", 2, "--report-tails", "all", FAIL, 3)
    assert ended.rc == 1, str(ended)
    assert inner(ended.err) == [
        f"{FAIL} FAILED", "Failures:", *entry(1, 1, -15, "SIGTERM"),
        "Root Cause (first observed failure):", *entry(0, 0, 3)]


# Sixteen workers that log, and one of them fails: what is read first is short, and names what it leaves out.
def test_report_of_many_workers_is_short(lockstep):
    def ended(*args):
        facts = lockstep.facts
        for file in facts.iterdir():
            file.unlink()
        return lockstep.run_worker(
            "--nproc-per-node", 16, "-r", 3, "--log-dir", lockstep.logs, *args, timeout=60, actions=[
                "errlines=30", f"touch={facts}", "@7", *(f"wait={facts}/{rank}" for rank in range(16)),
                "err=Traceback (most recent call last):\\nValueError: x\\n", "exit=1", "@*", "pause"])
    short = ended()
    log = lockstep.attempt(0) / "7/stderr.log"
    lines = inner(short.err)
    assert "  15 workers were stopped: ranks 0-6, 8-15 on HOST" in lines, str(short)
    assert "  traceback : see stderr below" in lines and "To enable traceback" not in short.err
    assert lines[lines.index(f"  logs      : {log}") + 1] == f"              {log.with_name('stdout.log')}"
    assert len(report_of(short.err)) == 39
    assert len(report_of(ended("--report-tails", "all").err)) > 450


def test_further_failures_are_short_and_in_rank_order(lockstep):
    ready = [lockstep.facts / str(rank) for rank in range(4)]
    ended = lockstep.run_worker("--nproc-per-node", 4, actions=[
        "ignore=TERM", 'error={"message": "broken", "timestamp": 1790000005}', "@2",
        'error={"message": "first", "timestamp": 1790000001}', "@*", f"touch={lockstep.facts}",
        *(f"wait={path}" for path in ready), "exit=1"])
    lines = inner(ended.err)
    others = [f"[{rank}]:\n  host      : HOST\n  rank      : {rank} (local_rank: {rank})\n"
              "  exitcode  : 1 (pid: PID) \n  traceback : broken" for rank in (0, 1, 3)]
    assert "\n".join(lines).startswith("\n".join([lines[0], "Failures:", *others, "Root Cause"])), str(ended)
    assert lines[-1] == "  traceback : first"


@pytest.mark.parametrize("env, colour", [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                                         ({"TERM": "dumb"}, False)])
def test_the_root_cause_is_in_colour_on_a_terminal(lockstep, env, colour):
    leader, follower = pty.openpty()
    try:
        run = lockstep.start_worker(actions=["exit=1"], stdin=follower, stdout=follower, stderr=follower,
                                    env={"NO_COLOR": None, **env})
        os.close(follower)
        seen = b""
        while seen.count(b"=======\r\n") < 2:
            seen += os.read(leader, 65536)
        assert run.wait().rc == 1
    finally:
        os.close(leader)
    assert (b"\x1b[31mRoot Cause (first observed failure):\x1b[0m" in seen) == colour, seen
    assert (b"\x1b" in seen) == colour, seen


def test_report_of_a_single_worker(lockstep):
    ended = lockstep.run_worker(actions=["exit=7"])
    assert ended.rc == 1
    assert inner(ended.err)[1:] == [
        "Failures:", "  <NO_OTHER_FAILURES>", "Root Cause (first observed failure):", *entry(0, 0, 7)]


def test_first_failure_is_the_root(lockstep):
    mark = lockstep.folder / "mark"
    ended = lockstep.run_worker("--nproc-per-node", 3, actions=[
        "@0", f"wait={mark}", "exit=5", "@1", "ignore=TERM", f"mark={mark}", "pause", "@2", f"wait={mark}",
        "sleep=1200", "exit=6"], env={"PET_SHUTDOWN_TIMEOUT": 4})
    assert ended.rc == 1, str(ended)
    lines = inner(ended.err)
    root = lines[lines.index("Root Cause (first observed failure):"):]
    assert "  exitcode  : 5 (pid: PID) " in root


def test_printed_pids_are_those_that_ps_shows(lockstep):
    run = lockstep.start_worker("--nproc-per-node", 2, "--isolation", "pidns", actions=[
        f"touch={lockstep.facts}", "pause"])
    lockstep.ready(2)
    workers = sorted(pid for pid, comm in run.living().items() if comm == "test_worker")
    os.kill(workers[0], signal.SIGKILL)
    ended = run.wait()
    assert f"(pid: {workers[0]})" in ended.err, str(ended)


def test_worker_killed_by_a_signal(lockstep):
    run = lockstep.start_worker("--nproc-per-node", 2, actions=[f"touch={lockstep.facts}", "pause"])
    pids = lockstep.ready(2)
    os.kill(pids[1], signal.SIGKILL)
    ended = run.wait()
    assert ended.rc == 1
    assert f"Signal 9 (SIGKILL) received by PID {pids[1]}" in ended.err
    assert inner(ended.err)[-7:] == entry(1 if "[1]:" in ended.err.split("Root Cause")[1] else 0, 1, -9, "SIGKILL")


@pytest.mark.parametrize("action, number, name", [("abort", 6, "SIGABRT"), ("segv", 11, "SIGSEGV")])
def test_fatal_signals_are_named(lockstep, action, number, name):
    ended = lockstep.run_worker(actions=[action])
    assert ended.rc == 1
    assert f"Signal {number} ({name}) received by PID" in ended.err
    assert "core dumped" not in ended.err


@pytest.mark.skipif(read("/proc/sys/kernel/core_pattern").startswith("|"), reason="core files go to a program")
def test_core_dump_is_named(lockstep):
    ended = lockstep.run_worker(actions=["core", "abort"])
    assert ended.rc == 1
    assert "core dumped" in report_text(ended)


def report_text(ended):
    return "\n".join(report_of(ended.err) or [])


RECORDED = json.dumps({"message": {"message": "ValueError: x", "extraInfo": {
    "py_callstack": "Traceback (most recent call last):\n  File \"t.py\", line 3\nValueError: x",
    "timestamp": "1790000000"}}})


def escaped(text):
    return text.replace("\\", "\\\\")


def test_error_file_gives_the_traceback(lockstep):
    ended = lockstep.run_worker("--log-dir", lockstep.logs, actions=[f"error={escaped(RECORDED)}", "exit=1"])
    assert ended.rc == 1
    lines = report_of(ended.err)
    assert "  traceback : Traceback (most recent call last):" in lines
    assert '    File "t.py", line 3' in lines
    assert f"  error_file: {lockstep.attempt(0) / '0/error.json'}" in lines
    assert json.loads(read(lockstep.attempt(0) / "0/error.json")) == json.loads(RECORDED)


def test_error_file_with_plain_text(lockstep):
    ended = lockstep.run_worker(actions=['error={"message": "disk on fire", "timestamp": 1790000000}', "exit=1"])
    assert "  traceback : disk on fire" in report_of(ended.err)


def test_error_file_that_cannot_be_parsed_is_shown_as_it_is(lockstep):
    ended = lockstep.run_worker(actions=["error=not json at all", "exit=1"])
    assert ended.rc == 1
    assert "not json at all" in report_text(ended)


def test_earliest_error_file_is_the_root(lockstep):
    ended = lockstep.run_worker("--nproc-per-node", 2, actions=[
        "@1", "ignore=TERM", 'error={"message": "early", "timestamp": 1790000001}', f"touch={lockstep.facts}",
        "sleep=300",
        "@0", f"wait={lockstep.facts / '1'}", 'error={"message": "late", "timestamp": 1790000009}', "@*", "exit=1"])
    assert "[0]:" in inner(ended.err)
    assert "early" in "\n".join(report_of(ended.err)).split("Root Cause")[1]


def test_error_file_is_copied_to_the_parents(lockstep):
    own = lockstep.folder / "own.json"
    own.write_text("old")
    ended = lockstep.run_worker(actions=[f"error={escaped(RECORDED)}", "exit=4"],
                                env={"TORCHELASTIC_ERROR_FILE": own})
    assert ended.rc == 1, str(ended)
    want = json.loads(RECORDED)
    want["message"]["errorCode"] = 4
    assert json.loads(own.read_text()) == want


def test_last_lines_of_stderr_are_in_the_report(lockstep):
    ended = lockstep.run_worker(actions=["errlines=1000", "err=boom: it broke\\n", "exit=1"])
    assert "boom: it broke" in report_text(ended)
    assert "line 10\n" not in report_text(ended)  # the last ones, not all
    assert ended.err.count("line 10\n") == 1 and ended.err.count("line 500\n") == 1  # nor lost, nor doubled


@pytest.mark.parametrize("args", [["-r", "3"], ["-t", "3"], ["--log-dir", "/dev/null"]])
def test_last_lines_of_stderr_however_it_is_routed(lockstep, args):
    ended = lockstep.run_worker(*args, actions=["err=boom: it broke\\n", "exit=1"])
    assert "boom: it broke" in report_text(ended)


def test_stderr_stays_a_terminal(lockstep):
    leader, follower = pty.openpty()
    try:
        run = lockstep.start_worker(actions=[f"state={lockstep.facts}", f"touch={lockstep.facts}", "err=boom\\n",
                                             "exit=1"],
                                    stdin=follower, stdout=follower, stderr=follower)
        os.close(follower)
        lockstep.ready(1)
        seen = b""
        while b"Root Cause" not in seen:
            seen += os.read(leader, 65536)
        assert run.wait().rc == 1
    finally:
        os.close(leader)
    assert lockstep.worker_state()["tty"] == "1 1 1"
    assert seen.count(b"boom") == 2  # once where it was written, once in the report


def test_peer_that_ignores_term_is_killed_after_the_timeout(lockstep):
    ended = lockstep.run_worker("--nproc-per-node", 2, "--shutdown-timeout", 1, actions=[
        "@1", "ignore=TERM", f"touch={lockstep.facts}", "pause", "@0", f"wait={lockstep.facts / '1'}", "exit=1"])
    assert ended.rc == 1
    assert 0.9 < ended.seconds < 20
    assert "  1 worker was stopped by SIGKILL: rank 1 on HOST" in inner(ended.err)


def test_restarts_until_none_is_left(lockstep):
    ended = lockstep.run_worker("--max-restarts", 2, "--log-dir", lockstep.logs, "--nproc-per-node", 2,
                                actions=[f"touch={lockstep.facts}", "out=x\\n", "@0", "exit=1", "@1", "pause"])
    assert ended.rc == 1
    (job,) = lockstep.logs.iterdir()
    assert sorted(p.name for p in job.iterdir()) == ["attempt_0", "attempt_1", "attempt_2"]
    assert ended.out.count("x\n") == 6 or ended.out.count("x\n") >= 3  # rank 1 may be stopped before it writes
    assert ended.err.count("Root Cause") == 1


def test_restart_count_is_told_and_a_later_attempt_may_succeed(lockstep):
    ended = lockstep.run_worker("--max-restarts", 3, "--nproc-per-node", 2, actions=[
        "%0", "@0", "exit=1", "@1", "pause", "%1", "@1", "abort", "@0", "pause", "%2", "@*", f"env={lockstep.facts}"])
    assert ended.rc == 0, str(ended)
    assert report_of(ended.err) is None
    for rank in (0, 1):
        env = lockstep.worker_env(rank)
        assert (env["TORCHELASTIC_RESTART_COUNT"], env["TORCHELASTIC_MAX_RESTARTS"]) == ("2", "3")


def test_restarts_of_attempts_that_die_at_once_are_held_back(lockstep):
    """The first one is immediate, then 0.5 s, 1 s ..."""
    ended = lockstep.run_worker("--max-restarts", 3, actions=["exit=1"])
    assert ended.rc == 1
    waits = re.findall(r"waiting (\S+) s before the restart: the last (\d) attempts lived less than 10 s each",
                       ended.err)
    assert waits == [("0.5", "2"), ("1", "3")], str(ended)
    assert ended.seconds >= 1.5


@pytest.mark.parametrize("longest, waits", [("0", []), ("0.6", ["0.5"] + 2 * ["0.6"])])
def test_the_longest_pause_is_the_users(lockstep, longest, waits):
    ended = lockstep.run_worker("--max-restarts", 4, "--restart-backoff", longest, actions=["exit=1"])
    assert ended.rc == 1
    assert re.findall(r"waiting (\S+) s before the restart", ended.err) == waits, str(ended)
    assert ended.err.count("restarting all workers") == 4


def test_a_signal_ends_the_pause_before_a_restart(lockstep):
    run = lockstep.start_worker("--max-restarts", 100, actions=["exit=1"])
    until(lambda: "waiting 4 s before the restart" in run.err(), 30)
    sent = time.monotonic()
    run.signal(signal.SIGTERM)
    ended = run.wait()
    assert time.monotonic() - sent < 3.5, str(ended)
    assert ended.rc == 1
    assert "ended by SIGTERM" in ended.err
    run.none_left()


def test_port_is_kept_over_a_restart(lockstep):
    ended = lockstep.run_worker("--max-restarts", 1, actions=[
        "%0", f"env={lockstep.facts}", f"touch={lockstep.facts}", "exit=1", "%1", f"env={lockstep.home}"])
    assert ended.rc == 0, str(ended)
    ports = [re.search(rb"MASTER_PORT=(\d+)", (d / "0.env").read_bytes())[1] for d in (lockstep.facts, lockstep.home)]
    assert ports[0] == ports[1]


def test_all_of_a_failed_attempt_is_gone_before_the_next(lockstep):
    """Children and daemons of attempt 0 are dead when attempt 1 runs."""
    run = lockstep.start_worker("--max-restarts", 1, actions=[
        "%0", "loaders=3", "daemon", f"touch={lockstep.facts}", "exit=1", "%1", f"touch={lockstep.home}", "await"])
    lockstep.ready(1, folder=lockstep.home)
    workers = [pid for pid, comm in run.living().items() if comm == "test_worker"]
    assert len(workers) == 1
    run.signal(signal.SIGTERM)
    run.wait()


def test_partial_success_stops_nobody(lockstep):
    first = lockstep.folder / "first"
    ended = lockstep.run_worker("--nproc-per-node", 2, actions=[
        "@0", f"mark={first}", "exit=0", "@1", f"wait={first}", "sleep=300", "out=finished\\n"])
    assert (ended.rc, ended.out) == (0, "finished\n"), str(ended)


def test_report_that_cannot_be_written_is_refused_before_the_start(lockstep):
    ended = lockstep.run_worker("--report", "/proc/nowhere/report.json", actions=[f"touch={lockstep.facts}"])
    assert ended.rc == 1
    assert list(lockstep.facts.iterdir()) == []


@pytest.mark.parametrize("action, code", [("exit=7", 7), ("exit=0", 0), ("raise=KILL", 137), ("segv", 139)])
def test_exit_code_of_the_worker(lockstep, action, code):
    assert lockstep.run_worker("--exit-code", "worker", actions=[action]).rc == code


def test_exit_code_is_torchruns_by_default(lockstep):
    assert lockstep.run_worker(actions=["exit=77"]).rc == 1
    assert lockstep.run_worker("--exit-code", "torchrun", actions=["exit=77"]).rc == 1


def memory_cgroup():
    """The folder of a new cgroup with a limit of 64 MB; None where none can be made."""
    name = f"lockstep-test-{os.getpid()}"
    for root, limit, v2 in (("/sys/fs/cgroup", "memory.max", True),
                            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", False)):
        folder = f"{root}/{name}"
        try:
            os.mkdir(folder)
            if not os.path.exists(f"{folder}/{limit}"):
                raise OSError("no memory controller here")
            with open(f"{folder}/{limit}", "w") as file:
                file.write(str(64 << 20))
            for swap in ("memory.swap.max", "memory.memsw.limit_in_bytes"):
                if os.path.exists(f"{folder}/{swap}"):
                    with open(f"{folder}/{swap}", "w") as file:
                        file.write("0" if v2 else str(64 << 20))
            return folder
        except OSError:
            if os.path.isdir(folder):
                os.rmdir(folder)
    return None


def test_out_of_memory_is_named(lockstep):
    folder = memory_cgroup()
    if folder is None:
        pytest.skip("no memory cgroup can be made here")
    try:
        def join():
            with open(f"{folder}/cgroup.procs", "w") as file:
                file.write(str(os.getpid()))
        ended = lockstep.run_worker("--nproc-per-node", 2, actions=["@0", "alloc=256", "@1", "pause"], preexec_fn=join)
        assert ended.rc == 1, str(ended)
        root = report_text(ended).split("Root Cause")[1]
        assert "SIGKILL" in root and "memory" in root.lower(), str(ended)
    finally:
        until(lambda: not os.path.exists(folder) or removed(folder), 5, "cgroup removed")


def removed(folder):
    try:
        os.rmdir(folder)
        return True
    except OSError:
        return False


def test_no_memory_blame_without_cause(lockstep):
    ended = lockstep.run_worker(actions=["raise=KILL"])
    assert "memory" not in report_text(ended).lower()


def test_a_report_fifo_that_nobody_reads_does_not_hold_the_end(lockstep):
    os.mkfifo(lockstep.folder / "report")
    ended = lockstep.run_worker("--report", lockstep.folder / "report", actions=["exit=0"])
    assert ended.rc == 0 and "--report" in ended.err, str(ended)


def test_a_helper_that_outlives_its_worker_may_say_its_last_words(lockstep):
    """On SIGTERM it writes 2 MB to its teed stdout; all of it arrives."""
    script = lockstep.folder / "helper.py"
    script.write_text("""
import os, signal, sys, time
if os.fork():
    while not os.path.exists(sys.argv[1]): time.sleep(0.01)
    os._exit(0)
def last(*_):
    sys.stdout.buffer.write(b"x" * 2_000_000 + b"\\nlast line\\n")
    sys.stdout.flush()
    os._exit(0)
signal.signal(signal.SIGTERM, last)
open(sys.argv[1], "w").close()
signal.pause()
""")
    ended = lockstep.run("-t", 1, script, lockstep.folder / "up")
    assert ended.rc == 0 and "last line" in ended.out, str(ended)[-500:]
