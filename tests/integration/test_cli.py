"""The command line as a torchrun user knows it, and where ours is friendlier."""
import json
import os
import re
import signal
import subprocess

import pytest

from harness import BINARY, SCRIPTS, one_line

TOUCH = SCRIPTS / "touch.py"
SHOW = SCRIPTS / "show.py"


def touched(lockstep):
    return sorted(int(p.name) for p in lockstep.facts.iterdir())


def shown(ended):
    """Returns the output of show.py by rank."""
    found = {}
    for line in ended.out.splitlines():
        item = json.loads(line)
        found[int(item["env"]["RANK"])] = item
    return found


def touch(lockstep, *args, env=None, **options):
    return lockstep.run(*args, env={"OUT_DIR": lockstep.facts, **(env or {})}, **options)


def test_standalone_starts_every_rank(lockstep):
    ended = touch(lockstep, "--standalone", "--nproc-per-node", 4, TOUCH)
    assert ended.rc == 0, str(ended)
    assert touched(lockstep) == [0, 1, 2, 3]


@pytest.mark.parametrize("spelling", [
    ["--nproc-per-node", "2"], ["--nproc_per_node", "2"], ["--nproc-per-node=2"], ["--nproc_per-node=2"],
    ["--nproc-per", "2"], ["--nproc_per", "2"], ["--nproc", "2"]])
def test_spellings_of_an_option(lockstep, spelling):
    ended = touch(lockstep, *spelling, TOUCH)
    assert ended.rc == 0, str(ended)
    assert touched(lockstep) == [0, 1]


def test_short_options_take_their_value_in_every_form(lockstep):
    for form in (["-r3"], ["-r", "3"], ["-r=3"], ["--redirect", "3"], ["--redirects=3"]):
        ended = lockstep.run("--log-dir", lockstep.logs, *form, "--no-python", "/bin/echo", "hello")
        assert (ended.rc, ended.out) == (0, ""), (form, str(ended))
    assert len(list(lockstep.logs.glob("*/attempt_0/0/stdout.log"))) == 5


@pytest.mark.parametrize("count", [1, 2])
def test_nproc_cpu_counts_usable_cpus(lockstep, count):
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < count:
        pytest.skip(f"only {len(usable)} CPUs")
    chosen = set(usable[:count])
    ended = touch(lockstep, "--nproc-per-node", "cpu", TOUCH,
                  preexec_fn=lambda: os.sched_setaffinity(0, chosen))
    assert ended.rc == 0, str(ended)
    assert len(touched(lockstep)) == count


def test_nproc_auto_without_gpus_is_cpus(lockstep):
    chosen = {min(os.sched_getaffinity(0))}
    ended = touch(lockstep, "--nproc-per-node", "auto", TOUCH, env={"CUDA_VISIBLE_DEVICES": ""},
                  preexec_fn=lambda: os.sched_setaffinity(0, chosen))
    assert ended.rc == 0, str(ended)
    assert touched(lockstep) == [0]


@pytest.mark.parametrize("args, words", [
    (["--nproc-per-node", "gpu"], ["cuda"]),
    (["--nproc-per-node", "bad"], ["nproc", "bad"]),
    (["--nproc-per-node", "0"], ["nproc"]),
    (["--nproc-per-node", "-1"], ["nproc"]),
    (["--nproc-per-node="], ["nproc"]),
    (["--nnodes", "2:1"], ["nodes", "2", "1"]),
    (["--nnodes", "0"], ["nodes", "0"]),
    (["--nnodes", "abc"], ["nnodes", "abc"]),
    (["--nnodes", "1:2:3"], ["min:max"]),
    (["--monitor-interval", "0"], ["monitor"]),
    (["--monitor-interval", "nan"], ["monitor_interval must be > 0 and finite, got nan"]),
    (["--monitor-interval=-Infinity"], ["monitor_interval must be > 0 and finite, got -inf"]),
    (["--monitor-interval", "+INF"], ["monitor_interval must be > 0 and finite, got inf"]),
    (["--max-restarts", "-1"], ["max", "restarts"]),
    (["-r", "4"], ["redirects", "4"]),
    (["-t", "0:9"], ["tee", "0:9"]),
    (["--local-ranks-filter", "x"], ["filter", "x"]),
    (["--rdzv-conf", "a"], ["rendezvous", "'a'"]),
    (["--rdzv-conf", "=1"], ["rendezvous", "=1"]),
    (["--rdzv-backend", "nonesuch"], ["nonesuch"]),
    (["--rdzv-endpoint", "somewhere"], ["port", "somewhere"]),
    (["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:65536"], ["65536"]),
    (["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:http"], ["http"]),
    (["--no-python", "-m"], ["no-python"]),
    (["--logs-specs", "x"], ["logs-specs"]),
    (["--shutdown-timeout", "-1"], ["shutdown"]),
    (["--event-log-handler", "nonesuch"], ["nonesuch"]),
    (["--nnodes", "2"], ["2 nodes", "place to meet", "--rdzv-endpoint"]),
    (["--nnodes", "1:2"], ["2 nodes", "place to meet"]),
    (["--standalone", "--nnodes", "2"], ["--standalone", "one node"]),
    (["--exit-barrier-timeout", "-1"], ["exit_barrier_timeout", "-1"]),
    (["--log-max-size", "some"], ["--log-max-size", "some"]),
    (["--restart-backoff", "-1"], ["--restart-backoff", "-1"]),
    (["--hang-after", "soon"], ["--hang-after", "soon"]),
    (["--hang-after", "off", "--on-hang", "end"], ["--on-hang end", "--hang-after is off"]),
])
def test_values_that_are_refused(lockstep, args, words):
    one_line(touch(lockstep, *args, TOUCH, env={"CUDA_VISIBLE_DEVICES": ""}), 1, *words)
    assert touched(lockstep) == []
    assert list(lockstep.temp.iterdir()) == []


