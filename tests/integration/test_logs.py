"""The places of workers' output, and that no output is lost on the way."""
import os
import re
import resource
import signal
import socket
import subprocess
import time

import pytest

from harness import BINARY, PYTHON, WORKER, one_line, status_of


def files(lockstep, attempt=0):
    root = lockstep.attempt(attempt)
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


HELLO = ["out=to stdout\\n", "err=to stderr\\n"]


def test_layout_without_any_option(lockstep):
    ended = lockstep.run_worker("--nproc-per-node", 2, "--log-dir", lockstep.logs / "a/b", actions=HELLO)
    assert ended.rc == 0, str(ended)
    assert (ended.out, ended.err.count("to stderr\n")) == ("to stdout\n" * 2, 2)
    (job,) = (lockstep.logs / "a/b").iterdir()
    assert re.fullmatch(r"[0-9a-f-]{36}_[a-z0-9_]{8}", job.name)
    assert job.stat().st_mode & 0o777 == 0o700
    assert sorted(str(p.relative_to(job)) for p in job.rglob("*") if p.is_dir()) == [
        "attempt_0", "attempt_0/0", "attempt_0/1"]


def test_default_place_is_the_temporary_directory(lockstep):
    lockstep.run_worker(actions=[f"env={lockstep.facts}"])
    error_file = lockstep.worker_env()["TORCHELASTIC_ERROR_FILE"]
    assert re.search(r"/torchelastic_[a-z0-9_]{8}/attempt_0/0/error\.json$", error_file)
    assert error_file.startswith(f"{lockstep.temp}/")


@pytest.mark.parametrize("option", [["-r", "1"], ["-t", "0:2"], ["--duplicate-stdout-filters", "x"]])
def test_logs_in_the_temporary_directory_lie_as_torchrun_lays_them(lockstep, option):
    lockstep.run_worker(*option, actions=[f"env={lockstep.facts}"])
    error_file = lockstep.worker_env()["TORCHELASTIC_ERROR_FILE"]
    assert re.search(r"/torchelastic_[a-z0-9_]{8}/[^/]+/attempt_0/0/error\.json$", error_file)


@pytest.mark.parametrize("args, actions, files", [
    (["-r", "1"], ["exit=0"], ["attempt_0/0/stdout.log", "attempt_0/1/stdout.log"]),
    ([], ["error={}", "exit=1"], ["attempt_0/1/error.json"])])
def test_a_job_that_wrote_a_file_keeps_its_directory(lockstep, args, actions, files):
    lockstep.run_worker(*args, "--nproc-per-node", 2, actions=["@1", *actions])
    (made,) = lockstep.temp.iterdir()
    if args:
        (made,) = made.iterdir()
    assert sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()) == files


@pytest.mark.parametrize("actions", [["exit=0"], ["exit=1"]])
def test_a_job_that_wrote_no_file_leaves_no_directory(lockstep, actions):
    lockstep.run_worker("--max-restarts", 1, actions=actions)
    assert list(lockstep.temp.iterdir()) == []
    lockstep.run_worker("--log-dir", lockstep.logs, actions=actions)
    assert list(lockstep.logs.glob("*/attempt_0/0")), "where the place was given it stays"


@pytest.mark.skipif(os.getuid() != 0, reason="mounts a file system")
def test_a_full_disk_is_named_where_the_worker_could_not_say_so(lockstep):
    """-r 3: the worker's last words went to the full disk."""
    lockstep.logs.mkdir()
    script = "import sys\nwhile True: print('x' * 100000, flush=True)"
    ended = lockstep.run("-r", 3, "--log-dir", lockstep.logs, "--no-python", PYTHON, "-c", script, program=[
        "unshare", "--mount", "--propagation", "private", "sh", "-c",
        f"mount -t tmpfs -o size=1m none {lockstep.logs} && exec {BINARY} run \"$@\"", "sh"])
    assert ended.rc == 1
    assert f"the disk of the log directory {lockstep.logs}" in ended.err, str(ended)
    assert "is full: no space is left" in ended.err, str(ended)


def test_run_id_names_the_directory(lockstep):
    args = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--log-dir", lockstep.logs]
    lockstep.run_worker(*args, "--rdzv-id", "a job", actions=["exit=0"])
    (job,) = lockstep.logs.iterdir()
    assert re.fullmatch("a job_[a-z0-9_]{8}", job.name)
    one_line(lockstep.run_worker(*args, "--rdzv-id", "a/b", actions=["exit=0"]), 1, "a/b", "slash")


