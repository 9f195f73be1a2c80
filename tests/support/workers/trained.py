"""Three steps of a tiny model with Transformers' Trainer, on CPUs; rank 0 of the first attempt then fails."""
import os
import signal
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

model = BertForSequenceClassification(BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=2))
data = [{"input_ids": torch.randint(0, 50, (8,)), "attention_mask": torch.ones(8, dtype=torch.long),
         "labels": torch.tensor(i % 2)} for i in range(32)]
arguments = TrainingArguments(output_dir=sys.argv[1], max_steps=3, per_device_train_batch_size=4, use_cpu=True,
                              report_to=[], save_strategy="no", disable_tqdm=True, ddp_backend="gloo")
trainer = Trainer(model=model, args=arguments, train_dataset=data)
done = trainer.train()
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
line = (f"trainer attempt {attempt} rank {arguments.process_index} of {arguments.world_size} steps {done.global_step} "
        f"{type(trainer.model_wrapped).__name__}\n")
os.write(1, line.encode())  # one write: lines of several workers don't mix
if attempt == "0":
    torch.distributed.barrier()
    if arguments.process_index == 0:
        os._exit(9)
    signal.pause()
