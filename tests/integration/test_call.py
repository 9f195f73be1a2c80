"""lockstep call: a Python function on hosts with a real sshd, with nothing there but their python3."""
import json
import os
import signal

import pytest

from harness import until
from ssh_hosts import FIRST_UID, SshWorld

FUNCTIONS = """
import os, sys, time

def add(a, b=1):
    print("adding")
    print("to stderr", file=sys.stderr)
    return {"sum": a + b, "where": os.getcwd(), "env": os.environ.get("GIVEN")}

def fail(text):
    raise ValueError(text, 2)

def odd():
    return {1, 2}

def nan():
    return float("nan")

def leave():
    os._exit(7)

def die():
    os.kill(os.getpid(), 9)

def leave_with(code):
    sys.exit(code)

def children():
    import subprocess
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    return sorted(os.listdir("/proc/self/fd")), "LOCKSTEP_RESULT_FD" in os.environ, sys.stdin.read()

def wait():
    print("up")
    time.sleep(1000)

class Trainer:
    @staticmethod
    def fit(n): return n
    limit = 3
"""


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


@pytest.fixture
def host(world):
    """(client, server, call): call(FUNCTION, ARGS...) in ~/proj there, where functions.py lies."""
    client, server = world()
    project = server.homes["me"] / "proj"
    project.mkdir()
    (project / "functions.py").write_text(FUNCTIONS)
    os.chown(project, FIRST_UID, FIRST_UID)
    where = f"me@{server.addr}"
    assert client.exec(where, "true").rc == 0  # a slow first contact would tell that it waits

    def call(function, *options, **more):
        return client.run("call", where, function, "--cwd", "proj", *options, **more)
    return client, server, call


def one_line(ended, code, *words):
    (line,) = ended.err.splitlines()
    assert ended.rc == code and ended.out == "" and all(word in line for word in words), ended


def test_the_value_comes_last_and_prints_as_they_are(host):
    client, server, call = host
    ended = call("functions:add", "--args", "[2]", "--kwargs", '{"b": 3}', "--env", "GIVEN=a b")
    first, value = ended.out.splitlines()
    assert (ended.rc, first, ended.err) == (0, "adding", "to stderr\n"), ended
    assert json.loads(value) == {"sum": 5, "where": "/home/me/proj", "env": "a b"}
    (client.folder / "vars").write_text("# names\nGIVEN=from a file\n")
    for options, value in ((("--env-file", client.folder / "vars"), "from a file"), (("--secret", "GIVEN"), "hidden"),
                           (("--env", "GIVEN"), "hidden")):
        ended = call("functions:add", "--args", "[2]", *options, env={"GIVEN": "hidden"})
        assert ended.rc == 0 and json.loads(ended.out.splitlines()[1])["env"] == value, ended
    ended = call("functions:add", "--secret", "NOT_THERE")
    assert ended.rc == 2 and "NOT_THERE" in ended.err, ended
    assert call("functions:Trainer.fit", "--args", '["\\u00e9\\u001b[1m"]').out == '"\\u00e9\\u001b[1m"\n'
    server.nothing_left()


def test_json_is_one_object_whatever_the_function_prints(host):
    client, server, call = host
    ended = call("functions:add", "--args", "[2]", "--json")
    (node,) = json.loads(ended.out)["nodes"]
    assert (ended.rc, node["code"], node["value"]["sum"]) == (0, 0, 3) and "adding\n" in ended.err, ended
    assert node["node"] == f"me@{server.addr}"
    (node,) = json.loads(call("functions:fail", "--args", '["no"]', "--json").out)["nodes"]
    assert (node["code"], node["error"]["type"], node["error"]["module"]) == (1, "ValueError", "builtins")
    assert node["error"]["message"] == "ValueError: ('no', 2)" and "in fail" in node["error"]["traceback"]
    (node,) = json.loads(call("functions:nothing", "--json").out)["nodes"]
    assert node["code"] == 3 and "has no function 'nothing'" in node["error"]["message"]


def test_an_exception_is_the_traceback_and_code_1(host):
    client, server, call = host
    ended = call("functions:fail", "--args", '["no such data"]')
    lines = ended.err.splitlines()
    assert (ended.rc, ended.out, lines[0]) == (1, "", "Traceback (most recent call last):"), ended
    assert lines[-1] == "ValueError: ('no such data', 2)"
    assert "functions.py" in lines[1] and "in fail" in lines[1] and "_runner" not in ended.err, ended
    assert call("functions:leave_with", "--args", "[5]").rc == 5


