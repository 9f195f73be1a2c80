"""lockstep top: the ranks of real gloo jobs as a table, for pipes, for programs, and in a terminal emulator."""
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import tempfile
import termios
import threading

import pytest

from hang_kinds import HANG, LIGHT, line_of
from harness import BINARY, PYTHON, skip, until

CULPRIT = 2
# A user sees all runs of his on this machine. Runs of other tests are out of sight in a PID namespace.
ALONE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]


@pytest.fixture
def start(lockstep):
    """start(KIND, OPTION...): a job of four ranks on gloo (or without PyTorch), which is killed after the test."""
    with tempfile.TemporaryDirectory(dir="/tmp") as temp:
        jobs = []

        def begin(kind, *options, script=HANG):
            env = {"TEST_FOLDER": temp, "TMPDIR": temp, "OMP_NUM_THREADS": "1"}
            jobs.append(lockstep.start("--nproc-per-node", 4, "--log-dir", lockstep.logs, "--tee", "3", *options,
                                       script, kind, CULPRIT, env=env))
            return jobs[-1]

        yield begin
        for job in jobs:
            job.kill()


def top(lockstep, job, *options, env=None):
    return subprocess.run([BINARY, "top", f"pid-{job.pid}", *options], env=lockstep.environment(env),
                          capture_output=True, text=True, timeout=30)


def rows(lockstep, job):
    ended = top(lockstep, job, "--json")
    assert ended.returncode == 0 and not ended.stderr, ended
    nodes = json.loads(ended.stdout)["nodes"]
    return {row["rank"]: row for node in nodes for row in node["rows"]}


def trains(job):
    until(lambda: "training" in job.out(), 60, f"the job trains: {job.err()[-2000:]}")


def test_a_table_and_json_of_a_training(lockstep, start):
    job = start("none", "--hang-after", "off")
    trains(job)
    def settled():
        all_rows = rows(lockstep, job)
        told = [row for row in all_rows.values() if row["waiting_share"] is not None and "hang.py:" in row["where"]]
        trained = {row["state"] for row in told} == {"training"}
        return len(told) == 4 and all_rows[0]["last_line"] and trained and all_rows

    seen = until(settled, 60, "shares, lines and output are known")
    for rank, row in seen.items():
        assert row["rank"] == rank and row["pid"] > 0 and row["memory_bytes"] > 1 << 20, row
        assert 0 <= row["waiting_share"] <= 1 and 0 <= row["cpu"] < 4, row
    assert seen[0]["last_line"] == "training" and seen[0]["output_age_ms"] >= 0, seen[0]
    assert seen[1]["output_age_ms"] == -1 and seen[1]["last_line"] == "", seen[1]
    table = top(lockstep, job)
    assert table.returncode == 0 and "\x1b" not in table.stdout, table
    title = f"job pid-{job.pid} on this machine: hang.py, attempt 1, 4 of 4 ranks"
    assert f"{title}\ntraining\n" in table.stdout, table.stdout
    assert re.search(r"^RANK +STATE +WHERE +WAIT +CPU +MEM", table.stdout, re.M), table.stdout
    assert re.search(r"^0\b.* training .*hang\.py:\d+.* training$", table.stdout, re.M), table.stdout
    ranks = [line.split()[0] for line in top(lockstep, job, "--sort", "cpu").stdout.splitlines()[3:]]
    assert ranks, "sorted"


@pytest.mark.parametrize("options, step", [((), "5"), (("--progress", "batch ([0-9]+)"), "70")])
def test_steps_come_from_the_output(lockstep, tmp_path, options, step):
    script = tmp_path / "steps.py"
    script.write_text(f"""import time
for i in range(3):
    print(f"step: {{i}} loss: 2.1 batch {{i * 10}}", flush=True)
    time.sleep(1.2)
print("step: 5 loss: 2.0 batch 70", flush=True)
time.sleep(2.5)
print("saved", flush=True)
time.sleep(1000)
""")
    job = lockstep.start("--nproc-per-node", 2, "--log-dir", lockstep.logs, "--tee", "3", *options, script)
    try:
        seen = until(lambda: (told := rows(lockstep, job)) and str(told.get(1, {}).get("step")) == step and told, 60,
                     step)
        assert {row["step_guessed"] for row in seen.values()} == {not options}, seen
        assert all(row["steps_per_s"] > 0 for row in seen.values()), seen
    finally:
        job.kill()


