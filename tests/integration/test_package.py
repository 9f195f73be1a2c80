"""The packages of ./dev package: the same bytes each time; each is installed and runs a job of two workers."""
import email
import gzip
import os
import re
import subprocess
import sys
import zipfile

import pytest

from harness import BUILD, PEERS, PYTHON, REPOSITORY, skip

root = pytest.mark.skipif(os.getuid() != 0, reason="mounts")
VERSION = re.search(r"project\(lockstep VERSION (\S+)", (REPOSITORY / "CMakeLists.txt").read_text())[1]
RUN = ["--standalone", "--nproc-per-node", "2"]
# One write: lines of two workers may interleave between writes.
SCRIPT = "import os, sys\nsys.stdout.write('rank ' + os.environ['RANK'] + ' of ' + os.environ['WORLD_SIZE'] + '\\n')\n"


def output(*command, **options):
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def ranks(text):
    return sorted(line for line in text.splitlines() if line.startswith("rank "))


BOTH = ["rank 0 of 2", "rank 1 of 2"]


@pytest.fixture(scope="module")
def cross(tmp_path_factory):
    """A stand-in for the build for arm64, which takes minutes: a small program for that processor."""
    folder = tmp_path_factory.mktemp("cross")
    output("aarch64-linux-gnu-gcc", "-x", "c", "-static", "-o", folder / "lockstep", "-", input="int main() { }")
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory, cross):
    folder = tmp_path_factory.mktemp("dist")
    output(sys.executable, REPOSITORY / "tools/package.py", "--build", BUILD, "--cross", cross, "--out", folder)
    return folder


def unpacked(dist, machine, folder):
    output("tar", "-C", folder, "-xzf", dist / f"lockstep-{VERSION}-linux-{machine}.tar.gz")
    return folder / f"lockstep-{VERSION}-linux-{machine}"


@pytest.fixture(scope="module")
def tree(dist, tmp_path_factory):
    """The tarball, unpacked."""
    folder = tmp_path_factory.mktemp("tarball")
    return unpacked(dist, "x86_64", folder)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_the_same_bytes_again(dist, cross, tmp_path):
    # Under another umask and in another time zone, as on another machine.
    output("sh", "-c", 'umask 077; exec "$@"', "sh", sys.executable, REPOSITORY / "tools/package.py", "--build", BUILD,
           "--cross", cross, "--out", tmp_path / "dist", env={**os.environ, "TZ": "Pacific/Auckland"})
    names = sorted(path.name for path in dist.iterdir())
    assert len(names) == 7 and names == sorted(path.name for path in (tmp_path / "dist").iterdir())
    for name in names:
        assert (dist / name).read_bytes() == (tmp_path / "dist" / name).read_bytes(), name


def test_the_checksums(dist):
    assert output("sha256sum", "-c", "SHA256SUMS", cwd=dist).count(": OK") == 6


def test_the_version_comes_from_one_place(dist):
    assert all(f"lockstep-{VERSION}-" in name or f"lockstep_{VERSION}_" in name
               for name in os.listdir(dist) if name != "SHA256SUMS"), os.listdir(dist)


def test_the_tarball(tree, script):
    assert output(tree / "bin/lockstep", "--version") == f"lockstep {VERSION}\n"
    assert ranks(output(tree / "bin/lockstep", "run", *RUN, script)) == BOTH
    assert ranks(output(tree / "lib/lockstep/torchrun", *RUN, script)) == BOTH


def program_for(path):
    return re.search(r"Machine: +(.*)", output("readelf", "-h", path))[1]


