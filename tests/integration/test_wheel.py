"""lockstep wheel, and its wheels on hosts: a project with DeepSpeed's layout (support/mini_ops) is built once with the
cpp_extension of Debian's PyTorch, and imported on hosts from an overlay."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import zipfile

import pytest

from harness import BINARY, FOREIGN, PYTHON, SUPPORT
from package_index import write_wheel
from ssh_hosts import SshWorld

pytest.importorskip("torch")

MANY = 500.0  # seconds that a compiler may take on a busy machine
PROJECT = SUPPORT / "mini_ops"
OP = "mini_ops/scale_op.cpython-"


class Builder:
    """A build with its own cache, and without variables that would change it."""

    def __init__(self, folder):
        self.folder, self.cache = folder, folder / "cache"
        # None of this machine's CUDA: PyTorch here has none.
        self.env = {name: value for name, value in os.environ.items()
                    if not FOREIGN.match(name) and not re.match(r"DS_|CFLAGS|CXX|CC$|LDFLAGS|LIBRARY_PATH", name)}
        self.env |= {"XDG_CACHE_HOME": str(self.cache), "HOME": str(folder), "TMPDIR": str(folder / "tmp"),
                     "PATH": "/usr/bin:/bin"}
        (folder / "tmp").mkdir()

    def run(self, *args, env=None):
        return subprocess.run([BINARY, "wheel", "--python", PYTHON, *map(str, args)], env=self.env | (env or {}),
                              cwd=self.folder, capture_output=True, text=True, timeout=MANY)

    def build(self, *args, env=None):
        ended = self.run("--json", *args, env=env)
        assert ended.returncode == 0, (ended.stderr, self.log())
        assert not list((self.folder / "tmp").iterdir()), "the scratch folder stayed"
        return json.loads(ended.stdout)

    def log(self):
        return "".join(path.read_text() for path in self.cache.glob("lockstep/wheel-builds/*.log"))

    def project(self, name="project", **changes):
        """Makes a copy of the project. changes: replacements in setup.py."""
        place = self.folder / name
        shutil.copytree(PROJECT, place)
        text = (place / "setup.py").read_text()
        for old, new in changes.get("setup", {}).items():
            assert old in text
            text = text.replace(old, new)
        (place / "setup.py").write_text(text)
        return place


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel that all tests here install."""
    builder = Builder(tmp_path_factory.mktemp("built"))
    first = builder.build(PROJECT, "--ops", "cpu_scale")
    return builder, first


@pytest.fixture
def builder(tmp_path):
    return Builder(tmp_path)


def test_ops_are_in_the_wheel_and_the_cpu_level_is_the_one_asked_for(built, tmp_path):
    _, wheel = built
    assert not wheel["cached"] and wheel["seconds"] > 0
    assert wheel["ops"] == wheel["ops_built"] == ["cpu_scale"] and wheel["isa"] in ("x86-64-v3", "x86-64-v2", "x86-64")
    # -march=native and DeepSpeed's macro for AVX-512 were asked for, and were changed.
    assert wheel["isa_changed"] >= 1
    assert {"DS_BUILD_OPS=0", "DS_BUILD_CPU_SCALE=1"} <= set(wheel["variables"])
    assert hashlib.sha256(pathlib.Path(wheel["path"]).read_bytes()).hexdigest() == wheel["sha256"]
    with zipfile.ZipFile(wheel["path"]) as archive:
        assert [name for name in archive.namelist() if name.startswith(OP)]
        archive.extractall(tmp_path)
    code = "from mini_ops import scale_op as op; print(op.scale(2), op.vectors(), op.compiled_with_avx512())"
    ran = subprocess.run([PYTHON, "-c", f"import torch; {code}"], env={"PYTHONPATH": str(tmp_path)}, text=True,
                         capture_output=True, timeout=MANY)
    vectors = "avx256" if wheel["isa"] == "x86-64-v3" else "scalar"
    assert ran.stdout.split() == ["6.0", vectors, "False"], ran
    log = pathlib.Path(wheel["path"]).with_name("build.log").read_text()
    assert "-march=native" in log and "DS_BUILD_CPU_SCALE=1" in log.splitlines()[0]


