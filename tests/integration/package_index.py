"""Small real packages, and an index of them (PEP 503) on the loopback of a host."""
import base64
import hashlib
import io
import pathlib
import tarfile
import zipfile

from harness import PYTHON, until

# Debian's wheels for virtual environments (python3-setuptools-whl, python3-wheel-whl), which builds need.
DEBIAN_WHEELS = pathlib.Path("/usr/share/python-wheels")


def write_wheel(folder, name, version, content, requires=()):
    """A wheel with one module, NAME.py; returns its path."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {each}" for each in requires]
    files = {f"{name}.py": content, f"{info}/METADATA": "\n".join(metadata) + "\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        record += f"{path},sha256={digest},{len(text.encode())}\n"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return wheel


def source_files(name, version, content, requires=()):
    """Returns the files of a project that setuptools builds. Slow: pip fetches setuptools for each build."""
    return {"pyproject.toml": '[build-system]\nrequires = ["setuptools", "wheel"]\n'
                              'build-backend = "setuptools.build_meta"\n'
                              f'[project]\nname = "{name}"\nversion = "{version}"\n'
                              f"dependencies = [{', '.join(repr(each) for each in requires)}]\n",
            f"{name}/__init__.py": content}


def small_source_files(name, version, content):
    """Returns the files of a project with its own build backend of a few lines."""
    return {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
            "backend.py": f"""import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    wheel = "{name}-{version}-py3-none-any.whl"
    info = "{name}-{version}.dist-info/"
    with zipfile.ZipFile(folder + "/" + wheel, "w") as archive:
        archive.writestr("{name}.py", open("{name}.py").read())
        archive.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        archive.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(info + "RECORD", "{name}.py,,\\n")
    return wheel
""",
            f"{name}.py": content}


def write_sdist(folder, name, version, content):
    folder.mkdir(parents=True, exist_ok=True)
    files = {**small_source_files(name, version, content),
             "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    with tarfile.open(folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


class Index:
    """Serves a folder at http://127.0.0.1:8503/simple on a host. The user's pip.conf names this index."""

    def __init__(self, server, user="me"):
        self.server = server
        self.top = server.folder / "index"
        for wheel in DEBIAN_WHEELS.glob("*.whl"):
            target = self.folder(wheel.name.split("-")[0]) / wheel.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read_bytes())
        self.process = None
        self.start()
        config = server.homes[user] / ".config/pip/pip.conf"
        config.parent.mkdir(parents=True)
        config.write_text("[global]\nindex-url = http://127.0.0.1:8503/simple\nretries = 0\n")

    def start(self):
        self.process = self.server.host.start("-u", "-m", "http.server", "8503", "--bind", "127.0.0.1", "--directory",
                                              self.top, program=(PYTHON,))
        until(lambda: "Serving HTTP" in self.process.out(), 20, "the index is served")

    def folder(self, name):
        return self.top / "simple" / name.lower().replace("_", "-")

    def wheel(self, name, version, content, requires=()):
        return write_wheel(self.folder(name), name, version, content, requires)

    def sdist(self, name, version, content):
        write_sdist(self.folder(name), name, version, content)

    def asked(self):
        """Returns the number of requests so far."""
        return self.process.err().count('"GET ')

    def stop(self):
        if self.process:
            self.process.process.kill()
            self.process.process.wait(10)
            self.process = None
