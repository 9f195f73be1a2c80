"""Reads values that come from a host. Reading a pickle may run any code, so only known types are read."""
import importlib
import io
import pickle
import re
import sys
from typing import Any, List, Optional, Tuple

from lockstep._errors import CallError, RemoteError, RemoteTraceback, ValueRefused
from lockstep._program import Interrupted
from lockstep._trust import Trust
from lockstep._unpickle import Reader


class _FullReader(pickle.Unpickler):
    """The reader for serialization="pickle": trusts the host, because the pickle may run any code."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class("__main__" if module == "__mp_main__" else module, name)

    def persistent_load(self, pid: Any) -> Any:
        return _persistent(pid)


def _persistent(pid: Any) -> Any:
    """Makes an array or a tensor from (kind, type, shape, bytes), a tensor also from whether it needs a gradient."""
    # Check the types first: an object of the project's classes would run its own methods.
    if type(pid) is not tuple or len(pid) not in (4, 5):
        raise CallError("the value holds an invalid array")
    kind, type_name, shape, data = pid[:4]
    sizes = type(shape) is tuple and all(type(size) is int and size >= 0 for size in shape)
    named = type(kind) is str and type(type_name) is str
    if not sizes or not named or type(data) not in (bytes, bytearray):
        raise CallError("the value holds an invalid array")
    if kind in ("array", "scalar"):
        return _array(kind, type_name, shape, data)
    return _tensor(kind, type_name, shape, data, pid[-1] is True)


# numpy's dtype.str of booleans, numbers, text, bytes and times. Objects are excluded: their bytes would be addresses.
_ARRAY_TYPE = re.compile(r"[<>|=][biufcSUmM]\d{1,9}(\[\d{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")
# torch's data types. Any other name could make torch import a module.
_TENSOR_TYPES = {"bfloat16", "bool", "complex32", "complex64", "complex128", "float16", "float32", "float64",
                 "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "int8",
                 "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}


def _array(kind: str, type_name: str, shape: Tuple[int, ...], data: Any) -> Any:
    try:
        numpy = sys.modules.get("numpy") or importlib.import_module("numpy")
    except ImportError:
        raise ValueRefused("the value holds a numpy array, and numpy is not installed here", None) from None
    if not _ARRAY_TYPE.fullmatch(type_name):
        raise ValueRefused(f"the value holds an array of the unknown type {type_name[:80]!r}", None)
    if isinstance(data, bytes):  # an array over bytes would be read-only
        data = bytearray(data)
    array = numpy.frombuffer(data, dtype=numpy.dtype(type_name)).reshape(shape)
    return array if kind == "array" else array[()]


def _tensor(kind: str, type_name: str, shape: Tuple[int, ...], data: Any, requires_grad: bool) -> Any:
    try:
        torch = sys.modules.get("torch") or importlib.import_module("torch")
    except ImportError:
        raise ValueRefused("the value holds a tensor, and torch is not installed here", None) from None
    if type_name not in _TENSOR_TYPES or not hasattr(torch, type_name):
        raise ValueRefused(f"the value holds a tensor of the unknown type {type_name[:80]!r}", None)
    dtype = getattr(torch, type_name)
    if isinstance(data, bytes):
        data = bytearray(data)
    flat = torch.frombuffer(data, dtype=dtype) if len(data) else torch.empty(0, dtype=dtype)
    tensor = flat.reshape(shape)
    if kind == "parameter":
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def read_value(file: Any, serialization: str, trust: Trust) -> Any:
    """Reads one value. file: must have read, readinto and readline. Raises ValueRefused or CallError."""
    if serialization == "pickle":
        return _FullReader(file).load()
    reader = Reader(file, trust.find, _persistent)
    try:
        value = reader.load()
    except (CallError, EOFError, Interrupted):
        raise
    except Exception as error:
        if not reader.refused:
            raise CallError(f"the host's value can't be read: {str(error)[:300]}") from error
        raise _refusal(reader.refused, None) from error
    if reader.refused:
        raise _refusal(reader.refused, value)
    return value


def _refusal(names: List[str], value: Any) -> ValueRefused:
    # The names are the host's own words and go to a terminal: show printable characters only.
    shown = ", ".join("".join(part if part.isprintable() else "?" for part in name[:200]) for name in sorted(names)[:5])
    return ValueRefused(f"the value holds objects of {shown}, which this program does not accept from a host; "
                        "name the class in allow=[...], or trust the host with serialization='pickle'", value)


def read_exception(data: bytes, serialization: str, trust: Trust) -> BaseException:
    """Returns the exception in `data`, with the traceback on the host as its cause."""
    said = read_value(io.BytesIO(data), "safe", Trust(None))
    # Even Trust(None) accepts classes of __main__. Unpacking and str() would run their methods, so check exact types.
    if type(said) is not tuple or len(said) != 5 or any(type(text) is not str for text in said[:4]):
        raise CallError("an exception must come as four texts and its arguments")
    module, name, told, trace, part = said
    return made_exception(module, name, told, trace, part if type(part) is bytes else None, serialization, trust)


def made_exception(module: str, name: str, told: str, trace: str, part: Optional[bytes], serialization: str,
                   trust: Trust) -> BaseException:
    error: Optional[Exception] = _made_again(module, name, part, serialization, trust)
    if error is None:
        error = RemoteError(told, f"{module}.{name}")
    error.__cause__ = RemoteTraceback(trace)
    return error


def _made_again(module: str, name: str, part: Optional[bytes], serialization: str, trust: Trust
                ) -> Optional[Exception]:
    if part is None:
        return None
    try:
        made = read_value(io.BytesIO(part), serialization, trust)
        if type(made) is not tuple or len(made) != 2 or type(made[0]) is not tuple:
            return None
        return trust.make_exception(module, name, *made)
    except Exception:  # the class takes other arguments here, or they hold refused objects
        return None
