"""lockstep forward and lockstep ssh: ports and a person's login over the connection that is kept. Everything ends with
the client, and each way to fail is one clear line."""
import contextlib
import functools
import json
import os
import pty
import resource
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import BINARY, until
from hosts import _within
from ssh_hosts import SshWorld


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


@contextlib.contextmanager
def listener(host, handle, address="127.0.0.1"):
    """Accepts connections on a host and gives each to `handle`, which closes it; yields the port."""
    with _within(host.host.holder.pid, "net"):
        server = socket.create_server((address, 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=handle, args=(connection,), daemon=True).start()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)


def echo(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


def dial(client, port):
    with _within(client.host.holder.pid, "net"):
        return socket.create_connection(("127.0.0.1", port), 10)


def exchange(client, port, payload):
    """Sends `payload` and returns the bytes until the other end closes."""
    with dial(client, port) as connection:
        sender = threading.Thread(target=lambda: (connection.sendall(payload), connection.shutdown(socket.SHUT_WR)))
        sender.start()
        answer = b""
        while data := connection.recv(65536):
            answer += data
        sender.join(10)
        return answer


def start(client, where, *ports):
    """Starts `lockstep forward`. Returns the run and the local port of its first forward."""
    run = client.start("forward", where, *ports)
    until(lambda: "127.0.0.1:" in run.out() or run.process.poll() is not None, 30, "it forwards")
    assert run.process.poll() is None, run.err()
    return run, int(run.out().split(":")[1].split()[0])


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def stop(run):
    run.process.terminate()
    run.wait(20)


def test_bytes_go_both_ways_and_end_as_they_should(world):
    client, server = world()
    with listener(server, echo) as port:
        run, local = start(client, f"me@{server.addr}", f"0:{port}")
        assert f"127.0.0.1:{local} is localhost:{port} of me@{server.addr}" in run.out()
        payload = os.urandom(3_000_000)
        assert exchange(client, local, payload) == payload
        results = []
        threads = [threading.Thread(target=lambda n=n: results.append(exchange(client, local, b"%d" % n) == b"%d" % n))
                   for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert results == [True] * 20
        assert server.sshd.err().count("Accepted publickey") == 1
        stop(run)
        with pytest.raises(ConnectionRefusedError):
            dial(client, local)
        run = client.start("forward", "--json", f"me@{server.addr}", f"0:{port}")
        until(lambda: run.out().endswith("\n"), 30, "it forwards")
        told = json.loads(run.out())
        assert told == {"local": told["local"], "host": "localhost", "port": port, "node": f"me@{server.addr}"}
        assert exchange(client, told["local"], b"x") == b"x"
        stop(run)
    server.nothing_left()


def test_another_host_behind_the_host_and_several_ports(world):
    client, gate, inner = world(2)
    with listener(inner, echo, inner.addr) as far, listener(gate, echo) as near:
        run, local = start(client, f"me@{gate.addr}", f"0:{inner.addr}:{far}", f"0:{near}")
        other = int(run.out().splitlines()[1].split(":")[1].split()[0])
        assert exchange(client, local, b"far") == b"far" and exchange(client, other, b"near") == b"near"
        stop(run)


def test_without_free_descriptors_connections_wait_and_nothing_spins(world):
    client, server = world()
    with listener(server, echo) as port:
        run, local = start(client, f"me@{server.addr}", f"0:{port}")
        pid = run.process.pid
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        assert limit[0] == min(limit[1], 1 << 20), limit
        assert exchange(client, local, b"one") == b"one"
        time.sleep(0.5)  # what that connection has opened is closed
        open_files = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
        free = min(set(range(len(open_files) + 1)) - open_files)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, limit[1]))
        results = []
        late = threading.Thread(target=lambda: results.append(exchange(client, local, b"two")))
        late.start()
        until(lambda: "accept a connection" in run.err(), 30, "it is told")
        before, began = cpu_seconds(pid), time.monotonic()
        time.sleep(3)
        assert cpu_seconds(pid) - before < 0.3 * (time.monotonic() - began), "it spins"
        assert not results and run.err().count("accept a connection") == 1, run.err()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
        late.join(30)
        assert results == [b"two"]
        stop(run)


@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_connections_end_with_the_client(world, how):
    client, server = world()
    ended = threading.Event()

    def hold(connection):
        with connection:
            connection.sendall(b"up")
            while connection.recv(100):
                pass
            ended.set()
    with listener(server, hold) as port:
        run, local = start(client, f"me@{server.addr}", f"0:{port}")
        with dial(client, local) as connection:
            assert connection.recv(2) == b"up"
            getattr(run.process, how)()
            run.wait(20)
            assert ended.wait(20), "the connection on the host outlives the client"
            assert connection.recv(1) == b""


