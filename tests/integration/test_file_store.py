"""The FileStore beside real PyTorch of both generations, on one file: what one writes the other reads, nobody's
add or compare_set is lost among processes that hammer, and a peer that is stopped under the lock stops nobody else."""
import fcntl
import json
import os
import subprocess
import textwrap

import pytest

from harness import BUILD, PYTHON, SUPPORT, peer, until

TOOL = BUILD / "tests/file_store_tool"

# The same lines as file_store_tool's, over torch's own store.
PEER = textwrap.dedent("""
    import datetime, json, os, sys
    from torch.distributed import FileStore
    store = FileStore(sys.argv[1])

    def hammer(key, times):
        for _ in range(times):
            last = store.add(key, 1)
        return last

    def race(key, who, times):
        known, won = "", 0
        while won < times:
            following = "%d:%s" % (int(known.partition(":")[0] or 0) + 1, who)
            known = store.compare_set(key, known, following).decode()
            won += known == following
        return known

    def backend(run_id, made={}):
        if run_id not in made:
            from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
            made[run_id] = C10dRendezvousBackend(store, run_id)
        return made[run_id]

    def read(run_id, kept={}):
        found = backend(run_id).get_state()
        backend.token = found and found[1]
        return {"text": found and found[0].decode(), "written": False}

    def write(run_id, text):
        content, token, written = backend(run_id).set_state(text.encode(), backend.token)
        backend.token = token
        return {"text": content.decode(), "written": written}

    def get(key, ms):
        store.set_timeout(datetime.timedelta(milliseconds=ms))
        return [store.get(key).decode()]

    operations = dict(
        set=lambda key, value: store.set(key, value) or True, add=store.add, get=get, hammer=hammer, race=race,
        read=read, write=write, compare_set=lambda *args: store.compare_set(*args).decode(), delete=store.delete_key,
        wait=lambda key, ms: store.wait([key], datetime.timedelta(milliseconds=ms)) or True)
    print("ready", flush=True)
    for line in sys.stdin:
        op, *args = json.loads(line)
        print(json.dumps(operations[op](*args)), flush=True)
    os._exit(0) if "--abrupt" in sys.argv else None
""")


