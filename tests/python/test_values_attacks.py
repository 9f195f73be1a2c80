"""A host that was taken over answers: none of its code runs here, and nothing in this program is changed or looked
up."""
import io
import os
import pathlib
import pickle
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import lockstep  # noqa: E402
import lockstep._classes  # noqa: E402  before the oracle looks
from lockstep._errors import CallError, RemoteError, ValueRefused  # noqa: E402
from lockstep._values import Trust, made_exception, read_exception, read_value  # noqa: E402
from pickle_words import (CLASSES, NEVER, PLAIN, PROTO, call, dict_of, import_victim, list_of, name, new,  # noqa: E402
                          number, text, tuple_of, whole)
from pickle_oracle import Fuzz, Oracle  # noqa: E402

ROUNDS = int(os.environ.get("LOCKSTEP_PICKLE_ROUNDS", "800"))
SEED = int(os.environ.get("LOCKSTEP_PICKLE_SEED", "1"))


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    made = import_victim(folder)
    yield vars(made)
    del sys.modules["victim"]


@pytest.fixture
def read(victim):
    """read(BYTES): what comes of them; the oracle says what ran meanwhile."""
    trust = Trust(os.path.dirname(victim["__file__"]))
    oracle = Oracle(victim)

    def run(data):
        with oracle:
            try:
                return read_value(io.BytesIO(data), "safe", trust)
            except (CallError, EOFError) as error:
                return error
    yield run
    assert not oracle.found, oracle.found


def own(path):
    return name("victim", path)


def state(**values):
    return dict_of(values) + b"b"


@pytest.mark.parametrize("module, path", NEVER, ids=[".".join(pair)[:40] for pair in NEVER])
def test_what_is_no_value_is_neither_taken_nor_called(read, module, path):
    for target in (name(module, path), call(name(module, path), text("touch"), list_of(text("/tmp/pwned"))),
                   new(name(module, path)), call(name(module, path)) + state(x=number(1)),
                   call(name("builtins", "getattr"), name(module, path), text("x"))):
        assert isinstance(read(whole(target)), ValueRefused)


def test_what_the_caller_has_imported_is_not_taken(read):
    """`__main__` is always the caller's: whatever its script imports hangs on it."""
    main = sys.modules["__main__"]
    main.lockstep, main.Popen, main.function = lockstep, __import__("subprocess").Popen, os.system
    try:
        for path in ("lockstep._program.subprocess.Popen", "Popen", "function", "lockstep.cluster"):
            came = read(whole(call(name("__main__", path), list_of(text("touch"), text("/tmp/pwned")))))
            assert isinstance(came, ValueRefused) and f"__main__.{path}" in str(came)
    finally:
        del main.lockstep, main.Popen, main.function


@pytest.mark.parametrize("path", CLASSES)
def test_no_method_of_a_class_of_the_project_runs(read, path):
    one = own(path)
    for made in (call(one), call(one, number(1)), new(one), new(one, number(1)), new(one, text("a")),
                 new(one, number(1), number(2)), call(one, list_of(number(1))), new(one, list_of(number(1)))):
        for after in (b"", state(x=number(1)), state(size=number(1)), b"N" + dict_of({"size": number(1)}) + b"\x86b",
                      b"N" + dict_of({"c": number(1), "a": number(1)}) + b"\x86b", number(1) + b"a",
                      b"(" + number(1) + number(2) + b"e", number(1) + number(2) + b"s",
                      b"(" + number(1) + number(2) + b"u", b"(" + number(1) + b"\x90", list_of(number(1)) + b"b"):
            read(whole(made, after))
            read(whole(b"}", made, after, number(1), b"s"))  # as a key


def test_what_belongs_to_this_program_is_not_changed(read, victim):
    before = {path: dict(vars(victim[path])) for path in ("Colour", "Data", "Slots")}
    red, changes = victim["Colour"].RED, dict_of({"x": number(5), "_value_": number(5), "__init__": number(5)})
    held = dict(vars(red))
    for target in (own("Data"), own("Colour"), own("Slots"), name("builtins", "getattr"),
                   name("types", "SimpleNamespace"), call(own("Colour"), number(1)),
                   call(name("builtins", "getattr"), own("Colour"), text("RED")),
                   name("uuid", "UUID"), call(name("uuid", "SafeUUID"), number(0))):
        for told in (changes + b"b", b"N" + changes + b"\x86b", changes + changes + b"\x86b",
                     list_of(number(1)) + b"b"):
            assert isinstance(read(whole(target, told)), CallError)
    assert before == {path: dict(vars(victim[path])) for path in before} and dict(vars(red)) == held


