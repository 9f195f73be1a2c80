"""lockstep as pdsh (docs/launchers.md): over a real sshd with the exact words of DeepSpeed's launcher, and over srun in
an allocation."""
import base64
import json
import re
import signal

import pytest

from harness import BINARY, PYTHON, one_line, until
from ssh_hosts import SshWorld

# Acts like deepspeed.launcher.launch on a node: starts the ranks, ends them when one fails, and exits with its code.
LAUNCH = """
import argparse, base64, json, os, signal, subprocess, sys, time
parser = argparse.ArgumentParser()
for name in ("world_info", "node_rank", "master_addr", "master_port", "enable_each_rank_log"):
    parser.add_argument(f"--{name}")
parser.add_argument("script")
parser.add_argument("rest", nargs=argparse.REMAINDER)
args = parser.parse_args()
world = list(json.loads(base64.urlsafe_b64decode(args.world_info)).values())
node = int(args.node_rank)
first, ranks = sum(map(len, world[:node])), []

def end(number, frame):
    for each in ranks:
        each.kill()
    sys.exit(1 if number in (2, 15) and frame else number)

signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
for local in range(len(world[node])):
    env = {**os.environ, "RANK": str(first + local), "WORLD_SIZE": str(sum(map(len, world))),
           "MASTER_ADDR": args.master_addr, "MASTER_PORT": args.master_port}
    ranks.append(subprocess.Popen([sys.executable, "-u", args.script, f"--local_rank={local}", *args.rest], env=env))
while ranks:
    for each in [each for each in ranks if each.poll() is not None]:
        ranks.remove(each)
        if each.returncode:
            end(each.returncode, None)
    time.sleep(0.01)
"""
JOB = """
import json, os, signal, sys
told = [os.uname().nodename, os.getcwd(), *(os.environ.get(name) for name in
        ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "MINE_QUOTED")), sys.argv[1:]]
os.write(1, f"said {json.dumps(told)}\\n".encode())
what, rank, code = (sys.argv[2:] + ["go", "-1", "0"])[:3]
if os.environ["RANK"] == rank:
    os.kill(os.getpid(), -int(code)) if int(code) < 0 else os._exit(int(code))
if what == "stay":
    signal.pause()
"""


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def deepspeeds(hosts, python, exports, folder, address, script, *rest, slots=2, options=()):
    """The words that DeepSpeed 0.19.6 starts pdsh with, and those by which it ends what it started.
    deepspeed_pdsh_by_hand.py compares them with the real ones."""
    info = base64.urlsafe_b64encode(json.dumps({host: list(range(slots)) for host in hosts}).encode()).decode()
    common = ["-S", "-f", "1024", "-w", ",".join(hosts), *options]
    launch = [python, "-u", "-m", "deepspeed.launcher.launch"]
    return ([*common, "".join(f"export {name}={value}; " for name, value in exports.items()), f"cd {folder};", *launch,
             f"--world_info={info}", "--node_rank=%n", f"--master_addr={address}", "--master_port=29500",
             "--enable_each_rank_log=None", script, *rest],
            [*common, "pkill -f ", " ".join(word + "\\" for word in launch)[:-2]])


def pdsh(client, *words, env=None):
    """Starts pdsh as DeepSpeed does: a program of this name."""
    link = client.folder / "pdsh"
    if not link.exists():
        link.symlink_to(client.binary)
    return client.run(*words, program=(link,), env=env, timeout=60)


def test_pdsh_over_ssh(world):
    client, a, b = world(2)
    hosts = ("-w", f"me@{a.addr},me@{b.addr}")
    ended = pdsh(client, "-S", "-f", 1024, *hosts, "export MINE_X=\"a b\"; ", "cd /tmp;",
                 "echo %n %h $MINE_X $(pwd); exit %n")
    assert sorted(ended.out.splitlines()) == [f"{a.addr}: 0 {a.addr} a b /tmp", f"{b.addr}: 1 {b.addr} a b /tmp"], ended
    assert ended.rc == 1 and f"me@{b.addr}: ssh exited with exit code 1" in ended.err
    ended = pdsh(client, "-S", *hosts, "exit 1%n")
    assert ended.rc == 11, ended
    ended = pdsh(client, *hosts, "echo to stderr >&2; false")
    assert (ended.rc, ended.err.count(": to stderr\n")) == (0, 2), ended
    ended = pdsh(client, "-N", "-l", "me", "-w", a.addr, "cat; echo $0 %u")
    assert (ended.rc, ended.out) == (0, "/bin/bash me\n"), ended
    one_line(pdsh(client, "-q"), 1, "option -q is not known")
    assert client.run("pdsh", "-S", "-w", f"me@{a.addr}", "exit 7").rc == 7


def test_pdsh_ends_what_it_started(world):
    client, a = world(1)
    link = client.folder / "pdsh"
    link.symlink_to(client.binary)
    run = client.start("-S", "-w", f"me@{a.addr}", "echo up; sleep 1000", program=(link,))
    until(lambda: "up" in run.out(), 30, "it runs")
    run.signal(signal.SIGTERM)
    assert run.wait(30).rc == 128 + signal.SIGTERM
    a.nothing_left()


SRUN = """#!/bin/sh
for node in 2 1; do
  last= ; for word; do case "$word" in --*) ;; *) break ;; esac; shift; done
  SLURMD_NODENAME=n$node "$@"
done
"""


