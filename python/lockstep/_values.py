"""Values that come from a host. A pickle may run any code where it is read, so only what is named here is read."""
import enum
import importlib
import io
import os
import pickle
import sys
from typing import Any, Dict, Iterable, List, Optional, Tuple

from lockstep._errors import RemoteError, RemoteTraceback, ValueRefused
from lockstep._project import inside

# Types whose objects are values: what they are made with does nothing else.
_VALUE_TYPES: Dict[str, Tuple[str, ...]] = {
    "builtins": ("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object",
                 "range", "set", "slice", "str", "tuple"),
    "collections": ("Counter", "OrderedDict", "deque", "defaultdict"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "ipaddress": ("IPv4Address", "IPv6Address"),
    "pathlib": ("PosixPath", "PurePosixPath"),
    "pathlib._local": ("PosixPath", "PurePosixPath"),
    "types": ("SimpleNamespace",),
    "uuid": ("UUID", "SafeUUID"),
    "zoneinfo": ("ZoneInfo",),
}


class _StandIn:
    """Holds what an object of a refused class was made of, and does nothing with it."""

    _name = ""

    def __new__(cls, *args: Any, **kwargs: Any) -> "_StandIn":
        made = object.__new__(cls)
        made.__dict__["args"] = args
        return made

    def __setstate__(self, state: Any) -> None:
        self.__dict__["state"] = state

    def append(self, item: Any) -> None:
        self.__dict__.setdefault("items", []).append(item)

    def extend(self, items: Iterable[Any]) -> None:
        self.__dict__.setdefault("items", []).extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__dict__.setdefault("pairs", []).append((key, value))

    def __repr__(self) -> str:
        return f"<a {self._name}: {self.__dict__}>"


class Trust:
    """Which classes are taken: values, exceptions of Python, the project's own, and what the caller names."""

    def __init__(self, root: Optional[str], allow: Iterable[type] = ()) -> None:
        self._root = root
        self._allowed = {(kind.__module__, kind.__qualname__): kind for kind in allow}

    def find(self, module: str, name: str) -> Optional[type]:
        if (module, name) in self._allowed:
            return self._allowed[module, name]
        if module == "__mp_main__":
            module = "__main__"
        if name in _VALUE_TYPES.get(module, ()):
            return _class_in(importlib.import_module(module), name)
        if module == "builtins":
            found = _class_in(sys.modules["builtins"], name)
            return found if found is not None and issubclass(found, BaseException) else None
        return _class_in(sys.modules[module], name) if self._is_own(module) else None

    def find_exception(self, module: str, name: str) -> Optional[type]:
        """Of any module that this program has imported too: an exception only holds values."""
        found = self.find(module, name)
        if found is None and module in sys.modules:
            found = _class_in(sys.modules[module], name)
        return found if found is not None and issubclass(found, BaseException) else None

    def _is_own(self, module: str) -> bool:
        """Nothing is imported because a host names it: to import a script is to run it."""
        file = getattr(sys.modules.get(module), "__file__", None)
        if module == "__main__" or file is None or self._root is None:
            return module == "__main__"
        place = os.path.realpath(file)
        return inside(place, self._root) and "-packages/" not in place


def _class_in(module: Any, name: str) -> Optional[type]:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


class _Reader(pickle.Unpickler):
    def __init__(self, file: Any) -> None:
        super().__init__(file)

    def persistent_load(self, pid: Any) -> Any:
        kind, type_name, shape, data = pid[:4]
        if kind in ("array", "scalar"):
            return _array(kind, type_name, shape, data)
        return _tensor(kind, type_name, shape, data, bool(pid[4]))


class _TrustedReader(_Reader):
    def __init__(self, file: Any, trust: Trust) -> None:
        super().__init__(file)
        self._trust = trust
        self.refused: List[str] = []

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):  # Python 3.11 has enum members so
            return _enum_member
        found = self._trust.find(module, name)
        if found is not None:
            return found
        self.refused.append(f"{module}.{name}")
        return type("StandIn", (_StandIn,), {"_name": self.refused[-1]})


def _enum_member(kind: Any, name: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind.__members__[name]
    raise ValueRefused(f"the value asks for .{name} of {kind!r}", None)


class _FullReader(_Reader):
    def find_class(self, module: str, name: str) -> Any:
        return super().find_class("__main__" if module == "__mp_main__" else module, name)


def _array(kind: str, type_name: str, shape: Tuple[int, ...], data: Any) -> Any:
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        raise ValueRefused("the value holds a numpy array, and numpy is not installed here", None) from None
    if isinstance(data, bytes):  # the array there could not be written to
        data = bytearray(data)
    array = numpy.frombuffer(data, dtype=numpy.dtype(type_name)).reshape(shape)
    return array if kind == "array" else array[()]


def _tensor(kind: str, type_name: str, shape: Tuple[int, ...], data: Any, requires_grad: bool) -> Any:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise ValueRefused("the value holds a tensor, and torch is not installed here", None) from None
    dtype = getattr(torch, type_name)
    if not isinstance(dtype, torch.dtype):
        raise ValueRefused(f"the value holds a tensor of the unknown type {type_name!r}", None)
    if isinstance(data, bytes):
        data = bytearray(data)
    flat = torch.frombuffer(data, dtype=dtype) if len(data) else torch.empty(0, dtype=dtype)
    tensor = flat.reshape(shape)
    if kind == "parameter":
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def read_value(file: Any, serialization: str, trust: Trust) -> Any:
    """file: has read, readinto and readline."""
    if serialization == "pickle":
        return _FullReader(file).load()
    reader = _TrustedReader(file, trust)
    try:
        value = reader.load()
    except Exception as error:
        if not reader.refused:
            raise
        raise _refusal(reader.refused, None) from error
    if reader.refused:
        raise _refusal(reader.refused, value)
    return value


def _refusal(names: List[str], value: Any) -> ValueRefused:
    shown = ", ".join(sorted(set(names))[:5])
    return ValueRefused(f"the value holds objects of {shown}, which is not taken from a host without being asked for; "
                        "name the class in allow=[...], or trust the host with serialization='pickle'", value)


def read_exception(data: bytes, serialization: str, trust: Trust) -> BaseException:
    """The exception that `data` tells of, with its traceback on the host as its cause."""
    module, name, told, trace, part = read_value(io.BytesIO(data), "safe", Trust(None))
    return made_exception(str(module), str(name), str(told), str(trace), part, serialization, trust)


def made_exception(module: str, name: str, told: str, trace: str, part: Optional[bytes], serialization: str,
                   trust: Trust) -> BaseException:
    error: Optional[Exception] = _made_again(module, name, part, serialization, trust)
    if error is None:
        error = RemoteError(told, f"{module}.{name}")
    error.__cause__ = RemoteTraceback(trace)
    return error


def _made_again(module: str, name: str, part: Optional[bytes], serialization: str, trust: Trust
                ) -> Optional[Exception]:
    kind = trust.find_exception(module, name)
    # SystemExit and the like would end this program.
    if part is None or kind is None or not issubclass(kind, Exception):
        return None
    try:
        arguments, state = read_value(io.BytesIO(part), serialization, trust)
        error = kind(*arguments)
        if isinstance(state, dict):
            error.__dict__.update(state)
    except Exception:  # it has other arguments here, or they hold what is not taken
        return None
    return error