def test_redirect(lockstep):
    ended = lockstep.run_worker("-r", 3, "--nproc-per-node", 2, "--log-dir", lockstep.logs,
                                actions=HELLO, env={"OMP_NUM_THREADS": "1"})
    assert (ended.rc, ended.out, ended.err) == (0, "", ""), str(ended)
    found = files(lockstep)
    for rank in "01":
        assert found[f"{rank}/stdout.log"] == b"to stdout\n"
        assert found[f"{rank}/stderr.log"] == b"to stderr\n"


def test_tee(lockstep):
    ended = lockstep.run_worker("-t", 3, "--nproc-per-node", 2, "--log-dir", lockstep.logs, actions=HELLO,
                                env={"OMP_NUM_THREADS": "1"})
    assert ended.rc == 0
    assert sorted(ended.out.splitlines()) == ["[default0]:to stdout", "[default1]:to stdout"]
    assert sorted(ended.err.splitlines()) == ["[default0]:to stderr", "[default1]:to stderr"]
    assert files(lockstep)["1/stderr.log"] == b"to stderr\n"


def test_per_rank_specs(lockstep):
    ended = lockstep.run_worker("-r", "0:1,1:2", "--nproc-per-node", 2, "--log-dir", lockstep.logs, actions=HELLO,
                                env={"OMP_NUM_THREADS": "1"})
    assert (ended.rc, ended.out, ended.err) == (0, "to stdout\n", "to stderr\n"), str(ended)
    found = files(lockstep)
    assert found["0/stdout.log"] == b"to stdout\n" and found["1/stderr.log"] == b"to stderr\n"
    assert found.get("0/stderr.log", b"") == b"" and found.get("1/stdout.log", b"") == b""


def test_ranks_of_several_digits(lockstep):
    ended = lockstep.run_worker("-t", "10:1", "--nproc-per-node", 12, "--log-dir", lockstep.logs,
                                actions=["@10", "out=ten\\n"])
    assert (ended.rc, ended.out) == (0, "[default10]:ten\n"), str(ended)


def test_ranks_beyond_nproc_are_ignored(lockstep):
    assert lockstep.run_worker("-r", "7:3", actions=["exit=0"]).rc == 0


def test_role_is_in_the_prefix(lockstep):
    ended = lockstep.run_worker("--role", "trainer", "-t", 1, actions=["out=x\\n"])
    assert ended.out == "[trainer0]:x\n"


@pytest.mark.parametrize("args, env", [
    (["--log-line-prefix-template", "${hostname}:${rank}/${local_rank} ${role_name} ${what}> "], {}),
    ([], {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "${hostname}:${rank}/${local_rank} ${role_name} ${what}> "})])
def test_prefix_template(lockstep, args, env):
    ended = lockstep.run_worker("-t", 1, *args, env=env, actions=["out=x\\n"])
    assert ended.out == f"{socket.gethostname()}:0/0 default ${{what}}> x\n"


def test_prefix_with_the_time(lockstep):
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}"
    ended = lockstep.run_worker("-t", 1, "--log-prefix", "time", "--duplicate-stdout-filters", "two",
                                "--log-dir", lockstep.logs,
                                actions=["out=one\\n", "sleep=50", "out=two\\n"], env={"TZ": "UTC"})
    lines = ended.out.splitlines()
    assert [re.fullmatch(rf"({stamp}) \[default 0\] (\w+)", line)[2] for line in lines] == ["one", "two"]
    assert lines == sorted(lines) and lines[0][:23] != lines[1][:23]
    now = time.strftime("%Y-%m-%d %H:", time.gmtime())
    assert ended.out.startswith(now) or time.gmtime().tm_min < 2
    assert re.fullmatch(rf"{stamp} \[default 0\] two\n", files(lockstep)["filtered_stdout.log"].decode())
    ended = lockstep.run_worker("-t", 1, "--log-line-prefix-template", "${rank}@${time}: $${time} ",
                                actions=["out=x\\n"])
    assert re.fullmatch(rf"0@{stamp}: \$\{{time\}} x\n", ended.out), ended.out


def test_prefix_for_people_only_when_asked(lockstep):
    assert lockstep.run_worker("-t", 1, "--log-prefix", "readable", "--role", "trainer",
                               actions=["out=x\\n"]).out == "[trainer 0] x\n"
    assert lockstep.run_worker("-t", 1, "--log-prefix", "torchrun", actions=["out=x\\n"]).out == "[default0]:x\n"


