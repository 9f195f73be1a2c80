"""What can go wrong, beside what a function itself raises."""
from typing import Any, List, Optional


class LockstepError(RuntimeError):
    """Something that was asked of hosts did not happen; the text names the host and the reason."""

    def __init__(self, message: str, code: Optional[int] = None) -> None:
        super().__init__(message)
        self.code = code  # exit code of the binary, as docs/remote.md has it


class CommandError(LockstepError):
    """A command of run() ended with another code than 0. All of the list have run: `results` has them."""

    def __init__(self, message: str, code: int, results: List[Any]) -> None:
        super().__init__(message, code)
        self.results = results


class CallError(LockstepError):
    """A function could not be called, or its value could not be brought back."""


class ValueRefused(CallError):
    """The value holds objects of classes that are not taken from a host.

    `value` is what came, with inert stand-ins for them.
    """

    def __init__(self, message: str, value: Any) -> None:
        super().__init__(message)
        self.value = value


class RemoteError(LockstepError):
    """A function raised an exception whose class is not known here."""

    def __init__(self, message: str, type_name: str) -> None:
        super().__init__(message)
        self.type_name = type_name  # "package.module.Class"


class RemoteTraceback(Exception):
    """The cause of an exception that a function raised: its traceback on the host, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'
