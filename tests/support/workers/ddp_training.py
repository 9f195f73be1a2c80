"""A training with torch's DistributedDataParallel over gloo that goes on from its last checkpoint.

    ddp_training.py FOLDER STEP_SECONDS

Rank 0 writes FOLDER/checkpoint after every step and a line to FOLDER/starts when it begins. The training ends with a
step that began when FOLDER/finish was there. Its weights are a function of the number of steps alone, see `expected`.
"""
import json
import os
import pathlib
import socket
import sys
import time

import torch
import torch.distributed as dist


def model_and_optimizer():
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def batch(step, rank):
    return torch.sin(torch.arange(8, dtype=torch.float32).reshape(2, 4) + step + 10 * rank)


def total(model):
    return round(sum(float(value.double().sum()) for value in model.parameters()), 4)


def expected(steps, world):
    """Returns the sum of the weights after an undisturbed training."""
    model, optimizer = model_and_optimizer()
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        sum((model(batch(step, rank)) ** 2).mean() for rank in range(world)).div(world).backward()
        optimizer.step()
    return total(model)


def join():
    """Debian's newer PyTorch is built without libuv, and asks for libuv in every store that it opens by itself."""
    try:
        dist.init_process_group("gloo")
    except RuntimeError as error:
        if "libuv" not in str(error):
            raise
        env = os.environ
        store = dist.TCPStore(env["MASTER_ADDR"], int(env["MASTER_PORT"]), is_master=False, use_libuv=False)
        dist.init_process_group("gloo", rank=int(env["RANK"]), world_size=int(env["WORLD_SIZE"]),
                                store=dist.PrefixStore(f"attempt {env['TORCHELASTIC_RESTART_COUNT']}", store))


def main():
    folder, pause = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    join()
    rank, world = dist.get_rank(), dist.get_world_size()
    model, optimizer = model_and_optimizer()
    step = 0
    if (folder / "checkpoint").exists():
        kept = torch.load(folder / "checkpoint")
        step = kept["step"]
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
    hosts = [None] * world
    dist.all_gather_object(hosts, socket.gethostname())
    if rank == 0:
        with open(folder / "starts", "a") as starts:
            starts.write(json.dumps({"at": time.time(), "step": step, "hosts": hosts}) + "\n")
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    last = False
    while not last:
        step += 1
        flag = torch.tensor([float((folder / "finish").exists())])
        dist.broadcast(flag, 0)
        last = bool(flag.item())
        optimizer.zero_grad()
        (ddp(batch(step, rank)) ** 2).mean().backward()
        optimizer.step()
        if rank == 0:
            torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "total": total(model)}, folder / "draft")
            (folder / "draft").rename(folder / "checkpoint")
        dist.barrier()
        print(f"step {step} done", flush=True)
        time.sleep(pause)
    os._exit(0)  # at its exit, PyTorch 1.13 now and then aborts after a DDP step


if __name__ == "__main__":
    main()
