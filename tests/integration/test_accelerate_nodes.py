"""accelerate launch on several machines: every rank gets the environment that accelerate's own launcher gives, on two
hosts of each kind."""
import json
import os
import pathlib

import pytest

from harness import RECORDER_NAMES, SCRIPTS, SUPPORT, peer
from test_same_as_torchrun import OWN

PORT = 29700
SHOW = str(SCRIPTS / "show.py")
# All with --num_machines 2 --main_process_ip --main_process_port --machine_rank, unless the YAML says so.
SETS = """
--multi_gpu --num_processes 4 {show}
--multi_gpu --num_processes 2 {show} a
--multi_gpu --num_processes 4 --mixed_precision bf16 {show} --x y
--multi_gpu --num_processes 4 --mixed_precision fp16 --max_restarts 3 {show}
--multi_gpu --num_processes 4 --dynamo_backend inductor --dynamo_mode default --dynamo_use_fullgraph {show}
--config_file {folder}/nodes.yaml --num_processes 4 {show}
--multi_gpu --num_processes 4 --role trainer {show}
--multi_gpu --num_processes 4 --rdzv_backend static {show}
--multi_gpu --num_processes 4 --same_network {show}
--multi_gpu --num_processes 4 --monitor_interval 0.5 {show}
--use_fsdp --num_processes 4 {show} --x
--use_fsdp --num_processes 2 --fsdp_version 2 --fsdp_reshard_after_forward true {show}
--use_fsdp --num_processes 4 --fsdp_sharding_strategy SHARD_GRAD_OP --fsdp_offload_params true {show}
--use_fsdp --num_processes 4 --fsdp_auto_wrap_policy SIZE_BASED_WRAP --fsdp_min_num_params 1000 {show}
--use_fsdp --num_processes 4 --fsdp_state_dict_type FULL_STATE_DICT --fsdp_use_orig_params false {show}
--config_file {folder}/fsdp.yaml {show} a
--multi_gpu --num_processes 4 --gpu_ids all {show}
--multi_gpu --num_processes 4 --num_cpu_threads_per_process 3 {show}
--multi_gpu --num_processes 4 --debug {show}
--multi_gpu --num_processes 4 --gradient_accumulation_steps 4 {show}
--multi_gpu --num_processes 4 --no_python {program} a
--multi_gpu --num_processes 4 --module shown -m x
--multi_gpu --num_processes 4 --tee 1 {show}
--multi_gpu --num_processes 4 --log_dir {folder}/logs {show}
--multi_gpu --num_processes 4 --enable_cpu_affinity {show}
--config_file {folder}/nodes.yaml --num_processes 2 --mixed_precision no {show}
--config_file {folder}/dynamo.yaml {show}
--use_fsdp --fsdp_version 2 --num_processes 4 --use_parallelism_config --parallelism_config_dp_shard_size 4 {show}
--use_fsdp --num_processes 4 --fsdp_activation_checkpointing true --fsdp_sync_module_states true {show}
--multi_gpu --num_processes 6 {show} $local_rank -- -r
""".strip().splitlines()
YAML = """compute_environment: LOCAL_MACHINE
debug: false
distributed_type: {kind}
num_machines: 2
main_process_ip: {address}
machine_rank: 0
num_processes: 4
mixed_precision: bf16
main_training_function: main
rdzv_backend: static
same_network: true
use_cpu: false
"""
FSDP = """fsdp_config:
  fsdp_version: 1
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_transformer_layer_cls_to_wrap: BertLayer
  fsdp_sharding_strategy: HYBRID_SHARD
  fsdp_offload_params: false
"""
DYNAMO = """dynamo_config:
  dynamo_backend: INDUCTOR
  dynamo_mode: reduce-overhead
  dynamo_use_dynamic: true
"""
# Places of the launcher's own, and what importing torch in the launcher leaves behind.
DIFFER = {"TORCHELASTIC_ERROR_FILE", "TORCHINDUCTOR_CACHE_DIR", *RECORDER_NAMES}


