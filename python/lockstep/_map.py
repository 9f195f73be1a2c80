"""One call of a function per row, as one job on hosts: the job and its values outlive the program that began it."""
import os
import pathlib
import pickle
import re
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from typing import (IO, Any, Callable, Dict, Generic, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple,
                    TypeVar, Union)

from lockstep import _program
from lockstep._cluster import Cluster
from lockstep._errors import CallError, LockstepError, RemoteError
from lockstep._function import SERIALIZATIONS, RemoteFunction, _header
from lockstep._project import find_root
from lockstep._trust import Trust

_Value = TypeVar("_Value")

_PLACE = ".local/share/lockstep/maps"  # on hosts, below the home
_ID = re.compile(re.escape(_PLACE) + r"/([0-9a-f]{32})/calls\.pyz")
_OVER = ("succeeded", "failed", "canceled", "lost")  # states of a job that has ended
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_MOST_TOGETHER = 200  # rows whose answers are asked for at once


class Rows(Generic[_Value]):
    """The values of `lockstep.map()` in the order of its rows. Raises a row's exception only where the row is used."""

    def __init__(self, job: str, count: int, place: str, receiver: "RemoteFunction[_Value]") -> None:
        self.job = job  # the job's id, for lockstep.rows() and for all commands; empty: there are no rows
        self._count, self._place, self._receiver = count, place, receiver
        self._answers: Dict[int, Optional[bytes]] = {}
        self._ended: Dict[int, Tuple[Any, Optional[BaseException]]] = {}
        self._told: Dict[str, Any] = {}  # the last answer of `lockstep why --json`
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<{self._count} rows of job {self.job}>"

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> _Value:
        """Waits for the row. Returns its value, or raises its exception."""
        value, error = self._end_of(row)
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[_Value]:
        return (self[row] for row in range(self._count))

    def exception(self, row: int) -> Optional[BaseException]:
        """Waits for the row. Returns its exception, or None if the row has a value."""
        return self._end_of(row)[1]

    def states(self) -> List[str]:
        """Returns each row's state now: "queued", "running", "done", "failed", "lost", "not begun" or "unknown"."""
        return [str(row["state"]) for row in self._ask()["rows"]] if self.job else []

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the whole job has ended. Returns False if the seconds pass first."""
        return self._until(lambda told: told["state"] in _OVER, timeout) if self.job else True

    def cancel(self) -> None:
        """Stops the running rows; no other row begins. Values of rows that are done stay."""
        if self.job:
            _program.ask(["cancel", self.job, "--json"])

    def remove(self) -> None:
        """Removes arguments and values from the hosts. The job must have ended."""
        if not self.job:
            return
        if self._ask()["state"] not in _OVER:
            raise LockstepError(f"job {self.job} has not ended; wait() or cancel() first")
        self._receiver.system.run([["rm", "-rf", "--", self._place]], stream_logs=False)

    def _ask(self) -> Dict[str, Any]:
        told: Dict[str, Any] = _program.ask(["why", self.job, "--json"])
        self._told = told
        return told

    def _until(self, true: Callable[[Dict[str, Any]], bool], timeout: Optional[float] = None) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while not true(self._ask()):
            left = pause if end is None else min(pause, end - time.monotonic())
            if left <= 0:
                return False
            time.sleep(left)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        return True

    def _end_of(self, row: int) -> Tuple[Any, Optional[BaseException]]:
        index = row + self._count if row < 0 else row
        if not 0 <= index < self._count:
            raise IndexError(f"there is no row {row} of {self._count}")
        with self._lock:
            if index not in self._ended:
                self._until_ended(index)
                self._ended[index] = self._read(index)
            return self._ended[index]

    def _until_ended(self, row: int) -> None:
        def ended(told: Dict[str, Any]) -> bool:
            return told["rows"][row]["state"] in ("done", "failed") or told["state"] in _OVER

        # The last answer may know already.
        if not self._told or not ended(self._told):
            self._until(ended)

    def _read(self, row: int) -> Tuple[Any, Optional[BaseException]]:
        told = self._told["rows"][row]
        if told["state"] in ("done", "failed"):
            if row not in self._answers:
                self._fetch(row, told["host"])
            answer = self._answers.pop(row)
            if answer is not None:
                return self._value(answer)
        last = str(told.get("last_line") or f"row {row} is {told['state']}")
        return None, RemoteError(f"row {row} of job {self.job} has no value: {last}", "")

    def _fetch(self, row: int, host: str) -> None:
        """Asks a host for the answer of a row, and for those of the next ended rows there."""
        rows = self._told["rows"]
        wanted = [index for index in range(row, self._count)
                  if index not in self._ended and index not in self._answers and
                  rows[index]["state"] in ("done", "failed") and rows[index]["host"] == host][:_MOST_TOGETHER]
        nodes = [str(node) for node in self._told["nodes"]]
        arguments = self._receiver.system.call_arguments(nodes.index(host) if host in nodes else 0, ".")
        header = f"values pickle\npath {self._place}/calls.pyz\nmodule lockstep_row\nfunction answers\n\n".encode()

        def send(stdin: IO[bytes]) -> None:
            stdin.write(header + pickle.dumps(((self._place, wanted), {}), protocol=4))

        # A host answers with bytes: no class of the project is made here.
        plain: RemoteFunction[Any] = RemoteFunction(print, self._receiver.system, [], f"reading row {row}", "safe", [],
                                                    {}, None, False, 0)
        found, error = _program.call(arguments, send, plain._receive, True, lambda process: None)
        if error is not None:
            raise error
        if type(found) is not list or not found or any(type(each) not in (bytes, type(None)) for each in found):
            raise CallError(f"{host} sent no answers of rows")
        self._answers.update(zip(wanted, found))

    def _value(self, answer: bytes) -> Tuple[Any, Optional[BaseException]]:
        with tempfile.TemporaryFile() as file:
            file.write(answer)
            file.seek(0)
            try:
                return self._receiver._receive(_program.Answer(file.fileno()))
            except LockstepError as error:
                return None, error
            except EOFError:
                return None, CallError("the answer of the row is incomplete")


def _arguments_of(row: Any) -> Tuple[Sequence[Any], Mapping[str, Any]]:
    """A dict of names has the function's arguments by name; anything else is its one argument."""
    if isinstance(row, dict) and all(isinstance(name, str) for name in row):
        return (), row
    return (row,), {}


