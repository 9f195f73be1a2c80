"""The c10d rendezvous beside real torchrun 2.6, at protocol level: rdzv_tool is an agent without workers,
torchrun's workers print their environment and end. Host and guest, unequal nodes, late and closed."""
import json

import pytest

from harness import BUILD, PEERS, SUPPORT, free_port, skip, until

TOOL = BUILD / "tests/rdzv_tool"
TRIXIE = SUPPORT / "python-trixie"
SHOW = """import os, sys, time
print("ENV " + " ".join(f"{k}={os.environ[k]}" for k in ("RANK", "WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE",
      "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_USE_AGENT_STORE")), flush=True)
marker = __file__ + os.environ["LOCAL_RANK"]
if not os.path.exists(marker):  # held in its first round only
    open(marker, "w").close()
    time.sleep(float(sys.argv[1]))
"""


class Job:
    """Agents of one run id, torchrun's and ours, each under an address of its own."""

    def __init__(self, lockstep):
        if not (PEERS / "trixie/.complete").exists():
            skip("no .cache/peers/trixie: run ./dev peers")
        self.lockstep = lockstep
        self.port = free_port()
        self.script = lockstep.work / "show_env.py"
        self.script.write_text(SHOW)

    def torchrun(self, addr, *args, nnodes="2", nproc=1, hold=0, conf="", host=None):
        conf = ",".join(filter(None, [conf, f"is_host={int(host)}" if host is not None else ""]))
        return self.lockstep.start(
            "--nnodes", nnodes, "--nproc-per-node", nproc, "--rdzv-backend", "c10d", "--rdzv-id", "job",
            "--rdzv-endpoint", f"127.0.0.1:{self.port}", "--local-addr", addr, "--rdzv-conf", conf, *args, self.script, hold,
            program=(TRIXIE,), env={"PEER_PROGRAM": "/usr/bin/torchrun", "PYTHONPATH": SUPPORT / "torch-2.6",
                                    "OMP_NUM_THREADS": 1, "PYTHON_EXEC": None})

    def tool(self, addr, *args, nnodes="2", nproc=1, conf="", host=None):
        conf = ",".join(filter(None, [conf, f"is_host={int(host)}" if host is not None else ""]))
        return self.lockstep.start("--nnodes", nnodes, "--local-world-size", nproc, "--id", "job", "--endpoint",
                                   f"127.0.0.1:{self.port}", "--local-addr", addr, "--conf", conf, *args, program=(TOOL,))


@pytest.fixture
def job(lockstep):
    return Job(lockstep)


def events(run, kind=None):
    found = [json.loads(line) for line in run.out().splitlines() if line.endswith("}")]
    return [event for event in found if kind is None or event.get("event") == kind]


def rounds(run, count=1, deadline=60):
    try:
        return until(lambda: len(events(run, "round")) >= count and events(run, "round"), deadline, f"{count} rounds")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{run.out()}\n{run.err()}") from None


def workers(run):
    lines = [line for line in run.out().splitlines() if line.startswith("ENV ")]
    return [dict(item.split("=", 1) for item in line.split()[1:]) for line in lines]


def both_end_well(tool, torchrun):
    ended = torchrun.wait(60)
    assert ended.rc == 0, str(ended)
    end = tool.wait(20)
    assert end.rc == 0, str(end)
    assert [event["ok"] for event in events(tool, "barrier")] == [True], str(end)
    assert "Traceback" not in ended.err and "rror waiting on exit barrier" not in ended.err, str(ended)


