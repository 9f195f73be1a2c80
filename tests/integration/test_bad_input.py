"""Bad input gets one line and an exit code. No process and no directory is left behind.

Single options are tested in test_cli.py; this file tests faults of the environment.
"""
import os
import pwd
import resource
import socket
import subprocess
import time

import pytest

from harness import BINARY, WORKER, one_line, status_of, until
from tcp_store import ECHO, HANDSHAKE, Client, closed_by_peer


@pytest.fixture
def clean(lockstep):
    """Afterwards neither the temporary directory, nor home, nor the current directory has anything new."""
    (lockstep.work / "train.py").write_text("print('ran')\n")
    yield lockstep
    for place in (lockstep.temp, lockstep.home):
        assert list(place.iterdir()) == [], place
    assert [p.name for p in lockstep.work.iterdir()] == ["train.py"]
    assert not lockstep.logs.exists()


def test_no_script(clean):
    one_line(clean.run(), 2, "script")


def test_script_not_found(clean):
    one_line(clean.run("--log-dir", clean.logs, "absent.py"), 1, "absent.py")


def test_script_is_a_directory_without_main(clean):
    one_line(clean.run(clean.work), 1, clean.work.name)


@pytest.mark.parametrize("words, rc", [(["link"], 2), (["link", "--may-outlive"], 2), (["host-job", "start"], 1)])
def test_an_end_of_a_connection_needs_a_connection(clean, words, rc):
    """epoll takes neither /dev/null nor a file."""
    one_line(clean.run(*words, program=[BINARY]), rc, "started by clients on hosts")
    with open(clean.work / "train.py") as file:
        one_line(clean.run(*words, program=[BINARY], stdin=file), rc, "started by clients on hosts")


def test_a_link_needs_a_connection_for_its_output_too(clean):
    one_line(clean.run("link", program=[BINARY], stdin=subprocess.PIPE), 2, "started by clients on hosts")


def test_program_not_found(clean):
    one_line(clean.run("--no-python", "/no/such"), 1, "/no/such", "no such file")
    one_line(clean.run("--no-python", "no-such-program"), 1, "no-such-program")


def test_a_program_of_this_folder_needs_its_folder(clean):
    one_line(clean.run("--no-python", "train.py"), 1, "find train.py in PATH", "write ./train.py")


def test_program_not_executable(clean):
    one_line(clean.run("--no-python", "./train.py"), 1, "train.py", "permission denied")
    one_line(clean.run("--no-python", "/tmp"), 1, "/tmp")


def test_python_not_found(clean):
    one_line(clean.run("train.py", env={"PYTHON_EXEC": "/no/such/python"}), 1, "/no/such/python")
    one_line(clean.run("train.py", env={"PYTHON_EXEC": None, "PATH": str(clean.home)}), 1, "python3")


def test_a_module_of_the_current_folder_does_not_run_in_place_of_pythons(lockstep):
    """`python -c` looks there first; accelerate is asked by such a program, and the folder may be anybody's."""
    for name in ("accelerate", "csv", "email", "json", "torch"):
        (lockstep.work / f"{name}.py").write_text(f"open({str(lockstep.work / 'ran')!r}, 'a').write('{name} ')\n")
    lockstep.run("accelerate", "launch", "--cpu", "absent.py")
    assert not (lockstep.work / "ran").exists(), (lockstep.work / "ran").read_text()


def test_log_dir_is_a_file(clean):
    one_line(clean.run("--log-dir", "train.py", "train.py"), 1, "train.py", "file")
    one_line(clean.run("--log-dir", "train.py/below", "train.py"), 1, "train.py")


def test_log_dir_cannot_be_made(clean):
    one_line(clean.run("--log-dir", "/proc/nowhere", "train.py"), 1, "/proc/nowhere")


@pytest.mark.skipif(os.getuid() != 0, reason="changes the user")
def test_log_dir_not_writable(clean):
    nobody = pwd.getpwnam("nobody").pw_uid
    closed = clean.folder / "closed"
    closed.mkdir(mode=0o755)
    for folder in (clean.folder, *clean.folder.parents):
        if str(folder) != "/tmp" and folder != folder.parent and folder.stat().st_uid == os.getuid():
            folder.chmod(folder.stat().st_mode | 0o055) if "pytest" in str(folder) else None
    os.chown(clean.temp, nobody, -1)
    ended = clean.run("--log-dir", closed / "logs", clean.work / "train.py", user=nobody)
    one_line(ended, 1, "closed/logs", "permission denied")
    assert list(closed.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="changes the user")