class Process:
    """A process that uses the file. ask() returns an answer; tell() sends, and take() reads later."""

    def __init__(self, argv, env=None, hello=False):
        self.process = subprocess.Popen([str(part) for part in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1, env={**os.environ, **(env or {})})
        if hello:
            assert self.process.stdout.readline() == "ready\n"

    def tell(self, *line):
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def take(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, *line):
        self.tell(*line)
        return self.take()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0


class Users:
    """Starts processes on one file, and ends them."""

    def __init__(self, path):
        self.path = path
        self.all = []

    def _add(self, *args, **options):
        self.all.append(Process(*args, **options))
        return self.all[-1]

    def ours(self):
        return self._add([TOOL, self.path])

    def torch(self, generation):
        if generation == "1.13":
            return self._add([PYTHON, "-c", PEER, self.path], hello=True)
        return self._add([peer(generation), "-c", PEER, self.path],
                         env={"PYTHONPATH": str(SUPPORT / "torch-2.6"), "OMP_NUM_THREADS": "1"}, hello=True)


@pytest.fixture
def users(tmp_path):
    made = Users(tmp_path / "store")
    yield made
    for user in made.all:
        user.process.kill()
        user.process.wait()


@pytest.fixture(params=["1.13", "2.6", "2.14"])
def generation(request):
    return request.param


def test_each_reads_what_the_other_writes(users, generation):
    torch, ours = users.torch(generation), users.ours()
    assert torch.ask("set", "from/torch", "söme ✓") is True
    assert ours.ask("get", "from/torch", 5000) == ["söme ✓"]
    assert ours.ask("set", "from/us", "x" * 100_000) is True
    assert torch.ask("get", "from/us", 5000) == ["x" * 100_000]
    assert [torch.ask("add", "n", 5), ours.ask("add", "n", -7), torch.ask("add", "n", 1)] == [5, -2, -1]
    assert torch.ask("compare_set", "cas", "other", "A") == ours.ask("compare_set", "cas", "other", "A") == "other"
    assert ours.ask("compare_set", "cas", "", "A") == "A"
    assert torch.ask("compare_set", "cas", "A", "B") == "B"
    assert ours.ask("compare_set", "cas", "A", "C") == torch.ask("compare_set", "cas", "A", "C") == "B"
    assert torch.ask("delete", "n") is True
    assert ours.ask("probe", "n") is None
    assert ours.ask("set", "", "") is True
    assert torch.ask("get", "", 5000) == [""]


def test_waits_are_met_by_the_other(users, generation):
    torch, ours = users.torch(generation), users.ours()
    ours.tell("wait", "a", 20_000)
    torch.ask("set", "a", "1")
    assert ours.take() is True
    torch.tell("wait", "b", 20_000)
    ours.ask("set", "b", "1")
    assert torch.take() is True
    assert "timeout" in ours.ask("wait", "never", 30)["error"]


def test_the_rendezvous_state(users, generation):
    """Through torchrun's own c10d backend: its sentinel, its versions, its winner of a compare_set."""
    torch, ours = users.torch(generation), users.ours()
    assert torch.ask("read", "job") == {"text": None, "written": False}
    none = ours.ask("read", "job")
    assert none == {"text": "Y2FuaW1hZGFt", "written": False}  # what torch's backend made
    assert ours.ask("write", "job", "b25l") == {"text": "b25l", "written": True}
    assert torch.ask("write", "job", "two") == {"text": "one", "written": False}
    assert torch.ask("write", "job", "two") == {"text": "two", "written": True}
    assert ours.ask("write", "job", "dGhyZWU=") == {"text": "dHdv", "written": False}
    assert ours.ask("write", "job", "dGhyZWU=") == {"text": "dGhyZWU=", "written": True}
    assert torch.ask("read", "job")["text"] == "three"


def test_nothing_is_lost_among_many(users):
    """Two processes of each kind load one file: every add counts once, every compare_set has one winner."""
    times = 300
    kinds = [users.torch("1.13"), users.torch("1.13"), users.torch("2.6"), users.torch("2.6"), users.ours(),
             users.ours()]
    for user in kinds:
        user.tell("hammer", "sum", times)
    assert max(user.take() for user in kinds) == times * len(kinds)
    for index, user in enumerate(kinds):
        user.tell("race", "turns", str(index), times // 10)
    last = [user.take() for user in kinds]
    assert f"{times // 10 * len(kinds)}" in {text.partition(":")[0] for text in last}
    assert {user.ask("get", "sum", 5000)[0] for user in kinds} == {str(times * len(kinds))}
    assert len({user.ask("get", "turns", 5000)[0] for user in kinds}) == 1


def test_the_file_stays_when_its_users_end(users, generation):
    """Torch counts its own users. Ours do not count, and never delete the file of others."""
    torch, ours = users.torch(generation), users.ours()
    ours.ask("set", "a", "1")
    assert torch.ask("get", "a", 5000) == ["1"]
    ours.end()
    torch.end()
    assert users.path.exists()
    assert users.ours().ask("get", "a", 5000) == ["1"]


def test_a_lock_that_is_held_delays(users):
    ours = users.ours()
    assert ours.ask("set", "a", "1") is True
    with open(users.path, "rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ours.tell("set", "a", "2")
        ours_too = users.ours()
        ours_too.tell("wait", "a", 100)
        assert "timeout" in ours_too.take()["error"]
    assert ours.take() is True
    assert ours_too.ask("get", "a", 5000) == ["2"]


@pytest.mark.parametrize("content, words", [
    (b"root:x:0:0:root:/root:/bin/bash\n", "not a FileStore record"),
    (b"\x02\0\0\0/a\xff\xff\xff\xff", "claims 4294967295 bytes"),
    (bytes(4096), "not a FileStore record"),
])
def test_a_foreign_file_is_refused_and_kept(users, content, words):
    users.path.write_bytes(content)
    assert words in users.ours().ask("set", "a", "1")["error"]
    assert users.path.read_bytes() == content


@pytest.mark.parametrize("first", ["ours", "torchrun"])
def test_a_rendezvous_beside_torchrun(lockstep, tmp_path, first):
    """c10d with store_type=file: our agent (without workers) and real torchrun 2.6 on one file; ranks by address."""
    path = tmp_path / "rendezvous"
    script = lockstep.work / "show.py"
    script.write_text('import os\nline = " ".join(os.environ[key] for key in ("RANK", "WORLD_SIZE", "MASTER_PORT"))\n'
                      'os.write(1, f"ENV {line}\\n".encode())  # one write: lines of two workers don\'t mix\n')

    def ours():
        return lockstep.start("file", "--endpoint", path, "--id", "job", "--nnodes", "2", "--local-addr", "127.0.0.2",
                              "--hold", "0.5", program=(BUILD / "tests/backend_tool",))

    def torchrun():
        return lockstep.start(
            "--nnodes", "2", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-id", "job",
            "--rdzv-endpoint", path,
            "--rdzv-conf", "store_type=file", "--local-addr", "127.0.0.1", script, program=(peer("2.6"),),
            env={"PEER_PROGRAM": "/usr/bin/torchrun", "PYTHONPATH": SUPPORT / "torch-2.6", "OMP_NUM_THREADS": 1,
                 "PYTHON_EXEC": None})

    one = ours() if first == "ours" else torchrun()
    until(lambda: path.exists() and b"torch.rendezvous.job" in path.read_bytes(), 30)
    runs = [one, torchrun() if first == "ours" else ours()]
    theirs, mine = runs[::-1] if first == "ours" else runs
    for run in runs:
        ended = run.wait(60)
        assert ended.rc == 0, str(ended)
    said = {event["event"]: event for event in map(json.loads, mine.out().splitlines())}
    round = said["round"]
    names = ("group_rank", "base_rank", "world_size", "master_addr")
    assert [round[name] for name in names] == [1, 2, 3, "127.0.0.1"]
    shown = sorted(line.split()[1:] for line in theirs.out().splitlines() if line.startswith("ENV"))
    assert shown == [[rank, "3", str(round["master_port"])] for rank in "01"]
    assert said["barrier"]["ok"] and said["left"]["ok"]
    assert path.exists()