def test_each_package_brings_the_other_binary(dist, tree, tmp_path):
    arm_tree = unpacked(dist, "aarch64", tmp_path)
    assert program_for(tree / "bin/lockstep") == "Advanced Micro Devices X86-64"
    assert program_for(arm_tree / "bin/lockstep") == "AArch64"
    binaries = {"x86_64": (tree / "bin/lockstep").read_bytes(), "aarch64": (arm_tree / "bin/lockstep").read_bytes()}
    for machine, arch in (("x86_64", "amd64"), ("aarch64", "arm64")):
        (other,) = set(binaries) - {machine}
        name = f"lockstep-{other}.gz"
        beside = tmp_path / f"lockstep-{VERSION}-linux-{machine}" if machine == "aarch64" else tree
        assert gzip.decompress((beside / "bin" / name).read_bytes()) == binaries[other]
        root = tmp_path / arch
        output("dpkg-deb", "-x", dist / f"lockstep_{VERSION}_{arch}.deb", root)
        assert gzip.decompress((root / "usr/lib/lockstep" / name).read_bytes()) == binaries[other]
        assert (root / "usr/bin/lockstep").read_bytes() == binaries[machine]
        (wheel,) = dist.glob(f"*manylinux2014_{machine}.*whl")
        with zipfile.ZipFile(wheel) as archive:
            scripts = f"lockstep-{VERSION}.data/scripts"
            assert gzip.decompress(archive.read(f"{scripts}/{name}")) == binaries[other]
            assert archive.read(f"{scripts}/lockstep") == binaries[machine]


def test_documents_and_examples_come_along(tree):
    """The documents are at the paths that the help texts and the documents name."""
    said = output(tree / "bin/lockstep", "run", "--help")
    assert said.endswith(f"\ndocs/ and examples/ are in {tree}/share/doc/lockstep\n"), said
    documents = tree / "share/doc/lockstep"
    named = set()
    for command in ("run", "submit", "check", "up", "offers", "cluster add"):
        said = output(tree / "bin/lockstep", *command.split(), "--help")
        named |= set(re.findall(r"(?:docs|examples)/[\w./-]*\w", said))
    assert {"docs/remote.md", "docs/slurm.md", "docs/cloud.md"} < named
    assert not [name for name in named if not (documents / name).exists()]
    assert "docs/" not in output(BUILD / "lockstep", "run", "--help").splitlines()[-1]
    for page in documents.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            # Pages about the source are not in the package.
            of_source = link.split("/")[-1] in ("CONTRIBUTING.md", "RESULTS.md", "LICENSE")
            assert of_source or (page.parent / link).exists(), (page, link)
    assert os.access(documents / "examples/run_on_remote.py", os.R_OK)


def test_the_man_pages_are_good_roff(tree):
    pages = sorted((tree / "share/man/man1").iterdir())
    assert [page.name for page in pages] == [
        *(f"lockstep-{name}.1" for name in (
            "call",
            "cancel",
            "check",
            "cloud-check",
            "cloud-selftest",
            "cluster-add-host",
            "cluster-add",
            "cluster-check",
            "cluster-list",
            "cluster-remove-host",
            "cluster-remove",
            "cluster-show",
            "cost",
            "doctor",
            "down",
            "events",
            "exec",
            "forward",
            "install",
            "jobs",
            "keep",
            "launch",
            "logs",
            "offers",
            "page",
            "profile",
            "resume",
            "run",
            "ssh",
            "store",
            "submit",
            "sync",
            "top",
            "trace",
            "up",
            "wait",
            "wheel",
            "why",
        )), "lockstep.1"]
    for page in pages:
        ended = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-P-cbou", page], capture_output=True, text=True,
                               timeout=60)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "\nOPTIONS\n" in ended.stdout or page.name == "lockstep.1", ended.stdout