def test_a_far_port_where_nobody_listens_is_one_line_and_the_next_one_works(world):
    client, server = world()
    with listener(server, echo) as port:
        pass
    run, local = start(client, f"me@{server.addr}", f"0:{port}")
    with dial(client, local) as connection:
        assert connection.recv(1) == b""
    until(lambda: "error" in run.err(), 60, "it is told")
    (line,) = run.err().splitlines()
    assert f"me@{server.addr}: nothing listens at localhost:{port} there" in line
    stop(run)
    server.nothing_left()


def test_a_server_that_forwards_nothing_is_named(world):
    client, server = world()
    server.stop_sshd()
    server.start_sshd("AllowTcpForwarding no")
    assert client.exec(f"me@{server.addr}", "true").rc == 0
    with listener(server, echo) as port:
        run, local = start(client, f"me@{server.addr}", f"0:{port}")
        with dial(client, local) as connection:
            assert connection.recv(1) == b""
        until(lambda: "error" in run.err(), 60, "it is told")
        (line,) = run.err().splitlines()
        assert f"refuses to forward connections to localhost:{port}" in line and "AllowTcpForwarding" in line
        stop(run)


def test_a_master_that_died_is_made_anew(world):
    client, server = world()
    with listener(server, echo) as port:
        run, local = start(client, f"me@{server.addr}", f"0:{port}")
        assert exchange(client, local, b"one") == b"one"
        for pid, comm in client.host.processes().items():
            if comm == "ssh":
                os.kill(pid, 9)
        assert exchange(client, local, b"two") == b"two"
        assert run.err() == ""
        stop(run)


def test_what_can_not_be_forwarded_is_one_line(world):
    client, server = world()
    where = f"me@{server.addr}"
    with listener(client, echo) as port:
        ended = client.run("forward", where, f"{port}:80")
        assert ended.rc == 1 and f"port {port} of this machine is in use" in ended.err, ended
    for args, code, words in ((("forward",), 2, "no host"), (("forward", where), 2, "no port"),
                              (("forward", where, "x"), 2, "'x'"), (("forward", "local", "80"), 2, "this machine"),
                              (("forward", "me@no-such-host", "0:80"), 255, "does not resolve"),
                              (("forward", where, "0:80", "--node", "1"), 2, "--nodes 1"),
                              (("ssh",), 2, "no host"), (("ssh", where, "ls"), 2, "one word too many"),
                              (("ssh", "me@no-such-host"), 255, "does not resolve")):
        ended = client.run(*args)
        (line,) = [line for line in ended.err.splitlines() if "error:" in line]
        assert ended.rc == code and words in line, ended


def test_a_login_takes_the_kept_connection_and_ssh_s_own_words(world):
    client, server, other = world(2)
    assert client.run("cluster", "add", "gpus", "--host", f"me@{server.addr}", "--host", f"me@{other.addr}").rc == 0
    ended = client.run("ssh", "gpus", "--node", "1", "--", "hostname; echo $0; exit 7")
    assert (ended.rc, ended.out.splitlines()[0]) == (7, other.name), ended
    assert client.exec("gpus", "true", options=("--nodes", "1")).rc == 0
    assert client.run("ssh", "gpus", "--node", "1", "--", "-T", "true").rc == 0
    assert other.sshd.err().count("Accepted publickey") == 1 and "Accepted" not in server.sshd.err()


def test_a_login_has_a_terminal(world):
    client, server = world()
    leader, follower = pty.openpty()
    run = client.start("ssh", f"me@{server.addr}", stdin=follower)
    os.close(follower)
    os.write(leader, b"test -t 0 && echo a terminal of $(hostname); exit 5\n")
    until(lambda: f"a terminal of {server.name}" in run.out(), 30, "the login shell answers")
    assert run.wait(20).rc == 5
    os.close(leader)
    server.nothing_left()


def test_a_host_that_does_not_answer_is_named_while_it_is_waited_for(world):
    client, server = world()
    server.sshd.signal(signal.SIGSTOP)  # connections are taken, and nobody greets
    forward = client.start("forward", f"me@{server.addr}", "0:8888")
    until(lambda: f"waiting for me@{server.addr} for 5 s: logging in" in forward.err(), 20, "it says what it waits for")
    server.sshd.signal(signal.SIGCONT)
    until(lambda: ":8888 of " in forward.out(), 20, "the port is there")
    forward.process.terminate()
    forward.wait(20)


def test_a_copy_that_cannot_begin_is_no_success():
    """host-dial, which carries each connection of a page from a node of Slurm, with ever more descriptors."""
    def serve(server):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b"bytes")
    codes = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        for most in range(4, 24):
            limit = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (most, most))
            command = [BINARY, "host-dial", "127.0.0.1", str(server.getsockname()[1]), "carry"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  preexec_fn=limit) as run:
                said = run.stdout.read(), run.stderr.read()
                codes.append(run.wait(20))
            assert (codes[-1] == 0) == (said[0] == b"bytes"), (most, codes, said)
        server.shutdown(socket.SHUT_RDWR)
    assert codes[0] != 0 and codes[-1] == 0, codes
