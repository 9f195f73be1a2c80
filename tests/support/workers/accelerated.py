"""A few steps of DDP through Hugging Face's Accelerate, on CPUs; says what it was given."""
import os

import torch
from accelerate import Accelerator, InitProcessGroupKwargs

accelerator = Accelerator(kwargs_handlers=[InitProcessGroupKwargs(backend="gloo")])  # else MPI, where it is there
model = torch.nn.Linear(4, 1)
data = torch.utils.data.TensorDataset(torch.arange(64.0).view(16, 4) / 64, torch.ones(16, 1))
model, optimizer, batches = accelerator.prepare(
    model, torch.optim.SGD(model.parameters(), lr=0.1), torch.utils.data.DataLoader(data, batch_size=2))
steps = 0
for x, y in batches:
    accelerator.backward(((model(x) - y) ** 2).mean())
    optimizer.step()
    optimizer.zero_grad()
    steps += 1
total = accelerator.reduce(torch.ones(1), "sum").item()
line = (f"accelerate rank {accelerator.process_index} of {accelerator.num_processes} steps {steps} sum {total} "
        f"{accelerator.mixed_precision} {type(model).__name__}\n")
os.write(1, line.encode())  # one write: lines of several workers don't mix
accelerator.end_training()
