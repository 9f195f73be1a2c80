"""import lockstep: functions on hosts with a real sshd, called from a program on the client's host."""
import json
import os
import shutil
import signal

import pytest

from harness import BINARY, PYTHON, REPOSITORY, alive, until
from ssh_hosts import FIRST_UID, SshWorld

MODULE = """
import collections, dataclasses, datetime, enum, json, os, sys, time
from decimal import Decimal

class OwnError(Exception):
    def __init__(self, text, number):
        super().__init__(text, number)
        self.number = number

class Colour(enum.Enum):
    RED = 1

@dataclasses.dataclass
class Point:
    x: int
    y: "Point" = None

class Evil:
    def __reduce__(self):
        return os.system, ("echo pwned >&2; touch pwned",)

def add(a, b=0, **more):
    print("adding", a)
    print("to stderr", file=sys.stderr)
    return a + b

def same(value):
    return value

def values():
    return {"t": (1, 2.5, None, True), b"k": {1, 2}, "f": frozenset("a"), "c": 1j, "d": Decimal("1.10"),
            "o": collections.OrderedDict(a=1), "dd": collections.defaultdict(list, a=[1]), "q": collections.deque([1]),
            "n": collections.Counter("aab"), "when": datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
            "p": Point(1, Point(2)), "e": Colour.RED, "b": bytearray(b"x"), "r": range(3)}

def fail(kind):
    if kind == "own":
        raise OwnError("mine", 7)
    if kind == "json":
        json.loads("{")
    if kind == "exit":
        sys.exit(3)
    if kind == "missing":
        open("/no/such/file")
    raise {"value": ValueError, "key": KeyError}[kind]("text", [1])

def unknown():
    import types
    module = types.ModuleType("only_there")
    sys.modules["only_there"] = module
    exec("class Odd(Exception): pass", module.__dict__)
    raise module.Odd("strange")

def evil():
    return [1, Evil()]

def generator():
    return (n for n in ())

def big(size):
    return b"x" * size

def wait(path=None):
    print("up", flush=True)
    if path:
        open(path, "w").close()
    time.sleep(1000)

def where():
    return os.getcwd(), os.environ.get("GIVEN"), os.getpid(), sys.argv[0]

def square(n):
    if n < 0:
        raise ValueError(n)
    return n * n
"""


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


