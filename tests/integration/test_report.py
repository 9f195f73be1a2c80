"""--report FILE, the line at a restart, and the line at the end of a job."""
import json
import re
import subprocess
import time

import pytest

from harness import BINARY, REPOSITORY, free_port, read
from nodes import QUICK, Job, held, kill_agent, starts


def documented(heading):
    """The fields that docs/report.md lists under a heading, with their types."""
    text = read(REPOSITORY / "docs/report.md").split(f"### {heading}\n", 1)[1].split("\n##", 1)[0]
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.M))


def fits(value, kind, where):
    if kind.endswith(" or null"):
        if value is None:
            return
        kind = kind.removesuffix(" or null")
    if kind.startswith("list of "):
        assert isinstance(value, list), where
        for item in value:
            fits(item, kind.removeprefix("list of ").removesuffix("s"), where)
        return
    types = {"int": int, "bool": bool, "text": str, "path": str, "object": dict}
    if kind in types:
        assert type(value) is types[kind], f"{where} is {value!r}, documented as {kind}"
    else:
        agrees(value, kind.capitalize())


def agrees(value, heading):
    fields = documented(heading)
    assert list(value) == list(fields), heading
    for name, kind in fields.items():
        fits(value[name], kind, f"{heading}.{name}")


def lines_with(err, text):
    return [line.split("] ", 1)[1] for line in err.splitlines() if text in line]


# A /dev of its own, so that the test cannot harm that of the machine.
OWN_DEV = """set -e
mkdir dev && mount -t tmpfs none dev
for name in null zero urandom random; do touch dev/$name; mount --bind /dev/$name dev/$name; done
ln -s /proc/self/fd/1 dev/stdout && ln -s /proc/self/fd dev/fd
mount --bind dev /dev
"$@" > out
readlink /dev/stdout
"""


def test_a_report_to_stdout_stands_behind_the_output_and_leaves_the_device(lockstep):
    ended = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", "-c", OWN_DEV, "sh", BINARY, "run",
                            "--no-python", "--report", "/dev/stdout", "echo", "hello"],
                           cwd=lockstep.folder, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "/proc/self/fd/1\n"), ended
    said, report = read(lockstep.folder / "out").split("\n", 1)
    assert said == "hello" and json.loads(report)["outcome"] == "succeeded"


def test_of_a_job_that_failed(lockstep):
    path = lockstep.folder / "report.json"
    before = time.time() * 1000
    ended = lockstep.run_worker("--nproc-per-node", 2, "--report", path, "--log-dir", lockstep.logs, "-r", 3,
                                "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job5",
                                actions=[f"touch={lockstep.facts}", "@0", f"wait={lockstep.facts / '1'}",
                                         "err=boom\\n", "exit=3", "@1", "pause"])
    assert ended.rc == 1
    report = json.loads(path.read_text())
    agrees(report, "Report")
    (job,) = lockstep.logs.iterdir()
    assert (report["schema"], report["run_id"], report["outcome"], report["log_dir"]) == (2, "job5", "failed", str(job))
    assert report["versions"] == {"lockstep": lockstep.run(program=(BINARY, "--version")).out.split()[1]}
    root = report["root_cause"]
    assert (root["rank"], root["local_rank"], root["exit_code"], root["signal"]) == (0, 0, 3, None)
    assert (root["stderr_tail"], root["message"]) == (["boom"], "")
    assert root["stderr_log"] == str(job / "attempt_0/0/stderr.log")
    (failure,), (other,), (attempt,) = report["failures"], report["stopped"], report["attempts"]
    assert failure == root
    assert (other["exit_code"], other["signal"], other["after_stop"]) == (-15, "SIGTERM", True)
    assert before - 1 <= report["start_ms"] <= attempt["start_ms"] <= attempt["end_ms"] <= report["end_ms"]
    assert (attempt["ended_by"], attempt["ranks"], attempt["log_dir"]) == ("worker", [0, 1], str(job / "attempt_0"))
    assert re.fullmatch(r"rank 0 on \S+ failed \(exitcode: 3\): boom", attempt["why"])
    assert "the job failed" not in ended.err, "a brief job without a restart has no last line"