def test_pdsh_in_an_allocation_goes_by_srun(lockstep):
    """A fake srun drops its options, and runs the command once for each node, in Slurm's order and not that of -w."""
    (lockstep.work / "srun").write_text(SRUN)
    (lockstep.work / "srun").chmod(0o755)
    path = {"PATH": f"{lockstep.work}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SHELL": "/bin/sh"}
    ended = lockstep.run("-S", "-w", "n1,n2", "echo", "%n", "'%h  x'", program=(BINARY, "pdsh"), env=path)
    assert (ended.rc, ended.out) == (0, "1 n2  x\n0 n1  x\n"), ended
    path["PATH"] = "/none"
    one_line(lockstep.run("-w", "n1", "x", program=(BINARY, "pdsh"), env=path), 255, "srun: No such file or directory")


def as_deepspeed(client, servers, *rest, **more):
    for server in servers:
        folder = server.homes["me"] / "deepspeed/launcher"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "launch.py").write_text(LAUNCH)
        (server.homes["me"] / "job.py").write_text(JOB)
    (client.root_home / ".ssh/config").write_text("User me\n")
    exports = {"PYTHONPATH": "/home/me", "MINE_QUOTED": '"a b"'}
    return deepspeeds([server.addr for server in servers], PYTHON, exports, "/home/me", servers[0].addr,
                      "/home/me/job.py", *rest, **more)


# The environment that DeepSpeed sets for pdsh.
RCMD = {"PDSH_RCMD_TYPE": "ssh"}


def test_deepspeeds_words(world):
    client, a, b = world(2)
    words, _ = as_deepspeed(client, (a, b), "--deepspeed", "ds.json", '"x \\"y\\" z"')
    ended = pdsh(client, *words, env=RCMD)
    assert ended.rc == 0, ended
    lines = re.findall(r"^(\S+): said (.*)$", ended.out, re.M)
    assert sorted((json.loads(line) + [label] for label, line in lines), key=lambda told: told[2]) == [
        [host.name, "/home/me", str(rank), "4", a.addr, "29500", "a b",
         [f"--local_rank={rank % 2}", "--deepspeed", "ds.json", 'x "y" z'], host.addr]
        for rank, host in enumerate((a, a, b, b))]


@pytest.mark.parametrize("rank, code, wanted", [(0, 7, 7), (3, 9, 9), (3, -9, 247)])
def test_a_ranks_code_is_what_deepspeed_gets(world, rank, code, wanted):
    client, a, b = world(2)
    words, _ = as_deepspeed(client, (a, b), "go", str(rank), str(code))
    ended = pdsh(client, *words, env=RCMD)
    assert ended.rc == wanted, ended
    assert f"pdsh: {(a, b)[rank // 2].addr}: ssh exited with exit code {wanted}" in ended.err


def test_a_failure_ends_the_other_hosts_where_it_is_asked_for(world):
    """pdsh's -k, as deepspeed --launcher_args=-k: the other node's ranks would wait for ever."""
    client, a, b = world(2)
    words, _ = as_deepspeed(client, (a, b), "stay", "1", "7", options=("-k",))
    ended = pdsh(client, *words, env=RCMD)
    assert ended.rc == 7, ended
    assert f"pdsh: another host has failed (-k): ended on {b.addr}" in ended.err
    b.nothing_left()
    words, _ = as_deepspeed(client, (a, b), "stay")
    words[4] += ",10.77.0.99"  # nobody has this address
    assert pdsh(client, "-k", "-t", "1", *words, env=RCMD).rc == 255
    for server in (a, b):
        server.nothing_left()


def test_deepspeeds_end(world):
    """Ctrl-C: pdsh gets SIGINT from the terminal and from DeepSpeed, then SIGTERM, and a second pdsh starts pkill."""
    client, a, b = world(2)
    words, kill = as_deepspeed(client, (a, b), "stay")
    link = client.folder / "pdsh"
    link.symlink_to(client.binary)
    run = client.start(*words, program=(link,), env=RCMD)
    until(lambda: run.out().count("said ") == 4, 30, "all ranks run")
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        run.signal(number)
    ended = pdsh(client, *kill, env=RCMD)
    assert ended.rc in (0, 1), ended  # 1: there was nothing to end any more
    assert run.wait(30).rc != 0
    for server in (a, b):
        server.nothing_left()


def test_pkill_alone_ends_the_ranks(world):
    client, a, b = world(2)
    words, kill = as_deepspeed(client, (a, b), "stay")
    link = client.folder / "pdsh"
    link.symlink_to(client.binary)
    run = client.start(*words, program=(link,), env=RCMD)
    until(lambda: run.out().count("said ") == 4, 30, "all ranks run")
    assert pdsh(client, *kill, env=RCMD).rc == 0
    assert run.wait(30).rc == 1
    for server in (a, b):
        server.nothing_left()


def test_the_way_that_ssh_is_told(world):
    """DeepSpeed's --ssh_port, and a key of one's own."""
    client, a = world(1)
    a.stop_sshd()
    a.start_sshd(port=2222)
    (client.root_home / ".ssh/id_ed25519").rename(client.root_home / "key")
    told = {"PDSH_SSH_ARGS_APPEND": f"-i {client.root_home}/key -o LogLevel=ERROR             -p 2222"}
    ended = pdsh(client, "-S", "-w", f"me@{a.addr}", "echo there", env={**RCMD, **told})
    assert (ended.rc, ended.out) == (0, f"{a.addr}: there\n"), ended
    assert len(ended.error_lines) == 1 and "-o LogLevel=ERROR of PDSH_SSH_ARGS_APPEND is not passed on" in ended.err
