"""Passes bytes between two sockets."""
import contextlib
import socket
import threading


def pass_both(one, other):
    """Passes bytes both ways until both ends have closed."""
    back = threading.Thread(target=pass_on, args=(other, one), daemon=True)
    back.start()
    pass_on(one, other)
    back.join()


def pass_on(one, other):
    with contextlib.suppress(OSError):
        while piece := one.recv(65536):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)
