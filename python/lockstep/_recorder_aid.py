# The sitecustomize.py of `lockstep run --aid`. Each Python of a rank finds this file first on PYTHONPATH and runs it
# before the script. As soon as the script imports torch.distributed, this file starts PyTorch's control plane, on a
# socket in the same folder that is named after the rank. Nothing here may fail or print: a rank must run as it does
# without this file. Python 3.8 or later, no packages.
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = "torch.distributed.distributed_c10d"


class Watch:
    """A finder that finds no module, and notices the import of PyTorch's library."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):  # type: ignore
        if name == LIBRARY:
            sys.meta_path.remove(cls)
            start()
        return None


def start() -> None:
    try:
        import ctypes

        from torch._C._distributed_c10d import _WorkerServer  # type: ignore

        socket = os.path.join(HERE, os.environ["RANK"])
        if os.path.lexists(socket):
            os.unlink(socket)  # of an earlier program of this rank
        server = _WorkerServer(socket)
        # Never destroy the server: its end waits for its thread, which a forked child does not have.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
    except Exception:
        pass  # PyTorch before 2.4, or built without torch.distributed


def restore() -> None:
    """Takes this file's folder away from the script, and from the programs that the script starts."""
    sys.path[:] = [each for each in sys.path if each != HERE]
    first, colon, rest = os.environ.get("PYTHONPATH", "").partition(":")
    if os.path.abspath(first) != HERE:
        return
    if colon:
        os.environ["PYTHONPATH"] = rest
    else:
        del os.environ["PYTHONPATH"]


def run_next() -> None:
    """Imports the sitecustomize that Python would have found without this file. Python itself reports errors in it."""
    own = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = own


restore()
sys.meta_path.insert(0, Watch)
run_next()
