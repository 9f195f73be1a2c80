#!/usr/bin/env python3
"""Makes packages from finished builds: a tarball, a .deb and a wheel for each architecture.

Each package also has the other architecture's binary, packed, for hosts with that processor. Without --cross there are
packages for this machine's architecture alone, without another binary.

The same commit gives the same bytes: times are SOURCE_DATE_EPOCH (else the last commit's), entries are sorted, owners
are root, modes are fixed. `./dev package` builds first and then calls this.
"""
import argparse
import base64
import gzip
import hashlib
import io
import os
import pathlib
import platform
import re
import subprocess
import tarfile
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = "Starts a PyTorch training command on every rank and keeps it running, as torchrun does"
MAINTAINER = "Lockstep developers <lockstep@localhost>"
KEYWORDS = ["pytorch", "torchrun", "distributed", "training", "ssh", "slurm", "gpu"]
CLASSIFIERS = ["Development Status :: 4 - Beta", "Environment :: Console", "Intended Audience :: Developers",
               "Intended Audience :: Science/Research", "License :: OSI Approved :: Apache Software License",
               "Operating System :: POSIX :: Linux", "Programming Language :: C++",
               "Programming Language :: Python :: 3",
               "Topic :: Scientific/Engineering :: Artificial Intelligence", "Topic :: System :: Distributed Computing",
               "Typing :: Typed"]
DESCRIPTION = """\
One static binary, `lockstep`, that starts a PyTorch training command on every rank and keeps it running: all ranks
start, fail and recover in lockstep. It takes the place of `torchrun`: the same options, worker environment, exit codes
and store protocol.

    lockstep run --nproc-per-node 4 train.py                 # this machine
    lockstep run --on ubuntu@10.0.0.5 train.py               # your own hosts, over SSH
    lockstep submit -N 2 --gpus-per-node 8 -- train.py       # Slurm
    lockstep run --on-demand A100:8 --max-price 20 train.py  # a machine that is rented for it

From Python, `import lockstep` runs functions and commands on hosts; it needs no other package. `python -m lockstep` is
the binary. `lockstep --help` and `man lockstep` tell more.
"""
# The static binary needs no C library, so the wheel fits pip's platforms for both glibc and musl.
WHEEL_TAG = "py3-none-manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"
DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}  # by the kernel's name
# Debian packages whose code is linked into the binary. copyright_text() includes their copyright files.
LINKED = ["libc6-dev", "libstdc++-12-dev", "libuv1-dev", "libssl-dev", "libsqlite3-dev", "libfmt-dev",
          "nlohmann-json3-dev", "libexpected-dev"]
# Paths of shell completions below /usr in Debian.
BASH, ZSH, FISH = ("share/bash-completion/completions/lockstep", "share/zsh/vendor-completions/_lockstep",
                   "share/fish/vendor_completions.d/lockstep.fish")
# Completions with another path below /usr/local and in a Python environment.
LOCAL = {ZSH: "share/zsh/site-functions/_lockstep",
         # Beside the program: a user may copy bin/ alone. Debian has no such files in /usr/bin.
         **{f"lib/lockstep/lockstep-{machine}.gz": f"bin/lockstep-{machine}.gz" for machine in DEBIAN_NAMES}}


def version():
    """Returns the version in CMake's project(), the only place that states it."""
    return re.search(r"^project\(lockstep VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def epoch():
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT))


def copyright_text():
    parts = [f"Lockstep, Apache-2.0:\n\n{(ROOT / 'LICENSE').read_text()}"]
    for package in LINKED:
        text = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text()
        parts.append(f"Linked into the program, from Debian's {package}:\n\n{text}")
    return ("\n" + "=" * 78 + "\n").join(parts).encode()


def documents():
    """Returns README, docs/ and examples/. Keeps their relative paths, because help texts and links use those."""
    tracked = subprocess.check_output(["git", "ls-files", "-z", "README.md", "docs", "examples"], cwd=ROOT, text=True)
    files = {}
    for name in filter(None, tracked.split("\0")):
        mode = 0o755 if os.access(ROOT / name, os.X_OK) else 0o644
        files[f"share/doc/lockstep/{name}"] = (mode, (ROOT / name).read_bytes())
    return files