@pytest.mark.parametrize("wanted", ["0", "rank:0"])
def test_ranks_filter_with_tee(lockstep, wanted):
    ended = lockstep.run_worker("--local-ranks-filter", wanted, "-t", 3, "--nproc-per-node", 2, "--log-dir",
                                lockstep.logs, actions=HELLO, env={"OMP_NUM_THREADS": "1"})
    assert (ended.out, ended.err) == ("[default0]:to stdout\n", "[default0]:to stderr\n")
    assert files(lockstep)["1/stdout.log"] == b"to stdout\n"


def test_ranks_filter_without_tee(lockstep):
    ended = lockstep.run_worker("--local-ranks-filter", "1", "--nproc-per-node", 2, env={"OMP_NUM_THREADS": "1"},
                                actions=["@0", "out=zero\\n", "@1", "out=one\\n"])
    assert ended.out == "one\n"


def test_duplicate_filters(lockstep):
    ended = lockstep.run_worker("--duplicate-stdout-filters", "a,,b,c", "-t", 1, "--log-dir", lockstep.logs,
                                actions=["out=has a,b here\\n", "out=has a only\\n", "out=has c\\n", "out=none\\n"])
    assert ended.rc == 0
    assert files(lockstep)["filtered_stdout.log"] == b"[default0]:has a,b here\n[default0]:has c\n"
    assert ended.out.count("\n") == 4


def test_duplicate_filters_with_tee_off_make_an_empty_file(lockstep):
    lockstep.run_worker("--duplicate-stderr-filters", "x", "--log-dir", lockstep.logs, actions=["err=x\\n"])
    assert files(lockstep)["filtered_stderr.log"] == b""


@pytest.mark.parametrize("args", [[], ["-t", "3"], ["-r", "3"]])
def test_log_dir_dev_null(lockstep, args):
    ended = lockstep.run_worker("--log-dir", "/dev/null", *args, actions=[f"env={lockstep.facts}"])
    assert ended.rc == 0, str(ended)
    assert lockstep.worker_env()["TORCHELASTIC_ERROR_FILE"] == ""
    assert list(lockstep.temp.iterdir()) == []


def test_bytes_survive(lockstep):
    text = b"50%\r100%\rdone\n\xff\xfe bad \xc3( utf\n\0nul\nlast without newline"
    source = lockstep.folder / "text"
    source.write_bytes(text)
    ended = lockstep.run("-t", 1, "--log-dir", lockstep.logs, "--no-python", "/bin/cat", source,
                         stdout=open(lockstep.folder / "console", "wb"))
    assert ended.rc == 0
    assert files(lockstep)["0/stdout.log"] == text
    console = (lockstep.folder / "console").read_bytes()
    assert console.replace(b"[default0]:", b"") == text
    assert console.startswith(b"[default0]:50%\r") and not console.endswith(b"\n")


@pytest.mark.parametrize("how", ["raise=KILL", "abort", "exit=1", "exit=0"])
def test_nothing_is_lost_when_the_worker_dies(lockstep, how):
    ended = lockstep.run_worker("-t", 1, "--nproc-per-node", 2, "--log-dir", lockstep.logs,
                                actions=["lines=20000", how], env={"PET_SHUTDOWN_TIMEOUT": 5})
    console = ended.out.splitlines()
    for rank in "01":
        kept = files(lockstep)[f"{rank}/stdout.log"].decode().splitlines()
        shown = [line.partition(":")[2] for line in console if line.startswith(f"[default{rank}]")]
        if how == "exit=0":
            assert len(kept) == 20000
        assert kept == shown == [f"line {i}" for i in range(len(kept))]
    assert any(line.endswith(":line 19999") for line in console)


def test_output_comes_before_the_report(lockstep):
    both = open(lockstep.folder / "both", "w+b")
    lockstep.run_worker("-t", 3, actions=["lines=5000", "err=last words\\n", "exit=1"], stdout=both, stderr=both)
    text = (lockstep.folder / "both").read_text()
    assert text.index("[default0]:line 4999") < text.index("FAILED")
    assert text.index("[default0]:last words") < text.index("FAILED")


