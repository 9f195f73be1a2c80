"""lockstep sync: the files of a project on hosts with a real sshd, rsync and git. Files that are deleted here are
removed there, files of other users never are, and the next sync repairs an interrupted one."""
import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess

import pytest

from harness import until
from ssh_hosts import SshWorld


# Little goes in pieces of our own, much by rsync.
MUCH = 9_000_000


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def git(folder, *args):
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main", *args],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tree(folder):
    """path -> (kind, content, executable, time) of all files and links."""
    found = {}
    folder = os.fsencode(folder)
    for base, folders, files in os.walk(folder):
        for name in files + [each for each in folders if os.path.islink(os.path.join(base, each))]:
            path = os.path.join(base, name)
            info = os.lstat(path)
            key = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[key] = ("link", os.readlink(path))
            else:
                with open(path, "rb") as file:
                    found[key] = ("file", file.read(), bool(info.st_mode & 0o100), info.st_mtime_ns)
    return found


class Project:
    """A folder of the client's, and where it is to lie on a host."""

    def __init__(self, client, name="project", repository=True):
        self.client, self.name = client, name
        self.folder = client.root_home / "code" / name
        self.folder.mkdir(parents=True)
        if repository:
            git(self.folder, "init")

    def write(self, path, content="x"):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def sync(self, *args, where=None, rc=0, **options):
        """Of the report: the hosts, or the only one."""
        run = self.client.start("sync", "--json", *args, cwd=self.folder, **options)
        ended = run.wait(60)
        assert ended.rc == rc, ended
        if not ended.out:
            return ended
        hosts = json.loads(ended.out)["hosts"]
        return hosts[0] if len(hosts) == 1 else hosts

    def sent(self):
        return {path: what for path, what in tree(self.folder).items() if not path.startswith(b".git/")}

    def there(self, server, user="me"):
        return server.homes[user] / self.name


def one_error(ended, code, *words):
    lines = [line for line in ended.err.splitlines() if "error:" in line]
    assert ended.rc == code, ended
    assert len(lines) == 1 and all(word in lines[0] for word in words), ended


def as_me(path, write):
    """Runs a command in the user's home on the host."""
    write(path)
    subprocess.run(["chown", "-R", "-h", "2001", path], check=True)


