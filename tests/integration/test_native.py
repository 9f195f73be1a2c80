"""lockstep why --threads and --native: what every thread of every rank does, in Python and below."""
import contextlib
import json
import os
import platform
import re
import socket
import subprocess
import threading

import pytest

from harness import BINARY, SCRIPTS, SUPPORT, read, until

WAITS = SCRIPTS / "native_waits.py"
NO_RIGHTS = ("setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")


@pytest.fixture
def start(lockstep):
    """start(WORD...): a job, which is killed after the test."""
    jobs = []

    def begin(*words, **options):
        jobs.append(lockstep.start("--hang-after", "off", *words, **options))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.kill()


@pytest.fixture
def waits(lockstep, start, tmp_path):
    """A job of two ranks whose threads wait in known calls, and the threads of each rank: name -> tid."""
    folder = tmp_path / "waits"
    folder.mkdir()
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-pthread", "-o", folder / "libhold.so", SUPPORT / "libhold.c"],
                   check=True)
    job = start("--nproc-per-node", 2, WAITS, folder)
    until(lambda: (folder / "rank0").exists() and (folder / "rank1").exists(), 60, "both ranks wait")
    return job, [json.loads((folder / f"rank{rank}").read_text()) for rank in (0, 1)]


def why(lockstep, job, *options, program=()):
    return subprocess.run([*program, BINARY, "why", f"pid-{job.pid}", *options], env=lockstep.environment(),
                          capture_output=True, text=True, timeout=30)


def facts(lockstep, job, *options):
    ended = why(lockstep, job, *options, "--json")
    assert ended.returncode == 0, ended
    return json.loads(ended.stdout)


def kernel_place(pid, tid):
    """The file and the offset of the program counter, by the kernel's own files."""
    words = read(f"/proc/{pid}/task/{tid}/syscall").split()
    if words == ["running"]:
        return None
    at = int(words[-1], 16)
    image = {}
    for line in read(f"/proc/{pid}/maps").splitlines():
        span, rights, offset, _, _, *path = line.split(maxsplit=5)
        begin, end = (int(part, 16) for part in span.split("-"))
        if path and int(offset, 16) == 0:
            image[path[0]] = begin
        if begin <= at < end:
            return f"{path[0].rpartition('/')[2]}+{at - image[path[0]]:#x}"
    return None


def native_of(lockstep, job, rank):
    """Waits until all threads of a rank stand at their places, and returns them by name."""
    def look():
        (text,) = facts(lockstep, job, "--rank", str(rank), "--native")["ranks"]
        found = {thread["name"]: thread["native"] for thread in text["threads"]}
        calls = sorted(native["call"] for native in found.values())
        return calls == ["", "futex", "poll", "poll", "read", "read"] and found
    return until(look, 30, "all threads wait")


def test_native_shows_calls_and_functions(lockstep, waits):
    job, ranks = waits
    for rank, tids in enumerate(ranks):
        found = native_of(lockstep, job, rank)
        mine = {word: found[f"thread {tids[word]}"] for word in ("poll", "read", "lock", "loop")}
        mine["main"] = found["main thread"]
        (outsider,) = [name for name in found if "(outsider) outside Python" in name]
        mine["outsider"] = found[outsider]
        assert {word: native["call"] for word, native in mine.items()} == {
            "poll": "poll", "read": "read", "lock": "futex", "loop": "", "main": "poll", "outsider": "read"}
        assert [word for word, native in mine.items() if native["runs"]] == ["loop"]
        assert mine["loop"]["at"] == "" and not mine["loop"]["possible_callers"], mine
        for word, function in (("poll", "poll"), ("main", "poll"), ("read", "read"), ("outsider", "read")):
            tid = {"main": tids["pid"], "outsider": re.search(r"\d+", outsider)[0]}.get(word) or tids[word]
            assert mine[word]["at"] == f"{kernel_place(tids['pid'], tid)} ({function})", (word, mine[word])
        assert mine["lock"]["at"].startswith(kernel_place(tids["pid"], tids["lock"]) + " ("), mine["lock"]
        # The kernel may hide the function that a thread waits in.
        wchan = read(f"/proc/{tids['pid']}/task/{tids['poll']}/wchan")
        assert mine["poll"]["wchan"] == ("" if wchan == "0" else wchan), mine
        if platform.machine() == "x86_64":
            for word in ("poll", "main"):
                assert re.fullmatch(r"libhold\.so\+0x\w+ \(hold_in_poll\)", mine[word]["possible_callers"][0]), mine
            assert all(len(native["possible_callers"]) <= 16 for native in mine.values())


def one_block(lockstep, job, *options):
    """Waits until `why` shows both ranks as one block: on a loaded machine a read may exceed its time limit."""
    def look():
        said = why(lockstep, job, *options)
        assert said.returncode == 0 and not said.stderr, said
        return said.stdout.startswith("ranks 0-1, ") and said.stdout
    return until(look, 30, "both ranks do the same")


def test_threads_of_all_ranks_are_one_block(lockstep, waits):
    job, _ = waits
    native_of(lockstep, job, 0), native_of(lockstep, job, 1)
    text = one_block(lockstep, job, "--threads")
    lines = text.splitlines()
    assert re.fullmatch(r"ranks 0-1, state S(, \S+)?: own code", lines[0]), text
    assert lines[1] == "  main thread" and lines.count("  1 thread") == 4 and "native: " not in text, text
    for function in ("in_poll", "in_read", "in_lock", "in_loop"):
        assert len(re.findall(rf"native_waits\.py:\d+ in {function}\n", text)) == 1, text
    both = one_block(lockstep, job, "--threads", "--native")
    assert "  1 thread outside Python\n    native: read, " in both, both
    assert re.search(r"    native: poll, .*at libc\.so\.6\+0x\w+ \(poll\)\n", both), both
    assert "    native: runs\n" in both, both
    main = one_block(lockstep, job, "--native")
    assert main.count("native: poll") == 1 and "native: read" not in main and "main thread" in main, main
    (look,) = facts(lockstep, job, "--threads")["looks"]
    assert look["threads"] and not look["native"]
    (block,) = look["ranks"]
    assert block["ranks"] == "0-1" and sum(thread["count"] for thread in block["threads"]) == 5, block


