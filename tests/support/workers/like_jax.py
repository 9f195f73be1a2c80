"""Acts like jax.distributed.initialize(): process 0 opens the coordinator's port on every address
of its machine, and all processes connect there. The first attempt fails once all have met."""
import contextlib
import os
import socket
import sys
import time

place = os.environ["JAX_COORDINATOR_ADDRESS"]
number, count = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
host, _, port = place.rpartition(":")

if number == 0:
    server = socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)

while True:  # process 0 may not have opened the port yet
    with contextlib.suppress(ConnectionRefusedError):
        client = socket.create_connection((host, int(port)))
        break
    time.sleep(0.01)

if number == 0:
    peers = [server.accept()[0] for _ in range(count)]
    for peer in peers:
        peer.sendall(b"%d" % len(peers))
met = int(client.recv(8))
devices = os.environ.get("JAX_LOCAL_DEVICE_IDS", "all")
sys.stdout.write(f"process {number} attempt {attempt}: {met} met, devices {devices}\n")  # in one piece
if attempt == 0:
    # The end of one process stops the others, which must have printed their line.
    client.sendall(b"x")
    if number == 0:
        for peer in peers:
            peer.recv(1)
        sys.exit(1)
    time.sleep(1000)
