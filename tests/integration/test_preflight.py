"""The checks that nodes of a submitted job make before their ranks start, on a real Slurm cluster of hosts on this
machine."""
import json
import re
import shlex
import sys

import pytest

import container_image
from harness import WORKER, until
from slurm_cluster import SlurmCluster

TORCH = "2.6.0"


@pytest.fixture
def stall(tmp_path):
    """Marks: a task of a node that is named here does not begin."""
    folder = tmp_path / "stall"
    folder.mkdir()
    return folder


@pytest.fixture
def cluster(hosts, stall):
    prolog = stall / "prolog"
    prolog.write_text('#!/bin/sh\n[ -z "$SLURM_STEP_NODELIST" ] && exit 0  # the batch step\n'
                      f'while [ -e {stall}/"$SLURMD_NODENAME" ]; do sleep 0.1; done\n')
    prolog.chmod(0o755)
    made = SlurmCluster(hosts, 4, extra=(f"TaskProlog={prolog}",))
    del made.env["LOCKSTEP_PREFLIGHT"]
    yield made
    made.close()


def on(node, text):
    ended = node.run("-ec", text, program=("/bin/sh",))
    assert ended.rc == 0, ended


def give_python(node, torch=TORCH, cuda=None, gpus=0):
    """A Python of this node's own, with a PyTorch that has nothing but a version."""
    lines = (f'__version__ = "{torch}"', f"class version: cuda = {cuda!r}",
             f"class cuda: device_count = staticmethod(lambda: {gpus})")
    if torch:
        on(node, f"mkdir -p /tmp/lib/torch; printf '%s\\n' {shlex.join(lines)} > /tmp/lib/torch/__init__.py")
    on(node, "mkdir -p /tmp/bin /tmp/lib; printf '%s\\n' '#!/bin/sh' 'echo x >> /tmp/calls' "
             f"'PYTHONPATH=/tmp/lib exec {shlex.quote(sys.executable)} -S \"$@\"' > /tmp/bin/python; "
             "chmod +x /tmp/bin/python")


@pytest.fixture
def pythons(cluster):
    for node in cluster.nodes:
        give_python(node)
    cluster.script("train.py", "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n")
    return cluster


def train(cluster, *words, follow=True, **options):
    return cluster.run("submit", "-t5", *(["--follow"] if follow else []), "--env=PYTHON_EXEC=/tmp/bin/python",
                       "--env=OMP_NUM_THREADS=1", *words, "--", "train.py", **options)


def ranks(ended):
    return sorted(re.findall(r"rank \d+ of \d+", ended.out))


def left_out(cluster):
    """Node -> cause, as the next job sees it."""
    shown = json.loads(cluster.run("cluster", "show", "hpc", "--json").out)
    return {each["node"]: each["cause"] for each in shown["left_out"]}


def add_cluster(cluster):
    assert cluster.run("cluster", "add", "hpc", "--slurm").rc == 0


def worker(*actions):
    return ("--", "--no-python", WORKER, *actions)


def reports(cluster):
    return [json.loads(path.read_text())
            for path in cluster.home.glob(".local/state/lockstep/slurm/*/reports/*.json")]


@pytest.mark.parametrize("bad", (0, 1))
def test_another_torch_is_left_out_for_a_spare_and_remembered(pythons, bad):
    """Also on the first node, where the others would have met."""
    cluster, node = pythons, pythons.nodes[bad]
    add_cluster(cluster)
    give_python(node, "2.1.0")
    ended = train(cluster, "-N3", "--spare", "1")
    assert ended.rc == 0, ended
    assert ranks(ended) == [f"rank {rank} of 3" for rank in range(3)], ended
    line = next(line for line in ended.out.splitlines() if "pre-flight" in line)
    assert f"pre-flight: {node.name}: it has PyTorch 2.1.0 (/tmp/bin/python)" in line, ended
    assert "have PyTorch 2.6.0; install the same there; the node is left out" in line
    assert ended.out.count("pre-flight") == 1
    (report,) = (each for each in reports(cluster) if each["outcome"] == "left out")
    assert (report["node"], report["reason"][:10]) == (node.name, "left out: "), report
    # The next job does without.
    assert list(left_out(cluster)) == [node.name]
    assert left_out(cluster)[node.name].startswith("pre-flight: it has PyTorch 2.1.0")
    ended = train(cluster, "-N3")
    assert ended.rc == 0 and "pre-flight" not in ended.out, ended
    assert f"note: left out because of recent failures: {node.name} (pre-flight: it has PyTorch" in ended.err, ended
    number = re.search(r"batch job (\d+)", ended.out)[1]
    assert cluster.job(number)["ExcNodeList"] == node.name
    # The node is used all the same if the job needs all nodes, or if the user says so.
    for words in (("-N4", "--min-nodes=3"), ("-N4", "--min-nodes=3", "--use-bad-nodes")):
        ended = train(cluster, *words)
        assert ended.rc == 0 and len(ranks(ended)) == 3, ended
        assert ("because Slurm has too few other nodes" in ended.err) == ("--use-bad-nodes" not in words), ended
        assert "the job goes on with 3 nodes instead of 4" in ended.out, ended


