"""Machines on demand from Python, and the on-demand half of Hugging Face's script: a fake cloud with real machines
(tests/cloud/machines.py), which run Debian's cloud-init, sshd and pip."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from fake_clouds import cloud, server  # noqa: E402,F401
from harness import BINARY, PYTHON, REPOSITORY, until  # noqa: E402
from package_index import small_source_files, write_wheel  # noqa: E402
from rented_world import CloudWorld  # noqa: E402

EXAMPLE = REPOSITORY / "examples/run_on_remote.py"
PACKAGE = {"PYTHONPATH": REPOSITORY / "python", "LOCKSTEP_BINARY": BINARY, "PYTHONDONTWRITEBYTECODE": "1"}
HEAD = "import json, os, sys, lockstep\nfrom train import double, fail, where\n"
TRAIN = """
import os, socket, time

def double(n):
    print("doubling", n)
    return 2 * n

def where(_=None):
    return socket.gethostname(), os.path.basename(os.getcwd())

def fail():
    raise ValueError("of the function")

def wait():
    print("it works", flush=True)
    time.sleep(1000)
"""


class World:
    """A client with a project, and what Python programs there rent."""

    def __init__(self, hosts, folder):
        self.rented = CloudWorld(hosts, folder)
        self.fake, self.client = self.rented.fake, self.rented.client
        self.fake.world.settings.update(limits=0)
        self.project = self.client.folder / "proj"
        self.project.mkdir()
        self.write({"train.py": TRAIN})
        self.wheels = folder / "wheels"
        for name in ("toy_need", "torch"):
            write_wheel(self.wheels, name, "1.0", f"NAME = '{name}'\n")
        self.plugged = self.fake.world.on_launch
        self.fake.world.on_launch = self.launched

    def launched(self, wanted):
        """pip on the machine has what a project needs at hand."""
        told = self.plugged(wanted)
        machine = self.rented.machines.by_id[wanted.id]
        machine.path("/opt/toys").mkdir()
        for wheel in self.wheels.iterdir():
            (machine.path("/opt/toys") / wheel.name).write_bytes(wheel.read_bytes())
        machine.put("/etc/pip.conf", "[global]\nno-index = true\nfind-links = /opt/toys\n")
        return told

    def write(self, files):
        for name, text in files.items():
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text)

    def start(self, program, *args, **options):
        env = {**PACKAGE, "LOCKSTEP_CHECKIP_URL": self.fake.url, **self.fake.env}
        return self.client.start(program, *args, program=(PYTHON,), cwd=self.project, env=self.client.environment(env),
                                 **options)

    def run(self, program, *args, code=0):
        ended = self.start(program, *args).wait(200)
        assert ended.rc == code, ended
        return ended

    def python(self, text, code=0):
        self.write({"main.py": HEAD + text})
        return self.run("main.py", code=code)

    def lockstep(self, *words):
        return self.rented.lockstep(*words)

    def live(self):
        return [machine.id for machine in self.rented.live()]

    def all(self):
        return list(self.rented.machines.by_id)

    def close(self):
        self.rented.close()
        assert self.fake.failures == [] and self.fake.world.errors == []


@pytest.fixture
def world(hosts, tmp_path):
    made = World(hosts, tmp_path)
    yield made
    made.close()


SHOW = """
import json, sys, torch, toy_need, mine
print(json.dumps([sys.argv[1:], torch.__name__, toy_need.NAME, mine.VALUE]))
sys.exit(int(sys.argv[1]))
"""


def test_the_script_of_hugging_face_rents_runs_and_gives_back(world):
    """Its on-demand half to the end, with the example's arguments and code; --use_spot False means no spot."""
    world.write({**small_source_files("mine", "1.0", "VALUE = 1\n"), "examples/a b/show.py": SHOW,
                 "examples/a b/requirements.txt": "toy_need\n"})
    ended = world.run(EXAMPLE, "--instance", "A10G:1", "--provider", "cheapest", "--use_spot", "False",
                      "--max_price", "3", "--example", "a b/show.py", "7", "--host-like", "it's $HOME\n", "--",
                      "--instance", "x", code=7)
    assert ended.out.splitlines()[-1] == (
        '[["7", "--host-like", "it\'s $HOME\\n", "--instance", "x"], "torch", "toy_need", 1]'), ended
    assert "spot" not in ended.err and "is terminated; it cost" in ended.err, ended
    assert len(world.all()) == 1 and not world.live()
    # The error of a failed step has its last lines, and the machine is terminated all the same.
    world.write({"examples/a b/requirements.txt": "no_such_package\n"})
    ended = world.start(EXAMPLE, "--instance", "L4:1", "--provider", "aws", "--use_spot", "--example", "a b/show.py",
                        "0").wait(200)
    assert ended.rc not in (0, 2) and "no_such_package" in ended.err, ended
    assert ", spot" in ended.err and len(world.all()) == 2 and not world.live()


