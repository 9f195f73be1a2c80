"""A TCPStore client over a raw socket. PyTorch's own client would hide the bytes."""
import socket
import struct

HANDSHAKE = bytes.fromhex("00CEF7853C 0D 99120000")
ECHO = bytes.fromhex("99120000")


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(value)) + value


class Client:
    """dialect: "A" (PyTorch up to 2.0) or "D" (2.2 and later); opcodes differ by one up to WATCH."""

    def __init__(self, address, dialect="D"):
        self.socket = socket.create_connection(address, 5)
        self.shift = 1 if dialect == "D" else 0
        if dialect == "D":
            self.send(HANDSHAKE)
            assert self.receive(4) == ECHO

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError(f"closed after {data!r}")
            data += piece
        return data

    def number(self):
        return struct.unpack("<q", self.receive(8))[0]

    def value(self):
        return self.receive(struct.unpack("<Q", self.receive(8))[0])

    def op(self, code, *operands):
        self.send(bytes([code]) + b"".join(operands))

    def set(self, key, value):
        self.op(0 + self.shift, text(key), text(value))

    def get(self, key):
        self.op(2 + self.shift, text(key))
        return self.value()

    def add(self, key, amount):
        self.op(3 + self.shift, text(key), struct.pack("<q", amount))
        return self.number()

    def keys(self, code, names):
        self.op(code, struct.pack("<Q", len(names)), *map(text, names))

    def wait(self, *names):
        self.keys(5 + self.shift, names)

    def delete(self, key):
        self.op(8, text(key))
        return self.number()


def closed_by_peer(peer):
    """Returns True once the peer has closed the connection. The peer may send bytes before."""
    peer.settimeout(5)
    try:
        while peer.recv(65536):
            pass
    except ConnectionError:
        pass
    return True
