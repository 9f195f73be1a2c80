"""Python stacks of other processes (src/stacks), compared with faulthandler in the same process.

Interpreters: Debian 12's, those of the peers, and any in ~/.pyenv.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

from harness import BUILD, PYTHON, SCRIPTS, killed_at_end, peer, read, until

TOOL = BUILD / "tests/stacks_tool"
SHAPES = SCRIPTS / "stacks_shapes.py"
PYENV = {path.parts[-3]: path for path in pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python3")
         if re.fullmatch(r"3\.([89]|1[0-4])\.\d+", path.parts[-3])}
PYTHONS = ["debian-12", "debian-13", "debian-sid", *sorted(PYENV)]
root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")
every_python = pytest.mark.parametrize("python", PYTHONS)


def program(python):
    if python == "debian-12":
        return PYTHON
    if python in PYENV:
        return PYENV[python]
    return peer({"debian-13": "2.6", "debian-sid": "2.14"}[python])


def version_of(python):
    asked = subprocess.run([program(python), "-c", "import sys; print(*sys.version_info[:2])"], check=True,
                           stdout=subprocess.PIPE, text=True)
    return tuple(map(int, asked.stdout.split()))


def tool(*words):
    """Returns the objects that the tool prints, one per line."""
    ended = subprocess.run([TOOL, *map(str, words)], check=True, stdout=subprocess.PIPE, timeout=120)
    return [json.loads(line) for line in ended.stdout.splitlines()]


def answer_of(pid, verb="read"):
    """Reads again if a loaded machine has exceeded the time limit of a read."""
    return until(lambda: next((answer for answer in tool(verb, pid) if answer.get("reason") != "slow"), None), 60)


def threads_of(pid, verb="read"):
    answer = answer_of(pid, verb)
    assert "threads" in answer, answer
    return answer["threads"]


@contextlib.contextmanager
def standing(python, shape, folder, before=()):
    """Yields the pid of a process with this shape of stack. pid 0: `before` makes it a child."""
    with killed_at_end(*before, program(python), SHAPES, shape, folder) as process:
        until(lambda: (folder / "ready").exists(), 60, "the process has arrived")
        yield process.pid


def settled(pid, verb="read"):
    """The stacks once the process sleeps and two reads agree: it has arrived, also in C. On a full machine two reads
    also agree about a process that waits for a CPU on its way."""
    last = []

    def same():
        last.append(threads_of(pid, verb))
        sleeps = read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] == "S"
        return sleeps and len(last) > 1 and last[-1] == last[-2]

    until(same, 20, "the process sleeps, and the stacks stay the same")
    return last[-1]


def told_by_faulthandler(pid, folder):
    """Stacks as lists of (function, file, line), in its order of threads: the main thread is the last."""
    os.kill(pid, signal.SIGUSR1)
    # It writes frame by frame. Code that ran by exec() has a <module> of its own; that of the script is the last.
    until(lambda: re.search(rf'  File "{SHAPES}", line \d+ in <module>\n', read(folder / "faulthandler")), 20,
          "faulthandler has written all of it")
    stacks = []
    for line in read(folder / "faulthandler").splitlines():
        if "most recent call first" in line:
            stacks.append([])
        elif line.startswith("  File"):
            file, number, function = re.fullmatch(r'  File "(.*)", line (\d+) in (.*)', line).groups()
            stacks[-1].append((function.rpartition(".")[2], file, int(number)))
    return stacks


def as_faulthandler(threads):
    """Returns the stack as faulthandler prints it: with escapes for non-ASCII, without classes before about 3.13."""
    def plain(text):
        return "".join(c if " " <= c <= "~" else c.encode("ascii", "backslashreplace").decode() if c > "\x7f"
                       else f"\\x{ord(c):02x}" for c in text)
    return [[(plain(function).rpartition(".")[2], plain(file), line) for function, file, line in thread["frames"]]
            for thread in threads]


@every_python
@pytest.mark.parametrize("shape", ["sleep", "model", "generators", "async", "odd_names", "threads"])
def test_stacks_are_what_faulthandler_says(python, shape, tmp_path):
    with standing(python, shape, tmp_path) as pid:
        threads = settled(pid)
        assert all(thread["whole"] and thread["frames"] for thread in threads), threads
        assert as_faulthandler(threads) == told_by_faulthandler(pid, tmp_path)
        main = threads_of(pid, "main")
        assert main == [thread for thread in threads if thread["tid"] == pid], (main, threads)
        if version_of(python) >= (3, 11):
            tids = {int(name) for name in os.listdir(f"/proc/{pid}/task")}
            assert {thread["tid"] for thread in threads} <= tids
        assert not any(thread["gil"] for thread in threads)


@every_python
def test_names_are_whole(python, tmp_path):
    """UCS-1, UCS-2 and UCS-4, control characters, and qualified names where there are any."""
    with standing(python, "odd_names", tmp_path) as pid:
        frames = settled(pid)[0]["frames"]
        assert {"b\u00fccher", "\u51fd\u6570", "\U00020000x", "plain"} <= {frame[0] for frame in frames}
        assert {"b\u00fccher_\u00e9.py", "\u6587\u4ef6.py", "\U00020000.py",
                "\x1b[31m<script>.py"} <= {frame[1] for frame in frames}
    (tmp_path / "ready").unlink()
    with standing(python, "model", tmp_path) as pid:
        names = [frame[0] for frame in settled(pid)[0]["frames"]]
        assert ("Model.wait" if version_of(python) >= (3, 11) else "wait") in names


@every_python
def test_a_call_that_keeps_the_gil(python, tmp_path):
    with standing(python, "holds_the_gil", tmp_path) as pid:
        # A thread that waits for the GIL waits in vain.
        [thread] = settled(pid)
        assert thread["gil"] and thread["whole"] and thread["tid"] == pid
        assert thread["frames"][0][0] == "holds_the_gil"
        assert threads_of(pid, "main") == [thread]


@every_python
def test_a_stopped_process(python, tmp_path):
    with standing(python, "threads", tmp_path) as pid:
        before = settled(pid)
        os.kill(pid, signal.SIGSTOP)
        until(lambda: read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] == "T")
        assert threads_of(pid) == before


@every_python
def test_ten_thousand_frames(python, tmp_path):
    with standing(python, "deep", tmp_path) as pid:
        deep = [thread for thread in settled(pid) if not thread["whole"]]
        assert len(deep) == 1 and len(deep[0]["frames"]) == 256
        assert [frame[0].rpartition(".")[2] for frame in deep[0]["frames"][:3]] == ["sleep", "down", "down"]


def whole_thousand(threads):
    return len(threads) == 1001 and all(thread["whole"] and thread["frames"] for thread in threads) and threads


@every_python
def test_a_thousand_threads(python, tmp_path):
    with standing(python, "many_threads", tmp_path) as pid:
        # A read ends after 100 ms, which a loaded machine may give to others.
        threads = until(lambda: whole_thousand(threads_of(pid)), 60)
        assert threads[-1]["tid"] == pid
        until(lambda: tool("time", 3, pid)[0]["threads"] == 1001, 60)


@every_python
def test_the_child_of_a_fork_in_a_thread(python, tmp_path):
    with standing(python, "forked", tmp_path):
        child = int(until(lambda: (tmp_path / "child").exists() and read(tmp_path / "child")))
        try:
            [main] = settled(child, "main")
            assert main["tid"] == child and [frame[0].rpartition(".")[2] for frame in main["frames"][:2]] == [
                "sleep", "fork"]
        finally:
            os.kill(child, signal.SIGKILL)


def lines_of(file, cache={}):
    if file not in cache:
        cache[file] = 4 if file == "/proc/self/exe" else len(read(file).splitlines())
    return cache[file]


@every_python
def test_a_busy_process_shows_no_garbage(python, tmp_path):
    """100 reads: each frame's file exists and has this line; most stacks hold together."""
    with standing(python, "busy", tmp_path) as pid:
        until(lambda: "ready" not in [frame[0] for frame in threads_of(pid)[0]["frames"]])
        reads = tool("repeat", 100, pid)
        assert len(reads) == 100
        whole = 0
        for look in reads:
            [thread] = look["threads"]
            whole += thread["whole"]
            if thread["whole"]:
                assert thread["frames"][-1][0] == "<module>", thread
            for function, file, line in thread["frames"]:
                if file != "/proc/self/exe":
                    assert file == str(SHAPES), thread
                assert 0 <= line <= lines_of(file), thread
                assert re.fullmatch(r"[\w.<>]+", function), thread
        print(f"{python}: {whole} of 100 stacks of a busy thread are whole", file=sys.stderr)
        assert whole > 0


