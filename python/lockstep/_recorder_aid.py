# The sitecustomize.py of `lockstep run --aid`. Each Python of a rank finds this file first on PYTHONPATH and runs it
# before the script. As soon as the script imports torch.distributed, this file starts PyTorch's control plane, on a
# socket in the same folder that is named after the rank. Nothing here may fail or print: a rank must run as it does
# without this file. Python 3.8 or later, no packages.
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RANK = os.environ.get("RANK", "")  # a script may change it
PID = os.getpid()
LIBRARY = "torch.distributed.distributed_c10d"


class Watch:
    """A finder that finds no module, and notices the import of PyTorch's library. It stays in sys.meta_path: who
    takes a finder out during an import makes Python skip the next one."""

    done = False

    @classmethod
    def find_spec(cls, name, path=None, target=None):  # type: ignore
        if name == LIBRARY and not cls.done:
            cls.done = True
            start()
        return None


def is_served(path: str) -> bool:
    """A helper of the script must not take the socket from the rank. A program that has ended leaves the file."""
    import socket

    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        return probe.connect_ex(path) == 0


def start() -> None:
    if os.getpid() != PID or not (RANK.isascii() and RANK.isdigit()):
        return  # a forked child, or not started as a rank
    try:
        import ctypes
        import signal

        from torch._C._distributed_c10d import _WorkerServer  # type: ignore

        path = os.path.join(HERE, RANK)
        if is_served(path):
            return
        if os.path.lexists(path):
            os.unlink(path)
        # A script may block a signal later to wait for it. A thread that does not block it would take it, and die.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            server = _WorkerServer(path)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # Never destroy the server: its end waits for its thread, which a forked child does not have.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
    except Exception:
        pass  # PyTorch before 2.4, or built without torch.distributed


def restore() -> None:
    """Takes this file's folder away from the script, and from the programs that the script starts."""
    sys.path[:] = [each for each in sys.path if each != HERE]
    parts = os.environ.get("PYTHONPATH", "").split(":")
    if HERE not in parts:
        return
    parts.remove(HERE)  # wherever a shell script has put it
    if parts:
        os.environ["PYTHONPATH"] = ":".join(parts)
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
