"""torchrun's older etcd rendezvous (--rdzv-backend etcd) at protocol level, on a real etcd: backend_tool is an agent
without workers; beside it real torchrun 2.6, whose workers print their environment and end."""
import importlib.util
import json
import pathlib
import shutil
import urllib.parse
import urllib.request

import pytest

import etcd_server as etcd
from harness import BUILD, PEERS, SUPPORT, free_port, skip, until

TOOL = BUILD / "tests/backend_tool"
SHOW = """import os, sys, time
shown = " ".join(f"{k}={os.environ[k]}" for k in ("RANK", "WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "MASTER_ADDR",
                 "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_USE_AGENT_STORE"))
os.write(1, f"ENV {shown}\\n".encode())  # one write: lines of two workers don't mix
marker = __file__ + os.environ["LOCAL_RANK"]
if not os.path.exists(marker):  # in its first round only: "hold" or "fail", after so many seconds
    open(marker, "w").close()
    time.sleep(float(sys.argv[2]))
    sys.exit(7 if sys.argv[1] == "fail" else 0)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    cluster = etcd.Cluster(tmp_path_factory.mktemp("etcd") / "one").start()
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """python-etcd is plain Python: Debian 12's package serves Debian 13's interpreter too."""
    if not (PEERS / "trixie/.complete").exists():
        skip("no .cache/peers/trixie: run ./dev peers")
    if importlib.util.find_spec("etcd") is None:
        skip("no python3-etcd")
    installed = pathlib.Path(importlib.util.find_spec("etcd").origin).parent.parent
    folder = tmp_path_factory.mktemp("modules")
    for name in ("etcd", "dns"):
        shutil.copytree(installed / name, folder / name)
    return folder


class Job:
    """Agents of one run id."""

    def __init__(self, lockstep, place, name):
        self.lockstep, self.place, self.name = lockstep, place, name

    def ours(self, addr, *args, nnodes="2", nproc=1, hold=0, conf="last_call_timeout=1"):
        return self.lockstep.start("etcd", "--endpoint", self.place, "--id", self.name, "--nnodes", nnodes,
                                   "--local-addr", addr,
                                   "--local-world-size", nproc, "--hold", hold, "--conf", conf, *args, program=(TOOL,))

    def torchrun(self, modules, *args, nnodes="2", nproc=1, first=("hold", 0)):
        script = self.lockstep.work / "show_env.py"
        script.write_text(SHOW)
        return self.lockstep.start(
            "--nnodes", nnodes, "--nproc-per-node", nproc, "--rdzv-backend", "etcd", "--rdzv-id", self.name,
            "--rdzv-endpoint", self.place, "--local-addr", "127.0.0.1", "--rdzv-conf", "last_call_timeout=1", *args,
            script, *first, program=(SUPPORT / "python-trixie",),
            env={"PEER_PROGRAM": "/usr/bin/torchrun", "PYTHONPATH": f"{SUPPORT / 'torch-2.6'}:{modules}",
                 "OMP_NUM_THREADS": 1, "PYTHON_EXEC": None})

    @property
    def path(self):
        return f"/torchelastic/p2p/run_{self.name}/rdzv"

    def state(self):
        try:
            with etcd.NO_PROXY.open(f"http://{self.place}/v2/keys{self.path}/active_version", timeout=5) as answer:
                return json.loads(json.load(answer)["node"]["value"])
        except urllib.error.HTTPError:
            return {}

    def joined(self, count):
        until(lambda: len(self.state().get("participants", [])) == count, 30,
              f"{count} nodes have joined: {self.state()}")


@pytest.fixture
def job(lockstep, server, request):
    return Job(lockstep, server.places, request.node.name.replace("[", "-").strip("]"))


def events(run, kind):
    found = [json.loads(line) for line in run.out().splitlines() if line.startswith("{")]
    return [event for event in found if event["event"] == kind]


def event(run, kind, count=1, deadline=40):
    """The count-th event of that kind."""
    try:
        return until(lambda: len(events(run, kind)) >= count and events(run, kind)[count - 1], deadline,
                     f"{count} x {kind}")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{run.out()}\n{run.err()}") from None


def workers(run):
    return [dict(pair.split("=", 1) for pair in line[4:].split()) for line in run.out().splitlines()
            if line.startswith("ENV ")]


def ended_well(*runs):
    for run in runs:
        ended = run.wait(60)
        assert ended.rc == 0, str(ended)


def test_two_of_ours_fail_once_and_end(job):
    a = job.ours("a", hold=1)
    b = job.ours("b", "--fail-at", 0.2, nproc=3, hold=1)
    ended_well(a, b)
    assert event(a, "interrupted")["why"] == "rank 0 failed"
    for run, other in ((a, b), (b, a)):
        one, two = events(run, "round")
        assert (one["number"], one["restarts"], two["number"], two["restarts"]) == (1, 0, 2, 1)
        assert two["world_size"] == 4 and two["use_agent_store"] is True
        assert two["group_rank"] == 1 - events(other, "round")[1]["group_rank"]
        assert two["master_port"] == events(other, "round")[1]["master_port"]
        assert event(run, "barrier")["ok"] and event(run, "left")["ok"]
    assert job.state()["status"] == "closed"


@pytest.mark.parametrize("first", ["ours", "torchrun"])
def test_beside_torchrun(job, modules, first):
    """The first agent is rank 0, and names the address of the workers' rendezvous."""
    if first == "ours":
        ours = job.ours("127.0.0.7", hold=0.5)
        job.joined(1)
    peer = job.torchrun(modules, nproc=2, first=("hold", 0.5))
    if first == "torchrun":
        job.joined(1)
        ours = job.ours("127.0.0.7", hold=0.5)
    ended_well(ours, peer)
    rank = 0 if first == "ours" else 1
    (mine,) = events(ours, "round")
    theirs = workers(peer)
    assert (mine["group_rank"], mine["base_rank"], mine["world_size"]) == (rank, 2 * rank, 3)
    assert mine["master_addr"] == ("127.0.0.7" if rank == 0 else "127.0.0.1")
    assert mine["use_agent_store"] is False  # as torchrun has it with this backend
    assert sorted(int(worker["RANK"]) for worker in theirs) == [r for r in range(3) if r != mine["base_rank"]]
    for worker in theirs:
        assert (worker["WORLD_SIZE"], worker["GROUP_RANK"]) == ("3", str(1 - rank))
        assert (worker["MASTER_ADDR"], worker["MASTER_PORT"]) == (mine["master_addr"], str(mine["master_port"]))
    assert event(ours, "barrier")["ok"] and event(ours, "left")["ok"]


