"""import lockstep with projects that are really synced and installed, and examples/run_on_remote.py."""
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
print(json.dumps([sys.argv[1:], torch.__name__, toy_need.NAME, mine.VALUE]))
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

    write.folder = folder

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
need = "python3 -c 'import toy_req; print(toy_req.NAME)'"
results = gpu.run(["pwd", need, need.split(" ", 2)[:2] + [need.split("'")[1]]], stream_logs=False)
assert [each.output for each in results] == ["/home/me\\n", "toy_req\\n", "toy_req\\n"], results
results = gpu.run(["pwd", ["pwd"]], stream_logs=False, cwd=gpu.folder)
assert [each.output for each in results] == ["/home/me/proj\\n", "/home/me/proj\\n"], results
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


def test_what_is_nobodys_project_is_not_sent(project):
    """Otherwise a .git that another user put above the current folder would send everything below."""
    write, server, run = project
    write({"shared/mine/main.py": f"""
import lockstep
gpu = lockstep.cluster(ips=["me@{server.addr}"])
def here():
    return 1
if __name__ == "__main__":
    for use in (gpu.sync, lockstep.function(here, gpu), lambda: gpu.install_packages(["toy_req"])):
        try:
            use()
        except lockstep.LockstepError as error:
            assert "dubious ownership" in str(error), error
        else:
            raise AssertionError(use)
""", "shared/.git/HEAD": "ref: refs/heads/main\n", "shared/secret": "another's"})
    os.chown(write.folder / "shared/.git", 4711, 0)
    run("main.py", cwd=write.folder / "shared/mine")
    assert not (server.homes["me"] / "shared").exists() and not (server.homes["me"] / "mine").exists()


# The calls of Hugging Face's script of 2023, one by one.
AS_RUNHOUSE = """
import argparse, shlex
import lockstep as rh

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--example")
    args, rest = parser.parse_known_args()
    gpu = rh.cluster(name="rh-cluster", ips=[args.host], ssh_creds={"ssh_user": "me", "ssh_private_key": None})
    gpu.up_if_not()
    gpu.install_packages(["pip:./"])
    gpu.run([f"pip install -r proj/examples/{args.example.rsplit('/', 1)[0]}/requirements.txt"])
    gpu.run(["pip install torch --upgrade"])
    gpu.run([f"python proj/examples/{args.example} {' '.join(map(shlex.quote, rest))}"])
"""


def test_hugging_faces_script_needs_another_import_and_no_more(project):
    write, server, run = project
    write({**source_files("mine", "1.0", "VALUE = 1\n"), "examples/text/show.py": SHOW,
           "examples/text/requirements.txt": "toy_need\n", "remote.py": AS_RUNHOUSE})
    options = ("--host", server.addr, "--example", "text/show.py")
    ended = run("remote.py", *options, "0", "it's $HOME")
    assert ended.out.splitlines()[-1] == '[["0", "it\'s $HOME"], "torch", "toy_need", 1]', ended
    # The script checks no result, but a failure there must not end with 0 here.
    ended = run("remote.py", *options, "3", code=1)
    assert "CommandError: python proj/examples/text/show.py 3 on rh-cluster ended with code 3" in ended.err, ended
    write({"examples/text/requirements.txt": "no_such_package\n"})
    ended = run("remote.py", *options, "0", code=1)
    assert "no_such_package" in ended.err and '"toy_need"' not in ended.out, ended


def test_localhost_is_this_machine_without_sshd(project):
    write, server, run = project
    write({"examples/show.py": "import os, sys; print(os.getcwd(), sys.argv[1:]); sys.exit(4)", "main.py": """
import lockstep, os
def where():
    return os.getcwd(), os.getpid()
if __name__ == "__main__":
    here = lockstep.cluster(ips=["localhost"])
    folder, pid = lockstep.function(where, here)()
    assert folder == os.path.expanduser("~/proj") and pid != os.getpid(), folder
    assert here.run(["pwd"], stream_logs=False)[0].output.strip() == os.path.expanduser("~")
    assert here.status()["nodes"][0]["reached"]
"""})
    run("main.py")
    ended = run(EXAMPLE, "--host", "localhost", "--torch", "", "--example", "show.py", "a b", code=4)
    assert ended.out.splitlines()[-1].endswith("/proj ['a b']"), ended


OWN = (["--host", "localhost"], ["--user", "me"], ["--key_path", "k"])
RENTED = (["--instance", "V100:1"], ["--provider", "cheapest"], ["--use_spot"], ["--use_spot", "False"],
          ["--max_price", "2"], ["--budget", "9"])


def both(own, rented):
    """Includes defaults of Hugging Face's script: only given options count."""
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
