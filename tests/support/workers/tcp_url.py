"""A worker that names its own store by URL: rank 0 of the job hosts it itself. PyTorch before 2.14
needs to be told that this is not the launcher's store."""
import os
import sys

import torch
import torch.distributed as dist

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14):
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{sys.argv[1]}",
                        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
value = torch.ones(1)
dist.all_reduce(value)
os.write(1, f"sum {value.item()}\n".encode())  # one write: lines of several workers don't mix