def test_a_hang_is_shown(lockstep, start):
    job = start("sleep", "--hang-after", 5)
    until(lambda: "hang: " in job.err(), 90, "the hang is told")
    text = top(lockstep, job).stdout
    assert re.search(rf"\nhung for \d+ s: rank {CULPRIT} at {line_of('sleep')}\n", text), text
    (culprit,) = [line for line in text.splitlines() if line.startswith(f"{CULPRIT} ")]
    assert " hung " in culprit and f"sleep, {line_of('sleep')}" in culprit, text
    (others,) = [line for line in text.splitlines() if line.startswith("0-1,3 ")]
    assert " waiting " in others and line_of("the others") in others, text
    one = top(lockstep, job, "--rank", str(CULPRIT))
    assert one.returncode == 0 and f"rank {CULPRIT} on " in one.stdout and "main thread" in one.stdout, one
    assert f"{line_of('sleep')} in sleep" in one.stdout, one.stdout
    absent = top(lockstep, job, "--rank", "9")
    assert absent.returncode == 1 and "rank 9 of pid-" in absent.stderr, absent
    assert job.process.poll() is None, "top ends nothing"


def test_bad_input(lockstep):
    for options, words in [(("--interval", "0"), "--interval must be"), (("--sort", "name"), "invalid choice"),
                           (("--rank", "-1"), "--rank"), (("a", "b"), "one word too many")]:
        ended = subprocess.run([BINARY, "top", *options], env=lockstep.environment(), capture_output=True, text=True,
                               timeout=20)
        assert ended.returncode == 2 and words in ended.stderr and ended.stderr.count("\n") == 1, ended
    unknown = subprocess.run([BINARY, "top", "pid-999999999"], env=lockstep.environment(), capture_output=True,
                             text=True, timeout=20)
    assert unknown.returncode == 1 and unknown.stderr.count("\n") == 1, unknown


@pytest.mark.skipif(os.getuid() != 0, reason="a PID namespace needs root")
@pytest.mark.parametrize("verb", ["top", "why"])
def test_the_only_job_needs_no_name(lockstep, verb):
    script = f"""
lockstep={BINARY}
$lockstep {verb} && exit 90 || [ $? = 1 ] || exit 91
$lockstep run --hang-after off --no-python sleep 1000 & first=$!
until $lockstep why pid-$first | grep -q 'rank 0'; do sleep 0.1; done
$lockstep {verb} | grep -q "job pid-$first" || exit 92
$lockstep run --hang-after off --no-python sleep 1000 & second=$!
until $lockstep why pid-$second | grep -q 'rank 0'; do sleep 0.1; done
$lockstep {verb} && exit 93 || [ $? = 2 ] || exit 94
kill $first $second; wait; exit 0"""
    ended = subprocess.run([*ALONE, "sh", "-c", script], env=lockstep.environment(), capture_output=True, text=True,
                           timeout=120)
    assert ended.returncode == 0, ended
    lines = [line for line in ended.stderr.splitlines() if f"lockstep {verb}: error: no job is named" in line]
    assert len(lines) == 2, ended.stderr
    assert "no job is named, and none runs" in lines[0], lines
    assert re.search(r"no job is named, and 2 run: pid-\d+ \(run .*\), pid-\d+ \(", lines[1]), lines


