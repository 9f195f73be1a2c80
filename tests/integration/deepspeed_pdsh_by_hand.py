"""The stock `deepspeed --hostfile` on two hosts with a real sshd, through our pdsh, and through Debian's beside it.

By hand, not in CI: Debian has no DeepSpeed. Its source is in .cache/peers/deepspeed, and sid's folder has, beside what
`./dev peers` puts there, python3-hjson python3-cpuinfo python3-msgpack python3-pydantic python3-einops ninja-build
openssh-server openssh-client pdsh procps slurm-wlm munge. The hosts have sid's /usr:

    cd tests/integration
    LOCKSTEP_SLURM_ROOT=$(realpath ../../.cache/peers/sid) \\
        python3 -m pytest -q -p no:cacheprovider deepspeed_pdsh_by_hand.py
"""
import json
import os
import re
import signal
import time

import pytest

from harness import BINARY, PEERS, until
from slurm_cluster import OTHER, SlurmCluster
from ssh_hosts import SshWorld
from test_pdsh import deepspeeds

SOURCE, SID = PEERS / "deepspeed", PEERS / "sid"
SLOW = 150  # seconds: on every host DeepSpeed is imported twice
JOB = """
import json, os, signal, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MINE_QUOTED", "PYTHONPATH")
told = [os.uname().nodename, os.getcwd(), [os.environ.get(name) for name in names], sys.argv[1:]]
os.write(1, f"said {json.dumps(told)}\\n".encode())  # one write: lines of several ranks don't mix
os.write(2, f"to stderr of {os.environ['RANK']}\\n".encode())
what, rank, code = (sys.argv[2:] + ["go", "-1", "0"])[:3]
if os.environ["RANK"] == rank:
    os.kill(os.getpid(), -int(code)) if int(code) < 0 else os._exit(int(code))
if what == "stay":
    signal.pause()
"""
# Notes down its words, then is the real one.
RECORDER = """#!/bin/sh
for word; do printf '%s\\0' "$word"; done > /srv/words.$$
exec {pdsh} "$@"
"""

pytestmark = pytest.mark.skipif(not (SOURCE / "deepspeed/launcher").is_dir(), reason=f"no DeepSpeed in {SOURCE}")


class Nodes:
    """A client and two hosts that are sid: its /usr in place of this machine's, DeepSpeed in /opt, /srv shared."""

    def __init__(self, world, which):
        self.client, self.a, self.b = world(2)
        self.addresses = [self.a.addr, self.b.addr]
        self.ours = which == "ours"
        self.shared = self.client.folder / "shared"
        (self.shared / "bin/ours").mkdir(parents=True)
        (self.shared / "bin/ours/pdsh").symlink_to(BINARY)
        (self.shared / "bin/pdsh").write_text(RECORDER.format(pdsh="/srv/bin/ours/pdsh" if self.ours
                                                              else "/usr/bin/pdsh"))
        (self.shared / "bin/pdsh").chmod(0o755)
        for host in (self.client, self.a, self.b):
            if host.sshd:
                host.stop_sshd()  # it starts itself anew for each session
            for what, where in ((SID / "usr", "/usr"), (SID / "etc/alternatives", "/etc/alternatives"),
                                (SOURCE, "/opt"), (self.shared, "/srv")):
                host._inside("mount", "--bind", what, where)
        for host in (self.a, self.b):
            host.start_sshd()
        (self.client.root_home / ".ssh/config").write_text("User me\nStrictHostKeyChecking no\nLogLevel ERROR\n")
        (self.client.root_home / ".deepspeed_env").write_text("MINE_QUOTED=a b\n")
        (self.shared / "hostfile").write_text("".join(f"{address} slots=2\n" for address in self.addresses))
        (self.shared / "job.py").write_text(JOB)

    def start(self, *words, options=()):
        env = {"PATH": "/srv/bin:/usr/bin:/bin", "PYTHONPATH": "/opt", "DS_ACCELERATOR": "cpu", "PYTHON_EXEC": None,
               "PYTHONDONTWRITEBYTECODE": "1"}
        return self.client.start("--hostfile", "/srv/hostfile", "--launcher", "pdsh", *options, "/srv/job.py", *words,
                                 program=("/opt/bin/deepspeed",), cwd="/srv", env=env)

    def run(self, *words, **options):
        ended = self.start(*words, **options).wait(SLOW)
        print(f"{ended.seconds:.1f} s, rc {ended.rc}\n{ended.err}")
        return ended

    def words(self):
        """Of every pdsh that DeepSpeed has started, in that order."""
        files = sorted(self.shared.glob("words.*"), key=lambda path: path.stat().st_mtime_ns)
        return [path.read_text().split("\0")[:-1] for path in files]

    def gone(self):
        return not self.a.commands() and not self.b.commands()


@pytest.fixture(params=("ours", "debian's"))
def nodes(hosts, request):
    world = SshWorld(hosts)
    made = Nodes(world, request.param)
    yield made
    left = world.close()
    assert not left, f"left running on hosts: {left}"


def said(ended):
    """What the ranks said, each behind the host that its line has in front."""
    assert ended.rc == 0, ended
    lines = [[label, *json.loads(line)] for label, line in re.findall(r"^(\S+): said (\[.*\])$", ended.out, re.M)]
    return sorted(lines, key=lambda line: int(line[3][0]))


def as_it_should_be(nodes, slots, *arguments):
    """DeepSpeed's LOCAL_RANK is the rank modulo the node's number of them, wherever the node's first rank lies."""
    on = [(host, node) for node, host in enumerate((nodes.a, nodes.b)) for _ in slots[node]]
    lines = []
    for rank, (host, node) in enumerate(on):
        count, visible = len(slots[node]), ",".join(map(str, slots[node]))
        local = rank % count
        lines.append([host.addr, host.name, "/srv",
                      [str(rank), str(local), str(len(on)), str(count), str(node), "2", nodes.a.addr, "29500", visible,
                       None, "a b", "/srv:/opt"], [f"--local_rank={local}", *arguments]])
    return lines