def test_an_object_is_only_changed_while_it_is_made(read):
    point = new(own("Data")) + b"\x94" + state(x=number(1))
    assert isinstance(read(whole(point, b"h\0", state(x=number(2)))), CallError)


def test_an_exception_is_made_of_names_texts_and_values(victim):
    trust = Trust(os.path.dirname(victim["__file__"]))
    part = pickle.dumps((("no", 1), {"size": 2}))
    with Oracle(victim) as oracle:
        error = made_exception("victim", "Plain", "told", "trace", part, "safe", trust)
        made = []
        for module, path in (("victim", "Failure"), ("victim", "Popen"), ("victim", "subprocess.CalledProcessError"),
                             ("os", "error"), ("pickle", "PicklingError"), ("victim", "no_such"),
                             ("builtins", "SystemExit")):
            made.append(made_exception(module, path, "told", "trace", part, "safe", trust))
    assert not oracle.found
    assert type(error) is victim["Plain"] and error.args == ("no", 1) and error.size == 2
    assert {type(each) for each in made} == {RemoteError}
    error = made_exception("victim", "NoFile", "told", "trace", pickle.dumps(((2, "no", "/x"), None)), "safe", trust)
    assert type(error) is victim["NoFile"] and error.filename == "/x" and error.errno == 2


def test_an_exception_that_is_made_of_objects_runs_none_of_their_methods(victim, monkeypatch):
    trust = Trust(os.path.dirname(victim["__file__"]))
    for path in ("Five", "Said"):  # classes of the script itself are taken with every value
        own_class = victim[path]
        monkeypatch.setattr(own_class, "__module__", "__main__")
        monkeypatch.setattr(sys.modules["__main__"], path, own_class, raising=False)
    five = new(name("__main__", "Five"), tuple_of(*map(number, range(5))))
    said = new(name("__main__", "Said"), text("x"))
    texts = [text(each) for each in ("victim", "Plain", "told", "trace")]
    parts = [pickle.dumps(part) for part in ((("x",), None), ([], None), None, (("x",), None, 1))]
    parts += [whole(five), whole(tuple_of(five, b"N")), whole(tuple_of(said, b"N")), whole(tuple_of(b")", five))]
    answers = [whole(tuple_of(*texts, b"C" + bytes([len(part)]) + part)) for part in parts]
    answers += [whole(five), whole(said), whole(b"N"), whole(tuple_of(*texts)), whole(tuple_of(*texts, five)),
                whole(tuple_of(*texts, said)), whole(tuple_of(*texts[:3], said, b"N")),
                whole(tuple_of(said, *texts[1:], b"N"))]
    with Oracle(victim) as oracle:
        made = []
        for data in answers:
            try:
                made.append(read_exception(data, "safe", trust))
            except CallError as error:
                made.append(error)
    assert not oracle.found, oracle.found
    assert [type(each) for each in made[:2]] == [victim["Plain"], RemoteError], made
    assert {type(each) for each in made} == {victim["Plain"], RemoteError, CallError}, made


def test_an_array_that_is_made_of_objects_runs_none_of_their_methods(read):
    kind, size, data = text("array"), b"K\1\x85", b"C\x08abcdefgh"
    five, said = new(own("Five"), tuple_of(*map(number, range(5)))), new(own("Said"), text("array"))
    for pid in (five, said, number(1), tuple_of(said, text("<f8"), size, data), tuple_of(kind, said, size, data),
                tuple_of(kind, text("<f8"), five, data), tuple_of(kind, text("<f8"), size, said),
                tuple_of(text("parameter"), text("float32"), size, data, five, five)):
        assert isinstance(read(whole(pid, b"Q")), CallError)


# A chain that CPython would free by recursion, beyond the end of the C stack.
LONG = 150000
MAKE = b"h\0)R"  # of the class that is first in the memo
DEQUE, DEFAULTDICT, SLICE = (name(*words) + b"\x94" for words in (
    ("collections", "deque"), ("collections", "defaultdict"), ("builtins", "slice")))
