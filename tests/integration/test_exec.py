"""lockstep exec on hosts with a real sshd: the user's words arrive byte for byte under any login shell, and output and
exit code come back. Every failure ends in one line that names the host and the hop."""
import fcntl
import os
import random
import select
import shutil
import signal
import subprocess
import termios

import pytest

from harness import BINARY, until
from ssh_hosts import SHELLS, SshWorld, make_key, packed_binary


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
    """As when an upgrade replaces the binary, and a command of hours then meets another host."""
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


def test_a_host_that_falls_silent_is_told_and_a_silent_command_is_not(world):
    client, server = world()
    where, home = f"me@{server.addr}", server.homes["me"]
    assert client.exec(where, "true").rc == 0
    quiet = client.start("exec", where, "--", "sleep", "12")
    until(lambda: "sleep" in server.commands().values(), 20, "the silent command runs")
    others = server.host.spoken("link")
    wait = "touch begun; until [ -e go ]; do sleep 0.1; done; exit 3"
    run = client.start("exec", where, "--", "sh", "-c", wait)
    left = client.start("exec", where, "--", "sh", "-c", "touch left; exec sleep 1000")
    until(lambda: (home / "begun").exists() and (home / "left").exists(), 20, "the commands run")
    links = [pid for pid in server.host.spoken("link") if pid not in others]
    for pid in links:
        server.host.freeze(pid)
    line = f"waiting for {where} for 10 s: no answer for "
    until(lambda: line in run.err() and line in left.err(), 30, "it says who is silent")
    assert "; Ctrl-C ends this command" in run.err(), run.err()
    left.process.send_signal(signal.SIGINT)
    assert left.wait(10).rc == 130
    for pid in links:
        server.host.thaw(pid)
    (home / "go").touch()
    assert run.wait(20).rc == 3
    ended = quiet.wait(20)
    assert (ended.rc, ended.err) == (0, ""), ended


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
    one_error(client.exec(f"other@{server.addr}", "true", options=("--key-path", "/nowhere")), 2,
              "--key-path /nowhere: there is no such file")
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


def new_host_key(server):
    server.stop_sshd()
    for file in (server.host_key, server.host_key.with_suffix(".pub")):
        file.unlink()
    make_key(server.host_key)
    server.start_sshd()


def test_a_key_that_any_file_refuses_is_refused(world):
    """ssh accepts a key from any of its files: a new key for the bare host must not hold for the cluster."""
    client, server = world()
    where = f"me@{server.addr}"
    assert client.run("cluster", "add", "gpus", "--host", where).rc == 0
    assert client.run("exec", "gpus", "--", "true").rc == 0
    client.forget_masters()
    new_host_key(server)
    for place in ("gpus", where, "gpus"):
        one_error(client.exec(place, "true"), 255, "host key has changed", "ssh-keygen -f", "hosts-gpus")
    # A key of another type is another key, too.
    server.stop_sshd()
    server.host_key = server.folder / "ecdsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", server.host_key], check=True)
    server.start_sshd()
    for place in ("gpus", where):
        one_error(client.exec(place, "true"), 255, "host key")
    # The keys in the user's file do not replace those of a cluster, nor the other way round.
    known = client.root_home / ".ssh/known_hosts"
    known.write_text(f"{server.addr} {client.public_key}")
    for place in ("gpus", where):
        one_error(client.exec(place, "true"), 255, "list different host keys for this host", "known_hosts")


def test_a_key_that_one_file_refuses_is_refused_although_another_has_it_beside_the_first(world):
    client, server = world()
    where = f"me@{server.addr}"
    assert client.run("cluster", "add", "gpus", "--host", where).rc == 0
    for place in ("gpus", where):
        assert client.exec(place, "true").rc == 0
    [pins] = (client.root_home / ".local/state/lockstep").glob("hosts-*")
    (client.root_home / ".ssh/known_hosts").write_text(pins.read_text())
    client.forget_masters()
    new_host_key(server)
    new = " ".join(server.host_key.with_suffix(".pub").read_text().split()[:2])
    first = pins.read_text()
    pins.write_text(f"{first}{server.addr} {new}\n")
    for place in ("gpus", where):
        one_error(client.exec(place, "true"), 255, "host key has changed", ".ssh/known_hosts")
    with open(client.root_home / ".ssh/known_hosts", "a") as known:
        known.write(f"{server.addr} {new}\n")
    for place in ("gpus", where):
        assert client.exec(place, "true").rc == 0


def test_a_key_that_the_user_has_revoked_is_refused_for_a_cluster(world):
    """The cluster's own file has the key, and ssh reads no other file unless it is named."""
    client, server = world()
    where = f"me@{server.addr}"
    assert client.run("cluster", "add", "gpus", "--host", where).rc == 0
    assert client.run("exec", "gpus", "--", "true").rc == 0
    client.forget_masters()
    known = client.root_home / ".ssh/known_hosts"
    key = " ".join(server.host_key.with_suffix(".pub").read_text().split()[:2])
    known.write_text(f"@revoked * {key}\n")
    for place in ("gpus", where):
        one_error(client.exec(place, "true"), 255, "the host key is revoked")
    known.write_text(f"@revoked other.example {key}\n")
    assert client.exec("gpus", "true").rc == 0