def stripped(build, machine):
    """Returns the bytes of a build's binary without symbols."""
    prefix = "" if machine == platform.machine() else f"{machine}-linux-gnu-"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "lockstep"
        subprocess.run([f"{prefix}strip", "-o", path, build / "lockstep"], check=True)
        return path.read_bytes()


def common_files(build):
    """Returns the files that all architectures have: path below /usr -> (mode, bytes). A symbolic link has the mode
    None, and its target instead of bytes. The build must be for this machine: it prints its own pages."""
    def output(*command):
        return subprocess.run(command, check=True, capture_output=True).stdout
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        date = time.strftime("%Y-%m-%d", time.gmtime(epoch()))
        output(build / "src/cli/option_pages", "man", folder, date)
        for page in sorted(pathlib.Path(folder).iterdir()):
            files[f"share/man/man1/{page.name}"] = (0o644, page.read_bytes())
    # This folder is not in PATH by default. A user who wants the name torchrun puts the folder first, as with ccache.
    files["lib/lockstep/torchrun"] = (None, "../../bin/lockstep")
    for path, shell in ((BASH, "bash"), (ZSH, "zsh"), (FISH, "fish")):
        files[path] = (0o644, output(build / "lockstep", "run", "--print-completion", shell))
    files["share/doc/lockstep/copyright"] = (0o644, copyright_text())
    files.update(documents())
    return files


def own_files(machine, binaries):
    """Returns the files of one architecture, in the same form: its binary, and those of the others, packed."""
    files = {"bin/lockstep": (0o755, binaries[machine])}
    for other in sorted(set(binaries) - {machine}):
        files[f"lib/lockstep/lockstep-{other}.gz"] = (0o644, packed(binaries[other]))
    return files


def python_package():
    """Returns the modules of `import lockstep`, by their paths in the wheel."""
    folder = ROOT / "python"
    paths = [*folder.glob("lockstep/*.py"), folder / "lockstep/py.typed"]
    return {str(path.relative_to(folder)): (0o644, path.read_bytes()) for path in paths}


def packed(data):
    return gzip.compress(data, 6, mtime=0)


def make_tarball(path, files, when):
    top = path.name.removesuffix(".tar.gz")
    files = {LOCAL.get(name, name): value for name, value in files.items()}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (mode, data) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.mtime, entry.uname, entry.gname = when, "root", "root"
            if mode is None:
                entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, data
                tar.addfile(entry)
            else:
                entry.size, entry.mode = len(data), mode
                tar.addfile(entry, io.BytesIO(data))
    path.write_bytes(packed(buffer.getvalue()))


def make_deb(path, files, when, arch):
    files = {f"usr/{name}": value for name, value in files.items()}
    for name in [name for name in files if "/man/" in name]:
        mode, data = files.pop(name)
        files[f"{name}.gz"] = (mode, packed(data))
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(when))
    changelog = (f"lockstep ({version()}) stable; urgency=medium\n\n  * {version()}.\n\n -- {MAINTAINER}  {date}\n")
    files["usr/share/doc/lockstep/changelog.gz"] = (0o644, packed(changelog.encode()))
    size = sum(len(data) for mode, data in files.values() if mode) // 1024 + 1
    control = (f"Package: lockstep\nVersion: {version()}\nArchitecture: {arch}\nSection: science\nPriority: optional\n"
               f"Maintainer: {MAINTAINER}\nInstalled-Size: {size}\nSuggests: python3-torch\n"
               f"Description: {SUMMARY[0].lower() + SUMMARY[1:]}\n"
               " One static file that takes the place of PyTorch's torchrun: the same options,\n"
               " worker environment and exit codes. All ranks start, fail and recover in\n"
               " lockstep. To use it under the name torchrun, put /usr/lib/lockstep in front\n"
               " of PATH.\n")
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {name}\n" for name, (mode, data) in sorted(files.items()) if mode)
    files["DEBIAN/control"] = (0o644, control.encode())
    files["DEBIAN/md5sums"] = (0o644, sums.encode())
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder) / "deb"
        for name, (mode, data) in files.items():
            target = top / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if mode is None:
                target.symlink_to(data)
            else:
                target.write_bytes(data)
                target.chmod(mode)
        for directory in [top, *(entry for entry in top.rglob("*") if entry.is_dir())]:
            directory.chmod(0o755)
        # dpkg-deb sorts the entries, and replaces times later than SOURCE_DATE_EPOCH.
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", top, path], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(when)})