def test_a_second_build_answers_from_the_cache(built, tmp_path):
    builder, first = built
    again = builder.build(PROJECT, "--ops", "cpu_scale")
    assert again["cached"] and again["path"] == first["path"] and again["sha256"] == first["sha256"]
    ended = builder.run(PROJECT, "--ops", "cpu_scale", "-o", tmp_path / "dist")
    assert ended.returncode == 0 and ended.stdout == f"{tmp_path}/dist/{first['wheel']}\n" and not ended.stderr
    manifest = json.loads((tmp_path / "dist" / (first["wheel"] + ".json")).read_text())
    assert manifest["key"] == first["key"] and manifest["torch"] == first["torch"]


def test_the_cache_is_asked_with_all_that_matters(built):
    builder, first = built

    def key(*args, env=None):
        ended = builder.run("--print", "--json", *args, env=env)
        assert ended.returncode == 0, ended
        return json.loads(ended.stdout)["key"]

    assert key(PROJECT, "--ops", "cpu_scale") == first["key"]
    keys = [first["key"], key(PROJECT), key(PROJECT, "--ops", "cpu_scale", "--isa", "x86-64-v2"),
            key(PROJECT, "--ops", "cpu_scale", env={"CFLAGS": "-g0"}),
            key(builder.project("other", setup={'"1.0"': '"1.1"'}), "--ops", "cpu_scale")]
    assert len(set(keys)) == len(keys)


def test_a_damaged_wheel_in_the_cache_is_built_again(builder):
    project = builder.project(setup={'ext_modules=extensions': 'ext_modules=[]'})
    first = builder.build(project)
    pathlib.Path(first["path"]).write_bytes(b"x")
    again = builder.build(project)
    assert not again["cached"] and zipfile.is_zipfile(again["path"])


def test_two_at_once_build_it_once(builder):
    project = builder.project(setup={'ext_modules=extensions': 'ext_modules=[]'})
    with concurrent.futures.ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda _: builder.run("--json", project), range(2)))
    assert [ended.returncode for ended in both] == [0, 0], both
    wheels = [json.loads(ended.stdout) for ended in both]
    assert sorted(wheel["cached"] for wheel in wheels) == [False, True], both
    assert wheels[0]["path"] == wheels[1]["path"]


def refused(ended, code, *words):
    assert ended.returncode == code and ended.stdout == "", ended
    errors = [line for line in ended.stderr.splitlines() if line.startswith("lockstep wheel: error: ")]
    assert len(errors) == 1 and all(word in errors[0] for word in words), ended.stderr


def test_a_wheel_without_the_ops_asked_for_is_an_error(builder):
    # The mistake of a script whose variables do not reach the build.
    project = builder.project(setup={"extensions.append(builder.extension())": "pass"})
    refused(builder.run(project, "--ops", "cpu_scale"), 1, "is pure Python: none of the ops was built", ".log")
    assert not list(builder.cache.glob("lockstep/wheel-builds/*/*.whl"))
    refused(builder.run(PROJECT, "--ops", "cpu_scale,never"), 1, "never was not built", "incompatible")


def test_a_build_that_fails_says_the_compilers_first_error(builder):
    project = builder.project()
    (project / "csrc/scale.cpp").write_text("#include <nowhere.h>\n")
    refused(builder.run(project, "--ops", "cpu_scale"), 1, "scale.cpp:1:10: fatal error: nowhere.h", ".log")
    assert "nowhere.h" in builder.log()
    assert not list((builder.folder / "tmp").iterdir())


def test_a_link_in_place_of_the_log_empties_no_other_file(builder):
    project = builder.project(setup={'ext_modules=extensions': 'ext_modules=[]'})
    key = json.loads(builder.run("--print", "--json", project).stdout)["key"]
    log = builder.cache / f"lockstep/wheel-builds/{key}.log"
    log.parent.mkdir(parents=True)
    (builder.folder / "other").write_text("mine")
    log.symlink_to(builder.folder / "other")
    refused(builder.run(project), 1, f"write {log}: Too many levels of symbolic links")
    assert (builder.folder / "other").read_text() == "mine"


def test_print_builds_nothing(builder):
    ended = builder.run(PROJECT, "--ops", "DS_BUILD_CPU_SCALE", "--print", "--isa", "x86-64-v2")
    assert ended.returncode == 0 and "export DS_BUILD_CPU_SCALE=1\n" in ended.stdout, ended
    assert "# CPUs: x86-64-v2 in place of native" in ended.stdout or "# CPUs: x86-64 in" in ended.stdout
    assert f"{PYTHON} -m pip wheel" in ended.stdout and not (builder.cache / "lockstep").exists()