CHAINS = {
    "slices": SLICE + b"h\0(" * LONG + b"N" + b"tR" * LONG,
    "deques": DEQUE + MAKE * LONG + b"a" * (LONG - 1),
    "defaultdicts": DEFAULTDICT + (MAKE + b"N") * LONG + MAKE + b"s" * LONG,
    "deques, the outermost first": DEQUE + MAKE + b"\x94" + b"".join(
        MAKE + b"\x94aj" + struct.pack("<I", number) for number in range(2, LONG)) + b"j" + struct.pack("<I", 1),
}


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("ends", [b".", b"!", b""], ids=["whole", "nonsense", "cut"])
def test_a_long_chain_of_containers_does_not_end_this_process(victim, kind, ends):
    program = CHAIN.format(folders=[str(pathlib.Path(lockstep.__file__).parents[1])])
    ended = subprocess.run([sys.executable, "-c", program], input=PROTO + CHAINS[kind] + ends, timeout=60)
    assert ended.returncode == 0


CHAIN = """
import sys
sys.path += {folders}
from lockstep._values import CallError, Trust, read_value
try:
    read_value(sys.stdin.buffer, "safe", Trust(None))
except (CallError, EOFError):
    sys.exit(0)
sys.exit("it was taken")
"""


def test_names_that_are_refused_are_told_once_and_without_their_controls(read):
    odd = whole(b"](", *[call(name("sub\x1b[2Jprocess", "Popen" + "n" * 999))] * 3000, b"e")
    came = read(odd)
    assert isinstance(came, ValueRefused) and "sub?[2Jprocess.Popen" in str(came) and len(str(came)) < 600
    assert len({type(each) for each in came.value}) == 1 and len(came.value) == 3000
    many = whole(b"](", *[name("subprocess", f"Popen{number}") for number in range(2000)], b"e")
    assert isinstance(read(many), ValueRefused)


def deep(levels):
    return b")" + b"\x85" * levels


def bomb(levels):
    """Each tuple holds the one before twice."""
    return b")" + b"".join(b"\x94h" + bytes([level]) + b"\x86" for level in range(levels))


@pytest.mark.parametrize("data", [
    whole(b"}", deep(100000), b"Ns"),  # hash() may end this process here, and takes for ever in the next ones
    whole(b"}", bomb(60), b"Ns"), whole(b"\x8f(", bomb(60), b"\x90"), whole(b"(", bomb(60), b"\x91"),
    PROTO + b"\x8e" + b"\xff" * 8, PROTO + b"\x96" + b"\xff" * 7 + b"\x3f", PROTO + b"\x8d" + b"\xff" * 8,
    PROTO + b"\x8b\xff\xff\xff\x7f", PROTO + b"\x95" + b"\xff" * 8, PROTO + b"\x95\xff\xff\xff\xff\0\0\0\0",
    whole(call(name("builtins", "bytes"), b"\x8a\x08" + b"\x7f" * 8)),
    whole(call(name("builtins", "bytearray"), b"\x8a\x08" + b"\x7f" * 8)),
    whole(call(name("collections", "defaultdict"), name("victim", "Point"))),
    whole(call(name("fractions", "Fraction"), text("1e999999999"))),
    whole(call(name("fractions", "Fraction"), b"\x8b" + struct.pack("<i", 4000) + b"\x55" * 4000, number(3))),
    b"", PROTO, PROTO + b".", b"\x80\x03N.",
    b"cos\nsystem\n.", PROTO + b"(S'true'\nios\nsystem\n.", PROTO + b"\x82\x01.", PROTO + b"\x97."],
    ids=lambda data: repr(data[:12]))
def test_nonsense_and_excess_end_with_an_error(read, data):
    assert isinstance(read(data), (CallError, EOFError))


def test_the_project_own_values_come_back(victim, tmp_path):
    """What the rules are for: the same classes, sent by an honest host."""
    sys.path.insert(0, str(tmp_path))
    (tmp_path / "honest.py").write_text(HONEST)
    try:
        honest = __import__("honest")
    finally:
        sys.path.remove(str(tmp_path))
    trust = Trust(str(tmp_path))
    for value in honest.values():
        data = pickle.dumps(value, 5)
        came = read_value(io.BytesIO(data), "safe", trust)
        assert type(came) is type(value) and pickle.dumps(came, 5) == data, value
    del sys.modules["honest"]


