"""No process survives: 8 workers that ignore TERM, each with 16 children and a daemon (double-forked, in its own
session): 144 processes. Agent, guardian or both are killed, at every level of isolation.

If only user space contains the workers and both Lockstep processes are killed (or one is frozen and the other killed),
no process can act at that moment. The next start of the same job on this node does.
"""
import os
import signal
import time

import pytest

from harness import BINARY, processes, until

RUNS = int(os.environ.get("LOCKSTEP_ORPHAN_RUNS", "20"))
WORKERS = 8
JOB = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id"]
OURS = ("lockstep-guard", "lockstep-agent", "lockstep-init", "lockstep")


def start_tree(lockstep, rung, number):
    folder = lockstep.folder / f"facts{number}"
    folder.mkdir()
    run = lockstep.start_worker("--isolation", rung, "--nproc-per-node", WORKERS, "--log-dir", "/dev/null",
                                *JOB, f"orphans-{number}",
                                actions=["ignore=TERM", "loaders=16", "daemon", f"touch={folder}", "pause"])
    lockstep.ready(WORKERS, 20, folder)
    everybody = run.living()
    assert sum(comm == "test_worker" for comm in everybody.values()) == WORKERS * 18
    return run, everybody


def workers(token):
    return [pid for pid, comm in processes(token).items() if comm not in OURS]


def guardian_of(run):
    return run.pid


def kill_agent(run, agent):
    os.kill(agent, signal.SIGKILL)


def kill_guardian(run, agent):
    os.kill(guardian_of(run), signal.SIGKILL)


def kill_both(run, agent):
    os.kill(guardian_of(run), signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)


def kill_both_agent_first(run, agent):
    os.kill(guardian_of(run), signal.SIGSTOP)
    os.kill(agent, signal.SIGKILL)
    os.kill(guardian_of(run), signal.SIGKILL)


def freeze_guardian_kill_agent(run, agent):
    os.kill(guardian_of(run), signal.SIGSTOP)
    os.kill(agent, signal.SIGKILL)


WAYS = [kill_agent, kill_guardian, kill_both, kill_both_agent_first, freeze_guardian_kill_agent]
# Only the kernel can act when none of our processes can.
NEEDS_NEXT_START = {(rung, way) for rung in ("guardian", "cgroup") for way in WAYS[2:]}


@pytest.mark.parametrize("rung", ["guardian", "cgroup", "pidns"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_nobody_is_left(lockstep, rung, way):
    slowest = 0.0
    for number in range(RUNS):
        run, _ = start_tree(lockstep, rung, number)
        agent = run.agent()
        killed = time.monotonic()
        way(run, agent)
        if (rung, way) in NEEDS_NEXT_START:
            until(lambda: agent not in processes(run.token), 5, "agent dead")
            swept = lockstep.run_worker("--isolation", rung, *JOB, f"orphans-{number}", actions=["exit=0"])
            assert swept.rc == 0, str(swept)
        until(lambda: not workers(run.token), 2.0, f"nobody left in run {number}")
        slowest = max(slowest, time.monotonic() - killed)
        try:
            os.kill(run.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
        run.wait()
        run.none_left()
    print(f"{way.__name__} on {rung}: slowest of {RUNS} took {slowest * 1000:.0f} ms")


@pytest.mark.parametrize("rung", ["auto", "guardian", "cgroup", "pidns"])
@pytest.mark.parametrize("ending", ["success", "failure", "term"])
def test_nobody_is_left_after_an_ordinary_end(lockstep, rung, ending):
    go = lockstep.folder / "go"
    after = {"success": [f"wait={go}", "exit=0"], "failure": [f"wait={go}", "@0", "exit=3", "@*", "pause"],
             "term": ["pause"]}[ending]
    run = lockstep.start_worker("--isolation", rung, "--nproc-per-node", 2, "--shutdown-timeout", 0,
                                actions=["ignore=TERM", "loaders=4", "daemon", f"touch={lockstep.facts}", *after])
    lockstep.ready(2)
    go.touch()
    if ending == "term":
        run.signal(signal.SIGTERM)
    assert run.wait(10).rc == (0 if ending == "success" else 1)
    run.none_left(0.5)


def test_a_guardian_that_dies_ends_the_job_with_an_error(lockstep):
    run = lockstep.start_worker("--isolation", "guardian", actions=[f"touch={lockstep.facts}", "pause"])
    lockstep.ready(1)
    agent = run.agent()
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    until(lambda: agent not in processes(run.token), 5)
    run.none_left()


def test_an_agent_that_dies_gives_an_exit_code_that_says_so(lockstep):
    run = lockstep.start_worker("--isolation", "guardian", actions=[f"touch={lockstep.facts}", "pause"])
    lockstep.ready(1)
    os.kill(run.agent(), signal.SIGKILL)
    assert run.wait().rc in (1, 137)
    run.none_left()


def test_another_jobs_processes_are_not_swept(lockstep):
    run = lockstep.start_worker(*JOB, "job-a", actions=[f"touch={lockstep.facts}", "await"])
    pid = lockstep.ready(1)[0]
    assert lockstep.run_worker(*JOB, "job-b", actions=["exit=0"]).rc == 0
    assert lockstep.run_worker(*JOB, "job-a", actions=["exit=0"]).rc == 0  # its agent is alive: no leftover
    assert pid in run.living()
    run.signal(signal.SIGTERM)
    run.wait()


@pytest.mark.parametrize("how", [["--rdzv-id"], ["--standalone", "--rdzv-id"]], ids=" ".join)
def test_one_node_without_an_endpoint_ends_what_an_earlier_run_left(lockstep, how):
    """Its run id is invented, like torchrun's. The leftovers are found by the given id."""
    run = lockstep.start_worker(*how, "my.job", actions=["loaders=4", "daemon", f"touch={lockstep.facts}", "pause"])
    lockstep.ready(1)
    agent = run.agent()
    kill_both_agent_first(run, agent)
    until(lambda: agent not in processes(run.token), 5, "agent dead")
    assert len(workers(run.token)) >= 5
    assert lockstep.run_worker(*how, "job", actions=["exit=0"]).rc == 0
    assert lockstep.run_worker(actions=["exit=0"]).rc == 0
    assert len(workers(run.token)) >= 5
    swept = lockstep.run_worker(*how, "my.job", actions=["exit=0"])
    assert swept.rc == 0 and "an earlier run of job 'my.job' had left" in swept.err, str(swept)
    until(lambda: not workers(run.token), 2.0, "nobody left")
    run.wait()


def test_the_count_would_see_survivors(lockstep):
    """The control: without isolation most of the tree is still there, as it is with torchrun."""
    run, everybody = start_tree(lockstep, "none", 0)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    until(lambda: len(workers(run.token)) >= WORKERS * 17)
    run.kill()


@pytest.mark.skipif(os.getuid() != 0, reason="makes a PID namespace of its own")
def test_the_same_job_in_another_pid_namespace_is_not_swept(lockstep):
    """A container's agent is alive though its pid means nothing out here."""
    job = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "shared"]
    inside = lockstep.start_worker(*job, actions=[f"touch={lockstep.facts}", f"wait={lockstep.folder}/go"],
                                   program=["unshare", "-pf", "--mount-proc", "--kill-child", BINARY, "run"])
    lockstep.ready(1)
    assert lockstep.run(*job, "--no-python", "/bin/true").rc == 0
    (lockstep.folder / "go").touch()
    assert inside.wait().rc == 0