def test_the_kept_connection_knows_no_secrets(world):
    client, server = world()
    secrets = {"AWS_SECRET_ACCESS_KEY": "hunter2", "HF_TOKEN": "hunter3", "MY_OWN": "4", "LOCKSTEP_SSH_ENV": "MY_OWN"}
    assert client.exec(f"me@{server.addr}", "true", env={**secrets, "LC_ALL": "C"}).rc == 0
    masters = [pid for pid, comm in client.host.processes().items() if comm == "ssh"]
    assert masters
    for pid in masters:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read().split(b"\0")
        assert not [each for each in environment if b"hunter" in each], environment
        assert {b"LC_ALL=C", b"MY_OWN=4"} <= set(environment), environment


def test_another_user_can_not_take_the_place_of_the_sockets(world):
    client, server = world()
    # A /tmp of its own, but for the test's folders.
    tests = "/" + "/".join(client.root_home.parts[1:3])
    for words in (("mkdir", "/home/kept"), ("mount", "--bind", tests, "/home/kept"),
                  ("mount", "-t", "tmpfs", "tmpfs", "/tmp"), ("mkdir", "-p", tests),
                  ("mount", "--bind", "/home/kept", tests), ("mkdir", "/tmp/lockstep-0")):
        client._inside(*words)
    client._inside("chown", "65534", "/tmp/lockstep-0")
    for _ in range(2):
        ended = client.exec(f"me@{server.addr}", "true", env={"XDG_RUNTIME_DIR": None})
        assert ended.rc == 0 and "/tmp/lockstep-0-2 is used in its place" in ended.err, ended
    # Nor can another user take all of these names.
    client.forget_masters()
    for number in range(2, 10):
        client._inside("mkdir", "-p", f"/tmp/lockstep-0-{number}")
        client._inside("chown", "65534", f"/tmp/lockstep-0-{number}")
    for _ in range(2):
        ended = client.exec(f"me@{server.addr}", "true", env={"XDG_RUNTIME_DIR": None, "XDG_STATE_HOME": "/home/state"})
        assert ended.rc == 0 and "connections are kept in /home/state/lockstep/ssh" in ended.err, ended
    assert server.sshd.err().count("Accepted publickey") == 2, "each of the two connections was kept"


def test_a_key_with_a_passphrase_is_named_where_nobody_can_be_asked(world):
    client, server = world()
    key = client.root_home / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", key], check=True)
    client.key.unlink()
    one_error(client.exec(f"me@{server.addr}", "true", options=("--key-path", key)), 255,
              f"the key {key} needs a passphrase", f"ssh-add {key}")


def test_a_prompt_for_a_passphrase_is_not_written_into(world):
    client, server = world()
    key = client.root_home / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", key], check=True)
    (server.homes["me"] / ".ssh/authorized_keys").write_text(key.with_suffix(".pub").read_text())
    screen, terminal = os.openpty()
    run = client.start("exec", "--key-path", key, f"me@{server.addr}", "--", "echo", "there", stdin=terminal,
                       stderr=terminal, start_new_session=True, process_group=None,
                       preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(terminal)
    seen = b""
    while b"Enter passphrase" not in seen:
        seen += os.read(screen, 4096)
    # Longer than the first notice of a wait.
    readable, _, _ = select.select([screen], [], [], 8)
    more = os.read(screen, 4096) if readable else b""
    assert b"lockstep" not in more, more
    os.write(screen, b"secret\n")
    ended = run.wait(60)
    assert (ended.rc, ended.out) == (0, "there\n"), ended
    os.close(screen)


def test_slips_of_a_beginner_are_named(world):
    client, server = world()
    where = f"me@{server.addr}"
    assert client.run("cluster", "add", "gpus", "--host", where).rc == 0
    one_error(client.exec("gpu", "true"), 255, "the name gpu does not resolve", "did you mean the cluster gpus?")
    one_error(client.run("exec", "gpus", "ls | wc -l"), 127, "lockstep exec gpus --shell 'ls | wc -l'")
    one_error(client.exec(where, "true", options=("--key-path", "/no/key")), 2,
              "--key-path /no/key: there is no such file")
    one_error(client.exec(where, "true", options=("--env-file", "/no/file")), 2, "--env-file", "/no/file")


def test_a_key_that_others_may_read_is_named(world):
    client, server = world()
    client.key.chmod(0o644)
    one_error(client.exec(f"me@{server.addr}", "true", options=("--key-path", client.key)), 255,
              "other users may read the key", "chmod 600")


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
    """Returns the id of ssh/binary.cc: FNV-1a of the machine's name and the user's number, in native byte order."""
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
    shutil.rmtree(client.root_home / ".cache/lockstep/push")  # which the harness has filled: they pack the binary, too
    pushes = note_pushes(server)
    runs = [client.start("exec", f"me@{server.addr}", "--", "echo", "hi") for _ in range(5)]
    for run in runs:
        ended = run.wait(60)
        assert (ended.rc, ended.out) == (0, "hi\n"), ended
    assert server.sshd.err().count("Accepted publickey") == 1
    assert pushes() == ["new"]
    assert len(list((server.homes["me"] / ".cache/lockstep/bin").iterdir())) == 1
    (packed,) = (client.root_home / ".cache/lockstep/push").iterdir()
    assert packed.name == packed_binary().name and packed.read_bytes() == packed_binary().read_bytes()


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
                        (("exec", "--", "-oProxyCommand=id", "true"), ["is not a host"]),
                        (("exec", "u@h", "--user", "v", "true"), ["name a user"]),
                        (("exec", "h", "--shell", "a", "--", "b"), ["--shell"])):
        one_error(client.run(*args), 2, *words)
    assert "Connection from" not in server.sshd.err()
