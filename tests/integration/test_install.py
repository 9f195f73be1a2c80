"""lockstep install: packages in a project's environment on hosts, by the real pip from an index on the host.

uv and conda are not available to these tests: stand-ins note how they are called.
"""
import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import time
import termios

import pytest

from harness import until
from package_index import Index, small_source_files, source_files, write_wheel
from ssh_hosts import SshWorld

MANY = 500.0  # seconds that pip and venv may take on a busy machine
OLD = 978307200  # 2001


class Place:
    """A project on the client, and its installation on one server."""

    def __init__(self, world, index=True, servers=1):
        self.client, *self.servers = world(servers)
        self.server = self.servers[0]
        self.where = f"me@{self.server.addr}"
        self.root = self.client.folder / "code"
        self.root.mkdir()
        self.indexes = [Index(server) for server in self.servers] if index else []
        self.index = self.indexes[0] if index else None

    def write(self, files, when=None):
        """Files of the project; None: it is removed."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
                continue
            path.write_text(text)
            if when:
                os.utime(path, (when, when))

    def start(self, *args, where=None, **options):
        return self.client.start("install", where or self.where, *args, cwd=self.root, **options)

    def install(self, *args, **options):
        return self.start(*args, **options).wait(MANY)

    def states(self, *args):
        """Returns the state of each step."""
        ended = self.install("--json", *args)
        assert ended.rc == 0, ended
        (host,) = json.loads(ended.out)
        self.environment = host["environment"]
        return [step["state"] for step in host["steps"]]

    def python(self, code):
        """In the environment of the last states()."""
        ended = self.client.exec(self.where, self.environment["python"], "-c", code)
        assert ended.rc == 0, ended
        return ended.out.strip()

    def close(self):
        for index in self.indexes:
            index.stop()


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


@pytest.fixture
def place(world):
    places = []

    def make(**options):
        places.append(Place(world, **options))
        return places[-1]
    yield make
    for each in places:
        each.close()


def one_error(ended, code, *words):
    lines = [line for line in ended.err.splitlines() if "error:" in line and line.startswith("lockstep")]
    assert ended.rc == code, ended
    assert len(lines) == 1 and all(word in lines[0] for word in words), ended


def stand_in(server, path, text):
    program = server.homes["me"] / path
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)
    subprocess.run(["chown", "-R", "2001", server.homes["me"] / path.split("/")[0]], check=True)


UV = """#!/bin/sh
for each; do printf '%s ' "$each" >> ~/uv.log; done; echo >> ~/uv.log
case "$*" in
  venv*) exec "$3" -m venv --without-pip "$4";;
  *broken*) echo "error: no such package"; exit 3;;
  *slow*) echo started; read _ < ~/gate;;
