"""Runs the real binary as a user would and looks at it from outside.

Every run carries its own token in the environment. The token finds all descendants of the run in /proc, even after
a change of parent, group or session. Nothing here sleeps to synchronise: `until` waits for a fact, with a deadline.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import uuid

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", REPOSITORY / "build/release"))
BINARY = BUILD / "lockstep"
WORKER = BUILD / "tests/test_worker"
SUPPORT = REPOSITORY / "tests/support"
SCRIPTS = SUPPORT / "workers"
PYTHON = "/usr/bin/python3"
# By these variables workers dump their flight recorders on request.
RECORDER_NAMES = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_FR_BUFFER_SIZE",
                  "TORCH_INCLUDE_STACK_TRACE"}
TOKEN = "LOCKSTEP_TEST_TOKEN"
PEERS = REPOSITORY / ".cache/peers"
SUITES = {"2.6": "trixie", "2.14": "sid"}  # which folder of `./dev peers` has that PyTorch

# Variables that would change what is tested if the person running the tests had them set.
FOREIGN = re.compile(r"^(PET_|TORCH|OMP_|NCCL_|LOCKSTEP_|CUDA_|MASTER_|RANK$|WORLD_|LOCAL_|GROUP_|ROLE_|LOGLEVEL$|"
                     r"VIRTUAL_ENV$|SLURM_|OMPI_|PMI_|MPI_|KUBERNETES_)")


def until(fact, deadline=10.0, what=None):
    """Returns the first true value of fact(). Fails with `what` after the deadline."""
    end = time.monotonic() + deadline
    pause = 0.002  # grows to 20 ms within 0.2 s: asking every 2 ms throughout was a tenth of all tests' CPU time
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what or fact}")
        time.sleep(pause)
        pause = min(pause * 1.1, 0.02)


@contextlib.contextmanager
def killed_at_end(*command, **options):
    """The process of the command, killed at the end. `with Popen` waits for it instead, also after a failed assert."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def read(path):
    return pathlib.Path(path).read_text(errors="replace")


def processes(token):
    """pid -> comm of every living process started under the token (zombies are dead)."""
    needle = f"{TOKEN}={token}".encode()
    found = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"/proc/{entry.name}/environ", "rb") as file:
                if needle not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{entry.name}/stat") as file:
                pid_comm, _, rest = file.read().rpartition(")")
            if rest.split()[0] not in "ZX":
                found[int(entry.name)] = pid_comm.partition("(")[2]
        except OSError:
            continue
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children(pid):
    try:
        return [int(p) for p in read(f"/proc/{pid}/task/{pid}/children").split()]
    except OSError:
        return []


def status_of(pid):
    return dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)


@dataclasses.dataclass
class Ended:
    rc: int
    out: str
    err: str
    seconds: float

    def __str__(self):
        return f"rc {self.rc} after {self.seconds:.2f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    @property
    def error_lines(self):
        return [line for line in self.err.splitlines() if line.strip()]


class Run:
    """One started launcher. Output goes to files unless the caller gave its own descriptors."""

    def __init__(self, argv, folder, token, env, cwd, **popen):
        self.token = token
        self.folder = folder
        self.argv = [str(part) for part in argv]
        self._out = open(folder / f"out.{token}", "w+b")
        self._err = open(folder / f"err.{token}", "w+b")
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", self._out)
        popen.setdefault("stderr", self._err)
        popen.setdefault("process_group", 0)
        self.started = time.monotonic()
        self.process = subprocess.Popen(self.argv, env=env, cwd=cwd, **popen)

    @property
    def pid(self):
        return self.process.pid

    def agent(self):
        """The agent's pid: the guardian's child, or the started process where there is no guardian."""
        def look():
            for pid, comm in processes(self.token).items():
                if comm == "lockstep-agent":
                    return pid
            return None
        return until(look, what="an agent")

    def out(self):
        return read(self._out.name)

    def out_bytes(self):
        with open(self._out.name, "rb") as file:
            return file.read()

    def err(self):
        return read(self._err.name)

    def signal(self, number, pid=None):
        os.kill(pid or self.pid, number)

    def signal_again(self, number):
        """Sends a TERM or INT that counts as the second one: Lockstep takes signals within 300 ms for one."""
        time.sleep(0.35)
        self.signal(number)

    def wait(self, timeout=20.0):
        try:
            rc = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s: {' '.join(self.argv)}\n{self.err()[-4000:]}")
        return Ended(rc, self.out(), self.err(), time.monotonic() - self.started)

    def living(self):
        return processes(self.token)

    def none_left(self, deadline=2.0):
        until(lambda: not self.living(), deadline, f"no process of the run left, but {self.living()}")

    def kill(self):
        """Kills all processes of the run, after a failed test."""
        for _ in range(50):
            left = self.living()
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(5)
        self._out.close()
        self._err.close()


