"""500 restarts in one agent: no growth of descriptors, and none of memory beside the job's latest events."""
import pytest


def most(lockstep, name, attempts):
    """The largest value seen over some attempts (the next worker's pipes may or may not be open yet)."""
    seen = (dict(line.split(": ") for line in lockstep.fact(f"{n}.parent").splitlines()) for n in attempts)
    return max(int(facts[name]) for facts in seen)


@pytest.mark.parametrize("args", [[], ["-t", "3"]])
def test_500_restarts(lockstep, tmp_path, args):
    events = tmp_path / "events.jsonl"
    ended = lockstep.run_worker("--max-restarts", 500, "--restart-backoff", 0, "--nproc-per-node", 2, *args,
                                "--log-dir", lockstep.logs, "--events", events,
                                timeout=110, actions=["@0", f"parent={lockstep.facts}", "out=hello\\n", "err=hello\\n",
                                                      "%500", "@*", "exit=0", "%*", "@0", "exit=1", "@1", "pause"])
    assert ended.rc == 0, str(ended)[-3000:]
    (job,) = lockstep.logs.iterdir()
    assert len(list(job.iterdir())) == 501
    early, late = range(30, 80), range(450, 500)
    assert most(lockstep, "pid", early) == most(lockstep, "pid", late)
    # A worker looks while the agent starts the next one: a few may be open for that moment. A leak of one
    # in fifty restarts would show.
    assert most(lockstep, "fds", late) <= most(lockstep, "fds", early) + 6
    # The agent keeps the events of 24 hours, up to 4 MB. A short line costs up to twice its bytes.
    kept = events.stat().st_size // 1024
    assert 100 < kept < 4096, kept
    assert most(lockstep, "rss_kb", late) <= most(lockstep, "rss_kb", early) + 2 * kept + 512
    assert most(lockstep, "rss_kb", late) < 10240
