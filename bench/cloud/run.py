#!/usr/bin/env python3
"""Clouds against the fakes of tests/cloud, each answer 50 ms late: the journal with 10,000 closed rentals, reconcile of
1,000 foreign machines, zones that refuse, and offers cold and warm.

    LOCKSTEP_BUILD=build/release bench/cloud/run.py [journal|reconcile|refusals|offers ...]
"""
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cloud"))

import fake_cloud  # noqa: E402

BINARY = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build" / "release")).resolve() / "lockstep"
DELAY = 0.05
REST = 1.2  # Lambda takes one question a second from an account
TRIES = int(os.environ.get("TRIES", "9"))


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def ms(seconds):
    return f"{seconds * 1e3:.1f} ms"


class Client:
    def __init__(self, cloud, folder):
        self.cloud, self.folder = cloud, pathlib.Path(folder)
        self.env = {**os.environ, **cloud.env, "HOME": str(self.folder / "home"),
                    "XDG_STATE_HOME": str(self.folder / "state"), "XDG_CACHE_HOME": str(self.folder / "cache")}
        (self.folder / "home").mkdir(exist_ok=True)

    def run(self, *words):
        began = time.monotonic()
        done = subprocess.run([BINARY, *words], env=self.env, capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, check=False)
        return time.monotonic() - began, done

    def median(self, *words, code=0, rest=0):
        """rest: so long before each, where a provider lets an account ask once a second only."""
        taken = []
        for _ in range(TRIES):
            time.sleep(rest)
            seconds, done = self.run(*words)
            assert done.returncode == code, (words, done)
            taken.append(seconds)
        return statistics.median(taken)

    def to_answer_and_end(self, *words):
        """Seconds to the answer's first byte, and to the end, of a command that finds Lambda's turn free."""
        time.sleep(REST)
        began = time.monotonic()
        with subprocess.Popen([BINARY, *words], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as run:
            assert run.stdout.read(1), words
            first = time.monotonic() - began
            run.stdout.read()
        return first, time.monotonic() - began

    def forget_answers(self, but=""):
        """Of the providers; but: this one is kept."""
        for path in (self.folder / "cache" / "lockstep").glob("*"):
            if path.name != f"{but}.kept":
                path.unlink()


def closed_rental(number, now_ms):
    """As rentals.db has it: one attempt refused, one machine that ran for an hour."""
    began = now_ms - (number + 2) * 3_600_000
    offer = {"provider": "aws", "region": "us-east-1", "zone": "us-east-1a", "type": "g6.xlarge", "gpu": "L4",
             "gpus": 1, "price_micros_per_hour": 804800}
    machine = {"id": f"i-{number:017x}", "node": 0, "state": 5, "since_ms": began, "end_ms": began + 3_600_000,
               "gone_ms": began + 3_600_000}
    attempt = {"count": 1, "offer": offer, "per_hour": 810000, "minimum_s": 60, "asked_ms": began}
    return {"id": f"{number:020d}", "cluster": f"job-{number}", "owner": "0123456789abcdef", "created_ms": began,
            "closed_ms": began + 3_600_000, "wanted": False, "wish": {"gpu": "L4:1", "nodes": 1, "archs": ["x86_64"]},
            "terms": {"lifetime_s": 21600}, "public_key": "ssh-ed25519 " + "A" * 68,
            "attempts": [{**attempt, "number": 1, "state": "refused", "code": "InsufficientInstanceCapacity"},
                         {**attempt, "number": 2, "state": "gone", "machines": [machine]}]}


def journal(client):
    plain = {words: client.median(*words) for words in (("cluster", "list"), ("cost",))}
    now_ms = int(time.time() * 1000)
    with sqlite3.connect(client.folder / "state" / "lockstep" / "rentals.db") as db:
        rentals = [closed_rental(number, now_ms) for number in range(10_000)]
        db.executemany("INSERT INTO records VALUES ('rental', ?, 0, ?, ?)",
                       [(one["id"], one["closed_ms"], json.dumps(one, separators=(",", ":"))) for one in rentals])
    db.close()
    for words, before in plain.items():
        after = client.median(*words)
        row(f"`lockstep {' '.join(words)}` with 10,000 closed rentals in the journal", ms(after),
            f"with none {ms(before)}", f"+{ms(after - before)}", "at most 20 ms more")
    (client.folder / "state" / "lockstep" / "rentals.db").unlink()


def reconcile(client):
    regions = list(client.cloud.world.catalog["aws"]["regions"])
    before = client.median("down", "--all", "-y", rest=REST)
    for number in range(1000):
        region = regions[number % len(regions)]
        fake_cloud.control(client.cloud.url, "foreign", {
            "face": "ec2", "zone": f"{region}a", "type": "g6.xlarge",
            "tags": {"lockstep:intent": f"{number:020d}", "lockstep:owner": "fedcba9876543210",
                     "lockstep:cluster": "theirs"}})
    seconds = client.median("down", "--all", "-y", rest=REST)
    row(f"reconcile of {len(regions)} regions and 1,000 foreign machines", ms(seconds), f"with none {ms(before)}",
        f"+{ms(seconds - before)}", "at most 1 s")
    fake_cloud.control(client.cloud.url, "reset", {})


def refusals(client):
    """Every zone refuses: from a refusal to the next launch request, at the fake."""
    client.cloud.faults.add({"face": "ec2", "action": "RunInstances", "times": -1, "do": {"kind": "capacity"}})
    client.cloud.records.clear()
    seconds, done = client.run("up", "none", "--gpus", "L4:1", "--at-least", "--provider", "aws", "-y", "--max-price",
                               "1000", "--wait", "1s", "--allow-from", "192.0.2.7/32")
    assert done.returncode != 0, done
    launches = [one["at"] for one in client.cloud.records
                if one.get("action") == "RunInstances" and "DryRun" not in one.get("params", {})]
    gaps = [later - earlier - DELAY for earlier, later in zip(launches, launches[1:])]
    goal = len(launches) * (DELAY + 0.1)
    row("a zone refuses → the next launch request is on the wire", ms(statistics.median(gaps)),
        f"worst {ms(max(gaps))}", f"{len(launches)} zones", "at most 200 ms")
    row(f"{len(launches)} refusing zones, `up` from start to exit", f"{seconds:.2f} s", "", f"goal {goal:.2f} s",
        "at most 0.15 s a zone")
    fake_cloud.control(client.cloud.url, "reset", {})


def offers(client):
    client.median("offers", "L4:1")
    cold, swept, slowest = [], [], []
    for _ in range(TRIES):
        client.forget_answers("clean-sweep")
        cold.append(client.to_answer_and_end("offers", "L4:1")[1])
        client.forget_answers()
        swept.append(client.to_answer_and_end("offers", "L4:1"))
    for provider in ("aws", "gcp", "lambda", "runpod"):
        alone = []
        for _ in range(max(TRIES // 3, 1)):
            client.forget_answers("clean-sweep")
            time.sleep(REST)
            alone.append(client.run("offers", "L4:1", "--provider", provider)[0])  # Lambda has none, and says so
        slowest.append(statistics.median(alone))
    row("`lockstep offers L4:1` cold, four providers", ms(statistics.median(cold)),
        f"the slowest of them alone {ms(max(slowest))}", f"{statistics.median(cold) / max(slowest):.2f} x",
        "at most 1.5 x")
    answer, end = (statistics.median(each) for each in zip(*swept))
    row("the same, and a sweep is due: its answer", ms(answer), f"its end, the sweep done {ms(end)}",
        "Lambda takes one question a second", "")
    row("the same, warm", ms(client.median("offers", "L4:1")), "", "", "at most 30 ms")
    warm = []
    for _ in range(TRIES):
        (client.folder / "cache" / "lockstep" / "clean-sweep.kept").unlink(missing_ok=True)
        warm.append(client.to_answer_and_end("offers", "L4:1"))
    answer, end = (statistics.median(each) for each in zip(*warm))
    row("the same, warm, and a sweep is due: its answer", ms(answer), f"its end, the sweep done {ms(end)}", "",
        "at most 30 ms")


PARTS = {"journal": journal, "reconcile": reconcile, "refusals": refusals, "offers": offers}


def main():
    print("| what | measured | beside it | | goal |\n|---|---|---|---|---|")
    for part in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as folder, fake_cloud.FakeCloud(pathlib.Path(folder) / "keys") as cloud:
            cloud.world.settings.update(boot_s=0.0, end_s=0.0, operation_s=0.0, limits=0, delay_s=DELAY)
            PARTS[part](Client(cloud, folder))


if __name__ == "__main__":
    main()
