"""Jobs over etcd3: `lockstep run` on several nodes and real etcd servers, which are killed, stopped, secured and
overloaded. The parts of the backend alone are tested in test_etcd3.py."""
import signal
import time

import pytest

from etcd_server import server  # noqa: F401
from harness import free_port, until
from nodes import SHOW, Job, conf, ends, kill_agent, ranks, says, shown, starts
from test_etcd3 import certificates, own, secure  # noqa: F401


class EtcdJob(Job):
    """Agents that meet in a cluster."""

    def __init__(self, lockstep, cluster, endpoint=None):
        super().__init__(lockstep, "etcd3")
        self.cluster = cluster
        self.endpoint = endpoint or cluster.places

    def leader(self):
        """The number of the node that leads."""
        def look():
            return self.cluster.ctl("get", f"/lockstep/rendezvous/{self.id}/leader", "--print-value-only").strip()
        place = until(look, what="a leader")
        return int(place.rpartition(":")[0].rpartition(".")[2]) - 2


@pytest.fixture
def go(lockstep):
    return lockstep.folder / "go"


@pytest.fixture
def meeting(lockstep, server):  # noqa: F811
    return EtcdJob(lockstep, server)


def held(job, count, *args, wait, **options):
    runs = [job.node(number, *args, actions=(SHOW, f"wait={wait}"), **options) for number in range(count)]
    for run in runs:
        starts(run, 1)
    return runs


# --- the job itself ---


def test_a_job_with_a_restart(meeting):
    facts = meeting.lockstep.facts
    actions = (SHOW, f"touch={facts}", "%0", "@0", "pause", "@1", f"wait={facts}/0", "exit=5")
    runs = [meeting.node(number, "--max-restarts", 1, "--rank-order", "address", actions=actions) for number in (0, 1)]
    ends(*runs)
    assert [ranks(run) for run in runs] == [[0, 0], [1, 1]]
    for run in runs:
        assert [worker["TORCHELASTIC_RESTART_COUNT"] for worker in shown(run)] == ["0", "1"]


def test_the_leader_is_killed(meeting, go):
    runs = held(meeting, 3, nnodes="2:3", settings="last_call_timeout=1", wait=go)
    before = {number: ranks(run)[0] for number, run in enumerate(runs)}
    leader = meeting.leader()
    since = time.monotonic()
    runs[leader].signal(signal.SIGKILL, runs[leader].agent())
    rest = {number: run for number, run in enumerate(runs) if number != leader}
    for run in rest.values():
        again = starts(run, 2)[1]
        assert (again["WORLD_SIZE"], again["TORCHELASTIC_RESTART_COUNT"]) == ("2", "0")
    seconds = time.monotonic() - since
    print(f"re-formed {seconds:.2f} s after the leader was killed")
    assert seconds < 5
    assert meeting.leader() != leader
    runs[leader].wait()
    go.touch()
    ends(*rest.values())
    first, second = sorted(rest, key=before.get)
    assert (ranks(rest[first])[1], ranks(rest[second])[1]) == (0, 1), "who stays keeps the order"


def test_a_leader_that_is_told_to_stop_leaves_the_others(meeting, go):
    runs = held(meeting, 3, nnodes="2:3", settings="last_call_timeout=1", wait=go)
    leader = meeting.leader()
    runs[leader].signal(signal.SIGTERM)
    ends(runs.pop(leader), rc=1)
    for run in runs:
        assert starts(run, 2)[1]["TORCHELASTIC_RESTART_COUNT"] == "0"
    go.touch()
    ends(*runs)


# Not only when its workers have ended, which ignore the signal.
@pytest.mark.parametrize("leads", [True, False])
def test_a_node_that_is_told_to_stop_tells_at_once(meeting, go, leads):
    runs = [meeting.node(number, "--shutdown-timeout", 60, nnodes="2:3", settings="last_call_timeout=1",
                         actions=("ignore=INT", SHOW, f"wait={go}")) for number in range(3)]
    for run in runs:
        starts(run, 1)
    told = runs.pop(meeting.leader() if leads else (meeting.leader() + 1) % 3)
    told.signal(signal.SIGINT)
    for run in runs:
        assert starts(run, 2, 8)[1]["WORLD_SIZE"] == "2"
    assert told.living()
    told.signal_again(signal.SIGINT)
    ends(told, rc=1)
    go.touch()
    ends(*runs)


def test_too_few_are_left(meeting, go):
    runs = held(meeting, 2, settings="join_timeout=4", wait=go)
    leader = meeting.leader()
    kill_agent(runs.pop(leader))
    (ended,) = ends(*runs, rc=1, timeout=12)
    assert "of 2 nodes" in ended.err or "left of at least 2" in ended.err, str(ended)


@pytest.mark.parametrize("action, rc, why", [("exit=0", 0, "the job is done"), ("exit=3", 1, "the job has failed")])
def test_a_run_id_is_spent(meeting, action, rc, why):
    ends(*[meeting.node(number, actions=(SHOW, "@0", action, "@1", "exit=0" if rc == 0 else "pause"))
           for number in (0, 1)], rc=rc)
    ended = meeting.node(0).wait(10)
    assert ended.rc == 1 and f"the rendezvous '{meeting.id}' is closed: {why}" in ended.err, str(ended)
    assert "--rdzv-id" in ended.err, str(ended)
    assert len(ended.error_lines) == 1 and ended.seconds < 9