# Rows 52 and 54 of the specification's table: both ways round, unequal nodes.
@pytest.mark.parametrize("tool_hosts", [True, False])
@pytest.mark.parametrize("tool_first", [True, False])  # whose address sorts first has rank 0
def test_one_round(job, tool_hosts, tool_first):
    ours, theirs = ("127.0.0.2", "127.0.0.3") if tool_first else ("127.0.0.3", "127.0.0.2")
    torchrun = job.torchrun(theirs, nproc=3, host=not tool_hosts)
    tool = job.tool(ours, nproc=1, host=tool_hosts)
    (got,) = rounds(tool)
    both_end_well(tool, torchrun)
    assert (got["rank"], got["world"], got["round"]) == (0 if tool_first else 1, 2, 0)
    assert got["prefix"] == "/torch.rendezvous.job.0/"
    assert (got["base_rank"], got["world_size"]) == (0 if tool_first else 3, 4)
    seen = workers(torchrun)
    assert sorted(w["RANK"] for w in seen) == (list("123") if tool_first else list("012"))
    for worker in seen:
        assert worker["WORLD_SIZE"] == worker["ROLE_WORLD_SIZE"] == "4"
        assert worker["GROUP_RANK"] == ("1" if tool_first else "0")
        assert (worker["MASTER_ADDR"], worker["MASTER_PORT"]) == (got["master_addr"], str(got["master_port"]))
        assert worker["MASTER_ADDR"] == "127.0.0.2"
        assert worker["TORCHELASTIC_USE_AGENT_STORE"] == "True"


# Row 64: nobody is told to host; whoever binds first does, and the other sees that.
def test_who_hosts_is_found_out(job):
    tool = job.tool("127.0.0.2")
    until(lambda: events(tool, "open"), what="the tool is open")
    second = job.tool("127.0.0.3")
    assert rounds(tool)[0]["hosts"] is True
    assert rounds(second)[0]["hosts"] is False
    assert tool.wait(20).rc == second.wait(20).rc == 0


# A worker of ours "fails": torchrun sees a waiting node, ends its workers and takes part in the next round.
@pytest.mark.parametrize("tool_hosts", [True, False])
def test_rejoin_after_a_failure_of_ours(job, tool_hosts):
    torchrun = job.torchrun("127.0.0.3", "--max-restarts", 1, hold=60, host=not tool_hosts)
    tool = job.tool("127.0.0.2", "--fail-at", 2, host=tool_hosts)
    first, second = rounds(tool, 2)
    both_end_well(tool, torchrun)
    assert (first["round"], second["round"]) == (0, 1)
    assert second["prefix"] == "/torch.rendezvous.job.1/"
    assert (first["master_addr"], first["master_port"]) == (second["master_addr"], second["master_port"])
    seen = workers(torchrun)
    assert len(seen) == 2 and {w["TORCHELASTIC_RESTART_COUNT"] for w in seen} == {"0"}


# torchrun joins a job of one that has room: the tool re-forms, one round later both are in.
def test_elastic_join_by_torchrun(job):
    tool = job.tool("127.0.0.2", "--hold", 60, "--hold-again", 0, nnodes="1:2", conf="last_call_timeout=1", host=True)
    assert rounds(tool)[0]["world"] == 1
    torchrun = job.torchrun("127.0.0.3", nnodes="1:2", hold=1, conf="last_call_timeout=1", host=False)
    second = rounds(tool, 2)[1]
    assert (second["round"], second["world"], second["world_size"]) == (1, 2, 2)
    both_end_well(tool, torchrun)
    assert [w["WORLD_SIZE"] for w in workers(torchrun)] == ["2"]


# Row 61: the run id is spent.
def test_closed_by_us_is_closed_for_torchrun(job):
    tool = job.tool("127.0.0.2", "--linger", 30, nnodes="1", host=True)
    until(lambda: events(tool, "closed"), what="closed")
    ended = job.torchrun("127.0.0.3", nnodes="1", host=False).wait(60)
    assert ended.rc == 1 and "RendezvousClosedError" in ended.err, str(ended)
    tool.signal(15)
    tool.wait(5)


# Row 62: nobody else comes.
def test_join_timeout(job):
    ended = job.tool("127.0.0.2", nnodes="2", conf="join_timeout=1").wait(20)
    assert ended.rc == 1 and ended.seconds < 4
    assert "1 of at least 2" in ended.out