def test_without_a_spare_the_job_ends_at_once(pythons):
    cluster, node = pythons, pythons.nodes[1]
    on(node, "rm -r /tmp/lib/torch")
    ended = train(cluster, "-N4")
    assert ended.rc == 125, ended
    assert ranks(ended) == []
    assert f"pre-flight: {node.name}: it has no PyTorch (/tmp/bin/python)" in ended.out, ended
    assert "3 of 4 nodes are fit for the job, which needs 4: the job ends" in ended.out, ended
    assert f"bad node: the pre-flight has found bad nodes: {node.name}: it has no PyTorch" in ended.out, ended
    add_cluster(cluster)
    assert list(left_out(cluster)) == [node.name]


def test_quick_starts_no_python_and_off_looks_at_nothing(pythons):
    cluster = pythons
    on(cluster.nodes[1], "rm -r /tmp/lib/torch")
    for how in ("quick", "off"):
        ended = train(cluster, "-N4", "--preflight", how, env={"LOCKSTEP_PREFLIGHT": "full"})
        assert ended.rc == 0 and len(ranks(ended)) == 4, ended
        assert "pre-flight" not in ended.out
    # Once for the rank of each job, and never else.
    assert cluster.nodes[0].run("-l", "/tmp/calls", program=("/usr/bin/wc",)).out.split()[0] == "2"
    folders = [path.parent for path in cluster.home.glob(".local/state/lockstep/slurm/*/state.json")]
    assert sorted((path / "preflight-0.json").exists() for path in folders) == [False, True]


def test_a_module_that_the_job_names_must_load(pythons):
    cluster = pythons
    for node in cluster.nodes[:3]:
        on(node, "echo > /tmp/lib/my_ops.py")
    ended = train(cluster, "-N3", "--spare", "1", "--preflight-import", "my_ops")
    assert ended.rc == 0 and len(ranks(ended)) == 3, ended
    assert f"{cluster.nodes[3].name}: a module of the job does not load: my_ops: ModuleNotFoundError" \
        in ended.out, ended


def test_gpus_that_slurm_gave_must_be_there(pythons):
    cluster = pythons
    for number, node in enumerate(cluster.nodes):
        give_python(node, cuda="12.4", gpus=1 if number == 2 else 2)
    ended = train(cluster, "-N3", "--spare", "1", "--gpus-per-node=2")
    assert ended.rc == 0 and len(ranks(ended)) == 6, ended
    assert f"{cluster.nodes[2].name}: 1 of the 2 GPUs that Slurm gave can be used" in ended.out, ended


def drop(node, *others):
    """Nothing gets through between these and this node that is not Slurm's."""
    node.holder.nft("add table inet pf", "add chain inet pf in { type filter hook input priority 0; }",
                    *(f"add rule inet pf in ip saddr {other.addr} tcp {way} 20000-28999 drop" for other in others
                      for way in ("dport", "sport")))


def test_two_nodes_that_do_not_reach_each_other(cluster):
    """All other nodes reach both: only this pair shows the fault."""
    one, two = cluster.nodes[1], cluster.nodes[2]
    drop(one, two)
    ended = cluster.run("submit", "-N3", "--spare", "1", "-t5", "--follow", "--preflight=quick",
                        *worker("show=WORLD_SIZE"))
    assert ended.rc == 0 and ended.out.count("WORLD_SIZE=3") == 3, ended
    assert f"pre-flight: {two.name}: this node and {one.name} do not reach each other: connect to " in ended.out, ended
    ended = cluster.run("submit", "-N4", "-t5", "--follow", "--preflight=quick", "--use-bad-nodes",
                        *worker("show=WORLD_SIZE"))
    assert ended.rc == 125 and "WORLD_SIZE" not in ended.out, ended


@pytest.mark.parametrize("cut", (0, 3))
def test_a_node_that_nobody_reaches(cluster, cut):
    """Slurm does. The first node would decide and host the rendezvous."""
    node, others = cluster.nodes[cut], [other for other in cluster.nodes if other is not cluster.nodes[cut]]
    drop(node, *others)
    ended = cluster.run("submit", "-N3", "--spare", "1", "-t5", "--follow", "--preflight=quick",
                        *worker("show=WORLD_SIZE"))
    assert ended.rc == 0 and ended.out.count("WORLD_SIZE=3") == 3, ended
    assert f"pre-flight: {node.name}: cannot be reached from " in ended.out, ended


