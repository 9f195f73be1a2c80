"""The client's end of a link to a host that was taken over: the client accepts, keeps and writes no more than it asked
for, and says in one line what is wrong with the host."""
import json
import os
import struct
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
    (GREETS + "link.started(); link.exit(0, channel=2)", "'exit' without a running program"),
    (GREETS + "link.exit(0)", "'exit' without a running program"),
    (GREETS + "link.started(); link.exit(0, channel=2); link.exit(0)", "'exit' without a running program"),
    (GREETS + "link.started(); link.data('x', channel=7)", "output without a running program"),
    (GREETS + "link.started()\nwhile True: link.data(b'')", "an empty piece of output"),
    (GREETS + "link.write(b'\\xff' * 64)", "a frame of"),
    ("while True: link.write(b'x' * 65536)", "bytes came before a greeting"),
    ("link.hello('\\x1b[2J')", "an invalid frame"),
]


def test_only_what_was_asked_for_is_believed(host):
    for lie, words in LIES:
        host.lies(lie + "\nlink.until_gone()")
        ended = host.client.exec(host.where, "true")
        one_error(ended, 255, host.where, words)


def test_a_file_that_a_host_asks_for_as_a_machines_name_is_not_sent(host):
    """Binaries for other machines lie in this folder as lockstep-MACHINE."""
    place = host.client.root_home / ".local/share/lockstep"
    (place / "lockstep-x").mkdir(parents=True)
    (place / "secret").write_text("secret")
    (place / "lockstep-secret").write_text("secret")
    for machine in ("x/../secret", "secret", "../../../.ssh/id_ed25519", "/etc/passwd", "x86_64/../secret"):
        host.lies(f"link.write(b'\\nlockstep-absent Linux {machine} 0\\n'); sys.exit(71)")
        one_error(host.client.exec(host.where, "true"), 255, f"'{machine}', and Lockstep has no binary for it")
    assert not [each for each in host.place.parent.iterdir() if each != host.place]


def test_a_host_that_names_one_processor_and_then_another_is_not_asked_for_ever(host):
    """The host's shell names the true one, as no binary for the other is there."""
    other = host.client.root_home / ".local/share/lockstep/lockstep-aarch64"
    other.parent.mkdir(parents=True)
    other.write_bytes(struct.pack("<16s2H44x", b"\x7fELF\x02\x01\x01", 2, 183))  # the header of a program
    host.lies("link.write(b'\\nlockstep-absent Linux aarch64 0\\n'); sys.exit(71)")
    one_error(host.client.exec(host.where, "true"), 255, host.where, "names one processor and then another")


def test_a_flood_beyond_the_room_ends_the_command(host):
    """The client's output is not read, so that the client grants no more credit."""
    host.lies(GREETS + "link.started()\nfor _ in range(100): link.all(b'x' * WINDOW)")
    reader, writer = os.pipe()
    run = host.client.start("exec", host.where, "--", "true", stdout=writer)
    os.close(writer)
    until(host.server.commands, 30, "the flood begins")
    host.server.nothing_left(30)
    os.close(reader)
    one_error(run.wait(30), 255, host.where, "more output than the credit allows")


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
        one_error(ended, 1, path, "belongs to git itself")
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


ROUNDS = int(os.environ.get("LOCKSTEP_SPOILED_ROUNDS", "2"))
SEED = int(os.environ.get("LOCKSTEP_SPOILED_SEED", "1"))


def test_spoiled_answers_end_no_command_badly_and_reach_no_terminal(host, project):
    """LOCKSTEP_SPOILED_ROUNDS=50 LOCKSTEP_SPOILED_SEED=7 for a long one."""
    where, client = host.where, host.client
    (project / "a").write_text("1")
    commands = [("cluster", "check", where), ("cluster", "check", where, "--json"), ("sync", where),
                ("sync", where, "--json"), ("sync", where, "--back", "outputs"), ("jobs",), ("jobs", "--json"),
                ("install", where, "local:./"), ("exec", where, "--json", "--", "echo", "x"),
                ("call", where, "work:one", "--json"), ("run", "--on", where, "--no-python", "--detach", "true"),
                ("logs", "JOB"), ("cancel", "JOB")]
    (project / "work.py").write_text("def one():\n    return [1, 'x', {'a': 2}]\n")
    job = client.run("run", "--on", where, "--no-python", "--detach", "true", cwd=project)
    assert job.rc == 0 and client.run("logs", "-f", job.out.strip(), cwd=project).rc == 0, job
    made = "mkdir -p project/outputs/d && echo 1 > project/outputs/m && ln -s ../m project/outputs/d/link"
    assert client.exec(where, "sh", "-c", made).rc == 0
    for number in range(ROUNDS * len(commands)):
        words = [job.out.strip() if word == "JOB" else word for word in commands[number % len(commands)]]
        (project / "a").write_text(str(number))
        subprocess.run(["rm", "-rf", project / "outputs"], check=True)
        host.spoils(SEED * 1000 + number)
        ended = client.run(*words, cwd=project, timeout=90.0)
        shown = f"{number}: {words} {ended}"
        assert 0 <= ended.rc < 128 or ended.rc == 255, shown
        assert not set("\x1b\x9b\u202e") & set(ended.out + ended.err), shown
        assert set(os.listdir(project)) <= {".git", "a", "outputs", "work.py"}, shown
        if "--json" in words and ended.out and words[0] != "exec":
            [json.loads(line) for line in ended.out.splitlines()]
    host.is_honest()
