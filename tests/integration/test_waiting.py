"""Waiting explains itself: mistakes in a rendezvous end in a text that names the cause, within 10 s of the start or of
the given timeout. (Tokens: test_lockstep_backend.py; clocks: test_nodes_torchrun.py; a second network:
test_hosts_faults.py.)"""
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from harness import BUILD, until
from nodes import SHOW, Job, listening
from tcp_store import Client

BACKENDS = ["c10d", "lockstep"]
# The state of a PyTorch 1.13 agent: times without a time zone, no list of spares.
STATE_OF_1_13 = (
    "gASVJgEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOUjBBfUmVuZGV6dm91c1N0"
    "YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiYwIZGVhZGxpbmWUTowGY2xvc2VklImMDHBhcnRpY2lwYW50c5R9lGgAjAlfTm9kZURl"
    "c2OUk5QpgZR9lCiMBGZxZG6UjAhvbGQtbm9kZZSMA3BpZJRNZxKMCGxvY2FsX2lklEsAdWJLAHOMCXdhaXRfbGlzdJSPlIwPbGFzdF9oZWFydGJl"
    "YXRzlH2UaA2MCGRhdGV0aW1llIwIZGF0ZXRpbWWUk5RDCgfqAQIDBAUAAACUhZRSlHN1Yi4=")


def says(run, *texts):
    """Within 10 s of its start."""
    for text in texts:
        try:
            until(lambda: text in run.err(), run.started + 10 - time.monotonic(), f"{text!r} on stderr")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{run.err()[-4000:]}") from None


def refused_with(run, *texts):
    ended = run.wait(10)
    assert ended.rc == 1, str(ended)
    for text in texts:
        assert text in ended.error_lines[-1], str(ended)


def stop(runs):
    """A waiting agent can be stopped."""
    waiting = [run for run in runs if run.process.poll() is None]
    for run in waiting:
        run.signal(signal.SIGTERM)
    for run in waiting:
        assert run.wait().rc == 143
        run.none_left()


@pytest.fixture(autouse=True)
def stopped(lockstep):
    yield
    stop(lockstep.runs)


class Full:
    """A port that answers no connection attempt, as behind a firewall that drops."""

    def __init__(self):
        self.server = socket.socket()
        self.server.bind(("127.0.0.1", 0))
        self.server.listen(0)
        self.place = "127.0.0.1:%d" % self.server.getsockname()[1]
        self.guests = [socket.socket() for _ in range(4)]
        for guest in self.guests:
            guest.setblocking(False)
            guest.connect_ex(self.server.getsockname())

    def close(self):
        for each in (self.server, *self.guests):
            each.close()


# All at once: each of them only waits.
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_cannot_be_reached(lockstep, backend):
    def job():
        return Job(lockstep, backend)
    dropped, nowhere, elsewhere, alone, is_host = Full(), job(), job(), job(), job()
    wrong_port = nowhere.node(1, host=False)
    no_name = job().node(1, "--rdzv-endpoint", "no-such-host.invalid:29400")
    nobody_hosts = elsewhere.node(1, "--rdzv-endpoint", "127.0.0.1:1", host=False)
    firewall = job().node(1, "--rdzv-endpoint", dropped.place, host=False)
    nobody_came = alone.node(0)
    listening(alone.port)
    two_hosts = is_host.node(0, "--rdzv-endpoint", f"192.0.2.1:{is_host.port}", host=True)
    listening(is_host.port)
    static = [Job(lockstep, "static").node(1)] if backend == "c10d" else []
    says(wrong_port, f"127.0.0.1:{nowhere.port}: Connection refused",
         "this node is not the host: is_host says no")
    says(nobody_hosts, "127.0.0.1:1: Connection refused", "this node is not the host")
    says(no_name, "look up the host name 'no-such-host.invalid': ",
         "this node is not the host: the name 'no-such-host.invalid' cannot")
    says(firewall, f"no answer from {dropped.place} (SYN unanswered, e.g. a firewall)", "this node is not the host")
    says(nobody_came, "1 of 2 nodes have joined", f"at port {alone.port}",
         "the endpoint is a loopback address, which other machines")
    says(two_hosts, "1 of 2 nodes have joined",
         "is_host says so, but 192.0.2.1 is not an address of this machine; only one node may have is_host=1")
    for run in static:
        says(run, "Connection refused")
    if backend == "lockstep":
        says(wrong_port,
             f"waiting for 5 s: the rendezvous '{nowhere.id}' at 127.0.0.1:{nowhere.port}: Connection refused; "
             "this node is not the host: is_host says no")
        says(nobody_came, f"waiting for 5 s: the rendezvous '{alone.id}': 1 of 2 nodes have joined (",
             "), 1 missing; this node hosts")
    dropped.close()


