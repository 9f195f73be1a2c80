"""The client's end of a link to a host that was taken over: it believes, keeps and writes no more than it has asked
for, and says in one line what is wrong with the host."""
import os
import subprocess

import pytest

from harness import until
from lying_host import LyingHost
from ssh_hosts import SshWorld


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


@pytest.fixture
def host(world):
    return LyingHost(*world())


def one_error(ended, code, *words):
    lines = [line for line in ended.err.splitlines() if "error:" in line]
    assert ended.rc == code, ended
    assert len(lines) == 1 and all(word in lines[0] for word in words), ended


GREETS = "link.hello(); link.words(); "
LIES = [
    (GREETS + "link.started(); link.exit(0, channel=2)", "the end of what does not run"),
    (GREETS + "link.exit(0)", "the end of what does not run"),
    (GREETS + "link.started(); link.exit(0, channel=2); link.exit(0)", "the end of what does not run"),
    (GREETS + "link.started(); link.data('x', channel=7)", "the output of what does not run"),
    (GREETS + "link.started()\nwhile True: link.data(b'')", "an empty piece of output"),
    (GREETS + "link.write(b'\\xff' * 64)", "a frame of"),
    ("while True: link.write(b'x' * 65536)", "bytes came before a greeting"),
    ("link.hello('\\x1b[2J')", "a frame that makes no sense"),
]


def test_only_what_was_asked_for_is_believed(host):
    for lie, words in LIES:
        host.lies(lie + "\nlink.until_gone()")
        ended = host.client.exec(host.where, "true")
        one_error(ended, 255, host.where, words)


def test_a_flood_beyond_the_room_ends_the_command(host):
    """Nobody reads the client's output, so that it gives no room back."""
    host.lies(GREETS + "link.started()\nfor _ in range(100): link.all(b'x' * WINDOW)")
    reader, writer = os.pipe()
    run = host.client.start("exec", host.where, "--", "true", stdout=writer)
    os.close(writer)
    until(host.server.commands, 30, "the flood begins")
    host.server.nothing_left(30)
    os.close(reader)
    one_error(run.wait(30), 255, host.where, "more output than it was given room for")


def test_words_of_a_host_reach_the_terminal_without_its_control(host):
    host.lies(GREETS + "link.refused('\\u009b2J\\u202eno')")
    ended = host.client.exec(host.where, "true")
    assert ended.rc == 127 and "\u009b" not in ended.err and "\u202e" not in ended.err, ended


@pytest.fixture
def project(host):
    folder = host.client.root_home / "code/project"
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def back(host, project, lies, timeout=20.0):
    """`sync --back outputs` from a host whose answers are `lies`: by `list` and `give`."""
    host.lies(f"""
        link.hello()
        answers = {{"list": lambda: {lies[0]}, "give": lambda: {lies[1]}}}
        what = link.words()[1]
        link.started()
        link.all(answers[what]())
        link.exit()
        link.until_gone()
        """)
    return host.client.run("sync", host.where, "--back", "outputs", cwd=project, timeout=timeout)


def test_files_that_could_be_gits_own_never_come(host, project):
    config = (project / ".git/config").read_text()
    for path in ("outputs/.GIT/config", "outputs/.git/config", "outputs/git~1/config"):
        ended = back(host, project, (f"listing(('{path}', 1))", "contents(b'x')"))
        one_error(ended, 1, path, "is of git itself")
    ended = back(host, project, ("listing(('outputs/HEAD', 1), ('outputs/config', 1),"
                                 " ('outputs/link', '../.git/config'),"
                                 " ('outputs/objects/x', 1), ('outputs/refs/x', 1))",
                                 "contents(b'1', b'2', b'3')"))
    assert ended.rc == 0 and "outputs/HEAD, outputs/link" in ended.err, ended
    assert sorted(os.listdir(project / "outputs")) == ["config", "objects", "refs"]
    assert (project / ".git/config").read_text() == config


def test_links_that_lead_out_together_never_come(host, project):
    (project / "secret").write_text("here")
    entries = ("('outputs/a/b/c', '../..'), ('outputs/esc', 'a/b/c/../../../secret'), ('outputs/fine', '../secret'), "
               "('outputs/through', '../data/x')")
    (project / "data").symlink_to(host.client.root_home)  # a link of the user's own
    ended = back(host, project, (f"listing({entries})", "contents(b'', b'', b'')"))
    assert ended.rc == 0 and "outputs/esc, outputs/through" in ended.err, ended
    assert os.readlink(project / "outputs/fine") == "../secret"
    assert os.readlink(project / "outputs/a/b/c") == "../.."
    assert sorted(os.listdir(project / "outputs")) == ["a", "fine"]


def test_a_claim_of_much_is_checked_before_anything_is_made_of_it(host, project):
    ended = back(host, project, ("listing(('outputs/model.pt', 1 << 62))", "contents(b'')"))
    one_error(ended, 1, "4611686.0 TB in 1 file to come", "are free here")
    ended = back(host, project, ("listing(*[('outputs/%d' % i, (1 << 63) - 1) for i in range(10, 20)])",
                                 "contents(b'')"))
    one_error(ended, 1, "are free here")
    assert not list(project.glob("outputs/*"))
