"""Stands still with a shape of stack, and lets faulthandler print the stack on SIGUSR1: stacks_shapes.py SHAPE FOLDER.

FOLDER/ready appears once all threads have arrived. FOLDER/faulthandler has the answer.
"""
import asyncio
import ctypes
import faulthandler
import os
import pathlib
import signal
import sys
import threading
import time

SHAPE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
answer = open(FOLDER / "faulthandler", "w")
faulthandler.register(signal.SIGUSR1, file=answer, all_threads=True)


def ready():
    (FOLDER / "ready").touch()


def sleep():
    ready()
    while True:
        time.sleep(1000)


class Model:
    def forward(self, depth):
        if depth:
            return [self.forward(depth - 1) for _ in range(1)]
        return sorted([1, 2], key=lambda x: self.wait())

    def wait(self):
        (
            sleep
        )(
        )


def generators():
    def inner():
        yield 1
        sleep()

    def outer():
        yield from inner()

    list(outer())


async def awaits(depth):
    if depth:
        await awaits(depth - 1)
    else:
        sleep()


def odd_names():
    source = "\n\ndef {0}():\n    sleep()\n{0}()"
    names = {"b\u00fccher_\u00e9.py": "b\u00fccher", "\u6587\u4ef6.py": "\u51fd\u6570", "\U00020000.py": "\U00020000x",
             "\x1b[31m<script>.py": "plain"}

    def call(rest):
        if not rest:
            return sleep()
        file, name = rest[0]
        return exec(compile(source.format(name), file, "exec"), {"sleep": lambda: call(rest[1:])})

    call(list(names.items()))


def threads():
    arrived = threading.Barrier(4)

    def wait(lock):
        arrived.wait()
        lock.acquire()

    lock = threading.Lock()
    lock.acquire()
    for _ in range(2):
        threading.Thread(target=wait, args=(lock,), daemon=True).start()
    threading.Thread(target=lambda: (arrived.wait(), threading.Event().wait()), daemon=True).start()
    arrived.wait()
    time.sleep(.3)
    sleep()


def many_threads():
    threading.stack_size(1 << 18)
    forever = threading.Lock()
    forever.acquire()
    for _ in range(1000):
        threading.Thread(target=forever.acquire, daemon=True).start()
    time.sleep(.3)
    sleep()


def deep():
    def down(depth):
        if depth:
            down(depth - 1)
        else:
            sleep()

    sys.setrecursionlimit(20000)
    threading.stack_size(512 << 20)
    thread = threading.Thread(target=down, args=(10000,), daemon=True)
    thread.start()
    thread.join()


def holds_the_gil():
    ready()
    ctypes.PyDLL(None).usleep(60_000_000)


def busy():
    """Calls of all depths, generators and new code objects, without a pause."""
    def up(depth):
        return 0 if depth == 0 else 1 + up(depth - 1)

    def count(end):
        for i in range(end):
            yield i + up(i % 7)

    ready()
    while True:
        for i in range(40):
            up(i)
            sum(count(i))
            sorted(range(9), key=lambda x: -x)
        scope = {}
        exec(compile("def made(x):\n    return [\n        x,\n        x + 1]\n", "/proc/self/exe", "exec"), scope)
        scope["made"](1)


def forked():
    """The child of a fork in a thread: this thread becomes its main thread."""
    def fork():
        pid = os.fork()
        if pid == 0:
            (FOLDER / "child").write_text(str(os.getpid()))
            sleep()
        os.waitpid(pid, 0)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()


{
    "sleep": sleep,
    "model": lambda: Model().forward(3),
    "generators": generators,
    "async": lambda: asyncio.run(awaits(3)),
    "odd_names": odd_names,
    "threads": threads,
    "many_threads": many_threads,
    "deep": deep,
    "holds_the_gil": holds_the_gil,
    "busy": busy,
    "forked": forked,
}[SHAPE]()
