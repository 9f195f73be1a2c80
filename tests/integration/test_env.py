"""A worker's start: its exact environment, and a clean process."""
import os
import re
import signal
import uuid

import pytest

from harness import RECORDER_NAMES, SCRIPTS, TOKEN, free_port, one_line
from nodes import Job

WORKER_NAMES = set("""LOCAL_RANK RANK GROUP_RANK ROLE_RANK ROLE_NAME LOCAL_WORLD_SIZE WORLD_SIZE
GROUP_WORLD_SIZE ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS
TORCHELASTIC_RUN_ID TORCHELASTIC_USE_AGENT_STORE TORCH_NCCL_ASYNC_ERROR_HANDLING TORCHELASTIC_ERROR_FILE
TORCHELASTIC_SIGNALS_TO_HANDLE""".split())


def envs(lockstep, *args, count=1, env=None, rc=0, **options):
    ended = lockstep.run_worker(*args, actions=[f"env={lockstep.facts}"], env=env, **options)
    assert ended.rc == rc, str(ended)
    lockstep.ended = ended
    return [lockstep.worker_env(rank) for rank in range(count)]


def test_names_are_exactly_those_of_torchrun(lockstep):
    (first, second) = envs(lockstep, "--nproc-per-node", 2, count=2)
    inherited = set(lockstep.environment()) | {TOKEN}
    for env in (first, second):
        assert set(env) - inherited == WORKER_NAMES | {"OMP_NUM_THREADS", "LOCKSTEP_AGENT"} | RECORDER_NAMES
        assert inherited <= set(env)


