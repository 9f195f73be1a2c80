"""A training on gloo in which one rank goes wrong after some steps: hang.py KIND RANK. Each kind has a line of its own,
marked with `# KIND`, at which the rank stays. The moment of the fault is in TEST_FOLDER/fault.PID, if that is set."""
import ctypes
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist


def note_fault():
    """Notes the time by the machine's clock, which all ranks and the test share."""
    if folder := os.environ.get("TEST_FOLDER"):
        with open(f"{folder}/fault.{os.getpid()}", "w") as file:
            file.write(str(time.monotonic()))


class Data(torch.utils.data.Dataset):
    def __init__(self, fault):
        self.fault = fault

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        if self.fault and index == 100:
            note_fault()
            self.fault()
        return torch.ones(4)


def never_in_init():
    time.sleep(1000)  # init


def sleep():
    time.sleep(1000)  # sleep


def lock():
    twice = threading.Lock()
    twice.acquire()
    twice.acquire()  # lock


def loop():
    sum(1 for _ in iter(int, 1))  # loop


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)  # stop


def gil():
    ctypes.PyDLL(None).sleep(1000)  # gil


def fifo():
    path = f"{os.environ['TEST_FOLDER']}/fifo"
    os.mkfifo(path)
    open(path)  # fifo


def loader():
    time.sleep(1000)  # loader


def vfork():
    # The child runs on this stack, and the parent is in state D until the child has ended.
    ctypes.CDLL(None).vfork() or time.sleep(1000)  # vfork


def dead_server():
    """The folder of a file server that never answers, in a mount namespace that ends with this process."""
    libc = ctypes.CDLL(None)
    new_namespace, private = 0x20000, 0x44000
    assert libc.unshare(new_namespace) == 0
    libc.mount(None, b"/", None, private, None)  # fails in a chroot. The peers are private as they are
    path = f"{os.environ['TEST_FOLDER']}/mounted"
    os.mkdir(path)
    options = f"fd={os.open('/dev/fuse', os.O_RDWR)},rootmode=40000,user_id=0,group_id=0"
    assert libc.mount(b"fuse", path.encode(), b"fuse", 0, options.encode()) == 0
    return path


def fuse():
    os.listdir(dead_server())  # fuse


def loader_fuse():
    os.listdir(dead_server())  # loader_fuse


def skipped():
    dist.barrier()  # skipped


def wrong():
    dist.all_gather([torch.zeros(4) for _ in range(dist.get_world_size())], torch.ones(4))  # wrong


def new_group():
    time.sleep(1000)  # new_group


def train(model, batches, step):
    for batch in batches:
        loss = model(batch).sum()
        loss.backward()  # the others
        step()


def main():
    kind, culprit = sys.argv[1], int(sys.argv[2])
    rank = int(os.environ["RANK"])
    if kind == "init" and rank == culprit:
        note_fault()
        never_in_init()
    if kind == "init":
        note_fault()
    dist.init_process_group("gloo")  # others of init
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    if kind == "new_group":
        note_fault()
        if rank == culprit:
            new_group()
        dist.new_group([0, 1])  # others of new_group
    steps = 0

    def step():
        nonlocal steps
        steps += 1
        time.sleep(0.01)
        if steps == 1 and rank == 0:
            print("training", flush=True)
        if steps == 300 and rank == culprit and not kind.startswith("loader") and kind != "none":
            note_fault()
            globals()[kind]()

    if kind.startswith("loader"):
        fault = globals()[kind] if rank == culprit else None
        data = torch.utils.data.DataLoader(Data(fault), batch_size=1, num_workers=1)
    else:
        data = (torch.ones(4) for _ in range(10 ** 9))
    train(model, data, step)


if __name__ == "__main__":
    main()
