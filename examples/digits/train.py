"""Handwritten digits with PyTorch DistributedDataParallel, on CPUs.

    lockstep run --standalone --nproc-per-node 2 --max-restarts 3 train.py --checkpoint-dir checkpoints

Every rank trains on its share of scikit-learn's copy of the UCI digits; rank 0 writes a checkpoint after
each epoch, and whoever starts goes on from the last one, however the attempt before it ended.
"""
import argparse
import os
import pathlib

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def datasets():
    """Four fifths to train on, one fifth to test with; the same split everywhere."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 2 * 2, 64), nn.ReLU(), nn.Linear(64, 10))


def last_checkpoint(folder):
    return max(folder.glob("epoch-*.pt"), default=None)


def save(folder, epoch, model, optimizer):
    """Complete under its name or not there at all."""
    path = folder / f"epoch-{epoch:02}.pt"
    temporary = path.with_suffix(".tmp")
    torch.save({"epoch": epoch, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, temporary)
    os.replace(temporary, path)


def train_epoch(model, loader, optimizer, moved):
    total = torch.zeros(2)
    for images, labels in loader:
        images = moved(images)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += torch.tensor([loss.item() * len(labels), len(labels)])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def mover(asked):
    """What is done to a batch of images before it is learned from."""
    if not asked:
        return lambda images: images
    import augment  # examples/augment, which `lockstep wheel` builds

    return lambda images: augment.jitter(images, int(torch.randint(1 << 62, ())))


def accuracy(model, dataset):
    images, labels = dataset.tensors
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16, help="per worker")
    parser.add_argument("--checkpoint-dir", type=pathlib.Path, default="checkpoints")
    parser.add_argument("--augment", action="store_true", help="move the digits about; needs the wheel of ../augment")
    args = parser.parse_args()

    moved = mover(args.augment)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    train, test = datasets()
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=args.batch_size, sampler=sampler)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    args.checkpoint_dir.mkdir(parents=True, exist_ok=True)
    first = 1
    checkpoint = last_checkpoint(args.checkpoint_dir)
    if checkpoint is not None:
        state = torch.load(checkpoint, map_location="cpu")
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1
        if rank == 0:
            print(f"resumed from {checkpoint.name}, going on with epoch {first}")
    dist.barrier()  # nobody writes a newer checkpoint while another still looks for the last one

    for epoch in range(first, args.epochs + 1):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, loader, optimizer, moved)
        if rank == 0:
            save(args.checkpoint_dir, epoch, model, optimizer)
            print(f"epoch {epoch:2} of {args.epochs}: loss {loss:.4f}")

    if rank == 0:
        print(f"test accuracy {100 * accuracy(model.module, test):.1f} %")
    # The model has the group, too. If it went last, PyTorch 1.13 would end the group's threads while it holds Python's
    # lock, and wait for ever for one that needs it.
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
