"""A training on gloo in which one rank is late at every step: straggles.py KIND RANK PERCENT. A step takes 100 ms, in
which a rank mostly sleeps, as with a GPU."""
import os
import sys
import time

import torch
import torch.distributed as dist

KIND, CULPRIT, PERCENT = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
LATE = int(os.environ["RANK"]) == CULPRIT
STEP = 0.1
EXTRA = STEP * PERCENT / 100


def use_cpu():
    end = time.process_time() + EXTRA
    while time.process_time() < end:
        sum(range(100))


def later(kind):
    if not LATE or KIND != kind:
        return
    if kind == "cpu":
        use_cpu()
    else:
        time.sleep(EXTRA)


class Data(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            later("loader")
            yield torch.ones(4)


class Slow(torch.autograd.Function):
    """A part of the model that takes time in both directions."""

    @staticmethod
    def forward(ctx, batch):
        later("forward")
        return batch.clone()

    @staticmethod
    def backward(ctx, gradient):
        later("backward")
        return gradient


def main():
    dist.init_process_group("gloo")
    layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    for batch in torch.utils.data.DataLoader(Data(), batch_size=1):
        time.sleep(STEP)
        later("sleep")
        later("cpu")
        Slow.apply(model(batch)).sum().backward()
    os._exit(0)  # at its exit, PyTorch 1.13 now and then aborts after a DDP step


if __name__ == "__main__":
    main()