def test_a_project_arrives_and_follows(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write(".gitignore", "*.log\nbuild/\n")
    project.write("src/train.py", "print(1)\n")
    project.write("run.sh").chmod(0o755)
    project.write("build/out")
    project.write("x.log")
    (project.folder / "link").symlink_to("src/train.py")
    (project.folder / "out").symlink_to("/etc")
    host = project.sync(where)
    assert (host["files"], host["removed"], host["place"]) == (5, 0, "/home/me/project"), host
    (project.folder / "build/out").unlink()
    (project.folder / "x.log").unlink()
    assert tree(project.there(server)) == project.sent()
    host = project.sync(where)
    assert (host["files"], host["bytes"], host["removed"]) == (0, 0, 0), host
    project.write("src/train.py", "print(2)\n")
    project.write("src/deep/new.py")
    (project.folder / "run.sh").unlink()
    (project.folder / "link").unlink()
    (project.folder / "link").symlink_to("run.sh")
    host = project.sync(where)
    assert (host["files"], host["removed"], host["edited"]) == (3, 1, 0), host
    assert tree(project.there(server)) == project.sent()
    shutil.rmtree(project.folder / "src")
    assert project.sync(where)["removed"] == 2
    assert tree(project.there(server)) == project.sent()
    assert not (project.there(server) / "src").exists(), "an empty folder stays"
    ended = client.run("sync", where, cwd=project.folder)
    assert ended.rc == 0 and ended.out.startswith(f"{where}: nothing to do, "), ended
    assert ended.err == "", ended


def test_the_summary_is_one_plain_line(world):
    client, server = world()
    client.exec(f"me@{server.addr}", "true")  # a slow first contact would tell that it waits
    project = Project(client)
    project.write("a", "x" * 1500)
    project.write("b", "y" * 1500)
    ended = client.run("sync", f"me@{server.addr}", cwd=project.folder)
    assert ended.rc == 0 and ended.err == "", ended
    assert ended.out.startswith(f"me@{server.addr}: 2 files, 3."), ended
    (project.folder / "a").unlink()
    ended = client.run("sync", f"me@{server.addr}", cwd=project.folder)
    assert ended.out.startswith(f"me@{server.addr}: 0 files, 0 B sent, 1 removed, "), ended


def test_what_others_put_there_stays(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("data/mine", "1")
    project.write("gone", "1")
    project.sync(where)
    there = project.there(server)
    as_me(there / "data/theirs", lambda path: path.write_text("result"))
    as_me(there / "results", lambda path: path.mkdir())
    shutil.rmtree(project.folder / "data")
    (project.folder / "gone").unlink()
    project.write("new")
    assert project.sync(where)["removed"] == 2
    assert set(tree(there)) == {b"data/theirs", b"new"}
    assert (there / "results").is_dir()


def test_edits_there_are_overwritten_and_told_but_not_deleted(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("a", "1")
    project.write("b", "1")
    project.sync(where)
    there = project.there(server)
    (there / "a").write_text("edited")
    (there / "b").write_text("edited")
    ended = client.run("sync", "--dry-run", where, cwd=project.folder)
    assert "2 files were changed there" in ended.err and "would be overwritten" in ended.err, ended
    assert (there / "a").read_text() == "edited"
    (project.folder / "b").unlink()
    ended = client.run("sync", where, cwd=project.folder)
    assert ended.rc == 0, ended
    assert "1 file was changed there since it was sent, and overwritten" in ended.err, ended
    assert "gone here, but made or changed there, so these files stay: b" in ended.err, ended
    assert (there / "a").read_text() == "1" and (there / "b").read_text() == "edited"
    assert client.run("sync", where, cwd=project.folder).err == ""


def test_files_in_the_way_are_named_and_forced(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    for name in ("a", "folder/file", "same", "link/inside"):
        project.write(name, "ours")
    there = project.there(server)
    outside = server.homes["me"] / "outside"
    as_me(outside, lambda path: path.mkdir())
    as_me(there, lambda path: path.mkdir())
    as_me(there / "a", lambda path: path.write_text("theirs"))
    as_me(there / "link", lambda path: path.symlink_to(outside))
    shutil.copy2(project.folder / "same", there / "same")
    before = tree(there)
    ended = client.run("sync", where, cwd=project.folder)
    one_error(ended, 1, where, "/home/me/project", "Lockstep did not send", ": a, link", "--force")
    assert tree(there) == before
    assert client.run("sync", "--force", where, cwd=project.folder).rc == 0
    assert tree(there) == project.sent()
    assert not list(outside.iterdir()), "a link led out of the tree"


def test_a_folder_of_others_is_never_replaced(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("a/b", "1")
    project.sync(where)
    there = project.there(server)
    shutil.rmtree(project.folder / "a")
    project.write("a", "now a file")
    as_me(there / "a/theirs", lambda path: path.write_text("x"))
    for options in ((), ("--force",)):
        one_error(client.run("sync", *options, where, cwd=project.folder), 1, where,
                  "files that Lockstep did not send", ": a")
    assert (there / "a/b").exists() and (there / "a/theirs").exists()
    (there / "a/theirs").unlink()
    assert client.run("sync", where, cwd=project.folder).rc == 0
    assert tree(there) == project.sent()
    (project.folder / "a").unlink()
    project.write("a/b/c", "a folder again")
    assert client.run("sync", where, cwd=project.folder).rc == 0
    assert tree(there) == project.sent()


def test_another_project_does_not_take_over_the_place(world):
    client, server = world()
    where = f"me@{server.addr}"
    first = Project(client)
    first.write("a")
    first.sync(where)
    second = client.root_home / "other/project"
    second.mkdir(parents=True)
    (second / "b").write_text("x")
    ended = client.run("sync", where, cwd=second)
    one_error(ended, 1, where, f"holds the tree of {client.name}:{first.folder}", f"{client.name}:{second}",
              "--force", "SRC:DST")
    assert set(tree(first.there(server))) == {b"a"}
    assert client.run("sync", where, f"{second}:work/second", cwd=second).rc == 0
    assert (server.homes["me"] / "work/second/b").exists()
    assert client.run("sync", "--force", where, cwd=second).rc == 0
    assert set(tree(first.there(server))) == {b"b"}


def test_a_run_of_a_project_whose_place_is_taken(world):
    """Another project of the same name, or this project after a move."""
    client, server = world()
    where = f"me@{server.addr}"
    first = Project(client)
    first.write("a")
    first.sync(where)
    second = client.root_home / "other/project"
    (second / "src").mkdir(parents=True)
    (second / "src/b").write_text("second's")
    git(second, "init")
    run = ("run", "--on", where, "--no-python")
    one_error(client.run(*run, "true", cwd=second), 1, "holds the tree of", "--sync SRC:DST", "--force")
    (second / "reqs.txt").touch()
    one_error(client.run("install", where, "reqs:reqs.txt", cwd=second), 1, "holds the tree of",
              "install --project SRC:DST", "sync --force")
    (second / "reqs.txt").unlink()
    for words, place in ((f"{second}:work/second", "work/second"), (":~/work/third/", "work/third"),
                         (":/home/me/fourth", "fourth")):
        ended = client.run(*run, "--sync", words, "cat", "b", cwd=second / "src")
        assert (ended.rc, ended.out) == (0, "second's"), ended
        assert set(tree(server.homes["me"] / place)) == {b"src/b"}
    # The job's folder need not lie in the project: the path of the script there leads back to it.
    (second / "src/say.py").write_text("print(open('b').read())")
    (server.homes["me"] / "data").mkdir()
    (server.homes["me"] / "data/b").write_text("data's")
    ended = client.run("run", "--on", where, "--sync", f"{second}:work/second", "--cwd", "data", second / "src/say.py",
                       cwd=second / "src")
    assert (ended.rc, ended.out) == (0, "data's\n"), ended
    (second / "src/say.py").unlink()
    one_error(client.run(*run, "--sync", ":../x", "true", cwd=second), 1, "must be a plain path")
    one_error(client.run(*run, "--sync", "src:", "true", cwd=second), 2, "must name a place")
    one_error(client.run(*run, "--sync", "none", "--force", "true", cwd=second), 2, "--sync none")
    (second / "src/mod.py").write_text("def one():\n    return 1\n")
    (server.homes["me"] / "fourth/result").write_text("x")
    assert client.run("sync", where, ":fourth", cwd=second).rc == 0
    ended = client.run("call", where, "mod:one", "--project", ":fourth", cwd=second / "src")
    assert (ended.rc, ended.out) == (0, "1\n"), ended
    assert client.run("sync", where, ":fourth", "--back", "../result", cwd=second / "src").rc == 0
    assert (second / "result").read_text() == "x"
    ended = client.run(*run, "--force", "cat", "src/b", cwd=second)
    assert (ended.rc, ended.out) == (0, "second's") and "removes 1 file there" in ended.err, ended


@pytest.mark.parametrize("way", ["pieces", "rsync"])
def test_any_name_arrives(world, way):
    client, server = world(users={"me": "/usr/bin/fish"})
    where = f"me@{server.addr}"
    project = Project(client, name="a project's $HOME")
    for name in ("new\nline", "-rf", " lead", "trail ", "#x", ";x", "a'b\"c", "*", "~", "$HOME", "\\", "[x]",
                 ":colon", "über", os.fsdecode(b"\xff\xfe"), "deep/new\n/x"):
        project.write(name, name.encode(errors="surrogateescape"))
    if way == "rsync":
        project.write("much", os.urandom(MUCH))
    count = 17 if way == "rsync" else 16
    host = project.sync(where)
    assert host["files"] == count, host
    assert tree(project.there(server)) == project.sent()
    assert project.sync(where)["files"] == 0
    for path in list(project.folder.iterdir()):
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert project.sync(where)["removed"] == count
    assert tree(project.there(server)) == {}


@pytest.mark.parametrize("way", ["pieces", "rsync"])
def test_a_login_shell_that_talks_does_no_harm(world, way):
    client, server = world()
    (server.homes["me"] / ".bashrc").write_text("echo Welcome; echo oops >&2\n")
    project = Project(client)
    project.write("a", os.urandom(MUCH if way == "rsync" else 1))
    assert project.sync(f"me@{server.addr}")["files"] == 1
    assert tree(project.there(server)) == project.sent()


def test_several_hosts_and_one_that_is_away(world):
    client, *servers = world(3)
    hosts = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    assert client.run("cluster", "add", "gpus", *hosts).rc == 0
    project = Project(client)
    project.write("a", "1")
    reports = project.sync("gpus")
    assert [host["name"] for host in reports] == ["gpus-0", "gpus-1", "gpus-2"]
    for server in servers:
        assert tree(project.there(server)) == project.sent()
    servers[1].stop_sshd()
    client.forget_masters()
    project.write("b", "2")
    reports = project.sync("gpus", rc=255)
    assert [host["code"] for host in reports] == [0, 255, 0]
    assert "gpus-1: " in reports[1]["error"] and "connection refused" in reports[1]["error"]
    for server in (servers[0], servers[2]):
        assert tree(project.there(server)) == project.sent()
    servers[1].start_sshd()
    assert project.sync("gpus", "--nodes", "1")["files"] == 1
    assert tree(project.there(servers[1])) == project.sent()


def test_what_rsync_calls_gives_a_cause_and_no_notice(world):
    """The first line on rsync's stderr is the cause of a failed transfer."""
    client, server = world()
    place = json.dumps([{"name": "gpu", "user": "me", "host": server.addr}])
    os.kill(server.sshd.process.pid, signal.SIGSTOP)  # logins begin there and go no further
    shell = client.start("rsync-shell", "gpu", "true", env={"LOCKSTEP_RSYNC_PLACE": place})
    other = client.start("exec", f"me@{server.addr}", "true")
    until(lambda: "waiting for" in other.err(), 30, "the wait is told")
    assert shell.err() == ""
    for run in (shell, other):
        run.process.send_signal(signal.SIGINT)
        run.wait(30)
    os.kill(server.sshd.process.pid, signal.SIGCONT)


def test_a_place_where_nothing_can_be_written_is_named(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("a")
    as_me(server.homes["me"] / "project", lambda path: path.write_text("a file"))
    one_error(client.run("sync", where, cwd=project.folder), 1, where, "/home/me/project exists and is not a folder")
    one_error(client.run("sync", where, ".:/usr/local/x", cwd=project.folder), 1, where, "/usr/local/x",
              "Permission denied")
    one_error(client.run("sync", where, ".:/etc", cwd=project.folder), 1, where, "/etc", "Permission denied")
    one_error(client.run("sync", where, ".:/home", cwd=project.folder), 1, where, "/home", "all of the home")
    one_error(client.run("sync", where, ".:~", cwd=project.folder), 1, where, "all of the home")
    one_error(client.run("sync", where, ".:../x", cwd=project.folder), 1, where, "must be a plain path")


def test_bad_input_starts_nothing(world):
    client, server = world()
    where = f"me@{server.addr}"
    one_error(client.run("sync"), 2, "no host is named")
    one_error(client.run("sync", where, "a", "b"), 2, "'b' is one word too many")
    one_error(client.run("sync", where, "src:"), 2, "must name a place")
    one_error(client.run("sync", where, cwd=client.root_home), 2, "which is your home")
    one_error(client.run("sync", where, "nowhere"), 1, "nowhere", "No such file")
    assert "Connection from" not in server.sshd.err()


@pytest.mark.parametrize("way", ["pieces", "rsync"])
def test_a_full_disk_is_named_and_mended(world, way):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    for number in range(8):
        project.write(f"file{number}", os.urandom(300_000 if way == "pieces" else 1_500_000))
    server._inside("mkdir", "-p", "/mnt/small")
    server._inside("mount", "-t", "tmpfs", "-o", "size=1m,uid=2001,mode=0700", "tmpfs", "/mnt/small")
    ended = client.run("sync", where, ".:/mnt/small/project", cwd=project.folder)
    one_error(ended, 1, where, "No space left on device")
    server._inside("mount", "-o", "remount,size=20m", "/mnt/small")
    ended = client.run("sync", where, ".:/mnt/small/project", cwd=project.folder)
    assert ended.rc == 0 and "were changed" not in ended.err, ended
    copy = server.folder / "copy"
    server._inside("cp", "-a", "/mnt/small/project", copy)
    assert tree(copy) == project.sent()


@pytest.mark.parametrize("who", ["client", "rsync", "host", "asked"])
def test_a_transfer_that_was_killed_is_mended_by_the_next(world, who):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("old", "1")
    project.sync(where)
    project.write("old", os.urandom(200_000))
    there = project.there(server)
    begun = server.homes["me"] / ".local/state/lockstep/synced"
    for number in range(4):
        project.write(f"big{number}", os.urandom(30_000_000))
    run = client.start("sync", where, cwd=project.folder)
    until(lambda: any(each.stat().st_size for drafts in begun.glob("*.drafts") for each in drafts.iterdir())
          or run.process.poll() is not None, 30, "files are under way")
    if who == "client":
        run.process.kill()
    elif who == "asked":
        run.signal(signal.SIGINT)
    else:
        machine = client if who == "rsync" else server
        for pid, comm in machine.host.processes().items():
            if comm == "rsync":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    ended = run.wait(30)
    # 0: the kill came too late, or the files were sent once more by our own way.
    if who == "asked":
        assert ended.rc in (0, 128 + signal.SIGINT), ended
    elif who != "client" and ended.rc != 0:
        one_error(ended, 1, where)
    server.nothing_left()
    for path in there.iterdir():  # each file is as it was, or whole
        assert path.read_bytes() in (b"1", (project.folder / path.name).read_bytes())
    (project.folder / "big3").unlink()
    ended = client.run("sync", where, cwd=project.folder)
    assert ended.rc == 0 and "changed" not in ended.err, ended
    assert tree(there) == project.sent()
    assert project.sync(where)["files"] == 0


def make_promisor(folder, program):
    """A sparse index without a tree that only the remote has: git starts the remote's program to get it."""
    git(folder, "init")
    for name in ("in/x", "out/y"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1")
    for words in (("add", "-A"), ("commit", "-m", "x"), ("sparse-checkout", "init", "--cone", "--sparse-index"),
                  ("sparse-checkout", "set", "in"), ("config", "core.repositoryformatversion", "1"),
                  ("config", "extensions.partialClone", "origin"), ("config", "remote.origin.promisor", "true"),
                  ("config", "remote.origin.url", str(folder)), ("config", "protocol.file.allow", "always"),
                  ("config", "remote.origin.uploadpack", str(program))):
        git(folder, *words)
    lost = subprocess.run(["git", "rev-parse", "HEAD:out"], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    (folder / ".git/objects" / lost.stdout[:2] / lost.stdout.strip()[2:]).unlink()


def test_a_repository_of_another_user_is_taken_only_as_git_takes_it(world):
    client, server = world()
    where = f"me@{server.addr}"
    shared = client.root_home / "shared"
    shared.mkdir()
    program, ran = client.folder / "program", client.folder / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    make_promisor(shared, program)
    subprocess.run(["chown", "-R", "2001", shared / ".git"], check=True)
    (shared / "theirs").write_text("x")
    work = shared / "work"
    work.mkdir()
    (work / "a").write_text("1")
    words = f"git: fatal: detected dubious ownership in repository at '{shared}'"
    one_error(client.run("sync", where, cwd=work), 2, words, "safe.directory", "--sync DIR")
    one_error(client.run("run", "--on", where, "--no-python", "true", cwd=work), 2, words)
    assert "Connection from" not in server.sshd.err()
    ended = client.run("sync", where, ".", cwd=work)
    assert ended.rc == 0 and words in ended.err and ": 1 file," in ended.out, ended
    assert set(tree(server.homes["me"] / "work")) == {b"a"}
    assert not ran.exists()
    (client.root_home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {shared}\n")
    assert client.run("sync", where, cwd=work).rc == 0
    assert set(tree(server.homes["me"] / "shared")) == {b"in/x", b"theirs", b"work/a"}
    (client.root_home / ".gitconfig").write_text("[safe]\n\tdirectory = /elsewhere\n")
    one_error(client.run("sync", where, cwd=work), 2, words)
    subprocess.run(["chown", "-R", "0", shared / ".git"], check=True)
    (client.root_home / ".gitconfig").unlink()
    assert client.run("sync", where, cwd=work).out.startswith(f"{where}: nothing to do")
    assert not ran.exists()


def make_trap(client):
    """Makes a program that notes its runs, and returns a way to read the notes."""
    program, ran = client.folder / "trap", client.folder / "trapped"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\nexit 1\n')
    program.chmod(0o755)
    return program, lambda: ran.read_text() if ran.exists() else ""


def set_traps(folder, program):
    """Every setting of a repository that names a program which git may run, as a hostile archive could have them."""
    hooks = folder / ".git/traps"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc", "post-checkout"):
        (hooks / name).symlink_to(program)
    names = ("core.fsmonitor", "core.pager", "pager.ls-files", "core.sshCommand", "core.gitProxy", "core.askPass",
             "core.editor", "core.alternateRefsCommand", "diff.external", "filter.x.clean", "filter.x.smudge",
             "filter.x.process", "diff.x.command", "diff.x.textconv", "gpg.program")
    for words in (*((name, program) for name in names), ("core.hooksPath", hooks), ("filter.x.required", "true"),
                  ("credential.helper", f"!{program}"), ("alias.ls-files", f"!{program}"),
                  ("core.untrackedCache", "true")):
        git(folder, "config", *map(str, words))
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n")


def test_the_settings_of_a_repository_run_nothing(world):
    """A .git that came with an archive belongs to the user who unpacked it."""
    client, server = world()
    where = f"me@{server.addr}"
    program, trapped = make_trap(client)
    project = Project(client)
    make_promisor(project.folder, program)
    (project.folder / "sub").mkdir()
    git(project.folder / "sub", "init")
    project.write("sub/y")
    git(project.folder / "sub", "add", "-A")
    for folder in (project.folder / "sub", project.folder):
        set_traps(folder, program)
    subprocess.run(["git", "status"], cwd=project.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert trapped(), "git itself springs none of the traps"
    (client.folder / "trapped").unlink()
    os.utime(project.folder / "in/x")
    # Git in a trap's environment: variables that name a repository or programs are another one's.
    ended = project.sync(where, env={"GIT_EXTERNAL_DIFF": program, "GIT_SSH_COMMAND": program, "GIT_PAGER": program})
    assert not trapped()
    assert set(tree(project.there(server))) == {b".gitattributes", b"in/x", b"sub/.gitattributes", b"sub/y"}, ended
    assert client.run("run", "--on", where, "--no-python", "true", cwd=project.folder).rc == 0
    assert not trapped()


def test_a_repository_that_names_another_folder_sends_its_own_files(world):
    client, server = world()
    where = f"me@{server.addr}"
    secret = client.root_home / "secret"
    (secret / "dir").mkdir(parents=True)
    for name in ("key", "a", "dir/key"):
        (secret / name).write_text("secret")
    project = Project(client)
    project.write("a", "mine")
    project.write("b", "mine")
    (project.folder / "dir").symlink_to(secret / "dir")
    git(project.folder, "config", "core.worktree", str(secret))
    project.sync(where)
    assert tree(project.there(server)) == project.sent() and len(project.sent()) == 3
    # A worktree's .git that leads to a repository of another user.
    theirs = client.root_home / "theirs"
    theirs.mkdir()
    git(theirs, "init")
    subprocess.run(["chown", "-R", "2001", theirs / ".git"], check=True)
    linked = Project(client, "linked", repository=False)
    linked.write("c")
    linked.write(".git", f"gitdir: {theirs}/.git\n")
    one_error(client.run("sync", where, cwd=linked.folder), 2, "detected dubious ownership in repository at")
    assert not linked.there(server).exists()


def test_a_folder_that_everybody_can_write_to_is_named_or_not_sent(world):
    client, server = world()
    where = f"me@{server.addr}"
    shared = client.root_home / "scratch"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "a").write_text("1")
    for words in (("sync", where), ("run", "--on", where, "--no-python", "true")):
        one_error(client.run(*words, cwd=shared), 2, "any user can write there", "--sync DIR")
    assert "Connection from" not in server.sshd.err()
    assert client.run("run", "--on", where, "--sync", ".", "--no-python", "true", cwd=shared).rc == 0
    assert (server.homes["me"] / "scratch/a").exists()


def test_nothing_behind_links_is_sent(world):
    client, server = world()
    where = f"me@{server.addr}"
    secret = client.root_home / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    project = Project(client)
    project.write("dir/key", "x")
    git(project.folder, "add", "-A")
    shutil.rmtree(project.folder / "dir")
    (project.folder / "dir").symlink_to(secret)
    assert project.sync(where)["files"] == 1
    assert tree(project.there(server)) == {b"dir": ("link", os.fsencode(secret))}


def test_what_is_no_file_is_named(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client, repository=False)
    project.write("a")
    os.mkfifo(project.folder / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(project.folder)
        listening.bind("socket")
        os.chdir(here)
        ended = client.run("sync", where, cwd=project.folder)
    assert ended.rc == 0 and "not sent, because only files and links are sent: fifo, socket" in ended.err, ended
    assert set(tree(project.there(server))) == {b"a"}


def bare_path(client, *names):
    folder = client.folder / "bare"
    folder.mkdir()
    for name in ("ssh", "sh", "gzip", *names):
        (folder / name).symlink_to(shutil.which(name))
    return ("/usr/bin/env", f"PATH={folder}", client.binary)


def test_without_rsync_the_files_arrive_all_the_same(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("much", os.urandom(70_000_000))
    project.write("a/b", "1")
    (project.folder / "link").symlink_to("a/b")
    assert project.sync(where, program=bare_path(client, "git"))["files"] == 3
    assert tree(project.there(server)) == project.sent()


def test_a_file_that_grows_while_others_are_sent_arrives_too(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    there = project.there(server)
    for number in range(10):
        project.write(f"big{number}", os.urandom(10_000_000))
    project.write("log", "begun")
    without_rsync = bare_path(client, "git")
    run = client.start("sync", where, cwd=project.folder, program=without_rsync)
    until(lambda: (there / "big0").exists(), 30, "files are under way")
    project.write("log", "begun, and more")
    ended = run.wait(60)
    assert ended.rc == 0 and "hosts get a snapshot: log" in ended.err, ended
    assert tree(there) == project.sent()


@contextlib.contextmanager
def rewritten_all_the_time(path):
    """Each content is many times the same number."""
    program = ("import os, sys\n"
               "for number in range(10**9):\n"
               "    with open(sys.argv[1] + '.new', 'w') as file:\n"
               "        file.write(f'{number}\\n' * 1000)\n"
               "    os.rename(sys.argv[1] + '.new', sys.argv[1])\n")
    with subprocess.Popen(["/usr/bin/python3", "-c", program, path]) as writer:
        try:
            until(path.exists, 10, "the file is there")
            yield
        finally:
            writer.kill()


def test_a_file_that_changes_all_the_time_is_sent_as_a_moment_shows_it(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write(".gitignore", "*.new\n")
    project.write("a", "1")
    with rewritten_all_the_time(project.folder / "status"):
        ended = client.run("run", "--on", where, "--no-python", "cat", "status", cwd=project.folder)
        assert ended.rc == 0, ended
        numbers = ended.out.split()
        assert len(numbers) == 1000 and len(set(numbers)) == 1, ended
        assert client.run("sync", where, cwd=project.folder).rc == 0
        numbers = (project.there(server) / "status").read_text().split()
        assert len(numbers) == 1000 and len(set(numbers)) == 1


def test_many_syncs_of_one_project_at_once_take_turns(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    for number in range(300):
        project.write(f"f{number}", os.urandom(3000))
    runs = [client.start("sync", where, cwd=project.folder) for _ in range(40)]
    ended = [run.wait(120) for run in runs]
    assert [end.rc for end in ended] == [0] * 40, [end for end in ended if end.rc != 0]
    assert sum("another lockstep (process" in end.err for end in ended) > 0
    assert sum(end.out.startswith(f"{where}: 300 files") for end in ended) == 1
    assert tree(project.there(server)) == project.sent()


def test_a_git_that_never_ends_can_be_stopped(world):
    client, server = world()
    project = Project(client)
    project.write("a", "1")
    os.mkfifo(project.folder / ".git/index")
    run = client.start("sync", f"me@{server.addr}", cwd=project.folder)
    until(lambda: "git" in client.host.processes().values(), 30, "git waits for a writer")
    run.signal(signal.SIGINT)
    assert run.wait(30).rc == 128 + signal.SIGINT
    until(lambda: "git" not in client.host.processes().values(), 10, "git is gone")


def test_a_sync_that_waits_for_another_can_be_stopped(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("a", "1")
    project.sync(where)
    assert client.run("sync", where, "--back", "a", cwd=project.folder).rc == 0
    with contextlib.ExitStack() as held:
        locks = list((client.root_home / ".local/state/lockstep/locks").iterdir())
        for lock in locks:
            fcntl.flock(held.enter_context(open(lock, "rb")), fcntl.LOCK_EX)
        for words, told in (((), "was stopped"), (("--back", "a"), "stopped while waiting")):
            run = client.start("sync", where, *words, cwd=project.folder)
            until(lambda: run.err().count("uses this tree; waiting") == 2, 30, "it waits, and says so again")
            run.signal(signal.SIGINT)
            one_error(run.wait(30), 128 + signal.SIGINT, told)
            assert client.run("sync", "--dry-run", where, *words, cwd=project.folder).rc == 0
    assert len(locks) == 2


def test_a_client_without_git(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write(".gitignore", "*.log\n")
    project.write("x.log")
    project.write("a")
    assert project.sync(where, program=bare_path(client, "rsync"))["files"] == 2
    assert set(tree(project.there(server))) == {b".gitignore", b"a"}


def test_state_that_is_damaged_is_begun_anew(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("a", "1")
    project.write("b", "1")
    project.sync(where)
    (record,) = [path for path in (server.homes["me"] / ".local/state/lockstep/synced").iterdir()
                 if "." not in path.name]
    record.write_bytes(record.read_bytes()[:-3])
    (project.folder / "b").unlink()
    ended = client.run("sync", where, cwd=project.folder)
    assert ended.rc == 0 and "is damaged and starts empty" in ended.err, ended
    assert set(tree(project.there(server))) == {b"a", b"b"}
    assert client.run("sync", where, cwd=project.folder).err == ""


def test_results_come_back(world):
    client, *servers = world(2)
    hosts = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    assert client.run("cluster", "add", "gpus", *hosts).rc == 0
    project = Project(client)
    project.write("src/train.py", "1")
    project.sync("gpus")
    there = [project.there(server) for server in servers]
    for number, place in enumerate(there):
        as_me(place / "out", lambda path: path.mkdir())
        as_me(place / "out/log", lambda path: path.write_text(f"node {number}"))
        as_me(place / "out/deep", lambda path: path.mkdir())
        as_me(place / "out/deep/model", lambda path: path.write_bytes(os.urandom(40_000_000)))
        as_me(place / "out/latest", lambda path: path.symlink_to("deep/model"))
    ended = client.run("sync", "gpus", "--back", "../out", cwd=project.folder / "src")
    assert ended.rc == 0 and ended.out.startswith("gpus-0: 3 files, 40.0 MB brought back, "), ended
    assert tree(project.folder / "out") == tree(there[0] / "out")
    assert client.run("sync", "gpus", "--back", "out", cwd=project.folder).out.startswith("gpus-0: nothing to do")
    (there[1] / "out/log").write_text("later")
    os.utime(there[1] / "out/log", (4e9, 4e9))
    assert client.run("sync", "gpus", "--nodes", "1", "--back", "out/log", cwd=project.folder).rc == 0
    assert (project.folder / "out/log").read_text() == "later"
    one_error(client.run("sync", "gpus", "--nodes", "all", "--back", "out", cwd=project.folder), 2, "single node")
    one_error(client.run("sync", "gpus", "--back", "/etc", cwd=project.folder), 2, "/etc is not inside")
    one_error(client.run("sync", "gpus", "--back", "none", cwd=project.folder), 1, "gpus-0: there is no none there")


def test_what_a_job_made_is_never_removed_and_a_removal_is_told_first(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("train.py", "1")
    project.write("gone", "1")
    project.sync(where)
    there = project.there(server)
    as_me(there / "outputs", lambda path: path.mkdir())
    as_me(there / "outputs/ckpt", lambda path: path.write_text("step 1"))
    assert client.run("sync", where, "--back", "outputs", cwd=project.folder).rc == 0
    assert client.run("sync", where, cwd=project.folder).out.startswith(f"{where}: nothing to do")
    as_me(there / "outputs/ckpt", lambda path: path.write_text("step 10"))  # the next job
    ended = client.run("run", "--on", where, "--no-python", "true", cwd=project.folder)
    assert ended.rc == 0 and "not sent from here, so these files stay: outputs/ckpt" in ended.err, ended
    shutil.rmtree(project.folder / "outputs")
    (project.folder / "gone").unlink()
    for words in (("sync", "--dry-run", where), ("run", "--on", where, "--no-python", "cat", "gone")):
        ended = client.run(*words, cwd=project.folder)
        told = "would remove" if "sync" in words else "removes"
        assert f"{told} 1 file there, sent earlier and gone here: gone" in ended.err, ended
        assert "made or changed there, so these files stay: outputs/ckpt" in ended.err, ended
        assert (there / "gone").exists() is (told != "removes")
    assert ended.err.index("removes 1 file") < ended.err.index("No such file"), ended
    assert (there / "outputs/ckpt").read_text() == "step 10"


@pytest.mark.parametrize("ignored", [False, True], ids=["seen", "ignored"])
def test_what_an_interrupted_back_leaves_is_never_sent(world, ignored):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write(".gitignore", "out/\n" if ignored else "")
    project.sync(where)
    there = project.there(server)
    as_me(there / "out", lambda path: path.mkdir())
    as_me(there / "out/model", lambda path: path.write_bytes(b""))
    os.truncate(there / "out/model", 300_000_000)

    def drafts():
        return list(project.folder.glob("out/.lockstep-part-*"))

    back = client.start("sync", where, "--back", "out", cwd=project.folder)
    until(drafts, 30, "a file is under way")
    back.signal(signal.SIGSTOP)
    assert client.run("sync", where, cwd=project.folder).rc == 0
    assert drafts(), "the draft of a transfer under way stays"
    back.signal(signal.SIGKILL)
    back.wait(30)
    server.nothing_left()
    assert drafts(), "it came whole before the kill"
    (there / "out/model").unlink()
    as_me(there / "out/other", lambda path: path.write_text("x"))
    assert client.run("sync", where, cwd=project.folder).rc == 0
    assert set(tree(there)) == {b".gitignore", b"out/other"}
    assert client.run("sync", where, "--back", "out", cwd=project.folder).rc == 0
    assert [path.name for path in (project.folder / "out").iterdir()] == ["other"]


def test_a_tree_belongs_to_an_installation_and_not_to_a_name(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("a", "1")
    project.sync(where)
    subprocess.run(["nsenter", "--target", str(client.host.holder.pid), "--uts", "hostname", "renamed"], check=True)
    project.write("b", "1")
    assert client.run("sync", where, cwd=project.folder).rc == 0
    # Another machine of this name, with the same path.
    installation = client.root_home / ".local/state/lockstep/sync-id"
    installation.rename(installation.with_name("kept"))
    (project.folder / "a").unlink()
    one_error(client.run("sync", where, cwd=project.folder), 1, where,
              "on another machine or of another user", "--force")
    assert set(tree(project.there(server))) == {b"a", b"b"}
    assert installation.read_text() != installation.with_name("kept").read_text()


def test_what_is_newer_here_stays(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("a", "1")
    project.sync(where)
    (project.there(server) / "a").write_text("there")
    project.write("a", "here")
    os.utime(project.folder / "a", (4e9, 4e9))
    ended = client.run("sync", where, "--back", "a", cwd=project.folder)
    assert ended.rc == 0 and "newer here, or no file here, so these stay: a" in ended.err, ended
    assert (project.folder / "a").read_text() == "here"
    assert client.run("sync", where, "--back", "a", "--force", "--dry-run", cwd=project.folder).rc == 0
    assert (project.folder / "a").read_text() == "here"
    assert client.run("sync", where, "--back", "a", "--force", cwd=project.folder).rc == 0
    assert (project.folder / "a").read_text() == "there"


def test_nothing_from_a_host_leads_out_of_the_project(world):
    client, server = world()
    where = f"me@{server.addr}"
    project = Project(client)
    project.write("a", "1")
    project.sync(where)
    there = project.there(server)
    outside = client.root_home / "outside"
    outside.mkdir()
    as_me(there / "out", lambda path: path.mkdir())
    for name, target in (("evil", "/etc"), ("up", "../../x"), ("fine", "../a")):
        as_me(there / "out" / name, lambda path: path.symlink_to(target))
    as_me(there / ".git", lambda path: path.mkdir())
    as_me(there / ".git/config", lambda path: path.write_text("x"))
    config = (project.folder / ".git/config").read_text()
    ended = client.run("sync", where, "--back", ".", cwd=project.folder)
    assert ended.rc == 0 and "or changed meanwhile): out/evil, out/up" in ended.err, ended
    assert os.readlink(project.folder / "out/fine") == "../a" and not os.path.lexists(project.folder / "out/evil")
    assert (project.folder / ".git/config").read_text() == config
    shutil.rmtree(project.folder / "out")
    (project.folder / "out").symlink_to(outside)
    as_me(there / "out/file", lambda path: path.write_text("x"))
    ended = client.run("sync", where, "--back", "out/file", cwd=project.folder)
    one_error(ended, 1, "out/file", "links are not followed")
    assert not list(outside.iterdir())


def test_much_is_told_before_it_goes(world):
    client, server = world()
    project = Project(client)
    for name, size in (("data/set.bin", 400 << 20), ("model.pt", 200 << 20)):
        with open(project.write(name), "r+b") as file:
            file.truncate(size)
    run = client.start("sync", f"me@{server.addr}", cwd=project.folder)
    until(lambda: "are to be sent" in run.err() or run.process.poll() is not None, 60, "it is told")
    run.signal(signal.SIGTERM)
    ended = run.wait(60)
    assert "629.1 MB in 2 files are to be sent, most of it in data/set.bin (419.4 MB), model.pt (209.7 MB)" in ended.err
    assert ended.rc == 128 + signal.SIGTERM, ended


@pytest.mark.parametrize("way", ["pieces", "rsync"])
def test_this_machine_is_a_host_too(world, way):
    client, _ = world()
    project = Project(client)
    project.write("a", os.urandom(MUCH if way == "rsync" else 1))
    assert project.sync("local")["files"] == 1
    assert tree(client.root_home / "project") == project.sent()
