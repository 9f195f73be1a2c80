"""Which local folder is brought to a host, as the binary sees it: git's top folder, else the folder itself."""
import os
import sys
from typing import NamedTuple, Optional


def find_root(folder: str) -> str:
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
    """The home, or a folder above it: nobody means to send all of that."""
    return inside(os.path.realpath(os.path.expanduser("~")), root)


def inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def name_on_hosts(root: str) -> str:
    return os.path.basename(root).lstrip(".") or "root"


class Source(NamedTuple):
    """Where a function comes from."""

    root: Optional[str]  # of the project; None: it is installed, or built in, and found there by its name
    module: Optional[str]
    script: Optional[str]  # in place of a module: the file of __main__, relative to root


def is_installed(path: str) -> bool:
    parts = path.split("/")
    library = os.path.realpath(os.path.dirname(os.__file__))
    return "site-packages" in parts or "dist-packages" in parts or inside(path, library)


def find_source(module_name: str) -> Optional[Source]:
    """None: there is no file that another Python could run (a notebook, `python -c`)."""
    module = sys.modules.get(module_name)
    if module is None:
        return None
    spec = getattr(module, "__spec__", None)
    main = module_name == "__main__"
    if main and spec is not None:  # python -m
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
    if not main:  # the folder from which it was imported
        for _ in range(module_name.count(".") + (os.path.basename(file) == "__init__.py")):
            base = os.path.dirname(base)
    here = find_root(os.getcwd())
    root = here if inside(file, here) and not is_everything(here) else find_root(base)
    return Source(root, None if main else module_name, os.path.relpath(file, root) if main else None)
