"""Lets Debian 12's own torchrun (PyTorch 1.13 on Python 3.11) start: there, Std.from_str() loses the
values "0" and "3" to a change in enum. Put this folder on PYTHONPATH; workers do not need it."""
import importlib.abc
import sys


class _Repair(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname != "torch.distributed.elastic.agent.server.api":
            return None
        sys.meta_path.remove(self)
        from torch.distributed.elastic.multiprocessing import api

        def parse(text):
            if len(text) == 1 and text in "0123":
                return api.Std(int(text))
            return {int(rank): api.Std(int(value)) for rank, value in (item.split(":") for item in text.split(","))}

        api.Std.from_str = staticmethod(parse)
        return None


sys.meta_path.insert(0, _Repair())
