"""A root that is a mount point, for demos and tests that run in a chroot.

Hosts (hosts.py) are mount namespaces. The kernel refuses to make mounts private if the root is a plain folder, and
entering such a namespace would also leave the chroot. So this process moves into a mount namespace in which its root is
a mount point: once, and before it has threads. Outside of a chroot nothing is done.
"""
import ctypes
import os
import sys

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}  # the C library has no function for it


def _must(what, result):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _root_is_mounted():
    with open("/proc/self/mountinfo") as file:
        return any(line.split()[4] == "/" for line in file)


def ensure():
    """Makes the root a mount point. Exits with one line if hosts cannot be made at all."""
    if not os.path.exists("/proc/self/mountinfo"):
        sys.exit("/proc is not mounted: run `mount -t proc proc /proc` first")
    if os.getuid() != 0 or _root_is_mounted():
        return
    _must("unshare", _libc.unshare(_CLONE_NEWNS))
    chroot = os.open("/", os.O_PATH)
    with open("/proc/self/ns/mnt") as own:  # entering it again leads to its root, outside of the chroot
        _must("setns", _libc.setns(own.fileno(), _CLONE_NEWNS))
    _must("make the mounts private", _libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    os.fchdir(chroot)
    os.close(chroot)
    folder = os.getcwd().encode()
    _must("bind the root", _libc.mount(folder, folder, None, _MS_BIND | _MS_REC, None))
    os.chdir(folder)
    _must("pivot_root", _libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."))
    _must("umount", _libc.umount2(b".", _MNT_DETACH))
    os.chdir("/")
