"""etcd's v3 API as the etcd3 backend uses it: calls, watches, failover, TLS, users, and the election of a leader with
real servers that are killed, stopped and started again."""
import signal
import subprocess
import time

import pytest

import etcd_server as etcd
from certificates import Certificates
from etcd_server import server  # noqa: F401
from harness import free_port, until


@pytest.fixture
def own(tmp_path):
    """Clusters of one test."""
    made = []

    def make(size=1, start=True, **options):
        cluster = etcd.Cluster(tmp_path / f"etcd{len(made)}", size, **options)
        made.append(cluster)
        return cluster.start() if start else cluster

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture
def tools():
    made = []

    def make(endpoints, conf="", run_id="job"):
        made.append(etcd.Tool(endpoints, conf, run_id))
        return made[-1]

    yield make
    for tool in made:
        tool.kill()


# ---- calls

def test_keys(server, tools):
    tool = tools(server.places)
    binary = "a\n\"\u00e9\0z"
    tool.do("put", key="k/1", value=binary)
    tool.do("put", key="k/2", value="")
    tool.do("put", key="l", value="x")
    kvs = tool.do("range", key="k/", prefix=True)
    assert [kv[:2] for kv in kvs] == [["k/1", binary], ["k/2", ""]]
    assert kvs[0][2] == kvs[0][3] > 0
    assert tool.ask("remove", key="k/", prefix=True)["deleted"] == 2
    assert tool.do("range", key="k/1") == []
    assert server.ctl("get", "l", "--print-value-only") == "x\n"


def test_transactions(server, tools):
    tool = tools(server.places)
    tool.do("put", key="t", value="one")
    mod = tool.do("range", key="t")[0][3]
    assert tool.ask("swap", key="t", mod=mod, before="one", value="two")["succeeded"] is True
    assert tool.do("range", key="t")[0][1] == "two"
    # And the else: removed.
    assert tool.ask("swap", key="t", mod=mod, before="two", value="three")["succeeded"] is False
    assert tool.do("range", key="t") == []


def test_leases(server, tools):
    tool = tools(server.places)
    lease = tool.ask("grant", ttl=60)
    assert lease["ttl"] == 60
    tool.do("put", key="leased", value="x", lease=lease["lease"])
    assert tool.ask("keep_alive", lease=lease["lease"])["ttl"] == 60
    tool.do("revoke", lease=lease["lease"])
    assert tool.do("range", key="leased") == []
    assert tool.ask("keep_alive", lease=lease["lease"])["ttl"] == 0
    said = tool.ask("put", key="leased", value="x", lease=12345)
    assert said["error"] == (f"etcd at http://{server.places}: /v3/kv/put: HTTP 404: "
                             "etcdserver: requested lease not found")


def test_watch(server, tools):
    tool, other = tools(server.places), tools(server.places)
    start = tool.ask("put", key="w/0", value="x")["revision"]
    tool.begin("watch", key="w/", prefix=True, **{"from": start})
    for i in range(3):
        other.do("put", key=f"w/{i}", value=str(i))
    other.do("remove", key="w/1")
    tool.event("deleted", key="w/1")
    assert [(e["event"], e["key"]) for e in tool.events] == [
        ("put", "w/0"), ("put", "w/0"), ("put", "w/1"), ("put", "w/2"), ("deleted", "w/1")]


def test_watch_goes_on_after_a_restart(own, tools):
    cluster = own()
    tool, other = tools(cluster.places), tools(cluster.places)
    first = tool.ask("put", key="w", value="0")["revision"]
    tool.begin("watch", key="w", **{"from": first})
    tool.event("put", value="0")
    cluster.members[0].kill()
    refused = until(lambda: [e for e in tool.events if "refused" in e.get("error", "")])
    assert "Connection refused" in refused[0]["error"]
    cluster.members[0].start()
    for value in "123":
        other.do("put", key="w", value=value)
    tool.event("put", value="3")
    assert [e["value"] for e in tool.events if e["event"] == "put"] == ["0", "1", "2", "3"]


def test_watch_tells_of_what_was_compacted(server, tools):
    tool = tools(server.places)
    first = tool.ask("put", key="c", value="0")["revision"]
    for value in "123":
        last = tool.ask("put", key="c", value=value)["revision"]
    tool.do("compact", revision=last)
    tool.begin("watch", key="c", **{"from": first})
    assert tool.event("gap")["revision"] == last
    tool.do("put", key="c", value="4")
    tool.event("put", value="4")


