"""Drives the code of one provider line by line against the fakes (tests/cloud), by tests/support/cloud_tool.cc."""
import json
import os
import subprocess
import sys
import threading

from harness import BUILD, FOREIGN, REPOSITORY, until

sys.path.insert(0, str(REPOSITORY / "tests/cloud"))

import cloud_keys  # noqa: E402
from fake_cloud import FakeCloud  # noqa: E402

TOOL = BUILD / "tests/cloud_tool"
CLOUD = ("AWS_", "GOOGLE_", "CLOUDSDK_", "LAMBDA_", "RUNPOD_", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "SSL_CERT")
INTENT, OWNER = "abcdefghij0123456789", "owner00000000001"  # the owner is the tool's
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICN+lJwsONkwrdsSnQsu1ydUkIuIg5oOC+Eslvmtt60T lockstep"


def environment(cloud, **env):
    """Returns an environment without the caller's own clouds. Keys come from files in this home, or from `env`."""
    clean = {name: value for name, value in os.environ.items()
             if not FOREIGN.match(name) and not name.startswith(CLOUD)}
    merged = {**clean, "HOME": str(cloud.folder / "home"),
              **{name: value for name, value in cloud.env.items() if not name.endswith("_API_KEY")}, **env}
    return {name: value for name, value in merged.items() if value is not None}


class Tool:
    """A cloud_tool process for one provider. Answers come in the order of the questions."""

    def __init__(self, provider, cloud, folder, log=None, **env):
        merged = environment(cloud, **{"CLOUD_TOOL_FOLDER": str(folder), **env})
        self.process = subprocess.Popen([TOOL, provider], env=merged,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def tell(self, what, **given):
        self.process.stdin.write(json.dumps({"do": what, **given}) + "\n")
        self.process.stdin.flush()

    def answer(self, deadline=60.0):
        # Kill a tool that hangs: its answer is then empty, and json.loads() fails.
        timer = threading.Timer(deadline, self.process.kill)
        timer.start()
        try:
            return json.loads(self.process.stdout.readline())
        finally:
            timer.cancel()

    def ask(self, what, **given):
        self.tell(what, **given)
        return self.answer()

    def machines(self, **given):
        return self.ask("list", **given)["machines"]

    def running(self, count=1, deadline=30.0):
        """Waits until `count` of our machines run and have an address, and returns these."""
        def up():
            there = [each for each in self.machines(intent=INTENT) if each["state"] == "running" and each["address"]]
            return there if len(there) == count else None
        return until(up, deadline, f"{count} running")


def spec(offer, now_ms, **more):
    return {"intent": INTENT, "owner": OWNER, "cluster": "mine", "offer": offer, "user_data": "#cloud-config\n",
            "public_key": KEY, "allow_from": "198.51.100.7/32", "lifetime_s": 7200, "ends_ms": now_ms + 3600_000,
            **more}


__all__ = ["FakeCloud", "Tool", "cloud_keys", "environment", "spec", "INTENT", "OWNER", "KEY", "TOOL", "until"]
