import os
import pathlib
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import harness  # noqa: E402
import hosts as several_hosts  # noqa: E402
import root_mount  # noqa: E402


def pytest_configure(config):
    root_mount.ensure()
    for path in (harness.BINARY, harness.WORKER):
        if not path.exists() and not config.option.collectonly:
            pytest.exit(f"{path} is not there: run ./dev build first", 2)


@pytest.fixture
def lockstep(tmp_path):
    """Lockstep in its own folder. At the end of a test, none of its processes may be alive."""
    folder = harness.Lockstep(tmp_path)
    yield folder
    left = folder.close()
    assert not left, f"left running: {left}"


@pytest.fixture
def open_folder():
    """A folder that other users may enter. Each pytest that starts closes the folder of all pytests to them."""
    with tempfile.TemporaryDirectory(prefix="lockstep-open-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.fixture
def hosts(lockstep):
    """hosts(n): n machines on one network (hosts.py). At the end of a test, none may have a process."""
    if os.getuid() != 0:
        harness.skip("network namespaces need root")
    made = several_hosts.Hosts(lockstep)
    yield made
    left = made.close()
    assert not left, f"left running: {left}"