class Terminal:
    """lockstep top in a terminal emulator (pyte) behind a pty."""

    def __init__(self, lockstep, word, rows, columns, *options, env=None):
        try:
            import pyte
        except ImportError:
            skip("python3-pyte is not installed")
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.lock = threading.Lock()
        full = lockstep.environment({"TERM": "xterm-256color", "NO_COLOR": None, **(env or {})})
        self.process = subprocess.Popen([BINARY, "top", word, *options], stdin=slave, stdout=slave, stderr=slave,
                                        env=full, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave = slave
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            with self.lock:
                self.raw += data
                self.stream.feed(data)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if hasattr(self, "screen"):
            with self.lock:
                self.screen.resize(rows, columns)
            os.kill(self.process.pid, signal.SIGWINCH)

    def text(self):
        with self.lock:
            return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, *parts):
        return until(lambda: all(re.search(part, self.text()) for part in parts), 30,
                     f"{parts} on\n{self.text()}\n{self.raw[-300:]}")

    def chosen(self):
        """The text of the line in reverse video."""
        with self.lock:
            for row in range(self.screen.lines):
                if self.screen.buffer[row][0].reverse:
                    return self.screen.display[row].rstrip()
        return ""

    def press(self, keys):
        os.write(self.master, keys.encode())

    def end(self, code):
        assert self.process.wait(20) == code
        until(lambda: b"\x1b[?1049l" in self.raw and b"\x1b[?25h" in self.raw, 5, "the screen is left")
        assert termios.tcgetattr(self.slave) == self.before, "the keyboard is as before"
        flags = fcntl.fcntl(self.slave, fcntl.F_GETFL)
        assert not flags & os.O_NONBLOCK, "the shell's terminal blocks as before"

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        self.reader.join(10)  # its read() ends, before another terminal gets the same descriptor
        os.close(self.master)


@pytest.fixture
def terminal(lockstep):
    made = []

    def begin(*args, **options):
        made.append(Terminal(lockstep, *args, **options))
        return made[-1]

    yield begin
    for each in made:
        each.close()


@pytest.mark.parametrize("rows,columns", [(24, 80), (10, 40), (50, 200)])
def test_the_screen_of_a_hang(start, terminal, rows, columns):
    job = start("sleep", "--hang-after", 5, script=LIGHT)
    trains(job)
    shown = terminal(f"pid-{job.pid}", rows, columns)
    shown.shows(rf"^job pid-{job.pid} on this machine", r"\nRANK +STATE +WHERE", r"q quit")
    shown.shows(r"\nhung for \d+ ", rf"\n{CULPRIT} +hung +.*hang_light\.py", r"\n0-1,3 +waiting")
    lines = shown.text().split("\n")
    assert len(lines) == rows and all(len(line) <= columns for line in lines), lines
    if columns >= 80:
        assert line_of("sleep", LIGHT) in shown.text() and " CPU" in shown.text(), shown.text()
    assert shown.chosen().startswith("0-1,3"), shown.text()
    shown.press("j")
    until(lambda: shown.chosen().startswith(f"{CULPRIT} "), 10, "the second line is chosen")
    shown.press("\r")
    shown.shows(rf"rank {CULPRIT} on .*hung", "Esc back")
    if rows > 20:
        shown.shows("main thread", line_of("sleep", LIGHT))
    shown.press("\x1b")
    shown.shows(r"\nRANK +STATE")
    shown.press("q")
    shown.end(0)
    assert job.process.poll() is None


