"""lockstep exec on hosts with a real sshd: what the user types arrives byte for byte, whatever the login shell, and
what happens there comes back; every way to fail ends in one line that names the host and the hop."""
import os
import random
import shutil
import signal

import pytest

from harness import BINARY, until
from ssh_hosts import SHELLS, SshWorld


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def one_error(ended, code, *words):
    lines = [line for line in ended.err.splitlines() if "error:" in line]
    assert ended.rc == code, ended
    assert len(lines) == 1 and all(word in lines[0] for word in words), ended


def test_output_input_and_exit_code(world):
    client, server = world()
    where = f"me@{server.addr}"
    assert client.exec(where, "true").rc == 0  # a slow first contact would tell that it waits
    ended = client.exec(where, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (ended.rc, ended.out, ended.err) == (3, "out\n", "err\n"), ended
    assert client.exec(where, "sh", "-c", "kill -KILL $$").rc == 128 + signal.SIGKILL
    with open(__file__) as text:
        ended = client.exec(where, "cat", stdin=text)
    assert (ended.rc, ended.out) == (0, open(__file__).read())
    ended = client.run("exec", "--shell", "echo $((6 * 7)) | tr 4 5; pwd", where)
    assert ended.out == "52\n/home/me\n"
    assert client.run("exec", "--cwd", "/usr/lib", where, "--", "pwd").out == "/usr/lib\n"
    server.nothing_left()


def test_a_binary_that_is_replaced_while_it_runs_goes_to_new_hosts_all_the_same(world, tmp_path):
    """As an upgrade does it beside a command of hours that meets another machine."""
    client, server = world()
    binary = tmp_path / "lockstep"
    shutil.copy(BINARY, binary)
    server.sshd.signal(signal.SIGSTOP)
    run = client.start("exec", f"me@{server.addr}", "--", "echo", "there", program=(binary,))
    until(lambda: "ssh" in run.living().values(), 20, "it logs in")
    shutil.copy("/bin/true", tmp_path / "next")
    (tmp_path / "next").replace(binary)
    server.sshd.signal(signal.SIGCONT)
    ended = run.wait(60)
    assert (ended.rc, ended.out) == (0, "there\n"), ended


def test_input_goes_on_beyond_a_window(world, tmp_path):
    client, server = world()
    much = tmp_path / "much"
    much.write_bytes(b"x" * 10_000_000)
    with open(much, "rb") as stdin:
        ended = client.exec(f"me@{server.addr}", "wc", "-c", stdin=stdin)
    assert (ended.rc, ended.out.strip()) == (0, "10000000"), ended


def test_a_command_that_closes_its_input_runs_on(world, tmp_path):
    client, server = world()
    (tmp_path / "input").write_bytes(bytes(1 << 20))
    with open(tmp_path / "input", "rb") as given:
        ended = client.exec(f"me@{server.addr}", "sh", "-c", "exec 0<&-; echo on; sleep 0.5; exit 3", stdin=given)
    assert (ended.rc, ended.out) == (3, "on\n"), ended


VECTORS = int(os.environ.get("LOCKSTEP_ARGV_VECTORS", "300"))  # over all of the shells


def random_argument(random_):
    kind = random_.randrange(6)
    if kind == 0:
        return random_.choice(["", "-", "--", "-n", "--help", "-rf", "~", "*", "$HOME", "`id`", "!!", "\\", "'", '"'])
    size = random_.randrange(1, 40)
    if kind < 4:
        return "".join(random_.choice(" \t\n'\"\\$`!&|;<>(){}[]*?#~=%^abcXYZ-") for _ in range(size))
    return os.fsdecode(bytes(random_.randrange(1, 256) for _ in range(size)))


@pytest.mark.parametrize("shell", SHELLS)
def test_arguments_arrive_byte_for_byte(world, shell):
    client, server = world(users={"me": SHELLS[shell]})
    random_ = random.Random(shell)
    for _ in range(VECTORS // len(SHELLS)):
        arguments = [random_argument(random_) for _ in range(random_.randrange(1, 40))]
        run = client.start("exec", f"me@{server.addr}", "--", "/usr/bin/printf", "%s\\0", *arguments)
        ended = run.wait(60)
        assert ended.rc == 0, ended
        assert run.out_bytes() == b"".join(os.fsencode(argument) + b"\0" for argument in arguments)


def test_the_binary_is_pushed_once(world):
    client, server = world()
    client.exec(f"me@{server.addr}", "true")
    (pushed,) = (server.homes["me"] / ".cache/lockstep/bin").iterdir()
    before = pushed.stat()
    assert before.st_mode & 0o777 == 0o700
    client.forget_masters()
    assert client.exec(f"me@{server.addr}", "true").rc == 0
    assert pushed.stat().st_mtime_ns == before.st_mtime_ns
    assert server.sshd.err().count("Accepted publickey") == 2


def test_a_login_shell_that_talks_is_skipped(world):
    client, server = world()
    (server.homes["me"] / ".bashrc").write_text(
        "echo Welcome to me; echo lockstep-absent Linux x86_64; echo oops >&2\n")
    for _ in range(2):
        ended = client.exec(f"me@{server.addr}", "echo", "hi")
        assert (ended.rc, ended.out) == (0, "hi\n"), ended


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_nothing_outlives_the_client(world, how):
    client, server = world()
    run = client.start("exec", f"me@{server.addr}", "--", "sh", "-c",
                       "setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & echo up; sleep 1000")
    until(lambda: "up" in run.out(), 30, "the command runs")
    if how == "killed":
        run.process.kill()
    else:
        run.signal(signal.SIGTERM)
        assert run.wait(20).rc == 128 + signal.SIGTERM
    server.nothing_left()


def test_what_a_command_leaves_behind_is_ended_with_it(world):
    client, server = world()
    ended = client.exec(f"me@{server.addr}", "sh", "-c", "setsid sleep 1000 & echo done")
    assert (ended.rc, ended.out) == (0, "done\n")
    server.nothing_left()


def test_a_lost_connection_is_told(world):
    client, server = world()
    run = client.start("exec", f"me@{server.addr}", "--", "sh", "-c", "echo up; sleep 1000")
    until(lambda: "up" in run.out(), 30, "the command runs")
    server.stop_sshd()
    one_error(run.wait(30), 255, f"me@{server.addr}", "connection was lost")
    server.nothing_left()


def test_who_is_not_reached_is_named(world):
    client, server = world()
    where = f"me@{server.addr}"
    one_error(client.exec("me@no-such-host", "true"), 255, "me@no-such-host", "does not resolve")
    one_error(client.exec(f"{where}:2222", "true"), 255, where, "port 2222: connection refused", "sshd")
    one_error(client.exec(f"other@{server.addr}", "true"), 255, f"other@{server.addr} is not let in", "publickey")
    one_error(client.exec(where, "no-such-command"), 127, where, "no-such-command")
    one_error(client.exec(where, "/etc/passwd"), 126, where, "Permission denied")
    one_error(client.exec(where, "true", options=("--cwd", "/nowhere")), 126, where, "No such file or directory")
    one_error(client.exec(f"other@{server.addr}", "true", options=("--key-path", "/nowhere")), 255,
              "there is no key /nowhere")
    server.nothing_left()


def test_a_jump_host_is_passed_and_named(world):
    client, jump, server = world(2)
    server.sshd and server.stop_sshd()
    server.start_sshd(f"AllowUsers me@{jump.addr}")
    ended = client.exec(f"me@{server.addr}", "hostname", options=("--jump", f"me@{jump.addr}"))
    assert (ended.rc, ended.out) == (0, f"{server.name}\n"), ended
    client.forget_masters()
    jump.stop_sshd()
    one_error(client.exec(f"me@{server.addr}", "true", options=("--jump", f"me@{jump.addr}")), 255,
              f"{jump.addr} port 22: connection refused")


def test_a_changed_host_key_is_refused_with_the_way_out(world):
    client, server = world()
    where = f"me@{server.addr}"
    assert client.exec(where, "true").rc == 0
    client.forget_masters()
    server.stop_sshd()
    for file in (server.host_key, server.host_key.with_suffix(".pub")):
        file.unlink()
    os.system(f"ssh-keygen -q -t ed25519 -N '' -f {server.host_key}")
    server.start_sshd()
    one_error(client.exec(where, "true"), 255, where, "host key has changed", "ssh-keygen -f")


def test_a_key_that_others_may_read_is_named(world):
    client, server = world()
    client.key.chmod(0o644)
    one_error(client.exec(f"me@{server.addr}", "true", options=("--key-path", client.key)), 255,
              "others may read the key", "chmod 600")


def test_an_account_without_a_shell_is_named(world):
    client, server = world(users={"me": "/usr/sbin/nologin"})
    one_error(client.exec(f"me@{server.addr}", "true"), 255, f"me@{server.addr}", "login shell",
              "account is currently not available")


def test_a_home_where_nothing_may_be_written_is_named(world):
    client, server = world()
    home = server.homes["me"]
    os.chown(home, 0, 0)
    one_error(client.exec(f"me@{server.addr}", "true"), 255, f"me@{server.addr}", "can't be made there",
              "Permission denied")


def test_a_home_that_is_mounted_noexec_is_named(world):
    client, server = world()
    home = "/home/me"
    server._inside("mount", "-t", "tmpfs", "-o", f"noexec,uid=2001,mode=0700", "tmpfs", home)
    server._inside("mkdir", f"{home}/.ssh")
    server._inside("sh", "-c", f"echo '{client.public_key.strip()}' > {home}/.ssh/authorized_keys")
    one_error(client.exec(f"me@{server.addr}", "true"), 255, f"me@{server.addr}", "noexec")


def test_a_full_disk_is_named_and_left_clean(world):
    client, server = world()
    home = "/home/me"
    server._inside("mount", "-t", "tmpfs", "-o", "size=1m,uid=2001,mode=0700", "tmpfs", home)
    server._inside("mkdir", f"{home}/.ssh")
    server._inside("sh", "-c", f"echo '{client.public_key.strip()}' > {home}/.ssh/authorized_keys")
    one_error(client.exec(f"me@{server.addr}", "true"), 255, f"me@{server.addr}", "No space left on device")
    server._inside("sh", "-c", f"test -z \"$(ls {home}/.cache/lockstep/bin)\"")


def client_id(client):
    """As ssh/binary.cc makes it: FNV-1a of the machine's name and the user's number, in memory's order."""
    value = 0xCBF29CE484222325
    for byte in f"{client.name}/0".encode():
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return value.to_bytes(8, "little").hex()


def note_pushes(server):
    """Lets the login shell note what it is told to run; gives a function: "new" or "on" for each push so far, as it
    began a file or went on with a part."""
    rc = server.homes["me"] / ".bashrc"
    rc.write_text('echo "$BASH_EXECUTION_STRING" >>~/commands\n')

    def pushes():
        told = (server.homes["me"] / "commands").read_text().splitlines()
        return ["on" if "cat >>" in line else "new" for line in told if "gzip -dc" in line]
    return pushes


def test_clients_that_come_at_once_share_the_login_and_the_push(world):
    client, server = world()
    pushes = note_pushes(server)
    runs = [client.start("exec", f"me@{server.addr}", "--", "echo", "hi") for _ in range(5)]
    for run in runs:
        ended = run.wait(60)
        assert (ended.rc, ended.out) == (0, "hi\n"), ended
    assert server.sshd.err().count("Accepted publickey") == 1
    assert pushes() == ["new"]
    assert len(list((server.homes["me"] / ".cache/lockstep/bin").iterdir())) == 1


def test_a_push_that_was_cut_goes_on(world):
    client, server = world()
    pushes = note_pushes(server)
    where = f"me@{server.addr}"
    assert client.exec(where, "true").rc == 0
    (binary,) = (server.homes["me"] / ".cache/lockstep/bin").iterdir()
    (compressed,) = (client.root_home / ".cache/lockstep/push").iterdir()
    part = binary.with_name(f"{binary.name}.part{client_id(client)}")
    whole = binary.read_bytes()
    for content in (compressed.read_bytes()[:1_000_000], b"x" * 1_000_000):  # a good part, and a spoilt one
        binary.unlink()
        part.write_bytes(content)
        os.chown(part, 2001, 2001)
        ended = client.exec(where, "echo", "hi")
        assert (ended.rc, ended.out) == (0, "hi\n"), ended
        assert binary.read_bytes() == whole and not part.exists()
    assert pushes() == ["new", "on", "on", "new"], "a spoilt part is found out, and then all of it is sent"


def test_bad_input_starts_nothing(world):
    client, server = world()
    for args, words in ((("exec",), ["no host"]), (("exec", "h"), ["no command"]),
                        (("exec", "--", "-oProxyCommand=id", "true"), ["is no host"]),
                        (("exec", "u@h", "--user", "v", "true"), ["name a user"]),
                        (("exec", "h", "--shell", "a", "--", "b"), ["--shell"])):
        one_error(client.run(*args), 2, *words)
    assert "Connection from" not in server.sshd.err()
