"""The decorator that tells the agent which exception ended a worker, like torch's `record`, but without torch."""
import faulthandler
import functools
import json
import logging
import os
import sys
import time
import traceback
import warnings
from typing import Any, Callable, Dict, Optional, TypeVar, Union, cast, overload

_Function = TypeVar("_Function", bound=Callable[..., Any])
_log = logging.getLogger("lockstep")
_TORCH_ERRORS = "torch.distributed.elastic.multiprocessing.errors"
_NO_FILE = "<N/A>"  # torch's placeholder for a missing error file


def _error_file() -> Optional[str]:
    return os.environ.get("TORCHELASTIC_ERROR_FILE") or None


def _write(path: str, content: Dict[str, Any]) -> None:
    # The exception being reported matters more than a failure to write it.
    try:
        with open(path, "w") as file:
            json.dump(content, file)
    except Exception as error:
        warnings.warn(f"the error file can't be written: {type(error).__name__}: {error}")


def _record_exception(error: BaseException) -> None:
    path = _error_file()
    if path is None:
        return
    _write(path, {
        "message": {
            "message": f"{type(error).__name__}: {error}",
            "extraInfo": {
                "py_callstack": traceback.format_exc(),
                "timestamp": str(int(time.time())),
            },
        }
    })


def _child_failed(error: BaseException) -> bool:
    """Returns True for torch's ChildFailedError. Before such an error torch has been imported."""
    errors = sys.modules.get(_TORCH_ERRORS)
    kind = getattr(errors, "ChildFailedError", None)
    return isinstance(kind, type) and isinstance(error, kind)


def _pass_child_error_on(error: Any) -> None:
    """Makes the first failed child's error file this process's own, with the child's exit code."""
    rank, failure = error.get_first_failure()
    if failure.error_file == _NO_FILE:
        _log.info("local_rank %s failed without an error file; decorate its entry point with @record", rank)
        return
    try:
        with open(failure.error_file) as file:
            content: Dict[str, Any] = json.load(file)
    except (OSError, ValueError) as unreadable:
        warnings.warn(f"the child's error file can't be read: {unreadable}")
        return
    if failure.exitcode and isinstance(content.get("message"), dict):
        content["message"]["errorCode"] = failure.exitcode
    path = _error_file()
    if path is None:
        _log.error("no error file is set for this process, to copy the child's (%s)", failure.error_file)
        return
    if os.path.isfile(path):
        _log.warning("%s exists already and is overwritten", path)
        os.remove(path)
    _write(path, content)


def _wrap(function: _Function) -> _Function:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:  # for example without stderr
            warnings.warn(f"the fault handler can't be enabled: {type(error).__name__}: {error}")
        try:
            return function(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except Exception as error:
            if _child_failed(error):
                _pass_child_error_on(error)
            else:
                _record_exception(error)
            raise

    return cast(_Function, wrapper)


@overload
def record(function: _Function) -> _Function: ...


@overload
def record(function: None = None) -> Callable[[_Function], _Function]: ...


def record(function: Optional[_Function] = None) -> Union[_Function, Callable[[_Function], _Function]]:
    """Writes the exception that ends the decorated function to the file named by TORCHELASTIC_ERROR_FILE.

    The launcher (lockstep run, torchrun) sets that variable and shows the traceback in its report. Use it once, on
    the top-level function: `@record` or `@record()`. Like torch's, SystemExit(0) becomes a normal return, any other
    SystemExit passes through unrecorded, and the fault handler is on while the function runs.
    """
    return _wrap if function is None else _wrap(function)