def test_a_node_that_comes_late_is_left_out_and_ends_quietly(cluster, stall, tmp_path):
    late = cluster.nodes[2]
    (stall / late.name).touch()
    running = cluster.start("submit", "-N3", "--spare", "1", "-t5", "--follow", "--preflight=quick",
                            *worker(f"env={tmp_path}", f"wait={tmp_path}/go", "show=WORLD_SIZE"))
    until(lambda: "the node is left out" in running.out(), 60, "the others have decided")
    assert f"pre-flight: {late.name}: no report came in the time for the pre-flight" in running.out()
    (stall / late.name).unlink()
    until(lambda: any(each["outcome"] == "left out" for each in reports(cluster)), 30, "it has found that")
    (tmp_path / "go").touch()
    ended = running.wait(90)
    assert ended.rc == 0 and ended.out.count("WORLD_SIZE=3") == 3, ended


def test_without_a_spare_a_late_node_is_waited_for(cluster, stall):
    late = cluster.nodes[0]
    (stall / late.name).touch()
    running = cluster.start("submit", "-N4", "-t5", "--follow", "--preflight=quick", *worker("show=WORLD_SIZE"))
    until(lambda: "no report came" in running.out(), 60, "the others have decided")
    (stall / late.name).unlink()
    ended = running.wait(90)
    assert ended.rc == 0 and ended.out.count("WORLD_SIZE=4") == 4, ended


def test_a_full_temporary_folder(cluster):
    for node in cluster.nodes:
        size = "32k" if node is cluster.nodes[3] else "100m"
        on(node, f"mkdir /tmp/scratch; mount -t tmpfs -o size={size} tmpfs /tmp/scratch")
    ended = cluster.run("submit", "-N3", "--spare", "1", "-t5", "--follow", "--env=TMPDIR=/tmp/scratch",
                        "--preflight=quick", *worker("show=WORLD_SIZE"))
    assert ended.rc == 0 and ended.out.count("WORLD_SIZE=3") == 3, ended
    assert f"pre-flight: {cluster.nodes[3].name}: /tmp/scratch can't be written to: No space left on device; make " \
        in ended.out, ended


def test_a_node_without_a_runtime_for_the_image(cluster, tmp_path):
    image = container_image.make(tmp_path / "image")
    on(cluster.nodes[1], "mount --bind /dev/null /usr/bin/bwrap")
    job = ("-t5", "--follow", f"--container-image={image}", "--", "--no-python", "sh", "-c", "cat /opt/marker")
    ended = cluster.run("submit", "-N2", "--spare", "1", "-w", "node[1-3]", *job)
    assert ended.rc == 0 and ended.out.count("in the image") == 2, ended
    assert (f"pre-flight: node2: --container {image} is a folder and needs bwrap or apptainer or singularity, "
            "and PATH has none; ") in ended.out
    ended = cluster.run("submit", "-N2", "-w", "node[1-2]", *job)
    assert ended.rc == 125 and "1 of 2 nodes are fit for the job" in ended.out, ended
    assert "in the image" not in ended.out, ended


def test_a_node_that_was_lost_under_a_job_is_left_out_of_the_next(cluster, tmp_path):
    add_cluster(cluster)
    running = cluster.start("submit", "-N2", "--spare", "1", "-t10", "--follow", "--preflight=quick",
                            *worker(f"env={tmp_path}", f"touch={tmp_path}", f"wait={tmp_path}/go"))
    until(lambda: len(list(tmp_path.glob("[01]"))) == 2, 60, "both ranks run")
    dead = next(node for node in cluster.nodes[1:] if "test_worker" in node.processes().values())
    first = {rank: (tmp_path / str(rank)).stat().st_mtime_ns for rank in (0, 1)}
    cluster.power_cut(dead)
    until(lambda: all((tmp_path / str(rank)).stat().st_mtime_ns != first[rank] for rank in (0, 1)), 60,
          "both ranks run again")
    (tmp_path / "go").touch()
    assert running.wait(90).rc == 0
    until(lambda: left_out(cluster) == {dead.name: "lost under a job"}, 30, "it is remembered")
    told = cluster.run("submit", "-N2", "-t5", "--wait", "--preflight=quick", *worker("exit=0"))
    assert told.rc == 0 and f"note: left out because of recent failures: {dead.name} (lost under a job)" in told.err


def test_a_worker_that_fails_is_no_bad_node(cluster):
    add_cluster(cluster)
    ended = cluster.run("submit", "-N2", "-t5", "--wait", "--preflight=quick", *worker("@1", "exit=3", "@*", "pause"))
    assert ended.rc == 3, ended
    assert left_out(cluster) == {}


def test_bad_words(cluster):
    for words, text in ((("--preflight=some",), "--preflight"), (("--preflight-import=a,",), "must name a module"),
                        (("--preflight=off", "--preflight-import=a"), "needs --preflight full")):
        ended = cluster.run("submit", "-N2", *words, *worker("exit=0"))
        assert ended.rc == 2 and text in ended.err, ended