def test_of_a_success(lockstep):
    path = lockstep.folder / "report.json"
    assert lockstep.run_worker("--report", path, "--log-dir", "/dev/null", actions=["exit=0"]).rc == 0
    report = json.loads(path.read_text())
    agrees(report, "Report")
    assert (report["outcome"], report["root_cause"], report["failures"]) == ("succeeded", None, [])
    assert [attempt["ended_by"] for attempt in report["attempts"]] == ["success"]
    assert report["log_dir"] is None


def test_of_a_launcher_that_did_not_begin(lockstep):
    path = lockstep.folder / "report.json"
    ended = lockstep.run("--report", path, "none.py")
    assert ended.rc == 1, ended
    report = json.loads(path.read_text())
    assert set(report) == {"schema", "versions", "node", "outcome", "reason"}
    assert report["outcome"] == "refused" and report["reason"].startswith("can't open script 'none.py'"), report
    # --explain writes no report.
    path.unlink()
    assert lockstep.run("--report", path, "--explain", "none.py").rc == 1
    assert not path.exists()


def test_of_nodes_that_never_met(lockstep):
    path = lockstep.folder / "report.json"
    ended = lockstep.run("--report", path, "--nnodes", 2, "--rdzv-backend", "c10d",
                         "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--rdzv-conf", "join_timeout=1",
                         "--no-python", "/bin/true")
    assert ended.rc == 1, ended
    report = json.loads(path.read_text())
    agrees(report, "Report")
    assert (report["outcome"], report["attempts"]) == ("no_rendezvous", []), report
    assert "timed out" in report["reason"], report


def test_restarts_name_rank_cause_and_log_and_are_counted_at_the_end(lockstep):
    path = lockstep.folder / "report.json"
    ended = lockstep.run_worker("--max-restarts", 3, "--report", path, "--log-dir", lockstep.logs, "-t", 2, actions=[
        "%0", "err=ValueError: x\\n", "exit=1", "%1", "raise=KILL", "%2", "exit=0"])
    assert ended.rc == 0, str(ended)
    (job,) = lockstep.logs.iterdir()
    first, second = lines_with(ended.err, "restarting all")
    assert re.fullmatch(r"restarting all workers of this node \(restart 1 of 3\): rank 0 on \S+ failed "
                        rf"\(exitcode: 1\): ValueError: x; log: {job}/attempt_0/0/stderr.log", first)
    assert re.search(rf": rank 0 on \S+ failed \(exitcode: -9, SIGKILL\); log: {job}/attempt_1/0/stderr.log$", second)
    (last,) = lines_with(ended.err, "the job ")
    assert re.fullmatch(rf"the job succeeded after \d+\.\d s, with 2 restarts; logs: {job}", last)
    report = json.loads(path.read_text())
    agrees(report, "Report")
    assert (report["restarts"], report["max_restarts"], report["attempts_total"]) == (2, 3, 3)
    assert [(a["restart_count"], a["is_restart"], a["ended_by"]) for a in report["attempts"]] == [
        (0, False, "worker"), (1, True, "worker"), (2, True, "success")]
    assert report["node_changes"] == []


def test_a_last_line_says_where_no_logs_are(lockstep):
    ended = lockstep.run_worker("--max-restarts", 1, "--log-dir", "/dev/null", actions=["exit=1"])
    (last,) = lines_with(ended.err, "the job ")
    assert re.fullmatch(r"the job failed after \S+ s, with 1 restart; logs: none \(--log-dir /dev/null\)", last)


def test_a_long_job_has_a_last_line(lockstep):
    ended = lockstep.run_worker(actions=["sleep=10100"], timeout=40)
    (last,) = lines_with(ended.err, "the job ")
    assert re.fullmatch(r"the job succeeded after 1\d\.\d s, with 0 restarts; logs: none \(-r 3 or .*\)", last)


