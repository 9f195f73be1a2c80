"""A training as the launcher sees one on PyTorch's NCCL backend, without a GPU: nccl_side.py KIND RANK.

Each rank behaves as ProcessGroupNCCL of PyTorch 2.13 and 2.14: it makes the pipe STEM<rank>.pipe, looks at it once a
second from a thread, and on a request writes a pickle of its flight recorder to a file named after its rank. In
collectives the main thread sleeps, or spins as CUDA does. RANK goes wrong.

With KIND "signal" the watchdog of rank 0 times out as that of 2.14 does, by a key in the store. With "line" that of the
last rank does as nccl2's of 2.15, which only prints a line."""
import ctypes
import hashlib
import os
import pathlib
import pickle
import struct
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).parents[2] / "integration"))
import tcp_store

KIND, CULPRIT = sys.argv[1], int(sys.argv[2])
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FOREIGN = int(os.environ.get("TEST_FOREIGN_KEYS", 0))  # number of extra keys in the store, which PyTorch does not make
STEPS = 7  # collectives that all ranks have left

# Functions that a look finds in PyTorch's own file.
LIBRARY = {}
exec(compile("def all_reduce(wait):\n    wait()\n\n\ndef all_gather(wait):\n    wait()\n",
             "/usr/lib/torch/distributed/distributed_c10d.py", "exec"), LIBRARY)


def spin():
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 1 << 30)  # spins


def sleep():
    threading.Event().wait()  # sleeps


class Recorder:
    def __init__(self):
        self.entries = []
        self.lock = threading.Lock()

    def enter(self, name):
        with self.lock:
            now = time.time_ns()
            number = len(self.entries) + 1
            self.entries.append({
                "record_id": number - 1, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": number,
                "p2p_seq_id": 0, "op_id": number, "profiling_name": f"nccl:{name}", "time_created_ns": now,
                "duration_ms": 0.5, "input_sizes": ((1024,),), "input_dtypes": ["Float"], "output_sizes": ((1024,),),
                "output_dtypes": ["Float"], "state": "scheduled", "time_discovered_started_ns": None,
                "time_discovered_completed_ns": None, "retired": False, "timeout_ms": 600000, "is_p2p": False,
                "thread_id": "1", "thread_name": "python",
                "frames": [{"name": "step", "filename": "train.py", "line": 88}]})

    def leave(self):
        with self.lock:
            self.entries[-1].update(state="completed", retired=True, time_discovered_completed_ns=time.time_ns())

    def dump(self):
        with self.lock:
            return pickle.dumps({
                "version": "2.10", "comm_lib_version": "2.28.9",
                # As large as a real dump of some hundred collectives with their stacks.
                "nccl_comm_state": {"0": {"trace": "x" * 110_000}},
                "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(WORLD)))}},
                "pg_status": {"0": {"last_enqueued_collective": len(self.entries)}}, "entries": self.entries},
                protocol=2)


class Hostile:
    def __reduce__(self):
        return os.mkdir, (os.environ["TEST_FOLDER"] + "/owned",)


def answer(path, dump):
    """Writes a dump, or the fault of KIND in its place, and a line as PyTorch 2.11 does."""
    print(f"[rank{RANK}]:[E1126 22:04:03.605023204 ProcessGroupNCCL.cpp:1628] [PG ID 0 PG GUID 0(default_pg) Rank "
          f"{RANK}] ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1, only active collectives: 0",
          file=sys.stderr, flush=True)
    if KIND == "hostile" and RANK == CULPRIT:
        dump = pickle.dumps({"entries": [Hostile()]}, protocol=2)
    if KIND == "cut" and RANK == CULPRIT:
        dump = dump[:len(dump) // 2]
    if KIND == "slow":
        time.sleep(8)  # PyTorch looks up the names of C++ frames for its first dump
    with open(path, "wb") as file:
        file.write(dump)
        if KIND == "huge" and RANK == CULPRIT:
            file.truncate(1 << 40)


def serve(recorder):
    """The thread that PyTorch calls its heartbeat monitor."""
    pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + f"{RANK}.pipe"
    old = os.environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE")  # the user speaks the names before 2.9
    target = os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE" if old else "TORCH_FR_DUMP_TEMP_FILE"] + str(RANK)
    assert int(old or os.environ["TORCH_FR_BUFFER_SIZE"]) > 0
    if os.path.exists(pipe):
        os.unlink(pipe)
    os.mkfifo(pipe)  # fails without the folder, which ends the rank
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    while not (KIND == "unread" and RANK == CULPRIT):
        if os.read(reader, 128):
            answer(target, recorder.dump())
        time.sleep(1)
    os.close(reader)


def watchdog():
    """Times out. PyTorch ends the process some seconds later, once the ranks have dumped their recorders."""
    time.sleep(2)
    if KIND == "signal":
        store = tcp_store.Client((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
        if FOREIGN:
            key = tcp_store.text
            store.send(b"".join(bytes([1]) + key(f"/of somebody/{i}") + key("x" * 64) for i in range(FOREIGN)))
        store.set("/exception_dump", struct.pack("<i", RANK))
    else:
        print(f"[rank{RANK}]:[E1126 22:04:03.6 ProcessGroupNCCL.cpp:685] [Rank {RANK}] Watchdog caught collective "
              "operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, Timeout(ms)=2000) ran for 2000 milliseconds "
              "before timing out." + "\nframe #0: c10::Error::Error" * 400, file=sys.stderr, flush=True)
    time.sleep(12)
    os.abort()


def step(recorder, name, wait):
    recorder.enter(name)
    LIBRARY[name](wait)
    recorder.leave()


def collectives_go_on(recorder):
    """A long step of the GPU: the main thread spins at one place while collectives begin and end."""
    while True:
        time.sleep(0.5)
        recorder.leave()
        recorder.enter("all_reduce")


def main():
    recorder = Recorder()
    threading.Thread(target=serve, args=(recorder,), daemon=True).start()
    for _ in range(STEPS):
        step(recorder, "all_reduce", lambda: time.sleep(0.05))
    print("training", flush=True)
    wait = spin if KIND in ("spin", "moves", "computes") else sleep
    if (KIND, RANK) in (("signal", 0), ("line", WORLD - 1)):
        threading.Thread(target=watchdog, daemon=True).start()
    if KIND == "ends":
        return
    if KIND == "times out" and RANK == CULPRIT:
        # PyTorch's watchdog ends the process after a dump that nobody has asked for.
        answer(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(RANK), recorder.dump())
        os._exit(1)
    if KIND == "gil" and RANK == CULPRIT:
        recorder.enter("all_reduce")
        ctypes.PyDLL(None).sleep(1000)  # gil
    if KIND in ("never", "slow", "unread", "cut", "huge", "hostile", "signal", "line") and RANK == CULPRIT:
        time.sleep(1000)  # never
    if KIND == "computes" and RANK == CULPRIT:
        spin()
    if KIND == "moves":
        recorder.enter("all_reduce")
        threading.Thread(target=collectives_go_on, args=(recorder,), daemon=True).start()
        spin()
    if KIND == "spin":
        recorder.enter("all_reduce")
        spin()
    step(recorder, "all_gather" if KIND == "mismatch" and RANK == CULPRIT else "all_reduce", wait)


main()
