"""Several agents of one job on this machine. Each agent is a `lockstep run` (or torchrun) with its own loopback
address, as if it were a node."""
import json
import re
import shutil
import signal
import socket
import subprocess

import pytest

from harness import BUILD, SUPPORT, WORKER, free_port, peer, read, report_of, until
from tcp_store import Client

TRIXIE = SUPPORT / "python-trixie"
SHOWN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_NAME",
         "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
         "TORCHELASTIC_USE_AGENT_STORE")
SHOW = "show=" + ",".join(SHOWN)
QUICK = "keep_alive_interval=1,keep_alive_max_attempt=2"  # a silent node is gone after 2 s


def conf(*parts, **more):
    """The arguments for --rdzv-conf."""
    parts = [part for part in parts if part] + [f"{key}={int(value)}" for key, value in more.items()
                                                if value is not None]
    return ("--rdzv-conf", ",".join(parts)) if parts else ()


class Job:
    """Agents of one run id and one endpoint."""

    def __init__(self, lockstep, backend="c10d", version="2.6"):
        self.lockstep = lockstep
        self.worker = lockstep.folder / "worker"  # a copy in /tmp, which torchrun's chroot shares
        self.backend = backend
        self.version = version  # whose torchrun
        self.port = free_port()
        self.id = f"job{self.port}"
        self.endpoint = f"127.0.0.1:{self.port}"

    def meeting(self, number, nnodes):
        """Returns the options about the rendezvous and the address of agent `number` (0, 1, ...)."""
        common = ("--nnodes", nnodes, "--rdzv-id", self.id, "--local-addr", f"127.0.0.{number + 2}")
        if self.backend == "static":
            return (*common, "--node-rank", number, "--master-addr", "127.0.0.1", "--master-port", self.port)
        return (*common, "--rdzv-backend", self.backend, "--rdzv-endpoint", self.endpoint)

    def command(self, number, *args, nnodes="2", nproc=1, settings="", host=None):
        return (*self.meeting(number, nnodes), "--nproc-per-node", nproc, *conf(settings, is_host=host), *args)

    def node(self, number, *args, actions=(SHOW,), env=None, **options):
        """One of our agents with the C worker."""
        return self.lockstep.start_worker(*self.command(number, *args, **options), actions=actions,
                                          env={"LOGLEVEL": "INFO", **(env or {})})

    def script(self, number, script, *script_args, args=(), env=None, **options):
        """One of our agents with a Python worker."""
        return self.lockstep.start(*self.command(number, *args, **options), script, *script_args,
                                   env={"LOGLEVEL": "INFO", **(env or {})})

    def torchrun(self, number, *args, script=None, script_args=(), env=None, before=(), version=None,
                 **options):
        """PyTorch's torchrun with the C worker's actions, or with a Python script of the tests' tree or of /tmp."""
        if not script and not self.worker.exists():
            shutil.copy(WORKER, self.worker)
        what = (script, *script_args) if script else ("--no-python", self.worker, *script_args)
        return self.lockstep.start(
            *self.command(number, *args, **options), *what, program=(*before, peer(version or self.version)),
            env={"PEER_PROGRAM": "/usr/bin/torchrun", "PYTHONPATH": SUPPORT / "torch-2.6", "OMP_NUM_THREADS": 1,
                 "PYTHON_EXEC": None, **(env or {})})


@pytest.fixture(params=["c10d", "static"])
def job(lockstep, request):
    return Job(lockstep, request.param)


@pytest.fixture
def dynamic(lockstep):
    return Job(lockstep)


@pytest.fixture
def static(lockstep):
    return Job(lockstep, "static")


def need_torchrun():
    peer("2.6")


def shown(run):
    """Returns what the agent's workers have shown so far: a dict for each start of a worker."""
    lines = re.findall(r"^show (.*)$", run.out(), re.M)
    return [dict(item.split("=", 1) for item in line.split()) for line in lines]


def ranks(run):
    return [int(worker["RANK"]) for worker in shown(run)]


def starts(run, count, deadline=15):
    """Waits until `count` workers of this agent have started, restarts included."""
    try:
        return until(lambda: len(shown(run)) >= count and shown(run), deadline, f"{count} workers")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{run.out()}\n{run.err()[-6000:]}") from None


def ends(*runs, rc=0, timeout=20):
    """Waits until all runs have ended with this code and left no process."""
    ended = [run.wait(timeout) for run in runs]
    assert [end.rc for end in ended] == [rc] * len(runs), "\n\n".join(map(str, ended))
    for run in runs:
        run.none_left()
    return ended


def says(run, *texts, deadline=10):
    for text in texts:
        try:
            until(lambda: text in run.err(), deadline, f"{text!r} on stderr")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{run.err()[-4000:]}") from None


def listening(port):
    def look():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0
    return until(look, what=f"port {port} is served")


def written(text):
    """Returns None for the mark with which PyTorch creates the key: no state is written yet."""
    return text if text != b"Y2FuaW1hZGFt" else None


def states(job):
    """Returns the job's shared state as the store has it now. Waits for the first state."""
    client = Client(("127.0.0.1", job.port))
    text = until(lambda: written(client.get(f"/torch.rendezvous.{job.id}")), what="a state is written")
    client.socket.close()
    found = subprocess.run([BUILD / "tests/state_tool", "decode"], input=text + b"\n", capture_output=True, check=True)
    return json.loads(found.stdout)


def tells(run, key):
    return {worker[key] for worker in shown(run)}


def held(job, count, *args, first=(), actions=("pause",), own=None, **options):
    """Starts nodes and waits for their workers; node 0 hosts. first: actions of each rank before it shows itself."""
    runs = []
    for number in range(count):
        words = (*args, *(own(job, number) if own else ()))
        runs.append(job.node(number, *words, actions=(*first, SHOW, *actions), **options))
        listening(job.port)
    for run in runs:
        starts(run, 1)
    return runs


def kill_agent(run):
    """SIGKILL to the agent: its guardian ends the workers."""
    run.signal(signal.SIGKILL, run.agent())
    run.none_left()
    run.wait()


def blames_no_worker(job, runs, *words):
    """All runs end with 1, and their reports name the cause and no worker (see alone())."""
    for ended, number in zip(ends(*runs.values(), rc=1), runs):
        text = "\n".join(report_of(ended.err))
        assert "exitcode" not in text and all(word in text for word in words), str(ended)
        report = json.loads(read(job.lockstep.folder / f"report.{number}"))
        assert (report["outcome"], report["root_cause"]) == ("failed", None), report
        assert all(word in report["reason"] for word in words), report
        assert not report["failures"] and all(failure["after_stop"] for failure in report["stopped"]), report


def alone(job, number):
    """Arguments of agent `number` for blames_no_worker()."""
    return "--exit-code", "worker", "--report", job.lockstep.folder / f"report.{number}"
