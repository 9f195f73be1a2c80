"""A healthy training on gloo that looks dead for SECONDS: healthy.py KIND RANK SECONDS. In most kinds that rank works
alone, at the line that is marked with `# KIND`, while the others wait for it. The job then ends with 0.

A kind has one line, whichever part of it a look meets."""
import os
import pdb
import subprocess
import sys
import time
import urllib.request

import torch
import torch.distributed as dist

KIND, CULPRIT, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
FOLDER = os.environ["TEST_FOLDER"]
RANK = int(os.environ["RANK"])


def prepare():
    end = time.monotonic() + SECONDS
    while sum(range(10 ** 6)) and time.monotonic() < end: pass  # prepare


def validation():
    end = time.monotonic() + SECONDS
    while torch.ones(10 ** 6).sum() and time.monotonic() < end: pass  # validation


def write():
    """A slow file server: little CPU, a few bytes now and then."""
    end = time.monotonic() + SECONDS
    with open(f"{FOLDER}/written", "wb") as file:
        while time.monotonic() < end: time.sleep(0.5); file.write(bytes(96 << 10)); os.fsync(file.fileno())  # write


def download():
    with urllib.request.urlopen(os.environ["SLOW_URL"]) as file:
        while file.read(4096): pass  # download


def retries():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end: os.path.exists(f"{FOLDER}/ready"); time.sleep(2)  # retries


def child():
    program = f"import time; end = time.monotonic() + {SECONDS}\nwhile time.monotonic() < end: pass"
    subprocess.run([sys.executable, "-c", program], check=True)  # child


def debugger():
    # The user types nothing for so long.
    user = subprocess.Popen(["sh", "-c", f"sleep {SECONDS}; echo continue"], stdout=subprocess.PIPE, text=True)
    pdb.Pdb(stdin=user.stdout, stdout=sys.stdout, nosigint=True).set_trace(); user.wait()  # debugger


def save_checkpoint():
    """All ranks save. One rank writes, to a slow server."""
    if RANK == CULPRIT:
        time.sleep(SECONDS)  # checkpoint
    dist.barrier()


def train(model, seconds):
    """All ranks do the same number of steps: rank 0 decides when to end."""
    end = time.monotonic() + seconds
    go_on = torch.ones(1)
    while go_on.item():
        model(torch.ones(4)).sum().backward()
        time.sleep(0.02)
        go_on.fill_(time.monotonic() < end)
        dist.broadcast(go_on, 0)


def main():
    dist.init_process_group("gloo")
    if KIND in ("prepare", "download", "retries", "child") and RANK == CULPRIT:
        globals()[KIND]()
    dist.barrier()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    train(model, 5)
    if KIND == "slow":
        for _ in range(int(SECONDS / 3)):
            time.sleep(3)
            model(torch.ones(4)).sum().backward()
    if KIND in ("validation", "write", "debugger") and RANK == CULPRIT:
        globals()[KIND]()
    if KIND == "checkpoint":
        save_checkpoint()
    if KIND == "alone":
        # The other ranks end, and this rank does not wait for them.
        if RANK == CULPRIT:
            time.sleep(SECONDS)  # alone
        os._exit(0)
    dist.barrier()
    os._exit(0)  # at its exit, gloo of PyTorch 1.13 now and then waits for itself


if __name__ == "__main__":
    main()
