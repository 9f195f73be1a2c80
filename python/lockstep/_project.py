"""Finds the local folder to send to a host, by the binary's rule: git's top folder, else the folder itself."""
import os
import sys
from typing import NamedTuple, Optional


def find_root(folder: str) -> str:
    """Returns the top folder of the git repository around `folder`, else `folder`, both without links."""
    start = os.path.realpath(folder)
    at = start
    while True:
        git = os.path.join(at, ".git")
        if os.path.isfile(git) or os.path.lexists(os.path.join(git, "HEAD")):
            return at
        if os.path.dirname(at) == at:
            return start
        at = os.path.dirname(at)


def is_everything(root: str) -> bool:
    """Returns True for the home and for folders above. Sending all of these is never meant."""
    return inside(os.path.realpath(os.path.expanduser("~")), root)


def inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def name_on_hosts(root: str) -> str:
    """Returns the folder's name on hosts. A hidden folder loses its leading dots."""
    return os.path.basename(root).lstrip(".") or "root"


class Source(NamedTuple):
    """The origin of a function."""

    root: Optional[str]  # the project's folder; None: an installed or built-in module, imported by name on the host
    module: Optional[str]
    script: Optional[str]  # instead of a module: the file of __main__, relative to root


def is_installed(path: str) -> bool:
    parts = path.split("/")
    library = os.path.realpath(os.path.dirname(os.__file__))
    return "site-packages" in parts or "dist-packages" in parts or inside(path, library)


def find_source(module_name: str) -> Optional[Source]:
    """Returns the source of a module, or None if another Python cannot run it (a notebook, `python -c`)."""
    module = sys.modules.get(module_name)
    if module is None:
        return None
    spec = getattr(module, "__spec__", None)
    main = module_name == "__main__"
    if main and spec is not None:  # started by python -m
        main, module_name = False, spec.name
    file = getattr(module, "__file__", None)
    if file is None:
        return None if main else Source(None, module_name, None)
    file = os.path.realpath(file)
    if not file.endswith(".py") or not os.path.isfile(file):
        return None if main else Source(None, module_name, None)
    if not main and is_installed(file):
        return Source(None, module_name, None)
    base = os.path.dirname(file)
    if not main:  # go up to the folder that the module was imported from
        for _ in range(module_name.count(".") + (os.path.basename(file) == "__init__.py")):
            base = os.path.dirname(base)
    here = find_root(os.getcwd())
    root = here if inside(file, here) and not is_everything(here) else find_root(base)
    return Source(root, None if main else module_name, os.path.relpath(file, root) if main else None)