def last_line_of(lockstep, secret="first", env=None):
    """The last line of a job with one restart."""
    ended = lockstep.run_worker("--max-restarts", 1, "--log-dir", "/dev/null", env=env, actions=[
        "%0", f"err={secret}", "exit=1", "%1", "exit=0"])
    assert ended.rc == 0, str(ended)
    (last,) = lines_with(ended.err, "the job ")
    return last


def test_the_last_line_compares_with_the_last_run_of_the_same_command(lockstep):
    state = lockstep.home / ".local/state/lockstep"
    plain = r"the job succeeded after \S+ s, with 1 restart; logs: none .*"
    assert lockstep.run_worker(actions=["exit=0"]).rc == 0
    assert not state.exists(), "a brief job has no last line, and keeps nothing"
    assert re.fullmatch(plain, last_line_of(lockstep))
    compared = r"the job .*, with 1 restart; last run \d+ s ago: \d+\.\d s, with 1 restart; logs: none .*"
    assert re.fullmatch(compared, last_line_of(lockstep))
    assert re.fullmatch(plain, last_line_of(lockstep, "second")), "another command"
    (file,) = state.iterdir()
    assert file.name == "last-runs.json" and len(json.loads(file.read_text())["runs"]) == 2
    assert state.stat().st_mode & 0o77 == 0 and "second" not in file.read_text(), "arguments may be secrets"
    file.write_bytes(b"\xff{")
    assert re.fullmatch(plain, last_line_of(lockstep))
    assert re.fullmatch(compared, last_line_of(lockstep)), "a damaged file is replaced"


@pytest.mark.parametrize("state", ("/proc/self", "/dev/null"))
def test_without_a_state_folder_nothing_is_compared(lockstep, state):
    ended = [last_line_of(lockstep, env={"XDG_STATE_HOME": state}) for _ in range(2)]
    assert all("last run" not in line for line in ended), ended
    assert list(lockstep.home.iterdir()) == []


def test_a_machine_that_wants_fips_of_openssl_is_no_hurdle(lockstep):
    """A static binary has no such module. The digest of the command must not end the job."""
    settings = lockstep.folder / "openssl.cnf"
    settings.write_text("openssl_conf = main\n[main]\nalg_section = kinds\n[kinds]\ndefault_properties = fips=yes\n")
    ended = [last_line_of(lockstep, env={"OPENSSL_CONF": settings}) for _ in range(2)]
    assert "last run" in ended[1], ended


def test_a_lost_node_is_in_the_report(lockstep):
    job = Job(lockstep)
    path = lockstep.folder / "report.json"
    go = lockstep.folder / "go"
    runs = held(job, 2, "--report", path, nnodes="1:2", settings=QUICK + ",last_call_timeout=1",
                actions=(f"wait={go}",))
    kill_agent(runs[1])
    starts(runs[0], 2)
    go.touch()
    ended = runs[0].wait(30)
    assert ended.rc == 0, str(ended)
    report = json.loads(path.read_text())
    agrees(report, "Report")
    (change,) = report["node_changes"]
    assert (change["nodes_before"], change["nodes_after"]) == (2, 1) and "127.0.0.3 is gone" in change["why"], report
    assert [(a["nodes"], a["is_restart"], a["ended_by"]) for a in report["attempts"]] == [
        (2, False, "nodes"), (1, False, "success")]
    (again,) = lines_with(ended.err, "(this is not counted as a restart)")
    assert "127.0.0.3 is gone" in again
    assert "with 0 restarts and 1 change of nodes; logs: " in ended.err


def test_a_signal_is_the_reason(lockstep):
    path = lockstep.folder / "report.json"
    run = lockstep.start_worker("--report", path, actions=[f"touch={lockstep.facts}", "pause"])
    lockstep.ready(1)
    run.signal(15)
    assert run.wait().rc == 1
    report = json.loads(read(path))
    agrees(report, "Report")
    (attempt,) = report["attempts"]
    assert (report["outcome"], attempt["ended_by"]) == ("interrupted", "signal")
    assert attempt["why"].endswith(" received SIGTERM")