esac
sites=$(ls -d "${4%/bin/python}"/lib/python3.*/site-packages)
for word; do case $word in -*|/*) ;; pip|install) ;; *) mkdir -p "$sites/$word-1.dist-info";; esac; done
"""


def with_uv(place):
    stand_in(place.server, ".local/bin/uv", UV)

    def log():
        file = place.server.homes["me"] / "uv.log"
        return [line.strip() for line in file.read_text().splitlines()] if file.exists() else []
    return log


def test_packages_requirements_and_the_project_itself(place):
    here = place()
    here.index.wheel("toy_base", "1.0", "NAME = 'base'\n")
    here.index.wheel("toy_more", "1.0", "NAME = 'more'\n", requires=["toy_base"])
    here.index.sdist("toy_built", "1.0", "NAME = 'built'\n")
    here.write({**source_files("toy_own", "1.0", "VALUE = 1\n", ["toy_base"]), "toy_own/gone.py": "",
                "requirements.txt": "-r docs/base.txt\n", "docs/base.txt": "toy_built\n"})
    specs = ["toy_more --no-compile", "reqs:./", "pip:./"]
    ended = here.install(*specs)
    assert ended.rc == 0, ended
    assert f"{here.where}: 3 done, 0 unchanged; /home/me/.local/share/lockstep/venvs/code-" in ended.out
    assert "step 2 of 3: reqs:./" in ended.err and "Successfully installed toy" in ended.err

    # Nothing has changed: nothing is asked of the index either.
    asked = here.index.asked()
    assert here.states(*specs) == ["unchanged"] * 3
    assert here.index.asked() == asked
    shown = here.python("import toy_base, toy_more, toy_built, toy_own; print(toy_built.NAME, toy_own.VALUE)")
    assert shown == "built 1"

    # Edited source counts, also with an old time; so does a file that is gone.
    here.write({"toy_own/__init__.py": "VALUE = 2\n", "toy_own/gone.py": None}, when=OLD)
    assert here.states(*specs) == ["unchanged", "unchanged", "done"]
    shown = here.python("import toy_own, importlib.util as u; print(toy_own.VALUE, u.find_spec('toy_own.gone'))")
    assert shown == "2 None"
    assert not (here.server.homes["me"] / "code/build").exists()

    # A file that another one includes counts, and so does what others do to the environment. What follows a step that
    # has changed the environment is done again.
    here.index.wheel("toy_late", "1.0", "")
    here.write({"docs/base.txt": "toy_built\ntoy_late\n"})
    assert here.states(*specs) == ["unchanged", "done", "done"]
    here.client.exec(here.where, here.environment["python"], "-m", "pip", "uninstall", "-y", "toy_more")
    assert here.states(*specs) == ["done"] * 3
    assert here.python("import toy_more, toy_late; print(toy_more.NAME)") == "more"
    assert here.states("--force", specs[0]) == ["done"]


def test_what_comes_from_a_wheel_or_a_repository_is_never_stale(place):
    here = place()
    here.index.wheel("toy_base", "1.0", "")
    repository = here.server.homes["me"] / "repository"

    def commit(value):
        for name, text in small_source_files("toy_git", "1.0", f"VALUE = {value}\n").items():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            (repository / name).write_text(text)
        for command in (["init", "-q", "-b", "main"], ["add", "-A"],
                        ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]):
            subprocess.run(["git", "-c", "safe.directory=*", *command], cwd=repository, check=True, capture_output=True)
        subprocess.run(["chown", "-R", "2001", repository], check=True)
    repository.mkdir()
    commit(1)
    wheel = write_wheel(here.root / "my dist", "toy_wheel", "1.0", "VALUE = 1\n", ["toy_base"])
    specs = ["git:/home/me/repository@main", f"wheel:'my dist/{wheel.name}'"]
    show = "import toy_git, toy_wheel, toy_base; print(toy_git.VALUE, toy_wheel.VALUE)"
    assert here.states(*specs) == ["done", "done"]
    assert here.python(show) == "1 1"
    assert here.states(*specs) == ["unchanged", "unchanged"]
    commit(2)  # the branch moves, the version stays
    assert here.states(*specs) == ["done", "done"]  # the second builds upon the first
    assert here.python(show) == "2 1"
    write_wheel(here.root / "my dist", "toy_wheel", "1.0", "VALUE = 2\n", ["toy_base"])
    wheels = here.server.homes["me"] / ".cache/lockstep/wheels"
    (first,) = wheels.iterdir()
    (wheels / ".draft-abc").write_text("x")  # of an install that was cut off

    def come_back_after(days):
        for each in wheels.iterdir():
            os.utime(each, (time.time() - days * 86400,) * 2)
        states = here.states(*specs)
        return states, sorted(path.name for path in wheels.iterdir())
    states, kept = come_back_after(6)
    assert states == ["unchanged", "done"] and here.python(show) == "2 2"
    assert len(kept) == 3 and {".draft-abc", first.name} < set(kept), kept
    second = next(name for name in kept if name not in (".draft-abc", first.name))
    assert come_back_after(8) == (["unchanged", "unchanged"], [second])


def test_a_failed_step_ends_it_with_its_code_and_last_lines(place):
    here = place()
    here.index.wheel("toy_base", "1.0", "")
    ended = here.install("--json", "toy_base", "no_such_toy", "local:./")
    one_error(ended, 1, here.where, "step 2 of 3: no_such_toy", "code 1", "No matching distribution found")
    (host,) = json.loads(ended.out)
    assert [step["state"] for step in host["steps"]] == ["done", "failed"]
    assert any("No matching distribution" in line for line in host["tail"])
    assert here.states("toy_base") == ["unchanged"]


def test_the_hosts_own_python_refuses_with_what_pip_says(place):
    here = place(index=False)
    ended = here.install("--system", "toy_base")
    one_error(ended, 1, here.where, "externally-managed-environment", "--venv auto", "sees the host's PyTorch",
              "--break-system-packages")
    assert "This environment is externally managed" in ended.err
    # A project that has kept the host's Python comes to its own environment by what the error says.
    here.write({"src/x.py": ""})
    assert here.states("--system", "local:src") == ["done"]
    one_error(here.install("toy_base"), 1, "externally-managed-environment", "--venv auto")
    with_uv(here)
    assert here.states("--venv", "auto", "toy_base") == ["done"]
    assert here.environment["kind"] == "venv"


def test_an_environment_sees_the_pytorch_of_its_host(place):
    """Debian's python3-torch: the environment of a project must not hide what the host's jobs ran with before."""
    here = place()
    here.index.wheel("toy_base", "1.0", "NAME = 'base'\n")
    show = "import sys, torch, toy_base; print(sys.prefix, torch.__file__, torch.ones(2).sum().item())"
    assert here.states("toy_base") == ["done"]
    torch = here.client.exec(here.where, "/usr/bin/python3", "-c", "import torch; print(torch.__file__)").out.strip()
    assert here.python(show) == f"{here.environment['prefix']} {torch} 2.0"

    # An environment that an earlier version made without the host's packages is mended by the next install.
    config = here.server.homes["me"] / here.environment["prefix"].removeprefix("/home/me/") / "pyvenv.cfg"
    config.write_text(config.read_text().replace("= true", "= false"))
    ended = here.install("toy_base")
    assert ended.rc == 0 and "sees the packages of /usr/bin/python3, PyTorch among them" in ended.err, ended
    assert here.python(show) == f"{here.environment['prefix']} {torch} 2.0"
    assert here.states("toy_base") == ["unchanged"]


def test_an_environment_made_of_an_environment_or_by_the_user(place):
    here = place(index=False)
    with_uv(here)

    def venv(name, *packages):
        python = f"/home/me/{name}/bin/python"
        made = here.client.exec(here.where, "/usr/bin/python3", "-m", "venv", "--without-pip", f"/home/me/{name}")
        assert made.rc == 0, made
        (sites,) = (here.server.homes["me"] / name / "lib").glob("python3*/site-packages")
        for package in packages:
            (sites / f"{package}.py").write_text(f"NAME = {name!r}\n")
        return python
    # A host's python3 may be an environment that its image came with: what that has is seen, nothing else.
    assert here.states("--python", venv("image's own", "torch", "toy_image"), "toy") == ["done"]
    assert here.python("import torch, toy_image; print(torch.NAME)") == "image's own"
    assert here.python("import importlib.util as u; print(u.find_spec('numpy'))") == "None"
    # Where it has no PyTorch an environment stays for itself.
    assert here.states("--venv", "apart", "--python", venv("bare", "toy_image"), "toy") == ["done"]
    assert here.python("import importlib.util as u; print(u.find_spec('toy_image'))") == "None"
    one_error(here.install("--no-uv", "toy2"), 1, "/home/me/code/apart/bin/python has no pip")
    # The user's own environment is left as it is, and the way out is named; it is not where it has a PyTorch.
    venv("mine")
    ended = here.install("--venv", "~/mine", "toy")
    assert ended.rc == 0 and "/home/me/mine does not see the PyTorch of /usr/bin/python3: install torch" in ended.err
    assert "include-system-site-packages = false" in (here.server.homes["me"] / "mine/pyvenv.cfg").read_text()
    venv("with", "torch")
    ended = here.install("--venv", "~/with", "toy")
    assert ended.rc == 0 and "PyTorch" not in ended.err
    assert "include-system-site-packages = false" in (here.server.homes["me"] / "with/pyvenv.cfg").read_text()


