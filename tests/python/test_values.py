"""The values that are accepted from a host, read from a host's bytes. No process is started."""
import collections
import enum
import io
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import lockstep  # noqa: E402
from lockstep._errors import CallError, RemoteError, RemoteTraceback, ValueRefused  # noqa: E402
from lockstep._program import Answer, Interrupted, _why_no_answer, error_text  # noqa: E402
from lockstep._project import find_root, find_source, inside, name_on_hosts  # noqa: E402
from lockstep._values import Trust, made_exception, read_value  # noqa: E402


class Mine(Exception):
    pass


class Colour(enum.Enum):
    RED = 1


class Calls:
    """Pickled as a call of `function`, as an attacker would write it."""
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


OWN = Trust(str(pathlib.Path(__file__).resolve().parent))
STRANGE = Trust("/nowhere")


def read(value, trust=STRANGE):
    return read_value(io.BytesIO(pickle.dumps(value, 5)), "safe", trust)


@pytest.mark.parametrize("value", [
    None, True, 1 << 100, 1.5, "text", b"bytes", bytearray(b"x"), [1, [2]], (1, (2,)), {"a": {1: 2}}, {1, 2},
    frozenset("ab"), 1j, range(3), slice(1, 2), collections.OrderedDict(a=1), pathlib.PurePosixPath("/a"),
    ValueError("x", 1), OSError(2, "no", "file")], ids=repr)
def test_values_are_taken(value):
    came = read(value)
    assert type(came) is type(value) and (came == value or came.args == value.args)


@pytest.mark.parametrize("call", [(os.system, "true"), (eval, "1"), (exec, ""), (getattr, bytes, "fromhex"),
                                  (open, "/x"), (__import__, "os"), (collections.namedtuple, "a", "b"),
                                  (pickle.loads, b"N.")],
                         ids=lambda call: call[0].__name__)
def test_calls_are_not_made(call):
    with pytest.raises(ValueRefused) as refused:
        read([1, Calls(*call)])
    assert "allow=[...]" in str(refused.value) or "asks for" in str(refused.value)


def test_own_classes_are_taken_and_others_only_when_they_are_named():
    assert type(read(Mine("x"), OWN)) is Mine and read(Colour.RED, OWN) is Colour.RED
    with pytest.raises(ValueRefused) as refused:
        read({"a": Mine("x")})
    assert "test_values.Mine" in str(refused.value)
    assert type(read(Mine("x"), Trust("/nowhere", allow=[Mine]))) is Mine
    assert type(read_value(io.BytesIO(pickle.dumps(Mine("x"))), "pickle", STRANGE)) is Mine


