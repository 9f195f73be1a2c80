"""One static file that runs anywhere."""
import os
import shutil
import subprocess

import pytest

from harness import BINARY, WORKER

root = pytest.mark.skipif(os.getuid() != 0, reason="chroot")


def test_statically_linked():
    said = subprocess.run(["readelf", "-ld", BINARY], capture_output=True, text=True).stdout
    assert "INTERP" not in said and "NEEDED" not in said


def test_weighs_no_more_than_it_may(tmp_path):
    """docs/architecture.md, "The size of the binary"."""
    subprocess.run(["strip", "-o", tmp_path / "lockstep", BINARY], check=True)
    assert (tmp_path / "lockstep").stat().st_size <= 12_500_000


@root
def test_runs_in_a_folder_with_nothing_in_it(tmp_path):
    """No /tmp, no /proc, nothing but the binary and a worker: logs go to the current folder."""
    shutil.copy(BINARY, tmp_path / "lockstep")
    shutil.copy(WORKER, tmp_path / "worker")
    ended = subprocess.run(["chroot", tmp_path, "/lockstep", "run", "-t", "1", "--no-python", "/worker",
                            "out=hello\\n"],
                           capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stdout) == (0, "[default0]:hello\n"), ended.stderr
    assert any(name.startswith("torchelastic_") for name in os.listdir(tmp_path))


@root
@pytest.mark.parametrize("with_proc", [False, True])
def test_runs_in_an_empty_folder(tmp_path, with_proc):
    shutil.copy(BINARY, tmp_path / "lockstep")
    shutil.copy(WORKER, tmp_path / "worker")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "proc").mkdir()
    mount = f"mount --bind /proc {tmp_path}/proc && " if with_proc else ""
    ended = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c",
         f"{mount}exec chroot {tmp_path} /lockstep run --nproc-per-node 2 --no-python "
         "/worker touch=/tmp 'out=hello\\n'"],
        capture_output=True, text=True, timeout=20)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "hello\nhello\n"
    assert {"0", "1"} <= set(os.listdir(tmp_path / "tmp"))


def test_starts_no_interpreter(lockstep, tmp_path):
    """The only programs executed are the binary and the worker."""
    trace = tmp_path / "trace"
    ended = lockstep.run("--no-python", "/bin/true",
                         program=["strace", "-f", "-qq", "-e", "trace=execve", "-o", trace, BINARY, "run"])
    assert ended.rc == 0, str(ended)
    started = [line.split('"')[1] for line in trace.read_text().splitlines() if "execve(" in line
               and "ENOENT" not in line]
    assert started == [str(BINARY), "/bin/true"]