def test_our_failure_restarts_torchrun(job, modules):
    peer = job.torchrun(modules, "--max-restarts", 1, first=("hold", 60))
    ours = job.ours("127.0.0.7", "--fail-at", 1, hold=0.5)
    ended_well(ours, peer)
    assert [round["number"] for round in events(ours, "round")] == [1, 2]
    assert [worker["WORLD_SIZE"] for worker in workers(peer)] == ["2", "2"]


def test_torchruns_failure_restarts_us(job, modules):
    peer = job.torchrun(modules, "--max-restarts", 1, first=("fail", 1))
    ours = job.ours("127.0.0.7", hold=0.5)
    ended_well(peer)
    ended_well(ours)


def test_a_killed_agent_is_missed(job):
    """Missed at the end of its lease. Two agents can go on, one cannot."""
    runs = {name: job.ours(name, nnodes="2:3", hold=60) for name in "abc"}
    for run in runs.values():
        assert event(run, "round")["group_world_size"] == 3
    runs.pop("c").kill()
    for run in runs.values():
        assert event(run, "interrupted")["why"] == "c is gone (no lease any more)"
        assert event(run, "round", 2)["group_world_size"] == 2
    runs.pop("b").kill()
    last = event(runs["a"], "interrupted", 2)
    assert last["kind"] == "end"
    assert last["why"] == "b is gone (no lease any more), and 1 of at least 2 nodes are left"
    assert runs["a"].wait().rc == 1


def test_a_spare_takes_a_place_or_is_released(job):
    a = job.ours("a", "--stop-at", 1.5)
    b = job.ours("b", hold=3)
    assert event(a, "round") and event(b, "round")
    spare = job.ours("spare", hold=0.5)
    second = job.ours("second", hold=0.5)
    assert event(spare, "joining") and event(second, "joining")
    ended_well(a, b)
    assert "a is gone" in event(b, "interrupted")["why"]
    assert event(b, "round", 2)["group_world_size"] == 2
    ended_well(spare, second)
    assert sorted([len(events(spare, "round")), len(events(second, "round"))]) == [0, 1]
    assert len(events(spare, "released") + events(second, "released")) == 1


def test_closed_is_final(job):
    ended_well(job.ours("a", nnodes="1"))
    late = job.ours("late", nnodes="1")
    assert late.wait().rc == 1
    assert "is closed" in event(late, "error")["error"]


def test_joining_times_out(job):
    alone = job.ours("a", conf="timeout=1")
    assert alone.wait().rc == 1
    assert event(alone, "error")["error"] == f"joining timed out: 1 of at least 2 nodes had joined '{job.name}'"


def test_nonsense_in_etcd_is_kept(job):
    form = urllib.parse.urlencode({"value": '{"status": "odd"}'}).encode()
    put = urllib.request.Request(f"http://{job.place}/v2/keys{job.path}/active_version", form, method="PUT")
    etcd.NO_PROXY.open(put, timeout=5).close()
    ours = job.ours("a")
    assert ours.wait().rc == 1
    assert "makes no sense" in event(ours, "error")["error"]
    assert job.state() == {"status": "odd"}


def test_nobody_there(lockstep):
    alone = Job(lockstep, f"127.0.0.1:{free_port()}", "x").ours("a")
    assert alone.wait(30).rc == 1
    assert "Connection refused" in event(alone, "error")["error"]


def test_a_gap_is_survived_and_an_outage_is_the_end(lockstep, tmp_path):
    cluster = etcd.Cluster(tmp_path / "own").start()
    try:
        job = Job(lockstep, cluster.places, "gap")
        a, b = job.ours("a", hold=60), job.ours("b", hold=60)
        assert event(a, "round") and event(b, "round")
        (member,) = cluster.members
        member.kill()
        member.start()
        member.ready()
        before = job.state()
        assert before["status"] == "final" and not events(a, "interrupted") + events(b, "interrupted")
        member.kill()
        for run in (a, b):
            over = event(run, "interrupted")
            assert over["kind"] == "end" and over["why"].startswith("etcd does not answer any more"), over
            assert run.wait(30).rc == 1
    finally:
        cluster.close()