# ---- what goes wrong

def test_etcd_is_not_there(tools):
    port = free_port()
    started = time.monotonic()
    said = tools(f"127.0.0.1:{port}", "read_timeout=1").ask("elect")
    assert time.monotonic() - started < 10
    place = f"http://127.0.0.1:{port}/v3/lease/grant"
    assert said["error"].startswith(f"rendezvous in etcd (job): POST {place}: connect to ")
    assert "Connection refused, gave up after 1.0 s" in said["error"] and said["errno"] == 111


def test_every_endpoint_is_named(tools):
    ports = [free_port(), free_port()]
    said = tools(",".join(f"localhost:{p}" for p in ports), "read_timeout=1").ask("put", key="a", value="b")
    assert all(f"localhost:{p}/v3/kv/put" in said["error"] for p in ports)


def test_it_starts_late(own, tools):
    cluster = own(start=False)
    tool = tools(cluster.places)
    number = tool.begin("elect")
    cluster.start()
    assert "error" not in tool.end(number)
    tool.event("elected")


def test_another_program_answers(tools):
    import http.server
    import threading
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as httpd:
        httpd.RequestHandlerClass.log_message = lambda *args: None
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        said = tools(f"127.0.0.1:{httpd.server_port}", "read_timeout=1").ask("put", key="a", value="b")
        httpd.shutdown()
    assert "HTTP 501" in said["error"] and f"127.0.0.1:{httpd.server_port}" in said["error"]


@pytest.mark.parametrize("endpoint, conf, words", [
    ("h:99999", "", "port number"), ("http://a,https://b", "", "both http and https"),
    ("a", "protocol=ftp", "http or https"),
    ("a", "user=x", "password_file"), ("a", "user=x,password_file=/nowhere", "/nowhere"),
    ("a", "read_timeout=0", "positive"), ("https://a", "ca_cert=/nowhere", "'ca_cert' names no file: /nowhere"),
    ("https://a", "ca_cert=/etc/passwd", "the certificate authority '/etc/passwd' can't be used"),
])
def test_bad_settings(endpoint, conf, words):
    done = subprocess.run([etcd.TOOL, endpoint, conf, "job"], capture_output=True, text=True, timeout=10, input="")
    assert done.returncode == 2 and words in done.stdout, done.stdout


# ---- several members

def test_one_member_of_three_lost(own, tools):
    cluster = own(3)
    tool, other = tools(cluster.places), tools(cluster.places)
    first = tool.ask("put", key="w", value="0")["revision"]
    tool.begin("watch", key="w", **{"from": first})
    tool.do("elect")
    tool.event("elected")
    for victim, how in ((cluster.members[0], signal.SIGKILL), (cluster.members[0], None),
                        (cluster.members[0], signal.SIGSTOP)):
        if how is None:
            victim.kill()
            victim.start()
            victim.ready()
            continue
        victim.signal(how)
        for i in range(5):
            other.do("put", key="w", value=f"{how.name}{i}")
            tool.do("put", key="mine", value=str(i))
        tool.event("put", value=f"{how.name}4")
    assert not [e for e in tool.events if e["event"] in ("lost", "deposed")]
    values = [e["value"] for e in tool.events if e["event"] == "put"]
    assert values == ["0", *(f"SIGKILL{i}" for i in range(5)), *(f"SIGSTOP{i}" for i in range(5))]


# ---- users and TLS

def test_user_and_password(own, tools, tmp_path):
    cluster = own()
    cluster.ctl("user", "add", "root:secret")
    cluster.ctl("user", "grant-role", "root", "root")
    cluster.ctl("auth", "enable")
    password = tmp_path / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    said = tools(cluster.places).ask("put", key="a", value="b")
    assert "user name is empty" in said["error"]
    conf = f"user=root,password_file={password}"
    tool = tools(cluster.places, conf)
    revision = tool.ask("put", key="a", value="b")["revision"]
    tool.begin("watch", key="a", **{"from": revision})
    tool.event("put", value="b")
    # Tokens don't outlive the server: a new one is fetched, for calls and watches.
    cluster.members[0].kill()
    cluster.members[0].start()
    tool.do("put", key="a", value="c")
    tool.event("put", value="c")
    password.write_text("wrong")
    said = tools(cluster.places, conf).ask("put", key="a", value="b")
    assert f"etcd at http://{cluster.places} refuses the user 'root'" in said["error"] and "secret" not in said["error"]
    assert "authentication failed" in said["error"] and said["denied"]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    made.sign("server", "IP:127.0.0.1,DNS:localhost")
    made.sign("elsewhere", "DNS:elsewhere.example,IP:192.0.2.1")
    made.sign("client", "DNS:client")
    return made


