"""Requests to clouds over real networks: real TLS with every kind of certificate, proxies that pass on, refuse, want a
password or break, compressed answers, and connections that end at the wrong moment. Server and proxy use Python's ssl
and sockets; the client is that of our provider code."""
import base64
import gzip
import json
import os
import socket
import ssl
import subprocess
import threading
import time

import pytest

from certificates import Certificates
from harness import BUILD, free_port, until
from relay import pass_both

NAME = "ec2.us-east-1.cloud.example"  # of no real server
CLEAN = {name: value for name, value in os.environ.items()
         if "proxy" not in name.lower() and not name.startswith(("SSL_CERT", "LOCKSTEP_"))}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Certificates(tmp_path_factory.mktemp("authority"))
    made.sign("cloud", f"DNS:{NAME},DNS:*.wild.example,IP:127.0.0.1")
    made.sign("other", "DNS:other.example")
    return made


@pytest.fixture(scope="module")
def another_authority(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("another"), "another authority")


class Tool:
    """The client. Only the environment configures it."""

    def __init__(self, **env):
        self.process = subprocess.Popen([BUILD / "tests/web_tool"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**CLEAN, **env})

    def ask_all(self, questions):
        self.process.stdin.write(json.dumps(questions) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, base, **question):
        return self.ask_all([{"base": base, **question}])[0]

    def close(self):
        """What it has logged."""
        self.process.stdin.close()
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert self.process.wait(timeout=30) == 0, said
        return said


@pytest.fixture
def tool():
    made = []

    def make(**env):
        made.append(Tool(**env))
        return made[-1]

    yield make
    for each in made:
        if not each.process.stdin.closed:
            each.close()


class Listener:
    """Accepts connections, each on its own thread. Subclasses handle a connection."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.accepted = 0
        self.open = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer = self.socket.accept()[0]
            except OSError:
                return
            self.accepted += 1
            self.open.append(peer)
            threading.Thread(target=self.serve_quietly, args=(peer,), daemon=True).start()

    def serve_quietly(self, peer):
        try:
            self.serve(peer)
        except (OSError, ValueError):
            pass  # the client has gone, which is what some tests are about
        finally:
            peer.close()

    def close(self):
        self.socket.close()
        for peer in self.open:
            peer.close()


def read_head(peer):
    """Returns the head of a request, and the bytes after the head."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = peer.recv(65536)
        if not piece:
            raise ValueError("the client has gone")
        got += piece
    head, _, rest = got.partition(b"\r\n\r\n")
    return head.decode(), rest


class Cloud(Listener):
    """An https server that answers every question with `answer(head)`: bytes, or None to hang up."""

    def __init__(self, authority, name="cloud", answer=None, **limits):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(authority[f"{name}.pem"], authority[f"{name}.key"])
        for limit, value in limits.items():
            setattr(self.context, limit, value)
        self.answer = answer or (lambda head: plain(b"yes"))
        self.heads = []
        super().__init__()

    @property
    def base(self):
        return f"https://127.0.0.1:{self.port}"

    def serve(self, peer):
        with self.context.wrap_socket(peer, server_side=True) as tls:
            self.open.append(tls)
            while True:
                head, rest = read_head(tls)
                length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("Content-Length:")), 0)
                while len(rest) < length:
                    rest += tls.recv(65536)
                self.heads.append(head)
                answer = self.answer(head)
                if answer is None:
                    return
                tls.sendall(answer)


def plain(body, *fields, status="200 OK"):
    head = "".join(f"{field}\r\n" for field in (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields))
    return head.encode() + b"\r\n" + body


