"""Reads a pickle of protocol 4 or 5 with a closed set of operations that call nothing.

Python's own reader calls whatever a pickle names, and looks up methods on the results. This reader makes lists, dicts,
sets, tuples, texts, bytes and numbers itself. A `Maker` makes all other objects; `find` returns one for a name.
"""
import io
import struct
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from lockstep._maker import CHAINED, Maker, Malformed, NotTaken, StandInMaker, check_key

_REFUSED_MOST = 1000  # each refused name costs a class of its own
_FRAME_MOST = 1 << 22  # Python's pickler ends a frame after 64 KiB
_PART = 1 << 20
_CHAIN_MOST = 20
_FLOAT, _INT = struct.Struct(">d"), struct.Struct("<i")
_GETATTR = StandInMaker("builtins.getattr")  # Python 3.11 pickles enum members with getattr; allowed for nothing else


class Reader:
    """file: has read(size). find(module, name): returns a maker, or None to refuse; must not import or call anything.
    persistent: makes arrays and tensors. After load(), `refused` has the names of classes with stand-ins."""

    def __init__(self, file: Any, find: Callable[[str, str], Optional[Maker]], persistent: Callable[[Any], Any]
                 ) -> None:
        self._file, self._find, self._persistent = file, find, persistent
        self.refused: List[str] = []
        self._stand_ins: Dict[str, Maker] = {}
        self._frame, self._at = b"", 0
        self._stack: List[Any] = []
        self._marks: List[List[Any]] = []
        self._memo: List[Any] = []
        self._makers: Dict[int, Maker] = {}  # by the id of a class on the stack
        # Objects that may still get a state or items. Never enum members or classes of this program.
        self._made: Dict[int, Tuple[Any, Maker]] = {}

    def load(self) -> Any:
        try:
            value = self._load()
            self._check_chains()
            return value
        except BaseException as error:
            for made in self._chained():
                made.clear()
            if isinstance(error, (LookupError, UnicodeError, struct.error, TypeError, OverflowError, MemoryError)):
                raise Malformed(f"{type(error).__name__}: {error}") from error
            raise

    def _load(self) -> Any:
        operations = {code: getattr(self, name) for code, name in _OPERATIONS.items()}
        while True:
            self._commonest()
            code = self._take(1)[0]
            if code == _STOP:
                return self._stack.pop()
            operations[code]()

    def _chained(self) -> List[Any]:
        """Returns the containers that can form chains. CPython frees a chain of a million by overflowing the stack."""
        return [made for made, _ in self._made.values() if type(made) in CHAINED]

    def _check_chains(self) -> None:
        """Drops the innermost containers, round by round. The rest after many rounds is a long chain or a ring."""
        left = {id(made): made for made in self._chained()}
        for _ in range(_CHAIN_MOST):
            left = {key: made for key, made in left.items()
                    if any(id(item) in left for item in (made.values() if isinstance(made, dict) else made))}
            if not left:
                return
        raise Malformed("containers are nested too deep")

    def _commonest(self) -> None:
        """Fast path for numbers, short texts and MEMOIZE inside a frame: values often hold millions of them."""
        frame, at, end = self._frame, self._at, len(self._frame) - 9
        stack, memo = self._stack, self._memo
        while at < end:
            code = frame[at]
            if code == 0x94:
                memo.append(stack[-1])
                at += 1
            elif code == 0x8c:
                stop = at + 2 + frame[at + 1]
                if stop > len(frame):
                    break
                stack.append(str(frame[at + 2:stop], "utf-8", "surrogatepass"))
                at = stop
            elif code == 0x47:  # G
                stack.append(_FLOAT.unpack_from(frame, at + 1)[0])
                at += 9
            elif code == 0x4b:  # K
                stack.append(frame[at + 1])
                at += 2
            elif code == 0x4d:  # M
                stack.append(frame[at + 1] | frame[at + 2] << 8)
                at += 3
            elif code == 0x4a:  # J
                stack.append(_INT.unpack_from(frame, at + 1)[0])
                at += 5
            else:
                break
        self._at = at

    def _take(self, size: int) -> bytes:
        if self._at < len(self._frame):
            start, self._at = self._at, self._at + size
            if self._at > len(self._frame):
                raise Malformed("a frame ends too early")
            return self._frame[start:self._at]
        if size <= _PART:
            data: bytes = self._file.read(size)
            if len(data) < size:
                raise EOFError
            return data
        return self._long(size)

    def _long(self, size: int) -> bytes:
        """Takes memory only for bytes that have come, not for an announced size. getvalue() makes no copy."""
        whole = io.BytesIO()
        while size > 0:
            data = self._file.read(min(size, _PART))
            if not data:
                raise EOFError
            size -= whole.write(data)
        return whole.getvalue()

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _to_mark(self) -> List[Any]:
        items = self._stack
        self._stack = self._marks.pop()
        return items

    # The operations, named as in pickletools.

    def _proto(self) -> None:
        if self._number(1) not in (4, 5):
            raise Malformed("another protocol")

    def _frame_begins(self) -> None:
        size = self._number(8)
        if self._at < len(self._frame) or size > _FRAME_MOST:
            raise Malformed("an invalid frame")
        self._frame, self._at = b"", 0
        self._frame = self._take(size)

    def _none(self) -> None:
        self._push(None)

    def _true(self) -> None:
        self._push(True)

    def _false(self) -> None:
        self._push(False)

    def _int1(self) -> None:
        self._push(self._number(1))

    def _int2(self) -> None:
        self._push(self._number(2))

    def _int4(self) -> None:
        self._push(int.from_bytes(self._take(4), "little", signed=True))

    def _long1(self) -> None:
        self._push(int.from_bytes(self._take(self._number(1)), "little", signed=True))

    def _long4(self) -> None:
        self._push(int.from_bytes(self._take(self._number(4)), "little", signed=True))

    def _float(self) -> None:
        self._push(_FLOAT.unpack(self._take(8))[0])

    def _bytes1(self) -> None:
        self._push(self._take(self._number(1)))

    def _bytes4(self) -> None:
        self._push(self._take(self._number(4)))

    def _bytes8(self) -> None:
        self._push(self._take(self._number(8)))

    def _bytearray8(self) -> None:
        size, whole = self._number(8), bytearray()
        while size > 0:
            whole += self._take(min(size, _PART))
            size -= min(size, _PART)
        self._push(whole)

    def _text1(self) -> None:
        self._push(str(self._take(self._number(1)), "utf-8", "surrogatepass"))

    def _text4(self) -> None:
        self._push(str(self._take(self._number(4)), "utf-8", "surrogatepass"))

    def _text8(self) -> None:
        self._push(str(self._take(self._number(8)), "utf-8", "surrogatepass"))

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._to_mark()

    def _pop_mark(self) -> None:
        self._to_mark()

    def _memoize(self) -> None:
        self._memo.append(self._stack[-1])

    def _get1(self) -> None:
        self._push(self._memo[self._number(1)])

    def _get4(self) -> None:
        self._push(self._memo[self._number(4)])

    def _tuple0(self) -> None:
        self._push(())

    def _tuple1(self) -> None:
        self._stack[-1:] = [(self._stack[-1],)]

    def _tuple2(self) -> None:
        self._stack[-2:] = [(self._stack[-2], self._stack[-1])]

    def _tuple3(self) -> None:
        self._stack[-3:] = [(self._stack[-3], self._stack[-2], self._stack[-1])]

    def _tuple(self) -> None:
        items = self._to_mark()
        self._push(tuple(items))

    def _list(self) -> None:
        self._push([])

    def _dict(self) -> None:
        self._push({})

    def _set(self) -> None:
        self._push(set())

    def _frozenset(self) -> None:
        items = self._to_mark()
        for item in items:
            check_key(item)
        self._push(frozenset(items))

    def _append(self) -> None:
        self._extend([self._stack.pop()])

    def _appends(self) -> None:
        self._extend(self._to_mark())

    def _extend(self, items: List[Any]) -> None:
        target = self._stack[-1]
        if type(target) is list:
            target.extend(items)
        else:
            self._maker_of(target).extend(target, items)

    def _additems(self) -> None:
        items = self._to_mark()
        if type(self._stack[-1]) is not set:
            raise Malformed("items are added to something other than a set")
        for item in items:
            check_key(item)
            self._stack[-1].add(item)

    def _setitem(self) -> None:
        value = self._stack.pop()
        self._set_items([(self._stack.pop(), value)])

    def _setitems(self) -> None:
        items = self._to_mark()
        if len(items) % 2:
            raise Malformed("a key without a value")
        self._set_items(list(zip(items[::2], items[1::2])))

    def _set_items(self, pairs: List[Tuple[Any, Any]]) -> None:
        target = self._stack[-1]
        plain = type(target) is dict
        for key, value in pairs:  # one by one: colliding keys take long, and Ctrl-C must be able to stop this
            if type(key) is not str:
                check_key(key)
            if plain:
                target[key] = value
        if not plain:
            self._maker_of(target).set_items(target, pairs)

    def _global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise Malformed("a name that is not text")
        is_getattr = (module, name) == ("builtins", "getattr")
        maker = _GETATTR if is_getattr else self._find(module, name) or self._refuse(f"{module}.{name}")
        self._makers[id(maker.kind)] = maker
        self._push(maker.kind)

    def _refuse(self, name: str) -> Maker:
        if name not in self._stand_ins:
            if len(self.refused) >= _REFUSED_MOST:
                raise Malformed("too many refused classes")
            self.refused.append(name)
            self._stand_ins[name] = StandInMaker(name)
        return self._stand_ins[name]

    def _reduce(self) -> None:
        args = self._stack.pop()
        self._make(args, {}, True)

    def _newobj(self) -> None:
        args = self._stack.pop()
        self._make(args, {}, False)

    def _newobj_ex(self) -> None:
        kwargs, args = self._stack.pop(), self._stack.pop()
        if type(kwargs) is not dict or not all(type(key) is str for key in kwargs):
            raise Malformed("invalid named arguments")
        self._make(args, kwargs, False)

    def _make(self, args: Any, kwargs: Mapping[str, Any], called: bool) -> None:
        maker = self._makers.get(id(self._stack[-1]))
        if maker is None or type(args) is not tuple:
            raise Malformed("a call of something else than a class")
        try:
            if maker is _GETATTR:
                self._stack[-1] = self._attribute(args)
                return
            made = maker.make(args, kwargs, called)
        except NotTaken:
            maker = self._refuse(maker.name)
            made = maker.make(args, kwargs, called)
        self._made[id(made)] = made, maker
        self._stack[-1] = made

    def _attribute(self, args: Tuple[Any, ...]) -> Any:
        target = self._makers.get(id(args[0])) if len(args) == 2 and type(args[1]) is str else None
        if target is None:
            raise NotTaken
        return target.named(args[1])

    def _maker_of(self, made: Any) -> Maker:
        found = self._made.get(id(made))
        if found is None:
            raise Malformed(f"a {type(made).__name__} is changed that was not made for this")
        return found[1]

    def _build(self) -> None:
        state = self._stack.pop()
        made = self._stack[-1]
        maker = self._maker_of(made)
        try:
            maker.build(made, state)
        except NotTaken:
            self._refuse(maker.name)
        del self._made[id(made)]

    def _persid(self) -> None:
        self._push(self._persistent(self._stack.pop()))


