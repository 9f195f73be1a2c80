"""The progress that sync and install draw, on an emulated terminal behind a real pty."""
import fcntl
import os
import re
import struct
import subprocess
import termios
import threading

import pytest

from harness import until
from ssh_hosts import SshWorld

SGR = re.compile(r"\x1b\[[0-9;]*m")  # colours


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


class Screen:
    """A terminal that knows what we send: text, \\r, \\n, and the sequences that erase or go up. It wraps as xterm
    does: behind the last column the next character goes to the next line."""

    def __init__(self, columns):
        self.columns, self.rows, self.at, self.column, self.frames, self.wrapped = columns, [""], 0, 0, [], 0

    def feed(self, data):
        for token in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|\x1b|[^\x1b]", data):
            self.sequence(token) if token.startswith("\x1b") else self.character(token)

    def sequence(self, token):
        if SGR.fullmatch(token):
            return
        assert re.fullmatch(r"\x1b\[([0-9]*A|J|K)", token), f"unexpected sequence {token!r}"
        if token.endswith("A"):
            self.at = max(0, self.at - int(token[2:-1] or 1))
        else:
            self.frames.append(self.text())
            self.rows[self.at] = self.rows[self.at][:self.column]
            if token.endswith("J"):
                del self.rows[self.at + 1:]

    def character(self, char):
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.next_row()
        else:
            if self.column == self.columns:
                self.wrapped += 1
                self.next_row()
                self.column = 0
            row = self.rows[self.at].ljust(self.column)
            self.rows[self.at] = row[:self.column] + char + row[self.column + 1:]
            self.column += 1

    def next_row(self):
        self.at += 1
        if self.at == len(self.rows):
            self.rows.append("")

    def text(self):
        return "\n".join(self.rows).rstrip("\n")


def on_terminal(client, *words, columns=80, env=None, cwd=None):
    """Runs lockstep with its errors on a terminal; returns how it ended, the screen, and the bytes that came."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    got = []

    def read():
        try:
            while data := os.read(master, 65536):
                got.append(data)
        except OSError:  # the last writer is gone
            pass
    reader = threading.Thread(target=read)
    reader.start()
    run = client.start(*words, stderr=slave, env={"TERM": "xterm", "NO_COLOR": None, **(env or {})}, cwd=cwd)
    os.close(slave)
    ended = run.wait(120)
    reader.join(30)
    os.close(master)
    text = b"".join(got).decode()
    screen = Screen(columns)
    screen.feed(text)
    return ended, screen, text


@pytest.fixture
def place(world):
    """(client, server, where, project): a project of 40 MB in few files."""
    client, server = world()
    where = f"me@{server.addr}"
    assert client.exec(where, "true").rc == 0
    project = client.folder / "code"
    project.mkdir()
    for number in range(4):
        (project / f"data{number}").write_bytes(os.urandom(10_000_000))
    return client, server, where, project


def test_a_transfer_has_a_bar_that_fits_and_goes_away(place):
    client, _, where, project = place
    for columns in (80, 20):
        ended, screen, text = on_terminal(client, "sync", "--force", where, columns=columns, cwd=project)
        assert ended.rc == 0 and ended.out.startswith(f"{where}: ") and "4 files" in ended.out, ended
        frames = [frame for frame in screen.frames if frame]
        assert frames, text
        for frame in frames:
            assert re.fullmatch(r"(\[#*\.*\] )?[0-9.]+ [kMG]?B of 40.0 MB", frame), frames
        assert any(frame.startswith("[") for frame in frames) == (columns == 80), frames
        assert screen.wrapped == 0 and screen.text() == "" and not SGR.search(text), (text, screen.rows)
        assert client.exec(where, "rm", "-r", "code").rc == 0


def test_no_bar_where_nobody_could_see_it(place):
    client, _, where, project = place
    for words, env in (((), {"TERM": "dumb"}), (("--json",), {})):
        ended, _, text = on_terminal(client, "sync", "--force", *words, where, env=env, cwd=project)
        assert ended.rc == 0 and text == "", (ended, text)
        assert client.exec(where, "rm", "-r", "code").rc == 0
    ended = client.run("sync", "--force", where, env={"TERM": "xterm"}, cwd=project)
    assert ended.rc == 0 and "\x1b" not in ended.out + ended.err and "\r" not in ended.err, ended


def test_what_is_brought_back_is_counted(place):
    client, server, where, project = place
    assert client.run("sync", where, cwd=project).rc == 0
    made = server.homes["me"] / "code/out"
    made.write_bytes(os.urandom(30_000_000))
    made.chmod(0o644)
    ended, screen, _ = on_terminal(client, "sync", where, "--back", "out", cwd=project)
    assert ended.rc == 0 and (project / "out").read_bytes() == made.read_bytes(), ended
    assert any(re.fullmatch(r"[0-9.]+ [kMG]?B", frame) for frame in screen.frames), screen.frames
    assert screen.text() == "", screen.rows


@pytest.fixture
def tools(world):
    """(client, where, project): a host with a uv that says much, and a project with a requirements file."""
    client, server = world()
    where = f"me@{server.addr}"
    assert client.exec(where, "true").rc == 0  # a slow first contact would tell that it waits
    program = server.homes["me"] / ".local/bin/uv"
    program.parent.mkdir(parents=True)
    program.write_text("""#!/bin/sh
case "$*" in
  venv*) exec "$3" -m venv --without-pip "$4";;
  *broken*) echo "error: no such package, in words that are longer than a narrow terminal" >&2; exit 3;;
esac
echo "Downloading something with a rather long name, which has \\033[31mcolours\\033[0m of its own"
""")
    program.chmod(0o755)
    subprocess.run(["chown", "-R", "2001", server.homes["me"]], check=True)
    project = client.folder / "code"
    project.mkdir()
    return client, where, project


def test_an_install_has_a_line_that_fits_and_goes_away(tools):
    client, where, project = tools
    for columns in (80, 20):
        ended, screen, text = on_terminal(client, "install", "--force", where, "toy", columns=columns, cwd=project)
        assert ended.rc == 0 and "1 done" in ended.out, ended
        shown = [frame for frame in screen.frames if frame.startswith(where[:8])]
        lines = [line for frame in screen.frames for line in frame.split("\n")]
        assert shown and max(map(len, lines)) < columns, screen.frames
        assert screen.wrapped == 0 and screen.text() == "" and not SGR.search(text), (text, screen.rows)
    ended, screen, text = on_terminal(client, "install", where, "broken", cwd=project)
    assert ended.rc == 3 and "error: no such package" in screen.text() and "lockstep install: error:" in screen.text()
    assert not SGR.search(text)


def test_an_install_draws_nothing_where_nobody_could_see_it(tools):
    client, where, project = tools
    for words, env in ((("--json",), {}), ((), {"TERM": "dumb"})):
        ended, screen, text = on_terminal(client, "install", "--force", *words, where, "toy", env=env, cwd=project)
        assert ended.rc == 0 and "toy" in text and not re.search(r"\x1b\[[0-9]*[AJK]", text), (ended, text)
    ended = client.run("install", "--force", where, "toy", env={"TERM": "xterm"}, cwd=project)
    assert ended.rc == 0 and "\x1b" not in SGR.sub("", ended.err), ended  # but for the tool's own colours