def test_keys_sizes_and_signals(lockstep, start, terminal):
    job = start("sleep", "--hang-after", "off", script=LIGHT)
    trains(job)
    until(lambda: line_of("sleep", LIGHT) in top(lockstep, job).stdout, 60, "the sleep is seen")
    shown = terminal(f"pid-{job.pid}", 24, 80, "--interval", "0.3")
    shown.shows(r"\n0-1,3 ")
    shown.press("/sleep")
    shown.shows("filter: sleep_")
    assert "0-1,3" not in shown.text(), shown.text()
    shown.press("\x1b")
    shown.shows(r"\n0-1,3 ")
    shown.press("f")
    shown.shows(r"\n0 ", r"\n1 ", r"\n3 ")
    shown.press("s")
    shown.shows("sorted by node")
    shown.resize(12, 60)
    shown.shows("q quit")
    until(lambda: len([line for line in shown.text().split("\n") if line]) <= 12, 10, "the new size")
    shown.press("\x1a")  # Ctrl-Z
    until(lambda: pathlib.Path(f"/proc/{shown.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", 10,
          "top is stopped")
    assert termios.tcgetattr(shown.slave) == shown.before
    os.kill(shown.process.pid, signal.SIGCONT)
    shown.press("f")
    shown.shows(r"\n0-1,3 ")
    shown.press("\x03")  # Ctrl-C
    shown.end(130)
    assert job.process.poll() is None, "the job goes on"
    assert b"\x1b[3" in shown.raw or b"\x1b[2" in shown.raw, "faint and colours on a terminal"


def test_no_color_and_the_end_of_the_job(start, terminal):
    job = start("sleep", "--hang-after", 5, script=LIGHT)
    until(lambda: "hang: " in job.err(), 90, "the hang is told")
    shown = terminal(f"pid-{job.pid}", 24, 80, "--interval", "0.3", env={"NO_COLOR": "1"})
    shown.shows(r"\nhung for ")
    job.signal(signal.SIGTERM)
    shown.end(0)
    assert not re.search(rb"\x1b\[3[0-7]m", shown.raw), "no colour"
    assert f"pid-{job.pid} has ended".encode() in shown.raw


def test_a_dumb_terminal_gets_one_table_after_the_other(start, terminal):
    job = start("sleep", "--hang-after", "off", script=LIGHT)
    trains(job)
    shown = terminal(f"pid-{job.pid}", 24, 40, "--interval", "0.2", env={"TERM": "dumb"})
    until(lambda: shown.raw.count(b"RANK") >= 3, 30, "three tables")
    assert b"\x1b" not in shown.raw, shown.raw
    assert all(len(line) <= 40 for line in shown.raw.decode().split("\r\n")), shown.raw
    shown.press("\x03")
    assert shown.process.wait(10) == 130


def test_hostile_output_stays_text(lockstep, terminal):
    script = "printf 'a\\033]0;owned\\007\\033[2J\\342\\200\\256b\\n'; exec sleep 1000"
    job = lockstep.start("--hang-after", "off", "--tee", "3", "--log-dir", lockstep.logs, "--no-python", "/bin/sh",
                         "-c", script)
    try:
        until(lambda: "owned" in top(lockstep, job).stdout, 30, "the line is shown")
        assert "\x1b" not in top(lockstep, job).stdout and "\x07" not in top(lockstep, job).stdout
        shown = terminal(f"pid-{job.pid}", 24, 200)
        shown.shows("owned")
        assert b"\x1b]" not in shown.raw and b"\x07" not in shown.raw and b"\xe2\x80\xae" not in shown.raw
        shown.press("q")
        shown.end(0)
    finally:
        job.kill()


def test_a_straggler_is_told_and_withdrawn(lockstep, tmp_path):
    script = tmp_path / "slow.py"
    script.write_text("""import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = int(os.environ["RANK"])
begin = time.monotonic()
while True:
    slow = rank == 1 and time.monotonic() - begin < 75
    time.sleep(0.3 if slow else 0.1)
    dist.all_reduce(torch.ones(4))
""")
    job = lockstep.start("--nproc-per-node", 4, "--hang-after", "off", script, env={"OMP_NUM_THREADS": "1"})
    try:
        until(lambda: "straggler: " in job.err(), 120, "the straggler is told")
        (line,) = [line for line in job.err().splitlines() if "straggler: " in line]
        assert re.search(r"straggler: rank 1 \(node .*\) makes the others wait: it waits \d+ % of the time, "
                         r"the median \d+ %", line), line
        assert "\nstraggler: rank 1 " in top(lockstep, job).stdout
        until(lambda: "rank 1 no longer makes the others wait" in job.err(), 120, "it is withdrawn")
        assert job.err().count("makes the others wait") == 2
    finally:
        job.kill()
