"""hang.py without PyTorch, whose import takes 1.5 s of CPU a rank: for tests that ask what Lockstep does about a hang.
hang_light.py KIND RANK: ranks meet after each step over a socket in TEST_FOLDER, and one goes wrong after some steps.
Each kind has a line of its own, marked with `# KIND`, at which the rank stays."""
import ctypes
import os
import signal
import socket
import sys
import time

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ATTEMPT = os.environ["TORCHELASTIC_RESTART_COUNT"]


def sleep():
    time.sleep(1000)  # sleep


def loop():
    sum(1 for _ in iter(int, 1))  # loop


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)  # stop


def vfork():
    """Hangs in the first attempt only."""
    if ATTEMPT == "0":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # SIGKILL has to follow
        # The parent is in state D until the child has ended.
        ctypes.CDLL(None).vfork() or time.sleep(1000)  # vfork


def joined(path):
    """Returns the connections: rank 0 to each other rank, each other rank to rank 0."""
    if RANK == 0:
        server = socket.socket(socket.AF_UNIX)
        server.bind(path + ".new")
        server.listen(WORLD)
        os.rename(path + ".new", path)  # rename: the file appears only once rank 0 listens
        return [server.accept()[0] for _ in range(1, WORLD)]
    while not os.path.exists(path):
        time.sleep(0.02)
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    return [client]


def meet(peers):
    """Waits until all ranks have come: rank 0 answers after it has heard from all."""
    if RANK != 0:
        peers[0].sendall(b"x")
    for peer in peers:
        if not peer.recv(1):  # the others
            sys.exit(1)
    if RANK == 0:
        for peer in peers:
            peer.sendall(b"x")


def main():
    kind, culprit = sys.argv[1], int(sys.argv[2])
    peers = joined(f"{os.environ['TEST_FOLDER']}/meet.{ATTEMPT}")
    for steps in range(10 ** 9):
        meet(peers)
        time.sleep(0.01)
        if steps == 1 and RANK == 0:
            print("training", flush=True)
        if steps == 300 and RANK == culprit:
            globals()[kind]()


if __name__ == "__main__":
    main()
