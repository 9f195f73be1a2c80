"""What every maker of objects has, where a host says what they are made of."""
import collections
from typing import Any, List, Mapping, Tuple

_KEY_MOST = 10000  # tuples and items of a dict's key: hash() walks all of them, and can't be interrupted
CHAINED = (collections.defaultdict, collections.deque)  # CPython frees them, and slices, by recursion without a limit


class Malformed(Exception):
    """The bytes are no pickle that an honest host writes."""


class NotTaken(Exception):
    """Only code of its class could make the object so."""


class Maker:
    """How objects of one class are made. `kind` stands for the class where a value holds the class itself."""

    def __init__(self, kind: Any, name: str = "") -> None:
        self.kind = kind
        self.name = name or f"{kind.__module__}.{kind.__qualname__}"

    def make(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], called: bool) -> Any:
        """called: the pickle calls the class, else it calls the class's __new__."""
        raise Malformed(f"{self.name} can't be made")

    def named(self, name: str) -> Any:
        """What getattr(kind, name) is to give, by which Python 3.11 sends the members of enums."""
        raise NotTaken

    # What may follow once for an object that make() has made.

    def build(self, made: Any, state: Any) -> None:
        raise Malformed(f"{self.name} has no state")

    def extend(self, made: Any, items: List[Any]) -> None:
        raise Malformed(f"{self.name} has no items")

    def set_items(self, made: Any, pairs: List[Tuple[Any, Any]]) -> None:
        raise Malformed(f"{self.name} has no keys")


class _StandIn:
    """Holds what an object of a refused class was made of, and does nothing with it."""

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
    """isinstance() asks the value for its __class__, which may run code of its class."""
    return issubclass(type(value), kinds)


def check_key(key: Any) -> None:
    """hash() of tuples that hold one another takes for ever, or ends this process by a stack that is too deep."""
    level, left = [key], _KEY_MOST
    for _ in range(100):
        # The iterators of the types themselves, as a class of the project may have its own.
        level = [item for part in level if is_kind(part, tuple, frozenset)
                 for item in (tuple.__iter__(part) if is_kind(part, tuple) else frozenset.__iter__(part))]
        left -= len(level)
        if not level:
            return
        if left < 0:
            break
    raise Malformed("a key is nested too deep")
