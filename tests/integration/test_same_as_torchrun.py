"""Compares with PyTorch 2.14's own torchrun: its options, and the environment of its workers."""
import json
import os
import pathlib
import re
import subprocess

import pytest

import test_options_differential as model
from harness import BINARY, RECORDER_NAMES, SCRIPTS, SUPPORT, free_port, peer

AID = {"PYTHONPATH": SUPPORT / "torch-2.6", "OMP_NUM_THREADS": 1}

# Every action of its parser, as what the model in test_options_differential.py says about one.
TABLE = """
import json
from torch.distributed.run import get_args_parser
print(json.dumps([dict(names=sorted(a.option_strings), type=getattr(a.type, "__name__", None), nargs=a.nargs,
                       choices=a.choices and list(a.choices), default=a.default)
                  for a in get_args_parser()._actions]))
"""


def of_argparse(action):
    """Returns the facts of an action that count. The choices of --numa-binding are an enum in PyTorch."""
    choices = action["choices"] and [str(choice) for choice in action["choices"]]
    return tuple(action["names"]), action["type"] if action["type"] in ("int", "float") else None, action["nargs"], \
        choices and tuple(choices)


def test_options(lockstep):
    done = subprocess.run([peer("2.14"), "-c", TABLE], capture_output=True, text=True, timeout=120,
                          env=lockstep.environment(AID))
    assert done.returncode == 0, done.stderr
    theirs = {of_argparse(action) for action in json.loads(done.stdout)}
    ours = {of_argparse(dict(names=sorted(a.option_strings), type=getattr(a.type, "__name__", None), nargs=a.nargs,
                             choices=a.choices and list(a.choices))) for a in model.reference_parser({})._actions}
    assert ours == theirs, (ours - theirs, theirs - ours)


def environment_of(lockstep, *args, program):
    """Returns the variables of a worker that its launcher did not have."""
    ours = program == (lockstep.folder / "torchrun",)
    given = {"PYTHON_EXEC": peer("2.14"), **AID} if ours else {
        "PEER_PROGRAM": "/usr/bin/torchrun", "PYTHON_EXEC": None, **AID}
    ended = lockstep.run("--standalone", "--nproc-per-node", 2, "--max-restarts", 3, *args, SCRIPTS / "show.py",
                         env=given, timeout=120, program=program)
    assert ended.rc == 0, str(ended)
    workers = [json.loads(line)["env"] for line in ended.out.splitlines() if line.startswith("{")]
    return sorted(workers, key=lambda env: env["RANK"])


OWN = re.compile("LOCKSTEP_|PEER_|PYTHON_EXEC$|TMPDIR$|HOME$|PWD$|OLDPWD$|_$|SHLVL$")
DIFFER = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"}


@pytest.mark.parametrize("args", [(), ("--role", "trainer", "--signals-to-handle", "SIGTERM", "--virtual-local-rank")],
                         ids=["plain", "more"])
def test_environment_of_a_worker(lockstep, args):
    theirs = environment_of(lockstep, *args, program=(peer("2.14"),))
    # `lockstep run` sets more: the variables of flight recorders.
    link = lockstep.folder / "torchrun"
    link.symlink_to(BINARY)
    ours = environment_of(lockstep, *args, program=(link,))
    assert len(ours) == len(theirs) == 2
    for our, their in zip(ours, theirs):
        our, their = ({name: value for name, value in env.items() if not OWN.match(name)} for env in (our, their))
        assert set(our) == set(their)
        assert {name for name in our if our[name] != their[name]} <= DIFFER
        assert pathlib.Path(our["TORCHELASTIC_ERROR_FILE"]).parts[-3:] == \
            pathlib.Path(their["TORCHELASTIC_ERROR_FILE"]).parts[-3:]


EXTENSION = """
import types
import torch

def load():
    module = types.ModuleType("torch.toy")
    module.is_available = lambda: True
    module.device_count = lambda: 3
    torch.utils.rename_privateuse1_backend("toy")
    torch._register_device_module("toy", module)
"""