def test_an_ordinary_user_can_run_it(lockstep):
    nobody = pwd.getpwnam("nobody").pw_uid
    for folder in (lockstep.folder, *lockstep.folder.parents):
        if "pytest" in str(folder):
            folder.chmod(0o755)
    for folder in (lockstep.temp, lockstep.facts):
        os.chown(folder, nobody, -1)
    for isolation, left in (("auto", "daemon"), ("guardian", "daemon"), ("none", "exit=0")):
        ended = lockstep.run_worker("--isolation", isolation, "--nproc-per-node", 2, user=nobody,
                                    actions=[f"touch={lockstep.facts}", left])
        assert ended.rc == 0, str(ended)


def test_port_taken_names_the_holder(clean):
    with socket.socket() as holder:
        holder.bind(("0.0.0.0", 0))
        holder.listen()
        port = holder.getsockname()[1]
        ended = clean.run("--master-port", port, "train.py")
    one_line(ended, 1, port, os.getpid(), "python")


@pytest.mark.skipif(os.getuid() != 0, reason="makes a namespace")
def test_own_host_name_that_does_not_resolve(lockstep):
    started = time.monotonic()
    ended = lockstep.run(
        "--nproc-per-node", 2, "--no-python", WORKER, f"env={lockstep.facts}",
        program=["unshare", "--uts", "sh", "-c",
                 'hostname no-such-host-anywhere; exec "$@"', "sh", BINARY, "run"])
    assert ended.rc == 0, str(ended)
    assert time.monotonic() - started < 5
    assert lockstep.worker_env()["MASTER_ADDR"] in ("127.0.0.1", "localhost")


@pytest.fixture
def store(lockstep):
    """A running job: yields (the run, the address of its store), then lets the job end."""
    go = lockstep.folder / "go"
    run = lockstep.start_worker("--nproc-per-node", 2, actions=[
        f"env={lockstep.facts}", f"touch={lockstep.facts}", f"wait={go}"])
    lockstep.ready(2)
    env = lockstep.worker_env()
    yield run, (env["MASTER_ADDR"], int(env["MASTER_PORT"]))
    go.touch()
    ended = run.wait()
    assert ended.rc == 0, str(ended)


