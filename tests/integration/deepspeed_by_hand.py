"""DeepSpeed's own launcher, the real one: what it gives to a rank. Several hosts: deepspeed_pdsh_by_hand.py.

By hand, not in CI: Debian has no DeepSpeed. Its source is in the folder .cache/peers/deepspeed where somebody has put
it there, and sid's folder has python3-hjson python3-cpuinfo python3-msgpack python3-pydantic python3-einops."""
import json
import re
import shutil

import pytest

from harness import PEERS, SCRIPTS, SUPPORT, free_port, peer

SOURCE = PEERS / "deepspeed"
OWN = re.compile("LOCKSTEP_|PEER_|PYTHON_EXEC$|TMPDIR$|HOME$|PWD$|OLDPWD$|_$|SHLVL$")
# Importing DeepSpeed or torch in the launcher leaves these behind.
LEFT = {"TORCHINDUCTOR_CACHE_DIR", "PYTORCH_NVML_BASED_CUDA_CHECK"}
# torchrun's, which a worker of ours has as well.
MORE = re.compile("LOCAL_WORLD_SIZE$|GROUP_|ROLE_|TORCHELASTIC_|TORCH_NCCL_ASYNC_ERROR_HANDLING$")

pytestmark = pytest.mark.skipif(not (SOURCE / "deepspeed/launcher").is_dir(), reason=f"no DeepSpeed in {SOURCE}")


@pytest.fixture
def aid(lockstep):
    """The environment in which it can be imported: a copy, as a peer sees no folder but /tmp and the tests."""
    there = lockstep.folder / "deepspeed"
    shutil.copytree(SOURCE, there, symlinks=True)
    return {"PYTHONPATH": f"{there}:{SUPPORT / 'torch-2.6'}", "DS_ACCELERATOR": "cpu", "LOCAL_SIZE": "8",
            "PYTHONDONTWRITEBYTECODE": "1"}


# Thirty ways to write it, on one machine. {script} prints; {folder} is the test's own.
SETS = """
--num_gpus 2 {script}
--num_gpus=2 {script} --x
--num_accelerators 2 {script} --deepspeed ds.json
--num_gpus 1 {script}
--num_gpus 3 {script} a
--include localhost:0 {script}
--include localhost:0,1 {script}
--include=localhost:1,3 {script}
-i localhost:3,1 {script}
-i localhost:2,2,5 {script} --local_rank 7
-i localhost:0@localhost:4 {script}
--num_gpus 2 --no_local_rank {script}
--num_gpus 2 --no_local_rank {script} --local_rank 9
--num_gpus 2 --module {module}
--num_gpus 2 --module {module} -m x
--num_gpus 2 --no_local_rank --module {module} a
--num_gpus 2 --no_python {program}
--num_gpus 2 --no_python --no_local_rank {program} a
--num_gpus 2 --master_port {port} {script}
--num_gpus 2 --master_addr 10.1.2.3 {script}
--num_gpus 2 --launcher pdsh {script}
--num_gpus 2 --launcher_args=-x {script}
--num_gpus 2 --no_ssh_check {script}
--num_gpus 2 --log_level error {script}
-q --num_gpus 2 {script}
--num_nodes 1 --num_gpus 2 {script}
--num_gpus -1 --num_nodes -1 --include localhost:2 {script} -H x
--num_gpus 2 --no_ssh --node_rank 0 {script}
--num_gpus 2 --ssh_port 2222 {script}
--num_gpus 2 {script} $local_rank ${{local_rank}} --num_gpus 4
""".strip().splitlines()
ENVIRONMENTS = {number: {"CUDA_VISIBLE_DEVICES": "4,6"} for number in (3, 14, 29)} | {7: {"OMP_NUM_THREADS": "3"}}


def workers(text):
    lines = [json.loads(line[line.index('{"env"'):]) for line in text.splitlines() if '{"env"' in line]
    return sorted(lines, key=lambda line: int(line["env"]["RANK"]))


DIFFER = {"MASTER_PORT"}  # a free one, unless it is named


def differences(our, their):
    """Of a rank, what is not as DeepSpeed has it."""
    if our["argv"][1:] != their["argv"][1:]:
        yield our["argv"], their["argv"]
    our, their = ({name: value for name, value in line["env"].items() if not OWN.match(name) and name not in LEFT}
                  for line in (our, their))
    for name in our.keys() | their.keys():
        if our.get(name) != their.get(name) and name not in DIFFER and not (name not in their and MORE.match(name)):
            yield name, our.get(name), their.get(name)


def test_thirty_sets_of_options(lockstep, aid):
    assert len(SETS) == 30
    show = (SCRIPTS / "show.py").read_text()
    (lockstep.work / "shown.py").write_text(show)
    program = lockstep.work / "program"
    program.write_text("#!/usr/bin/python3\n" + show)
    program.chmod(0o755)
    port = free_port()
    sets = [[word.format(script=SCRIPTS / "show.py", module="shown", program=program, port=port)
             for word in line.split()] for line in SETS]
    given = {**aid, "PYTHON_EXEC": None, "OMP_NUM_THREADS": None, "CUDA_VISIBLE_DEVICES": None}
    done = lockstep.run(SCRIPTS / "deepspeeds.py",
                        json.dumps([(words, ENVIRONMENTS.get(number, {})) for number, words in enumerate(sets)]),
                        lockstep.facts, program=(peer("2.14"),), env=given, timeout=400)
    assert done.rc == 0, str(done)
    wrong = []
    for number, words in enumerate(sets):
        theirs = workers((lockstep.facts / f"{number}.out").read_text())
        assert theirs, (words, (lockstep.facts / f"{number}.err").read_text())
        ended = lockstep.run("deepspeed", *words, timeout=60, env={
            **given, "PYTHON_EXEC": peer("2.14"), **ENVIRONMENTS.get(number, {})})
        ours = workers(ended.out)
        if ended.rc != 0 or len(ours) != len(theirs):
            wrong.append((number, words, len(theirs), str(ended)))
        wrong += [(number, words, found) for our, their in zip(ours, theirs) for found in differences(our, their)]
    assert not wrong, "\n".join(map(str, wrong))
