"""Runs the binary as a child process: requests with a JSON answer, commands with streamed output, function calls."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import IO, Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from lockstep._binary import find_binary
from lockstep._errors import CallError, LockstepError

_GRACE = 10.0  # seconds that a function has to end after a signal
_MOST_READ = 1 << 16
_SIGNALS = {number.value: number.name for number in signal.Signals}  # real-time signals have no names


class Ended(NamedTuple):
    code: int
    output: str
    stderr: str


def error_text(stderr: str, fallback: str) -> str:
    """Returns TEXT of the last line `lockstep exec: error: TEXT`, else the last line, else `fallback`."""
    for line in reversed(stderr.splitlines()):
        before, found, text = line.partition(": error: ")
        if found and before.startswith("lockstep"):
            return text
    lines = stderr.strip().splitlines()
    return lines[-1] if lines else fallback


class Pump(threading.Thread):
    """Copies a pipe to a stream of this program as data comes, and keeps the data if asked to.

    Writes to sys.stdout, not to descriptor 1: in a notebook they differ.
    """

    def __init__(self, source: IO[bytes], target: Optional[Any], keep: bool) -> None:
        super().__init__(daemon=True)
        self._source, self._target, self._keep = source, target, keep
        self._kept: List[bytes] = []
        self.start()

    def run(self) -> None:
        import codecs

        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with self._source:
            while True:
                data = os.read(self._source.fileno(), _MOST_READ)
                if self._keep:
                    self._kept.append(data)
                if self._target is not None:
                    with contextlib.suppress(Exception):  # the stream may be closed; keep reading, or the child blocks
                        self._target.write(decoder.decode(data, not data))
                        self._target.flush()
                if not data:
                    return

    def text(self) -> str:
        self.join()
        return b"".join(self._kept).decode("utf-8", "replace")


@contextlib.contextmanager
def _started(arguments: Sequence[str], grace: float = _GRACE,
             **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """Starts the binary for a block. No exit from the block leaves it running. grace: seconds between signals."""
    program = os.path.abspath(find_binary())  # cwd= may name another folder
    process: "subprocess.Popen[bytes]" = subprocess.Popen([program, *arguments], **options)
    try:
        yield process
    except BaseException:
        stop(process, asked_already=_terminal_asked(), grace=grace)
        raise
    finally:
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        process.wait()


def _terminal_asked() -> bool:
    """Returns True if Ctrl-C on a terminal has reached the child, too: this program is in the foreground."""
    if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
        return False
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def stop(process: "subprocess.Popen[bytes]", asked_already: bool = False, grace: float = _GRACE) -> None:
    """Stops the binary, like Ctrl-C first, then harder. The process on the host gets time to end by itself."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if not asked_already or number != signal.SIGINT:
            process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
            return


def run(arguments: Sequence[str], stream: bool = False, keep: bool = True) -> Ended:
    """Runs the binary and returns code and output. stream: also pass the output on at once."""
    with _started(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        output = Pump(process.stdout, sys.stdout if stream else None, keep)
        errors = Pump(process.stderr, sys.stderr if stream else None, True)
        code = process.wait()
        return Ended(code, output.text(), errors.text())


def ask(arguments: Sequence[str], stream_errors: bool = False, grace: float = _GRACE, cwd: Optional[str] = None) -> Any:
    """Returns the binary's JSON answer, or None without one. Raises LockstepError with the binary's last error."""
    with _started(arguments, grace, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                  cwd=cwd) as process:
        assert process.stdout is not None and process.stderr is not None
        output = Pump(process.stdout, None, True)
        errors = Pump(process.stderr, sys.stderr if stream_errors else None, True)
        code = process.wait()
        if code != 0:
            what = f"lockstep {arguments[0]} ended with code {code}"
            raise LockstepError(error_text(errors.text(), what), code)
        text = output.text()
        return json.loads(text) if text.strip() else None


class Interrupted(Exception):
    """An error came instead of the rest of a value."""


class Answer:
    """Reads the frames of docs/protocols/call.md. Also a file with the value's bytes, read one part at a time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._left = 0  # unread bytes of the current frame
        self.ending: Optional[Tuple[bytes, bytes]] = None  # the last frame: letter and content

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        self._into(memoryview(data))
        return data

    def _into(self, view: memoryview) -> None:
        while len(view):
            got = os.readv(self._fd, [view])
            if got == 0:
                raise EOFError
            view = view[got:]

    def _next(self) -> bool:
        """Reads the next frame's head. Returns True if a part of the value follows."""
        if self.ending is not None:
            return False
        head = self._exactly(5)
        kind, size = bytes(head[:1]), int.from_bytes(head[1:], "little")
        if kind == b"v" and size <= 1 << 20:
            self._left = size
            return True
        if size > 64 << 20 or kind not in (b"k", b"e", b"r"):
            raise CallError("the host sent an invalid answer")
        self.ending = kind, bytes(self._exactly(size))
        return False

    def finish(self) -> Tuple[bytes, bytes]:
        """Returns the last frame, skipping unread parts of a value."""
        while self.ending is None:
            if self._left:
                self._exactly(self._left)
                self._left = 0
            self._next()
        return self.ending

    def begins(self) -> bool:
        """Returns True if there is a value to read."""
        return self._left > 0 or self._next()

    def readinto(self, target: Any) -> int:
        view = memoryview(target).cast("B")
        done = 0
        while done < len(view):
            if self._left == 0 and not self._next():
                if self.ending is not None and self.ending[0] != b"k":
                    raise Interrupted
                break
            part = min(self._left, len(view) - done)
            self._into(view[done:done + part])
            self._left -= part
            done += part
        return done

    def read(self, size: int = -1) -> bytes:
        data = bytearray(size)
        got = self.readinto(data)
        return bytes(data if got == size else data[:got])

    def readline(self) -> bytes:
        line = bytearray()
        while not line.endswith(b"\n"):
            byte = self.read(1)
            if not byte:
                break
            line += byte
        return bytes(line)


def call(arguments: Sequence[str], send: Callable[[IO[bytes]], None], receive: Callable[[Answer], Any], stream: bool,
         started: Callable[["subprocess.Popen[bytes]"], None]) -> Any:
    """Runs `lockstep call`. `send` writes the request; returns the result of `receive` for the answer."""
    reading, writing = os.pipe()
    pumps: List[Pump] = []
    try:
        with _started(["call", *arguments, "--answer-fd", str(writing)], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(writing,)) as process:
            os.close(writing)
            writing = -1
            started(process)
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            pumps = [Pump(process.stdout, sys.stdout if stream else None, False),
                     Pump(process.stderr, sys.stderr if stream else None, False)]
            with contextlib.suppress(BrokenPipeError):  # the answer tells why
                send(process.stdin)
                process.stdin.close()
            try:
                return receive(Answer(reading))
            except EOFError:
                raise CallError(_why_no_answer(process.wait()), process.returncode) from None
    finally:
        for pump in pumps:
            pump.join()
        os.close(reading)
        if writing >= 0:
            os.close(writing)


def _why_no_answer(code: int) -> str:
    if code == 255:
        return "the connection was lost while the answer came"
    if code - 128 in _SIGNALS:
        return f"the function's process was ended by {_SIGNALS[code - 128]}"
    if code < 0:
        return f"the call was ended by {_SIGNALS.get(-code, f'signal {-code}')}"
    return f"the function's process ended with code {code} before the function returned"