def test_a_thousand_threads_are_a_few_lines(lockstep, start, tmp_path):
    script = tmp_path / "many.py"
    script.write_text("import pathlib, threading, sys\n"
                      "gate = threading.Event()\n"
                      "for _ in range(1000):\n    threading.Thread(target=gate.wait, daemon=True).start()\n"
                      f"pathlib.Path('{tmp_path}/ready').touch()\ngate.wait()\n")
    job = start(script)
    until((tmp_path / "ready").exists, 60, "the threads run")

    def look():
        (told,) = facts(lockstep, job, "--threads", "--native")["looks"]
        if len(told["ranks"]) != 1:
            return False
        (rank,) = told["ranks"]
        counts = [thread["count"] for thread in rank["threads"]]
        return sum(counts) + rank["threads_left_out"] == 1001 and max(counts) > 900

    until(look, 60, "all threads are seen")
    text = why(lockstep, job, "--threads")
    assert len(text.stdout.splitlines()) < 200 and re.search(r"  \d+ threads\n", text.stdout), text
    # A single rank is shown thread by thread, and cut.
    one = until(lambda: "more threads are left out" in (said := why(lockstep, job, "--rank", "0").stdout) and said, 60)
    assert "  745 more threads are left out\n" in one, one[-300:]


def test_a_worker_that_is_not_python(lockstep, start):
    job = start("--no-python", "/bin/sleep", "1000")

    def look():
        said = why(lockstep, job, "--rank", "0", "--native")
        # The state is read before the stack: it may still be that of the moment before.
        return ", state S" in said.stdout and "clock_nanosleep, " in said.stdout and said

    text = until(look, 30, "sleep sleeps").stdout
    assert re.match(r"rank 0, pid \d+, state S.*: unknown\n  main thread\n    native: clock_nanosleep, .*"
                    r"at libc\.so\.6\+0x\w+ \(clock_nanosleep\)\n", text), text
    assert why(lockstep, job, "--native").stdout.count("native: clock_nanosleep") == 1


def test_without_permission_one_line_says_so(lockstep, start, tmp_path):
    """A worker that is not dumpable is read only by root with all rights."""
    script = tmp_path / "closed.py"
    script.write_text("import ctypes, pathlib, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
                      f"pathlib.Path('{tmp_path}/ready').touch()\ntime.sleep(1000)\n")
    job = start(script, program=(*NO_RIGHTS, BINARY, "run"))
    until((tmp_path / "ready").exists, 60, "the worker sleeps")
    for words in (["--native"], ["--threads", "--native"], ["--rank", "0", "--native"]):
        said = until(lambda: (told := why(lockstep, job, *words, program=NO_RIGHTS)).stdout.count("refuses")
                     and told, 30)
        assert said.returncode == 0 and not said.stderr, said
        (line,) = [line for line in said.stdout.splitlines() if "not readable: the" in line]
        assert "the kernel refuses" in line and "native:" not in said.stdout, said


def test_words_that_exclude_each_other(lockstep):
    said = subprocess.run([BINARY, "why", "--rank", "3", "--threads"], env=lockstep.environment(),
                          capture_output=True, text=True)
    assert said.returncode == 2 and not said.stdout, said
    assert "--rank and --threads exclude each other" in said.stderr, said


@contextlib.contextmanager
def older_agent(pid, **knows):
    """An agent of an older version, which knows of /why?rank=R alone, in place of the agent of this run."""
    answer = json.dumps({"node": "n7", "words": "training", "ranks": [], "whole": True, **knows}).encode()
    asked = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0lockstep/{os.geteuid()}/{pid}-older123")
        listener.listen()

        def serve():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    asked.append(peer.recv(4096).split()[1].decode())
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                                 % (len(answer), answer))

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        try:
            yield asked
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join()


def test_an_older_agent_leads_to_one_line(lockstep, start):
    # The socket of the real agent is not seen from another network namespace.
    job = start("--no-python", "/bin/sleep", "1000", program=("unshare", "-n", BINARY, "run"))
    until(lambda: "no agent of the job answers" in why(lockstep, job).stdout, 30, "the run is seen")
    with older_agent(job.pid) as asked:
        for words, target in ((["--threads"], "/why?threads"), (["--native"], "/why?native"),
                              (["--rank", "3", "--native"], "/why?rank=3&native")):
            said = why(lockstep, job, *words)
            assert said.returncode == 1 and not said.stdout, said
            assert re.match(r"lockstep why: error: the agent of n7 is of an older version of lockstep, without "
                            rf"--{target.rpartition('?')[2].rpartition('&')[2]}", said.stderr), said
            assert target in asked, asked


def test_without_a_worker_one_line_says_so(lockstep, start):
    job = start("--no-python", "/bin/sleep", "1000", program=("unshare", "-n", BINARY, "run"))
    until(lambda: "no agent of the job answers" in why(lockstep, job).stdout, 30, "the run is seen")
    with older_agent(job.pid, threads=True, native=True):
        for words in (["--threads"], ["--native"]):
            said = why(lockstep, job, *words)
            assert said.returncode == 1 and not said.stdout, said
            assert re.match(r"lockstep why: error: no rank of \S+ runs", said.stderr), said
