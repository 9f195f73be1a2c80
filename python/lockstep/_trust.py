"""What is taken from a host. The rules of _classes.py are imported for the first class that one names."""
from typing import Any, Iterable, Optional

from lockstep._maker import Maker


class Trust:
    """Which classes are taken: values, exceptions of Python, the project's own, and what the caller names."""

    def __init__(self, root: Optional[str], allow: Iterable[type] = ()) -> None:
        self._root = root
        self._allowed = {(kind.__module__, kind.__qualname__): kind for kind in allow}

    def find(self, module: str, name: str) -> Optional[Maker]:
        from lockstep._classes import find

        return find(self._root, self._allowed, module, name)

    def make_exception(self, module: str, name: str, args: Any, state: Any) -> Optional[Exception]:
        """None: its class is not known here. args and state: what the exception's class had for them on the host."""
        from lockstep._classes import find_exception

        maker = find_exception(self._root, self._allowed, module, name)
        if maker is None:
            return None
        made: Exception = maker.make(args, {}, True)
        maker.build(made, state)
        return made
