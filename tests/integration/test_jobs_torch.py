"""DDP over four hosts with a real sshd, from ./examples: started, left alone, followed by several clients in turn, with
one host switched off and brought back."""
import pathlib
import shutil

import pytest

from harness import until
from ssh_hosts import SshWorld

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/digits"


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def test_ddp_on_four_hosts_loses_one_and_gets_it_back(world, tmp_path):
    client, *servers = world(4)
    project = client.folder / "digits"
    shutil.copytree(EXAMPLE, project)
    # As on a file system that all hosts share.
    checkpoints = tmp_path / "checkpoints"
    for folder in (checkpoints, *checkpoints.parents):
        folder.mkdir(exist_ok=True)
        if folder.is_relative_to("/tmp") and folder != pathlib.Path("/tmp"):
            folder.chmod(0o777 if folder == checkpoints else 0o755)
    hosts = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    assert client.run("cluster", "add", "lab", *hosts).rc == 0
    ended = client.run("run", "--on", "lab", "--detach", "--max-restarts", "3", "--rdzv-conf",
                       "heartbeat_timeout=5", "train.py", "--epochs", "12", "--checkpoint-dir", checkpoints,
                       cwd=project, timeout=180)
    assert ended.rc == 0, ended
    id_ = ended.out.strip()
    first = client.start("logs", "-f", id_)
    until(lambda: "epoch  2 of" in first.out() or "Error" in first.err(), 150, "it trains")
    assert "epoch  2 of" in first.out(), first.err()
    first.process.kill()
    first.process.wait(10)
    second = client.start("logs", "-f", id_)
    until(lambda: first.out() in second.out(), 30, "the next one begins at the beginning")
    servers[2].switch_off()
    servers[2].switch_on()
    ended = client.run("resume", id_)
    assert (ended.rc, ended.out) == (0, f"{id_}: runs again on lab-2\n"), ended
    until(lambda: "resumed from" in second.out(), 240, "it goes on")
    ended = second.wait(300)
    assert ended.rc == 0 and "test accuracy 9" in ended.out, ended
    assert client.run("wait", id_).rc == 0
    assert sorted(path.name for path in checkpoints.iterdir()) == [f"epoch-{n:02}.pt" for n in range(1, 13)]