def chosen():
    """Returns some cases; all of them on request."""
    return SETS if os.environ.get("LOCKSTEP_ALL_SETS") == "1" else SETS[::5]


def workers(text):
    lines = [json.loads(line[line.index('{"env"'):]) for line in text.splitlines() if '{"env"' in line]
    return {int(line["env"]["RANK"]): (line["argv"][1:], {name: value for name, value in line["env"].items()
                                                            if not OWN.match(name)}) for line in lines}


def differences(our, their):
    for rank in our.keys() | their.keys():
        if rank not in our or rank not in their or our[rank][0] != their[rank][0]:
            yield rank, our.get(rank, [None])[0], their.get(rank, [None])[0]
            continue
        ours, theirs = our[rank][1], their[rank][1]
        for name in (ours.keys() | theirs.keys()) - DIFFER:
            if ours.get(name) != theirs.get(name):
                yield rank, name, ours.get(name), theirs.get(name)
        error_files = [pathlib.Path(env["TORCHELASTIC_ERROR_FILE"]).parts[-3:] for env in (ours, theirs)]
        if error_files[0] != error_files[1]:
            yield rank, *error_files


@pytest.fixture
def pair(hosts, lockstep):
    """Two hosts, and a folder with what the sets name."""
    two = hosts(2)
    folder = lockstep.work
    settings = {"nodes": "", "fsdp": FSDP, "dynamo": DYNAMO}
    for name, more in settings.items():
        kind = "FSDP" if name == "fsdp" else "MULTI_GPU"
        (folder / f"{name}.yaml").write_text(YAML.format(kind=kind, address=two[0].addr) + more)
    show = (SCRIPTS / "show.py").read_text()
    (folder / "shown.py").write_text(show)
    (folder / "program").write_text("#!/usr/bin/python3\n" + show)
    (folder / "program").chmod(0o755)
    return two


def words_of(text, host, pair, folder, port):
    words = [word.format(show=SHOW, folder=folder, program=folder / "program") for word in text.split()]
    meeting = ["--machine_rank", str(host), "--main_process_port", str(port)]
    if "--config_file" not in words:
        meeting += ["--num_machines", "2", "--main_process_ip", pair[0].addr]
    return [*meeting, *words]


def test_environment_of_every_rank(pair, lockstep):
    assert len(SETS) == 30
    sets = chosen()
    env = {"PYTHONPATH": SUPPORT / "torch-2.6", "OMP_NUM_THREADS": None}
    runs = []
    for number, host in enumerate(pair):
        (lockstep.facts / str(number)).mkdir()
        lists = [words_of(text, number, pair, lockstep.work, PORT + at) for at, text in enumerate(sets)]
        runs.append(host.start(SCRIPTS / "accelerates.py", json.dumps(lists), lockstep.facts / str(number),
                               program=(peer("2.14"),), env={**env, "PYTHON_EXEC": None}))
    for run in runs:
        ended = run.wait(60 + 30 * len(sets))
        assert ended.rc == 0, str(ended)
    wrong = []
    for at, text in enumerate(sets):
        theirs = {}
        for number in range(2):
            files = lockstep.facts / str(number)
            assert (files / f"{at}.code").read_text() == "0", (text, (files / f"{at}.err").read_text())
            theirs.update(workers((files / f"{at}.out").read_text()))
        runs = [host.start("accelerate", "launch", *words_of(text, number, pair, lockstep.work, PORT + at),
                           env={**env, "PYTHON_EXEC": peer("2.14")}) for number, host in enumerate(pair)]
        ours, ends = {}, [run.wait(200) for run in runs]
        for ended in ends:
            ours.update(workers(ended.out))
        if [ended.rc for ended in ends] != [0, 0] or not theirs:
            wrong.append((text, "\n".join(map(str, ends))))
        wrong += [(text, *found) for found in differences(ours, theirs)]
    assert not wrong, "\n".join(map(str, wrong))
