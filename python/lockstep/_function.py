"""Functions that run on a cluster's hosts and return their values, or raise their exceptions, here."""
import concurrent.futures
import functools
import importlib
import os
import pickle
import subprocess
import threading
from typing import IO, Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from lockstep import _program
from lockstep._cluster import Cluster
from lockstep._errors import CallError, ValueRefused
from lockstep._project import Source, find_source
from lockstep._trust import Trust
from lockstep._values import read_exception, read_value

_Value = TypeVar("_Value")
SERIALIZATIONS = ("safe", "pickle", "json")


class Call(concurrent.futures.Future, Generic[_Value]):  # type: ignore[type-arg]
    """A running call: a future of concurrent.futures whose cancel() stops the process on the host."""

    def __init__(self) -> None:
        super().__init__()
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._asked_to_end = False
        self._guard = threading.Lock()

    def cancel(self) -> bool:
        """Returns False if the call has ended. Stopping may take seconds; then result() raises CancelledError."""
        with self._guard:
            if self.done():
                return False
            self._asked_to_end = True
            process = self._process
        if process is not None:
            threading.Thread(target=_program.stop, args=(process,), daemon=True).start()
        return True

    def cancelled(self) -> bool:
        return self._asked_to_end and self.done()

    def _has_started(self, process: "subprocess.Popen[bytes]") -> None:
        with self._guard:
            self._process = process
            late = self._asked_to_end
        if late:
            _program.stop(process)

    def _work(self, call: Callable[[Callable[["subprocess.Popen[bytes]"], None]], _Value]) -> None:
        try:
            if self._asked_to_end:
                raise concurrent.futures.CancelledError
            value = call(self._has_started)
        except BaseException as error:
            with self._guard:
                ended = concurrent.futures.CancelledError() if self._asked_to_end else error
                self.set_exception(ended)
        else:
            with self._guard:
                self._asked_to_end = False
                self.set_result(value)


class RemoteFunction(Generic[_Value]):
    """Made by `lockstep.function()`. A call runs the function on one node: the first, unless `node` was given."""

    def __init__(self, fn: Callable[..., _Value], system: Cluster, reqs: Sequence[str], name: Optional[str],
                 serialization: str, allow: Iterable[type], env: Mapping[str, str], python: Optional[str],
                 sync: bool, node: int) -> None:
        self.name: str = name or str(getattr(fn, "__qualname__", "function"))
        self.system = system
        self._fn, self._reqs, self._serialization = fn, list(reqs), serialization
        self._sync, self._node = sync, node
        self._env, self._python = dict(env), python
        self._source = _source_of(fn)
        self._trust = Trust(None if self._source is None else self._source.root, allow)
        functools.update_wrapper(self, fn)
        self.__lockstep_function__ = fn  # the runner calls this if the module has the wrapper under fn's name

    def __repr__(self) -> str:
        return f"<{self.name} on {self.system.where}>"

    def __call__(self, *args: Any, stream_logs: bool = True, **kwargs: Any) -> _Value:
        """Calls the function and returns the value. stream_logs: print the function's output at once."""
        self._bring(again=True)
        return self._call(self._node, args, kwargs, stream_logs, lambda process: None)

    def remote(self, *args: Any, stream_logs: bool = True, **kwargs: Any) -> "Call[_Value]":
        """Starts the call in the background. Returns a future with result(timeout), done() and cancel()."""
        def work(started: Callable[["subprocess.Popen[bytes]"], None]) -> _Value:
            self._bring(again=True)
            return self._call(self._node, args, kwargs, stream_logs, started)

        return _begin(work)

    def map(self, items: Iterable[Any], at_once: Optional[int] = None, stream_logs: bool = True) -> List[_Value]:
        """Calls fn(item) for each item in a process of its own, spread over the nodes. Returns the values in order.

        at_once: number of simultaneous calls; default: one per node. The first exception stops the rest and is raised.
        """
        self._bring(again=True)
        nodes = len(self.system.hosts())
        todo, free = list(items), list(range(at_once or nodes))
        calls: List["Call[_Value]"] = []
        running: Dict["concurrent.futures.Future[_Value]", int] = {}
        try:
            while todo or running:
                while todo and free:
                    slot, item = free.pop(0), todo.pop(0)
                    work = functools.partial(self._call, slot % nodes, (item,), {}, stream_logs)
                    calls.append(_begin(work))
                    running[calls[-1]] = slot
                done = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED).done
                for call in done:
                    call.result()
                    free.append(running.pop(call))
            return [call.result() for call in calls]
        finally:
            for left in running:
                left.cancel()
            concurrent.futures.wait(running)

    def _bring(self, again: bool) -> None:
        self.system.ready()
        root = None if self._source is None else self._source.root
        if self._sync or self._reqs:
            self.system.bring(root, self._reqs, again)

    def _call(self, node: int, args: Sequence[Any], kwargs: Mapping[str, Any], stream: bool,
              started: Callable[["subprocess.Popen[bytes]"], None]) -> _Value:
        folder, up = self.system.folder_on_hosts(None if self._source is None else self._source.root)
        arguments = self.system.call_arguments(node, folder)
        for variable, content in self._env.items():
            arguments += ["--env", f"{variable}={content}"]
        if self._python:
            arguments += ["--python", self._python]
        payload = self._payload(args, kwargs)
        header = _header(self._fn, self._source, self._serialization, up)

        def send(stdin: IO[bytes]) -> None:
            stdin.write(header)
            payload(stdin)

        value, error = _program.call(arguments, send, self._receive, stream, started)
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    def _payload(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[IO[bytes]], None]:
        """Returns a writer of the arguments. Checks them before anything is started."""
        if self._serialization == "json":
            import json

            try:
                text = json.dumps({"args": list(args), "kwargs": dict(kwargs)}, allow_nan=False).encode()
            except (TypeError, ValueError) as error:
                raise CallError(f"the arguments of {self.name} are not JSON: {error}") from error
            return lambda stdin: void(stdin.write(text))
        if self._source is not None:
            return lambda stdin: _dump(self.name, pickle.dump, (tuple(args), dict(kwargs)), stdin)
        try:
            dump = importlib.import_module("cloudpickle").dump
        except ImportError:
            raise CallError(f"a host can't import {self.name} from a module or script; define it at the top of "
                            "a file of the project, or install cloudpickle on both sides") from None
        return lambda stdin: _dump(self.name, dump, (self._fn, tuple(args), dict(kwargs)), stdin)

    def _receive(self, answer: _program.Answer) -> Tuple[Any, Optional[BaseException]]:
        """Returns the value or the exception, once the process on the host has ended."""
        value, refused = None, None
        try:
            if answer.begins():
                value = self._read(answer)
        except _program.Interrupted:
            pass
        except ValueRefused as error:
            refused = error
        kind, content = answer.finish()
        if kind == b"k":
            return value, refused
        if kind == b"r":
            return None, CallError(f"{self.name} on {self.system.where}: {content.decode('utf-8', 'replace')}")
        try:
            if self._serialization == "json":
                return None, _json_exception(content, self._trust)
            return None, read_exception(content, self._serialization, self._trust)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise CallError(f"{self.name} failed on {self.system.where}, and why can't be read: {error}") from error

    def _read(self, answer: _program.Answer) -> Any:
        if self._serialization != "json":
            return read_value(answer, self._serialization, self._trust)
        import json

        text = bytearray()
        while answer.begins():
            text += answer.read(1 << 16)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CallError(f"the host's value can't be read: {error}") from error