def test_print_shows_what_the_environment_asks_for(builder):
    env = {"DS_BUILD_CPU_SCALE": "1", "DS_BUILD_NEVER": "0", "DS_BUILD_OPS": "1"}
    ended = builder.run(PROJECT, "--print", "-j8", env=env)
    assert "# builds an op, from the environment: DS_BUILD_CPU_SCALE=1\n" in ended.stdout, ended
    assert "environment: DS_BUILD_OPS=1\n" in ended.stdout and "NEVER" not in ended.stdout, ended
    assert "export MAX_JOBS=8\n" in ended.stdout, ended
    ended = builder.run(PROJECT, "--print", "--ops", "cpu_scale", "-j", "2", env=env)
    assert "export DS_BUILD_OPS=0\nexport DS_BUILD_CPU_SCALE=1\n" in ended.stdout, ended
    assert "environment" not in ended.stdout and "export MAX_JOBS=2\n" in ended.stdout, ended
    refused(builder.run(PROJECT, "--print", "-j0"), 2, "--jobs must be from 1 to 1024 (got 0)")


def test_utils_is_left_out_for_cpus(builder):
    """The real DeepSpeed has no such op for CPUs, and its setup.py silently skips it."""
    project = builder.project()
    (project / "op_builder/utils.py").write_text(
        'class UtilsBuilder:\n    BUILD_VAR = "DS_BUILD_UTILS"\n    NAME = "utils"\n')
    ended = builder.run(project, "--ops", "cpu_scale,utils", "--print")
    assert ended.returncode == 0 and "the op utils is left out" in ended.stderr, ended
    assert "DS_BUILD_UTILS" not in ended.stdout and "export DS_BUILD_CPU_SCALE=1\n" in ended.stdout, ended
    env = fake_cuda(builder, "13.0", "13.0")
    ended = builder.run(project, "--ops", "utils", "--print", "--arch", "A100", env=env)
    assert ended.returncode == 0 and "export DS_BUILD_UTILS=1\n" in ended.stdout, ended


def fake_cuda(builder, torch_cuda, toolkit):
    """A PyTorch for CUDA, and a toolkit; neither does anything."""
    packages, home = builder.folder / "packages/torch", builder.folder / "cuda"
    packages.mkdir(parents=True)
    (packages / "__init__.py").write_text("")
    (packages / "version.py").write_text(f"__version__ = '2.6.0'\ncuda = '{torch_cuda}'\n")
    (home / "bin").mkdir(parents=True)
    nvcc = home / "bin/nvcc"
    nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {toolkit}, V{toolkit}.1'\n")
    nvcc.chmod(0o755)
    return {"PYTHONPATH": str(packages.parent), "CUDA_HOME": str(home)}


def test_gpu_architectures_are_those_that_the_toolkit_takes(builder):
    env = fake_cuda(builder, "13.0", "13.0")
    ended = builder.run(PROJECT, "--print", "--arch", "8.0 9.0+PTX", env=env)
    assert ended.returncode == 0 and "export TORCH_CUDA_ARCH_LIST='8.0;9.0+PTX'\n" in ended.stdout, ended
    ended = builder.run(PROJECT, "--print", "--arch", "A100-SXM4-80GB,RTX-A6000;h100", env=env)
    assert ended.returncode == 0 and "export TORCH_CUDA_ARCH_LIST='8.0;8.6;9.0'\n" in ended.stdout, ended
    refused(builder.run(PROJECT, "--print", "--arch", "V100", env=env), 2, "CUDA 13.0 does not compile for 7.0",
            "12.x or older")
    refused(builder.run(PROJECT, "--print", "--arch", "7.0", env=env), 2, "CUDA 13.0 does not compile for 7.0",
            "12.x or older", "7.5, 8.0")
    refused(builder.run(PROJECT, "--print", "--arch", "Volta", env=env), 2, "'Volta' is not a GPU architecture")
    if not pathlib.Path("/dev/nvidiactl").exists():
        refused(builder.run(PROJECT, "--print", env=env), 2, "no GPU was found here", "--arch")
    ended = builder.run(PROJECT, "--print", env=env | {"TORCH_CUDA_ARCH_LIST": "9.0"})
    assert "export TORCH_CUDA_ARCH_LIST=9.0\n" in ended.stdout, ended