def secure(certificates, name, ask_client=False):
    tls = ["--cert-file", certificates[f"{name}.pem"], "--key-file", certificates[f"{name}.key"]]
    ctl = ["--cacert", certificates["ca.pem"], "--insecure-skip-tls-verify"]
    if ask_client:
        tls += ["--client-cert-auth", "--trusted-ca-file", certificates["ca.pem"]]
        ctl += ["--cert", certificates["client.pem"], "--key", certificates["client.key"]]
    return {"tls": tls, "ctl_tls": ctl}


def test_tls(own, tools, certificates):
    cluster = own(**secure(certificates, "server"))
    place = f"https://localhost:{cluster.members[0].client}"
    tool = tools(place, f"ca_cert={certificates['ca.pem']}")
    revision = tool.ask("put", key="a", value="x" * 200_000)["revision"]
    tool.begin("watch", key="a", **{"from": revision})
    assert len(tool.event("put")["value"]) == 200_000
    tool.do("elect")
    tool.event("elected")
    by_address = tools(cluster.places, f"protocol=https,ca_cert={certificates['ca.pem']},read_timeout=2")
    assert len(by_address.do("range", key="a")[0][1]) == 200_000
    by_address.do("v2_set", key="k", value="v")
    said = tools(place, "read_timeout=1").ask("put", key="a", value="b")
    assert f"POST {place}/v3/kv/put: TLS handshake: the certificate of 'localhost' is refused" in said["error"]
    assert said["denied"]
    said = tools(place.replace("https", "http"), "read_timeout=1").ask("put", key="a", value="b")
    assert "error" in said and place.replace("https", "http") in said["error"]


def test_tls_with_another_name(own, tools, certificates):
    cluster = own(**secure(certificates, "elsewhere"))
    for host, words in (("127.0.0.1", "IP address mismatch"), ("localhost", "hostname mismatch")):
        said = tools(f"https://{host}:{cluster.members[0].client}",
                     f"ca_cert={certificates['ca.pem']},read_timeout=1").ask(
            "put", key="a", value="b")
        assert words in said["error"].replace("Hostname", "hostname"), said
        assert "ca_cert" in said["hint"]


def test_tls_with_client_certificate(own, tools, certificates):
    cluster = own(**secure(certificates, "server", ask_client=True))
    place = f"https://localhost:{cluster.members[0].client}"
    ca = f"ca_cert={certificates['ca.pem']},read_timeout=1"
    mine = f"{ca},ssl_cert={certificates['client.pem']},ssl_cert_key={certificates['client.key']}"
    assert "error" not in tools(place, mine).ask("put", key="a", value="b")
    said = tools(place, ca).ask("put", key="a", value="b")
    assert "certificate" in said["error"] and "TLS" in said["error"], said


# ---- election

def elect(tools, endpoints, **options):
    tool = tools(endpoints, options.pop("conf", ""), options.pop("run_id", "job"))
    assert "error" not in tool.ask("elect", **options)
    return tool


def leader_and_followers(candidates):
    def elected():
        gone = {i: t.events for i, t in enumerate(candidates) if any(e["event"] == "lost" for e in t.events)}
        assert not gone, gone
        return [t for t in candidates if any(e["event"] == "elected" for e in t.events)]

    leader = until(elected, 60, "a leader")
    assert len(leader) == 1
    return leader[0], [t for t in candidates if t is not leader[0]]


