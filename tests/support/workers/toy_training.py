"""A training job without the training: steps, checkpoints, and a record of the workers. Standard library only.

    toy_training.py FOLDER STEP_MS

FOLDER is shared by all hosts. Step n is committed, as FOLDER/steps/<n>, by rank 0 once every rank of its world
has said over TCP that it has done step n; a new world goes on behind the last committed step. The job ends after
the first step at whose end FOLDER/finish exists. A worker that finds a broken rule writes a line to
FOLDER/violations: a step committed twice, two workers of one rank at one store. The reader of FOLDER/events checks the
other rules: a worker's first line names the workers that were alive with the same round and rank (each holds a lock
for life).
"""
import fcntl
import json
import os
import pathlib
import re
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
import tcp_store  # noqa: E402

FOLDER = pathlib.Path(sys.argv[1])
STEP = float(sys.argv[2]) / 1000
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
MASTER = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
KEY = "toy_training/rank_0"


def current_round():
    """Returns the last round in the agent's log, which names a round before its workers start."""
    with open(os.environ["TOY_AGENT_LOG"], errors="replace") as log:
        rounds = re.findall(r"\bround (\d+): node", log.read())
    return int(rounds[-1]) if rounds else -1


ROUND = current_round()
AGENT = pathlib.Path(os.environ["TOY_AGENT_LOG"]).name
PLACE = f"round_{ROUND}.rank_{RANK}."
WHO = {"round": ROUND, "rank": RANK, "world": WORLD, "master": f"{MASTER[0]}:{MASTER[1]}", "host": socket.gethostname(),
       "pid": os.getpid(), "restarts": int(os.environ["TORCHELASTIC_RESTART_COUNT"]), "agent": AGENT,
       "life": f"{PLACE}{AGENT}.{os.getpid()}"}
WHO.update(json.loads(os.environ.get("TOY_LIES", "{}")))  # for tests of the readers of the records


def append(name, **more):
    line = json.dumps({"at": time.monotonic(), **WHO, **more}) + "\n"
    fd = os.open(FOLDER / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(fd, line.encode())  # one write: lines of several workers don't mix
    os.close(fd)


def live():
    """Locks a file until this process ends in any way (all hosts share a kernel). Returns the file, and the names of
    other locked files with the same round and rank.

    The file is locked before it gets its name, and other files are read after that: of two workers, one sees the other.
    """
    draft = FOLDER / f"drafts/life.{WHO['life']}"
    file = open(draft, "w")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    draft.rename(FOLDER / f"lives/{WHO['life']}")
    names = [entry.name for entry in os.scandir(FOLDER / "lives") if entry.name.startswith(PLACE)]
    return file, [name for name in names if name != WHO["life"] and is_alive(name)]


def is_alive(life):
    with open(FOLDER / f"lives/{life}") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True


def last_step():
    """Returns the number of the last step, and whether the job ended with this step."""
    numbers = [int(entry.name) for entry in os.scandir(FOLDER / "steps")]
    if not numbers:
        return 0, False
    step = json.loads((FOLDER / f"steps/{max(numbers)}").read_text())
    return step["step"], step["final"]


def commit(step, final, done_by):
    """Writes the step whole or not at all, and only once."""
    draft = FOLDER / f"drafts/{ROUND}.{WHO['host']}.{WHO['pid']}"
    draft.write_text(json.dumps({"at": time.monotonic(), **WHO, "step": step, "final": final, "done_by": done_by}))
    try:
        os.link(draft, FOLDER / f"steps/{step}")
    except FileExistsError:
        append("violations", what="a step committed twice", step=step)
        sys.exit(3)
    draft.unlink()


class Line:
    """JSON lines over one connection. A peer that is gone ends this worker with an error, as NCCL would."""

    def __init__(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        self.connection = connection
        self.file = connection.makefile("r")

    def put(self, value):
        self.connection.sendall(json.dumps(value).encode() + b"\n")

    def get(self):
        line = self.file.readline()
        if not line:
            sys.exit("toy_training: a peer is gone")
        return json.loads(line)


def gather():
    """Returns rank 0's connections to the other ranks of this round."""
    listener = socket.create_server(("", 0))
    address = socket.gethostbyname(socket.gethostname())
    store = tcp_store.Client(MASTER)
    store.set(KEY, json.dumps([ROUND, address, listener.getsockname()[1]]))
    others = {}
    while len(others) < WORLD - 1:
        line = Line(listener.accept()[0])
        hello = line.get()
        if hello["master"] != WHO["master"] or hello["round"] != ROUND or hello["world"] != WORLD:
            continue
        if hello["rank"] in others:
            append("violations", what="two of one rank came", other=hello)
        others[hello["rank"]] = line
    listener.close()
    return others


def meet():
    """Returns another rank's connection to rank 0 of this round."""
    store = tcp_store.Client(MASTER)
    store.socket.settimeout(None)
    while True:
        store.wait(KEY)
        store.receive(1)
        place = json.loads(store.get(KEY))
        if place[0] == ROUND:
            try:
                line = Line(socket.create_connection(tuple(place[1:]), 1))
                line.put(WHO)
                return line
            except OSError:
                pass
        time.sleep(0.005)  # the address belonged to an earlier round


def lead():
    others = gather()
    step, final = last_step()
    append("events", what="together", step=step)
    while True:
        for line in others.values():
            line.put([step, final])
        if final:
            return
        time.sleep(STEP)
        step += 1
        final = (FOLDER / "finish").exists()
        done_by = {0: WHO["host"]}
        for rank, line in others.items():
            done, host = line.get()
            assert done == step, f"rank {rank} has done {done}, not {step}"
            done_by[rank] = host
        commit(step, final, done_by)


def follow():
    line = meet()
    while True:
        step, final = line.get()
        if final:
            return
        time.sleep(STEP)
        line.put([step + 1, WHO["host"]])


lock, beside = live()
append("events", what="start", beside=beside)
lead() if RANK == 0 else follow()
append("events", what="end")
