"""The rules for values from a host. _classes.py is imported only when a value names a class."""
from typing import Any, Iterable, Optional

from lockstep._maker import Maker


class Trust:
    """The accepted classes: plain values, Python's exceptions, the project's own classes, and `allow`."""

    def __init__(self, root: Optional[str], allow: Iterable[type] = ()) -> None:
        self._root = root
        self._allowed = {(kind.__module__, kind.__qualname__): kind for kind in allow}

    def find(self, module: str, name: str) -> Optional[Maker]:
        """Returns how to make objects of a class, or None for a refused class."""
        from lockstep._classes import find

        return find(self._root, self._allowed, module, name)

    def make_exception(self, module: str, name: str, args: Any, state: Any) -> Optional[Exception]:
        """Returns the exception, or None for an unknown class. args and state: as pickled on the host."""
        from lockstep._classes import find_exception

        maker = find_exception(self._root, self._allowed, module, name)
        if maker is None:
            return None
        made: Exception = maker.make(args, {}, True)
        maker.build(made, state)
        return made
