"""Calls a function for each row, as one job on hosts. The job and the values outlive the calling program."""
import contextlib
import os
import pathlib
import pickle
import re
import shlex
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
from lockstep._errors import CallError, LockstepError, RemoteError, ValueRefused
from lockstep._function import SERIALIZATIONS, RemoteFunction, _header
from lockstep._project import find_root
from lockstep._trust import Trust

_Value = TypeVar("_Value")

_PLACE = ".local/share/lockstep/maps"  # on hosts, below the home
_ID = re.compile(re.escape(_PLACE) + r"/([0-9a-f]{32})/calls\.pyz")
_OVER = ("succeeded", "failed", "canceled", "lost")  # states of a job that has ended
_ENDED = ("done", "failed")  # states of a row that has ended
_REFUSED, _UNREACHED = 2, 255  # exit codes: the words are wrong; a host was not reached
_MOST_ROWS = 10_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_MOST_TOGETHER = 200  # rows whose answers are asked for at once


class Rows(Generic[_Value]):
    """The values of `lockstep.map()` in the order of its rows. Raises a row's exception only where the row is used."""

    def __init__(self, job: str, count: int, place: str, receiver: "RemoteFunction[_Value]") -> None:
        self.job = job  # the job's id, for lockstep.rows() and for all commands; empty: there are no rows
        self._count, self._place, self._receiver = count, place, receiver
        self._answers: Dict[int, Tuple[Dict[str, Any], bytes]] = {}  # not yet used, with what was told of their rows
        self._ended: Dict[int, Tuple[Any, Optional[BaseException]]] = {}
        self._silent = False  # a line has said that there is no answer
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
        return not self.job or self._until(lambda told: told["state"] in _OVER, timeout) is not None

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
        _run_in_home(self._receiver.system, "rm", "-rf", "--", self._place)

    def _ask(self) -> Dict[str, Any]:
        told: Dict[str, Any] = _program.ask(["why", self.job, "--json"])
        return told

    def _until(self, true: Callable[[Dict[str, Any]], bool], timeout: Optional[float] = None
               ) -> Optional[Dict[str, Any]]:
        """Asks until the answer is as wanted, and returns it; None: the seconds have passed."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while True:
            told = self._ask_through()
            if told is not None and true(told):
                return told
            left = pause if end is None else min(pause, end - time.monotonic())
            if left <= 0:
                return None
            time.sleep(left)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _ask_through(self) -> Optional[Dict[str, Any]]:
        """Returns None if the hosts are not reached now: a lost connection is not the job's end."""
        try:
            told, why = self._ask(), "a host does not answer"
        except LockstepError as error:
            if error.code != _UNREACHED:
                raise
            told, why = None, str(error)
        silent = told is None or (told["state"] not in _OVER and
                                  any(row["state"] == "unknown" for row in told["rows"]))
        if silent and not self._silent:
            print(f"lockstep: job {self.job}: {why}; waiting for it", file=sys.stderr)
        self._silent = silent
        return told

    def _end_of(self, row: int) -> Tuple[Any, Optional[BaseException]]:
        index = row + self._count if row < 0 else row
        if not 0 <= index < self._count:
            raise IndexError(f"there is no row {row} of {self._count}")
        with self._lock:
            if index in self._ended:
                return self._ended[index]
            last = None
            if index not in self._answers:
                told = self._until(lambda told: told["rows"][index]["state"] in _ENDED or told["state"] in _OVER)
                assert told is not None
                last = told["rows"][index]
                if last["state"] in _ENDED:
                    self._fetch(index, told)
            if index in self._answers:
                last, answer = self._answers.pop(index)
                ended = self._value(answer)
                # A process that fails behind its function, in atexit for example, has no value.
                if last["state"] == "done" or not (ended[1] is None or isinstance(ended[1], ValueRefused)):
                    self._ended[index] = ended
                    return ended
            assert last is not None
            return None, self._no_value(index, last)

    def _no_value(self, row: int, told: Dict[str, Any]) -> LockstepError:
        """Not kept: the row may yet be run again, or its host may answer."""
        state = told["state"]
        if state == "unknown":
            raise CallError(f"row {row} of job {self.job} is unknown: a host does not answer")
        if state == "done":
            raise CallError(f"row {row} of job {self.job} is done, but {told['host']} has no answer of it; is that "
                            "host the same as when the job began?")
        last = str(told.get("last_line") or f"row {row} is {state}; lockstep logs '{self.job}[{row}]' may say why")
        code = f" (exit code {told['code']})" if told.get("code") and not last.startswith("exit code") else ""
        return RemoteError(f"row {row} of job {self.job} has no value: {last}{code}", "")

    def _fetch(self, row: int, told: Dict[str, Any]) -> None:
        """Asks a host for the answer of a row, and for those of the next ended rows there."""
        rows, host = told["rows"], told["rows"][row]["host"]
        wanted = [index for index in range(row, self._count)
                  if index not in self._ended and index not in self._answers and
                  rows[index]["state"] in _ENDED and rows[index]["host"] == host][:_MOST_TOGETHER]
        nodes = [str(node) for node in told["nodes"]]
        if host not in nodes:
            raise CallError(f"{host}, which has the answer of row {row}, is not a host of job {self.job}")
        arguments = self._receiver.system.call_arguments(nodes.index(host), ".")
        if self._receiver._python:
            arguments += ["--python", self._receiver._python]
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
        for index, answer in zip(wanted, found):
            if answer is not None:
                self._answers[index] = rows[index], answer

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
    with zipfile.ZipFile(path, "w", strict_timestamps=False) as archive:
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
    items = list(rows)
    # Checked before anything is sent: a refused sweep would leave its arguments on the hosts.
    if len(items) > _MOST_ROWS:
        raise ValueError(f"a map has at most {_MOST_ROWS} rows (got {len(items)})")
    if at_once is not None and at_once < 1:
        raise ValueError(f"at_once must be at least 1 (got {at_once})")
    if gpus_per_job is not None and gpus_per_job < 0:
        raise ValueError(f"gpus_per_job must be at least 0 (got {gpus_per_job})")
    here = system is None
    if here and reqs:
        raise LockstepError("reqs are for hosts: without system= the rows use this Python, so install packages here")
    if system is None:
        system = Cluster("local", one_host=True)
    elif isinstance(system, str):
        system = Cluster(system)
    function = RemoteFunction(getattr(fn, "__lockstep_function__", fn), system, reqs, name, serialization, allow,
                              env or {}, python or (sys.executable if here else None), sync and not here, 0)
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
        # Others on the host must not read the arguments.
        _run_in_home(system, "mkdir", "-p", "-m", "700", "--", place)
        system.sync(made, place)
    title = re.sub(r"[^A-Za-z0-9_.-]+", "-", function.name).strip("-") or "map"
    words = _words(system, folder, title, place, len(items), options, function._python or "python3")
    try:
        started = _program.ask(words)
    except LockstepError as error:
        if error.code == _REFUSED:  # nothing has begun
            with contextlib.suppress(LockstepError):
                _run_in_home(system, "rm", "-rf", "--", place)
        raise
    return Rows(str(started["id"]), len(items), place, function)