def test_steps_by_uv(place):
    here = place(index=False)
    log = with_uv(here)
    here.write({"setup.py": "", "reqs.txt": "./lib\n", "lib/setup.py": ""})
    assert here.states("toy -U", "pip:./", "reqs:reqs.txt") == ["done"] * 3
    prefix = here.environment["prefix"]
    assert here.environment["kind"] == "venv" and prefix.startswith("/home/me/.local/share/lockstep/venvs/code-")
    begin = f"pip install --python {prefix}/bin/python"
    assert log() == [f"venv --python /usr/bin/python3 {prefix}", f"{begin} toy -U",
                     f"{begin} --reinstall --no-deps /home/me/code", f"{begin} /home/me/code",
                     f"{begin} --reinstall -r /home/me/code/reqs.txt"]
    assert here.states("toy -U", "pip:./", "reqs:reqs.txt") == ["unchanged"] * 3
    one_error(here.install("broken", "toy"), 3, "step 1 of 2: broken", "code 3", "no such package")
    here.write({"lib/setup.py": "1"})
    assert here.states("toy -U", "reqs:reqs.txt") == ["unchanged", "done"]


def test_conda_files_and_environments(place):
    here = place(index=False)
    with_uv(here)
    stand_in(here.server, "miniforge3/bin/conda", """#!/bin/sh
echo "$@" >> ~/conda.log
case "$*" in
  info*) echo '{"root_prefix": "/home/me/miniforge3", "envs": ["/home/me/miniforge3", "/home/me/envs/known"],'
         echo ' "envs_dirs": ["/home/me/envs"]}';;
  env*) python3 -m venv --without-pip "$4" && mkdir -p "$4/conda-meta";;
esac
""")
    log = here.server.homes["me"] / "conda.log"
    here.write({"env.yml": "dependencies: [python]\n"})
    assert here.states("conda:env.yml", "toy") == ["done", "done"]
    assert here.environment["kind"] == "conda"
    prefix = here.environment["prefix"]
    assert prefix.startswith("/home/me/.local/share/lockstep/conda/code-")
    assert log.read_text() == f"env create -p {prefix} -f /home/me/code/env.yml\n"
    assert here.states("conda:env.yml", "toy") == ["unchanged", "unchanged"]
    here.write({"env.yml": "dependencies: [python, numpy]\n"})
    assert here.states("conda:env.yml", "toy")[0] == "done"
    assert log.read_text().splitlines()[-1] == f"env update -p {prefix} -f /home/me/code/env.yml"
    # The environment stays the project's until the user names another.
    assert here.states("more") == ["done"] and here.environment["prefix"] == prefix
    assert here.states("--conda", "new", "conda:env.yml") == ["done"]
    assert here.environment["prefix"] == "/home/me/envs/new"
    one_error(here.install("--conda", "none", "toy"), 1, "there is no conda environment none")
    one_error(here.install("--venv", "auto", "conda:env.yml"), 2, "can't go into a virtual environment")
    shutil.rmtree(here.server.homes["me"] / "miniforge3")
    one_error(here.install("conda:env.yml"), 127, here.where, "conda is not on this host")