@pytest.mark.parametrize("backend", ["c10d", "lockstep", "static"])
def test_the_deadline_and_the_end_of_waiting(lockstep, backend):
    job, alone = Job(lockstep, backend), Job(lockstep, backend)
    setting = "timeout" if backend == "static" else "join_timeout"
    first = job.node(0, settings=f"{setting}=300")
    guest = alone.node(1, settings=f"{setting}=300,read_timeout=200",
                       **({} if backend == "static" else {"host": False}))
    says(first, "1 of 2 nodes have ", "; gives up in 29")
    if backend != "c10d":  # which reaches its store first, and has another limit for that
        says(guest, "; gives up in 29" if backend == "static" else "; gives up in 19")
    assert "are here" not in first.err()
    last = job.node(1, settings=f"{setting}=300")
    for run in (first, last):
        until(lambda run=run: run.process.poll() is not None, 20, "the end of the job")
    assert " s: all 2 nodes are here" in first.err(), first.err()
    assert "are here" not in last.err(), last.err()


def test_slurm_names_the_missing(lockstep):
    job, name = Job(lockstep, "lockstep"), socket.gethostname()
    slurm = {"SLURM_JOB_ID": 123, "SLURM_NNODES": 3, "SLURM_STEP_ID": 0, "SLURM_STEP_NUM_NODES": 3,
             "SLURM_STEP_NUM_TASKS": 3,
             "SLURM_STEP_NODELIST": f"{name},absent[7-8]", "SLURM_PROCID": 0, "SLURM_NODEID": 0}
    run = lockstep.start_worker("--rdzv-endpoint", f"127.0.0.1:{job.port}", actions=(SHOW,), env=slurm)
    says(run, "1 of 3 nodes have joined (", "), 2 missing (absent7, absent8)")


# The smaller of both bounds the way to the host. (torchrun has read_timeout alone for it.)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("settings", ["join_timeout=2", "join_timeout=9,read_timeout=2"])
def test_the_way_to_the_host_has_an_end(lockstep, backend, settings):
    nobody, dropped = Job(lockstep, backend), Full()
    refused = nobody.node(1, host=False, settings=settings)
    unanswered = Job(lockstep, backend).node(1, "--rdzv-endpoint", dropped.place, host=False, settings=settings)
    refused_with(refused, f"127.0.0.1:{nobody.port}: Connection refused, gave up after 2.",
                 "is_host says no")
    refused_with(unanswered, f"no answer from {dropped.place} (SYN unanswered, e.g. a firewall)", "gave up after 2.")
    dropped.close()


class SlowNames:
    """A slow DNS server: every name is 127.0.0.1."""

    def __init__(self, host):
        with host.network():
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                query, peer = self.socket.recvfrom(512)
            except OSError:
                return
            threading.Timer(0.7, self.answer, (query, peer)).start()

    def answer(self, query, peer):
        end = query.index(b"\0", 12) + 5  # header, name, type, class
        is_a = query[end - 4:end - 2] == b"\0\1"
        record = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1" if is_a else b""
        head = query[:2] + b"\x81\x80\0\1" + struct.pack(">HHH", is_a, 0, 0)
        with contextlib.suppress(OSError):
            self.socket.sendto(head + query[12:end] + record, peer)

    def close(self):
        self.socket.close()


