"""Variables for commands of lockstep exec (--env, --env-file, --secret), and --json. The value of a secret goes over
the channel into the command's environment, and nowhere else."""
import base64
import hashlib
import json
import os
import pathlib
import signal

import pytest

from harness import until
from ssh_hosts import SshWorld


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def one_error(ended, code, *words):
    (line,) = [line for line in ended.err.splitlines() if "error:" in line]
    assert ended.rc == code and all(word in line for word in words), ended


def command_lines():
    """Returns the command lines of all processes on this machine and its hosts."""
    lines = []
    for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes())
        except OSError:
            pass  # it is gone
    return lines


def files_with(text, *folders):
    found = []
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = pathlib.Path(parent, name)
                if path.is_file() and text.encode() in path.read_bytes():
                    found.append(path)
    return found


def test_a_secret_is_in_no_command_line_and_in_no_file(world):
    client, server = world()
    secret, plain = "geheim-8a6b0c", "offen-77d1e2"
    (client.root_home / "vars").write_text(f"# of the job\nB={plain}\nCALLER\n")
    run = client.start("exec", "--secret", "TOKEN", "--env", f"A={plain}", "--env-file", client.root_home / "vars",
                       f"me@{server.addr}", "--", "sh", "-c",
                       'printf %s "$TOKEN" | sha256sum; echo "$A $B $CALLER"; exec sleep 1000',
                       env={"TOKEN": secret, "CALLER": "mine", "LOGLEVEL": "DEBUG"})
    until(lambda: "mine" in run.out(), 90, "the command runs")
    assert run.out().split("\n")[0].split()[0] == hashlib.sha256(secret.encode()).hexdigest()
    assert run.out().split("\n")[1] == f"{plain} {plain} mine"
    (sleeper,) = (pid for pid, comm in server.commands().items() if comm == "sleep")
    assert f"TOKEN={secret}".encode() in pathlib.Path(f"/proc/{sleeper}/environ").read_bytes()
    # The runtime folder lies in the client's own mount namespace.
    runtime = pathlib.Path(f"/proc/{client.host.holder.pid}/root{client.runtime}")
    assert list((runtime / "lockstep").iterdir())
    folders = (client.folder, runtime, server.folder, client.host.folder)
    # The same search finds values that are not secret.
    assert any(plain.encode() in line for line in command_lines()) and files_with(plain, *folders)
    assert not [line for line in command_lines() if secret.encode() in line]
    assert not files_with(secret, *folders)
    run.process.kill()
    run.wait(20)
    assert secret not in run.out() + run.err()
    server.nothing_left()


def test_variables_that_make_no_sense_start_nothing(world):
    client, server = world()
    where = f"me@{server.addr}"
    bad = client.root_home / "bad"
    bad.write_text("A=1\nexport B=2\n")
    for options, words in ((("--secret", "TOKEN"), ["--secret TOKEN", "not set here"]),
                           (("--secret", "TOKEN=hidden"), ["--secret TOKEN=..."]),
                           (("--env", "A B=1"), ["'A B' is not a valid variable name"]),
                           (("--env-file", "/nowhere"), ["/nowhere"]),
                           (("--env-file", bad), ["line 2", "export B"])):
        ended = client.exec(where, "true", options=options)
        one_error(ended, 2, *words)
        assert "hidden" not in ended.err
    assert "Connection from" not in server.sshd.err()


def test_json_tells_of_each_host_what_it_said_and_how_it_ended(world):
    client, *servers = world(3)
    hosts = [word for server in servers for word in ("--host", f"me@{server.addr}")]
    assert client.run("cluster", "add", "gpus", *hosts).rc == 0
    ended = client.exec("gpus", "sh", "-c", "hostname; printf 'a\\377b' >&2; case $(hostname) in "
                        f"{servers[1].name}) exit 4;; {servers[2].name}) kill -9 $$;; esac", options=("--json",))
    assert ended.out, ended
    report = json.loads(ended.out)
    assert (ended.rc, report["code"]) == (4, 4) and "error" not in ended.err, ended
    assert [host["name"] for host in report["hosts"]] == ["gpus-0", "gpus-1", "gpus-2"]
    assert [host["code"] for host in report["hosts"]] == [0, 4, 128 + signal.SIGKILL]
    assert [host.get("signal") for host in report["hosts"]] == [None, None, signal.SIGKILL]
    for host, server in zip(report["hosts"], servers):
        assert host["stdout"] == f"{server.name}\n" and "stdout_base64" not in host
        assert host["stderr"] == "a\N{REPLACEMENT CHARACTER}b"
        assert base64.b64decode(host["stderr_base64"]) == b"a\xffb"
    servers[1].stop_sshd()
    client.forget_masters()
    ended = client.exec("gpus", "true", options=("--json", "--nodes", "0-1"))
    report = json.loads(ended.out)
    assert ended.rc == 255 and "error" not in ended.err and "connection refused" in report["hosts"][1]["error"], ended
    ended = client.run("exec", "--json", f"me@{servers[0].addr}", "no-such-command")
    report = json.loads(ended.out)
    assert ended.rc == report["hosts"][0]["code"] == 127 and "no-such-command" in report["hosts"][0]["error"], ended
