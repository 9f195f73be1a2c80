# mypy: ignore-errors
# Runs one call of lockstep.map() on a host: `python3 calls.pyz ROW`. The archive has this file, _runner.py, the
# request's header as `header`, and the arguments of each row as a member with the row's number.
import os
import shutil
import sys
import zipfile

import _runner

MOST_AT_ONCE = 16 << 20  # bytes of several answers that travel together


def _request(archive, row):
    """Returns a descriptor of the request, as `lockstep call` sends it (docs/protocols/call.md)."""
    fd = os.memfd_create("request")
    with zipfile.ZipFile(archive) as members, open(fd, "wb", closefd=False) as request:
        for name in ("header", row):
            with members.open(name) as part:
                shutil.copyfileobj(part, request)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _tell_here_too(answer, values, error, frames, tell=_runner.tell_error):
    """Also prints the exception: its last line is what `lockstep why` shows of the row."""
    import traceback
    tell(answer, values, error, frames)
    trace = error.__traceback__
    for _ in range(frames):
        trace = trace.tb_next if trace is not None and trace.tb_next is not None else trace
    traceback.print_exception(type(error), error, trace)


def main():
    archive, row = sys.path.pop(0), sys.argv[1]
    sys.argv = ["-c"]
    folder = os.path.dirname(archive)
    fd = _request(archive, row)
    os.dup2(fd, 0)
    os.close(fd)
    part = os.path.join(folder, f"{row}.part")
    os.environ["LOCKSTEP_RESULT_FD"] = str(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    _runner.tell_error = _tell_here_too
    code = _runner.main()
    # A process that dies before this line leaves no answer.
    os.rename(part, os.path.join(folder, f"{row}.answer"))
    if code == _runner.REFUSED:
        with open(os.path.join(folder, f"{row}.answer"), "rb") as file:
            print(file.read()[-1000:].decode("utf-8", "replace").rpartition("\0")[2], file=sys.stderr)
    return code


def answers(folder, rows):
    """Returns the answers of the first of these rows, at least one; None: the row has no answer."""
    found, size = [], 0
    for row in rows:
        try:
            with open(os.path.join(folder, f"{row}.answer"), "rb") as file:
                if found and size + os.fstat(file.fileno()).st_size > MOST_AT_ONCE:
                    break
                found.append(file.read())
        except FileNotFoundError:
            found.append(None)
        size += len(found[-1] or b"")
    return found