@every_python
def test_a_process_that_ends_meanwhile(python, tmp_path):
    with standing(python, "threads", tmp_path) as pid:
        with killed_at_end(TOOL, "repeat", "20000", str(pid), stdout=subprocess.PIPE) as reader:
            first = [reader.stdout.readline() for _ in range(3)]
            assert all(b"threads" in line for line in first)
            os.kill(pid, signal.SIGKILL)
            rest = reader.stdout.read().splitlines()
            assert reader.wait(60) == 0
        last = json.loads(rest[-1])
        assert last["reason"] == "gone" and "has ended" in last["sentence"], last


@root
def test_a_process_of_another_user(open_folder):
    """A user may read their own processes without any capability, and no others."""
    shutil.copy(TOOL, open_folder / "stacks_tool")
    os.chmod(open_folder, 0o777)
    unprivileged = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--no-new-privs",
                    "--inh-caps=-all", "--bounding-set=-all"]

    def asked(pid):
        ended = subprocess.run([*unprivileged, open_folder / "stacks_tool", "read", str(pid)], check=True,
                               stdout=subprocess.PIPE, timeout=120)
        return json.loads(ended.stdout)

    with standing("debian-12", "sleep", open_folder) as pid:
        answer = asked(pid)
        assert answer.get("reason") == "denied" and "the kernel refuses" in answer["sentence"], answer
    (open_folder / "ready").unlink()
    script = open_folder / "script.py"
    script.write_text(f"import pathlib, time\npathlib.Path({str(open_folder / 'ready')!r}).touch()\ntime.sleep(1000)\n")
    with killed_at_end(*unprivileged, PYTHON, script) as own:
        until((open_folder / "ready").exists, 60)
        # The file is there a moment before line 3 begins, and a loaded machine may stop a read.
        until(lambda: [thread["frames"] for thread in asked(own.pid).get("threads", [])]
              == [[["<module>", str(script), 3]]], 60, "the process sleeps in line 3")