def _run_in_home(system: Cluster, *command: str) -> None:
    system.run([command], stream_logs=False)


def _root_of(function: "RemoteFunction[Any]") -> Optional[str]:
    return None if function._source is None else function._source.root


def _folder_here(function: "RemoteFunction[Any]") -> Tuple[str, str]:
    """Returns the working folder on this machine, and the way from there to the project."""
    here = os.path.realpath(os.getcwd())
    return here, os.path.relpath(_root_of(function) or here, here)


def _python_of(command: str) -> Optional[str]:
    """Returns the interpreter of the rows. A host finds python3 by itself."""
    try:
        words = shlex.split(command)
    except ValueError:  # the command is long and was cut
        return None
    return words[-2] if words[-1] == "{row}" and words[-2] != "python3" else None


def rows(job: str, system: Union[Cluster, str, None] = None, serialization: str = "safe",
         allow: Iterable[type] = (), python: Optional[str] = None) -> "Rows[Any]":
    """Returns the values of a job that lockstep.map() has started, also in another program.

    job: the id or the name. system: only needed for a host with ssh_creds of its own. serialization: the same as for
    map(). python: the interpreter that reads the values; default: the job's. Classes of the project around the current
    folder are accepted if imported.
    """
    told = _program.ask(["why", job, "--json"])
    found = _ID.search(str(told.get("command", "")))
    if found is None:
        raise LockstepError(f"job {job} was not started by lockstep.map()")
    if system is None:
        system = Cluster(str(told["on"]), one_host=len(told["nodes"]) == 1)
    elif isinstance(system, str):
        system = Cluster(system)
    receiver: RemoteFunction[Any] = RemoteFunction(print, system, [], str(told["name"]), serialization, allow, {},
                                                   python or _python_of(str(told["command"])), False, 0)
    receiver._trust = Trust(find_root(os.getcwd()), allow)
    return Rows(str(told["id"]), len(told["rows"]), f"{_PLACE}/{found[1]}", receiver)