class Proxy(Listener):
    """Passes every CONNECT to the same port, whatever its target, if the password is right."""

    def __init__(self, port, password=None, say=None):
        self.to, self.password, self.say = port, password, say
        self.heads = []
        super().__init__()

    def serve(self, peer):
        head, rest = read_head(peer)
        self.heads.append(head)
        if self.say is not None:
            return peer.sendall(self.say)
        wanted = self.password and "Basic " + base64.b64encode(self.password.encode()).decode()
        if wanted and f"Proxy-Authorization: {wanted}" not in head.split("\r\n"):
            return peer.sendall(plain(b"who?", "Proxy-Authenticate: Basic", status="407 Proxy Authentication Required"))
        with socket.create_connection(("127.0.0.1", self.to)) as server:
            if head.startswith("CONNECT "):
                peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                server.sendall(head.encode() + b"\r\n\r\n" + rest)
            pass_both(peer, server)


@pytest.fixture
def made():
    """Servers and proxies that end with the test."""
    all_of_them = []

    def keep(listener):
        all_of_them.append(listener)
        return listener

    yield keep
    for listener in all_of_them:
        listener.close()


def trusting(authority, **env):
    return {"LOCKSTEP_CA_FILE": authority["ca.pem"], **env}


# ---- TLS
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls(tool, made, authority, version):
    cloud = made(Cloud(authority, minimum_version=version, maximum_version=version))
    client = tool(**trusting(authority))
    for _ in range(3):
        said = client.ask(cloud.base, method="POST", target="/a?b=c", body="x" * 300_000,
                          fields={"authorization": "k"})
        assert said == {"sent": True, "status": 200, "body": "yes"}
    assert cloud.accepted == 1
    assert cloud.heads[0].split("\r\n")[:3] == ["POST /a?b=c HTTP/1.1", f"Host: 127.0.0.1:{cloud.port}",
                                                "authorization: k"]


def test_who_is_not_trusted(tool, made, authority, another_authority):
    cloud = made(Cloud(authority))
    other = made(Cloud(authority, "other"))
    # Nothing was sent, so that an impostor sees no key.
    for env, base, words in (
            ({}, cloud.base, "unable to get local issuer certificate"),
            (trusting(another_authority), cloud.base, "unable to get local issuer certificate"),
            (trusting(authority), other.base, "IP address mismatch")):
        said = tool(**env).ask(base, shown="DescribeRegions in us-east-1")
        assert said["error"].startswith("DescribeRegions in us-east-1: TLS handshake: the certificate of '127.0.0.1'")
        assert words in said["error"], said
        assert said["denied"] and not said["sent"]
        assert "LOCKSTEP_CA_FILE" in said["hint"] and "clock" in said["hint"]
    assert cloud.heads == [] and other.heads == []


def test_authorities_of_the_environment(tool, made, authority, another_authority, tmp_path):
    cloud = made(Cloud(authority))
    assert tool(SSL_CERT_FILE=authority["ca.pem"]).ask(cloud.base)["body"] == "yes"
    # One more authority besides those of the system, not instead of them.
    both = tool(SSL_CERT_FILE=authority["ca.pem"], LOCKSTEP_CA_FILE=another_authority["ca.pem"])
    assert both.ask(cloud.base)["body"] == "yes"
    said = tool(LOCKSTEP_CA_FILE=str(tmp_path / "none")).ask(cloud.base)
    assert said["error"] == f"read the certificate authority '{tmp_path}/none': No such file or directory"
    (tmp_path / "text").write_text("no certificate")
    said = tool(LOCKSTEP_CA_FILE=str(tmp_path / "text")).ask(cloud.base)
    assert f"the certificate authority '{tmp_path}/text' can't be used" in said["error"]