@pytest.mark.parametrize("args, words", [
    ([], ["script"]),
    (["--bogus", str(TOUCH)], ["--bogus"]),
    (["--max-restarts", "x", str(TOUCH)], ["max", "x"]),
    (["--monitor-interval", "soon", str(TOUCH)], ["soon"]),
    (["--start-method", "teleport", str(TOUCH)], ["teleport"]),
    (["--numa-binding", "teleport", str(TOUCH)], ["teleport"]),
    (["--standalone=1", str(TOUCH)], ["standalone"]),
    (["--nproc-per-node"], ["nproc"]),
    (["--rank-order", "random", str(TOUCH)], ["rank-order", "random"]),
    (["--exit-barrier-timeout", "soon", str(TOUCH)], ["soon"]),
    (["--explain=1", str(TOUCH)], ["explain"]),
    (["--rdzv", "x", str(TOUCH)], ["ambiguous", "--rdzv-backend", "--rdzv-id"]),
])
def test_usage_errors(lockstep, args, words):
    one_line(touch(lockstep, *args), 2, *words)
    assert touched(lockstep) == []
    assert list(lockstep.temp.iterdir()) == []


@pytest.mark.parametrize("typed, meant", [
    ("--nnode-s", "--nnodes"), ("--nproc-pre-node", "--nproc-per-node"), ("--max-restart5", "--max-restarts"),
    ("--standalnoe", "--standalone"), ("--isolatoin", "--isolation"), ("--nprocs", "--nproc-per-node"),
    ("--backend", "--rdzv-backend")])
def test_did_you_mean(lockstep, typed, meant):
    one_line(lockstep.run(typed, "1", TOUCH), 2, "did you mean", meant)


def test_did_you_mean_a_subcommand(lockstep):
    ended = lockstep.run("rnu", program=[BINARY])
    assert ended.rc == 2
    assert "run" in ended.err


def test_a_script_where_the_command_belongs(lockstep):
    for typed in ("train.py", str(TOUCH), "--nnodes"):
        one_line(lockstep.run(typed, program=[BINARY]), 2, f"did you mean 'lockstep run {typed}'?")


def test_a_variable_near_one_that_is_read(lockstep):
    ended = touch(lockstep, TOUCH, env={"PET_NPROCS": "2", "PET_NAME": "x"})
    assert ended.rc == 0 and len(touched(lockstep)) == 1, str(ended)
    assert "the environment variable PET_NPROCS is not read: did you mean PET_NPROC_PER_NODE?" in ended.err
    assert "PET_NAME" not in ended.err


def test_module(lockstep):
    ended = lockstep.run("-m", "json.tool", "--help")
    assert ended.rc == 0, str(ended)
    assert "usage:" in ended.out


def test_no_python_runs_the_program_itself(lockstep):
    (lockstep.work / "script.sh").write_text('echo x > "$OUT_DIR/$RANK"\n')
    ended = touch(lockstep, "--nproc-per-node", 2, "--no-python", "/bin/bash", "script.sh")
    assert ended.rc == 0, str(ended)
    assert touched(lockstep) == [0, 1]


def test_no_python_looks_in_path(lockstep):
    ended = lockstep.run("--no-python", "echo", "found")
    assert (ended.rc, ended.out) == (0, "found\n"), str(ended)