def test_a_toolchain_that_does_not_fit_is_refused_before_anything_is_built(builder):
    refused(builder.run(PROJECT, "--ops", "cpu_scale", env=fake_cuda(builder, "11.8", "13.0")), 1,
            "nvcc is of CUDA 13.0", "CUDA_HOME to a toolkit 11.x")
    assert not (builder.cache / "lockstep/wheel-builds").exists()


def test_bad_input_is_named(builder):
    (builder.folder / "empty").mkdir()
    for args, words in (((), ("nothing to build",)), (("a", "b"), ("'b' is one word too many",)),
                        (("./none",), ("there is no folder",)), (("empty",), ("neither setup.py nor pyproject.toml",)),
                        (("deepspeed==x",), ("has no version",)), (("deepspeed@ftp://x",), ("not a URL",)),
                        ((PROJECT, "--ops", "cpu_scal"), ("did you mean cpu_scale?", "cpu_scale, never")),
                        (("deepspeed", "--ops", "gpu_adam"), ("no op 'gpu_adam'", "async_io, cpu_adagrad")),
                        ((PROJECT, "--isa", "avx9"), ("'avx9' is not an instruction set",)),
                        (("--drop", "none"), ("no overlay 'none' exists",))):
        refused(builder.run(*args), 2, *words)


# On hosts.

@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


class Nodes:
    """A cluster, and a project whose commands run there."""

    def __init__(self, world, count):
        self.client, *self.servers = world(count)
        self.root = self.client.folder / "code"
        self.root.mkdir()
        hosts = [word for server in self.servers for word in ("--host", f"me@{server.addr}")]
        assert self.client.run("cluster", "add", "gpus", *hosts).rc == 0

    def install(self, wheel, *args):
        return self.client.run("install", "gpus", f"wheel:{wheel}", "--overlay", "--json", "--python", PYTHON, *args,
                               cwd=self.root, timeout=MANY)

    def states(self, wheel, *args):
        ended = self.install(wheel, *args)
        assert ended.rc == 0, ended
        answers = json.loads(ended.out)
        self.local = [answer["environment"]["local"] for answer in answers]
        return [answer["steps"][0]["state"] for answer in answers]

    def overlays(self):
        """Returns the overlays of each host, without drafts and free locks."""
        return [sorted(path.name for path in (server.homes["me"] / ".cache/lockstep/overlays").glob("*")
                       if not path.name.startswith(".")) for server in self.servers]

    def drafts(self):
        return [path for server in self.servers
                for path in (server.homes["me"] / ".cache/lockstep/overlays").glob(".*new-*")]


def test_a_wheel_is_put_on_four_hosts_and_imported_there(built, world):
    _, wheel = built
    nodes = Nodes(world, 4)
    assert nodes.states(wheel["path"]) == ["done"] * 4
    (key,) = {tuple(each) for each in nodes.overlays()}
    assert len(key) == 1 and key[0].startswith("mini_ops-1.0-") and key[0].endswith(wheel["sha256"][:12])
    assert all(local == [f"/home/me/.cache/lockstep/overlays/{key[0]}"] for local in nodes.local)
    record = json.loads((nodes.servers[0].homes["me"] / f".cache/lockstep/overlays/{key[0]}/.lockstep-overlay.json")
                        .read_text())
    assert record["imported"] == ["mini_ops", "mini_ops.scale_op"]
    # Nothing else was changed there: no environment was made.
    assert not (nodes.servers[0].homes["me"] / ".local/share/lockstep/venvs").exists()
    # The second time it is there already.
    assert nodes.states(wheel["path"]) == ["unchanged"] * 4
    # Commands of the project have it.
    assert nodes.client.run("sync", "gpus", cwd=nodes.root).rc == 0
    shown = nodes.client.run("exec", "--in-project", "--cwd", "code", "gpus", "--", PYTHON, "-c",
                             "import torch, mini_ops.scale_op as op; print(op.scale(2))", cwd=nodes.root, timeout=MANY)
    assert shown.rc == 0 and shown.out.count("6.0") == 4, shown


