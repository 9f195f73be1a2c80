"""G: a gloo all-reduce. "--fail-first": rank 0 fails after the collective of attempt 0. "--fail-once FILE": the same,
unless FILE exists; the failure makes FILE."""
import os
import signal
import sys

import torch
import torch.distributed as dist

once = sys.argv[sys.argv.index("--fail-once") + 1] if "--fail-once" in sys.argv else None
fails = "--fail-first" in sys.argv and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" or \
    once is not None and not os.path.exists(once)
dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(value)
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
line = f"torch {torch.__version__} attempt {attempt} rank {dist.get_rank()} sum {value.item()}\n"
os.write(1, line.encode())  # one write: lines of several workers don't mix
if fails:
    dist.barrier()
    if dist.get_rank() == 0:
        if once:
            open(once, "w").close()
        os._exit(9)
    # The others must not succeed first: a torchrun whose workers are done never comes back for a restart.
    signal.pause()
dist.destroy_process_group()
