"""The exceptions of this package. A function's own exceptions are raised as they are."""
from typing import Any, List, Optional


class LockstepError(RuntimeError):
    """A request to hosts failed. The text names the host and the reason; `code` is the binary's exit code, if known."""

    def __init__(self, message: str, code: Optional[int] = None) -> None:
        super().__init__(message)
        self.code = code  # as in docs/remote.md


class CommandError(LockstepError):
    """A command of run() ended with a code other than 0. `results` has the results of all commands."""

    def __init__(self, message: str, code: int, results: List[Any]) -> None:
        super().__init__(message, code)
        self.results = results


class CallError(LockstepError):
    """A function could not be called, or its value could not be brought back."""


class ValueRefused(CallError):
    """The value holds objects of classes that this program does not accept from a host.

    `value` is the value with inert stand-ins for these objects.
    """

    def __init__(self, message: str, value: Any) -> None:
        super().__init__(message)
        self.value = value


class RemoteError(LockstepError):
    """A function raised an exception of a class that is unknown here."""

    def __init__(self, message: str, type_name: str) -> None:
        super().__init__(message)
        self.type_name = type_name  # "package.module.Class"


class RemoteTraceback(Exception):
    """The cause of an exception from a function: the traceback on the host, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'
