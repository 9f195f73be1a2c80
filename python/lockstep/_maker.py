"""The interface of makers: a maker creates objects of one class from parts sent by a host."""
import collections
from typing import Any, List, Mapping, Tuple

_KEY_MOST = 10000  # nested items in a dict's key: hash() walks all of them and cannot be interrupted
CHAINED = (collections.defaultdict, collections.deque)  # CPython frees nested ones by recursion without a limit


class Malformed(Exception):
    """The bytes are not a pickle that an honest host writes."""


class NotTaken(Exception):
    """Only code of the object's class could create the object."""


class Maker:
    """Creates objects of one class. `kind` stands for the class wherever a value holds the class itself."""

    def __init__(self, kind: Any, name: str = "") -> None:
        self.kind = kind
        self.name = name or f"{kind.__module__}.{kind.__qualname__}"

    def make(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], called: bool) -> Any:
        """called: the pickle calls the class; otherwise it calls the class's __new__."""
        raise Malformed(f"{self.name} can't be made")

    def named(self, name: str) -> Any:
        """Returns getattr(kind, name). Python 3.11 pickles enum members this way."""
        raise NotTaken

    # For an object from make(), the reader calls build() at most once, and the other methods any number of times.

    def build(self, made: Any, state: Any) -> None:
        raise Malformed(f"{self.name} has no state")

    def extend(self, made: Any, items: List[Any]) -> None:
        raise Malformed(f"{self.name} has no items")

    def set_items(self, made: Any, pairs: List[Tuple[Any, Any]]) -> None:
        raise Malformed(f"{self.name} has no keys")


class _StandIn:
    """Holds the parts of an object of a refused class, and does nothing with them."""

    _name = ""

    def __repr__(self) -> str:
        return f"<a {self._name}: {self.__dict__}>"


class StandInMaker(Maker):
    def __init__(self, name: str) -> None:
        super().__init__(type("StandIn", (_StandIn,), {"_name": name}), name)

    def make(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], called: bool) -> Any:
        made = self.kind()
        made.__dict__["args"] = args
        return made

    def build(self, made: Any, state: Any) -> None:
        made.__dict__["state"] = state

    def extend(self, made: Any, items: List[Any]) -> None:
        made.__dict__.setdefault("items", []).extend(items)

    def set_items(self, made: Any, pairs: List[Tuple[Any, Any]]) -> None:
        made.__dict__.setdefault("pairs", []).extend(pairs)


def is_kind(value: Any, *kinds: type) -> bool:
    """Like isinstance(), but never asks the value for __class__, which may run code of the class."""
    return issubclass(type(value), kinds)


def check_key(key: Any) -> None:
    """Refuses deeply nested keys: hash() would take for ever, or overflow the C stack and kill this process."""
    level, left = [key], _KEY_MOST
    for _ in range(100):
        # Use the built-in iterators: a class of the project may define its own.
        level = [item for part in level if is_kind(part, tuple, frozenset)
                 for item in (tuple.__iter__(part) if is_kind(part, tuple) else frozenset.__iter__(part))]
        left -= len(level)
        if not level:
            return
        if left < 0:
            break
    raise Malformed("a key is nested too deep")