def test_devices_of_an_extension(lockstep):
    """An extension that PyTorch loads by its entry point, as torch_npu: its name and `auto` count its devices."""
    about = lockstep.folder / "toy_backend-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy_backend\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[torch.backends]\ntoy = toy_backend:load\n")
    (lockstep.folder / "toy_backend.py").write_text(EXTENSION)
    # A file of anybody's in the current folder must not run.
    (lockstep.folder / "here").mkdir()
    for name in ("torch", "types"):
        (lockstep.folder / "here" / f"{name}.py").write_text(f"open({str(lockstep.folder / 'ran')!r}, 'w')\n")
    env = {**AID, "PYTHONPATH": f"{lockstep.folder}:{AID['PYTHONPATH']}"}
    ours = {"env": {**env, "PYTHON_EXEC": peer("2.14")}}
    theirs = {"env": {**env, "PYTHON_EXEC": None, "PEER_PROGRAM": "/usr/bin/torchrun"}, "program": (peer("2.14"),)}
    for asked in ("toy", "auto"):
        for who in (ours, theirs):
            ended = lockstep.start("--standalone", "--nproc-per-node", asked, SCRIPTS / "show.py",
                                   cwd=lockstep.folder / "here", **who).wait(120)
            assert ended.rc == 0 and ended.out.count('"WORLD_SIZE": "3"') == 3, ended
    assert not (lockstep.folder / "ran").exists()
    ended = lockstep.run("--nproc-per-node", "npu", SCRIPTS / "show.py", **ours, timeout=120)
    assert ended.rc == 1 and "Unsupported nproc_per_node value: npu" in ended.err, ended
    text = (lockstep.folder / "toy_backend.py").read_text()
    (lockstep.folder / "toy_backend.py").write_text(text.replace("True", "False"))
    ended = lockstep.run("--nproc-per-node", "toy", SCRIPTS / "show.py", **ours, timeout=120)
    assert ended.rc == 1 and "toy is not available" in ended.err, ended
    ended = lockstep.run("--explain", "--nproc-per-node", "auto", SCRIPTS / "show.py", **ours, timeout=120)
    assert ended.rc == 0 and f"workers here     {len(os.sched_getaffinity(0))} " in ended.out, ended


def test_rendezvous_info_of_a_standalone_job(lockstep):
    """At LOGLEVEL=INFO, line by line behind the log's own head; at the usual level nothing is said."""
    for who in ({"env": {"PYTHON_EXEC": peer("2.14"), **AID}},
                {"env": {"PEER_PROGRAM": "/usr/bin/torchrun", "PYTHON_EXEC": None, **AID}, "program": (peer("2.14"),)}):
        for level in ("INFO", "WARNING"):
            given = {**who, "env": {**who["env"], "LOGLEVEL": level}}
            ended = lockstep.run("--standalone", "--rdzv-id", "mine", SCRIPTS / "show.py", **given, timeout=120)
            run_id = json.loads(ended.out.splitlines()[-1])["env"]["TORCHELASTIC_RUN_ID"]
            lines = [line.partition("] ")[2] for line in ended.err.splitlines()]
            if level == "WARNING":
                assert "Rendezvous info:" not in lines, ended
                continue
            at = lines.index("Rendezvous info:")
            assert lines[at - 2:at + 4] == ["", "*" * 38, "Rendezvous info:", "--rdzv-backend=c10d "
                                            f"--rdzv-endpoint=localhost:0 --rdzv-id={run_id}", "*" * 38, ""], ended


# Thirty ways to write it; all of two workers, so that PyTorch's own can run them one by one on a machine of two CPUs.
SETS = [words.split() for words in """
--standalone --nproc-per-node 2
--standalone --nproc_per_node=2
--standalone --nproc-per-node=2 --max-restarts 3
--standalone --nproc-per-node=2 --max_restarts=0
--standalone --nproc-per-node=2 --role trainer
--standalone --nproc-per-node=2 --rdzv-id 7
--standalone --nproc-per-node=2 --signals-to-handle SIGTERM
--standalone --nproc-per-node=2 --signals_to_handle=SIGTERM,SIGUSR2
--standalone --nproc-per-node=2 --virtual-local-rank
--standalone --nproc-per-node=2 --monitor-interval 0.05
--standalone --nproc-per-node=2 --monitor_interval=0.2 --start-method fork
--standalone --nproc-per-node=2 --start_method=spawn
--standalone --nproc-per-node=2 -r 2
--standalone --nproc-per-node=2 -r 0:2,1:2
--standalone --nproc-per-node=2 -t 3
--standalone --nproc-per-node=2 -t1 -r2
--standalone --nproc-per-node=2 --tee 0:3,1:3
--standalone --nproc-per-node=2 --local-addr 127.0.0.1
--standalone --nproc-per-node=2 --event-log-handler null
--standalone --nproc-per-node=2 --nnodes 1
--standalone --nproc-per-node=2 --nnodes=1:1
--standalone --nproc-per-node=2 --run-path
--standalone --nproc-per-node=2 --rdzv-conf join_timeout=30
--nproc-per-node=2 --rdzv-backend c10d --rdzv-endpoint localhost:0
--nproc-per-node=2 --rdzv_backend=c10d --rdzv_endpoint=127.0.0.1:0 --rdzv_id=job
--nproc-per-node=2 --max-restarts 1 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --nnodes=1:1
--standalone --nproc-per-node=2 --log-line-prefix-template [${role_name}${rank}] -t1
--standalone --nproc-per-node=2 --role=a --max-rest 2
--standalone -t 1 --nproc-per-node 2
--standalone --nproc-per-node=2 --
""".strip().splitlines()]


