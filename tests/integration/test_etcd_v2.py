"""etcd's v2 API as torchrun's etcd-v2 backend uses it: our state and store beside PyTorch's own EtcdRendezvousBackend
and EtcdStore (Debian's PyTorch 1.13 and the peers' 2.6) on the same keys of a real etcd."""
import base64
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess

import pytest

import etcd_server as etcd
from etcd_server import server  # noqa: F401
from harness import PEERS, PYTHON, SUPPORT, free_port, skip, until

KEY = "/torch/elastic/rendezvous/job"
# Reads lines of Python on stdin, each an expression whose value goes out as one line of JSON.
PEER = """
import base64, json, sys, datetime
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.etcd_rendezvous_backend import create_backend
params = RendezvousParameters(backend="etcd-v2", endpoint=sys.argv[1], run_id="job", min_nodes=1, max_nodes=2)
backend, store = create_backend(params)
store.set_timeout(datetime.timedelta(seconds=20))
def text(value):
    return value.decode() if isinstance(value, bytes) else value
def state(answer):
    return answer and [base64.b64encode(answer[0]).decode(), *answer[1:]]
print("ready", flush=True)
for line in sys.stdin:
    try:
        value = eval(line)
    except Exception as error:
        value = {"raised": type(error).__name__, "text": str(error)}
    print(json.dumps(value), flush=True)
"""


class Torch:
    def __init__(self, place, argv, env):
        self.process = subprocess.Popen([*argv, "-c", PEER, place], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
                                        preexec_fn=etcd.kill_with_parent)
        assert self.process.stdout.readline() == "ready\n"

    def begin(self, expression):
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def end(self):
        return json.loads(self.process.stdout.readline())

    def eval(self, expression):
        self.begin(expression)
        return self.end()

    def kill(self):
        self.process.kill()
        self.process.wait(5)
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def tool(server):
    subprocess.run(["etcdctl", "--endpoints", f"http://{server.places}", "rm", "-r", "/torch"], capture_output=True,
                   env={**os.environ, "ETCDCTL_API": "2"})
    one = etcd.Tool(server.places)
    yield one
    one.kill()


@pytest.fixture(scope="module", params=["1.13", "2.6"])
def torch(request, server, tmp_path_factory):
    modules = pathlib.Path(importlib.util.find_spec("etcd").origin).parent
    if request.param == "1.13":
        one = Torch(server.places, [PYTHON], {})
    else:
        if not (PEERS / "trixie/.complete").exists():
            skip("no .cache/peers/trixie: run ./dev peers")
        # python-etcd is plain Python: Debian 12's package serves Debian 13's interpreter too.
        folder = tmp_path_factory.mktemp("modules")
        for name in ("etcd", "dns"):
            shutil.copytree(modules.parent / name, folder / name)
        one = Torch(server.places, [SUPPORT / "python-trixie"], {"PYTHONPATH": f"{SUPPORT / 'torch-2.6'}:{folder}"})
    yield one
    one.kill()


# ---- our own both ways

def test_store_by_itself(tool):
    assert tool.do("v2_probe", key="a") is None
    tool.do("v2_set", key="a", value="one")
    assert tool.do("v2_probe", key="a") == "one"
    assert tool.do("v2_put_if_absent", key="a", value="two") == "one"
    assert tool.do("v2_put_if_absent", key="b", value="two") == "two"
    assert [tool.do("v2_add", key="n", delta=d) for d in (5, -7, 0)] == [5, -2, -2]
    tool.do("v2_multi_set", entries=[["x", "1"], ["y", ""], ["x", "2"]])
    assert tool.do("v2_get", keys=["x", "y", "n"]) == ["2", "", "-2"]
    tool.do("v2_multi_set", entries=[])
    said = tool.ask("v2_add", key="a", delta=1)
    assert "no number to add to: 'one'" in said["error"]


def test_in_the_order_asked(tool):
    numbers = [tool.begin("v2_set", key="k", value=str(i)) for i in range(50)]
    last = tool.begin("v2_probe", key="k")
    assert tool.end(last)["value"] == "49"
    assert all(tool.end(n)["value"] is True for n in numbers)


def test_waits(tool, server):
    late = tool.ask("v2_get", keys=["p", "q"], timeout=150)
    assert late["timeout"] and late["error"] == "wait timeout after 150ms, keys: p, q"
    both = tool.begin("v2_get", keys=["p", "q"])
    watch = tool.begin("v2_watch", key="q")
    other = etcd.Tool(server.places)
    other.do("v2_set", key="p", value="1")
    other.do("v2_set", key="q", value="2")
    assert tool.end(both)["value"] == ["1", "2"]
    assert tool.end(watch)["value"] == "2"
    assert tool.do("v2_wait", keys=["q"]) is True
    other.kill()


# A poll that began more than a thousand events ago.
def test_wait_outlives_etcds_memory(tool, server):
    before = server.v2_watchers()
    waiting = tool.begin("v2_get", keys=["late"], timeout=300_000)
    until(lambda: server.v2_watchers() > before, what="etcd has the poll")
    other = etcd.Tool(server.places)
    numbers = [other.begin("v2_set", key=f"noise{i % 7}", value="x") for i in range(1200)]
    assert not [said for said in (other.end(number, 120) for number in numbers) if "error" in said]
    other.do("v2_set", key="late", value="here")
    assert tool.end(waiting, 60)["value"] == ["here"]
    other.kill()


def test_two_add_at_once(tool, server):
    other = etcd.Tool(server.places)
    numbers = [(who, who.begin("v2_add", key="n", delta=1)) for _ in range(40) for who in (tool, other)]
    sums = sorted(who.end(n, 60)["value"] for who, n in numbers)
    assert sums == list(range(1, 81))
    other.kill()