class Starter:
    """Adds to `start`: running a command to its end, and starting the C worker (tests/support/worker.c)."""

    def run(self, *args, timeout=20.0, **options):
        run = self.start(*args, **options)
        ended = run.wait(timeout)
        run.none_left()
        return ended

    def start_worker(self, *args, actions, **options):
        return self.start(*args, "--no-python", WORKER, *actions, **options)


class Lockstep(Starter):
    """Starts runs in their own home and temporary directory, and finds processes that a run leaves behind."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.home = self.folder / "home"
        self.temp = self.folder / "temp"
        self.work = self.folder / "work"
        self.facts = self.folder / "facts"
        self.logs = self.folder / "logs"
        for path in (self.home, self.temp, self.work, self.facts):
            path.mkdir()
        self.runs = []

    def environment(self, env=None):
        base = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
        base.update(HOME=str(self.home), TMPDIR=str(self.temp), PYTHON_EXEC=PYTHON)
        for key, value in (env or {}).items():
            if value is None:
                base.pop(key, None)
            else:
                base[key] = str(value)
        return base

    def start(self, *args, env=None, cwd=None, program=(BINARY, "run"), token=None, **popen):
        token = token or uuid.uuid4().hex
        full = self.environment(env)
        full[TOKEN] = token
        run = Run([*program, *args], self.folder, token, full, cwd or self.work, **popen)
        self.runs.append(run)
        return run

    def run_worker(self, *args, actions, **options):
        return self.run(*args, "--no-python", WORKER, *actions, **options)

    def ready(self, count, deadline=10.0, folder=None):
        """Waits until `count` ranks have touched their file. Returns rank -> pid, as the worker sees its own pid."""
        folder = folder or self.facts
        def look():
            pids = {int(p.name): read(p) for p in folder.iterdir() if p.name.isdigit()}
            written = {rank: int(pid) for rank, pid in pids.items() if pid}  # a file is empty before it is written
            return len(written) >= count and written
        try:
            return until(look, deadline, f"{count} workers ready")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.runs[-1].err()[-4000:]}") from None

    def fact(self, name):
        return read(self.facts / name)

    def signals(self, rank, continued=False):
        """Returns the names of signals that the worker recorded. continued: also the CONT before a stop."""
        path = self.facts / f"{rank}.signals"
        names = read(path).split() if path.exists() else []
        return names if continued else [name for name in names if name != "CONT"]

    def worker_env(self, rank=0):
        raw = (self.facts / f"{rank}.env").read_bytes()
        return dict(item.split("=", 1) for item in raw.decode().split("\0") if item)

    def worker_argv(self, rank=0):
        return (self.facts / f"{rank}.argv").read_bytes().decode().split("\0")[1:-1]

    def worker_state(self, rank=0):
        pairs = (line.split(":", 1) for line in self.fact(f"{rank}.state").splitlines() if ":" in line)
        return {key: value.strip() for key, value in pairs}

    def attempt(self, number, base=None):
        """Returns the directory of an attempt. There must be a single job directory."""
        (job,) = list((base or self.logs).iterdir())
        return job / f"attempt_{number}"

    def close(self):
        left = {}
        for run in self.runs:
            left.update(run.living())
            run.kill()
        return left


def report_of(err):
    """Returns the lines of the failure report in the text, or None."""
    match = re.search(r"^(=+)\n(.*?)\n\1$", err, re.S | re.M)
    return match and match.group(0).splitlines()


def one_line(ended, rc, *words):
    """Checks the answer to bad input: the exit code, one line with the error and advice, no traceback."""
    assert ended.rc == rc, str(ended)
    assert len(ended.error_lines) == 1 and ": error: " in ended.err, str(ended)
    text = ended.err.lower()
    for word in words:
        assert str(word).lower() in text, f"{word!r} is not in {ended.err!r}"


def free_port():
    """Returns a free port below the ephemeral ports, which the kernel may give to a connection at any time."""
    import random
    import socket
    while True:
        port = random.randrange(10240, 32768)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port


def events(err):
    """The JSON objects among the lines of stderr."""
    found = []
    for line in err.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def peer(version):
    """Returns the wrapper that runs the Python of that PyTorch, or PEER_PROGRAM in the same system."""
    if not (PEERS / SUITES[version] / ".complete").exists():
        skip(f"no PyTorch {version} in .cache/peers/{SUITES[version]}: run ./dev peers")
    return SUPPORT / f"python-{SUITES[version]}"


def skip(reason):
    """Skips a test whose peer is missing. Fails where peers are required (LOCKSTEP_REQUIRE_PEERS=1)."""
    import pytest
    if os.environ.get("LOCKSTEP_REQUIRE_PEERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
