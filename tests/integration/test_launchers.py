"""Commands of other launchers (docs/launchers.md): lockstep run gives every rank the same as the launcher, here and on
hosts."""
import json
import re

import pytest

from harness import PYTHON, one_line
from ssh_hosts import SshWorld

# One line for each rank: what DeepSpeed's launcher gives, and the arguments.
SAY = """
import json, os, sys
names = ['RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_SIZE', 'CROSS_RANK', 'CROSS_SIZE', 'CUDA_VISIBLE_DEVICES',
         'OMP_NUM_THREADS']
more = [name for name in sorted(os.environ) if name.startswith(('MINE_', 'NCCL_', 'PYTHONPATH'))]
host = os.uname().nodename
told = [host, [os.environ.get(n) for n in names], {n: os.environ[n] for n in more}, sys.argv[1:]]
# In one piece: ranks share the output, and print() writes each word by itself.
sys.stdout.write(f'said {json.dumps(told)}\\n')
"""


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def said(ended):
    """Returns the output of every rank."""
    assert ended.rc == 0, str(ended)
    lines = [json.loads(line) for line in re.findall(r"said (\[.*\])$", ended.out, re.M)]
    return sorted(lines, key=lambda line: int(line[1][0]))


def make(folder, text=SAY, name="job.py"):
    (folder / name).write_text(text)
    return name


def local(lockstep, *words, env=None):
    make(lockstep.work)
    return lockstep.run(*words, env={"PYTHON_EXEC": PYTHON, "OMP_NUM_THREADS": None, **(env or {})}, timeout=60)


@pytest.mark.parametrize("words", [
    ("torchrun", "--nproc_per_node", "2"), ("--", "torchrun", "--nproc_per_node=2"),
    ("/opt/venv/bin/torchrun", "--nproc-per-node=2"), ("python", "-um", "torch.distributed.run", "--nproc-per-node=2"),
    ("--nproc-per-node", "2", "torchrun"), ("--nproc-per-node", "2", "python"),
    ("--nproc-per-node=2", "--", "python3", "-u"),
    ("--nproc-per-node", "2", PYTHON, "-B", "-X", "utf8")])
def test_words_of_other_launchers(lockstep, words):
    ranks = said(local(lockstep, *words, "job.py", "--x", "a b", "-r"))
    assert [rank[1][:3] for rank in ranks] == [["0", "0", "2"], ["1", "1", "2"]]
    assert all(rank[3] == ["--x", "a b", "-r"] for rank in ranks)


def test_the_old_launch_module_gives_the_local_rank(lockstep):
    old = ("python", "-m", "torch.distributed.launch", "--nproc_per_node=2")
    assert [rank[3] for rank in said(local(lockstep, *old, "job.py", "-x"))] == [
        ["--local-rank=0", "-x"], ["--local-rank=1", "-x"]]
    assert [rank[3] for rank in said(local(lockstep, *old, "--use_env", "job.py", "-x"))] == [["-x"], ["-x"]]


def test_a_certain_python_runs_the_workers(lockstep):
    chosen = lockstep.work / "python3.99"
    chosen.write_text(f"#!/bin/sh\nMINE_PYTHON=chosen exec {PYTHON} \"$@\"\n")
    chosen.chmod(0o755)
    for words in ((chosen,), (chosen, "-m", "torch.distributed.run"), (chosen, "-B")):
        (rank,) = said(local(lockstep, *words, "job.py"))
        assert rank[2].get("MINE_PYTHON") == "chosen"


def test_a_file_of_the_launchers_name_is_a_script(lockstep):
    make(lockstep.work, name="torchrun")
    (rank,) = said(local(lockstep, "torchrun", "--nproc-per-node=2"))
    assert rank[3] == ["--nproc-per-node=2"]


def test_deepspeed_on_this_machine(lockstep):
    ended = local(lockstep, "deepspeed", "--num_gpus", 2, "job.py", "--deepspeed", "ds.json", "$local_rank")
    host = said(ended)[0][0]
    assert said(ended) == [
        [host, [rank, rank, "2", "2", "0", "1", "0,1", None], {},
         [f"--local_rank={rank}", "--deepspeed", "ds.json", "$local_rank"]]
        for rank in ("0", "1")]
    ranks = said(local(lockstep, "deepspeed", "--include", "localhost:1,3", "--no_local_rank", "job.py"))
    assert [(rank[1][6], rank[3]) for rank in ranks] == [("1,3", [])] * 2
    ranks = said(local(lockstep, "deepspeed", "job.py", env={"CUDA_VISIBLE_DEVICES": "4,6,7"}))
    assert [rank[1][6] for rank in ranks] == ["4,6,7"] * 3


