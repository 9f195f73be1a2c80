"""Pickles written operation by operation, as an attacker would, and a project whose every hook is a trap."""
import importlib
import struct
import sys

PROTO, STOP, MARK = b"\x80\x04", b".", b"("


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value):
    return b"J" + struct.pack("<i", value)


def name(module, path):
    return text(module) + text(path) + b"\x93"


def tuple_of(*parts):
    return MARK + b"".join(parts) + b"t"


def list_of(*parts):
    return b"](" + b"".join(parts) + b"e"


def dict_of(pairs):
    return b"}(" + b"".join(text(key) + value for key, value in pairs.items()) + b"u"


def call(target, *args):
    return target + tuple_of(*args) + b"R"


def new(target, *args):
    return target + tuple_of(*args) + b"\x81"


def whole(*parts):
    return PROTO + b"".join(parts) + STOP


VICTIM = '''
import abc, collections, dataclasses, enum, functools, os, subprocess, sys, typing
from subprocess import Popen, run
import subprocess as renamed

RAN = []

def trap(what):
    RAN.append(what)

def function(*args):
    trap("function")

class Point:
    def __init__(self, *args):
        trap("Point.__init__")
    def __setattr__(self, name, value):
        trap("Point.__setattr__")
    def __getattr__(self, name):
        trap("Point.__getattr__")
        raise AttributeError(name)
    def __getattribute__(self, name):
        trap("Point.__getattribute__")
        return object.__getattribute__(self, name)
    @property
    def size(self):
        trap("Point.size")
    @size.setter
    def size(self, value):
        trap("Point.size=")
    @property
    def __class__(self):
        trap("Point.__class__")
        return Point
    def append(self, item):
        trap("Point.append")
    extend = add = update = __setitem__ = __call__ = append
    kind = Popen
    module = os
    class Inner:
        x = 1
        def __init__(self, *args):
            trap("Inner.__init__")

class New:
    def __new__(cls, *args):
        trap("New.__new__")
        return object.__new__(cls)

class State:
    def __setstate__(self, state):
        trap("State.__setstate__")

class Ends:
    def __del__(self):
        trap("Ends.__del__")

class Meta(type):
    def __call__(cls, *args):
        trap("Meta.__call__")
    def __getattribute__(cls, name):
        trap("Meta.__getattribute__")
        return type.__getattribute__(cls, name)
    def __instancecheck__(cls, other):
        trap("Meta.__instancecheck__")
        return True
    def __eq__(cls, other):
        trap("Meta.__eq__")
        return cls is other
    def __hash__(cls):
        trap("Meta.__hash__")
        return 1

class OfMeta(metaclass=Meta):
    pass

class Items(list):
    def append(self, item):
        trap("Items.append")
    extend = __iadd__ = append
    def __init__(self, *args):
        trap("Items.__init__")

class Pairs(dict):
    def __setitem__(self, key, value):
        trap("Pairs.__setitem__")
    def __init__(self, *args):
        trap("Pairs.__init__")
    def update(self, *args):
        trap("Pairs.update")

class Members(set):
    def add(self, item):
        trap("Members.add")
    def __init__(self, *args):
        trap("Members.__init__")
    update = add

class Text(str):
    def __new__(cls, *args):
        trap("Text.__new__")

class Number(int):
    def __new__(cls, *args):
        trap("Number.__new__")
    def __index__(self):
        trap("Number.__index__")
        return 1

class Pair(typing.NamedTuple):
    a: object
    b: object = 1

class Twice(collections.namedtuple("Twice", "a b")):
    __slots__ = ()
    def __new__(cls, *args):
        trap("Twice.__new__")
    def __iter__(self):
        trap("Twice.__iter__")
        return iter(())

class Five(tuple):
    def __iter__(self):
        trap("Five.__iter__")
        return iter((1, 2, 3, 4, 5))
    def __getitem__(self, key):
        trap("Five.__getitem__")
        return 1
    def __len__(self):
        trap("Five.__len__")
        return 5

class Said(str):
    def __str__(self):
        trap("Said.__str__")
        return "said"
    def __eq__(self, other):
        trap("Said.__eq__")
        return True
    __hash__ = str.__hash__

class Slots:
    __slots__ = ("a", "b")
    def __init__(self):
        trap("Slots.__init__")
    @property
    def c(self):
        trap("Slots.c")
    @c.setter
    def c(self, value):
        trap("Slots.c=")

class Colour(enum.Enum):
    RED = 1
    TEXT = "a"
    LIST = [1]
    @classmethod
    def _missing_(cls, value):
        trap("Colour._missing_")

class Right(enum.Flag):
    R = 1
    W = 2

class Odd(enum.IntFlag):
    A = 1
    B = 2
    @classmethod
    def _missing_(cls, value):
        trap("Odd._missing_")

class Failure(Exception):
    def __init__(self, *args):
        trap("Failure.__init__")
    def __new__(cls, *args):
        trap("Failure.__new__")
        return Exception.__new__(cls)
    def __setattr__(self, name, value):
        trap("Failure.__setattr__")
    def __setstate__(self, state):
        trap("Failure.__setstate__")

class Plain(Exception):
    def __init__(self, *args):
        trap("Plain.__init__")

class NoFile(OSError):
    def __init__(self, *args):
        trap("NoFile.__init__")

@dataclasses.dataclass
class Data:
    x: object = None
    def __post_init__(self):
        trap("Data.__post_init__")

class Shape(abc.ABC):
    def __init__(self):
        trap("Shape.__init__")

def __getattr__(name):
    trap("module.__getattr__")
    return Popen

class Trap(type(sys)):
    def __getattribute__(self, name):
        if RAN is not None and watched:
            trap("module.__getattribute__ " + name)
        return type(sys).__getattribute__(self, name)

watched = False
sys.modules[__name__].__class__ = Trap
'''

