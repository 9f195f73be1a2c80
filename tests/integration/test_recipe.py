"""The recipe of multi-node DeepSpeed on Slurm as commands: an extension with DeepSpeed's layout becomes a wheel once,
goes to the disks of all nodes of a job, is imported there, and a training of several nodes uses it."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile

import pytest

from harness import BINARY, FOREIGN, PYTHON, SUPPORT, WORKER, until
from package_index import write_wheel
from slurm_cluster import SlurmCluster
from test_submit import number_in, number_of, submit, worker

pytest.importorskip("torch")

PROJECT = SUPPORT / "mini_ops"
MANY = 500.0  # seconds that a compiler or an import of PyTorch may take on a busy machine


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 4)
    yield made
    made.close()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Builds the extension's wheel. Returns the manifest with the wheel's path."""
    folder = tmp_path_factory.mktemp("wheel")
    env = {name: value for name, value in os.environ.items()
           if not FOREIGN.match(name) and not re.match(r"DS_|CFLAGS|CXX|CC$|LDFLAGS|LIBRARY_PATH", name)}
    env |= {"HOME": str(folder), "PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(folder / "cache")}
    ended = subprocess.run([BINARY, "wheel", "--json", "--python", PYTHON, PROJECT, "--ops", "cpu_scale"], env=env,
                           capture_output=True, text=True, timeout=MANY)
    assert ended.returncode == 0, ended
    return json.loads(ended.stdout)


def records(cluster, run=0):
    """Returns node -> its notes about wheels."""
    (folder,) = cluster.home.glob(".local/state/lockstep/slurm/*/wheels")
    return {path.stem.split("-", 1)[1]: json.loads(path.read_text()) for path in folder.glob(f"{run}-*.json")}


def overlays(node):
    return sorted(node.run("-1", "/tmp/lockstep-0/overlays", program=("/bin/ls",)).out.split())


TRAIN = """
import datetime, os
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import mini_ops
from mini_ops import scale_op
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=200))
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.arange(32.0).reshape(8, 4) / 32 + dist.get_rank()
for step in range(5):
    loss = scale_op.scale(1.0) * ((model(data) - 1) ** 2).mean()  # the op: times three
    optimizer.zero_grad(); loss.backward(); optimizer.step()
total = sum(parameter.sum().item() for parameter in model.parameters())
sums = [torch.zeros(1) for _ in range(dist.get_world_size())]
dist.all_gather(sums, torch.tensor([total]))
print(f"same={len({round(each.item(), 5) for each in sums}) == 1} world={dist.get_world_size()} "
      f"from={os.path.dirname(mini_ops.__file__)}", flush=True)
os._exit(int(os.environ.get("CODE", "0")))  # PyTorch 1.13 now and then aborts at its own exit after a DDP step
"""


def test_the_recipe(cluster, wheel):
    """One wheel, four nodes, of which two train while a third waits. Then the training fails with its own code."""
    cluster.script("train.py", TRAIN)
    path = shutil.copy(wheel["path"], cluster.work)
    ended = submit(cluster, "-N2", "--spare=1", "-t10", "--follow", f"--wheel={path}", "--env=CODE=7",
                   "--max-restarts=0", "--", "train.py", timeout=MANY)
    assert ended.rc == 7, ended
    place = f"/tmp/lockstep-0/overlays/mini_ops-1.0-{wheel['sha256'][:12]}"
    lines = [line for line in ended.out.splitlines() if "same=" in line]
    assert sorted(lines) == [f"[rank{rank}]: same=True world=2 from={place}/mini_ops" for rank in (0, 1)], ended
    told = records(cluster)
    assert len(told) == 3  # the spare, too
    # The same wheel is already there. A node without the wheel gets it.
    ended = submit(cluster, "-N4", "-t10", "--follow", f"--wheel={path}", "--", "train.py", timeout=MANY)
    assert ended.rc == 0 and ended.out.count("same=True world=4") == 4, ended
    assert [overlays(node) for node in cluster.nodes] == [[place.rsplit("/", 1)[1]]] * 4


def toy(folder, name="toy", content="V = 1\n", padding=0):
    """Makes a wheel of one module. padding: bytes that do not compress."""
    path = write_wheel(folder, name, "1.0", content)
    if padding:
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(f"{name}_data/blob", os.urandom(padding))
    return path


SHOW = ("--", "--no-python", "/usr/bin/python3", "-c",
        "import sys, os, toy; print('toy', toy.V, toy.__file__.rsplit('/', 2)[0], sys.path[1] in toy.__file__)")


def test_node_to_node(cluster, tmp_path):
    """Each node except the first gets the wheel from an earlier node. All have the same wheel, and no other file."""
    path = toy(tmp_path, padding=3_000_000)
    other = toy(tmp_path, "more", "import toy\n")
    ended = submit(cluster, "-N4", "-t5", "--follow", "--wheel", path, f"--wheel=wheel:{other}", *SHOW)
    assert ended.rc == 0, ended
    key = f"toy-1.0-{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
    assert sorted(line.split("]: ")[1] for line in ended.out.splitlines() if "]: toy" in line) == [
        "toy 1 /tmp/lockstep-0/overlays True"] * 4 or ended.out.count(f"overlays/{key}") == 4, ended
    told = records(cluster)
    names = [node.name for node in cluster.nodes]
    assert {name: [row["from"] for row in rows] for name, rows in told.items()} == {
        names[0]: ["the job's folder"] * 2, names[1]: [names[0]] * 2, names[2]: [names[0]] * 2,
        names[3]: [names[1]] * 2}
    for node in cluster.nodes:
        assert len(overlays(node)) == 2
        assert node.run("/tmp/lockstep-0", program=("/bin/ls",)).out.split() == ["overlays"]
    again = submit(cluster, "-N4", "-t5", "--follow", "--wheel", path, *SHOW)
    assert again.rc == 0 and again.out.count("toy 1") == 4, again
    (newest,) = [json.loads(cluster.run("jobs", "--json").out)["jobs"][0]]
    folder = cluster.home / ".local/state/lockstep/slurm" / newest["id"] / "wheels"
    assert [json.loads(each.read_text()) for each in folder.glob("0-*.json")] == [[]] * 4  # nothing was moved


def test_another_user_can_not_keep_wheels_off_a_node(cluster, tmp_path):
    path = toy(tmp_path)
    first = cluster.nodes[0]
    assert first.run("/tmp/lockstep-0", program=("/bin/mkdir",)).rc == 0
    assert first.run("65534", "/tmp/lockstep-0", program=("/bin/chown",)).rc == 0
    ended = submit(cluster, "-N2", "-w", "node1,node2", "-t5", "--follow", "--wheel", path, *SHOW)
    assert ended.rc == 0 and ended.out.count("toy 1 /tmp/lockstep-0/overlays") == 1, ended
    assert ended.out.count("toy 1 /tmp/lockstep-0-2/overlays") == 1, ended
    assert "/tmp/lockstep-0 is not this user's own folder: /tmp/lockstep-0-2 is used in its place" in ended.out, ended


def test_a_swept_overlay_is_made_again(cluster, tmp_path):
    path = toy(tmp_path)
    assert submit(cluster, "-N1", "-t5", "--follow", "--wheel", path, *SHOW).rc == 0
    (node,) = [each for each in cluster.nodes if overlays(each)]
    place = f"/tmp/lockstep-0/overlays/{overlays(node)[0]}"
    assert node.run(f"{place}/toy.py", program=("/bin/rm",)).rc == 0
    ended = submit(cluster, "-N1", "-t5", "--follow", "-w", node.name, "--wheel", path, *SHOW)
    assert ended.rc == 0 and "toy 1" in ended.out, ended


def test_a_node_that_is_left_out_is_asked_for_nothing(cluster, tmp_path):
    """The pre-flight removes the node before wheels come. Nodes behind it get the wheels from another node."""
    first, bad, third, last = cluster.nodes
    assert bad.run("-o", "remount,size=20m", "/tmp", program=("/bin/mount",)).rc == 0
    path = toy(tmp_path, padding=3_000_000)
    ended = submit(cluster, "-N3", "--spare=1", "-t5", "--binary=shared", "--env=TMPDIR=/tmp", "--follow", "--wheel",
                   path, *SHOW)
    assert ended.rc == 0 and ended.out.count("toy 1") == 3, ended
    assert f"pre-flight: {bad.name}: " in ended.out and "the node is left out" in ended.out, ended
    assert {name: [row["from"] for row in rows] for name, rows in records(cluster).items()} == {
        first.name: ["the job's folder"], third.name: [first.name], last.name: [first.name]}, ended


def test_a_node_that_gives_nothing(cluster, tmp_path):
    """A giver that dies is replaced by the job's folder: ports of the first node lead nowhere."""
    path = toy(tmp_path, padding=2_000_000)
    first = cluster.nodes[0]
    first.holder.nft("add table inet cut", "add chain inet cut input { type filter hook input priority 0; }",
                     "add rule inet cut input tcp dport 11000-19998 reject with tcp reset")
    ended = submit(cluster, "-N3", "-t5", "--follow", "--wheel", path, *SHOW)
    assert ended.rc == 0 and ended.out.count("toy 1") == 3, ended
    assert ended.out.count("reading the wheel from the job's folder") == 2, ended
    assert [rows[0]["from"] for rows in records(cluster).values()] == ["the job's folder"] * 3


def test_a_wheel_that_does_not_work(cluster, tmp_path):
    """The line names the wheel and its node, the job ends, and no rank has started."""
    path = toy(tmp_path, content="import nowhere\n")
    ended = submit(cluster, "-N2", "-t5", "--follow", "--wheel", path, "--", "--no-python", WORKER, f"touch={tmp_path}")
    assert ended.rc == 1, ended
    assert "No module named 'nowhere'" in ended.out and "toy-1.0-py3-none-any.whl does not work" in ended.out, ended
    assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()
    assert [overlays(node) for node in cluster.nodes[:2]] == [[], []]
    # Only on one node: the other node would wait for it.
    one = toy(tmp_path, content="import os\nif os.uname().nodename == 'node2': raise RuntimeError('not here')\n")
    ended = submit(cluster, "-N2", "-w", "node1,node2", "-t5", "--follow", "--wheel", one, "--", "--no-python", WORKER,
                   f"touch={tmp_path}")
    assert ended.rc == 1 and "worker: node2: " in ended.out and "RuntimeError: not here" in ended.out, ended
    assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()


def test_a_spare_trains_where_a_wheel_does_not_work(cluster, tmp_path):
    """One node's Python refuses the wheel: the spare takes the place of this node."""
    bad = cluster.nodes[1]
    path = toy(tmp_path, content=f"import os\nif os.uname().nodename == {bad.name!r}: raise RuntimeError('not here')\n"
                                 "V = 1\n")
    ended = submit(cluster, "-N2", "--spare=1", "-t5", "--follow", "--wheel", path, *SHOW)
    assert ended.rc == 0 and ended.out.count("toy 1") == 2, ended
    assert "RuntimeError: not here" in ended.out, ended


def test_bad_wheels_are_refused_before_anything_is_submitted(cluster, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("x")
    path = toy(tmp_path)
    for words, text in (((f"--wheel={tmp_path}/no-1-py3-none-any.whl",), "there is no"),
                        ((f"--wheel={notes}",), "must be a wheel"),
                        (("--wheel=wheel:abc",), "there is no abc"),
                        ((f"--wheel={path}", f"--wheel={path}"), "is given twice"),
                        ((f"--wheel={path}", "--wheel-place=tmp"), "--wheel-place must be an absolute path")):
        ended = submit(cluster, "-N2", "-t5", *words, *worker("exit=0"))
        assert ended.rc == 2 and text in ended.error_lines[-1], ended
    assert cluster.slurm("squeue", "-h").out == ""