def test_state_by_itself(tool, server):
    first = tool.ask("v2_read_state")
    assert (first["value"], first["token"]) == ("Y2FuaW1hZGFt", "")
    one = tool.ask("v2_write_state", token="", text="b25l")
    assert one["written"] and one["value"] == "b25l"
    assert 7100 < server.v2(KEY)["ttl"] <= 7200
    two = tool.ask("v2_write_state", token=one["token"], text="dHdv")
    assert two["written"] and two["token"] != one["token"]
    for token in ("", one["token"]):
        stale = tool.ask("v2_write_state", token=token, text="b25l")
        assert not stale["written"] and (stale["value"], stale["token"]) == ("dHdv", two["token"])


# ---- beside PyTorch

def test_state_with_torch(tool, torch, server):
    assert torch.eval("state(backend.get_state())") is None
    mine = tool.ask("v2_write_state", token="", text=base64.b64encode(b"state of ours \x00\xff+/").decode())
    theirs = torch.eval("state(backend.get_state())")
    assert theirs == [mine["value"], int(mine["token"])]
    text, token, has_set = torch.eval(f"state(backend.set_state(b'theirs', {theirs[1]}))")
    assert has_set is True
    seen = tool.ask("v2_read_state")
    assert (seen["value"], seen["token"]) == (text, str(token))
    stale = tool.ask("v2_write_state", token=mine["token"], text="b25l")
    assert not stale["written"] and stale["value"] == text
    again = tool.ask("v2_write_state", token=seen["token"], text="b25l")
    assert again["written"]
    assert torch.eval(f"state(backend.set_state(b'late', {token}))") == ["b25l", int(again["token"]), False]
    assert torch.eval("state(backend.set_state(b'late'))")[2] is False


def test_store_with_torch(tool, torch, server):
    tool.do("v2_set", key="torch.rendezvous.job.0/MASTER_ADDR", value="node-1")
    assert torch.eval("text(store.get('torch.rendezvous.job.0/MASTER_ADDR'))") == "node-1"
    torch.eval("store.set('from/torch', 'a\\nb\\0c')")
    assert tool.do("v2_get", keys=["from/torch"]) == ["a\nb\0c"]
    # The same bytes for the same call.
    tool.do("v2_set", key="k1", value="some value+/=&")
    torch.eval("store.set('k2', 'some value+/=&')")
    nodes = [server.v2("/torch/elastic/store/" + base64.b64encode(k).decode()) for k in (b"k1", b"k2")]
    assert nodes[0]["value"] == nodes[1]["value"]
    assert nodes[0].keys() == nodes[1].keys()
    assert torch.eval("store.add('count', 3)") == 3
    assert tool.do("v2_add", key="count", delta=4) == 7
    assert torch.eval("store.add('count', -2)") == 5
    assert tool.do("v2_add", key="fresh", delta=1) == 1
    assert torch.eval("store.add('fresh', 1)") == 2


def test_waits_with_torch(tool, torch):
    tool.do("v2_set", key="w0", value="")  # EtcdStore raises where its folder does not exist yet
    torch.begin("text(store.get('w1'))")
    tool.do("v2_set", key="w1", value="from us")
    assert torch.end() == "from us"
    waiting = tool.begin("v2_get", keys=["w2", "w3"])
    torch.eval("store.set('w2', 'two')")
    torch.eval("store.set('w3', 'three')")
    assert tool.end(waiting)["value"] == ["two", "three"]
    torch.begin("store.wait(['w4', 'w5'])")
    tool.do("v2_multi_set", entries=[["w4", ""], ["w5", "x"]])
    assert torch.end() is None


# A state that PyTorch itself has pickled, through etcd and our hands and back.
def test_a_real_state(tool, torch):
    before = torch.eval("state(backend.set_state(__import__('pickle').dumps("
                        "__import__('torch.distributed.elastic.rendezvous.dynamic_rendezvous', "
                        "fromlist=['x'])._RendezvousState())))")
    seen = tool.ask("v2_read_state")
    assert seen["value"] == before[0] and base64.b64decode(seen["value"])[:2] == b"\x80\x04"


# ---- what goes wrong

def test_etcd_is_not_there():
    port = free_port()
    tool = etcd.Tool(f"127.0.0.1:{port}", "read_timeout=1")
    said = tool.ask("v2_read_state", deadline=5)
    assert f"GET http://127.0.0.1:{port}/v2/keys{KEY}" in said["error"]
    assert "Connection refused, gave up after 1.0 s" in said["error"] and said["errno"] == 111
    tool.kill()


def test_v2_is_switched_off(tmp_path):
    cluster = etcd.Cluster(tmp_path / "off")
    popen, subprocess.Popen = subprocess.Popen, lambda argv, **k: popen([a for a in argv if a != "--enable-v2"], **k)
    try:
        cluster.start()
    finally:
        subprocess.Popen = popen
    tool = etcd.Tool(cluster.places)
    said = tool.ask("v2_read_state", deadline=5)
    assert "HTTP 404" in said["error"] and "--enable-v2" in said["hint"]
    tool.kill()
    cluster.close()


def test_etcd_away_for_a_moment(tmp_path):
    cluster = etcd.Cluster(tmp_path / "gap").start()
    tool = etcd.Tool(cluster.places)
    tool.do("v2_set", key="a", value="before")
    waiting = tool.begin("v2_get", keys=["b"], timeout=20000)
    member = cluster.members[0]
    member.kill()
    gap = [tool.begin("v2_set", key="c", value="in the gap"), tool.begin("v2_probe", key="a")]
    member.start()
    assert [tool.end(n)["value"] for n in gap] == [True, "before"]
    tool.do("v2_set", key="b", value="after")
    assert tool.end(waiting)["value"] == ["after"]
    tool.kill()
    cluster.close()
