"""500 restarts in one agent: no growth of memory or descriptors."""
import pytest


def facts(lockstep, attempt):
    return dict(line.split(": ") for line in lockstep.fact(f"{attempt}.parent").splitlines())


@pytest.mark.parametrize("args", [[], ["-t", "3"]])
def test_500_restarts(lockstep, args):
    ended = lockstep.run_worker("--max-restarts", 500, "--nproc-per-node", 2, *args, "--log-dir", lockstep.logs,
                                timeout=110, actions=["@0", f"parent={lockstep.facts}", "out=hello\\n", "err=hello\\n",
                                                      "%500", "@*", "exit=0", "%*", "@0", "exit=1", "@1", "pause"])
    assert ended.rc == 0, str(ended)[-3000:]
    (job,) = lockstep.logs.iterdir()
    assert len(list(job.iterdir())) == 501
    early, late = facts(lockstep, 50), facts(lockstep, 499)
    assert late["pid"] == early["pid"]
    assert late["fds"] == early["fds"]
    assert int(late["rss_kb"]) <= int(early["rss_kb"]) + 512
    assert int(late["rss_kb"]) < 10240
