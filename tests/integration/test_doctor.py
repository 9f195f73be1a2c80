"""lockstep doctor: whether this node's compiler, CUDA, PyTorch and DeepSpeed fit together, and a remedy for each
trouble. The tests make programs that only print a version, and packages that only have one."""
import json
import os
import socket
import subprocess

import pytest

from harness import BINARY, FOREIGN, PYTHON


class Node:
    """A PATH and a PYTHONPATH of their own."""

    def __init__(self, folder):
        self.bin, self.packages = folder / "bin", folder / "packages"
        self.bin.mkdir()
        self.packages.mkdir()
        self.env = {name: value for name, value in os.environ.items()
                    if not FOREIGN.match(name) and name not in ("CC", "CXX")}
        self.env |= {"PATH": f"{self.bin}:/usr/bin:/bin", "PYTHONPATH": str(self.packages), "HOME": str(folder),
                     "CUDA_HOME": str(folder / "cuda"), "XDG_STATE_HOME": str(folder / "state")}
        self.gcc("12.2.0")
        self.nvcc("12.4")
        self.torch("2.6.0+cu124", "12.4")
        self.program("sbatch", "exit 1")  # as if Slurm were not configured, whatever this machine has
        self.program("scontrol", "exit 1")

    def program(self, name, script, folder=None):
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def gcc(self, version):
        self.program("c++", f"echo 'g++ (Packager 9.9) {version}'")

    def nvcc(self, version):
        self.program("nvcc", f"echo 'Cuda compilation tools, release {version}, V{version}.1'",
                     self.bin.parent / "cuda/bin")

    def package(self, name, **files):
        folder = self.packages / name
        folder.mkdir(exist_ok=True)
        # The doctor must not import the package.
        (folder / "__init__.py").write_text("raise SystemExit('imported')\n")
        for file, text in files.items():
            (folder / f"{file}.py").write_text(text)

    def torch(self, version, cuda):
        self.package("torch", version=f"from typing import Optional\n__version__ = '{version}'\ncuda: Optional[str] = "
                                      f"{cuda!r}\nhip = None\n")

    def deepspeed(self, torch, cuda, ops):
        self.package("deepspeed", git_version_info_installed=(
            f"version='0.16.5+abc'\ninstalled_ops={ops}\ntorch_info={ {'version': torch, 'cuda_version': cuda} }\n"))

    def run(self, *args):
        return subprocess.run([BINARY, "doctor", "--python", PYTHON, *args], env=self.env, capture_output=True,
                              text=True, timeout=60)

    def found(self):
        """Returns the exit code, and the weight and word of all findings about this test's programs."""
        ended = self.run("--json")
        report = json.loads(ended.stdout)
        words = {(each["weight"], each["what"]) for each in report["findings"]}
        return ended.returncode, words, report["facts"]


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


OURS = ("gcc-too-new", "gcc-too-old", "cuda-differs", "deepspeed-ops-differ", "slurm-not-reached", "no-python")


def troubles(words):
    return {what for weight, what in words if weight == "trouble" and what in OURS}


def test_a_node_whose_tools_fit_has_no_trouble_with_them(node):
    node.deepspeed("2.6", "12.4", {"cpu_adam": 1, "aio": False})
    code, words, facts = node.found()
    assert troubles(words) == set()
    assert facts["torch"] == {"version": "2.6.0+cu124", "cuda": "12.4", "hip": ""}
    assert facts["gcc"] == {"path": str(node.bin / "c++"), "version": "12.2"}
    assert facts["nvcc"]["version"] == "12.4" and facts["deepspeed"]["ops"] == ["cpu_adam"]
    assert code == (1 if any(weight == "trouble" for weight, _ in words) else 0)


@pytest.mark.parametrize("gcc, nvcc, torch, cuda, word, cure", [
    ("14.1.0", "12.4", "2.6.0+cu124", "12.4", "gcc-too-new", "gcc 9 to 13"),
    ("7.5.0", "12.4", "2.6.0+cu124", "12.4", "gcc-too-old", "gcc 9 to 13"),
    ("10.2.0", "13.0", "2.14.0+cu130", "13.0", "gcc-too-old", "gcc 11 to 15"),
    ("12.2.0", "13.0", "2.6.0+cu124", "12.4", "cuda-differs", "a toolkit 12.x"),
])
def test_compiler_toolkit_and_torch_that_do_not_fit(node, gcc, nvcc, torch, cuda, word, cure):
    node.gcc(gcc)
    node.nvcc(nvcc)
    node.torch(torch, cuda)
    code, words, _ = node.found()
    assert code == 1 and troubles(words) == {word}
    ended = node.run()
    assert ended.returncode == 1
    (line,) = (line for line in ended.stdout.splitlines() if line.startswith("trouble: ") and cure in line)
    assert "; " in line


def test_ops_that_were_built_for_another_torch(node):
    node.deepspeed("2.5", "12.4", {"cpu_adam": 1})
    code, words, _ = node.found()
    assert code == 1 and troubles(words) == {"deepspeed-ops-differ"}
    assert "lockstep wheel deepspeed==0.16.5 --ops cpu_adam" in node.run().stdout
    node.deepspeed("2.6", "12.4", {"cpu_adam": False})
    _, words, _ = node.found()
    assert ("warning", "deepspeed-no-ops") in words and not troubles(words)


def test_a_slurm_that_does_not_answer(node):
    (node.bin.parent / "slurm.conf").write_text("")
    node.env["SLURM_CONF"] = str(node.bin.parent / "slurm.conf")
    node.program("sbatch", "echo slurm-wlm 22.05.8")
    code, words, facts = node.found()
    assert code == 1 and troubles(words) == {"slurm-not-reached"} and facts["slurm"]["version"] == "22.05.8"
    node.program("scontrol", "echo 'Slurmctld(primary) at ctl is UP'")
    _, words, facts = node.found()
    assert not troubles(words) and facts["slurm"]["answers"]


def test_a_port_where_jobs_meet_that_is_taken(node):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 29500))
            taken.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        _, words, facts = node.found()
    assert ("warning", "port-taken") in words and facts["ports"]["holder"]


def test_bad_input_is_named(node):
    for args, words in ((("--python", "/nowhere/python"), "there is no Python /nowhere/python"), (("x",), "x"),
                        (("--jason",), "--jason")):
        ended = subprocess.run([BINARY, "doctor", *args], env=node.env, capture_output=True, text=True, timeout=60)
        assert ended.returncode in (1, 2) and words in ended.stdout + ended.stderr, ended
