"""The fake clouds (tests/cloud) as fixtures: one server for a test file, reset for each test."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cloud"))

import fake_cloud  # noqa: E402
from harness import until  # noqa: E402

HOUR = 3600


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with fake_cloud.FakeCloud(tmp_path_factory.mktemp("fakes")) as made:
        yield made


@pytest.fixture
def cloud(server):
    """An empty cloud. Boots take no time, and Lambda's rate limits are off."""
    fake_cloud.control(server.url, "reset", {})
    server.world.advance(0, scale=1, skew=0)
    server.world.settings.update(boot_s=0.0, end_s=0.0, operation_s=0.0, limits=0, gce_capacity_s=0.0, delay_s=0,
                                 max_run_late_s=0.0, gce_denied=[], page_most=5000, spot_role=True)
    server.world.on_launch = server.world.on_end = server.world.on_notice = None
    yield server
    assert fake_cloud.control(server.url, "errors") == []


def machines(cloud):
    return fake_cloud.control(cloud.url, "machines")


def running(cloud, count=1):
    return until(lambda: [each for each in machines(cloud) if each["state"] == "running"][count - 1:], 20)


def usd(cloud):
    return cloud.world.micros() / 1e6