@pytest.mark.parametrize("extra", [[], ["--no-python"]])
def test_run_path(lockstep, extra):
    ended = lockstep.run("--run-path", *extra, SHOW, "a", "--b")
    assert ended.rc == 0, str(ended)
    assert shown(ended)[0]["argv"] == [str(SHOW), "a", "--b"]


def test_python_is_unbuffered(lockstep):
    assert shown(lockstep.run(SHOW))[0]["flags"]["unbuffered"] is True


def test_options_after_the_script_are_the_scripts(lockstep):
    ended = lockstep.run(SHOW, "--nproc-per-node", "9", "--", "x")
    assert ended.rc == 0, str(ended)
    (only,) = shown(ended).values()
    # The first "--" after the script is dropped by torchrun on Python 3.14 and kept by older ones.
    assert only["argv"][1:] in (["--nproc-per-node", "9", "x"], ["--nproc-per-node", "9", "--", "x"])


def test_double_dash_before_the_script(lockstep):
    ended = lockstep.run("--", SHOW, "a")
    assert ended.rc == 0, str(ended)
    assert shown(ended)[0]["argv"] == [str(SHOW), "a"]


def test_environment_gives_defaults(lockstep):
    assert len(shown(lockstep.run(SHOW, env={"PET_NPROC_PER_NODE": "2"}))) == 2
    assert len(shown(lockstep.run("--nproc-per-node", 1, SHOW, env={"PET_NPROC_PER_NODE": "2"}))) == 1


def test_environment_reaches_the_workers(lockstep):
    assert shown(lockstep.run(SHOW, env={"PET_ROLE": "x"}))[0]["env"]["PET_ROLE"] == "x"


@pytest.mark.parametrize("name, value, rc", [
    ("PET_STANDALONE", "true", 1), ("PET_STANDALONE", "1", 0), ("PET_STANDALONE", "0", 0),
    ("PET_STANDALONE", "", 1), ("PET_NO_PYTHON", "yes", 1),
    ("PET_MAX_RESTARTS", "a", 2), ("PET_MAX_RESTARTS", "-1", 1), ("PET_MONITOR_INTERVAL", "x", 2),
    ("PET_NNODES", "", 1), ("PET_NNODES", "1:1", 0), ("PET_START_METHOD", "bogus", 1),
    ("PET_SHUTDOWN_TIMEOUT", "x", 2), ("PET_SIGNALS_TO_HANDLE", "SIGTERM", 0),
    ("PET_LOGS_SPECS", "x", 0), ("PET_NUMA_BINDING", "bogus", 0), ("PET_PRINT_COMPLETION", "bash", 0),
    ("PET_TRAINING_SCRIPT", "x", 0), ("PET_REDIRECTS", "7", 1)])
def test_environment_rules(lockstep, name, value, rc):
    ended = touch(lockstep, TOUCH, env={name: value})
    # torchrun takes any PET_START_METHOD at parse time; only --run-path looks at it.
    assert ended.rc in ({0, 1} if name == "PET_START_METHOD" else {rc}), str(ended)
    assert touched(lockstep) == ([0] if ended.rc == 0 else [])


def test_python_exec(lockstep):
    ended = lockstep.run("train.py", "a", env={"PYTHON_EXEC": "/bin/echo"}, cwd=with_script(lockstep))
    assert (ended.rc, ended.out) == (0, "-u train.py a\n"), str(ended)


def with_script(lockstep):
    (lockstep.work / "train.py").write_text("print('ran')\n")
    return lockstep.work


def test_active_virtual_environment(lockstep):
    venv = lockstep.folder / "venv/bin"
    venv.mkdir(parents=True)
    (venv / "python3").write_text('#!/bin/sh\necho "venv $*"\n')
    (venv / "python3").chmod(0o755)
    (venv / "python").symlink_to("python3")
    ended = lockstep.run("train.py", env={"PYTHON_EXEC": None, "VIRTUAL_ENV": venv.parent},
                         cwd=with_script(lockstep))
    assert (ended.rc, ended.out) == (0, "venv -u train.py\n"), str(ended)


def test_local_rank_is_substituted(lockstep):
    ended = lockstep.run("--nproc-per-node", 2, SHOW, "${local_rank}", "$local_rank.log", "$$x", "${rank}")
    assert ended.rc == 0, str(ended)
    for rank, item in shown(ended).items():
        assert item["argv"][1:] == [str(rank), f"{rank}.log", "$x", "${rank}"]


