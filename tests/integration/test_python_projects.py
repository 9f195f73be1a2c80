"""import lockstep with projects that are synced and installed for real, and examples/run_on_remote.py on it."""
import os
import subprocess
import sys

import pytest

from harness import BINARY, PYTHON, REPOSITORY
from package_index import Index, source_files
from ssh_hosts import SshWorld

EXAMPLE = REPOSITORY / "examples/run_on_remote.py"
SHOW = """
import json, sys, torch, toy_need, mine
print(json.dumps([sys.argv[1:], torch.NAME, toy_need.NAME, mine.VALUE]))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


@pytest.fixture
def project(world):
    """(folder, server, run): run(PROGRAM, ARGS...) in the folder on the client; the host's pip has an index."""
    client, server = world()
    index = Index(server)
    for name in ("toy_need", "toy_req", "torch"):
        index.wheel(name, "1.0", f"NAME = '{name}'\n")
    folder = client.folder / "proj"
    folder.mkdir()

    def write(files):
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def run(program, *args, cwd=folder, code=0):
        env = {"PYTHONPATH": REPOSITORY / "python", "LOCKSTEP_BINARY": BINARY, "PYTHONDONTWRITEBYTECODE": "1",
               "XDG_STATE_HOME": client.folder / "state"}
        ended = client.start(program, *args, program=(PYTHON,), cwd=cwd, env=env).wait(200)
        assert ended.rc == code, ended
        return ended
    yield write, server, run
    index.stop()


DOUBLE = "def double(n): return 2 * n\n"
CALLS = """
import os, sys, lockstep
import lib.tools

def here():
    import toy_req
    return lib.tools.VALUE, toy_req.NAME, os.getcwd(), sys.prefix

if __name__ == "__main__":
    gpu = lockstep.cluster(ips=["me@HOST"])
    call = lockstep.function(fn=here, system=gpu, reqs=["toy_req"], name="here")
    value, name, folder, prefix = call()
    assert (value, name, folder) == (1, "toy_req", "/home/me/proj"), (value, name, folder)
    assert prefix.startswith("/home/me/"), prefix  # the project's own environment
    with open("lib/tools.py", "w") as file:
        file.write("VALUE = 2\\ndef double(n): return 2 * n\\n")
    assert call()[0] == 2
    assert lockstep.function(lib.tools.double, gpu)(4) == 8
    os.mkdir("data")
    open("data/file", "w").close()
    os.chdir("data")
    assert call()[2] == "/home/me/proj/data", call()
"""


def test_a_project_is_brought_and_never_stale(project):
    write, server, run = project
    write({"lib/__init__.py": "", "lib/tools.py": "VALUE = 1\n" + DOUBLE,
           "main.py": CALLS.replace("HOST", server.addr)})
    run("main.py")


def test_a_step_that_fails_is_an_exception_and_commands_run_in_the_environment(project):
    write, server, run = project
    write({"main.py": f"""
import lockstep
gpu = lockstep.cluster(ips=["me@{server.addr}"])
assert gpu.run(["pwd"], stream_logs=False)[0].output == "/home/me\\n"
try:
    gpu.install_packages(["no_such_package"])
except lockstep.LockstepError as error:
    assert "no_such_package" in str(error) and error.code, error
else:
    raise AssertionError
gpu.install_packages(["toy_req"])
results = gpu.run(["pwd", "python3 -c 'import toy_req; print(toy_req.NAME)'"], stream_logs=False)
assert [each.output for each in results] == ["/home/me/proj\\n", "toy_req\\n"], results
assert gpu.sync()["hosts"][0]["code"] == 0
"""})
    run("main.py")


def test_an_example_runs_with_its_arguments_and_its_code(project):
    write, server, run = project
    write({**source_files("mine", "1.0", "VALUE = 1\n"), "examples/a b/show.py": SHOW,
           "examples/a b/requirements.txt": "toy_need\n"})
    options = ("--user", "me", "--host", server.addr, "--example", "a b/show.py")
    ended = run(EXAMPLE, *options, "3", "--host-like", "it's $HOME\n", "--", "--host", "x", code=3)
    assert ended.out.splitlines()[-1] == (
        '[["3", "--host-like", "it\'s $HOME\\n", "--host", "x"], "torch", "toy_need", 1]'), ended
    write({"mine/__init__.py": "VALUE = 2\n"})
    assert run(EXAMPLE, *options, "0").out.splitlines()[-1].endswith('"toy_need", 2]')


OWN = (["--host", "localhost"], ["--user", "me"], ["--key_path", "k"])
RENTED = (["--instance", "V100:1"], ["--provider", "cheapest"], ["--use_spot"], ["--use_spot", "False"],
          ["--max_price", "2"], ["--budget", "9"])


def both(own, rented):
    """Defaults of Hugging Face's script among them: what counts is whether they are given."""
    return [*own, *rented], [f"{own[0]} and {rented[0]} exclude each other", f"leave out {own[0]}, or {rented[0]}"]


@pytest.mark.parametrize("given, words", [
    *(both(own, rented) for own in OWN for rented in RENTED),
    (["--host", "h", "--user", "u", "--instance", "A100:8", "--use_spot", "false"],
     ["leave out --host and --user, or --instance and --use_spot"]),
    (["--user", "me"], ["--user is of a machine of your own: give its --host"]),
    (["--key_path", "k"], ["--key_path is of a machine of your own: give its --host"]),
    (["--use_spot", "maybe"], ["'maybe' is neither true nor false"]),
    (["--max_price", "low"], ["--max_price", "'low'"]),
    ([], ["on which machine?", "--host", "--instance"]),
    (["--host", "h", "--example", "no/such.py"], ["there is no examples/no/such.py"]),
    (["--instance", "A100:8", "--example", "no/such.py"], ["there is no examples/no/such.py"]),
])
def test_bad_input_of_the_example_is_one_line(tmp_path, given, words):
    ended = subprocess.run([sys.executable, EXAMPLE, *given], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                           env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")})
    line = ended.stderr.splitlines()[-1]
    assert ended.returncode == 2 and "error: " in line and all(word in line for word in words), ended