def metadata():
    """Returns the metadata that pip shows. No URLs: the project is not published anywhere yet."""
    lines = ["Metadata-Version: 2.1", "Name: lockstep", f"Version: {version()}", f"Summary: {SUMMARY}",
             "License: Apache-2.0", f"Keywords: {','.join(KEYWORDS)}", "Requires-Python: >=3.8",
             "Description-Content-Type: text/markdown", *(f"Classifier: {each}" for each in CLASSIFIERS)]
    return "\n".join(lines) + "\n\n" + DESCRIPTION


def make_wheel(path, files, when, tag):
    """Writes the wheel. pip puts bin/ on PATH as scripts, and share/ below the environment's prefix."""
    base, info = f"lockstep-{version()}", f"lockstep-{version()}.dist-info"
    entries = python_package()
    for name, (mode, data) in files.items():
        name = LOCAL.get(name, name)
        if name.startswith("bin/"):
            entries[f"{base}.data/scripts/{name.removeprefix('bin/')}"] = (mode, data)
        elif name == "share/doc/lockstep/copyright":
            entries[f"{info}/licenses/copyright"] = (mode, data)
        elif mode is not None:  # a wheel cannot contain links
            entries[f"{base}.data/data/{name}"] = (mode, data)
    entries[f"{info}/METADATA"] = (0o644, metadata().encode())
    tags = [f"Tag: py3-none-{platform}\n" for platform in tag.removeprefix("py3-none-").split(".")]
    entries[f"{info}/WHEEL"] = (0o644, (
        f"Wheel-Version: 1.0\nGenerator: lockstep tools/package.py\nRoot-Is-Purelib: false\n{''.join(tags)}").encode())
    record = f"{info}/RECORD"
    rows = []
    for name, (_, data) in sorted(entries.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    rows.append(f"{record},,\n")
    ordered = sorted(entries.items()) + [(record, (0o644, "".join(rows).encode()))]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, (mode, data) in ordered:
            entry = zipfile.ZipInfo(name, time.gmtime(max(when, 315532800))[:6])  # zip cannot store a time before 1980
            entry.external_attr, entry.create_system = (0o100000 | mode) << 16, 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def checksums(folder):
    rows = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())
            if path.name != "SHA256SUMS"]
    (folder / "SHA256SUMS").write_text("".join(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release",
                        help="a finished build for this machine's architecture")
    parser.add_argument("--cross", type=pathlib.Path, help="a finished build for the other architecture")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    args = parser.parse_args()
    builds = {platform.machine(): args.build.resolve()}
    if args.cross:
        (other,) = set(DEBIAN_NAMES) - {platform.machine()}
        builds[other] = args.cross.resolve()
    binaries = {machine: stripped(build, machine) for machine, build in builds.items()}
    common, when, made = common_files(builds[platform.machine()]), epoch(), []
    args.out.mkdir(parents=True, exist_ok=True)
    for machine in builds:
        files = {**common, **own_files(machine, binaries)}
        arch, tag = DEBIAN_NAMES[machine], WHEEL_TAG.format(machine)
        names = (f"lockstep-{version()}-linux-{machine}.tar.gz", f"lockstep_{version()}_{arch}.deb",
                 f"lockstep-{version()}-{tag}.whl")
        made += [args.out / name for name in names]
        make_tarball(made[-3], files, when)
        make_deb(made[-2], files, when, arch)
        make_wheel(made[-1], files, when, tag)
    checksums(args.out)
    for path in made:
        print(f"{path.stat().st_size:>10,}  {os.path.relpath(path)}")


if __name__ == "__main__":
    main()
