#!/usr/bin/python3
"""Prints the functions that a short job runs, in the order of their first use, for cmake/start_order.txt.

usage: start_order.py build/release/lockstep > cmake/start_order.txt
       start_order.py --check build/release/lockstep cmake/start_order.txt

The linker places these functions side by side (src/cli/CMakeLists.txt), so that a start causes fewer page faults. The
linker ignores names that no longer exist. --check fails if the list lacks a tenth of the functions: then make it anew.
"""
import collections
import ctypes
import os
import signal
import subprocess
import sys

JOB = ["run", "--nproc-per-node", "2", "--no-python", "/bin/true"]
TRACEME, PEEKUSER, POKEUSER, CONT, DETACH, SETOPTIONS = 0, 3, 6, 7, 17, 0x4200
FOLLOW = 0x2 | 0x4 | 0x8 | 0x10 | 0x100000  # forks, vforks, clones, execs; all tracees die with this process
INT3 = b"\xcc"
MOST_MISSING = 0.1
LEAST_USED = 500  # a start runs about 1300; fewer means that the tool has not seen it
RIP = 16 * 8
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def functions_of(program):
    """Returns the names of all functions by address."""
    names = collections.defaultdict(list)
    listed = subprocess.run(["readelf", "--symbols", "--wide", program], check=True, capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        words = line.split()
        if len(words) == 8 and words[3] in ("FUNC", "IFUNC") and words[6] != "UND":
            names[int(words[1], 16)].append(words[7])
    return names


def poke(pid, address, code):
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(code)


def first_uses(command, addresses):
    """Returns the functions that the launcher's processes enter, but not the workers, by their first use."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        if libc.ptrace(TRACEME, 0, None, None) != 0:
            os._exit(1)
        os.execv(command[0], command)
    if not os.WIFSTOPPED(os.waitpid(child, 0)[1]):
        sys.exit(f"{command[0]} cannot be traced: this system forbids ptrace; run the check where ptrace is allowed")
    libc.ptrace(SETOPTIONS, child, None, FOLLOW)
    first, last = min(addresses), max(addresses)
    with open(f"/proc/{child}/mem", "rb", buffering=0) as memory:
        memory.seek(first)
        code = memory.read(last + 1 - first)
    broken = bytearray(code)
    for address in addresses:
        broken[address - first] = INT3[0]
    poke(child, first, broken)
    libc.ptrace(CONT, child, None, None)
    found = {}
    while True:
        try:
            pid, status = os.waitpid(-1, 0x40000000)
        except ChildProcessError:
            return list(found)
        if not os.WIFSTOPPED(status):
            if pid == child and status != 0:
                sys.exit(f"the traced launcher ended with {os.waitstatus_to_exitcode(status)}: {' '.join(command)}")
            continue
        event = status >> 16
        if event == 4:  # a worker's exec
            libc.ptrace(DETACH, pid, None, None)
            continue
        at = libc.ptrace(PEEKUSER, pid, RIP, None) - 1
        stopped_by = os.WSTOPSIG(status)
        if stopped_by == signal.SIGTRAP and not event and at in addresses:
            found.setdefault(at)
            poke(pid, at, code[at - first:at - first + 1])
            libc.ptrace(POKEUSER, pid, RIP, at)
        passed_on = 0 if event or stopped_by in (signal.SIGTRAP, signal.SIGSTOP) else stopped_by
        libc.ptrace(CONT, pid, None, passed_on)


def check(used, listed):
    missing = [names[0] for names in used if not listed.intersection(names)]
    if len(missing) <= MOST_MISSING * len(used):
        return 0
    print(f"cmake/start_order.txt lacks {len(missing)} of the {len(used)} functions that a start runs; make it anew: "
          "tools/start_order.py build/release/lockstep > cmake/start_order.txt")
    return 1


def main():
    checks = sys.argv[1] == "--check"
    program = os.path.abspath(sys.argv[2 if checks else 1])
    functions = functions_of(program)
    used = [functions[at] for at in first_uses([program, *JOB], functions)]
    if len(used) < LEAST_USED:
        sys.exit(f"only {len(used)} functions of {program} were seen, and a start runs more than {LEAST_USED}")
    if checks:
        with open(sys.argv[3], encoding="utf-8") as listed:
            return check(used, set(listed.read().split()))
    print("# Made by tools/start_order.py, which explains the purpose.")
    # The linker has made equal functions one, so any of their names places it.
    print("\n".join(min(names, key=lambda name: (len(name), name)) for names in used))
    return 0


if __name__ == "__main__":
    sys.exit(main())