HONEST = '''
import abc, collections, dataclasses, datetime, decimal, enum, fractions, ipaddress, pathlib, types, typing, uuid

class Colour(enum.Enum):
    RED = "r"

class Right(enum.Flag):
    R = 1
    W = 2

@dataclasses.dataclass
class Data:
    x: object
    y: object = None

@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object

class Outer:
    class Count(enum.IntEnum):
        ONE = 1
    class Inner:
        def __init__(self, x):
            self.x = x

class Slots:
    __slots__ = ("a", "__b", "__dict__")
    def __init__(self):
        self.a, self.__b, self.c = 1, 2, 3

class Pair(typing.NamedTuple):
    a: int
    b: str = "b"

class Shape(abc.ABC):
    def __init__(self, n): self.n = n

class Box(typing.Generic[typing.TypeVar("T")]):
    def __init__(self, n): self.n = n

class Items(list): pass
class Pairs(dict):
    def __init__(self, **more): super().__init__(**more); self.name = "x"
class Members(set): pass
class Text(str): pass
class Number(int): pass
class Several(tuple): pass

class Mine(Exception):
    def __init__(self, code, more):
        super().__init__(f"code {code}")
        self.code, self.more = code, more

def values():
    loop = Data(1)
    loop.y = [loop, (loop,)]
    shared = [1]
    yield from [Colour.RED, Outer.Count.ONE, Data(1, Data(Pair(1))), {Frozen((1, 2)): 1}, Outer.Inner([1]), Slots(),
                Pair(3), Shape(2), Box(1), Items([1, 2]), Pairs(a=1), Members({1}), Text("x"), Number(5),
                Several((1, 2)), loop,
                [shared, shared], [Data, Colour, list], {"big": [1.5] * 3000, "text": "\\ud800"}, b"x" * 70000,
                2 ** 3000, -5, 300, 70000, -2 ** 40, bytearray(b"z" * 70000), 1j, range(1, 9, 2), slice(1, None),
                collections.Counter("aab"), collections.OrderedDict(b=1, a=2), collections.deque([1, 2], 5),
                collections.deque([1]), collections.defaultdict(list, a=[1]), datetime.date(2026, 1, 2),
                datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), datetime.time(1, 2, fold=1),
                datetime.timedelta(1, 2, 3), datetime.timezone(datetime.timedelta(hours=1), "X"),
                decimal.Decimal("1.10"), decimal.Decimal("NaN"), fractions.Fraction(1, 3),
                ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("::1"), pathlib.PosixPath("/a/b"),
                pathlib.PurePosixPath("a"), types.SimpleNamespace(a=1), uuid.UUID(int=5), uuid.SafeUUID.safe, object,
                Right.R, frozenset({1, 2}), {1, (2, 3)}, KeyError("k"), [ValueError("x", 1)]]
'''


class Torch(type(sys)):
    """In torch's place, whose own looks at a name may import a module."""
    float32 = frombuffer = empty = int

    def __getattr__(self, path):
        raise AssertionError(f"torch.{path} is looked up")


def test_no_pickle_runs_anything(victim, monkeypatch):
    """Random operations and spoiled pickles; LOCKSTEP_PICKLE_ROUNDS=1000000 LOCKSTEP_PICKLE_SEED=7 for a long one."""
    trust = Trust(os.path.dirname(victim["__file__"]))
    fuzz, oracle, taken = Fuzz(SEED, [("victim", path) for path in CLASSES], NEVER, PLAIN), Oracle(victim), 0
    monkeypatch.setitem(sys.modules, "torch", Torch("torch"))
    pytest.importorskip("numpy")
    for turn in range(ROUNDS):
        data = fuzz.program()
        with oracle:
            try:
                value = read_value(io.BytesIO(data), "safe", trust)
                taken += 1
            except (CallError, EOFError) as error:
                value = error
            if turn % 4 == 0:  # the same as an exception's arguments, and as what tells of one
                value = made_exception("victim", "Plain", "told", "trace", data, "safe", trust)
                try:
                    value = read_exception(data, "safe", trust)
                except (CallError, EOFError) as error:
                    value = error
        assert not oracle.found, (SEED, turn, data, oracle.found)
        del value
    assert taken > ROUNDS / 50, f"only {taken} of {ROUNDS} were values at all"
    if ROUNDS > 10000:
        print(f"{ROUNDS} pickles, {taken} of them values")
