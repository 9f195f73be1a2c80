"""A script whose main is decorated as PyTorch recommends, and fails."""
import os

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    if os.environ["RANK"] == "0":
        raise ValueError("the batch is empty")


main()