def test_environments_that_are_named(place):
    here = place(index=False)
    with_uv(here)
    assert here.states("--venv", "~/my env", "toy") == ["done"]
    assert here.environment == {"kind": "venv", "prefix": "/home/me/my env", "python": "/home/me/my env/bin/python",
                                "local": []}
    assert here.states("toy") == ["unchanged"]  # it is the project's from now on
    here.write({"src/toy_local.py": "", "a file": ""})
    assert here.states("local:./src", "local:src") == ["done", "done"]
    assert here.environment["prefix"] == "/home/me/my env" and here.environment["local"] == ["/home/me/code/src"]
    assert here.states("--venv", "auto", "toy") == ["done"]
    assert "/lockstep/venvs/code-" in here.environment["prefix"]
    one_error(here.install("--venv", "src", "toy"), 1, "/home/me/code/src", "is not a working virtual environment")
    one_error(here.install("--venv", "x", "--python", "python9", "toy"), 127, "no Python python9")
    # Our own is made anew where its Python is gone.
    (here.server.homes["me"] / here.environment["python"].removeprefix("/home/me/")).unlink()
    assert here.states("toy") == ["done"]


def test_two_at_once_wait_and_what_was_cut_off_is_done_again(place):
    here = place(index=False)
    log = with_uv(here)
    gate = here.server.homes["me"] / "gate"
    os.mkfifo(gate)
    os.chown(gate, 2001, 2001)
    first = here.start("toy", "slow")
    until(lambda: "started" in first.err(), MANY, "the slow step")
    second = here.start("toy", "slow")
    until(lambda: "waiting: another install works on" in second.err(), MANY, "the second waits")
    first.signal(signal.SIGKILL)
    assert first.process.wait(10) == -signal.SIGKILL
    until(lambda: "started" in second.err(), MANY, "the second takes its turn")
    gate.write_text("\n")
    ended = second.wait(MANY)
    assert ended.rc == 0, ended
    assert "1 done, 1 unchanged" in ended.out  # the slow one again, the other not
    assert sum("slow" in line for line in log()) == 2
    assert here.states("toy", "slow") == ["unchanged", "unchanged"]


def hide(server, *names):
    """Hides programs on the host."""
    top = server.folder / "usr-bin"
    top.mkdir()
    server._inside("mount", "-t", "tmpfs", "tmpfs", top)
    server._inside("mkdir", top / "upper", top / "work")
    server._inside("mount", "-t", "overlay", "overlay", "-o",
                   f"lowerdir=/usr/bin,upperdir={top}/upper,workdir={top}/work", "/usr/bin")
    server._inside("sh", "-c", f"cd /usr/bin && rm -f {' '.join(names)}")