def test_values(lockstep):
    found = envs(lockstep, "--nproc-per-node", 3, "--max-restarts", 5, "--role", "trainer",
                 "--log-dir", lockstep.logs, count=3)
    attempt = lockstep.attempt(0)
    for rank, env in enumerate(found):
        assert {name: env[name] for name in WORKER_NAMES - {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"}} == {
            "LOCAL_RANK": str(rank), "RANK": str(rank), "ROLE_RANK": str(rank), "GROUP_RANK": "0",
            "ROLE_NAME": "trainer", "LOCAL_WORLD_SIZE": "3", "WORLD_SIZE": "3", "GROUP_WORLD_SIZE": "1",
            "ROLE_WORLD_SIZE": "3", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "5",
            "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
            "TORCHELASTIC_ERROR_FILE": str(attempt / str(rank) / "error.json"),
            "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT"}
        assert env["MASTER_ADDR"] in ("127.0.0.1", "localhost")
        assert 1024 <= int(env["MASTER_PORT"]) < 65536
        assert str(uuid.UUID(env["TORCHELASTIC_RUN_ID"])) == env["TORCHELASTIC_RUN_ID"]
    assert len({env["MASTER_PORT"] for env in found}) == 1


def test_static_backend_keeps_what_was_given(lockstep):
    port = free_port()
    (env,) = envs(lockstep, "--master-port", port)
    assert (env["MASTER_PORT"], env["TORCHELASTIC_RUN_ID"]) == (str(port), "none")
    (env,) = envs(lockstep, "--master-port", port, "--rdzv-id", "job7", "--master-addr", "localhost")
    assert (env["MASTER_ADDR"], env["TORCHELASTIC_RUN_ID"]) == ("localhost", "job7")


def test_run_id_of_a_dynamic_backend_is_kept(lockstep):
    (env,) = envs(lockstep, "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job8")
    assert env["TORCHELASTIC_RUN_ID"] == "job8"


def test_standalone_overrides_the_run_id(lockstep):
    (env,) = envs(lockstep, "--standalone", "--rdzv-id", "job9")
    assert str(uuid.UUID(env["TORCHELASTIC_RUN_ID"]))


def test_two_jobs_at_once_do_not_share_a_port(lockstep):
    go = lockstep.folder / "go"
    runs = [lockstep.start_worker("--standalone", actions=[f"env={d}", f"touch={d}", f"wait={go}"])
            for d in (lockstep.facts, lockstep.home)]
    lockstep.ready(1), lockstep.ready(1, folder=lockstep.home)
    go.touch()
    assert [run.wait().rc for run in runs] == [0, 0]
    ports = {re.search(rb"MASTER_PORT=(\d+)", (d / "0.env").read_bytes())[1] for d in (lockstep.facts, lockstep.home)}
    assert len(ports) == 2


def test_omp_num_threads_is_one_when_unset_and_said_once(lockstep):
    for env in envs(lockstep, "--nproc-per-node", 2, count=2):
        assert env["OMP_NUM_THREADS"] == "1"
    assert lockstep.ended.err.count("OMP_NUM_THREADS") == 1


@pytest.mark.parametrize("args, value, want", [(["--nproc-per-node", 2], "3", "3"), ([], None, None), ([], "7", "7")])
def test_omp_num_threads_otherwise_stays(lockstep, args, value, want):
    env = envs(lockstep, *args, env={"OMP_NUM_THREADS": value})[0]
    assert env.get("OMP_NUM_THREADS") == want
    assert "OMP_NUM_THREADS" not in lockstep.ended.err


def test_inherited_async_error_handling_stays(lockstep):
    assert envs(lockstep, env={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"})[0]["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "0"


def test_variables_of_an_outer_launcher_are_replaced(lockstep):
    (env,) = envs(lockstep, env={"RANK": "7", "WORLD_SIZE": "9", "MASTER_ADDR": "elsewhere", "LOCAL_RANK": "5",
                                 "TORCHELASTIC_RESTART_COUNT": "4"})
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT")
    assert [env[name] for name in names] == ["0", "1", "0", "0"]
    assert env["MASTER_ADDR"] != "elsewhere"


def test_signals_to_handle_are_told_to_the_worker(lockstep):
    (env,) = envs(lockstep, "--signals-to-handle", "SIGTERM,SIGUSR1")
    assert env["TORCHELASTIC_SIGNALS_TO_HANDLE"] == "SIGTERM,SIGUSR1"


def test_virtual_local_rank(lockstep):
    ended = lockstep.run_worker("--virtual-local-rank", "--nproc-per-node", 2, actions=[f"env={lockstep.facts}"],
                                env={"CUDA_VISIBLE_DEVICES": "4, 7"})
    assert ended.rc == 0, str(ended)
    found = [lockstep.worker_env(rank) for rank in (0, 1)]
    assert [(e["LOCAL_RANK"], e["RANK"], e["CUDA_VISIBLE_DEVICES"]) for e in found] == [
        ("0", "0", "4"), ("0", "1", "7")]


def test_virtual_local_rank_without_a_list(lockstep):
    found = envs(lockstep, "--virtual-local-rank", "--nproc-per-node", 2, count=2)
    assert [e["CUDA_VISIBLE_DEVICES"] for e in found] == ["0", "1"]


def test_virtual_local_rank_with_too_few_devices(lockstep):
    ended = lockstep.run_worker("--virtual-local-rank", "--nproc-per-node", 3, actions=[f"env={lockstep.facts}"],
                                env={"CUDA_VISIBLE_DEVICES": "4,7"})
    assert ended.rc == 1, str(ended)
    assert "CUDA_VISIBLE_DEVICES" in ended.err
    assert list(lockstep.facts.iterdir()) == []


# The process.

def state(lockstep, *args, rc=0, actions=(), **options):
    ended = lockstep.run_worker(*args, actions=[f"state={lockstep.facts}", *actions], **options)
    assert ended.rc == rc, str(ended)
    return lockstep.worker_state()


@pytest.mark.parametrize("isolation", ["auto", "cgroup", "guardian", "none", "pidns"])
def test_no_descriptor_above_two(lockstep, isolation):
    inherited = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    try:
        found = state(lockstep, "--isolation", isolation, pass_fds=inherited)
    finally:
        for fd in inherited:
            os.close(fd)
    assert found["fds"].split() == ["0", "1", "2"]


def test_no_descriptor_above_two_with_tee_and_redirect(lockstep):
    found = state(lockstep, "-t", 1, "-r", 2, "--log-dir", lockstep.logs)
    assert found["fds"].split() == ["0", "1", "2"]


@pytest.mark.parametrize("isolation", ["auto", "none", "pidns"])
def test_signal_mask_and_dispositions_are_clean(lockstep, isolation):
    def blocked():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGPIPE})
    found = state(lockstep, "--isolation", isolation, preexec_fn=blocked)
    assert int(found["SigBlk"], 16) == 0
    assert int(found["SigIgn"], 16) == 0


def test_ignored_pipe_signal_does_not_leak(lockstep):
    found = state(lockstep, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN), restore_signals=False)
    assert int(found["SigIgn"], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_directory_umask_and_session(lockstep):
    found = state(lockstep, umask=0o027)
    assert found["cwd"] == str(lockstep.work)
    assert found["umask"] == "027"
    assert found["pid"] == found["pgid"] == found["sid"]


def test_stdin_is_inherited(lockstep):
    source = lockstep.folder / "input"
    source.write_text("one\ntwo\n")
    with open(source) as file:
        ended = lockstep.run_worker(actions=[f"stdin={lockstep.facts}"], stdin=file)
    assert ended.rc == 0, str(ended)
    assert lockstep.fact("0.stdin") == "one\ntwo\n"


def test_no_thread_or_process_stands_between_on_auto(lockstep):
    """auto: the worker's pid, parent and mounts are as without any isolation."""
    run = lockstep.start_worker("--isolation", "auto", actions=[
        f"state={lockstep.facts}", f"touch={lockstep.facts}", "await"])
    pid = lockstep.ready(1)[0]
    agent = run.agent()
    found = lockstep.worker_state()
    assert int(found["ppid"]) == agent
    for link in ("ns/pid", "ns/mnt", "ns/user"):
        assert os.readlink(f"/proc/{pid}/{link}") == os.readlink(f"/proc/self/{link}")
    run.signal(signal.SIGTERM)
    run.wait()


def test_pidns_workers_have_a_proc_of_their_own(lockstep):
    run = lockstep.start_worker("--isolation", "pidns", actions=[
        f"state={lockstep.facts}", f"touch={lockstep.facts}", "pause"])
    inner = lockstep.ready(1)[0]
    outer = [pid for pid, comm in run.living().items() if comm == "test_worker"]
    assert len(outer) == 1
    assert lockstep.worker_state()["Pid"] == str(inner)  # its own /proc agrees with its own getpid()
    assert os.readlink(f"/proc/{outer[0]}/ns/pid") != os.readlink("/proc/self/ns/pid")
    run.signal(signal.SIGTERM)
    assert run.wait().rc == 1


def test_an_inherited_ignored_sigchld_hides_no_end(lockstep):
    """Ignored, it would let the kernel throw away how the workers ended."""
    ended = lockstep.run_worker(actions=["exit=3"], restore_signals=False,
                                preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert ended.rc == 1 and "exitcode  : 3 " in ended.err, str(ended)


def test_numa_binding_reaches_the_workers(lockstep):
    """Without GPUs, local ranks share the machine's cores out among themselves."""
    cpus = sorted(os.sched_getaffinity(0))
    count = min(2, len(cpus))
    ended = lockstep.run("--numa-binding", "exclusive", "--nproc-per-node", count, "--no-python", "/bin/sh", "-c",
                         f"grep Cpus_allowed_list /proc/self/status > {lockstep.facts}/cpus.$$RANK")
    assert ended.rc == 0, str(ended)
    seen = [lockstep.fact(f"cpus.{rank}").split(":")[1].strip() for rank in range(count)]
    assert len(set(seen)) == count, seen


def test_the_monitor_interval_delays_nothing(lockstep):
    ended = lockstep.run_worker("--monitor-interval", 60, actions=["exit=0"])
    assert ended.rc == 0 and ended.seconds < 10, str(ended)


@pytest.mark.parametrize("given, want", [("", "127.0.0.1"), ("[127.0.0.1]", "127.0.0.1"), ("127.0.0.2", "127.0.0.2")])
def test_local_addr(lockstep, given, want):
    (env,) = envs(lockstep, env={"PET_LOCAL_ADDR": given})
    assert env["MASTER_ADDR"] == want


def test_signals_to_handle_are_told_as_given(lockstep):
    (env,) = envs(lockstep, "--signals-to-handle", "SIGTERM, SIGUSR1,SIGKILL")
    assert env["TORCHELASTIC_SIGNALS_TO_HANDLE"] == "SIGTERM, SIGUSR1,SIGKILL"


# --- --framework jax ---

JAX = ("--framework", "jax", "--max-restarts", 1)


def jax_lines(*runs):
    """Returns the output of each process by rank: "attempt 1: 2 processes met, device 0"."""
    lines = []
    for run in runs:
        ended = run.wait(30)
        assert ended.rc == 0, str(ended)
        lines += re.findall(r"^process (.*)$", ended.out, re.M)
    return sorted(lines)


def test_processes_of_jax_meet_at_a_port_that_is_free(lockstep):
    """In each attempt: the first ends by a failure."""
    met = jax_lines(lockstep.start("--nproc-per-node", 2, *JAX, SCRIPTS / "like_jax.py"))
    assert met == [f"{rank} attempt {attempt}: 2 met, devices {rank}" for rank in (0, 1) for attempt in (0, 1)]


@pytest.mark.parametrize("backend", ["lockstep", "c10d"])
def test_processes_of_jax_meet_over_nodes(lockstep, backend):
    job = Job(lockstep, backend)
    met = jax_lines(*(job.script(number, SCRIPTS / "like_jax.py", args=JAX) for number in (0, 1)))
    assert met == [f"{rank} attempt {attempt}: 2 met, devices all" for rank in (0, 1) for attempt in (0, 1)]


def test_jax_has_no_port_with_fixed_ranks(lockstep):
    ended = lockstep.run("--nnodes", 2, "--node-rank", 0, "--master-addr", "127.0.0.1", *JAX, SCRIPTS / "like_jax.py")
    one_line(ended, 1, "--framework jax does not work with --rdzv-backend static", "--rdzv-endpoint")