def test_election(server, tools):
    server.ctl("del", "/lockstep/", "--prefix")
    leader, followers = leader_and_followers([elect(tools, server.places, ttl=60) for _ in range(4)])
    other_job = elect(tools, server.places, run_id="other")
    assert other_job.event("elected")["facts"] is None
    leader.do("publish", addr="10.0.0.1", port=29400)
    for tool in (leader, *followers):
        tool.event("leader", place="10.0.0.1:29400")
    assert server.ctl("get", "/lockstep/rendezvous/job/leader", "--print-value-only") == "10.0.0.1:29400\n"
    assert "does not lead" in followers[0].ask("publish", addr="x", port=1)["error"]
    assert followers[0].ask("store_facts", round=1, restarts=0, closed=False)["error"]
    leader.do("store_facts", round=7, restarts=2, closed=False)
    assert followers[0].do("load_facts") == {"round": 7, "restarts": 2, "closed": False}
    # The leader leaves by itself, so no node waits for its lease.
    started = time.monotonic()
    leader.do("resign")
    second, rest = leader_and_followers(followers)
    assert time.monotonic() - started < 30
    assert second.event("elected")["facts"] == {"round": 7, "restarts": 2, "closed": False}
    second.do("publish", addr="10.0.0.2", port=29400)
    for tool in rest:
        tool.event("leader", place="10.0.0.2:29400")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_leader_lost(server, tools, how):
    server.ctl("del", "/lockstep/", "--prefix")
    leader, followers = leader_and_followers([elect(tools, server.places) for _ in range(3)])
    leader.do("publish", addr="10.0.0.1", port=1)
    leader.do("store_facts", round=1, restarts=1, closed=False)
    for tool in followers:
        tool.event("leader", place="10.0.0.1:1")
        tool.forget_events()
    started = time.monotonic()
    leader.process.send_signal(how)
    second, (third,) = leader_and_followers(followers)
    second.do("publish", addr="10.0.0.2", port=2)
    third.event("leader", place="10.0.0.2:2")
    seconds = time.monotonic() - started
    print(f"re-elected after {seconds:.2f} s")
    assert seconds < 5
    assert third.event("leader", place=None)
    if how == signal.SIGSTOP:  # it wakes up: not leader any more, and can't do harm
        leader.process.send_signal(signal.SIGCONT)
        number = leader.begin("store_facts", round=99, restarts=99, closed=True)
        until(lambda: any(e["event"] in ("lost", "deposed") for e in leader.events), what="it knows")
        assert "error" in leader.end(number)
        assert second.do("load_facts")["round"] == 1


def test_gap_shorter_than_the_lease(own, tools):
    cluster = own()
    # The leader is unsure after 6 s. etcd has 12 s more to return, of which it needs some on a busy machine.
    leader = elect(tools, cluster.places, ttl=18)
    follower = elect(tools, cluster.places, ttl=18)
    leader.event("elected")
    leader.do("publish", addr="10.0.0.1", port=1)
    follower.event("leader", place="10.0.0.1:1")
    cluster.members[0].kill()
    leader.event("unsure")
    cluster.members[0].start()
    leader.event("sure")
    leader.do("store_facts", round=1, restarts=0, closed=False)
    follower.event("sure")
    assert follower.do("load_facts")["round"] == 1
    assert not [e for t in (leader, follower) for e in t.events if e["event"] in ("lost", "deposed")]


def test_gap_longer_than_the_lease(own, tools):
    cluster = own()
    leader, follower = elect(tools, cluster.places), elect(tools, cluster.places)
    leader.event("elected")
    started = time.monotonic()
    cluster.members[0].kill()
    for tool in (leader, follower):
        tool.event("unsure")
        lost = tool.event("lost")
        assert f"127.0.0.1:{cluster.members[0].client}" in lost["error"], lost
    assert "Connection refused" in leader.event("lost")["error"]
    assert 1.5 < time.monotonic() - started < 10
    assert "does not lead" in leader.ask("store_facts", round=1, restarts=0, closed=False, deadline=1)["error"]
    # The first member comes back: new clients can connect.
    cluster.members[0].start()
    again = elect(tools, cluster.places)
    again.event("elected", deadline=15)


# etcd forgets the lease, since its data are gone: no leader may rely on it.
def test_lease_forgotten(own, tools):
    import shutil
    cluster = own()
    leader = elect(tools, cluster.places)
    leader.event("elected")
    member = cluster.members[0]
    member.kill()
    shutil.rmtree(member.folder)
    member.start()
    leader.event("lost")


def test_election_with_a_member_less(own, tools):
    cluster = own(3)
    # On a busy machine the members that are left need seconds to elect their own leader; a lease must outlive that.
    leader, followers = leader_and_followers([elect(tools, cluster.places, ttl=9) for _ in range(3)])
    leader.do("publish", addr="10.0.0.1", port=1)
    cluster.members[0].kill()
    leader.do("store_facts", round=3, restarts=0, closed=False)
    started = time.monotonic()
    leader.kill()
    second, (third,) = leader_and_followers(followers)
    second.do("publish", addr="10.0.0.2", port=2)
    third.event("leader", place="10.0.0.2:2")
    print(f"re-elected after {time.monotonic() - started:.2f} s")
    assert not [e for t in (second, third) for e in t.events if e["event"] == "lost"]
