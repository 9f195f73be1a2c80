"""lockstep check: finds what is wrong with a job before the job is queued, here and on a real Slurm cluster of
hosts."""
import json
import re
import resource

import pytest

from harness import BINARY
from slurm_cluster import SlurmCluster

HEAD = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=4 --mem=200 --time=10 --exclusive\n"
LAUNCH = "srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=$(hostname):29400 train.py\n"


@pytest.fixture
def check(lockstep):
    def run(*args, code=0):
        ended = lockstep.start("check", "--no-slurm", *args, program=(BINARY,), cwd=lockstep.folder).wait(60)
        assert ended.rc == code, ended
        return ended.out
    run.folder = lockstep.folder
    for name in ("t.py", "train.py"):
        write(run.folder, name, "")
    return run


def write(folder, name, text):
    (folder / name).write_text(text)
    return name


def test_a_script_without_a_mistake(check):
    assert check(write(check.folder, "good.sh", HEAD + LAUNCH)) == "nothing is wrong, as far as can be seen here\n"


def test_each_mistake_is_a_line_with_its_place_and_its_cure(check):
    script = write(check.folder, "bad.sh", HEAD + "#SBATCH -o logs/%j.out\nMAX_JOBS=4\npip install deepspeed\n"
                   + "srun accelerate launch --num_machines 2 --machine_rank $SLURM_PROCID t.py\n#SBATCH --requeue\n")
    lines = check(script, code=1).splitlines()
    assert lines.pop() == "4 errors, 0 warnings"
    expected = [(3, "output-folder", "mkdir -p logs"), (4, "build-variables", "end the line with a backslash"),
                (6, "rank-too-early", "srun bash -c"), (7, "ignored-directive", "move it above that line")]
    for line, (number, lint, cure) in zip(lines, expected, strict=True):
        assert line.startswith(f"bad.sh:{number}: error: ") and line.endswith(f"[{lint}]") and cure in line, line


def test_warnings_are_no_failure(check):
    text = check(write(check.folder, "warn.sh", "#!/bin/bash\nsrun hostname\n"))
    assert "[time-limit]" in text and "[memory-default]" in text and text.endswith("0 errors, 2 warnings\n"), text


def test_for_programs(check):
    told = json.loads(check("--json", write(check.folder, "a.sh", "#!/bin/bash\n#SBATCH --mem=1\ntrue\n")))
    (finding,) = told["findings"]
    assert (finding["severity"], finding["lint"], finding["line"]) == ("warning", "time-limit", 0)
    assert not told["slurm"]["asked"]


def test_a_command_line_and_its_files(check):
    write(check.folder, "ds.json", '{\n "train_batch_size": 100,\n "train_micro_batch_size_per_gpu": 4\n}')
    text = check("submit", "-N2", "--gpus-per-node", "4", "-t1", "--mem=1", "--", "train.py", "--deepspeed", "ds.json",
                 "--per_device_train_batch_size=8", code=1)
    assert "ds.json:2: error: train_batch_size is 100, but 8 ranks x 4 per GPU make 32, which does not" in text, text
    assert "ds.json:3: error: train_micro_batch_size_per_gpu is 4, but --per_device_train_batch_size is 8" in text, text
    # Lockstep starts the ranks, so the mistakes of launching cannot happen. The script may have other mistakes.
    script = write(check.folder, "old.sh", HEAD + "srun torchrun --nproc_per_node=4 train.py | tee log\n")
    text = check(script, code=1)
    assert "[node-rank]" in text and "[pipe-status]" in text, text
    text = check("submit", script)
    assert "warning: torchrun on 2 nodes is told of one" in text, text  # Lockstep leaves that as it is
    assert "[pipe-status]" in text and "0 errors, 2 warnings\n" in text, text
    text = check("submit", "-N2", "-t1", "--mem=1", "--", "trian.py", code=1)
    assert "error: trian.py is not there" in text and "[script-missing]" in text, text
    text = check("submit", "-N2", "-t1", "--mem=1", "--", "train.py", "--deepspeed", "gone.json", code=1)
    assert "error: gone.json is not there" in text and "[script-missing]" in text, text
    # The line of a tutorial, copied as it is.
    script = write(check.folder, "copied.sh", HEAD + "deepspeed train.py <normal cl args> --deepspeed ds.json\n")
    text = check(script, code=1)
    assert "copied.sh:3: error: the shell writes to a file named --deepspeed" in text and "[placeholder]" in text, text
    script = write(check.folder, "copied-end.sh", HEAD + "deepspeed train.py <normal cl args>\n")
    assert "copied-end.sh:3: error: a > stands at the end of the line" in check(script, code=1)
    script = write(check.folder, "old-gcc.sh", HEAD + "update-alternatives --set gcc /usr/bin/gcc-4.8\n"
                   "pip install flash-attn --no-build-isolation\n")
    assert "old-gcc.sh:3: error: gcc 4.8 is too old for PyTorch" in check(script, code=1)