@pytest.mark.parametrize("file, words", (("top_level.txt", "top_level.txt has 64 MiB"),
                                         ("data.txt", "it would have 1600 MiB")))
def test_a_wheel_that_would_fill_the_memory_or_the_disk(tmp_path, file, words):
    """A few packed MB of zeros: the wheel is refused before unpacking."""
    path = write_wheel(tmp_path, "toy", "1.0", "")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(f"toy-1.0.dist-info/{file}", "w", force_zip64=True) as to:
            for _ in range(64 if file == "top_level.txt" else 1600):
                to.write(bytes(1 << 20))
    ended = subprocess.run([BINARY, "host-overlay", "--python", PYTHON, "--wheel", path], capture_output=True,
                           text=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, timeout=MANY)
    assert ended.returncode == 1 and words in ended.stderr, ended


def test_an_overlay_takes_the_place_of_another_one_of_its_package(world, tmp_path):
    nodes = Nodes(world, 1)
    old, new = (write_wheel(tmp_path / version, "toy", version, f"V = '{version}'\n") for version in ("1.0", "2.0"))
    other = write_wheel(tmp_path, "toy_more", "1.0", "")
    assert nodes.states(old) == ["done"] and nodes.states(other) == ["done"] and nodes.states(new) == ["done"]
    (local,) = nodes.local
    assert [pathlib.Path(path).name.rsplit("-", 1)[0] for path in local] == ["toy-2.0", "toy_more-1.0"]
    # Back to the old one, which is still there.
    assert nodes.states(old) == ["unchanged"] and "toy-1.0-" in nodes.local[0][0]


def test_a_wheel_that_does_not_work_there_leaves_nothing(built, world, tmp_path):
    builder, wheel = built
    nodes = Nodes(world, 2)

    def fails(path, *words):
        ended = nodes.install(path)
        answers = json.loads(ended.out)
        assert ended.rc == 1 and all(answer["steps"][0]["state"] == "failed" for answer in answers), ended
        for word in words:
            assert all(word in answer["error"] for answer in answers), answers
        assert nodes.overlays() == [[], []] and not nodes.drafts()

    torn = tmp_path / wheel["wheel"]
    torn.write_bytes(pathlib.Path(wheel["path"]).read_bytes()[:-2000])
    fails(torn, "is not a readable wheel")
    fails(write_wheel(tmp_path, "toy", "1.0", "import nowhere\n"), "No module named 'nowhere'")
    other = tmp_path / wheel["wheel"].replace("cp311-cp311", "cp39-cp39")
    shutil.copy(wheel["path"], other)
    fails(other, "not a supported wheel")
    claimed = builder.build(PROJECT, "--ops", "cpu_scale", env={"DS_MINI_CLAIMED_TORCH": "2.9"})
    fails(claimed["path"], "are built for PyTorch 2.9", "here are PyTorch 1.13")


def test_host_overlay_checks_what_it_is_given(built, tmp_path):
    _, wheel = built
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def overlay(*args, data=None):
        return subprocess.run([BINARY, "host-overlay", "--python", PYTHON, *args], env=env, capture_output=True,
                              input=data, timeout=MANY)

    ended = overlay("--wheel", wheel["path"], "--sha256", "0" * 64)
    assert ended.returncode == 1 and b"was damaged on the way" in ended.stderr
    assert not [path for path in tmp_path.glob(".cache/lockstep/overlays/*") if not path.name.startswith(".")]
    made = overlay("--wheel", "-", "--name", wheel["wheel"], "--sha256", wheel["sha256"],
                   data=pathlib.Path(wheel["path"]).read_bytes())
    assert made.returncode == 0, made
    first = json.loads(made.stdout)
    assert first["made"] and first["imported"] == ["mini_ops", "mini_ops.scale_op"]
    assert first["path"] == f"{tmp_path}/.cache/lockstep/overlays/{first['key']}"
    again = json.loads(overlay("--wheel", wheel["path"]).stdout)
    assert not again["made"] and again["path"] == first["path"] and again["imported"] == first["imported"]
    dropped = subprocess.run([BINARY, "wheel", "--drop", first["key"]], env=env, capture_output=True, text=True,
                             timeout=60)
    assert dropped.returncode == 0 and dropped.stdout == f"removed {first['path']}\n"
    assert not pathlib.Path(first["path"]).exists()
