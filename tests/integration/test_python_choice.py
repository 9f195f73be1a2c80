"""Which Python runs the script, with real virtual environments."""
import os
import subprocess
import sys

import pytest

from harness import BINARY

SCRIPT = "import sys; print(sys.prefix)"


@pytest.fixture(scope="module")
def venvs(tmp_path_factory):
    """Two virtual environments without lockstep, and a script that prints the one it runs in."""
    top = tmp_path_factory.mktemp("venvs")
    for name in ("a", "b"):
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", top / name], check=True, timeout=60)
    (top / "show.py").write_text(SCRIPT)
    return top


def put(folder, name="lockstep"):
    """As pip does: a file of its own."""
    target = folder / name
    if not target.exists():
        try:
            os.link(BINARY, target)
        except OSError:  # another file system
            target.write_bytes(BINARY.read_bytes())
            target.chmod(0o755)
    return target


def prefix(program, script, *args, cwd=None, **env):
    base = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHON_EXEC")}
    run = subprocess.run([program, *args, script], env={**base, **{k: str(v) for k, v in env.items()}}, cwd=cwd,
                         capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_called_by_path_it_is_that_of_its_own_environment(venvs):
    program = put(venvs / "a/bin")
    script = venvs / "show.py"
    assert prefix(program, script, "run") == str(venvs / "a")
    assert prefix("a/bin/lockstep", script, "run", cwd=venvs) == str(venvs / "a")
    assert prefix("./lockstep", script, "run", cwd=venvs / "a/bin") == str(venvs / "a")
    # torchrun's first line names its environment's Python, whatever is activated.
    assert prefix(program, script, "run", VIRTUAL_ENV=venvs / "b") == str(venvs / "a")


def test_found_in_path(venvs):
    put(venvs / "a/bin")
    path = f"/usr/bin:{venvs / 'a/bin'}"  # python3 is found in /usr/bin first
    shell = subprocess.run(["sh", "-c", f"exec lockstep run {venvs / 'show.py'}"], env={"PATH": path},
                           capture_output=True, text=True, timeout=30)
    assert shell.stdout.strip() == str(venvs / "a"), shell.stderr


def test_a_link_into_an_environment_and_one_in_an_environment(venvs, tmp_path):
    script = venvs / "show.py"
    (tmp_path / "lockstep").symlink_to(put(venvs / "a/bin"))  # as pipx does
    assert prefix(tmp_path / "lockstep", script, "run") == str(venvs / "a")
    link = venvs / "b/bin/torchrun"
    link.symlink_to(BINARY)
    assert prefix(link, script) == str(venvs / "b")


def test_python_exec_comes_first_and_a_plain_folder_has_none(venvs, tmp_path):
    script = venvs / "show.py"
    program = put(venvs / "a/bin")
    assert prefix(program, script, "run", PYTHON_EXEC=venvs / "b/bin/python3") == str(venvs / "b")
    plain = put(tmp_path)
    (tmp_path / "python3").symlink_to(venvs / "b/bin/python3")
    assert prefix(plain, script, "run", PATH="/usr/bin:/bin") != str(venvs / "b")
    assert prefix(plain, script, "run", VIRTUAL_ENV=venvs / "b") == str(venvs / "b")


def test_explain_says_where_it_comes_from(venvs):
    program = put(venvs / "a/bin")
    script = venvs / "show.py"
    def row(**env):
        return [line for line in prefix(program, script, "run", "--explain", **env).splitlines()
                if line.startswith("python ")]
    assert row()[0].split() == ["python", str(venvs / "a/bin/python3"),
                                *"rule: the virtual environment around lockstep".split()]
    assert row(PYTHON_EXEC=sys.executable)[0].endswith("environment variable PYTHON_EXEC")
