"""Real etcd servers, and our etcd_tool. All processes end with their fixture."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import urllib.request

import pytest

from harness import BUILD, free_port, read, skip, until

TOOL = BUILD / "tests/etcd_tool"
NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def kill_with_parent():
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Member:
    def __init__(self, cluster, name, client, peer):
        self.cluster, self.name, self.client, self.peer = cluster, name, client, peer
        self.folder = cluster.folder / name
        self.log = cluster.folder / f"{name}.log"
        self.process = None

    @property
    def place(self):
        return f"127.0.0.1:{self.client}"

    def start(self):
        scheme = "https" if self.cluster.tls else "http"
        argv = ["etcd", "--name", self.name, "--data-dir", self.folder, "--enable-v2", "--log-level", "warn",
                "--listen-client-urls", f"{scheme}://{self.place}",
                "--advertise-client-urls", f"{scheme}://{self.place}",
                "--listen-peer-urls", f"http://127.0.0.1:{self.peer}",
                "--initial-advertise-peer-urls", f"http://127.0.0.1:{self.peer}",
                "--initial-cluster", ",".join(f"{m.name}=http://127.0.0.1:{m.peer}" for m in self.cluster.members),
                *self.cluster.tls]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([str(part) for part in argv], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=kill_with_parent)

    def ready(self):
        def healthy():
            assert self.process.poll() is None, read(self.log)[-3000:]
            argv = ["etcdctl", "--endpoints", self.place, "--command-timeout", "2s", *self.cluster.ctl_tls, "endpoint",
                    "health"]
            return subprocess.run(argv, capture_output=True, env={**os.environ, "ETCDCTL_API": "3"}).returncode == 0
        until(healthy, 20, f"etcd {self.name} is healthy")

    def kill(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(5)
        self.process = None

    def signal(self, number):
        self.process.send_signal(number)


class Cluster:
    def __init__(self, folder, size=1, tls=(), ctl_tls=()):
        if shutil.which("etcd") is None:
            skip("no etcd: apt-get install etcd-server etcd-client")
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.tls, self.ctl_tls = tls, ctl_tls
        self.members = []
        for i in range(size):
            self.members.append(Member(self, f"m{i}", free_port(), free_port()))

    def start(self):
        for member in self.members:
            member.start()
        for member in self.members:
            member.ready()
        return self

    @property
    def places(self):
        return ",".join(member.place for member in self.members)

    def ctl(self, *args, check=True):
        argv = ["etcdctl", "--endpoints", self.places, *self.ctl_tls, *map(str, args)]
        done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "ETCDCTL_API": "3"}, timeout=20)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def v2(self, path):
        with NO_PROXY.open(f"http://{self.places.split(',')[0]}/v2/keys{path}", timeout=5) as answer:
            return json.load(answer)["node"]

    def v2_watchers(self):
        """Returns the number of open polls of the v2 API at the first member."""
        with NO_PROXY.open(f"http://{self.places.split(',')[0]}/v2/stats/store", timeout=5) as answer:
            return int(json.load(answer)["watchers"])

    def close(self):
        for member in self.members:
            member.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server that all tests of a module share."""
    cluster = Cluster(tmp_path_factory.mktemp("etcd") / "one").start()
    yield cluster
    cluster.close()


class Tool:
    """Drives etcd_tool line by line. Keeps answers by id, and events in order."""

    def __init__(self, endpoints, conf="", run_id="job"):
        self.process = subprocess.Popen([TOOL, endpoints, conf, run_id], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, preexec_fn=kill_with_parent)
        self.answers, self.events, self.next_id = {}, [], 0
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if "id" in said:
                self.answers[said["id"]] = said
            else:
                self.events.append(said)

    def begin(self, op, **args):
        self.next_id += 1
        self.process.stdin.write(json.dumps({"op": op, "id": self.next_id, **args}) + "\n")
        self.process.stdin.flush()
        return self.next_id

    def end(self, number, deadline=20):
        return until(lambda: self.answers.get(number), deadline, f"an answer; events: {self.events}")

    def ask(self, op, deadline=20, **args):
        return self.end(self.begin(op, **args), deadline)

    def do(self, op, **args):
        said = self.ask(op, **args)
        assert "error" not in said, said
        return said.get("value")

    def event(self, kind, deadline=20, **parts):
        def look():
            for event in list(self.events):
                if event.get("event") == kind and all(event.get(k) == v for k, v in parts.items()):
                    return event
            return None
        return until(look, deadline, f"{kind} {parts} among {self.events}")

    def forget_events(self):
        self.events.clear()

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(5)
        self.thread.join(5)
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