@pytest.mark.parametrize("garbage", [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\xff" * 64, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64])
def test_garbage_on_the_store_port_closes_that_connection_only(store, garbage):
    run, address = store
    with socket.create_connection(address, 5) as other, socket.create_connection(address, 5) as peer:
        peer.sendall(garbage)
        assert closed_by_peer(peer)
        other.sendall(HANDSHAKE)
        assert other.recv(4) == ECHO
    assert run.process.poll() is None


def test_a_length_of_a_terabyte_closes_that_connection_only(store):
    run, address = store
    with socket.create_connection(address, 5) as peer:
        peer.sendall(bytes.fromhex("00CEF7853C") + b"\x01" + (1 << 40).to_bytes(8, "little"))
        assert closed_by_peer(peer)
    assert Client(address).add("alive", 1)
    assert run.process.poll() is None


def test_a_flood_on_the_store_port_costs_bounded_memory(store):
    run, address = store
    agent = run.agent()
    chunk = b"\x01" * (1 << 20)
    with socket.create_connection(address, 5) as peer:
        peer.settimeout(5)
        try:
            for _ in range(200):
                peer.sendall(chunk)
        except OSError:
            pass
    assert until(lambda: Client(address).add("alive", 1))
    peak = int(status_of(agent)["VmHWM"].split()[0])
    assert peak < 64 << 10, f"{peak} kB"


TWO = ["--nnodes", "2"]


def over(backend, endpoint=None, conf=None):
    args = [*TWO, "--rdzv-backend", backend]
    args += ["--rdzv-endpoint", endpoint] if endpoint is not None else []
    return [*args, "--rdzv-conf", conf] if conf else args


@pytest.mark.parametrize("args, words", [
    (TWO, ["place to meet", "--rdzv-endpoint"]),
    (over("lockstep"), ["place to meet"]),
    (over("lockstep", "h:0"), ["port 0"]),
    (over("lockstep", "h:65536"), ["65536"]),
    (over("lockstep", "::1"), ["::1", "brackets"]),
    (over("lockstep", "http://h"), ["http://h"]),
    (over("c10d", "a b:1"), ["a b:1"]),
    (over("c10d", "h:"), ["h:", "65536"]),
    (over("c10d", "h:-1"), ["h:-1"]),
    (over("etcd", "a:1,b:1"), ["a:1,b:1"]),
    (over("etcd3", "a,,b"), ["a,,b"]),
    (over("static", "h"), ["port is missing", "--master-port"]),
    (over("c10d", "h", "join_timeout=0"), ["join_timeout", "positive"]),
    (over("lockstep", "h", "join_timeout=soon"), ["join_timeout", "integer"]),
    (over("etcd3", "h", "close_timeout=-1"), ["close_timeout", "positive"]),
    (over("c10d", "h", "store_type=redis"), ["store_type", "redis"]),
    (over("c10d", "h", "is_host=perhaps"), ["is_host", "perhaps"]),
    (over("lockstep", "h", "is_host=perhaps"), ["is_host", "perhaps"]),
    (over("etcd3", "h", "lease_ttl=soon"), ["lease_ttl", "integer"]),
    (over("etcd3", "h", "lease_ttl=0"), ["lease_ttl", "between 2 and 3600"]),
    (over("c10d", None, "store_type=file"), ["file that all nodes see"]),
    (over("c10d", "/nowhere/at/all", "store_type=file"), ["/nowhere/at/"]),
    (over("etcd-v2", "h", "protocol=gopher"), ["protocol", "gopher"]),
    (over("etcd", "h", "cacert=/no/ca.pem"), ["cacert", "/no/ca.pem"]),
    ([*over("static", "h:1"), "--rank-order", "host"], ["--rank-order", "--node-rank"]),
    ([*over("etcd", "h"), "--rank-order", "address"], ["--rank-order", "arrival"]),
    ([*over("lockstep", "h"), "--rank-order", "node-rank"], ["--node-rank"]),
    ([*over("lockstep", "h"), "--rdzv-id", ""], ["--rdzv-id", "empty"]),
    ([*TWO, "--node-rank", "2"], ["node_rank=2", "nnodes=2"]),
    ([*TWO, "--node-rank", "-1"], ["node_rank=-1"]),
])
def test_places_to_meet_that_are_refused(clean, args, words):
    one_line(clean.run(*args, "train.py"), 1, *words)
    one_line(clean.run("--explain", *args, "train.py"), 1, *words)


@pytest.fixture
def key(lockstep):
    path = lockstep.folder / "key"
    path.write_text("s3cret")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o602, 0o4610])
def test_a_token_that_others_may_read_is_refused(clean, key, mode):
    key.chmod(mode)
    one_line(clean.run("--rdzv-token-file", key, "train.py"), 1, key, f"mode {mode:04o}", "chmod 600")


def test_a_token_that_is_none_is_refused(clean, key):
    one_line(clean.run("--rdzv-token-file", clean.folder / "absent", "train.py"), 1, "absent", "no such file")
    one_line(clean.run("--rdzv-token-file", clean.folder, "train.py"), 1, clean.folder.name)
    key.write_text(" \n")
    one_line(clean.run("--rdzv-token-file", key, "train.py"), 1, key, "empty")
    key.write_text("x" * 4097)
    one_line(clean.run("--rdzv-token-file", key, "train.py"), 1, key, "4096")
    one_line(clean.run("train.py", env={"LOCKSTEP_RDZV_TOKEN": ""}), 1, "LOCKSTEP_RDZV_TOKEN", "empty")
    pipe = clean.folder / "pipe"
    os.mkfifo(pipe, 0o600)
    one_line(clean.run("--rdzv-token-file", pipe, "train.py"), 1, "pipe", "not a plain file")


@pytest.mark.skipif(os.getuid() != 0, reason="changes the user")
def test_a_token_of_somebody_else_is_refused(clean, key):
    for folder in (clean.folder, *clean.folder.parents):
        if "pytest" in str(folder):
            folder.chmod(0o755)
    nobody = pwd.getpwnam("nobody").pw_uid
    one_line(clean.run("--rdzv-token-file", key, clean.work / "train.py", user=nobody), 1, key, "permission denied")


