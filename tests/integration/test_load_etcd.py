"""A job goes on, in little memory, beside an etcd that lies: endless answers, false lengths, JSON of the wrong shape or
with too many values, watches with endless events. Real etcd servers are used in test_etcd3*.py."""
import base64
import json

import pytest

import etcd_server as etcd
from harness import children, until
from lying_etcd import CHUNKED, OK, Proxy, answer, chunk
from nodes import QUICK, SHOW, Job, ends, shown, starts

MOST_MEMORY = 48 << 20  # of an agent; an answer of etcd may hold 1 MiB
ENOUGH = 5  # lies of each kind


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    cluster = etcd.Cluster(tmp_path_factory.mktemp("etcd") / "one").start()
    yield cluster
    cluster.close()


@pytest.fixture
def proxy(server):
    made = Proxy(server.places)
    yield made
    made.close()


def forever(head, piece):
    def lie(say):
        say(head)
        while True:  # until the agent hangs up
            say(piece)
    return lie


def once(data):
    return lambda say: say(data)


def watch_line(events):
    return json.dumps({"result": {"header": {"revision": "9"}, "events": events}}).encode() + b"\n"


def leader_event(job, server):
    """Returns the event of the leader's key with its present value, once more."""
    said = json.loads(server.ctl("get", f"/lockstep/rendezvous/{job.id}/leader", "-w", "json"))["kvs"][0]
    return {"kv": {name: said[name] if name in ("key", "value") else str(said[name])
                   for name in ("key", "value", "create_revision", "mod_revision", "lease")}}


def many_keys(count):
    """The answer to a transaction of two ranges; the first of them has that many keys."""
    one = json.dumps({"key": base64.b64encode(b"k").decode(), "value": base64.b64encode(b"v").decode()})
    return ('{"responses":[{"response_range":{"kvs":[' + ",".join([one] * count)
            + ']}},{"response_range":{}}]}').encode()


MIB = 1 << 20
# A watch of a compacted revision: the agent must read the keys themselves.
GAP = CHUNKED + chunk(b'{"result":{"created":true,"canceled":true,"compact_revision":"5"}}\n') + chunk(b"")

WATCH, TXN, KEEP_ALIVE = "/v3/watch", "/v3/kv/txn", "/v3/lease/keepalive"
LIES = {
    "an endless line": {WATCH: forever(CHUNKED, chunk(b"x" * MIB))},
    "a chunk without end": {WATCH: forever(CHUNKED + b"fffffffffffffff\r\n", b"x" * MIB)},
    "empty lines": {WATCH: forever(CHUNKED, chunk(b"\n" * MIB))},
    "a deep line": {WATCH: once(CHUNKED + chunk(b'{"result":' * (MIB // 10) + b"\n") + chunk(b""))},
    "a line of many events": {WATCH: once(CHUNKED + chunk(watch_line([{}] * 500_000)) + chunk(b""))},
    "a past that is lost": {WATCH: once(GAP)},
    "a million keys": {WATCH: once(GAP), TXN: once(answer(many_keys(1_000_000)))},
    "keys beyond the limit of bytes": {WATCH: once(GAP), TXN: forever(OK + b"\r\n", many_keys(1_000_000)[:-1])},
    "wrong types": {WATCH: once(GAP), TXN: once(answer(b'{"succeeded":"yes","responses":{"0":[1e999]},"header":[]}'))},
    "lists of other things": {WATCH: once(GAP),
                              TXN: once(answer(b'{"responses":[{"response_range":{"kvs":[1]}},null]}'))},
}
# Lies for calls that are retried after a bad answer. Every second answer is true.
SOME = {
    "a huge length": {KEEP_ALIVE: forever(OK + b"Content-Length: 999999999999999\r\n\r\n", b" " * MIB)},
    "an answer in endless chunks": {KEEP_ALIVE: forever(CHUNKED, chunk(b" " * MIB))},
    "an endless head": {KEEP_ALIVE: forever(OK, b"a: b\r\n" * 10_000)},
    "no end of interim answers": {KEEP_ALIVE: forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000)},
}


def two_nodes(lockstep, proxy, go):
    job = Job(lockstep, "etcd3")
    job.endpoint = proxy.place
    runs = [job.node(number, actions=(SHOW, f"wait={go}"), settings=QUICK) for number in range(2)]
    for run in runs:
        starts(run, 1)
    return job, runs


def peak_memory(run):
    with open(f"/proc/{children(run.pid)[0]}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def goes_on(proxy, runs, go, enough):
    until(enough, 120, "enough lies")
    assert all(run.process.poll() is None for run in runs)
    peaks = [peak_memory(run) for run in runs]
    proxy.lie({})
    go.touch()
    for end in ends(*runs, timeout=60):
        assert "is gone" not in end.err, str(end)
    assert [len(shown(run)) for run in runs] == [1, 1]  # no worker was started again
    print(f"{proxy.told} lies, {proxy.sent >> 20} MiB; at most {max(peaks) >> 20} MiB of memory")
    assert max(peaks) < MOST_MEMORY


@pytest.mark.parametrize("name", [*LIES, *SOME])
def test_a_job_goes_on_beside_an_etcd_that_lies(lockstep, proxy, name):
    go = lockstep.folder / "go"
    _, runs = two_nodes(lockstep, proxy, go)
    proxy.lie({**LIES, **SOME}[name], every=2 if name in SOME else 1)
    goes_on(proxy, runs, go, lambda: all(proxy.told.get(path, 0) >= ENOUGH for path in proxy.lies))


@pytest.mark.parametrize("events", [1, 4000])
def test_a_job_goes_on_beside_a_watch_that_never_ends(lockstep, server, proxy, events):
    go = lockstep.folder / "go"
    job, runs = two_nodes(lockstep, proxy, go)
    event = leader_event(job, server)
    lines = [event] if events == 1 else [{}] * (events - 1) + [event]
    proxy.lie({WATCH: forever(CHUNKED, chunk(watch_line(lines) * (100 // len(lines) + 1)))})
    goes_on(proxy, runs, go, lambda: proxy.sent >= 3 << 20)