class Programs:
    """Runs Python programs on the client's host, in a project that lies on the servers too."""

    def __init__(self, client, servers):
        self.client, self.servers = client, servers
        self.project = client.folder / "proj"
        self.project.mkdir()
        (self.project / "work.py").write_text(MODULE)
        self.place()
        for server in servers:
            assert client.exec(f"me@{server.addr}", "true").rc == 0  # a slow first contact would tell that it waits

    def place(self):
        for server in self.servers:
            there = server.homes["me"] / "proj"
            shutil.copytree(self.project, there, dirs_exist_ok=True)
            os.chown(there, FIRST_UID, FIRST_UID)

    def start(self, code, env=None, place=True, folder=None, **options):
        # sync=False: the tests place the files themselves.
        hosts = ", ".join(f"'me@{server.addr}'" for server in self.servers)
        name = "None" if len(self.servers) == 1 else "'gpus'"
        (self.project / "main.py").write_text(
            "import functools, sys\nimport lockstep\n"
            f"gpu = lockstep.Cluster('me@{self.servers[0].addr}', one_host=True)\n"
            "remote = functools.partial(lockstep.function, system=gpu, sync=False)\n" +
            code.replace("HOSTS", f"name={name}, ips=[{hosts}]"))
        if place:
            self.place()
        return self.client.start(self.project / "main.py", program=(PYTHON,), cwd=folder or self.project,
                                 env={"PYTHONPATH": REPOSITORY / "python", "LOCKSTEP_BINARY": BINARY,
                                      "XDG_STATE_HOME": self.client.folder / "state",
                                      "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}, **options)

    def run(self, code, timeout=60, **options):
        return self.start(code, **options).wait(timeout)


@pytest.fixture
def programs(world):
    return Programs(*(lambda client, server: (client, [server]))(*world()))


def good(ended):
    assert ended.rc == 0, ended
    return ended.out


def test_a_value_comes_back_and_prints_are_passed_on(programs):
    ended = programs.run("""
import work
if __name__ == "__main__":
    add = remote(fn=work.add)
    assert add(2, b=3) == 5
    print("quiet", add(2, stream_logs=False))
    assert remote(work.add, serialization="json")([1], b=[2]) == [1, 2]
    print(add.__name__, add)
""")
    lines = good(ended).splitlines()
    assert lines[:3] == ["adding 2", "quiet 2", "adding [1]"], ended
    assert ended.err == "to stderr\nto stderr\n", ended


def test_values_of_python_come_back_as_they_are(programs):
    good(programs.run("""
import work
if __name__ == "__main__":
    came = remote(work.values)()
    assert came == work.values(), came
    assert type(came["dd"]) is type(work.values()["dd"]) and came["e"] is work.Colour.RED
    point = work.Point(3, work.Point(4))
    assert remote(work.same)(point) == point
    assert remote(work.same, serialization="pickle")(work.evil.__name__) == "evil"
    where = remote(work.where, env={"GIVEN": "a b"})()
    assert where[:2] == ("/home/me/proj", "a b"), where
"""))


def test_exceptions_are_raised_again_with_their_traceback(programs):
    good(programs.run("""
import traceback, work
def raised(fn, *args, **options):
    try:
        remote(fn, **options)(*args)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")
if __name__ == "__main__":
    error = raised(work.fail, "value")
    assert type(error) is ValueError and error.args == ("text", [1])
    assert isinstance(error.__cause__, lockstep.RemoteTraceback)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    assert "work.py" in text and "in fail" in text and "_runner" not in text, text
    error = raised(work.fail, "own")
    assert type(error) is work.OwnError and error.number == 7 and error.args == ("mine", 7)
    assert type(raised(work.fail, "json")).__name__ == "JSONDecodeError"
    error = raised(work.fail, "missing")
    assert type(error) is FileNotFoundError and error.filename == "/no/such/file"
    error = raised(work.fail, "exit")
    assert type(error) is lockstep.RemoteError and error.type_name == "builtins.SystemExit"
    error = raised(work.unknown)
    assert type(error) is lockstep.RemoteError and error.type_name == "only_there.Odd" and "strange" in str(error)
    error = raised(work.fail, "value", serialization="json")
    assert type(error) is lockstep.RemoteError and error.type_name == "builtins.ValueError"
"""))


def test_code_does_not_come_back_as_a_value(programs):
    good(programs.run("""
import work
if __name__ == "__main__":
    try:
        remote(work.evil)()
    except lockstep.ValueRefused as error:
        assert "system" in str(error) and "serialization='pickle'" in str(error), error
        assert error.value[0] == 1 and "pwned" in repr(error.value[1])
    else:
        raise AssertionError
"""))
    assert not (programs.project / "pwned").exists()


HOSTILE = '''
import os, struct, sys

def answers(path):
    """What a host says that was taken over: a value, or an exception, that names a class by this path from __main__."""
    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()
    target = text("__main__") + text(path) + b"\\x93"
    made = target + b"(](" + text("touch") + text("pwned") + b"etR"
    answer = sys._getframe(1).f_locals["answer"]
    if path == "an exception":
        made = target = text("__main__") + text("lockstep._program.subprocess.Popen") + text("t") + text("t")
        part = b"\\x80\\x04](](" + text("touch") + text("pwned") + b"ee}\\x86."
        answer.put(b"e", b"\\x80\\x04(" + target + b"C" + bytes([len(part)]) + part + b"t.")
    else:
        answer.write(b"\\x80\\x04" + made + b".")
        answer.put(b"k")
    os._exit(0)
'''


def test_a_host_that_was_taken_over_starts_nothing_here(programs):
    (programs.project / "hostile.py").write_text(HOSTILE)
    good(programs.run("""
import subprocess, hostile
from subprocess import Popen
if __name__ == "__main__":
    import lockstep._program
    answers = remote(hostile.answers)
    for path in ("lockstep._program.subprocess.Popen", "subprocess.Popen", "Popen", "hostile.os.system"):
        try:
            raise AssertionError(answers(path))
        except lockstep.ValueRefused as error:
            assert f"__main__.{path}" in str(error), error
    try:
        answers("an exception")
    except lockstep.RemoteError as error:
        assert error.type_name == "__main__.lockstep._program.subprocess.Popen", error.type_name
"""))
    assert not (programs.project / "pwned").exists()


def test_what_cannot_be_called_is_told(programs):
    said = good(programs.run("""
import work
def told(fn, *args, **options):
    try:
        remote(fn, **options)(*args)
    except lockstep.CallError as error:
        print(error)
if __name__ == "__main__":
    told(work.generator)
    sys.modules["cloudpickle"] = None  # as if it were not installed
    told(lambda: 1)
    told(work.add, object(), serialization="json")
    told(work.add, (n for n in ()))
    told(work.add, python="python9")
    remote.keywords["system"] = lockstep.Cluster("me@no-such-host", one_host=True)
    told(work.add, 1)
    remote.keywords["system"] = lockstep.Cluster("gone")
    told(work.add, 1)
""")).splitlines()
    expected = ["the value of generator, a generator, can't be sent", "from a module or script", "are not JSON",
                "can't be sent", "no executable python9 is found", "does not resolve", "gone"]
    assert len(said) == len(expected) and all(text in line for text, line in zip(expected, said)), said


def test_a_function_of_the_script_itself(programs):
    good(programs.run("""
class Mine:
    n = 1
    def __eq__(self, other): return type(other) is Mine and self.n == other.n
def mine(value, where=None):
    value.n += 1
    return value, __name__, sys.argv[0]
if __name__ == "__main__":
    value, name, script = remote(mine)(Mine())
    assert type(value) is Mine and value.n == 2 and name == "__mp_main__" and script == "main.py", (name, script)
    import os
    os.mkdir("/tmp/elsewhere-" + str(os.getpid()))
    os.chdir("/tmp/elsewhere-" + str(os.getpid()))
    assert remote(mine)(Mine())[0].n == 2
    os.rmdir(os.getcwd())
"""))


def test_a_closure_travels_by_cloudpickle(programs):
    pytest.importorskip("cloudpickle")
    good(programs.run("""
if __name__ == "__main__":
    n = 5
    assert remote(lambda m: n * m)(4) == 20
"""))


def test_a_future_a_map_and_their_exceptions(world):
    programs = Programs(*(lambda client, *servers: (client, list(servers)))(*world(2)))
    good(programs.run("""
import concurrent.futures, work
if __name__ == "__main__":
    gpu = lockstep.cluster(HOSTS)
    square = lockstep.function(work.square, gpu, sync=False)
    futures = [square.remote(n) for n in range(3)]
    assert [future.result(timeout=60) for future in futures] == [0, 1, 4]
    assert all(future.done() and not future.cancelled() for future in futures)
    assert not futures[0].cancel()
    failing = square.remote(-1)
    assert type(failing.exception(60)) is ValueError
    assert len(concurrent.futures.wait(futures).done) == 3
    assert square.map(range(5)) == [0, 1, 4, 9, 16]
    try:
        square.map([1, -1, 2])
    except ValueError:
        pass
    else:
        raise AssertionError
    gpu = lockstep.cluster(HOSTS)  # the same hosts: reused
    try:
        lockstep.cluster(name="gpus", ips=["other"], replace=False)
    except lockstep.LockstepError as error:
        assert "leave out replace=False" in str(error)
    else:
        raise AssertionError
    open(__import__("os").path.expanduser("~/k"), "w").close()  # a key must be there
    lockstep.cluster(name="gpus", ips=["other"], ssh_creds={"ssh_user": "u", "ssh_private_key": "~/k"})
    nodes = lockstep.cluster(name="gpus").hosts()
    assert [(node["host"], node["user"]) for node in nodes] == [("other", "u")], nodes
    print("updated", file=sys.stderr)
"""))


def test_a_cancelled_call_leaves_nothing(programs):
    run = programs.start("""
import concurrent.futures, work
if __name__ == "__main__":
    future = remote(work.wait).remote("started")
    while not sys.stdin.readline():
        pass
    assert future.cancel()
    try:
        future.result(60)
    except concurrent.futures.CancelledError:
        assert future.cancelled()
        print("cancelled")
""", stdin=-1)
    until(lambda: "up" in run.out(), 30, "the function runs")
    run.process.stdin.write(b"go\n")
    run.process.stdin.close()
    ended = run.wait(60)
    assert good(ended).splitlines()[-1] == "cancelled"
    programs.servers[0].nothing_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_program_that_is_ended_leaves_nothing(programs, number):
    run = programs.start("import work\nif __name__ == '__main__':\n    remote(work.wait)()\n")
    until(lambda: "up" in run.out(), 30, "the function runs")
    run.signal(number)
    ended = run.wait(60)
    assert ended.rc in (130, -signal.SIGINT, -signal.SIGKILL), ended
    programs.servers[0].nothing_left()
    run.none_left(10)


def test_200_megabytes_come_back(programs):
    said = good(programs.run("""
import resource, work
if __name__ == "__main__":
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 200 << 20
    value = remote(work.big)(size)
    assert len(value) == size and value.count(b"x") == size
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert len(remote(work.same)(value)) == size
""", timeout=200))
    assert int(said) < 300 << 10, f"{said} KiB more for 200 MB"  # one copy


def test_commands_and_status(programs):
    said = good(programs.run("""
if __name__ == "__main__":
    try:
        gpu.up_if_not().run(["echo one; echo two >&2", ["sh", "-c", 'echo "$0"', "a b"], "echo so >&2; exit 3", "pwd"])
    except lockstep.CommandError as error:
        assert [tuple(each) for each in error.results] == [
            (0, "one\\n", "two\\n"), (0, "a b\\n", ""), (3, "", "so\\n"), (0, "/home/me\\n", "")], error.results
        assert error.code == 3 and str(error).startswith("echo so >&2; exit 3 on ") and str(error).endswith(": so")
    else:
        raise AssertionError
    assert [each.code for each in gpu.run(["exit 3", "pwd"], check=False, stream_logs=False)] == [3, 0]
    assert gpu.run(["pwd"], cwd="proj", stream_logs=False)[0].output == "/home/me/proj\\n"
    assert [each["reached"] for each in gpu.status()["nodes"]] == [True]
    status = lockstep.Cluster("me@no-such-host", one_host=True).status()
    assert "does not resolve" in status["nodes"][0]["error"], status
"""))
    assert said == "one\na b\n/home/me\n", said


def test_a_tensor_and_an_array(programs):
    pytest.importorskip("torch")
    (programs.project / "learn.py").write_text("""
import numpy, torch

def step(weights, array):
    weights = weights * 2
    out = {"w": weights, "p": torch.nn.Parameter(torch.ones(2, 2)), "h": weights.to(torch.bfloat16).t(),
           "empty": torch.empty(0, 3), "flag": torch.tensor(True), "a": array[::2], "s": numpy.float32(1.5),
           "t": numpy.array(["a", "bc"]), "n": numpy.array(3)}
    out["state"] = torch.nn.Linear(2, 1).state_dict()
    return out

def broken():
    return torch.ones(2) @ torch.ones(3)
""")
    good(programs.run("""
import numpy, torch, learn
if __name__ == "__main__":
    given = torch.arange(6.0).reshape(2, 3)
    came = remote(learn.step)(given, numpy.arange(6))
    mine = learn.step(given, numpy.arange(6))
    for name in ("w", "p", "h", "empty", "flag"):
        assert torch.equal(came[name], mine[name]) and came[name].dtype == mine[name].dtype, name
    assert type(came["p"]) is torch.nn.Parameter and came["p"].requires_grad
    for name in ("a", "s", "t", "n"):
        assert numpy.array_equal(came[name], mine[name]) and came[name].dtype == mine[name].dtype, name
    came["a"][0] = 9
    assert sorted(came["state"]) == ["bias", "weight"] and came["state"]["weight"].shape == (1, 2)
    try:
        remote(learn.broken)()
    except RuntimeError as error:
        assert "size" in str(error), error
""", timeout=180))


def test_a_map_returns_in_order_and_raises_only_where_asked(world):
    programs = Programs(*(lambda client, *servers: (client, list(servers)))(*world(2)))
    good(programs.run("""
import os
import work
def own(n, add=0):
    return n + add, __name__
if __name__ == "__main__":
    gpu = lockstep.cluster(HOSTS)
    squares = lockstep.map(work.square, [3, -1, {"n": 4}, 5], system=gpu, at_once=2, sync=False)
    assert len(squares) == 4 and squares[3] == 25 and squares[0] == 9 and squares[-2] == 16
    assert type(squares.exception(1)) is ValueError and squares.exception(1).args == (-1,)
    assert isinstance(squares.exception(1).__cause__, lockstep.RemoteTraceback)
    try:
        list(squares)
    except ValueError:
        pass
    else:
        raise AssertionError
    assert squares.wait(60) and squares.states() == ["done", "failed", "done", "done"]
    import subprocess
    why = subprocess.run([lockstep.find_binary(), "why", squares.job], stdout=-1, check=True).stdout.decode()
    assert "1 row: ValueError: -1" in why, why
    squares.remove()
    assert type(squares.exception(1)) is ValueError  # read already
    try:
        lockstep.rows(squares.job)[2]
    except lockstep.CallError:
        pass
    else:
        raise AssertionError
    # On this machine: the folder as it is, and a function of the script itself.
    here = lockstep.map(own, [{"n": 1, "add": 2}, 5], name="mine")
    assert list(here) == [(3, "__mp_main__"), (5, "__mp_main__")], list(here)
    evil = lockstep.map(work.evil, [{}], allow=[work.Point])
    assert type(evil.exception(0)) is lockstep.ValueRefused, evil.exception(0)
    assert list(lockstep.map(own, [])) == []
    # A refused map leaves nothing on the hosts, and other users cannot read the files there.
    place = os.path.expanduser("~/.local/share/lockstep/maps")
    before = sorted(os.listdir(place))
    assert before and all(os.stat(os.path.join(place, each)).st_mode & 0o777 == 0o700 for each in before)
    for refused in ({"at_once": 0}, {"reqs": ["numpy"]}, {"env": {"A B": "1"}}, {"rows": range(10_001)}):
        try:
            lockstep.map(own, **{"rows": [1], **refused})
        except (ValueError, lockstep.LockstepError):
            continue
        raise AssertionError(refused)
    assert sorted(os.listdir(place)) == before
    for bad in (lambda: squares[4], lambda: squares[-5]):
        try:
            bad()
        except IndexError:
            continue
        raise AssertionError
"""))


def test_a_map_outlives_its_program(world):
    """The second program knows only the job's id. One row's process dies without a word."""
    programs = Programs(*(lambda client, *servers: (client, list(servers)))(*world(2)))
    (programs.project / "late.py").write_text("""
import os, time
def late(n):
    while not os.path.exists(os.path.expanduser("~/go")):
        time.sleep(0.05)
    if n == 2:
        os._exit(7)
    return {"n": n}
""")
    run = programs.start("""
import late
if __name__ == "__main__":
    made = lockstep.map(late.late, range(5), system=lockstep.cluster(HOSTS), at_once=4, sync=False)
    print(made.job, flush=True)
    made[4]
""")
    until(lambda: run.out().endswith("\n"), 60, "the job has begun")
    job = run.out().strip()
    run.signal(signal.SIGKILL)
    run.wait(10)
    for server in programs.servers:
        (server.homes["me"] / "go").touch()
    good(programs.run(f"""
if __name__ == "__main__":
    made = lockstep.rows("{job}")
    assert [made[row] for row in (0, 1, 3, 4)] == [{{"n": row}} for row in (0, 1, 3, 4)]
    error = made.exception(2)
    assert type(error) is lockstep.RemoteError and "row 2 of job {job}" in str(error), error
    try:
        lockstep.rows("nothing")
    except lockstep.LockstepError as error:
        assert "nothing" in str(error), error
    else:
        raise AssertionError
"""))


def test_a_failed_row_has_no_value_and_no_answer_of_an_earlier_try(world):
    """On this machine. Both rows end before their process does; the second time one dies before its answer."""
    programs = Programs(*(lambda client, *servers: (client, list(servers)))(*world(1)))
    good(programs.run("""
import atexit, os, subprocess
def late(n):
    atexit.register(os._exit, 9)
    return n
def twice(n):
    if os.path.exists("tried"):
        os._exit(7)
    open("tried", "w").close()
    raise ValueError(n)
def mended(n):
    if os.path.exists("mended"):
        return n
    open("mended", "w").close()
    os._exit(7)
if __name__ == "__main__":
    made = lockstep.map(late, [2])
    error = made.exception(0)
    assert type(error) is lockstep.RemoteError and "exit code" in str(error), error
    made = lockstep.map(twice, [3])
    assert made.exception(0).args == (3,) and made.wait(60)
    subprocess.run([lockstep.find_binary(), "resume", made.job], check=True, stdout=-3)
    assert made.wait(60)
    error = lockstep.rows(made.job).exception(0)
    assert type(error) is lockstep.RemoteError and "exit code" in str(error), error
    # The next try is seen, because a row without a value is asked for again.
    made = lockstep.map(mended, [4])
    assert type(made.exception(0)) is lockstep.RemoteError and made.wait(60)
    subprocess.run([lockstep.find_binary(), "resume", made.job], check=True, stdout=-3)
    assert made.wait(60) and made[0] == 4
    # The rows' interpreter reads the values, too; no python3 is in the path.
    os.symlink(sys.executable, "own-python")
    made = lockstep.map(late, [2, 3], python=os.path.abspath("own-python"))
    made.wait(60)
    os.environ["PATH"] = ""
    assert type(lockstep.rows(made.job).exception(1)) is lockstep.RemoteError
"""))
