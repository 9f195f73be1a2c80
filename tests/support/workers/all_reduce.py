"""G: a gloo all-reduce; "--fail-first" fails on rank 0 after the collective of attempt 0."""
import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(value)
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
print(f"torch {torch.__version__} attempt {attempt} rank {dist.get_rank()} sum {value.item()}", flush=True)
if "--fail-first" in sys.argv and attempt == "0":
    dist.barrier()
    if dist.get_rank() == 0:
        os._exit(9)
dist.destroy_process_group()