def test_functions_run_on_machines_that_are_rented_for_them(world):
    ended = world.python("""
if __name__ == "__main__":
    with lockstep.ondemand_cluster(name="lab", instance_type="A100:8", provider="aws", num_nodes=2, budget=40,
                                   autostop_mins=-1) as gpu:
        remote = lockstep.function(fn=double, system=gpu)
        assert remote(4) == 8
        names = sorted(lockstep.function(fn=where, system=gpu).map(range(2)))
        assert [folder for _, folder in names] == ["proj", "proj"] and len({name for name, _ in names}) == 2, names
        assert len(gpu.hosts()) == 2, gpu.hosts()
        assert [each.output for each in gpu.run([["cat", "/opt/toys/none"], "pwd"], check=False)][1:]
        gpu.keep_warm(90)
        cost = gpu.cost()
        assert 0 < cost < 40, cost
        try:
            lockstep.function(fn=fail, system=gpu)()
        except ValueError as error:
            assert error.args == ("of the function",)
        print("cost", cost)
    assert gpu.cost() >= cost
    print("in all", gpu.cost())
""")
    assert "doubling 4" in ended.out and "'lab' is terminated" in ended.err and "or idle for" not in ended.err, ended
    assert len(world.all()) == 2 and not world.live()
    total = float(ended.out.splitlines()[-1].removeprefix("in all "))
    assert total == pytest.approx(world.fake.world.micros() / 1e6, abs=0.02)


def test_machines_stay_without_a_with_block_and_are_taken_up_by_the_next_program(world):
    program = """
if __name__ == "__main__":
    gpu = lockstep.cluster(name="lab", instance_type="L4:1", provider="aws", use_spot=False)
    print(gpu.run(["hostname"], stream_logs=False)[0].output)
"""
    first, second = world.python(program), world.python(program)
    assert first.out == second.out and "'lab' is rented already" in second.err, (first, second)
    assert len(world.live()) == 1
    known = world.lockstep("exec", "lab", "--", "hostname")
    assert known.out.strip() == first.out.strip(), known
    # A machine that was lost meanwhile is rented again, and the project goes to the new machine.
    world.python("""
if __name__ == "__main__":
    gpu = lockstep.cluster(name="lab", instance_type="L4:1", provider="aws")
    remote = lockstep.function(fn=where, system=gpu)
    first, _ = remote()
    gpu.run([["sudo", "poweroff"]], stream_logs=False, check=False)  # its connection goes, too
    gpu._seen = 0.0  # as after five minutes
    second, folder = remote()
    assert second != first and folder == "proj", (first, second)
    gpu.teardown()
""")
    assert len(world.all()) == 2 and not world.live()


def test_rows_of_a_map_outlive_their_program_and_a_lost_machine_takes_no_other_along(world):
    """Values on the remaining machine are read there, and this machine is not terminated."""
    world.write({"work.py": """
import os, socket, time
def row(n):
    if n == 1:
        raise ValueError("of row", n)
    while n > 1 and not os.path.exists(os.path.expanduser(f"~/go{n}")):
        time.sleep(0.02)
    return n, socket.gethostname()
"""})
    world.write({"first.py": HEAD + """
from work import row
gpu = lockstep.ondemand_cluster(name="lab", instance_type="L4:1", provider="aws", num_nodes=2, autostop_mins=-1)
print("job", lockstep.map(row, range(4), system=gpu).job, flush=True)
sys.stdin.read()
"""})
    first = world.start("first.py", stdin=subprocess.PIPE)
    until(lambda: "job " in first.out() or first.process.poll() is not None, 60, "the job has begun")
    job = first.out().split()[-1]
    first.signal(signal.SIGKILL)
    first.wait()

    def told():
        return json.loads(world.lockstep("why", "--json", job).out)
    until(lambda: [row["state"] for row in told()["rows"]] == ["done", "failed", "running", "running"], 90, "two run")
    host = told()["rows"][2]["host"]
    kept = world.rented.machines.all[int(host[-1])]
    kept.path(f"/home/{kept.user}/go2").touch()
    made = f'made = lockstep.rows("{job}")\n'
    read = world.python(f'{made}print(json.dumps([made[0], repr(made.exception(1)), made[2]]))')
    assert json.loads(read.out)[1:] == ["ValueError('of row', 1)", [2, kept.name]], read
    (lost,) = [ident for ident, machine in world.rented.machines.by_id.items() if machine is not kept]
    world.fake.world.end(world.fake.world.machines[lost], "Server.InternalError")
    ended = world.lockstep("exec", "--nodes", host[-1], "lab", "--", "hostname")
    assert ended.out.strip() == kept.name, ended
    left = f"only --nodes {host[-1]} is left of the 2 machines of 'lab'; to rent all again: lockstep down lab"
    assert left in ended.err
    read = world.python(f"{made}print(json.dumps(made[2]))")
    assert json.loads(read.out) == [2, kept.name], read
    assert kept.up


