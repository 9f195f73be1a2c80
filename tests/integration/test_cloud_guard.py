"""The guard on the user's machine, which terminates machines that cannot terminate themselves: the fake of Lambda with
real machines, whose meter runs until a client terminates them."""
import os
import pathlib
import signal
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

import cloud_keys  # noqa: E402
from guard_world import GuardWorld  # noqa: E402
from harness import BINARY, PYTHON, REPOSITORY, alive, read, until  # noqa: E402


@pytest.fixture
def world(hosts, tmp_path):
    with GuardWorld(hosts, tmp_path) as made:
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


def test_a_lease_ends_although_the_client_was_killed(world):
    world.fake.faults.add({"face": "lambda", "action": "terminate", "do": {"kind": "status", "status": 503}})
    run = world.up("--guard", "here", "--lifetime", "60s")
    until(lambda: "gets its lease" in run.err() or run.process.poll() is not None, 100, "the first contact")
    guard = world.guard()
    assert os.getsid(guard) == guard, "it has a session of its own"
    (client,) = world.processes(b"up", b"lab")
    os.kill(client, signal.SIGKILL)
    (machine,) = world.live()
    until(lambda: not world.live(), 120, "the end of its lease")
    assert machine.ended - machine.launched < 60 + 60, (machine.ended, machine.launched)
    until(lambda: not alive(guard), 30, "nothing is left to guard")
    log = world.log()
    assert "'lab': its lease is over; ending it" in log and "'lab' is terminated; it cost" in log, log
    assert log.endswith("nothing is left to guard\n") and cloud_keys.LAMBDA_KEY not in log, log
    (rental,) = world.rentals()
    assert rental["closed_ms"] > 0 and rental["nodes"] == []
    assert world.guards() == [], "no guard is left for terminated machines"


def test_a_guard_writes_down_at_once_that_it_is_refused(world):
    """The log names the machine, its cost and the place to terminate it. The machine ends once the provider permits."""
    world.fake.faults.add({"face": "lambda", "action": "terminate", "times": -1, "do": {
        "kind": "error", "status": 403, "code": "global/account-inactive", "message": "You may not end it."}})
    began = time.monotonic()
    assert world.up("--guard", "here", "--lifetime", "60s").wait(100).rc == 0
    (machine,) = world.live()
    until(lambda: "still costs" in world.log(), 100, "it is written down")
    assert time.monotonic() - began < 120, world.log()
    (line,) = [line for line in world.log().splitlines() if "still costs" in line]
    for words in ("'lab': ", machine.id, "USD an hour", "You may not end it.", "https://cloud.lambda.ai/instances"):
        assert words in line, line
    world.fake.faults.remove()
    until(lambda: not world.live(), 60, "its end")
    until(lambda: not world.guards(), 30, "nothing is left to guard")


def test_a_killed_guard_is_started_again_and_ends_an_idle_machine(world):
    ended = world.up("--guard", "here", "--autostop", "60s").wait(120)
    assert ended.rc == 0 and ended.err.rstrip().endswith("at the latest, guarded here"), ended
    first = world.guard()
    assert cloud_keys.LAMBDA_KEY.encode() not in pathlib.Path(f"/proc/{first}/cmdline").read_bytes()
    os.kill(first, signal.SIGKILL)
    until(lambda: not alive(first), 10)
    # Without the key the command cannot terminate anything, and says so.
    ended = world.lockstep("cluster", "list", env={"LAMBDA_API_KEY": None})
    assert ended.rc == 0 and "no guard runs, so nobody ends 'lab'" in ended.err, ended
    assert "nobody ends it but you" in ended.out and world.guards() == [], ended
    ended = world.lockstep("cost")
    assert "the guard of 'lab' did not run; it runs again" in ended.err and "rented, guarded here" in ended.out, ended
    second = world.guard()
    ended = world.lockstep("cluster", "list")
    assert ended.err == "" and "guarded here" in ended.out and world.guard() == second, ended
    for path in (world.state / "guard.log", world.state / "guard.lock"):
        assert path.stat().st_mode & 0o777 == 0o600 and cloud_keys.LAMBDA_KEY not in read(path)
    (machine,) = world.machines.all
    assert world.live(), "it was not idle for so long yet"
    until(lambda: not world.live(), 150, "it is ended when it is idle")
    until(lambda: not alive(second), 30, "nothing is left to guard")
    assert "idle" in world.log() and machine.is_off()
    assert world.rentals()[0]["closed_ms"] > 0


def test_a_python_program_that_names_lambda_gets_a_guard(world):
    program = world.client.folder / "main.py"
    program.write_text(f"""
import lockstep
gpu = lockstep.ondemand_cluster("lab", "A10:1", "lambda", options=["--allow-from", "{world.client.addr}/32"])
print(gpu.run(["echo it works"])[0].code)
""")
    env = {"PYTHONPATH": REPOSITORY / "python", "LOCKSTEP_BINARY": BINARY, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = world.start(program, program=(PYTHON,), cwd=world.client.folder,
                        env=world.client.environment(env)).wait(150)
    assert ended.rc == 0 and ended.out.splitlines() == ["it works", "0"], ended
    assert "a guard on this machine ends lab's" in ended.err and len(world.live()) == 1 and world.guard(), ended
    ended = world.lockstep("down", "lab")
    assert ended.rc == 0 and not world.live(), ended


def test_nobody_else_ends_it(world):
    """Refused without a guard. With --i-will-watch the output says who ends the machines, and no guard runs."""
    ended = world.up().wait(60)
    assert ended.rc == 1 and "cannot end its own bill: --guard here, --guard HOST or --i-will-watch" in ended.err, ended
    ended = world.up("--guard", "host.example.com").wait(60)
    assert ended.rc == 1 and "the guard on host.example.com: the name host.example.com does not" in ended.err, ended
    # A guard that does not come up: nothing is rented.
    (world.state / "guard.log").mkdir(parents=True)
    ended = world.up("--guard", "here").wait(60)
    assert ended.rc == 1 and "guard.log" in ended.err, ended
    assert world.fake.world.machines == {} and world.guards() == []
    ended = world.up("--i-will-watch").wait(120)
    assert ended.rc == 0 and "it runs until you end it with lockstep down lab" in ended.err, ended
    ended = world.lockstep("cost")
    assert "rented, nobody ends it but you" in ended.out and world.guards() == [], ended
    ended = world.lockstep("down", "lab")
    assert ended.rc == 0 and not world.live(), ended


def test_down_leaves_the_guard_nothing_to_do(world):
    ended = world.up("--guard", "here").wait(120)
    assert ended.rc == 0, ended
    guard = world.guard()
    assert world.lockstep("down", "lab").rc == 0 and not world.live()
    until(lambda: not alive(guard), 30, "it goes by itself")
    assert "ending" not in world.log()
