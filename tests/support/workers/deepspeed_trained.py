"""Three steps of a tiny model with Transformers' Trainer on DeepSpeed; its arguments are TrainingArguments' options."""
import os

import deepspeed
import torch
from transformers import BertConfig, BertForSequenceClassification, HfArgumentParser, Trainer, TrainingArguments

(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = BertForSequenceClassification(BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=2))
data = [{"input_ids": torch.randint(0, 50, (8,)), "attention_mask": torch.ones(8, dtype=torch.long),
         "labels": torch.tensor(i % 2)} for i in range(32)]
trainer = Trainer(model=model, args=arguments, train_dataset=data)
done = trainer.train()
engine = trainer.model_wrapped
total = torch.tensor([sum(parameter.double().sum().item() for parameter in engine.parameters())])
sums = [torch.zeros_like(total) for _ in range(torch.distributed.get_world_size())]
torch.distributed.all_gather(sums, total)
line = (f"trainer rank {arguments.process_index} of {arguments.world_size} steps {done.global_step} "
        f"{type(engine).__name__} {type(engine.optimizer.optimizer).__name__} "
        f"same={len({each.item() for each in sums}) == 1} "
        f"from={os.path.dirname(deepspeed.__file__)}\n")
os.write(1, line.encode())  # one write: lines of several workers don't mix