def test_a_line_is_on_the_console_at_once(lockstep):
    """The best of ten counts: the machine may be busy with something else for a while."""
    reader, writer = os.pipe()
    go = [lockstep.folder / f"go{n}" for n in range(10)]
    run = lockstep.start_worker("-t", 1, stdout=writer, actions=[
        f"touch={lockstep.facts}", *(action for file in go for action in (f"wait={file}", "out=now\\n")), "await"])
    os.close(writer)
    lockstep.ready(1)
    took = []
    for file in go:
        written = time.monotonic()
        file.touch()
        assert os.read(reader, 100) == b"[default0]:now\n"
        took.append(time.monotonic() - written)
    assert min(took) < 0.1, took  # 2 ms of it are the worker's own waiting
    os.close(reader)
    run.signal(signal.SIGTERM)
    run.wait()


def shown_while_the_worker_lives(lockstep, text):
    reader, writer = os.pipe()
    run = lockstep.start_worker("-t", 1, stdout=writer, actions=[f"out={text}", "pause"])
    os.close(writer)
    shown = os.read(reader, 100)
    os.close(reader)
    run.signal(signal.SIGTERM)
    run.wait()
    return shown


def test_a_progress_bar_is_shown_without_waiting_for_its_end(lockstep):
    assert shown_while_the_worker_lives(lockstep, "50%\\r").startswith(b"[default0]:50%\r")


def test_a_prompt_is_shown_while_the_worker_waits(lockstep):
    assert shown_while_the_worker_lives(lockstep, "name? ") == b"[default0]:name? "


PIECES = """
import os, sys, time
rank = os.environ["RANK"]
for step in range(5):
    # print() of several values writes each of them at once to an unbuffered stream.
    for piece in ("rank", " ", rank, " ", str(step)):
        sys.stdout.write(piece)
        time.sleep(0.05)
    print()
print(rank * 1_000_000)
"""


def test_lines_of_ranks_that_write_them_in_pieces_are_whole(lockstep):
    (lockstep.work / "pieces.py").write_text(PIECES)
    ended = lockstep.run("-t", 1, "--nproc-per-node", 8, "pieces.py")
    assert ended.rc == 0, str(ended)[:2000]
    whole = [f"[default{rank}]:rank {rank} {step}" for rank in range(8) for step in range(5)]
    whole += [f"[default{rank}]:" + str(rank) * 1_000_000 for rank in range(8)]
    shown = ended.out.splitlines()
    assert sorted(shown) == sorted(whole), [line[:100] for line in shown]


def test_a_daemon_that_holds_the_pipe_does_not_hold_the_job(lockstep):
    started = time.monotonic()
    ended = lockstep.run_worker("-t", 3, actions=["daemon", "out=done\\n", "exit=0"])
    assert (ended.rc, ended.out) == (0, "[default0]:done\n")
    assert time.monotonic() - started < 15


def test_a_console_that_nobody_reads_any_more_does_not_end_the_job(lockstep):
    reader, writer = os.pipe()
    os.close(reader)
    ended = lockstep.run_worker("-t", 1, "--log-dir", lockstep.logs, stdout=writer, actions=["lines=5000"])
    os.close(writer)
    assert ended.rc == 0, str(ended)
    assert files(lockstep)["0/stdout.log"].count(b"\n") == 5000


def test_a_slow_reader_slows_but_loses_nothing(lockstep):
    reader, writer = os.pipe()
    run = lockstep.start_worker("-t", 1, stdout=writer, actions=["lines=100000"])
    os.close(writer)
    agent = run.agent()
    time.sleep(0.3)  # the reader is slow: nothing is read for a while
    assert int(status_of(agent)["VmHWM"].split()[0]) < 32 << 10
    seen = b""
    while chunk := os.read(reader, 1 << 20):
        seen += chunk
    os.close(reader)
    assert run.wait().rc == 0
    assert seen.count(b"\n") == 100000 and seen.endswith(b":line 99999\n")


def test_a_line_of_a_gigabyte_costs_bounded_memory(lockstep):
    size = 1 << 30
    reader, writer = os.pipe()
    run = lockstep.start_worker("-t", 1, "--log-dir", lockstep.logs, stdout=writer,
                                actions=[f"touch={lockstep.facts}", f"bytes={size}", f"wait={lockstep.folder}/go"])
    os.close(writer)
    lockstep.ready(1)
    agent = run.agent()
    total = 0
    while total < size:
        total += len(os.read(reader, 1 << 20))
    peak = int(status_of(agent)["VmHWM"].split()[0])
    (lockstep.folder / "go").touch()
    assert run.wait(30).rc == 0
    assert total == size + len("[default0]:")
    assert (lockstep.attempt(0) / "0/stdout.log").stat().st_size == size
    (lockstep.attempt(0) / "0/stdout.log").unlink()
    assert peak < 32 << 10, f"{peak} kB"
    os.close(reader)