@root
def test_a_process_in_a_chroot(tmp_path):
    """No file is at the path of the interpreter in the memory map."""
    place = tmp_path / "root"
    place.mkdir()
    enter = ["unshare", "-m", "sh", "-c", 'mount --rbind / "$0" && exec chroot "$0" "$@"', place]
    with standing("debian-12", "threads", tmp_path, enter) as pid:
        assert os.readlink(f"/proc/{pid}/root") == str(place)
        threads = settled(pid)
        assert len(threads) == 4 and {thread["tid"] for thread in threads} == {
            int(name) for name in os.listdir(f"/proc/{pid}/task")}


@root
def test_a_process_in_another_pid_namespace(tmp_path):
    with standing("debian-12", "threads", tmp_path, ["unshare", "--pid", "--fork", "--kill-child"]) as parent:
        [pid] = map(int, read(f"/proc/{parent}/task/{parent}/children").split())
        threads = settled(pid)
        assert len(threads) == 4
        assert {thread["tid"] for thread in threads} == {int(name) for name in os.listdir(f"/proc/{pid}/task")}
        assert threads_of(pid, "main") == [thread for thread in threads if thread["tid"] == pid]


def test_an_interpreter_that_was_replaced(tmp_path):
    copy = tmp_path / "python3.11"
    shutil.copy(os.path.realpath(PYTHON), copy)
    with killed_at_end(copy, SHAPES, "sleep", tmp_path) as process:
        until((tmp_path / "ready").exists, 60)
        copy.unlink()
        copy.write_text("something else\n")
        assert settled(process.pid)[0]["frames"][0][0] == "sleep"


def test_what_is_not_python():
    with killed_at_end("sleep", "1000") as process:
        assert answer_of(process.pid).get("reason") == "not_python"
        process.kill()
        process.wait()
        answer = answer_of(process.pid)
        assert answer == {"reason": "gone", "sentence": f"the stacks of process {process.pid} are not readable: "
                                                        "the process has ended"}


def test_another_program_in_the_same_process(tmp_path):
    """After exec() a reader that was attached says so."""
    script = tmp_path / "script.py"
    script.write_text("import os, sys\nsys.stdin.readline()\nos.execv('/bin/sleep', ['sleep', '1000'])\n")
    with killed_at_end(PYTHON, script, stdin=subprocess.PIPE, text=True) as process:
        until(lambda: "threads" in tool("read", process.pid)[0])
        with killed_at_end(TOOL, "repeat", "1000000", str(process.pid), stdout=subprocess.PIPE) as reader:
            reader.stdout.readline()
            process.stdin.write("go\n")
            process.stdin.flush()
            until(lambda: json.loads(reader.stdout.readline()).get("reason") in ("changed", "gone"), 60)