def void(_: object) -> None:
    return None


def _dump(name: str, dump: Callable[..., None], value: Any, stdin: IO[bytes]) -> None:
    try:
        dump(value, stdin, protocol=5)
    except OSError:
        raise
    except Exception as error:
        raise CallError(f"the arguments of {name} can't be sent: {type(error).__name__}: {error}") from error


def _json_exception(content: bytes, trust: Trust) -> BaseException:
    import json

    from lockstep._values import made_exception

    told = json.loads(content)
    return made_exception(str(told["module"]), str(told["type"]), str(told["message"]), str(told["traceback"]), None,
                          "safe", trust)


def _begin(work: Callable[[Callable[["subprocess.Popen[bytes]"], None]], _Value]) -> "Call[_Value]":
    call: "Call[_Value]" = Call()
    call.set_running_or_notify_cancel()
    threading.Thread(target=call._work, args=(work,), daemon=True).start()
    return call


def _source_of(fn: Any) -> Optional[Source]:
    """Returns the module or script by which a host can find the function, or None if it cannot."""
    name = getattr(fn, "__qualname__", "")
    if not name or "<" in name or "__module__" not in dir(fn):
        return None
    source = find_source(fn.__module__)
    return source if source is not None and not any("\n" in (part or "") for part in source) else None


def _header(fn: Any, source: Optional[Source], serialization: str, up: str) -> bytes:
    lines = [f"values {'json' if serialization == 'json' else 'pickle'}"]
    if source is not None:
        lines.append(f"function {fn.__qualname__}")
        if source.root is not None:
            lines.append(f"root {up}")
            lines += [f"path {os.path.normpath(os.path.join(up, path))}" for path in _paths_in(source)]
        script = source.script
        place = "" if script is None else os.path.normpath(os.path.join(up, script))
        lines.append(f"module {source.module}" if script is None else f"script {place}")
    return os.fsencode("\n".join(lines) + "\n\n")


def _paths_in(source: Source) -> List[str]:
    """Returns the folders that this program imports the project's modules from, relative to the project."""
    import sys

    assert source.root is not None
    found: List[str] = []
    for entry in sys.path:
        path = os.path.realpath(entry or os.getcwd())
        inside = path == source.root or path.startswith(source.root + "/")
        relative = os.path.relpath(path, source.root)
        if inside and "-packages" not in path and "\n" not in path and relative not in found:
            found.append(relative)
    return found or ["."]


def function(fn: Optional[Callable[..., _Value]] = None, system: Union[Cluster, str, None] = None,
             reqs: Sequence[str] = (), name: Optional[str] = None, serialization: str = "safe",
             allow: Iterable[type] = (), env: Optional[Mapping[str, str]] = None, python: Optional[str] = None,
             sync: bool = True, node: int = 0) -> Any:
    """Returns a function of this program that runs on hosts: `train = lockstep.function(fn=train, system=gpu)`.

    system: a cluster, or its name. reqs: packages to install first, as for install_packages(). name: for messages.
    serialization: how the value comes back. "safe" accepts values of Python, numpy and torch, the project's own classes
    and those in `allow`. "pickle" accepts whatever the host sends, which may run any code here. "json" accepts JSON.
    env: variables for the process. python: the interpreter on the host. sync=False: the project is already there.
    node: index in the cluster. Without fn this is a decorator: `@lockstep.function(system="gpus")`.
    """
    if fn is None:
        return lambda found: function(found, system, reqs, name, serialization, allow, env, python, sync, node)
    if system is None:
        raise TypeError("system is missing: a cluster, or its name")
    if serialization not in SERIALIZATIONS:
        raise ValueError(f"serialization must be one of {', '.join(SERIALIZATIONS)} (got {serialization!r})")
    if isinstance(system, str):
        system = Cluster(system)
    if isinstance(fn, RemoteFunction):
        fn = fn.__lockstep_function__
    return RemoteFunction(fn, system, reqs, name, serialization, allow, env or {}, python, sync, node)
