"""Becomes a program that is not Python and lies on a file server that has stopped answering. The server is FUSE, in a
mount namespace that ends with this process. TEST_FOLDER/dead exists once the server answers nothing any more."""
import ctypes
import errno
import os
import signal
import struct
import time

GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 3, 14, 15, 18, 25, 26
FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42  # want no answer
SLEEPS = {"230", "115"}  # clock_nanosleep on x86-64 and aarch64


def mount(path):
    """Mounts a file system that is one file. Returns the server's descriptor."""
    libc = ctypes.CDLL(None)
    new_namespace, private = 0x20000, 0x44000
    assert libc.unshare(new_namespace) == 0
    libc.mount(None, b"/", None, private, None)  # fails in a chroot. The peers are private as they are
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    options = f"fd={fd},rootmode=100755,user_id=0,group_id=0"
    assert libc.mount(b"fuse", path.encode(), b"fuse", 0, options.encode()) == 0
    return fd


def answer(opcode, body, data):
    if opcode == INIT:
        return struct.pack("=IIII", 7, 31, 1 << 17, 0).ljust(64, b"\0")
    if opcode == GETATTR:
        valid, times, mode, rest = (3600, 0, 0), (0,) * 6, 0o100755, (1, 0, 0, 0, 4096, 0)
        return struct.pack("=QII6Q10I", *valid, 1, len(data), len(data) // 512 + 1, *times, mode, *rest)
    if opcode == OPEN:
        return bytes(16)
    if opcode == READ:
        _, offset, size = struct.unpack_from("=QQI", body)
        return data[offset:offset + size]
    return b"" if opcode in (RELEASE, FLUSH) else None


def serve(fd, data, program):
    """Answers until the program sleeps."""
    while not (os.path.exists(f"/proc/{program}/syscall") and
               open(f"/proc/{program}/syscall").read().split()[0] in SLEEPS):
        try:
            request = os.read(fd, 1 << 18)
        except (BlockingIOError, InterruptedError):
            time.sleep(0.001)
            continue
        _, opcode, unique = struct.unpack_from("=IIQ", request)
        if opcode in (FORGET, INTERRUPT, BATCH_FORGET):
            continue
        told = answer(opcode, request[40:], data)
        os.write(fd, struct.pack("=IiQ", 16 + len(told or b""), -errno.ENOSYS if told is None else 0, unique) +
                 (told or b""))


def main():
    folder = os.environ["TEST_FOLDER"]
    path = f"{folder}/program"
    open(path, "w").close()
    with open("/bin/sleep", "rb") as program:
        data = program.read()
    fd = mount(path)
    worker = os.getpid()
    if os.fork() == 0:
        if os.fork() == 0:  # not a child of the worker
            serve(fd, data, worker)
            open(f"{folder}/dead", "w").close()
            signal.pause()
        os._exit(0)
    os.wait()
    os.execv(path, ["sleep", "1000"])


if __name__ == "__main__":
    main()