# The last look-up has no time to end: that is not why nobody was reached.
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_last_look_up_hides_nothing(hosts, backend):
    (host,) = hosts(1)
    hosts.resolv_file.write_text("nameserver 127.0.0.1\n")
    names = SlowNames(host)
    run = host.start_worker("--nnodes", 2, "--rdzv-backend", backend, "--rdzv-endpoint", "slow.test:1",
                            "--rdzv-id", "job", "--rdzv-conf", "is_host=0,read_timeout=2", actions=(SHOW,))
    refused_with(run, "slow.test:1: Connection refused", "gave up after")
    names.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_hosts_on_one_machine(lockstep, backend):
    job = Job(lockstep, backend)
    first = job.node(0, host=True)
    listening(job.port)
    refused_with(job.node(1, host=True), f"127.0.0.1:{job.port}: Address already in use",
                 f"held by pid {first.agent()}")


# Each is host to itself: that is what both of them say.
@pytest.mark.parametrize("backend", BACKENDS)
def test_two_machines_that_both_host(hosts, backend):
    runs = [host.start_worker("--nnodes", 2, "--rdzv-backend", backend, "--rdzv-endpoint", "node0:29400",
                              "--rdzv-id", "job", "--rdzv-conf", "is_host=1", actions=(SHOW,)) for host in hosts(2)]
    if backend == "c10d":
        says(runs[1],
             f"but node0 is {hosts.all[0].addr}, not an address of this machine; only one node may have is_host=1")
        assert "only one node" not in runs[0].err()
    for run in runs:
        hosts_it = "hosted by this node" if backend == "c10d" else "this node hosts"
        says(run, "1 of 2 nodes have joined", hosts_it, "at port 29400", "is_host says so")
    if backend == "lockstep":
        says(runs[1],
             "is_host says so, but node0 (10.77.0.10) is not an address of this machine; "
             "only one node may have is_host=1")
        assert "only one node" not in runs[0].err()
    stop(runs)


@pytest.mark.parametrize("backend", BACKENDS)
def test_another_run_id(lockstep, backend):
    job = Job(lockstep, backend)
    host = job.node(0)
    listening(job.port)
    right, job.id = job.id, "another"
    guest = job.node(1)
    if backend == "c10d":
        says(host, "): 127.0.0.2 (this node); 127.0.0.3 asks here for the --rdzv-id 'another'")
        says(guest, "1 of 2 nodes have joined 'another' at the store at 127.0.0.1:")
    else:
        says(host, "turned 127.0.0.1:", f"looks for the rendezvous 'another', but this is '{right}'")
        refused_with(guest, "looks for the rendezvous 'another', but this is another one", "--rdzv-id")


# Of localhost's two addresses only one is served: the other one's refusal is not what is told.
def test_another_run_id_at_a_name_of_two_addresses(lockstep):
    job = Job(lockstep, "lockstep")
    job.endpoint = f"localhost:{job.port}"
    job.node(0)
    listening(job.port)
    job.id = "another"
    ended = job.node(1).wait(15)
    assert ended.rc == 1 and "waiting for 5 s: the rendezvous 'another' at localhost:" in ended.err, str(ended)
    assert "looks for the rendezvous 'another', but this is another one" in ended.err.splitlines()[0], str(ended)
    assert "Connection refused" not in ended.err, str(ended)


# It listens on itself, so it would wait there for nodes that come to another.
def test_node_rank_is_forgotten(lockstep, hosts):
    job = ("--nnodes", 2, "--master-addr", "node0", "--master-port", 29400)
    master, other = (host.start_worker(*job, actions=(SHOW,)) for host in hosts(2))
    elsewhere = (f"--node-rank is 0 (not given), but node0 is {hosts.all[0].addr}, not an address of this machine: "
                 "give --node-rank")
    says(other, f"lockstep] {elsewhere}", f"1 of 2 nodes have come to port 29400 of this machine; {elsewhere}")
    says(master, "1 of 2 nodes have come to node0:29400")
    assert "--node-rank is" not in master.err()
    stop([master, other])


