"""docs/cloud-*.md: runs the documented commands against the fakes, and checks the documented policies."""
import json
import re
import shlex
import subprocess

import pytest
from cloud_tool import FakeCloud, environment
from harness import BINARY, REPOSITORY, read

PAGES = ["aws", "gcp", "lambda", "runpod"]
# Commands that need a rented cluster run without one. They must get as far as saying so.
WITHOUT = {"keep": "nothing is rented for 'lab'", "down": "nothing is rented for 'lab'", "run": "lab"}


@pytest.fixture(name="cloud", scope="module")
def running_cloud(tmp_path_factory):
    with FakeCloud(tmp_path_factory.mktemp("fake")) as cloud:
        cloud.world.settings["limits"] = 0
        yield cloud
        assert not cloud.failures, cloud.failures


def page(name):
    return read(REPOSITORY / f"docs/cloud-{name}.md")


def typed(cloud, folder, words):
    env = environment(cloud, LOCKSTEP_CLOUD_PACE="0", XDG_STATE_HOME=str(folder / "state"),
                      XDG_CACHE_HOME=str(folder / "cache"),
                      **{name: text for name, text in cloud.env.items() if name.endswith("_API_KEY")})
    return subprocess.run([BINARY, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, check=False)


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_a_page(cloud, tmp_path, name):
    commands = [shlex.split(each, comments=True) for each in re.findall(r"^    lockstep (.*)$", page(name), re.M)]
    assert [words[0] for words in commands] == ["cloud", "offers", "run", "up", "run", "keep", "cost", "down"]
    for words in commands:
        rents = words[0] == "up" or "--on-demand" in words
        if rents:
            words[1:1] = ["--print", "--allow-from", "198.51.100.7/32"]
        done = typed(cloud, tmp_path, words)
        if words[0] in WITHOUT and not rents:
            assert done.returncode and WITHOUT[words[0]] in done.stderr and "usage" not in done.stderr, done
        else:
            assert done.returncode == 0, done
        if rents:
            assert f"plan: 1 x {name} " in done.stdout, done
    assert not cloud.world.live()


def test_policy_of_aws_is_the_one_that_the_check_prints():
    printed = re.search(r'kPolicy = R"\((.*?)\)";', read(REPOSITORY / "src/cloud/aws/check.cc"), re.S).group(1)
    assert json.loads(re.search(r"```json\n(.*?)```", page("aws"), re.S).group(1)) == json.loads(printed)


def test_rights_of_google_are_the_ones_that_are_checked():
    rights = re.search(r"kRights = .*?\{(.*?)\}\);", read(REPOSITORY / "src/cloud/gcp/check.cc"), re.S).group(1)
    assert re.search(r"--permissions (\S+)", page("gcp")).group(1).split(",") == re.findall(r'"([^"]+)"', rights)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_only_a_simulator_has_confirmed(name):
    text = page(name)
    assert "**Never run against the real" in text and "## What only a simulator has confirmed" in text
    for variable in {"aws": ["AWS_ACCESS_KEY_ID", "AWS_PROFILE"], "gcp": ["GOOGLE_APPLICATION_CREDENTIALS"],
                     "lambda": ["LAMBDA_API_KEY", "--i-will-watch"], "runpod": ["RUNPOD_API_KEY"]}[name]:
        assert variable in text
