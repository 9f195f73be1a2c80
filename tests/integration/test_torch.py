"""Real PyTorch workers: 1.13 of Debian 12, 2.6 of Debian 13 and 2.14 of Debian sid, gloo on CPU."""
import json
import re
import subprocess

import pytest

from harness import PYTHON, SCRIPTS, SUPPORT, free_port, peer, read, report_of, skip
from tcp_store import Client


@pytest.fixture(params=["1.13", "2.6", "2.14"])
def torch_env(request):
    """The environment that makes workers use that PyTorch."""
    if request.param == "1.13":
        found = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True)
        return {"PYTHON_EXEC": PYTHON} if found.returncode == 0 else skip("no python3-torch")
    return peer_env(request.param)


def peer_env(version):
    return {"PYTHON_EXEC": peer(version), "PYTHONPATH": SUPPORT / "torch-2.6"}


def sums(text):
    return sorted(re.findall(r"torch (\S+) attempt (\d) rank (\d) sum (\S+)", text), key=lambda found: found[1:])


def test_all_reduce_and_again_after_a_restart(lockstep, torch_env):
    """The second attempt meets under the same port and must not see the first one's addresses."""
    ended = lockstep.run("-t", 1, "--nproc-per-node", 2, "--max-restarts", 1, SCRIPTS / "all_reduce.py", "--fail-first",
                         env=torch_env, timeout=90)
    assert ended.rc == 0, str(ended)
    found = sums(ended.out)
    assert [item[1:] for item in found] == [(a, r, "3.0") for a in "01" for r in "01"], str(ended)
    print(found[0][0])


def test_worker_keys_of_1_13_carry_the_attempt(lockstep):
    go = lockstep.folder / "go"
    code = ("import os, time, torch.distributed as d\nd.init_process_group('gloo')\nd.barrier()\n"
            f"open(os.path.join({str(lockstep.facts)!r}, os.environ['RANK']), 'w').write(os.environ['MASTER_PORT'])\n"
            f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n")
    script = lockstep.work / "held.py"
    script.write_text(code)
    run = lockstep.start("--nproc-per-node", 2, script)
    ports = lockstep.ready(2, 60)
    peer = Client(("127.0.0.1", ports[0]))
    peer.op(17)
    names = [peer.value() for _ in range(int.from_bytes(peer.receive(8), "little"))]
    go.touch()
    assert run.wait(30).rc == 0
    assert any(name.startswith(b"//worker/attempt_0/") for name in names), names


@pytest.mark.parametrize("version", ["2.6", "2.14"])
def test_a_store_that_the_worker_names_itself(lockstep, version):
    """init_process_group("tcp://..."), another port than MASTER_PORT. From 2.14 on PyTorch sees that by itself."""
    ended = lockstep.run("-t", 1, "--nproc-per-node", 2, SCRIPTS / "tcp_url.py", free_port(), env=peer_env(version),
                         timeout=90)
    assert ended.rc == 0, str(ended)
    assert ended.out.count("sum 2.0") == 2


def test_record_decorator(lockstep):
    own = lockstep.folder / "own.json"
    ended = lockstep.run("--nproc-per-node", 1, "--log-dir", lockstep.logs, SCRIPTS / "recorded.py", timeout=60,
                         env={"TORCHELASTIC_ERROR_FILE": own})
    assert ended.rc == 1
    text = "\n".join(report_of(ended.err))
    assert "ValueError: the batch is empty" in text and "in main" in text
    written = json.loads(read(lockstep.attempt(0) / "0/error.json"))
    assert written["message"]["message"] == "ValueError: the batch is empty"
    written["message"]["errorCode"] = 1
    assert json.loads(own.read_text()) == written