@pytest.mark.parametrize("name", ["SIGINT", "exit"])
def test_they_are_given_back_however_the_program_ends(world, name):
    world.write({"main.py": HEAD + """
from train import wait
if __name__ == "__main__":
    with lockstep.ondemand_cluster(name="lab", instance_type="L4:1", provider="aws") as gpu:
        if sys.argv[1] == "exit":
            gpu.up_if_not()
            sys.exit(5)
        lockstep.function(fn=wait, system=gpu)()
"""})
    started = world.start("main.py", name)
    if name == "SIGINT":
        until(lambda: "it works" in started.out(), 120, "the function runs")
        started.signal(signal.SIGINT)
    ended = started.wait(120)
    assert ended.rc == (5 if name == "exit" else -signal.SIGINT), ended
    assert len(world.all()) == 1 and not world.live() and "'lab' is terminated" in ended.err, ended


def test_ctrl_c_while_a_machine_boots_gives_it_back(world):
    world.fake.world.settings.update(boot_s=600.0)
    world.write({"main.py": HEAD + """
with lockstep.ondemand_cluster(name="lab", instance_type="L4:1", provider="aws") as gpu:
    gpu.up_if_not()
"""})
    started = world.start("main.py")
    until(lambda: world.all() and "it is booting" in started.err(), 60, "it boots")
    started.signal(signal.SIGINT)
    ended = started.wait(120)
    assert ended.rc == -signal.SIGINT and "KeyboardInterrupt" in ended.err, ended
    assert len(world.all()) == 1 and not world.live()
    assert json.loads(world.lockstep("cost", "--json").out)["rentals"] == []


@pytest.mark.parametrize("given,words", [
    ("instance_type='A100:9'", ["nobody offers A100:9", "near it: "]),
    ("instance_type='B100:8'", ["B100"]),
    ("instance_type='A100:8', max_price=1", ["no offer of A100:8 can be taken", "over --max-price 1.00"]),
    ("instance_type='L4:1', budget=0.01", ["--budget 0.01 does not pay for ten minutes"]),
    ("instance_type='A100:1', provider='lambda', max_price=0.1", ["over --max-price 0.10"]),  # with a guard
    ("provider='azure'", ["no provider is called 'azure'", "aws, gcp, lambda, runpod"]),
    ("autostop_mins=0.5", ["--autostop 30s is too short: at least 60 s"]),
    ("options=['--lifetime', 'long']", ["--lifetime must be a length of time (got 'long')"]),
    ("image='x' * 9, provider='nobody,here'", ["no provider is called 'nobody'"]),
])
def test_what_can_not_be_rented_is_one_error_and_nothing_is(cloud, tmp_path, given, words):  # noqa: F811
    text = f"""
import lockstep
try:
    with lockstep.ondemand_cluster("lab", {given}) as gpu:
        gpu.run(["true"])
except lockstep.LockstepError as error:
    print(error)
"""
    env = {**os.environ, **PACKAGE, **cloud.env, "HOME": str(tmp_path), "LOCKSTEP_CHECKIP_URL": cloud.url}
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        env.pop(name, None)
    ended = subprocess.run([PYTHON, "-c", text], env={key: str(value) for key, value in env.items()}, cwd=tmp_path,
                           capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and len(ended.stdout.splitlines()) == 1, ended
    assert all(word in ended.stdout for word in words), ended
    assert not cloud.world.machines