CLASSES = ["Point", "Point.Inner", "New", "State", "Ends", "OfMeta", "Items", "Pairs", "Members", "Text", "Number",
           "Pair", "Twice", "Five", "Said", "Slots", "Colour", "Right", "Odd", "Failure", "Plain", "NoFile",
           "Data", "Shape"]
# What no host may reach: by a module, by a class that holds it, by another name, or because nobody has it.
NEVER = [("victim", path) for path in (
    "Popen", "run", "renamed", "renamed.Popen", "subprocess.Popen", "os.system", "function", "Point.kind",
    "Point.append", "Point.module.system", "Point.size", "Meta.mro", "no_such", "Point.no_such", "functools.partial",
    "RAN.append", "Point.__class__", "Point.__init__", "Point.__init__.__globals__", "Point.mro", "Colour.RED",
    "__builtins__", "__loader__", "__dict__", "__class__", "trap", "sys.modules", "", ".", "Point.", ".Point",
    "typing.NamedTuple")]
NEVER += [("os", "system"), ("posix", "system"), ("subprocess", "Popen"), ("builtins", "eval"), ("builtins", "exec"),
          ("builtins", "type"), ("builtins", "open"), ("builtins", "__import__"), ("builtins", "setattr"),
          ("builtins", "print"), ("builtins", "map"), ("builtins", "super"), ("builtins", "property"),
          ("builtins", "memoryview"), ("builtins", "enumerate"), ("builtins", "list.append"), ("builtins", "no_such"),
          ("operator", "attrgetter"), ("_operator", "attrgetter"), ("functools", "partial"),
          ("copyreg", "_reconstructor"), ("copyreg", "__newobj__"), ("importlib", "import_module"),
          ("collections", "namedtuple"), ("enum", "Enum"), ("_codecs", "encode"), ("codecs", "open"),
          ("pickle", "loads"), ("_pickle", "loads"), ("types", "FunctionType"), ("types", "CodeType"),
          ("types", "ModuleType"), ("weakref", "finalize"), ("threading", "Thread"), ("lockstep._program", "run"),
          ("lockstep._unpickle", "Reader"), ("lockstep", "function"), ("lockstep._trust", "Trust"), ("sys", "exit"),
          ("never_imported", "Thing"), ("antigravity", "x"), ("", ""), ("zoneinfo", "ZoneInfo"), ("torch", "load"),
          ("numpy", "frombuffer"), ("numpy", "ndarray"), ("numpy", "load"), ("tempfile", "_TemporaryFileCloser"),
          ("logging", "FileHandler"), ("ctypes", "CDLL")]
PLAIN = [("builtins", kind) for kind in ("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int",
                                         "list", "object", "range", "set", "slice", "str", "tuple", "ValueError",
                                         "OSError", "ImportError", "UnicodeDecodeError", "StopIteration", "SyntaxError",
                                         "KeyboardInterrupt", "getattr", "ExceptionGroup")]
PLAIN += [("collections", kind) for kind in ("Counter", "OrderedDict", "deque", "defaultdict")]
PLAIN += [("datetime", kind) for kind in ("date", "datetime", "time", "timedelta", "timezone")]
PLAIN += [("decimal", "Decimal"), ("fractions", "Fraction"), ("ipaddress", "IPv4Address"), ("ipaddress", "IPv6Address"),
          ("pathlib", "PosixPath"), ("pathlib._local", "PurePosixPath"), ("types", "SimpleNamespace"), ("uuid", "UUID"),
          ("uuid", "SafeUUID")]


def import_victim(folder):
    """The module `victim` of a project in this folder, as a caller's program has imported it."""
    (folder / "victim.py").write_text(VICTIM)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("victim")
    finally:
        sys.path.remove(str(folder))
