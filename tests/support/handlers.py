"""Runs PyTorch's own c10d rendezvous with many handlers, as threads of one process against one store, without workers:
python-trixie handlers.py COUNT. Prints the seconds until the last thread has its place. For bench/rendezvous."""
import sys
import threading
import time
from datetime import timedelta

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous.api import RendezvousParameters
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler


def main():
    count = int(sys.argv[1])
    wait = timedelta(seconds=120)
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=wait, use_libuv=False)
    ready = threading.Barrier(count + 1)
    places = []

    def agent(number):
        store = TCPStore("127.0.0.1", server.port, is_master=False, wait_for_workers=False, timeout=wait,
                         use_libuv=False)
        parameters = RendezvousParameters("c10d", f"127.0.0.1:{server.port}", "sim", count, count,
                                          local_addr=f"127.1.{number // 256}.{number % 256}")
        handler = create_handler(store, C10dRendezvousBackend(store, "sim"), parameters)
        ready.wait()
        round_ = handler.next_rendezvous()
        places.append((round_.rank if hasattr(round_, "rank") else round_[1], time.monotonic()))

    threads = [threading.Thread(target=agent, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.monotonic()
    for thread in threads:
        thread.join()
    assert sorted(rank for rank, _ in places) == list(range(count)), "a handler failed"
    print(f"{max(when for _, when in places) - start:.3f}", flush=True)


main()
