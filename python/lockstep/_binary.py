"""Finds the `lockstep` binary of this package."""
import os
import pathlib
import shutil
from typing import Iterator


class BinaryNotFound(RuntimeError):
    """No `lockstep` program was found."""


def _candidates(package: pathlib.Path) -> Iterator[pathlib.Path]:
    # pip puts scripts into bin/ of the prefix above lib/pythonX.Y/site-packages (a virtual environment, ~/.local,
    # /usr/local), or into bin/ of the folder itself with --target. On Windows there is no binary.
    for parent in list(package.parents)[:4]:
        yield parent / "bin" / "lockstep"


def find_binary() -> str:
    """Returns the path of the binary: $LOCKSTEP_BINARY, else the one installed with this package, else one in PATH.

    Raises BinaryNotFound if there is none, or if LOCKSTEP_BINARY is not a program.
    """
    given = os.environ.get("LOCKSTEP_BINARY")
    if given:
        if not os.access(given, os.X_OK) or os.path.isdir(given):
            raise BinaryNotFound(f"LOCKSTEP_BINARY must be a program (got {given!r})")
        return given
    for path in _candidates(pathlib.Path(__file__).resolve().parent):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("lockstep")
    if found is None:
        raise BinaryNotFound("found no lockstep program beside this package or in PATH; "
                             "install the wheel, or set LOCKSTEP_BINARY")
    return found
