"""A training on gloo in which one rank never enters a collective: gloo_waits.py COUNT [RANK]. All ranks enter COUNT
collectives. Then RANK sleeps with Python's lock, and the others wait for it in the next one; without RANK all end."""
import ctypes
import os
import sys

import torch
import torch.distributed as dist

COUNT = int(sys.argv[1])
CULPRIT = int(sys.argv[2]) if len(sys.argv) > 2 else None

if os.fork() == 0:
    sys.exit(0)  # a forked child that runs the whole end of Python
assert os.wait()[1] == 0
dist.init_process_group("gloo")
value = torch.ones(256)
for _ in range(COUNT):
    dist.all_reduce(value)
print("training", flush=True)
if dist.get_rank() == CULPRIT:
    ctypes.PyDLL(None).sleep(1000)  # with Python's lock
if CULPRIT is not None:
    dist.all_reduce(value)
dist.destroy_process_group()
print("ended", flush=True)
