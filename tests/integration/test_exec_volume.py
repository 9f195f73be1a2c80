"""Ten thousand random argument vectors through the login shells of real hosts, byte for byte. They go over a real ssh
channel as frames of the link, many to a channel (docs/protocols/link.md): the shell sees only what starts the channel,
and each vector still becomes the argv of a process of its own."""
import os
import random
import struct

import pytest

from harness import until
from ssh_hosts import SHELLS, SshWorld
from test_exec import random_argument

VECTORS = 2_000  # for each of the five shells
AT_ONCE = 64
GREETING = b"\n\x01lockstep-link\x02"
HELLO, START, REFUSED, EXIT, DATA = 1, 2, 4, 5, 6


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def text(value):
    return struct.pack("<I", len(value)) + value


def texts(values):
    return struct.pack("<I", len(values)) + b"".join(map(text, values))


def frame(kind, content):
    return struct.pack("<IB", len(content) + 1, kind) + content


def start_frame(channel, argv):
    return frame(START, struct.pack("<I", channel) + texts(argv) + texts([]) + text(b"") + b"\0\0\0")


class Replies:
    """The frames that have come; the output file grows while the channel lives."""

    def __init__(self, run):
        self.run, self.at, self.out, self.codes = run, None, {}, {}

    def take(self):
        said = self.run.out_bytes()
        if self.at is None:
            if GREETING not in said:
                return
            self.at = said.index(GREETING) + len(GREETING)
        while len(said) - self.at >= 4:
            size, = struct.unpack_from("<I", said, self.at)
            if len(said) - self.at - 4 < size:
                return
            self.read(said[self.at + 4:self.at + 4 + size])
            self.at += 4 + size

    def read(self, content):
        kind, channel = content[0], content[1:5]
        if kind == DATA:
            assert content[5] == 1, content
            self.out[channel] = self.out.get(channel, b"") + content[10:]
        assert kind != REFUSED, content
        if kind == EXIT:
            self.codes[channel] = struct.unpack_from("<ii", content, 5)


@pytest.mark.parametrize("shell", SHELLS)
def test_ten_thousand_vectors_arrive_byte_for_byte(world, shell):
    client, server = world(users={"me": SHELLS[shell]})
    assert client.exec(f"me@{server.addr}", "true").rc == 0
    (binary,) = (server.homes["me"] / ".cache/lockstep/bin").iterdir()
    reading, writing = os.pipe()
    run = client.start("-T", f"me@{server.addr}", f"exec sh -c 'exec .cache/lockstep/bin/{binary.name} link'",
                       program=("ssh",), stdin=reading)
    os.close(reading)
    os.write(writing, frame(HELLO, struct.pack("<H", 1) + text(b"test") + text(b"") + text(b"")))
    random_ = random.Random(f"volume {shell}")
    replies = Replies(run)
    for first in range(0, VECTORS, AT_ONCE):
        vectors = {struct.pack("<I", number): [
            os.fsencode(random_argument(random_)) for _ in range(random_.randrange(1, 8))]
            for number in range(first, min(first + AT_ONCE, VECTORS))}
        frames = b"".join(start_frame(*struct.unpack("<I", channel), [b"/usr/bin/printf", b"%s\\0", *vector])
                          for channel, vector in vectors.items())
        while frames:
            frames = frames[os.write(writing, frames):]

        def all_ended(vectors=vectors):
            replies.take()
            return all(channel in replies.codes for channel in vectors)
        until(all_ended, 120, "all of them have ended")
        for channel, vector in vectors.items():
            assert replies.codes[channel] == (0, 0)
            assert replies.out[channel] == b"".join(argument + b"\0" for argument in vector)
    assert len(replies.codes) == VECTORS
    os.close(writing)
    assert run.wait(30).rc == 0
    server.nothing_left()
