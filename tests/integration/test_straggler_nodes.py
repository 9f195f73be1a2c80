"""A rank in a job of several nodes slows the ranks of all nodes down."""
import json
import pathlib
import re
import signal
import subprocess
import tempfile

from harness import BINARY, until
from nodes import Job, listening
from test_gpus import DRIVER, TWO_GPUS, machine  # noqa: F401
from test_hang import why

SLOW = """import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = int(os.environ["RANK"])
folder = os.environ["TEST_FOLDER"]
while True:
    slow = rank == dist.get_world_size() - 1 and not os.path.exists(folder + "/even")
    time.sleep(0.3 if slow else 0.1)
    dist.all_reduce(torch.ones(4))
"""

# Becomes an agent whose host has this name.
NAMED = ("/usr/bin/unshare", "--uts", "/bin/sh", "-c", 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"')


def test_the_straggler_of_another_node_is_told_once_and_known_on_all_nodes(machine, lockstep, tmp_path):  # noqa: F811
    """Each node has one rank, so no node can compare its own. The node of the late rank has GPUs."""
    machine.put_nvidia()
    machine.nvidia_smi(TWO_GPUS)
    gpus = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", DRIVER, "sh", machine.folder,
            machine.devices)
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    job = Job(lockstep, "lockstep")
    events = [tmp_path / f"events{number}.jsonl" for number in range(2)]
    runs = []

    def told(number, kind):
        lines = [json.loads(line) for line in events[number].read_text().splitlines()]
        return [(line["rank"], line["words"]) for line in lines if line["event"] == kind]

    with tempfile.TemporaryDirectory(dir="/tmp") as temp:
        try:
            for number in range(2):
                words = job.command(number, "--hang-after", "off", "--events", events[number],
                                    "--report", tmp_path / f"report{number}.json")
                program = (*(gpus if number == 1 else ()), *NAMED, f"host-{number}", BINARY, "run")
                runs.append(lockstep.start(*words, script, program=program, env=machine.env() | {
                    "TEST_FOLDER": temp, "OMP_NUM_THREADS": "1", "LOGLEVEL": "INFO", "CUDA_VISIBLE_DEVICES": "1"}))
                listening(job.port)
            until(lambda: "straggler: " in runs[0].err(), 180, f"the straggler is told: {runs[0].err()}")
            name = "rank 1 (node host-1, GPU 1)"
            words = re.search(rf"straggler: ({re.escape(name)} makes the others wait: it waits \d+ % of the time, "
                              r"the median \d+ %)", runs[0].err())
            assert words, runs[0].err()
            for number, run in enumerate(runs):
                until(lambda run=run: f"\nstraggler: {words[1]}\n" in why(lockstep, run).stdout, 20, "why says so")
                table = subprocess.run([BINARY, "top", f"pid-{run.pid}", "--once"], env=lockstep.environment(),
                                       capture_output=True, text=True, timeout=60).stdout
                assert f"\nstraggler: {words[1]}\n" in table, table
                assert told(number, "straggler") == [(1, words[1])], events[number].read_text()
            pathlib.Path(temp, "even").touch()
            until(lambda: "straggler: rank 1 no longer makes the others wait" in runs[0].err(), 180, runs[0].err())
            for number in range(2):
                until(lambda number=number: told(number, "straggler_over"), 20, "the other node hears of the end")
                assert len(told(number, "straggler")) == 1, events[number].read_text()
            assert [run.err().count("straggler: ") for run in runs] == [2, 0], runs[1].err()
            assert "straggler: " not in why(lockstep, runs[1]).stdout
            runs[0].signal(signal.SIGTERM)
            for number, run in enumerate(runs):
                ended = run.wait(60)
                assert re.search(rf"; straggler: {re.escape(name)} for \d.*; logs: ", ended.err), str(ended)
                slow = json.loads((tmp_path / f"report{number}.json").read_text())["straggler"]
                assert (slow["rank"], slow["name"]) == (1, name) and slow["ms"] > 0, slow
        finally:
            for run in runs:
                run.kill()
