"""Two sockets of which each hears what the other says."""
import contextlib
import socket
import threading


def pass_both(one, other):
    """Until both have said all."""
    back = threading.Thread(target=pass_on, args=(other, one), daemon=True)
    back.start()
    pass_on(one, other)
    back.join()


def pass_on(one, other):
    with contextlib.suppress(OSError):
        while piece := one.recv(65536):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)