def test_thirty_sets_of_options(lockstep):
    """Behind `lockstep run torchrun`: the environment and the arguments of every rank are PyTorch's own, beside the
    variables of flight recorders."""
    assert len(SETS) == 30
    words = [[*options, str(SCRIPTS / "show.py"), "--x", "a b", "--", "-r", "${local_rank}"] for options in SETS]
    done = lockstep.run(SCRIPTS / "torchruns.py", json.dumps(words), lockstep.facts, program=(peer("2.14"),),
                        env={"PYTHON_EXEC": None, **AID}, timeout=300)
    assert done.rc == 0, str(done)

    def workers(text):
        lines = [json.loads(line[line.index("{\"env\""):]) for line in text.splitlines() if "{\"env\"" in line]
        return sorted(lines, key=lambda line: int(line["env"]["RANK"]))

    for number, given in enumerate(words):
        theirs = workers((lockstep.facts / f"{number}.out").read_text())
        ended = lockstep.run("torchrun", *given, env={"PYTHON_EXEC": peer("2.14"), **AID}, timeout=60)
        assert (str(ended.rc), 2) == ((lockstep.facts / f"{number}.code").read_text(), len(theirs)), (given, str(ended))
        ours = workers(ended.out)
        assert [line["argv"] for line in ours] == [line["argv"] for line in theirs], given
        for our, their in zip(ours, theirs):
            our, their = ({name: value for name, value in line["env"].items() if not OWN.match(name)}
                          for line in (our, their))
            # Importing torch in the launcher leaves this one behind.
            assert set(our) | {"TORCHINDUCTOR_CACHE_DIR"} == set(their) | {"TORCHINDUCTOR_CACHE_DIR"} | RECORDER_NAMES
            assert {name for name in our if our[name] != their.get(name)} <= DIFFER | RECORDER_NAMES, given


ACCELERATE = {
    "plain": ("--multi_gpu", "--num_processes", 2, "--mixed_precision", "bf16"),
    "fsdp": ("--use_fsdp", "--num_processes", 2, "--fsdp_sharding_strategy", "SHARD_GRAD_OP", "--max_restarts", 3),
    "dynamo": ("--multi_gpu", "--num_processes", 2, "--dynamo_backend", "inductor", "--role", "trainer",
               "--gpu_ids", "0,1"),
    "one": ("--cpu", "--num_processes", 1, "--num_cpu_threads_per_process", 3),
}


@pytest.mark.parametrize("name", ACCELERATE)
def test_environment_under_accelerate(lockstep, name):
    """lockstep run accelerate launch ...: what accelerate launch gives, from the accelerate that is installed."""
    words = ("launch", *ACCELERATE[name], "--main_process_port", free_port(), SCRIPTS / "show.py", "a b", "--x")

    def workers(*command, **options):
        ended = lockstep.run(*command, *words, timeout=150, **options)
        assert ended.rc == 0, str(ended)
        lines = [json.loads(line) for line in ended.out.splitlines() if line.startswith("{")]
        assert all(line["argv"][1:] == ["a b", "--x"] for line in lines)
        return sorted(({name: value for name, value in line["env"].items() if not OWN.match(name)} for line in lines),
                      key=lambda env: env.get("RANK", ""))

    theirs = workers(program=(peer("2.14"),), env={"PEER_PROGRAM": "/usr/bin/accelerate", "PYTHON_EXEC": None,
                                                   "PYTHONPATH": AID["PYTHONPATH"]})
    ours = [workers("accelerate", env={"PYTHON_EXEC": peer("2.14"), "PYTHONPATH": AID["PYTHONPATH"]}) for _ in range(2)]
    assert len(theirs) == (1 if name == "one" else 2)
    for found in ours:  # the second time from what was kept
        assert len(found) == len(theirs)
        for our, their in zip(found, theirs):
            # Importing torch in the launcher leaves this one behind.
            assert set(our) | {"TORCHINDUCTOR_CACHE_DIR"} == set(their) | {"TORCHINDUCTOR_CACHE_DIR"} | RECORDER_NAMES
            assert {each for each in our if our[each] != their.get(each)} <= DIFFER | RECORDER_NAMES
    assert len(list((lockstep.home / ".local/state/lockstep/accelerate").iterdir())) == 1
