#!/usr/bin/python3
"""Prints the functions that a short job runs, in the order of their first use, for cmake/start_order.txt.

usage: start_order.py build/release/lockstep > cmake/start_order.txt

The linker places these functions side by side (src/cli/CMakeLists.txt), so that a start causes fewer page faults. The
linker ignores names that no longer exist. Make the list anew after large changes to the start. Takes a minute, because
the launcher runs in single steps.
"""
import bisect
import collections
import ctypes
import os
import signal
import subprocess
import sys

JOB = ["run", "--nproc-per-node", "2", "--no-python", "/bin/true"]
TRACEME, SINGLESTEP, PEEKUSER, DETACH, SETOPTIONS = 0, 9, 3, 17, 0x4200
FOLLOW = 0x2 | 0x4 | 0x8 | 0x10 | 0x100000  # forks, vforks, clones, execs; all tracees die with this process
RIP = 16 * 8
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def first_uses(command, low, high):
    """Returns the addresses that the launcher's processes run, but not the workers, by their first use."""
    child = os.fork()
    if child == 0:
        libc.ptrace(TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(command[0], command)
    os.waitpid(child, 0)
    libc.ptrace(SETOPTIONS, child, None, FOLLOW)
    libc.ptrace(SINGLESTEP, child, None, None)
    found = {}
    started = False
    while True:
        try:
            pid, status = os.waitpid(-1, 0x40000000)
        except ChildProcessError:
            return list(found)
        if not os.WIFSTOPPED(status):
            continue
        event = status >> 16
        if event == 4 and started:  # a worker's exec
            libc.ptrace(DETACH, pid, None, None)
            continue
        started |= event == 4
        at = libc.ptrace(PEEKUSER, pid, RIP, None)
        if low <= at < high:
            found.setdefault(at)
        stopped_by = os.WSTOPSIG(status)
        passed_on = 0 if event or stopped_by in (signal.SIGTRAP, signal.SIGSTOP) else stopped_by
        libc.ptrace(SINGLESTEP, pid, None, passed_on)


def main():
    program = os.path.abspath(sys.argv[1])
    names = collections.defaultdict(list)
    listed = subprocess.run(["nm", "--defined-only", program], check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        address, kind, name = line.split(None, 2)
        if kind in "tTwWi":
            names[int(address, 16)].append(name)
    addresses = sorted(names)
    used = {}
    for at in first_uses([program, *JOB], addresses[0], addresses[-1] + 4096):
        for name in names[addresses[bisect.bisect_right(addresses, at) - 1]]:
            used.setdefault(name)
    print("# Made by tools/start_order.py, which explains the purpose.")
    print("\n".join(used))


if __name__ == "__main__":
    main()