def test_an_end_without_a_word(tool, made, authority):
    """A request without an answer says that it was sent; without a TLS handshake, that it was not."""
    cloud = made(Cloud(authority, answer=lambda head: None))
    said = tool(**trusting(authority)).ask(cloud.base, method="POST", body="a")
    assert said["sent"] and "the connection ended without TLS's close_notify" in said["error"], said
    half = made(Cloud(authority, answer=lambda head: plain(b"x" * 100)[:-50]))
    half.answer = lambda head: plain(b"x" * 100)[:-50] if len(half.heads) == 1 else None
    said = tool(**trusting(authority)).ask(half.base, method="POST", body="a", timeout_ms=300)
    assert said["sent"] and said["timeout"], said

    class Deaf(Listener):
        def serve(self, peer):
            peer.recv(1)  # and closes in the middle of the handshake

    deaf = made(Deaf())
    said = tool(**trusting(authority)).ask(f"https://127.0.0.1:{deaf.port}", method="POST", body="a")
    assert not said["sent"] and "error" in said, said
    said = tool(**trusting(authority)).ask(f"https://127.0.0.1:{free_port()}", method="POST", body="a")
    assert not said["sent"] and said["error"].endswith("Connection refused"), said


def test_connections_left_alone(tool, made, authority):
    """A server that closes an idle connection must not make a launch look as if the server had received it."""
    cloud = made(Cloud(authority, answer=lambda head: plain(b"yes")))
    client = tool(**trusting(authority))
    for round_ in range(3):
        assert client.ask(cloud.base, method="POST", body="a")["status"] == 200
        until(lambda: len(cloud.heads) == round_ + 1)
        cloud.open[-1].shutdown(socket.SHUT_RDWR)
    assert cloud.accepted == 3


# ---- proxies
def test_https_through_a_proxy(tool, made, authority):
    cloud = made(Cloud(authority))
    proxy = made(Proxy(cloud.port, password="us er:p@ss"))
    client = tool(**trusting(authority, HTTPS_PROXY=f"http://us%20er:p%40ss@127.0.0.1:{proxy.port}"), LOGLEVEL="DEBUG")
    for _ in range(2):
        assert client.ask(f"https://{NAME}", fields={"authorization": "hidden"})["body"] == "yes"
    assert cloud.accepted == proxy.accepted == 1
    assert proxy.heads[0].split("\r\n")[:2] == [f"CONNECT {NAME}:443 HTTP/1.1", f"Host: {NAME}:443"]
    assert "authorization: hidden" not in proxy.heads[0]
    # Signatures are made over the host without its port.
    assert cloud.heads[0].split("\r\n")[1] == f"Host: {NAME}" and "Proxy-" not in cloud.heads[0]
    said = client.close()
    assert f"GET https://{NAME}/: HTTP 200, 3 bytes" in said
    assert "hidden" not in said and "p@ss" not in said and "p%40ss" not in said


def test_the_certificate_is_the_clouds_and_not_the_proxys(tool, made, authority):
    cloud = made(Cloud(authority, "other"))
    proxy = made(Proxy(cloud.port))
    said = tool(**trusting(authority, https_proxy=f"127.0.0.1:{proxy.port}")).ask(f"https://{NAME}")
    assert f"the certificate of '{NAME}' is refused" in said["error"].replace("hostname", "Hostname"), said
    assert not said["sent"] and cloud.heads == []


def test_proxies_that_refuse(tool, made, authority):
    cloud = made(Cloud(authority))
    locked = made(Proxy(cloud.port, password="a:b"))
    gone = free_port()
    bad_gateway = made(Proxy(cloud.port, say=plain(b"<html>no</html>", status="502 Bad Gateway")))
    ssh = made(Proxy(cloud.port, say=b"SSH-2.0-OpenSSH_9.2\r\n"))
    for port, user, words in (
            (locked.port, "", f"refuses to connect to {NAME}:443: HTTP 407"),
            (locked.port, "a:wrong@", f"refuses to connect to {NAME}:443: HTTP 407"),
            (bad_gateway.port, "", f"refuses to connect to {NAME}:443: HTTP 502"),
            (ssh.port, "", f"did not connect to {NAME}:443: not an HTTP answer: 'SSH-2.0-OpenSSH_9.2'"),
            (gone, "", "Connection refused")):
        said = tool(**trusting(authority, HTTPS_PROXY=f"http://{user}127.0.0.1:{port}")).ask(
            f"https://{NAME}", shown="RunInstances in us-east-1")
        named = f"the proxy http://127.0.0.1:{port} (HTTPS_PROXY)"
        assert named in said["error"] and words in said["error"], said
        assert said["error"].startswith("RunInstances in us-east-1: ") and not said["sent"]
        assert "wrong" not in json.dumps(said)
    for value, words in (("socks5://127.0.0.1:1080", "HTTPS_PROXY names a proxy of a kind that isn't supported"),
                         ("http://u:hidden@", "HTTPS_PROXY names no host")):
        said = tool(HTTPS_PROXY=value).ask(f"https://{NAME}")
        assert words in said["error"] and "hidden" not in json.dumps(said)
    assert cloud.heads == []