_STOP = ord(".")
_OPERATIONS: Dict[int, str] = {
    0x80: "_proto", 0x95: "_frame_begins", ord("N"): "_none", 0x88: "_true", 0x89: "_false", ord("K"): "_int1",
    ord("M"): "_int2", ord("J"): "_int4", 0x8a: "_long1", 0x8b: "_long4", ord("G"): "_float", ord("C"): "_bytes1",
    ord("B"): "_bytes4", 0x8e: "_bytes8", 0x96: "_bytearray8", 0x8c: "_text1", ord("X"): "_text4", 0x8d: "_text8",
    ord("("): "_mark", ord("0"): "_pop", ord("1"): "_pop_mark", 0x94: "_memoize", ord("h"): "_get1",
    ord("j"): "_get4", ord(")"): "_tuple0", 0x85: "_tuple1", 0x86: "_tuple2", 0x87: "_tuple3", ord("t"): "_tuple",
    ord("]"): "_list", ord("}"): "_dict", 0x8f: "_set", 0x91: "_frozenset", ord("a"): "_append", ord("e"): "_appends",
    0x90: "_additems", ord("s"): "_setitem", ord("u"): "_setitems", 0x93: "_global", ord("R"): "_reduce",
    0x81: "_newobj", 0x92: "_newobj_ex", ord("b"): "_build", ord("Q"): "_persid",
}