def _archive(path: str, fn: "RemoteFunction[Any]", items: Sequence[Any], up: str) -> None:
    own = pathlib.Path(__file__).parent
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(own / "_runner.py", "_runner.py")
        archive.write(own / "_row.py", "lockstep_row.py")
        archive.writestr("__main__.py", "import sys\nimport lockstep_row\nsys.exit(lockstep_row.main())\n")
        archive.writestr("header", _header(fn._fn, fn._source, fn._serialization, up))
        for number, item in enumerate(items):
            with archive.open(str(number), "w", force_zip64=True) as member:
                fn._payload(*_arguments_of(item))(member)


def _words(system: Cluster, folder: str, name: str, place: str, count: int, options: Sequence[str],
           python: str) -> List[str]:
    """Returns the words of `lockstep` that start the job."""
    program = f'exec "$0" "$HOME/{place}/calls.pyz" "$1"'
    return ["run", "--on", system.where, *system._options, "--detach", "--json", "--sync", "none", "--cwd", folder,
            "--name", name, "--sweep", f"call=0-{count - 1}" if count > 1 else "call=0", *options, "--no-python", "sh",
            "-c", program, python, "{row}"]


def map(fn: Callable[..., _Value], rows: Iterable[Any], system: Union[Cluster, str, None] = None,
        name: Optional[str] = None, at_once: Optional[int] = None, gpus_per_job: Optional[int] = None,
        reqs: Sequence[str] = (), serialization: str = "safe", allow: Iterable[type] = (),
        env: Optional[Mapping[str, str]] = None, python: Optional[str] = None, sync: bool = True) -> "Rows[_Value]":
    """Starts one job with a call of fn for each row, and returns its values as `Rows` without waiting for them.

    rows: a dict has the arguments by name; any other value is the one argument. system: a cluster or its name; without
    it, this machine. The job goes on if this program ends, and lockstep.rows(job) finds its values again.
    name: of the job. at_once, gpus_per_job: as for `lockstep run --sweep`. The others: as for lockstep.function().
    Raises LockstepError if the job cannot start; a row's exception is raised where the row is used.
    """
    if serialization not in SERIALIZATIONS:
        raise ValueError(f"serialization must be one of {', '.join(SERIALIZATIONS)} (got {serialization!r})")
    here = system is None
    if system is None:
        system = Cluster("local", one_host=True)
    elif isinstance(system, str):
        system = Cluster(system)
    function = RemoteFunction(getattr(fn, "__lockstep_function__", fn), system, reqs, name, serialization, allow,
                              env or {}, python, sync and not here, 0)
    items = list(rows)
    number = uuid.uuid4().hex
    place = f"{_PLACE}/{number}"
    if not items:
        return Rows("", 0, place, function)
    options = [word for variable, content in (env or {}).items() for word in ("--env", f"{variable}={content}")]
    options += [] if at_once is None else [f"--at-once={at_once}"]
    options += [] if gpus_per_job is None else [f"--gpus-per-job={gpus_per_job}"]
    folder, up = _folder_here(function) if here else system.folder_on_hosts(_root_of(function))
    with tempfile.TemporaryDirectory() as made:
        _archive(os.path.join(made, "calls.pyz"), function, items, up)
        function._bring(again=True)
        system.sync(made, place)
    title = re.sub(r"[^A-Za-z0-9_.-]+", "-", function.name).strip("-") or "map"
    words = _words(system, folder, title, place, len(items), options, python or (sys.executable if here else "python3"))
    started = _program.ask(words)
    return Rows(str(started["id"]), len(items), place, function)


def _root_of(function: "RemoteFunction[Any]") -> Optional[str]:
    return None if function._source is None else function._source.root


def _folder_here(function: "RemoteFunction[Any]") -> Tuple[str, str]:
    """Returns the working folder on this machine, and the way from there to the project."""
    here = os.path.realpath(os.getcwd())
    return here, os.path.relpath(_root_of(function) or here, here)


def rows(job: str, system: Union[Cluster, str, None] = None, serialization: str = "safe",
         allow: Iterable[type] = ()) -> "Rows[Any]":
    """Returns the values of a job that lockstep.map() has started, also in another program.

    job: the id or the name. system: only needed for a host with ssh_creds of its own. serialization: the same as for
    map(). Classes of the project around the current folder are accepted if imported.
    """
    told = _program.ask(["why", job, "--json"])
    found = _ID.search(str(told.get("command", "")))
    if found is None:
        raise LockstepError(f"job {job} was not started by lockstep.map()")
    if system is None:
        system = Cluster(str(told["on"]), one_host=len(told["nodes"]) == 1)
    elif isinstance(system, str):
        system = Cluster(system)
    receiver: RemoteFunction[Any] = RemoteFunction(print, system, [], str(told["name"]), serialization, allow, {}, None,
                                                   False, 0)
    receiver._trust = Trust(find_root(os.getcwd()), allow)
    return Rows(str(told["id"]), len(told["rows"]), f"{_PLACE}/{found[1]}", receiver)
