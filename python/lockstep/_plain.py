"""Python's own value types, with the arguments that each may be made from."""
import collections
import datetime
import decimal
import fractions
import ipaddress
import pathlib
import re
import types
import uuid
from typing import Any, Callable, Dict, List, Mapping, Tuple

from lockstep._maker import CHAINED, Maker, Malformed

_PLAIN_KINDS = (bool, bytearray, bytes, complex, dict, float, frozenset, int, list, object, range, set, slice, str,
                tuple, type(None))
_Make = Callable[..., Any]


def typed(args: Tuple[Any, ...], *kinds: Tuple[type, ...]) -> Tuple[Any, ...]:
    """Returns the arguments if they have exactly these types. Constructors would call methods of other types."""
    if len(args) > len(kinds) or not all(type(arg) in kind for arg, kind in zip(args, kinds)):
        raise Malformed("arguments of other types")
    return args


_FRACTION = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?")
_FRACTION_BITS = 14000  # about 4000 digits: the greatest common divisor of longer numbers takes hours


def _fraction(*args: Any) -> fractions.Fraction:
    if len(args) == 1 and type(args[0]) is str and _FRACTION.fullmatch(args[0]):
        return fractions.Fraction(args[0])
    parts = typed(args, (int,), (int,))
    if any(part.bit_length() > _FRACTION_BITS for part in parts):
        raise Malformed("a fraction of too many digits")
    return fractions.Fraction(*parts)


def _counter(*args: Any) -> Any:
    made: Any = collections.Counter()
    for counts in typed(args, (dict,)):
        dict.update(made, counts)
    return made


def _defaultdict(*args: Any) -> Any:
    factory = args[0] if args else None
    if len(args) > 1 or not (factory is None or any(factory is kind for kind in _PLAIN_KINDS)):
        raise Malformed("a factory that is not a plain type")  # a missing key would call it
    return collections.defaultdict(factory)


def _deque(*args: Any) -> Any:
    items, most = (*typed(args, (tuple, list), (int, type(None))), None, None)[:2]
    return collections.deque(items or (), most)


def _slice(*args: Any) -> slice:
    if any(type(arg) in (slice, *CHAINED) for arg in args):
        raise Malformed("a slice of containers")
    return slice(*args)


_ZONE = (datetime.timezone,)
_MAKE: Dict[type, _Make] = {
    complex: lambda *args: complex(*typed(args, (float,), (float,))),
    range: lambda *args: range(*typed(args, (int,), (int,), (int,))),
    slice: _slice,
    object: lambda: object(),
    collections.Counter: _counter,
    collections.OrderedDict: lambda: collections.OrderedDict(),
    collections.defaultdict: _defaultdict,
    collections.deque: _deque,
    datetime.date: lambda *args: datetime.date(*typed(args, (bytes,))),
    datetime.datetime: lambda *args: datetime.datetime(*typed(args, (bytes,), _ZONE)),
    datetime.time: lambda *args: datetime.time(*typed(args, (bytes,), _ZONE)),
    datetime.timedelta: lambda *args: datetime.timedelta(*typed(args, (int,), (int,), (int,))),
    datetime.timezone: lambda *args: datetime.timezone(*typed(args, (datetime.timedelta,), (str,))),
    decimal.Decimal: lambda *args: decimal.Decimal(*typed(args, (str,))),
    fractions.Fraction: _fraction,
    ipaddress.IPv4Address: lambda *args: ipaddress.IPv4Address(*typed(args, (int, str))),
    ipaddress.IPv6Address: lambda *args: ipaddress.IPv6Address(*typed(args, (int, str))),
    pathlib.PosixPath: lambda *args: pathlib.PosixPath(*typed(args, *[(str,)] * len(args))),
    pathlib.PurePosixPath: lambda *args: pathlib.PurePosixPath(*typed(args, *[(str,)] * len(args))),
    types.SimpleNamespace: lambda: types.SimpleNamespace(),
    uuid.UUID: lambda: object.__new__(uuid.UUID),
}


class Plain(Maker):
    """Types of Python that only hold values."""

    def make(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], called: bool) -> Any:
        maker = _MAKE.get(self.kind)
        if maker is None or kwargs:
            raise Malformed(f"{self.name} cannot be made from these arguments")
        try:
            return maker(*args)
        except (ValueError, ArithmeticError) as error:
            raise Malformed(f"{self.name}: {error}") from None

    def build(self, made: Any, state: Any) -> None:
        if type(state) is dict and self.kind in (types.SimpleNamespace, collections.OrderedDict):
            vars(made).update(texts(state))
        elif type(state) is dict and self.kind is uuid.UUID:
            number = state.get("int")
            if type(number) is not int or not 0 <= number < 1 << 128:
                raise Malformed("not a UUID")
            safe = {0: uuid.SafeUUID.safe, -1: uuid.SafeUUID.unsafe}.get(_plain(state.get("is_safe")))
            object.__setattr__(made, "int", number)
            object.__setattr__(made, "is_safe", safe or uuid.SafeUUID.unknown)
        else:
            raise Malformed(f"{self.name} has no state")

    def extend(self, made: Any, items: List[Any]) -> None:
        if self.kind is not collections.deque:
            raise Malformed(f"{self.name} has no items")
        made.extend(items)

    def set_items(self, made: Any, pairs: List[Tuple[Any, Any]]) -> None:
        if self.kind not in (collections.OrderedDict, collections.defaultdict):
            raise Malformed(f"{self.name} has no keys")
        for key, value in pairs:
            made[key] = value


def _plain(value: Any) -> Any:
    return value if type(value) in (bool, bytes, float, int, str, type(None)) else None


def texts(state: Mapping[Any, Any]) -> Dict[str, Any]:
    if not all(type(key) is str for key in state):
        raise Malformed("an attribute name that is not text")
    return dict(state)


PLAIN_MAKERS = {(kind.__module__, kind.__qualname__): Plain(kind) for kind in [*_PLAIN_KINDS, *_MAKE]}
PLAIN_MAKERS.update({(home, kind.__qualname__): Plain(kind) for kind in (pathlib.PosixPath, pathlib.PurePosixPath)
                      for home in ("pathlib", "pathlib._local")})  # Python 3.13 names the second