@pytest.mark.parametrize("env, words", [
    ({"SLURM_NODEID": "x"}, ["SLURM_NODEID=x"]),
    ({"SLURM_NODEID": "7"}, ["node 7 of 2", "SLURM_STEP_NUM_NODES"]),
    ({"SLURM_STEP_NUM_TASKS": "16"}, ["Slurm", "several tasks on a node", "--ntasks-per-node=1"]),
    ({"SLURM_STEP_NODELIST": "n[1-"}, ["place to meet", "Slurm"]),
])
def test_a_scheduler_that_makes_no_sense(clean, env, words):
    slurm = {"SLURM_JOB_ID": 1, "SLURM_STEP_ID": 0, "SLURM_STEP_NUM_NODES": 2, "SLURM_STEP_NUM_TASKS": 2,
             "SLURM_STEP_NODELIST": "n[1-2]", "SLURM_PROCID": 0, "SLURM_NODEID": 0}
    one_line(clean.run("train.py", env={**slurm, **env}), 1, *words)


@pytest.mark.parametrize("content, word", [("#!/no/such/interpreter\n", "/no/such/interpreter"),
                                           ("what is this\n", "Exec format error")])
def test_a_program_that_cannot_run_leaves_nothing_behind(lockstep, content, word):
    program = lockstep.work / "program"
    program.write_text(content)
    program.chmod(0o755)
    ended = lockstep.run("--no-python", program)
    assert ended.rc == 1 and word in ended.err, str(ended)
    assert not list(lockstep.temp.iterdir())


def test_a_signal_or_a_refusal_takes_back_the_log_folders(lockstep):
    base = lockstep.folder / "new/deep"
    program = lockstep.work / "program"
    program.write_text("no magic here\n")
    program.chmod(0o755)
    ended = lockstep.run("--log-dir", base, "--no-python", program)
    assert ended.rc == 1 and not (lockstep.folder / "new").exists(), str(ended)


def test_a_timer_file_that_is_no_fifo_is_not_deleted(lockstep):
    precious = lockstep.folder / "precious"
    precious.write_text("data")
    ended = lockstep.run("--no-python", "/bin/true",
                         env={"TORCHELASTIC_ENABLE_FILE_TIMER": 1, "TORCHELASTIC_TIMER_FILE": precious})
    assert ended.rc == 1 and precious.read_text() == "data", str(ended)


# --- the limit of open files ---


@pytest.mark.parametrize("limit, which", [(1, "the agent"), (2, "/usr/bin/python3")])
def test_too_few_processes(clean, limit, which):
    """Root has no such limit; this user has no other process."""
    user = 54_321
    for folder in (clean.folder, *clean.folder.parents):
        if "pytest" in str(folder):
            folder.chmod(0o755)
    os.chown(clean.temp, user, -1)
    limits = (limit, limit)
    ended = clean.run("--isolation", "guardian", "train.py", user=user,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, limits))
    assert ended.rc == 1 and len(ended.error_lines) == 1, ended
    assert f"start {which}" in ended.err and "limit of processes" in ended.err and "ulimit -u" in ended.err, ended


def files(count):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))}


@pytest.mark.parametrize("limit", [4, 8, 10, 14, 19])
def test_too_few_open_files(clean, limit):
    one_line(clean.run("train.py", **files(limit)), 1, f"the limit of open files is {limit}", "at least 20 are needed",
             "ulimit -n")


@pytest.mark.parametrize("logs, needed", [((), 34), (("-r", 3), 26), (("-t", 3), 58), (("-t", "1:1"), 36)])
def test_too_few_open_files_for_so_many_workers(clean, logs, needed):
    one_line(clean.run("--nproc-per-node", 8, *logs, "train.py", env={"OMP_NUM_THREADS": 1}, **files(24)), 1,
             "limit of open files is 24", f"{needed} are needed")


def test_just_enough_open_files(lockstep):
    assert lockstep.run_worker(actions=["exit=0"], **files(20)).rc == 0
    assert lockstep.run_worker("--nproc-per-node", 8, actions=["exit=0"], **files(34)).rc == 0


def test_too_few_open_files_for_a_store(clean):
    one_line(clean.run("--port", 0, program=(BINARY, "store"), **files(6)), 1, "limit of open files is 6", "ulimit -n")