def test_different_nnodes_over_static(lockstep):
    job = Job(lockstep, "static")
    host = job.node(0, nnodes="2")
    listening(job.port)
    refused_with(job.node(1, nnodes="3"), "was started with --nnodes 3", f"127.0.0.1:{job.port} with --nnodes 2",
                 "on all nodes")
    says(host, "was started with --nnodes 3, this node with --nnodes 2: it was turned away", "1 of 2 nodes have come")


# Over lockstep: test_lockstep_backend.py.
def test_different_nnodes_over_c10d(lockstep):
    job = Job(lockstep)
    smaller = job.node(0, nnodes="2")
    listening(job.port)
    larger = job.node(1, nnodes="3")
    says(smaller, "2 of 2 nodes have joined", "another node must have a larger --nnodes")
    says(larger, "2 of 3 nodes have joined")


# --- other versions ---


def test_a_state_of_1_13(lockstep):
    job = Job(lockstep)
    store = lockstep.start("--port", job.port, program=(BUILD / "lockstep", "store"))
    listening(job.port)
    client = Client(("127.0.0.1", job.port))
    client.set(f"/torch.rendezvous.{job.id}", STATE_OF_1_13)
    refused_with(job.node(1, host=False), "1.13")
    assert client.get(f"/torch.rendezvous.{job.id}").decode() == STATE_OF_1_13, "what others wrote stays"
    client.socket.close()
    store.signal(signal.SIGTERM)
    store.wait()


@pytest.mark.parametrize("text", ["c29tZXRoaW5nIGVsc2U=", "not base64", "gASVAwAAAAAAAABOLg=="])
def test_a_state_that_is_none(lockstep, text):
    job = Job(lockstep)
    store = lockstep.start("--port", job.port, program=(BUILD / "lockstep", "store"))
    listening(job.port)
    client = Client(("127.0.0.1", job.port))
    client.set(f"/torch.rendezvous.{job.id}", text)
    refused_with(job.node(1, host=False), "state", "corrupt")
    assert client.get(f"/torch.rendezvous.{job.id}").decode() == text
    client.socket.close()
    store.signal(signal.SIGTERM)
    store.wait()


PREAMBLE = b"LOCKSTEP HUB\r\n\r\n"


def frame(kind, fields=b""):
    return struct.pack("<IB", len(fields) + 1, kind) + fields


def line(text):
    return struct.pack("<I", len(text)) + text.encode()


def test_a_guest_of_another_version(lockstep):
    job = Job(lockstep, "lockstep")
    host = job.node(0)
    listening(job.port)
    with socket.create_connection(("127.0.0.1", job.port), 5) as peer:
        peer.sendall(PREAMBLE + frame(1, struct.pack("<H", 7) + b"what comes then is another matter"))
        answer = b""
        while piece := peer.recv(65536):
            answer += piece
    assert b"version 7 of the lockstep rendezvous protocol meets version 4 of the host" in answer
    assert b"install the same lockstep on all nodes" in answer
    says(host, "version 7 of the lockstep rendezvous protocol meets version 4 of the host")


def test_a_host_of_another_version(lockstep):
    job = Job(lockstep, "lockstep")
    with socket.create_server(("127.0.0.1", job.port)) as server:
        run = job.node(1, host=False)
        peer, _ = server.accept()
        peer.sendall(PREAMBLE
                     + frame(5, b"\0" + line("version 1 meets version 7 of the host") + line("install the same")))
        refused_with(run, f"127.0.0.1:{job.port}", "version 1 meets version 7 of the host", "install the same")
        peer.close()