@pytest.mark.parametrize("args, extra", [
    ([], ["--local-rank=0"]), (["--use-env"], []), (["--use_env"], [])])
def test_legacy_launch(lockstep, args, extra):
    ended = lockstep.run(*args, SHOW, "a", program=[BINARY, "launch"])
    assert ended.rc == 0, str(ended)
    assert shown(ended)[0]["argv"][1:] == [*extra, "a"]
    assert shown(ended)[0]["env"]["LOCAL_RANK"] == "0"


def test_run_never_adds_local_rank(lockstep):
    assert shown(lockstep.run(SHOW, "a"))[0]["argv"][1:] == ["a"]


def test_legacy_launch_without_python_needs_use_env(lockstep):
    ended = lockstep.run("--no-python", "/bin/true", program=[BINARY, "launch"])
    assert ended.rc == 1, str(ended)
    assert "use-env" in ended.err.replace("_", "-")


def test_a_link_named_torchrun_is_run(lockstep):
    link = lockstep.folder / "torchrun"
    link.symlink_to(BINARY)
    ended = touch(lockstep, "--nproc_per_node", 2, TOUCH, program=[link])
    assert ended.rc == 0, str(ended)
    assert touched(lockstep) == [0, 1]
    assert lockstep.run("--bogus", program=[link]).err.startswith("torchrun: error: ")


@pytest.mark.parametrize("words", [["--version"], ["version"], ["run", "--version"], ["launch", "--version"],
                                   ["store", "--version"], ["run", "--nnodes", "2", "--version", "script.py"]])
def test_version(words):
    ended = subprocess.run([BINARY, *words], capture_output=True, text=True)
    assert ended.returncode == 0
    assert re.fullmatch(r"lockstep \d+\.\d+\.\d+.*\n", ended.stdout)


OPTIONS = """nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf standalone max-restarts
monitor-interval start-method event-log-handler role module no-python run-path log-dir redirects tee
log-line-prefix-template local-ranks-filter duplicate-stdout-filters duplicate-stderr-filters node-rank
master-addr master-port local-addr logs-specs numa-binding signals-to-handle shutdown-timeout
virtual-local-rank isolation report exit-code log-prefix rank-order exit-barrier-timeout rdzv-token-file
no-replacement spares slots explain restart-backoff version log-max-size fold
hang-after on-hang aid container container-mounts container-workdir container-env""".split()


def test_help_names_every_option():
    ended = subprocess.run([BINARY, "run", "--help"], capture_output=True, text=True)
    assert ended.returncode == 0
    for option in OPTIONS:
        assert re.search(rf"--{option}\b", ended.stdout), option
    assert max(map(len, ended.stdout.splitlines())) <= 100
    assert "PYTHON_EXEC" in ended.stdout


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["launch", "--help"], ["store", "--help"], ["help"]])
def test_help_is_not_an_error(args):
    ended = subprocess.run([BINARY, *args], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout and not ended.stderr


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"], ["--version"], ["cluster", "list", "--json"],
                                  ["run", "--print-completion", "bash"]])
def test_text_that_cannot_be_written_is_no_success(args, tmp_path):
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with open("/dev/full", "w") as full:
        ended = subprocess.run([BINARY, *args], stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert ended.returncode == 1
    assert re.fullmatch("lockstep: error: write to standard output: "
                        "(No space left on device|not all of the output was written)\n", ended.stderr), ended.stderr


@pytest.mark.parametrize("args", [["run", "--help"], ["jobs", "--json"], ["--version"]])
def test_a_reader_that_has_seen_enough_gets_no_words(args, tmp_path):
    """`lockstep ... | head -1` is quiet, and no success. Only some subcommands leave SIGPIPE to the system."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    ended = subprocess.run([BINARY, *args], stdout=write_end, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "XDG_STATE_HOME": str(tmp_path)})
    os.close(write_end)
    assert ended.returncode in (141, -signal.SIGPIPE) and ended.stderr == "", ended


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_valid(shell, tmp_path):
    ended = subprocess.run([BINARY, "run", "--print-completion", shell], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "nproc-per-node" in ended.stdout
    script = tmp_path / "completion"
    script.write_text(ended.stdout)
    checked = subprocess.run([shell, "-n", script], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_same_exit_codes_through_every_isolation(lockstep):
    for isolation in ("auto", "pidns", "cgroup", "guardian", "none"):
        assert lockstep.run_worker("--isolation", isolation, actions=["exit=0"]).rc == 0
        assert lockstep.run_worker("--isolation", isolation, actions=["exit=3"]).rc == 1
        one_line(lockstep.run("--isolation", isolation, "--bogus"), 2)


