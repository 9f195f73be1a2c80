"""Lets Debian 13's PyTorch 2.6 host a TCPStore: it is built without libuv, yet asks for it by default.
Put this folder on PYTHONPATH; a worker that only uses the launcher's store does not need it."""
import importlib.abc
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


sys.meta_path.insert(0, _Repair())
