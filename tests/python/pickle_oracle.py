"""Reports every call, import, file and attribute that reading a pickle uses, and writes random pickles."""
import os
import pathlib
import random
import struct
import sys

from pickle_words import MARK, PROTO, STOP, name, text

PACKAGE = str(pathlib.Path(__file__).resolve().parents[2] / "python/lockstep")
# Python's own code that makes plain values, and what it uses.
LIBRARY = {"fractions.py", "ipaddress.py", "pathlib.py", "_local.py", "enum.py", "uuid.py", "re.py", "types.py",
           "functools.py", "numbers.py", "abc.py", "posixpath.py", "_collections_abc.py", "datetime.py", "operator.py",
           "contextlib.py", "pickle_oracle.py", "dataclasses.py", "genericpath.py"}
LIBRARY_PARTS = ("/collections/", "/re/", "/pathlib/", "<frozen posixpath>", "<frozen genericpath>", "<frozen abc>")
_active = []


def _audit(event, args):
    own = event in ("sys.setprofile", "builtins.id") or (event == "object.__getattr__" and args[1] == "f_code")
    if _active and not own:
        _active[-1].found.append(f"event {event} {args!r:.200}")


sys.addaudithook(_audit)


class Oracle:
    """In its block every event of sys.audit is a find, and so is each call into a file that is not listed above."""

    def __init__(self, victim):
        self.found = []
        self._victim = victim

    def _profile(self, frame, event, arg):
        if event == "call":
            path = frame.f_code.co_filename
            library = os.path.basename(path) in LIBRARY or any(part in path for part in LIBRARY_PARTS)
            if not path.startswith(PACKAGE) and not library:
                self.found.append(f"call of {frame.f_code.co_name} in {path}")

    def __enter__(self):
        self._victim["RAN"].clear()
        self._victim["watched"] = True
        _active.append(self)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)
        _active.pop()
        self._victim["watched"] = False
        self.found += self._victim["RAN"]


class Fuzz:
    """Programs of pickle operations: at random but mostly with what they need on the stack, or spoiled."""

    def __init__(self, seed, own, never, plain):
        self._random = random.Random(seed)
        self._names = [*own, *own, *plain, *plain, *never]
        self._last = b""

    def program(self):
        if self._last and self._random.random() < 0.3:
            return self._spoiled(self._last)
        self._last = PROTO + b"".join(self._value(0) for _ in range(self._random.randrange(1, 4))) + STOP
        return self._last

    def _spoiled(self, data):
        data = bytearray(data)
        for _ in range(self._random.randrange(1, 4)):
            at = self._random.randrange(len(data))
            kind = self._random.randrange(4)
            if kind == 0:
                data[at] = self._random.randrange(256)
            elif kind == 1:
                del data[at:at + self._random.randrange(1, 9)]
            elif kind == 2:
                data[at:at] = data[self._random.randrange(len(data)):][:20]
            else:
                data[at:at] = self._random.choice([b"R", b"b", b"\x81", b"e", b"u", b"\x94", b"h\0", b"0", b"2", b"Q"])
            if not data:
                data += b"."
        return bytes(data)

    def _scalar(self):
        return self._random.choice([
            b"N", b"\x88", b"\x89", b"K\0", b"K\1", b"J\xff\xff\xff\xff", b"M\1\2", b"\x8a\x09" + b"\xff" * 8 + b"\0",
            b"G" + struct.pack(">d", self._random.random()), text("a"), text(""), text("1/3"), text("10.0.0.1"),
            text("::1"), text("RED"), text("x"), text("size"), text("__class__"), text("__dict__"), text("_value_"),
            b"C\0", b"C\1a", b"C\x0a\x07\xea\1\2\3\4\5\0\0\0", b"C\4\x07\xea\1\2",
            b")", b"]", b"}", b"\x8f", b"h\0", b"h\1", b"h\2"])

    def _value(self, depth):
        value, choice = self._some, self._random.random()
        if depth > 4 or choice < 0.2:
            made = self._scalar()
        elif choice < 0.3:
            made = name(*self._random.choice(self._names))
        elif choice < 0.4:
            made = self._random.choice([b"](" + value(depth) + b"e", b"](" + value(depth) + b"a",
                                        b"\x8f(" + value(depth) + b"\x90", b"(" + value(depth) + b"\x91"])
        elif choice < 0.5:
            pairs = b"".join(self._scalar() + self._value(depth + 1) for _ in range(self._random.randrange(3)))
            made = b"}(" + pairs + b"u"
        elif choice < 0.55:
            made = self._array(depth)
        else:
            made = self._object(depth)
        return made + (b"\x94" if self._random.random() < 0.3 else b"")

    def _some(self, depth):
        return b"".join(self._value(depth + 1) for _ in range(self._random.randrange(4)))

    def _object(self, depth):
        target = name(*self._random.choice(self._names))
        if self._random.random() < 0.1:
            target, args = name("builtins", "getattr"), target + self._scalar()
        else:
            args = self._some(depth)
        made = target + MARK + args + b"t" + self._random.choice([b"R", b"\x81", b"\x81", b"}\x92"])
        for _ in range(self._random.randrange(3)):
            made += self._random.choice([
                lambda: b"}(" + text("x") + self._value(depth + 1) + b"ub", lambda: self._value(depth + 1) + b"b",
                lambda: b"N}(" + text("size") + self._value(depth + 1) + b"u\x86b",
                lambda: self._value(depth + 1) + b"a",
                lambda: MARK + self._some(depth) + b"e", lambda: self._scalar() + self._value(depth + 1) + b"s",
                lambda: MARK + self._scalar() + self._value(depth + 1) + b"u",
                lambda: MARK + self._some(depth) + b"\x90"])()
        return made

    def _array(self, depth):
        kinds = [text(kind) for kind in ("array", "scalar", "tensor", "parameter", "x")]
        types = [text(kind) for kind in ("<f8", "<i4", "|b1", "|O", "O,i4", "<U1", "<M8[ns]", "float32", "_inductor",
                                         "load", "__dict__", "(2,3)f4", "<f8\0")]
        shapes = [b")", b"K\1\x85", b"K\2K\2\x86", b"J\xff\xff\xff\xff\x85", self._value(depth + 1)]
        data = [b"C\0", b"C\x08abcdefgh", b"C\x04abcd", self._value(depth + 1)]
        return (MARK + self._random.choice(kinds) + self._random.choice(types) + self._random.choice(shapes) +
                self._random.choice(data) + self._random.choice([b"\x88", b"", b"N"]) + b"tQ")