# --- etcd away ---


def test_etcd_is_down_at_the_start(lockstep):
    port = free_port()
    ended = lockstep.start_worker("--nnodes", 2, "--rdzv-backend", "etcd3", "--rdzv-endpoint", f"127.0.0.1:{port}",
                                  *conf("read_timeout=1"), actions=(SHOW,)).wait(10)
    assert ended.rc == 1 and len(ended.error_lines) == 1 and f"127.0.0.1:{port}" in ended.err, str(ended)
    assert "etcd" in ended.err and "Connection refused, gave up after 1.0 s" in ended.err and ended.seconds < 9


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_gap_shorter_than_the_lease(lockstep, own, go, how):  # noqa: F811
    job = EtcdJob(lockstep, own())
    member = job.cluster.members[0]
    runs = held(job, 2, settings="lease_ttl=6", wait=go)
    if how == "killed":
        member.kill()
        member.start()
        member.ready()
    else:
        member.signal(signal.SIGSTOP)
        for run in runs:
            says(run, "etcd does not answer; the job goes on until the lease runs out")
        member.signal(signal.SIGCONT)
        for run in runs:
            says(run, "etcd answers again")
    go.touch()
    ends(*runs)
    assert [len(shown(run)) for run in runs] == [1, 1]


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_gap_longer_than_the_lease(lockstep, own, go, how):  # noqa: F811
    job = EtcdJob(lockstep, own())
    runs = held(job, 2, settings="lease_ttl=2", wait=go)
    since = time.monotonic()
    job.cluster.members[0].kill() if how == "killed" else job.cluster.members[0].signal(signal.SIGSTOP)
    for end in ends(*runs, rc=1):
        assert "etcd was out of reach for longer than the lease" in end.err and job.endpoint in end.err, str(end)
    assert time.monotonic() - since < 15


# The workers have succeeded, and only that counts.
def test_etcd_stops_just_before_the_end(lockstep, own, go):  # noqa: F811
    job = EtcdJob(lockstep, own())
    runs = held(job, 2, settings="lease_ttl=2,read_timeout=3", wait=go)
    job.cluster.members[0].signal(signal.SIGSTOP)
    go.touch()
    ended = ends(*runs)
    assert max(end.seconds for end in ended) < 12


def test_one_member_of_three_is_lost(lockstep, own, go):  # noqa: F811
    job = EtcdJob(lockstep, own(3))
    fail = job.lockstep.folder / "fail"
    runs = [job.node(number, "--max-restarts", 1,
                     actions=(SHOW, "%0", f"wait={fail}", "@0", "exit=1", "@1", "pause", "@*", "%1",
            f"wait={go}")) for number in (0, 1)]
    for run in runs:
        starts(run, 1)
    job.cluster.members[0].kill()  # the one that the agents talk to
    fail.touch()
    for run in runs:
        assert starts(run, 2)[1]["TORCHELASTIC_RESTART_COUNT"] == "1"
    go.touch()
    ends(*runs)


# --- who may ---


def test_over_tls(lockstep, own, certificates):  # noqa: F811
    cluster = own(**secure(certificates, "server", ask_client=True))
    job = EtcdJob(lockstep, cluster, f"localhost:{cluster.members[0].client}")
    ca = f"protocol=https,ca_cert={certificates['ca.pem']}"
    mine = f"{ca},ssl_cert={certificates['client.pem']},ssl_cert_key={certificates['client.key']}"
    ends(*[job.node(number, settings=mine) for number in (0, 1)])
    as_url = EtcdJob(lockstep, cluster, f"https://{job.endpoint}")
    ends(*[as_url.node(number, settings=mine.replace("protocol=https,", "")) for number in (0, 1)])
    stranger = EtcdJob(lockstep, cluster, job.endpoint)
    for settings, words in ((f"{ca},read_timeout=1", "certificate"),
                            ("protocol=https,read_timeout=1", "the certificate of 'localhost' is refused")):
        ended = stranger.node(0, settings=settings).wait(10)
        assert ended.rc == 1 and len(ended.error_lines) == 1, str(ended)
        assert words in ended.err and job.endpoint in ended.err, str(ended)


def test_user_and_password(lockstep, own):  # noqa: F811
    job = EtcdJob(lockstep, own())
    job.cluster.ctl("user", "add", "root:secret-of-root")
    job.cluster.ctl("user", "grant-role", "root", "root")
    job.cluster.ctl("auth", "enable")
    password = lockstep.folder / "password"
    password.write_text("secret-of-root\n")
    password.chmod(0o644)
    ended = job.node(0, settings=f"user=root,password_file={password}").wait(10)
    assert ended.rc == 1, str(ended)
    assert f"password_file: other users may use {password} (mode 0644)" in ended.err, str(ended)
    password.chmod(0o600)
    settings = f"user=root,password_file={password},read_timeout=2"
    for end in ends(*[job.node(number, settings=settings, env={"LOGLEVEL": "DEBUG"}) for number in (0, 1)]):
        assert "secret-of-root" not in end.err
    other = EtcdJob(lockstep, job.cluster)
    password.write_text("wrong")
    ended = other.node(0, settings=settings).wait(10)
    assert ended.rc == 1 and "refuses the user 'root'" in ended.err and "authentication failed" in ended.err, str(ended)
    ended = other.node(0, settings="read_timeout=1").wait(10)
    assert ended.rc == 1 and "user name is empty" in ended.err, str(ended)
