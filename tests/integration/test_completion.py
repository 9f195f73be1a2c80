"""The completion scripts in their shells, where these are installed."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import BINARY, BUILD

CASES = [
    ("lockstep ", {"run", "launch", "jobs", "logs", "wait", "cancel", "resume", "exec", "sync", "install", "call",
                   "cluster", "ssh", "forward", "store", "version", "help", "submit", "check", "why", "top", "page",
                   "events", "trace", "profile", "doctor", "wheel", "offers", "up", "down", "keep", "cost", "cloud"}),
    ("lockstep run --nproc", {"--nproc-per-node"}),
    ("lockstep run --start-method f", {"fork", "forkserver"}),
    ("lockstep store --p", {"--port", "--print-stats"}),
    ("torchrun --sta", {"--standalone", "--start-method", "--status-page"}),
    ("torchrun --nnodes 1 -m --isol", {"--isolation"}),
    ("torchrun --rdzv-backend etcd", {"etcd", "etcd-v2", "etcd3"}),
    ("lockstep run --rdzv-conf keep_alive_", {"keep_alive_interval=", "keep_alive_max_attempt="}),
]

# A program with rows in rows (src/cli/program_testing.h).
NESTED = [
    ("tool ", {"go", "cluster"}),
    ("tool cluster ", {"add", "list"}),
    ("tool cluster l", {"list"}),
    ("tool cluster add --no", {"--node"}),
    ("tool cluster add --shape ", {"round", "square"}),
    ("tool go --how", {"--how-far"}),
    ("alias --how", {"--how-far"}),
]

BASH = """
source "$1"; read -ra COMP_WORDS <<< "$2"
[[ $2 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lockstep; printf '%s\\n' "${COMPREPLY[@]}"
"""


def script_for(shell, folder, command=(BINARY, "run", "--print-completion")):
    path = pathlib.Path(folder) / f"completion.{shell}"
    command = [*command, shell]
    path.write_bytes(subprocess.run(command, check=True, capture_output=True, timeout=20).stdout)
    return path


def nested_script_for(shell, folder):
    return script_for(shell, folder, [BUILD / "src/cli/completion_dump"])


def output_of(*command):
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)
    return run.stdout.splitlines()


@pytest.mark.parametrize("line, expected", CASES)
def test_bash(line, expected, tmp_path):
    assert set(output_of("bash", "-c", BASH, "bash", script_for("bash", tmp_path), line)) == expected


@pytest.mark.parametrize("line, expected", NESTED)
def test_bash_with_rows_in_rows(line, expected, tmp_path):
    assert set(output_of("bash", "-c", BASH, "bash", nested_script_for("bash", tmp_path), line)) == expected


def test_bash_leaves_the_script_and_what_follows_to_files(tmp_path):
    for line in ("lockstep run train.py --nn", "torchrun -r 3 train.py --", "torchrun --nnodes "):
        offered = output_of("bash", "-c", BASH, "bash", script_for("bash", tmp_path), line)
        assert offered in ([], [""]), line


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
@pytest.mark.parametrize("line, expected", CASES)
def test_fish(line, expected, tmp_path):
    words = f"source {script_for('fish', tmp_path)}; complete -C '{line}'"
    offered = {row.split("\t")[0] for row in output_of("fish", "--no-config", "-c", words)}
    assert offered - {""} == expected


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
@pytest.mark.parametrize("line, expected", NESTED)
def test_fish_with_rows_in_rows(line, expected, tmp_path):
    words = f"source {nested_script_for('fish', tmp_path)}; complete -C '{line}'"
    offered = {row.split("\t")[0] for row in output_of("fish", "--no-config", "-c", words)}
    assert offered == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_reads_it(tmp_path):
    output_of("zsh", "-n", script_for("zsh", tmp_path))


# A terminal of its own, as zsh completes nowhere else.
ZSH = """
zmodload zsh/zpty; zpty z zsh -f -i
zpty -w z "PS1=; autoload -U compinit; compinit -u -D; source $1"
zpty -w z "echo re''ady"; zpty -r z seen '*ready*'
zpty -w -n z "$2"$'\\t'; zpty -w z ''
zpty -r z seen "*$3*" && echo found
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
@pytest.mark.parametrize("line, expected", [
    ("torchrun --rdzv-backend sta", "--rdzv-backend static"), ("lockstep run --rdzv-conf is_h", "--rdzv-conf is_host="),
    ("torchrun --standal", "--standalone"), ("lockstep store --por", "store --port")])
def test_zsh(line, expected, tmp_path):
    assert output_of("zsh", "-f", "-c", ZSH, "zsh", script_for("zsh", tmp_path), line, expected) == ["found"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
@pytest.mark.parametrize("line, expected", [
    ("tool clu", "tool cluster"), ("tool cluster a", "cluster add"), ("tool cluster add --sha", "add --shape"),
    ("tool cluster add --shape s", "--shape square"), ("alias --how", "alias --how-far")])
def test_zsh_with_rows_in_rows(line, expected, tmp_path):
    script = nested_script_for("zsh", tmp_path)
    assert output_of("zsh", "-f", "-c", ZSH, "zsh", script, line, expected) == ["found"]


NAMED = [
    ("lockstep run --on ", {"gpus", "lab"}), ("lockstep exec g", {"gpus"}), ("lockstep install ", {"gpus", "lab"}),
    ("lockstep call g", {"gpus"}), ("lockstep down l", {"lab"}), ("lockstep cluster show g", {"gpus"}),
    ("lockstep logs ", {"train"}), ("lockstep wait tr", {"train"}),
    ("lockstep run --on-demand A100", {"A100", "A100-40GB", "A100-80GB"}),
    ("lockstep offers A100-4", {"A100-40GB"}),
]


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The environment of a user with clusters and jobs. One job's name must never reach a shell."""
    folder = tmp_path_factory.mktemp("names")
    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PATH": f"{BINARY.parent}:{os.environ['PATH']}"}
    for name in ("lab", "gpus"):
        subprocess.run([BINARY, "cluster", "add", name, "--host", "me@198.51.100.7"], env=env, check=True, timeout=20,
                       capture_output=True)
    bad = folder / "$(touch taken)"
    bad.write_text("#!/bin/sh\n")
    bad.chmod(0o755)
    for words in (["--name", "train", "true"], [f"./{bad.name}"]):
        ended = subprocess.run([BINARY, "run", "--on", "local", "--sync", "none", "--no-python", *words], env=env,
                               cwd=folder, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended
    yield env
    assert not list(folder.glob("taken")), "a job's name was run by a shell"


@pytest.mark.parametrize("line, expected", NAMED)
def test_names_in_bash_and_fish(line, expected, known, tmp_path):
    bash = subprocess.run(["bash", "-c", BASH, "bash", script_for("bash", tmp_path), line], env=known, check=True,
                          capture_output=True, text=True, timeout=20, cwd=tmp_path)
    assert set(bash.stdout.splitlines()) - {""} == expected and not bash.stderr, bash
    words = f"source {script_for('fish', tmp_path)}; complete -C '{line}'"
    fish = subprocess.run(["fish", "--no-config", "-c", words], env=known, check=True, capture_output=True, text=True,
                          timeout=20, cwd=tmp_path)
    offered = {row.split("\t")[0] for row in fish.stdout.splitlines()}
    assert {each for each in offered if each and not each.startswith("-")} == expected and not fish.stderr, fish


@pytest.mark.parametrize("line, expected", [
    ("lockstep run --on g", "--on gpus"), ("lockstep exec g", "exec gpus"), ("lockstep logs t", "logs train"),
    ("lockstep run --on-demand A100-4", "A100-40GB")])
def test_names_in_zsh(line, expected, known, tmp_path):
    zsh = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", script_for("zsh", tmp_path), line, expected], env=known,
                         check=True, capture_output=True, text=True, timeout=20, cwd=tmp_path)
    assert zsh.stdout == "found\n", zsh


def test_fish_is_given_no_range_without_an_end(tmp_path):
    """fish 3.1 prints an error at every TAB for $words[2..], which 3.2 was the first to know."""
    assert not re.search(r"\[[^]]*\.\.\]", script_for("fish", tmp_path).read_text())


def test_names_of_a_user_who_has_none(tmp_path):
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    for kind in ("clusters", "jobs", "no-such"):
        ended = subprocess.run([BINARY, "complete-names", kind], env=env, capture_output=True, timeout=20)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert not (tmp_path / "state").exists()


def test_tcsh_is_refused():
    command = [BINARY, "run", "--print-completion", "tcsh"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert run.returncode != 0
    assert "tcsh" in run.stderr and "Traceback" not in run.stderr