@pytest.mark.parametrize("answer, words", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a web server answers there"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "an SSH server answers there")])
def test_another_program_at_the_endpoint(lockstep, answer, words):
    job = Job(lockstep, "lockstep")
    with socket.create_server(("127.0.0.1", job.port)) as server:
        run = job.node(1, host=False)
        peer, _ = server.accept()
        peer.sendall(answer)
        refused_with(run, words, "--rdzv-endpoint")
        peer.close()


# The endpoint is this node's, and so it would host; who keeps it from that is named.
def test_another_program_holds_the_port(lockstep):
    job, silent = Job(lockstep, "lockstep"), Job(lockstep, "lockstep")
    web = subprocess.Popen([sys.executable, "-m", "http.server", str(job.port), "--bind", "127.0.0.1"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with socket.create_server(("127.0.0.1", silent.port)):
        quiet = silent.node(0)
        listening(job.port)
        refused_with(job.node(0), "a web server answers there",
                     f"but port {job.port} is taken (held by pid {web.pid}: ", "http.server")
        says(quiet, f"waiting for 5 s: the rendezvous '{silent.id}' at 127.0.0.1:{silent.port}: connected, "
             "but no answer to the greeting",
             f"this node is not the host: the endpoint is a loopback address, but port {silent.port} is taken "
             f"(held by pid {os.getpid()}: ")
    web.kill()
    web.wait()


@pytest.mark.parametrize("backend", ["etcd3", "etcd-v2", "etcd"])
def test_an_etcd_that_cannot_be_reached(lockstep, backend):
    nobody = Job(lockstep, backend).node(0, "--rdzv-endpoint", "127.0.0.1:1")
    nameless = Job(lockstep, backend).node(0, "--rdzv-endpoint", "no-such-host.invalid:2379")
    says(nobody, "waiting for 5 s: etcd at http://127.0.0.1:1 (connect to 127.0.0.1:1: Connection refused)")
    says(nameless, "waiting for 5 s: etcd at http://no-such-host.invalid:2379 (",
         "(look up the host name 'no-such-host.invalid': ")


def test_a_signal_before_there_are_workers(lockstep):
    job = Job(lockstep, "lockstep")
    run = job.node(0)
    listening(job.port)
    run.signal(signal.SIGTERM)
    ended = run.wait()
    assert ended.rc == 143 and "received SIGTERM, leaving" in ended.err, str(ended)


# One side has --rdzv-backend c10d, the other none.
@pytest.mark.parametrize("host, guest, words", [("c10d", "lockstep", "a c10d store (TCPStore) answers there"),
                                                ("lockstep", "c10d", "a lockstep rendezvous hosts there")])
def test_another_backend(lockstep, host, guest, words):
    first = Job(lockstep, host)
    run = first.node(0)
    listening(first.port)
    second = Job(lockstep, guest)
    second.id, second.endpoint = first.id, first.endpoint
    other = second.node(1, host=False, settings="read_timeout=3")
    if guest == "lockstep":
        refused_with(other, words, "--rdzv-backend c10d")
    else:
        says(run, "a c10d client (torchrun, or --rdzv-backend c10d) at 127.0.0.1", "speaks c10d to port",
             "--rdzv-backend c10d")
        refused_with(other, words, "give --rdzv-backend lockstep here or c10d there")


# --- another program holds the port, here ---


def test_a_web_server_at_the_port_of_c10d(lockstep):
    job = Job(lockstep)
    web = subprocess.Popen([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(job.port)],
                           cwd=lockstep.work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    listening(job.port)
    refused_with(job.node(0), f"127.0.0.1:{job.port} is not a TCPStore: a web server answers there",
                 f"but port {job.port} is held by pid {web.pid}: ", "http.server")
    web.kill()
    web.wait()


def test_a_silent_program_at_the_port_of_c10d(lockstep):
    job = Job(lockstep)
    with socket.create_server(("127.0.0.1", job.port)):
        run = job.node(0)
        says(run, "no answer to the greeting: is it a TCPStore?", f"but port {job.port} is held by pid {os.getpid()}: ")
        stop([run])