def test_what_cannot_be_called_is_one_line(host):
    client, server, call = host
    where = f"me@{server.addr}"
    one_line(call("no_such:f"), 3, where, "found no module 'no_such'", "/home/me/proj")
    one_line(call("functions:nothing"), 3, where, "module 'functions' has no function 'nothing'",
             "it has: Trainer, add")
    one_line(call("functions:Trainer.limit"), 3, where, "is a int, which can't be called")
    one_line(call("functions:odd"), 3, where, "the value of odd, a set, is not JSON")
    one_line(call("functions:nan"), 3, where, "the value of nan, a float, is not JSON")
    one_line(call("functions:leave"), 7, where, "ended with code 7 before the function returned")
    one_line(call("functions:die"), 137, where, "ended by SIGKILL")
    one_line(call("functions:add", "--python", "python9"), 127, where, "no executable python9 is found")
    one_line(call("functions"), 2, "'functions' does not name a function", "module:function")
    one_line(client.run("call", where, "functions:add", "--cwd", "nowhere"), 126, where, "nowhere: No such file")
    one_line(client.run("call", "me@no-such-host", "a:b", "--cwd", "x"), 255, "does not resolve")


def test_a_module_that_fails_to_import_shows_where(host):
    client, server, call = host
    (server.homes["me"] / "proj/broken.py").write_text("import no_such_thing\n")
    ended = call("broken:f")
    assert ended.rc == 1 and "ModuleNotFoundError: No module named 'no_such_thing'" in ended.err, ended
    assert "broken.py\", line 1" in ended.err, ended


def test_the_project_and_the_folder_in_it_are_found(host):
    client, server, call = host
    work = client.folder / "proj/sub"
    (work.parent / ".git").mkdir(parents=True)
    (work.parent / ".git/HEAD").write_text("ref: refs/heads/main\n")
    work.mkdir()
    where = f"me@{server.addr}"
    one_line(client.run("call", where, "functions:add", cwd=work), 126, "lockstep sync", where)
    (server.homes["me"] / "proj/sub").mkdir()
    ended = client.run("call", where, "functions:add", "--args", "[1]", "--json", cwd=work)
    assert json.loads(ended.out)["nodes"][0]["value"]["where"] == "/home/me/proj/sub", ended


def test_an_edited_module_is_never_stale(host):
    client, server, call = host
    module = server.homes["me"] / "proj/fresh.py"
    stamp = 1_700_000_000_000_000_000
    for number in range(3):  # the same size and the same time: what Python's own cache is decided by
        module.write_text(f"def value(): return {number}\n")
        os.utime(module, ns=(stamp, stamp))
        if number == 0:  # another program has left the byte code
            client.exec(f"me@{server.addr}", "sh", "-c", "cd proj && python3 -c 'import fresh'")
            assert (module.parent / "__pycache__").exists()
        assert call("fresh:value").out == f"{number}\n"


def test_what_a_function_starts_does_not_hold_the_answer(host):
    client, server, call = host
    ended = call("functions:children")
    descriptors, variable, stdin = json.loads(ended.out)
    assert (ended.rc, variable, stdin) == (0, False, "") and len(descriptors) <= 5, ended
    server.nothing_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_caller_that_ends_leaves_nothing(host, number):
    client, server, call = host
    run = client.start("call", f"me@{server.addr}", "functions:wait", "--cwd", "proj")
    until(lambda: "up" in run.out(), 30, "the function runs")
    run.signal(number)
    ended = run.wait(30)
    if number == signal.SIGINT:
        assert ended.rc == 130 and "KeyboardInterrupt" in ended.err, ended
    server.nothing_left()


def test_all_nodes_of_a_cluster(world):
    client, *servers = world(2)
    where = [part for server in servers for part in ("--host", f"me@{server.addr}")]
    state = {"XDG_STATE_HOME": client.folder / "state"}
    assert client.run("cluster", "add", "gpus", *where, env=state).rc == 0
    for server in servers:
        assert client.exec(f"me@{server.addr}", "true").rc == 0
    ended = client.run("call", "gpus", "platform:node", "--cwd", ".", env=state)
    assert ended.rc == 0 and ended.out.splitlines() == [
        f"gpus-{number}: \"{server.name}\"" for number, server in enumerate(servers)], ended
    ended = client.run("call", "gpus", "platform:node", "--cwd", ".", "--nodes", "1", "--json", env=state)
    assert [node["node"] for node in json.loads(ended.out)["nodes"]] == ["gpus-1"], ended