def test_without_a_proxy(tool, made, authority):
    """NO_PROXY, and this machine itself, whatever the proxy."""
    cloud = made(Cloud(authority))
    proxy = made(Proxy(cloud.port))
    env = trusting(authority, HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}", HTTP_PROXY=f"http://127.0.0.1:{proxy.port}")
    assert tool(**env).ask(cloud.base)["body"] == "yes"
    assert proxy.accepted == 0
    said = tool(**env, NO_PROXY="localhost,.cloud.example").ask(f"https://{NAME}", timeout_ms=5000)
    assert "error" in said and "proxy" not in said["error"], said
    assert proxy.accepted == 0
    assert tool(**env, NO_PROXY="cloud.example:444").ask(f"https://{NAME}")["body"] == "yes"
    assert proxy.accepted == 1


# ---- answers
def test_packed_answers(tool, made, authority):
    text = json.dumps([{"sku": i, "text": "H100 80GB " * 10} for i in range(20_000)]).encode()
    packed = gzip.compress(text)
    assert len(packed) * 5 < len(text)
    bomb = gzip.compress(bytes(200 << 20))
    answers = {"/skus": plain(packed, "Content-Encoding: gzip"), "/bomb": plain(bomb, "Content-Encoding: gzip"),
               "/cut": plain(packed[:-100], "Content-Encoding: gzip")}
    cloud = made(Cloud(authority, answer=lambda head: answers[head.split(" ")[1]]))
    client = tool(**trusting(authority))
    assert client.ask(cloud.base, target="/skus", gzip=True)["body"].encode() == text
    assert "Accept-Encoding: gzip" in cloud.heads[-1]
    client.ask(cloud.base, target="/skus")
    assert "Accept-Encoding" not in cloud.heads[-1]
    for target, words in (("/bomb", "unpacks to more than 16777216 bytes"), ("/cut", "is cut short")):
        said = client.ask(cloud.base, target=target, gzip=True)
        assert words in said["error"], said


def test_redirects_are_not_followed(tool, made, authority):
    elsewhere = made(Cloud(authority))
    cloud = made(Cloud(authority, answer=lambda head: plain(b"", f"Location: {elsewhere.base}",
                                                            status="301 Moved Permanently")))
    said = tool(**trusting(authority)).ask(cloud.base, fields={"authorization": "Bearer k"})
    assert said["status"] == 301 and elsewhere.accepted == 0


# ---- many at once
def test_at_once(tool, made, authority):
    """Forty regions, one of them silent: the whole takes as long as the slowest region."""
    everybody = threading.Barrier(39)

    def answer(head):
        if "/silent" in head:
            time.sleep(1.2)
            return None
        everybody.wait(timeout=30)
        return plain(head.split(" ")[1].encode())

    cloud = made(Cloud(authority, answer=answer))
    client = tool(**trusting(authority))
    questions = [{"base": cloud.base, "target": f"/{i}", "timeout_ms": 40_000} for i in range(39)]
    questions.insert(7, {"base": cloud.base, "target": "/silent", "timeout_ms": 1000})
    replies = client.ask_all(questions)
    assert replies[7]["timeout"] and replies[7]["sent"]
    assert [reply["body"] for reply in replies if "body" in reply] == [f"/{i}" for i in range(39)]
    assert cloud.accepted == 40