def test_a_full_disk_is_reported_once_and_the_job_goes_on(lockstep):
    lockstep.logs.mkdir()
    mounted = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
               'mount -t tmpfs -o size=256k none "$0" && exec "$@"', lockstep.logs, BINARY, "run"]
    if os.getuid() != 0:
        mounted.insert(1, "--map-root-user")
    ended = lockstep.run("-t", 1, "--log-dir", lockstep.logs, "--no-python", WORKER, "lines=200000", program=mounted)
    assert ended.rc == 0, str(ended)[:2000]
    assert ended.out.count("\n") == 200000
    said = [line for line in ended.err.splitlines() if "No space left" in line]
    assert len(said) == 1, ended.err[:2000]


def test_a_limit_on_file_size_is_survived(lockstep):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, resource.RLIM_INFINITY))
    reader, writer = os.pipe()
    run = lockstep.start_worker("-t", 1, "--log-dir", lockstep.logs, stdout=writer, preexec_fn=limited,
                                actions=["lines=100000"])
    os.close(writer)
    seen = 0
    while chunk := os.read(reader, 1 << 20):
        seen += chunk.count(b"\n")
    os.close(reader)
    ended = run.wait()
    assert (ended.rc, seen) == (0, 100000), str(ended)[:2000]
    assert (lockstep.attempt(0) / "0/stdout.log").stat().st_size <= 100000


@pytest.mark.parametrize("how", ["-r", "-t"])
def test_log_files_of_a_limited_size(lockstep, how):
    ended = lockstep.run_worker(how, 3, "--log-max-size", "4K", "--log-dir", lockstep.logs,
                                actions=["lines=3000", "err=words\\n", "exit=1"])
    assert ended.rc == 1
    found = files(lockstep)
    names = ["0/stdout.log", *(f"0/stdout.log.{n}" for n in range(1, 6))]
    assert sorted(found) == sorted([*names, "0/stderr.log"])
    assert all(len(found[name]) <= 4096 for name in names) and min(len(found[name]) for name in names[1:]) > 4000
    kept = b"".join(found[name] for name in reversed(names)).decode().splitlines()
    assert kept == [f"line {n}" for n in range(3000 - len(kept), 3000)], kept[:2]
    assert ended.out == ("" if how == "-r" else "".join(f"[default0]:line {n}\n" for n in range(3000)))
    assert "words" in ended.err, "the tail of stderr is in the report"


def test_two_workers_lines_are_not_mixed(lockstep):
    ended = lockstep.run_worker("-t", 1, "--nproc-per-node", 2, actions=["lines=30000"])
    lines = ended.out.splitlines()
    assert len(lines) == 60000
    assert all(re.fullmatch(r"\[default[01]\]:line \d+", line) for line in lines)


def test_logs_of_every_attempt_stay(lockstep):
    ended = lockstep.run_worker("--max-restarts", 2, "-r", 1, "--log-dir", lockstep.logs,
                                actions=["%0", "out=zero\\n", "exit=1", "%1", "out=one\\n", "exit=1", "%2",
                                         "out=two\\n"])
    assert ended.rc == 0
    assert [files(lockstep, n)["0/stdout.log"] for n in range(3)] == [b"zero\n", b"one\n", b"two\n"]


def test_agent_log_lines_go_to_stderr_in_the_known_form(lockstep):
    ended = lockstep.run_worker("--nproc-per-node", 2, actions=["exit=0"])
    for line in ended.error_lines:
        assert re.match(r"[WIEDC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ \S+\] ", line), line
    assert ended.out == ""


def test_the_order_of_both_streams_is_kept_where_they_are_one(lockstep):
    """`lockstep run ... > log 2>&1`: lines of stdout and stderr stay in the order they were written."""
    code = "import os\nfor i in range(300): os.write(1, b'%d\\n' % (2 * i)); os.write(2, b'%d\\n' % (2 * i + 1))"
    ended = lockstep.run("--no-python", PYTHON, "-c", code, stderr=subprocess.STDOUT)
    assert ended.rc == 0, str(ended)
    assert [int(line) for line in ended.out.splitlines()] == list(range(600))