def test_what_a_host_lacks_is_named(place):
    here = place(index=False)
    empty = here.server.folder / "empty"
    empty.mkdir()
    (library,) = pathlib.Path("/usr/lib").glob("python3.*/ensurepip")
    here.server._inside("mount", "--bind", empty, library)
    one_error(here.install("toy"), 1, here.where, "can't make virtual environments", "apt install python3-venv")
    assert not (here.server.homes["me"] / ".local/share/lockstep/venvs").exists()
    hide(here.server, "python3*", "git")
    one_error(here.install("toy"), 127, here.where, "Python is not on this host", "--python PATH")
    one_error(here.install("pip:./"), 127, "Python is not on this host")
    here.write({"src/x.py": ""})
    assert here.states("local:src") == ["done"]
    assert here.environment == {"kind": "none", "prefix": "", "python": "", "local": ["/home/me/code/src"]}


def test_files_that_are_not_there_are_named(place):
    here = place(index=False)
    with_uv(here)
    one_error(here.install("reqs:none.txt"), 1, here.where, "step 1 of 1", "no file /home/me/code/none.txt")
    one_error(here.install("pip:./none"), 1, "no folder /home/me/code/none")
    one_error(here.install("local:none"), 1, "no folder /home/me/code/none")
    one_error(here.install("wheel:none.whl"), 2, "there is no", "none.whl")


def test_nodes_install_side_by_side(place):
    here = place(index=False, servers=2)
    for server in here.servers:
        stand_in(server, ".local/bin/uv", UV)
    hosts = [part for server in here.servers for part in ("--host", f"me@{server.addr}")]
    assert here.client.run("cluster", "add", "gpus", *hosts).rc == 0
    ended = here.install("toy", where="gpus")
    assert ended.rc == 0, ended
    assert [line.split(";")[0] for line in ended.out.splitlines()] == ["gpus-0: 1 done, 0 unchanged",
                                                                       "gpus-1: 1 done, 0 unchanged"]
    assert "gpus-1: step 1 of 1: toy\n" in ended.err
    here.servers[1].stop_sshd()
    here.client.forget_masters()
    ended = here.install("toy", where="gpus")
    one_error(ended, 255, "gpus-1", "refused")
    assert ended.out.startswith("gpus-0: 0 done, 1 unchanged")
    assert here.install("--nodes", "0", "broken", where="gpus").rc == 3


def test_files_are_synced_unless_told_otherwise(place):
    here = place(index=False, servers=2)
    here.write({"src/a.py": ""})
    hosts = [part for server in here.servers for part in ("--host", f"me@{server.addr}")]
    assert here.client.run("cluster", "add", "gpus", *hosts).rc == 0
    one_error(here.install("--no-sync", "--nodes", "0", "local:src", where="gpus"), 1, "no folder /home/me/code/src",
              "lockstep sync")
    # A host that has not got the files installs nothing, and keeps no other from it.
    (here.servers[0].homes["me"] / "code").mkdir()
    (here.servers[0].homes["me"] / "code/src").write_text("in the way")
    ended = here.install("local:src", where="gpus")
    one_error(ended, 1, "gpus-0")
    assert ended.out == "gpus-1: 1 done, 0 unchanged\n"


def test_on_a_terminal_each_host_has_one_line(place):
    here = place(index=False)
    with_uv(here)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    shown = b""

    def seen(run):
        """All that was drawn, once the run has ended."""
        nonlocal shown
        with contextlib.suppress(BlockingIOError):
            shown += os.read(ours, 1 << 16)
        return run.process.poll() is not None
    os.set_blocking(ours, False)
    for spec, code in (("toy", 0), ("broken", 3)):
        run = here.start(spec, stderr=theirs)
        until(lambda: seen(run), MANY, "it has ended")
        assert run.process.returncode == code, shown
    os.close(theirs)
    os.close(ours)
    text = shown.decode()
    assert f"{here.where}: making the virtual environment" in text
    assert f"\x1b[1A\x1b[J{here.where}: step 1 of 1: toy\r\n\x1b[1A\x1b[J" in text
    # The error is shown after the progress lines are erased.
    assert text.rpartition("\x1b[J")[2].startswith(f"{here.where}: error: no such package\r\nlockstep install: error:")


def test_bad_input_starts_nothing(place):
    here = place(index=False)
    for args, words in (((), ["no spec"]), (("npm:x",), ["'npm:x'", "pip:NAME", "reqs:FILE"]),
                        (("toy", "pip:../x"), ["leaves the project"]),
                        (("--system", "--venv", "x", "toy"), ["more than one of"]),
                        (("--system", "conda:x.yml"), ["can't go into"]), (("--project", "/none", "toy"), ["/none"])):
        one_error(here.install(*args), 2, *words)
    assert here.client.run("install").rc == 2
    assert "Connection from" not in here.server.sshd.err()