def test_deepspeeds_exit_code_is_the_workers(lockstep):
    make(lockstep.work, "import sys; sys.exit(7)", "fails.py")
    assert local(lockstep, "deepspeed", "--num_gpus=1", "fails.py").rc == 7


def test_what_makes_no_sense_is_said_in_one_line(lockstep):
    one_line(local(lockstep, "torchrun", "--foo", "job.py"), 2, "torchrun: there is no option --foo")
    one_line(local(lockstep, "deepspeed", "--num_nodes=2", "job.py"), 2, "--num_nodes 2 without a hostfile",
             "--hostfile FILE")
    one_line(local(lockstep, "--include", "a:0", "job.py"), 2, "--include and --exclude need --hostfile")
    one_line(local(lockstep, "--hostfile", "none", "job.py"), 255, "none")
    (lockstep.work / "hosts").write_text("a slots=2\nb\n")
    one_line(local(lockstep, "--hostfile", "hosts", "job.py"), 2, "hosts: line 2: 'b' is not NAME slots=N")
    (lockstep.work / "hosts").write_text("a slots=2\n")
    one_line(local(lockstep, "--hostfile", "hosts", "--include", "c", "job.py"), 2, "the hostfile has no host 'c'")
    one_line(local(lockstep, "--hostfile", "hosts", "--on", "a", "job.py"), 2, "--on and --hostfile")
    one_line(local(lockstep, "--hostfile", "hosts", "--sync", "none", "--cwd", "."), 2, "training_script")


def hostfile(client, *lines):
    path = client.folder / "hostfile"
    path.write_text("\n".join(lines) + "\n")
    return path


def on_hosts(client, servers, *words, env=None):
    for server in servers:
        make(server.homes["me"])
    return client.run("run", "--sync", "none", "--cwd", ".", "--user", "me", *words, env=env, timeout=120)


def test_a_hostfile_over_ssh(world):
    client, a, b = world(2)
    path = hostfile(client, "# ours", f"{a.addr} slots=2 max_slots=8", f"{b.addr}\tslots=3")
    (client.root_home / ".deepspeed_env").write_text("# for all\n\nMINE_HOME=1\nMINE_QUOTED=\"a b\"\n")
    names = {"NCCL_DEBUG": "WARN", "MINE_NOT": "stays here"}
    ranks = said(on_hosts(client, (a, b), "--hostfile", path, "--include", f"{a.addr}@{b.addr}:0,2", "job.py",
                          env=names))
    more = {"MINE_HOME": "1", "MINE_QUOTED": "a b", "NCCL_DEBUG": "WARN"}
    assert ranks == [[server.name, [rank, local_rank, "4", "2", node, "2", slots, None], more, []]
                     for server, node, slots, rank, local_rank in (
                         (a, "0", "0,1", "0", "0"), (a, "0", "0,1", "1", "1"),
                         (b, "1", "0,2", "2", "0"), (b, "1", "0,2", "3", "1"))]


def test_deepspeeds_words_over_ssh(world):
    client, a, b = world(2)
    path = hostfile(client, f"{a.addr} slots=2", f"{b.addr} slots=1")
    ended = on_hosts(client, (a, b), "--", "deepspeed", "--hostfile", path, "--exclude", f"{a.addr}:0", "--master_addr",
                     "10.9.9.9", "job.py", "--deepspeed", "ds.json")
    ranks = said(ended)
    assert [(rank[0], rank[1][6], rank[2]["PYTHONPATH"], rank[3]) for rank in ranks] == [
        (server.name, slots, ".", ["--local_rank=0", "--deepspeed", "ds.json"])
        for server, slots in ((a, "1"), (b, "0"))]
    assert "--master_addr dropped" in ended.err
    ended = on_hosts(client, (a, b), "deepspeed", "--hostfile", path, "--include", a.addr, "job.py")
    assert [rank[1][5] for rank in said(ended)] == ["1", "1"]
    assert "DeepSpeed's launcher would drop these hosts" in ended.err