def test_the_wheel(dist, tmp_path, script):
    output(PYTHON, "-m", "venv", tmp_path / "venv")
    pip = [tmp_path / "venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
    output(*pip, "install", "--no-index", "--find-links", dist, "lockstep")
    program = tmp_path / "venv/bin/lockstep"
    assert output(program, "--version") == f"lockstep {VERSION}\n"
    active = {**os.environ, "VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": f"{tmp_path}/venv/bin:{os.environ['PATH']}"}
    assert ranks(output("lockstep", "run", *RUN, script, env=active)) == BOTH
    # The user makes this link, as docs/torchrun.md says.
    (tmp_path / "venv/bin/torchrun").symlink_to("lockstep")
    assert ranks(output("torchrun", *RUN, script, env=active)) == BOTH
    (tmp_path / "venv/bin/torchrun").unlink()
    assert (tmp_path / "venv/share/man/man1/lockstep-run.1").exists()
    assert f"docs/ and examples/ are in {tmp_path}/venv/share/doc/lockstep\n" in output(program, "run", "--help")
    assert (tmp_path / "venv/share/doc/lockstep/docs/remote.md").exists()
    # The package's modules come with it, and know their binary whatever is in PATH.
    where = "import lockstep; print(lockstep.find_binary(), lockstep.record.__name__)"
    assert output(tmp_path / "venv/bin/python", "-c", where) == f"{program} record\n"
    python = tmp_path / "venv/bin/python"
    assert output(python, "-c", "import lockstep; print(lockstep.__version__)") == f"{VERSION}\n"
    assert output(python, "-m", "lockstep", "--version") == f"lockstep {VERSION}\n"
    (tmp_path / "prefix.py").write_text("import sys; print(sys.prefix)")
    # Another binary, too, starts ranks with the Python that ran it.
    other = {**os.environ, "LOCKSTEP_BINARY": str(BUILD / "lockstep")}
    assert output(python, "-m", "lockstep", "run", tmp_path / "prefix.py", env=other) == f"{tmp_path}/venv\n"
    told = email.message_from_string(output(*pip, "show", "--verbose", "lockstep").replace("\n  ", "\n "))
    assert (told["Version"], told["License"]) == (VERSION, "Apache-2.0") and "PyTorch" in told["Summary"], told
    assert "License :: OSI Approved :: Apache Software License" in told["Classifiers"], told
    output(*pip, "install", "--no-index", "--find-links", dist, "--target", tmp_path / "target", "lockstep")
    found = output(PYTHON, "-c", where, env={**os.environ, "PYTHONPATH": str(tmp_path / "target")})
    assert found == f"{tmp_path}/target/bin/lockstep record\n"
    output(*pip, "check")
    output(*pip, "uninstall", "-y", "lockstep")
    left = [path for path in (tmp_path / "venv").rglob("*lockstep*") if path.is_file()]
    assert not left, left


@pytest.mark.parametrize("platform", ["manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_1_x86_64",
                                      "manylinux2014_aarch64", "musllinux_1_1_aarch64"])
def test_pip_takes_the_wheel_on(platform, dist, tmp_path):
    output(PYTHON, "-m", "pip", "--disable-pip-version-check", "download", "--no-index", "--find-links", dist,
           "--no-deps", "--only-binary", ":all:", "--platform", platform, "--dest", tmp_path / "got", "lockstep")


INSTALL_DEB = r"""
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
cp "$3" "$1/root/lockstep.deb"
cp "$4" "$1/root/train.py"
exec chroot "$1/root" sh -ec '
  find / -xdev -name "*lockstep*" | sort >/before
  dpkg -i /lockstep.deb
  dpkg -V lockstep
  lockstep --version
  lockstep run --help | grep -q "docs/ and examples/ are in /usr/share/doc/lockstep"
  test -s /usr/share/doc/lockstep/docs/remote.md -a -s /usr/share/doc/lockstep/examples/run_on_remote.py
  lockstep run --standalone --nproc-per-node 2 /train.py
  PATH=/usr/lib/lockstep:$PATH torchrun --standalone --nproc-per-node 2 /train.py
  dpkg -P lockstep
  find / -xdev -name "*lockstep*" | sort | diff /before -'
"""


@root
def test_the_deb_is_installed_used_and_removed(dist, tmp_path, script):
    trixie = PEERS / "trixie"
    if not (trixie / ".complete").exists():
        skip("no Debian 13 in .cache/peers: run ./dev peers")
    deb = dist / f"lockstep_{VERSION}_amd64.deb"
    (tmp_path / "place").mkdir()
    said = output("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-ec", INSTALL_DEB, "sh",
                  tmp_path / "place", trixie, deb, script)
    assert f"lockstep {VERSION}\n" in said
    assert ranks(said) == sorted(BOTH * 2)
