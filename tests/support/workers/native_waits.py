"""A worker whose threads wait in known system calls: native_waits.py FOLDER. FOLDER has libhold.so, and gets a file
for each rank that names the threads."""
import ctypes
import json
import os
import pathlib
import sys
import threading

folder = pathlib.Path(sys.argv[1])
hold = ctypes.CDLL(str(folder / "libhold.so"))
never = os.pipe()  # nothing is written to it
tids = {}


def in_poll():
    tids["poll"] = threading.get_native_id()
    hold.hold_in_poll(never[0])


def in_read():
    tids["read"] = threading.get_native_id()
    os.read(never[0], 1)


def in_lock():
    tids["lock"] = threading.get_native_id()
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def in_loop():
    tids["loop"] = threading.get_native_id()
    hold.hold_in_loop()


threads = [threading.Thread(target=each, daemon=True) for each in (in_poll, in_read, in_lock, in_loop)]
# A thread that Python does not know.
hold.start_thread(never[0])
for thread in threads:
    thread.start()
while len(tids) < len(threads):
    pass
note = folder / f"rank{os.environ['RANK']}.part"
note.write_text(json.dumps({"pid": os.getpid(), **tids}))
note.rename(note.with_suffix(""))
hold.hold_in_poll(never[0])
