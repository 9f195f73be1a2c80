"""Lockstep from Python: functions and commands on hosts over SSH or on rented machines, and error files of training.

The `lockstep` binary does the work; this package starts it. The package needs no other package.
"""
from typing import TYPE_CHECKING, List

if TYPE_CHECKING:
    from lockstep._binary import BinaryNotFound as BinaryNotFound
    from lockstep._binary import find_binary as find_binary
    from lockstep._cluster import Cluster as Cluster
    from lockstep._cluster import CommandResult as CommandResult
    from lockstep._cluster import cluster as cluster
    from lockstep._errors import CallError as CallError
    from lockstep._errors import CommandError as CommandError
    from lockstep._errors import LockstepError as LockstepError
    from lockstep._errors import RemoteError as RemoteError
    from lockstep._errors import RemoteTraceback as RemoteTraceback
    from lockstep._errors import ValueRefused as ValueRefused
    from lockstep._function import Call as Call
    from lockstep._function import RemoteFunction as RemoteFunction
    from lockstep._function import function as function
    from lockstep._map import Rows as Rows
    from lockstep._map import map as map
    from lockstep._map import rows as rows
    from lockstep._ondemand import OnDemandCluster as OnDemandCluster
    from lockstep._ondemand import ondemand_cluster as ondemand_cluster
    from lockstep._record import record as record

__version__ = "0.1.0"  # the same as in CMake's project(); a test compares them

# Import names at the first use: a worker with `import lockstep` then pays nothing.
_HOMES = {
    "BinaryNotFound": "_binary",
    "Call": "_function",
    "CallError": "_errors",
    "Cluster": "_cluster",
    "CommandError": "_errors",
    "CommandResult": "_cluster",
    "LockstepError": "_errors",
    "OnDemandCluster": "_ondemand",
    "RemoteError": "_errors",
    "RemoteFunction": "_function",
    "RemoteTraceback": "_errors",
    "Rows": "_map",
    "ValueRefused": "_errors",
    "cluster": "_cluster",
    "find_binary": "_binary",
    "function": "_function",
    "map": "_map",
    "ondemand_cluster": "_ondemand",
    "record": "_record",
    "rows": "_map",
}

__all__ = [
    "BinaryNotFound",
    "Call",
    "CallError",
    "Cluster",
    "CommandError",
    "CommandResult",
    "LockstepError",
    "OnDemandCluster",
    "RemoteError",
    "RemoteFunction",
    "RemoteTraceback",
    "Rows",
    "ValueRefused",
    "cluster",
    "find_binary",
    "function",
    "map",
    "ondemand_cluster",
    "record",
    "rows",
]


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