def test_all_ranks_run(nodes):
    ended = nodes.run("--deepspeed", "ds.json", "a b")
    assert said(ended) == as_it_should_be(nodes, ([0, 1], [0, 1]), "--deepspeed", "ds.json", "a b")
    assert sorted(re.findall(r"^(\S+: to stderr of \d)$", ended.err, re.M)) == [
        f"{host}: to stderr of {rank}" for host, rank in zip((nodes.addresses[i // 2] for i in range(4)), range(4))]
    exports = {"PYTHONUNBUFFERED": "1"} if "PYTHONUNBUFFERED" in os.environ else {}
    expected, _ = deepspeeds(nodes.addresses, "/usr/bin/python3", {
        **exports, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "/srv:/opt", "MINE_QUOTED": '"a b"'}, "/srv",
        nodes.a.addr, "/srv/job.py", "--deepspeed", "ds.json", '"a b"')
    (found,) = nodes.words()
    place = next(number for number, word in enumerate(found) if word.startswith("export "))
    assert sorted(found.pop(place).split("; ")) == sorted(expected.pop(place).split("; "))
    assert found == expected


@pytest.mark.parametrize("option, text, slots", [("--include", "{}:0@{}:1", ([0], [1])),
                                                 ("--exclude", "{}:0", ([1], [0, 1]))])
def test_a_part_of_the_hosts(nodes, option, text, slots):
    ended = nodes.run(options=(option, text.format(*nodes.addresses)))
    assert said(ended) == as_it_should_be(nodes, slots)


def test_another_port(nodes):
    for host in (nodes.a, nodes.b):
        host.stop_sshd()
        host.start_sshd(port=2222)
    assert len(said(nodes.run(options=("--ssh_port", "2222")))) == 4


@pytest.mark.parametrize("rank, code, wanted", [(0, 7, 7), (3, 9, 9), (3, -9, 247)])
def test_a_ranks_code(nodes, rank, code, wanted):
    assert nodes.run("go", rank, code).rc == wanted


def test_a_failure_ends_the_job(nodes):
    """-k: Debian's then exits with 1, whatever the code, and leaves the others running; ours does neither."""
    ended = nodes.run("stay", 1, 7, options=("--launcher_args=-k",))
    assert ended.rc == (7 if nodes.ours else 1)
    if nodes.ours:
        until(nodes.gone, 20, "nothing is left")
    else:
        print("left by Debian's:", nodes.a.commands(), nodes.b.commands())
        nodes.b.kill_all()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("group", [True, False], ids=["all", "deepspeed"])
def test_it_is_stopped(nodes, number, group):
    """From the terminal, which signals all of the foreground, or DeepSpeed alone."""
    run = nodes.start("stay")
    until(lambda: run.out().count("said ") == 4, SLOW, "all ranks run")
    began = time.monotonic()
    os.killpg(run.pid, number) if group else run.signal(number)
    ended = run.wait(60)
    until(nodes.gone, 30, f"nothing is left, but {nodes.a.commands()} {nodes.b.commands()}")
    print(f"rc {ended.rc}, gone after {time.monotonic() - began:.1f} s\n{ended.err}")
    assert ended.rc == 1
    if number == signal.SIGINT and not group:
        launched = nodes.words()[0]
        expected = deepspeeds(nodes.addresses, "/usr/bin/python3", {}, "/srv", nodes.a.addr, "/srv/job.py")[1]
        assert nodes.words()[1] == expected, launched


@pytest.fixture
def cluster(hosts):
    assert OTHER and os.path.samefile(OTHER, SID), "LOCKSTEP_SLURM_ROOT is not sid's folder"
    made = SlurmCluster(hosts, 2)
    yield made
    made.close()


def test_in_an_allocation(cluster):
    """Nodes that nobody can log in to: our pdsh goes by srun. A rank's code comes back, and -k ends the other node."""
    for host in (cluster.login, *cluster.nodes):
        host.run("--bind", SID / "etc/alternatives", "/etc/alternatives", program=("/usr/bin/mount",))
    (cluster.work / "bin").mkdir()
    (cluster.work / "bin/pdsh").symlink_to(BINARY)
    cluster.script("job.py", JOB)
    cluster.script("hostfile", "".join(f"{node.name} slots=2\n" for node in cluster.nodes))
    env = {"PATH": f"{cluster.work}/bin:/usr/bin:/bin", "PYTHONPATH": SOURCE.resolve(), "DS_ACCELERATOR": "cpu",
           "PYTHON_EXEC": None, "MINE_QUOTED": None}

    def run(*words, options=()):
        return cluster.slurm("salloc", "-N2", "-n2", SOURCE.resolve() / "bin/deepspeed", "--hostfile", "hostfile",
                             "--no_ssh_check", "--master_addr", cluster.nodes[0].addr, *options,
                             cluster.work / "job.py", *words, env=env, check=False, timeout=SLOW)
    ended = run()
    lines = [json.loads(line) for line in re.findall(r"said (\[.*\])$", ended.out, re.M)]
    assert sorted((told[2][0], told[0]) for told in lines) == [
        (str(rank), cluster.nodes[rank // 2].name) for rank in range(4)], ended
    assert ended.rc == 0, ended
    ended = run("stay", 3, 9, options=("--launcher_args=-k",))
    assert ended.rc == 9, ended
    print(ended.err)