def test_nothing_is_imported_because_a_host_says_so(tmp_path, monkeypatch):
    (tmp_path / "never_run.py").write_text("class Thing: pass\nraise SystemExit('was run')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    data = b"\x80\x04\x8c\tnever_run\x8c\x05Thing\x93."  # the class itself
    with pytest.raises(ValueRefused):
        read_value(io.BytesIO(data), "safe", Trust(str(tmp_path)))
    nothing = pickle.dumps(((), None))
    error = made_exception("never_run", "Thing", "told", "trace", nothing, "safe", Trust(str(tmp_path)))
    assert type(error) is RemoteError and "never_run" not in sys.modules


def test_what_was_refused_can_be_looked_at():
    with pytest.raises(ValueRefused) as refused:
        read({"loss": 0.5, "odd": Mine("x")})
    assert refused.value.value["loss"] == 0.5 and "'x'" in repr(refused.value.value["odd"])


def test_exceptions_are_made_again_where_their_class_is_known():
    def made(module, name, part=pickle.dumps((("x",), {"extra": 1}))):
        return made_exception(module, name, "Name: x", "the trace", part, "safe", OWN)
    error = made("builtins", "ValueError")
    assert type(error) is ValueError and error.args == ("x",) and error.extra == 1
    assert isinstance(error.__cause__, RemoteTraceback) and "the trace" in str(error.__cause__)
    assert type(made("test_values", "Mine")) is Mine
    assert type(made("_pickle", "PicklingError")) is pickle.PicklingError  # imported here, though not ours
    for module, name, part in (("builtins", "SystemExit", None), ("builtins", "KeyboardInterrupt", None),
                               ("builtins", "ValueError", None), ("os", "system", None), ("antigravity", "X", None),
                               ("builtins", "ValueError", b"nonsense"), ("builtins", "UnicodeDecodeError", None)):
        error = made(module, name, *([] if part is None and name != "ValueError" else [part]))
        assert type(error) is RemoteError and error.type_name == f"{module}.{name}" and str(error) == "Name: x"
    assert "antigravity" not in sys.modules


def answer(data):
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return Answer(reading)


def frame(kind, content=b""):
    return kind + len(content).to_bytes(4, "little") + content


def test_the_parts_of_a_value_are_one_file():
    parts = answer(frame(b"v", b"ab") + frame(b"v") + frame(b"v", b"c\nd") + frame(b"k"))
    assert parts.begins() and parts.readline() == b"abc\n" and parts.read(9) == b"d" and parts.read(1) == b""
    assert parts.finish() == (b"k", b"")


def test_an_error_ends_a_value():
    parts = answer(frame(b"v", b"ab") + frame(b"r", b"why"))
    with pytest.raises(Interrupted):
        parts.read(3)
    assert parts.finish() == (b"r", b"why")
    assert answer(frame(b"v", b"ab") + frame(b"e", b"x")).finish() == (b"e", b"x")


def test_an_answer_that_is_cut_off_or_nonsense_is_told():
    for data in (b"", b"v\1", frame(b"v", b"ab"), frame(b"k", b"x")[:-1]):
        with pytest.raises(EOFError):
            answer(data).finish()
    too_much = b"v" + ((1 << 20) + 1).to_bytes(4, "little") + b"x" * 100
    for data in (frame(b"z", b"?"), b"v\xff\xff\xff\xff", b"e\xff\xff\xff\xff", too_much):
        with pytest.raises(CallError):
            answer(data).finish()


def test_why_there_is_no_answer():
    assert "SIGKILL" in _why_no_answer(137) and "SIGTERM" in _why_no_answer(-15)
    assert "code 170" in _why_no_answer(170) and "code 3" in _why_no_answer(3)  # 42 is a real-time signal


def test_the_error_line_of_the_binary_is_found():
    assert error_text("waiting\nlockstep sync: error: gpus-0: no; do this\n", "x") == "gpus-0: no; do this"
    assert error_text("", "ended with code 3") == "ended with code 3"


def test_the_version_and_python_m(monkeypatch):
    cmake = (pathlib.Path(__file__).resolve().parents[2] / "CMakeLists.txt").read_text()
    assert f"project(lockstep VERSION {lockstep.__version__} " in cmake.replace("\n", " ")
    run = [sys.executable, "-m", "lockstep", "-c", "import sys; print(sys.executable)"]
    package = os.path.dirname(os.path.dirname(lockstep.__file__))
    for binary, code, said in ((sys.executable, 0, sys.executable), ("/no/such", 1, "(got '/no/such')")):
        env = {**os.environ, "PYTHONPATH": package, "LOCKSTEP_BINARY": binary}
        ended = subprocess.run(run, env=env, capture_output=True, text=True, timeout=60)
        assert ended.returncode == code and said in ended.stdout + ended.stderr, ended
        assert len((ended.stdout + ended.stderr).splitlines()) == 1, ended


def test_the_project_of_a_folder(tmp_path):
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/a/b").mkdir(parents=True)
    assert find_root(tmp_path / "repo/a/b") == str(tmp_path / "repo/a/b")  # no repository: it has no HEAD
    (tmp_path / "repo/.git/HEAD").touch()
    assert find_root(tmp_path / "repo/a/b") == str(tmp_path / "repo")
    (tmp_path / "repo/a/.git").write_text("gitdir: elsewhere")
    assert find_root(tmp_path / "repo/a/b") == str(tmp_path / "repo/a")
    assert name_on_hosts("/x/.dotfiles") == "dotfiles" and name_on_hosts("/") == "root"
    assert inside("/a/b", "/a") and inside("/a", "/a") and inside("/a", "/") and not inside("/ab", "/a")


def test_where_a_function_comes_from(tmp_path, monkeypatch):
    package = tmp_path / "src/pkg/sub"
    package.mkdir(parents=True)
    (package / "mod.py").write_text("def f(): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    monkeypatch.chdir("/")
    import importlib
    importlib.import_module("pkg.sub.mod")
    try:
        assert find_source("pkg.sub.mod") == (str(tmp_path / "src"), "pkg.sub.mod", None)
        monkeypatch.chdir(tmp_path)
        assert find_source("pkg.sub.mod") == (str(tmp_path), "pkg.sub.mod", None)
    finally:
        for name in ("pkg", "pkg.sub", "pkg.sub.mod"):
            sys.modules.pop(name, None)
    assert find_source("json") == (None, "json", None) and find_source("sys") == (None, "sys", None)
    assert find_source("no_such_module") is None
