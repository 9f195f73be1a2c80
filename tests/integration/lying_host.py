"""A host that was taken over. A program replaces the binary that the client has pushed: it speaks the link's protocol
(docs/protocols/link.md) and lies.

A lie is Python code that runs for every link. It uses `link`, and its end is the end of the link.
"""
import os
import textwrap

LINK = r'''#!/usr/bin/python3
import os, struct, sys, time

OUT, ERR, RESULT = 1, 2, 3
WINDOW = 2 << 20


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<I", len(value)) + value


class Link:
    def write(self, data):
        while data:
            data = data[os.write(1, data):]

    def frame(self, kind, fields):
        self.write(struct.pack("<IB", len(fields) + 1, kind) + fields)

    def hello(self, host="liar"):
        self.write(b"\n\x01lockstep-link\x02")
        self.frame(1, struct.pack("<H", 1) + text("0.1.0") + text(host) + text("/home/me"))

    def started(self, channel=1):
        self.frame(3, struct.pack("<Iq", channel, 1))

    def refused(self, why, channel=1):
        self.frame(4, struct.pack("<Ii", channel, 127) + text(why))

    def exit(self, code=0, channel=1):
        self.frame(5, struct.pack("<Iii", channel, code, 0))

    def data(self, value, stream=OUT, channel=1):
        self.frame(6, struct.pack("<IB", channel, stream) + text(value))

    def all(self, value, stream=OUT):
        """Sends all of the value, which must fit into the initial window."""
        for at in range(0, len(value), 65536):
            self.data(value[at:at + 65536], stream)

    def read(self):
        """Returns the type and fields of the next frame; None at the end."""
        head = self._exactly(5)
        return None if head is None else (head[4], self._exactly(struct.unpack("<I", head[:4])[0] - 1))

    def words(self):
        """Returns the words of the next Start."""
        while True:
            kind, fields = self.read() or sys.exit(0)
            if kind == 2:
                break
        count, at, words = struct.unpack_from("<I", fields, 4)[0], 8, []
        for _ in range(count):
            size = struct.unpack_from("<I", fields, at)[0]
            words.append(fields[at + 4:at + 4 + size].decode())
            at += 4 + size
        return words

    def until_gone(self):
        while self.read():
            pass

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            part = os.read(0, size - len(data))
            if not part:
                return None
            data += part
        return data


def number(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def listing(*entries):
    """Returns a tree of (path, size) for files and (path, target) for links, sorted."""
    out = b"lockstep-tree\n" + number(len(entries))
    for path, what in entries:
        out += number(0) + number(len(path.encode())) + path.encode()
        if isinstance(what, str):
            out += b"\x01" + number(len(what)) + what.encode()
        else:
            out += b"\x00" + number(what) + number(2000000000000000000)
    return out


def contents(*texts):
    return b"lockstep-tree\n" + number(len(texts)) + b"".join(number(len(each)) + each for each in texts)


link = Link()
'''


# The honest binary answers, and this program spoils the answers on the way.
SPOILS = r'''
import random, re, subprocess, threading

chance = random.Random(%r)
honest = subprocess.Popen([%r, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
CONTROL = rb"\u001b[2J\u009b\u202e"
ODD = [b"null", b"[]", b"{}", b"true", b'""', b"-1", b"4611686018427387904", b"18446744073709551615", b"1e300", b"1.5",
       b"99999999999999999999999999", b'"' + CONTROL + b'"', b"[" * 300, b'"../../x"', b'"/"']


def spoiled(data):
    data = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        kind = chance.randrange(6)
        texts = [at.start() + 1 for at in re.finditer(rb'"[^"]', data)]
        values = list(re.finditer(rb'(?<=[:\[,])("[^"]*"|-?[0-9.]+|true|false|null)', data))
        if kind == 0 and texts:
            at = chance.choice(texts)
            data[at:at] = CONTROL
        elif kind in (1, 2) and values:
            at = chance.choice(values)
            data[at.start():at.end()] = chance.choice(ODD)
        elif kind == 3 and data:
            data[chance.randrange(len(data))] = chance.randrange(256)
        elif kind == 4:
            del data[chance.randrange(len(data) + 1):]
        elif kind == 5:
            data += chance.choice(ODD)
    return bytes(data[:65536]) or b"x"


def pass_on():
    while data := os.read(0, 65536):
        honest.stdin.write(data)
        honest.stdin.flush()
    honest.stdin.close()


def exactly(size):
    data = honest.stdout.read(size)
    return data if len(data) == size else sys.exit(0)


threading.Thread(target=pass_on, daemon=True).start()
GREETING = b"\n\x01lockstep-link\x02"
link.write(exactly(len(GREETING)))
while True:
    size, kind = struct.unpack("<IB", exactly(5))
    fields = exactly(size - 1)
    # Leave readings of the clock whole: the client would wait a minute for the rest of a cut one.
    if kind == 6 and fields[4] in (OUT, RESULT) and not fields[9:].strip().isdigit() and chance.random() < 0.8:
        fields = fields[:5] + text(spoiled(fields[9:]))
    link.frame(kind, fields)
'''


class LyingHost:
    """A host whose binary a test replaces. The client logs in once first, so that the binary is there."""

    def __init__(self, client, server, user="me"):
        self.client, self.server = client, server
        self.where = f"{user}@{server.addr}"
        assert client.exec(self.where, "true").rc == 0
        [self.place] = (server.homes[user] / ".cache/lockstep/bin").iterdir()
        self.honest = self.place.read_bytes()

    def lies(self, lie):
        self._put((LINK + textwrap.dedent(lie)).encode())

    def spoils(self, seed):
        """Spoils answers at random from now on."""
        honest = self.place.parents[3] / "honest"
        if not honest.exists():
            honest.write_bytes(self.honest)
            honest.chmod(0o755)
        self._put((LINK + SPOILS % (seed, "/home/me/honest")).encode())

    def is_honest(self):
        self._put(self.honest)

    def _put(self, content):
        draft = self.place.with_name("draft")
        draft.write_bytes(content)
        draft.chmod(0o755)
        os.chown(draft, 2001, 2001)
        draft.replace(self.place)
