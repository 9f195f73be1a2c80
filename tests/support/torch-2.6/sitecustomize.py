"""Lets Debian's PyTorch 2.6 and later use a TCPStore: it is built without libuv, yet asks for it by default. Put this
folder on PYTHONPATH."""
import importlib.abc
import os
import sys


class _Repair(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname != "torch.distributed.distributed_c10d":
            return None
        sys.meta_path.remove(self)
        from torch._C._distributed_c10d import TCPStore

        inherited = TCPStore.__init__

        def plain(self, *args, **options):
            options["use_libuv"] = False
            inherited(self, *args, **options)

        TCPStore.__init__ = plain
        return None


def _set_clock(ahead):
    """Sets the clock that Python sees ahead by PEER_CLOCK_AHEAD seconds, for agents that write heartbeats."""
    import datetime as module

    class datetime(module.datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz) + module.timedelta(seconds=ahead)

    datetime.__module__, datetime.__qualname__ = "datetime", "datetime"  # as it is pickled
    module.datetime = datetime


if "PEER_CLOCK_AHEAD" in os.environ:
    _set_clock(float(os.environ["PEER_CLOCK_AHEAD"]))
sys.meta_path.insert(0, _Repair())