def test_a_hostfile_and_a_configuration_alone(check):
    hosts = write(check.folder, "hosts", "n[1-2] slots=4\nn3\n")
    text = check("--hostfile", hosts, code=1)
    assert "hosts:1: error: 'n[1-2] slots=4' has a range" in text, text
    assert "hosts:2: error: 'n3' has no slots=N" in text, text
    text = check("--ds-config", write(check.folder, "ds.json", '{"a": 1,}'), code=1)
    assert "it is not a JSON object" in text, text
    assert "nothing is wrong" in check("--hostfile", write(check.folder, "good", "n1 slots=4\n"))


@pytest.mark.parametrize("words, what", [
    ((), "no script or file is given"),
    (("none.sh",), "none.sh"),
    (("sbatch", "--nod=2", "a.sh"), "--nod may stand for"),
    (("--hostfile", "none"), "none"),
    (("--nope",), "nope"),
])
def test_bad_words(lockstep, words, what):
    ended = lockstep.start("check", *words, program=(BINARY,), cwd=lockstep.folder).wait(60)
    assert ended.rc == 2 and ended.out == "" and what in ended.err, ended


def test_it_takes_no_time(check):
    script = write(check.folder, "long.sh", HEAD + LAUNCH + "echo $A \"$(b c)\" 'd e'\n" * 20000)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    check(script)
    # CPU time of children, since other processes may load this machine. A release build takes a fifth of the limit.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 3


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 2)
    yield made
    made.close()


def test_slurm_is_asked(cluster):
    """sbatch knows partitions and sizes, and when the job would start; the mistakes of a script are told once."""
    cluster.script("good.sh", HEAD + LAUNCH)
    ended = cluster.run("check", "good.sh")
    assert ended.rc == 0, ended
    assert re.search(r"Slurm takes it: expected start 20\d\d-\d\d-\d\dT[\d:]+ on \S+\[1-2\]\n", ended.out), ended

    ended = cluster.run("check", "sbatch", "-p", "nope", "good.sh")
    assert ended.rc == 1 and "Slurm would not take this job: invalid partition specified: nope" in ended.out, ended
    ended = cluster.run("check", "submit", "-N", "9", "-t1", "--mem=1", "--", "train.py")
    assert ended.rc == 1 and "[test-only]" in ended.out, ended

    # Each line here says what sbatch itself says.
    for directive in ("--nod=3", "--hold=1", "5", "--comment 'x", "-N"):
        cluster.script("bad.sh", f"#!/bin/bash\n#SBATCH -t1 --mem=1\n#SBATCH {directive}\ntrue\n")
        ended = cluster.run("check", "bad.sh")
        assert ended.rc == 1 and ended.out.startswith("bad.sh:3: error: sbatch refuses"), ended
        assert "[test-only]" not in ended.out, ended
        assert cluster.slurm("sbatch", "--test-only", "bad.sh", check=False).rc != 0, directive

    cluster.stop_controller()
    ended = cluster.run("check", "good.sh")
    assert ended.rc == 0 and "Slurm was not asked: " in ended.out, ended
    assert not cluster.run("check", "--no-slurm", "good.sh").out.count("asked")
