#!/usr/bin/python3
"""Writes corpus/store: the specification's byte samples and one of each operation, both dialects."""
import pathlib
import struct

HERE = pathlib.Path(__file__).parent / "corpus" / "store"
OPS = ["set", "cas", "get", "add", "check", "wait", "num_keys", "watch", "delete", "append",
       "multi_get", "multi_set", "cancel", "ping", "push", "pop", "len", "list", "barrier"]
D = dict(zip([op for op in OPS if op != "watch"], range(1, 19)))
A = dict(set=0, cas=1, get=2, add=3, check=4, wait=5, num_keys=6, watch=7, delete=8,
         multi_get=9, multi_set=10, cancel=11)


def s(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def keys(*names):
    return struct.pack("<Q", len(names)) + b"".join(map(s, names))


def i64(number):
    return struct.pack("<q", number)


BODIES = {
    "set": s("k") + s("v1"), "cas": s("k") + s("") + s("A"), "get": s("k"), "add": s("n") + i64(-7),
    "check": keys("k", "nope"), "wait": keys("k", "/later"), "num_keys": b"", "watch": s("k"),
    "delete": s("k"), "append": s("k") + s(b"\0\xff"), "multi_get": keys("k", "n"),
    "multi_set": struct.pack("<Q", 2) + s("k") + s("1") + s("q") + s("2"), "cancel": b"",
    "ping": b"\x99\x12\0\0", "push": s("q") + s("item"), "pop": s("q"), "len": s("q"), "list": b"",
    "barrier": s("b") + i64(2),
}


def main():
    HERE.mkdir(parents=True, exist_ok=True)
    for name, table, mode in (("d", D, 1), ("a", A, 2)):
        everything = b""
        for op in OPS:
            if op not in table:
                continue
            message = bytes([table[op]]) + BODIES[op]
            everything += message
            (HERE / f"{name}_{op}").write_bytes(bytes([mode, 3]) + message)
        (HERE / f"{name}_everything").write_bytes(bytes([mode, 6]) + everything)
    hello = bytes.fromhex("00CEF7853C0D99120000")
    session = hello + b"\x04" + s("init/") + i64(1) + b"\x01" + s("/k1") + s("v1") + b"\x06" + keys("/k1")
    (HERE / "raw_hello").write_bytes(b"\0\0" + hello)
    (HERE / "raw_session_d").write_bytes(b"\0\0" + session)
    (HERE / "raw_session_a").write_bytes(b"\0\1" + b"\x03" + s("init/") + i64(1) + b"\0" + s("/k1") + s("v1"))
    (HERE / "raw_set_a").write_bytes(b"\0\0\0" + s("/k1") + s("v1"))
    (HERE / "bad_magic").write_bytes(b"\0\0\0\xde\xad\xbe\xef")
    (HERE / "bad_validate_twice").write_bytes(b"\0\0" + hello[:5] * 2)
    (HERE / "bad_length").write_bytes(b"\1\0\1" + b"\xff" * 8)
    (HERE / "bad_count").write_bytes(b"\1\0\x06" + b"\xff" * 8)
    (HERE / "bad_http").write_bytes(b"\0\0GET / HTTP/1.1\r\n\r\n")


if __name__ == "__main__":
    main()
