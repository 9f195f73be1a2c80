"""Lockstep from Python: functions and commands on hosts over SSH, and the error file of a training script.

The work is done by the `lockstep` binary; this package starts it. Nothing here needs another package.
"""
from typing import TYPE_CHECKING, List

if TYPE_CHECKING:
    from lockstep._binary import BinaryNotFound as BinaryNotFound
    from lockstep._binary import find_binary as find_binary
    from lockstep._record import record as record

# A name is imported when it is first used: `import lockstep` in every worker costs nothing.
_HOMES = {
    "BinaryNotFound": "_binary",
    "find_binary": "_binary",
    "record": "_record",
}

__all__ = ["BinaryNotFound", "find_binary", "record"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *_HOMES})
