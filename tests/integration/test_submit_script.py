"""The user's own batch scripts, submitted with `lockstep submit FILE`, on a real Slurm cluster."""
import re

import pytest

import container_image
from harness import WORKER, until
from package_index import write_wheel
from slurm_cluster import SlurmCluster


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 4)
    yield made
    made.close()


def output_of(cluster, *words, rc=0, **options):
    """Lines of a job that has ended with `rc`, without those of Lockstep itself and the ranks' marks."""
    ended = cluster.run("submit", "--follow", *words, **options)
    assert ended.rc == rc, ended
    lines = [re.sub(r"^\[rank\d+\]: ", "", line) for line in ended.out.splitlines()[1:]]
    return [line for line in lines if not re.match(r"lockstep|[IWE]\d{4} .* lockstep\] ", line)
            and not is_slow_srun(line)], ended


def is_slow_srun(line):
    """Said where the step before is not quite over for Slurm yet, and some moments later."""
    return re.match(r"srun: (Job .*step creation|Step created)", line)


def original(cluster, script, *args, rc=0):
    """The same with plain sbatch, whose --wait looks every ten seconds."""
    job = cluster.slurm("sbatch", "--parsable", "-o", "plain.out", script, *args).out.strip()
    until(lambda: cluster.job(job)["JobState"] in ("COMPLETED", "FAILED"), 60, f"job {job} has ended")
    assert cluster.job(job)["ExitCode"] == f"{rc}:0"
    lines = (cluster.work / "plain.out").read_text().splitlines()
    return [line for line in lines if not is_slow_srun(line)]


def script(cluster, head, body, shebang="#!/bin/bash"):
    return cluster.script("old.slurm", "\n".join([shebang, *(f"#SBATCH {line}" for line in head.split("|")), "",
                                                  body]) + "\n")


def brought(cluster):
    """How many binaries are left in the nodes' /tmp."""
    return [len(re.findall(r"^lockstep-\d+-", node.run("/tmp", program=("/bin/ls",)).out, re.M))
            for node in cluster.nodes]


SHOW = "show=RANK,WORLD_SIZE,LOCAL_RANK,FROM_SCRIPT"


def shown(world, each, more=""):
    return sorted(f"show RANK={rank} WORLD_SIZE={world} LOCAL_RANK={rank % each} FROM_SCRIPT=a b{more}"
                  for rank in range(world))


@pytest.mark.parametrize("binary", ("shared", "sbcast"))
def test_srun_torchrun(cluster, binary):
    """The usual recipe: MASTER_ADDR by scontrol, then srun torchrun."""
    path = script(cluster, "--nodes=2|--ntasks-per-node=1|--gres=gpu:2|--time=5", f"""
set -eux
export FROM_SCRIPT="a b" OMP_NUM_THREADS=1
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29500
echo "nodes $SLURM_NNODES on $MASTER_ADDR as $1"
srun torchrun --nnodes "$SLURM_NNODES" --nproc_per_node 2 --rdzv_id $SLURM_JOB_ID --rdzv_backend c10d \\
  --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --no-python {WORKER} {SHOW}
echo done
""")
    lines, _ = output_of(cluster, f"--binary={binary}", path, "an argument")
    assert [line for line in lines if not line.startswith(("show", "+"))] == [
        "nodes 2 on node1 as an argument", "done"]
    assert sorted(line for line in lines if line.startswith("show")) == shown(4, 2)
    assert brought(cluster) == [0, 0, 0, 0]


def test_srun_python_with_one_task_a_rank(cluster):
    """The ranks have exactly the environment that srun gives, and no variable of a launcher."""
    names = ("SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_NTASKS SLURM_NPROCS SLURM_NNODES SLURM_STEP_NUM_TASKS "
             "SLURM_STEP_NUM_NODES SLURM_TASKS_PER_NODE SLURM_STEP_TASKS_PER_NODE SLURM_NTASKS_PER_NODE SLURM_GTIDS "
             "SLURM_CPUS_PER_TASK SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR "
             "MASTER_PORT TORCHELASTIC_RUN_ID OMP_NUM_THREADS CUDA_VISIBLE_DEVICES FROM_SCRIPT BASH_ENV").split()
    program = cluster.work / "train.py"
    program.write_text("import os, sys\n"
                       f"print('task', sys.argv[1:], [(n, os.environ.get(n)) for n in {names!r}], flush=True)\n"
                       "sys.exit(5 if os.environ['SLURM_PROCID'] == '3' and 'fail' in sys.argv else 0)\n")
    path = script(cluster, "--nodes=2|--ntasks-per-node=2|--cpus-per-task=2|--gpus-per-node=2|--time=5", """
export FROM_SCRIPT="a b" MASTER_PORT=29501
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun -c1 python3 train.py 'CPUs of its own'
srun python3 train.py '$local_rank ${rank}' "$@"
""")
    lines, ended = output_of(cluster, path, "x y")
    assert sorted(lines) == sorted(original(cluster, path, "x y"))
    assert len(lines) == 8
    assert "2 tasks on each of 2 nodes are ranks of Lockstep's agents" in ended.out
    assert "exceeds that of job" not in ended.out, ended
    # srun itself ends with the largest code.
    output_of(cluster, "--binary=sbcast", path, "fail", rc=5)
    assert brought(cluster) == [0, 0, 0, 0]
    original(cluster, path, "fail", rc=5)


def test_containers_of_pyxis(cluster, tmp_path):
    """Its options on an srun line mean the same, and the ranks in the image are supervised."""
    image = container_image.make(tmp_path / "image")
    (image / "bin/python3").write_text("#!/bin/sh\necho task $SLURM_PROCID of $SLURM_NTASKS $(cat /opt/marker)\n")
    (image / "bin/python3").chmod(0o755)
    path = script(cluster, "--nodes=2|--ntasks-per-node=2|--time=5", f"""
srun --ntasks-per-node=1 --container-image={image} --container-workdir={cluster.work} \
  --container-mounts={tmp_path}:/data:ro --no-container-mount-home \
  torchrun --nnodes 2 --nproc_per_node 1 --no-python sh -c \
  'AGAIN=$TORCHELASTIC_RESTART_COUNT
   echo rank $RANK $AGAIN $(cat /opt/marker) $(ls -d /data/image); exit $((1 - AGAIN))'
srun --container-image={image} --container-workdir={cluster.work} python3 train.py
srun --container-image=/gone.sqsh --container-workdir=/ torchrun train.py || echo left to srun
srun --container-image={image} --quiet torchrun train.py || echo left to srun
""")
    lines, ended = output_of(cluster, "--binary=sbcast", "--max-restarts=1", "--no-check", path)
    assert {f"rank {rank} 1 in the image /data/image" for rank in (0, 1)} <= set(lines), ended
    assert sorted(line for line in lines if line.startswith("task")) == [
        f"task {task} of 4 in the image" for task in range(4)], ended
    assert "left unchanged, without Lockstep: --container /gone.sqsh: no such file or folder" in ended.out, ended
    assert "srun --container-image without --container-workdir starts in the image's own folder" in ended.out, ended
    assert lines.count("left to srun") == 2 and brought(cluster) == [0, 0, 0, 0]


def test_tasks_with_gpus_of_their_own(cluster):
    """Whichever way the script counts a task's GPUs, and whatever variables sbatch makes of it."""
    names = "SLURM_PROCID SLURM_TRES_PER_TASK SLURM_GPUS_PER_TASK SLURM_CPUS_PER_TASK CUDA_VISIBLE_DEVICES".split()
    (cluster.work / "train.py").write_text(
        f"import os\nprint('task', [os.environ.get(name) for name in {names!r}], flush=True)\n")
    for way, binary in (("--ntasks-per-node=2|--gpus-per-task=1", "sbcast"),
                        ("--ntasks-per-node=2|--tres-per-task=cpu:2,gres/gpu:1", "shared"),
                        ("--ntasks-per-gpu=1|--gpus-per-node=2", "shared")):
        path = script(cluster, f"--nodes=2|--time=5|{way}", "srun python3 train.py && ls /tmp > files")
        if cluster.slurm("sbatch", "--test-only", path, check=False).rc != 0:
            continue  # a version that does not know the option yet
        expected = sorted(original(cluster, path))
        assert [line.count(f"'{gpu}']") for line, gpu in zip(expected, (0, 1, 0, 1))] == [1] * 4, expected
        lines, ended = output_of(cluster, f"--binary={binary}", path)
        assert sorted(lines) == expected and "exceeds that of job" not in ended.out, ended
        assert "lockstep-" not in (cluster.work / "files").read_text() and brought(cluster) == [0, 0, 0, 0]


@pytest.mark.parametrize("launch", (
    """srun bash -c 'echo "on $SLURM_PROCID"; torchrun --nnodes $SLURM_NNODES --node_rank $SLURM_PROCID '\
'--nproc_per_node 2 --master_addr $MASTER_ADDR --master_port 29500 --no-python WORKER SHOW'""",
    """srun --jobid $SLURM_JOB_ID bash -c "echo on \\$SLURM_PROCID; python3 -m torch.distributed.run --nnodes 2 """
    """--nproc_per_node 2 --node_rank \\$SLURM_PROCID --master_addr $MASTER_ADDR --no-python WORKER SHOW" """,
    """LAUNCHER="python3 -u -m torch.distributed.run --nproc_per_node 2 --nnodes $SLURM_NNODES --rdzv_endpoint """
    """$MASTER_ADDR:6000 --rdzv_backend c10d --no-python"
export CMD="WORKER SHOW"
srun bash -c 'echo on $SLURM_PROCID'
srun --jobid $SLURM_JOBID bash -c "$LAUNCHER $CMD" 2>&1 | tee log.txt""",
    """cat > node.sh <<'END'
echo on $SLURM_PROCID
PATH=/usr/bin:$PATH
exec torchrun --nnodes 2 --nproc_per_node 2 --rdzv_backend c10d \\
  --rdzv_endpoint $MASTER_ADDR:6000 --no-python WORKER SHOW
END
exec srun bash node.sh"""), ids=("bash", "module", "variable", "file"))
def test_a_shell_on_every_node(cluster, launch):
    """A shell in the task expands variables on each node."""
    path = script(cluster, "--nodes=2|--ntasks-per-node=1|--gres=gpu:2|--time=5", """
export FROM_SCRIPT="a b"
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
""" + launch.replace("WORKER", str(WORKER)).replace("SHOW", SHOW))
    lines, _ = output_of(cluster, path)
    assert sorted(line for line in lines if not line.startswith("show")) == ["on 0", "on 1"]
    assert sorted(line for line in lines if line.startswith("show")) == shown(4, 2)


def test_steps_that_are_no_training(cluster):
    """Steps with one task, with a program that is no launcher, or on a part of the nodes: srun runs them unchanged."""
    path = script(cluster, "--nodes=2|--ntasks-per-node=2|--time=5", """
srun -N1 -n1 python3 -c 'print("prepared")'
srun -n1 -N1 python3 prepare.py
srun sh -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS, $RANK$LOCKSTEP_SLURM_FOLDER$BASH_ENV"; exit $SLURM_PROCID'
echo "code $?"
srun -N1 -w node2 --ntasks=2 python3 prepare.py
srun --mpi=pmi2 python3 prepare.py
exit 9
""")
    (cluster.work / "prepare.py").write_text(
        "import os\nprint('rank', os.environ['SLURM_PROCID'], os.environ.get('RANK'), flush=True)\n")
    lines, ended = output_of(cluster, path, rc=9)
    assert sorted(lines) == sorted(original(cluster, path, rc=9))
    assert "code 3" in lines
    assert "left unchanged, without Lockstep: srun --nodelist is given" in ended.out
    assert "left unchanged, without Lockstep: srun --mpi=pmi2 is given" in ended.out


def test_one_node_without_srun(cluster, tmp_path):
    """Plain torchrun in the batch script; and the line that says how the script itself has ended."""
    path = script(cluster, "--nodes=1|--gres=gpu:2|--time=5|--job-name=old|--output=%x.log", f"""
export FROM_SCRIPT="a b"
torchrun --standalone --nproc_per_node=2 --no-python {WORKER} {SHOW} touch={tmp_path} \\
  @1 wait={tmp_path}/0 exit=3 @0 pause
code=$?
echo "code $code in $SLURM_JOB_NAME with $SLURM_NTASKS"
exit $code
""")
    lines, ended = output_of(cluster, path, rc=3)
    assert sorted(line for line in lines if line.startswith("show")) == shown(2, 2)
    assert [line for line in lines if line.startswith("code")] == ["code 3 in old with "]
    assert "worker: rank 1 on node1 exited with 3" in ended.out
    job = ended.out.split()[3]
    assert (cluster.work / "old.log").exists()
    assert cluster.run("wait", job).rc == 3
    assert "rank 1 on node1 exited with 3" in cluster.run("why", job).out


def test_a_spare_takes_over(cluster, tmp_path):
    """The script counts the training nodes. The spare replaces the dead node."""
    path = script(cluster, "--nodes=2|--ntasks-per-node=1|--time=10", f"""
echo "nodes $SLURM_NNODES $SLURM_JOB_NODELIST"
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 1 --no-python {WORKER} env={tmp_path} touch={tmp_path} \\
  wait={tmp_path}/go
""")
    running = cluster.start("submit", "--spare", "1", "--follow", path)
    until(lambda: len(list(tmp_path.glob("[01]"))) == 2, 60, "both ranks run")
    first = {rank: (tmp_path / str(rank)).stat().st_mtime_ns for rank in (0, 1)}
    dead = next(node for node in cluster.nodes[1:] if "test_worker" in node.processes().values())
    cluster.power_cut(dead)
    until(lambda: all((tmp_path / str(rank)).stat().st_mtime_ns != first[rank] for rank in (0, 1)), 90,
          "both ranks run again")
    (tmp_path / "go").touch()
    ended = running.wait(120)
    assert ended.rc == 0, ended
    assert "nodes 2 node1,node2\n" in ended.out


def test_spares_are_counted_nowhere(cluster):
    """However the ranks are started, they and the shell before them see only the training nodes."""
    names = "RANK,SLURM_NNODES,SLURM_JOB_NUM_NODES,SLURM_NTASKS,SLURM_NODEID"
    (cluster.work / "train.py").write_text(
        "import os\n"
        f"print('show', *(name + '=' + os.environ.get(name, '') for name in {names!r}.split(',')), flush=True)\n")
    launch = f"torchrun --nnodes $SLURM_NNODES --nproc_per_node 1 --no-python {WORKER} show={names}"
    path = script(cluster, "--nodes=2|--ntasks-per-node=1|--time=5", f"""
export OMP_NUM_THREADS=1
srun {launch}
srun bash -c 'echo "shell $SLURM_NNODES $SLURM_JOB_NUM_NODES $SLURM_JOB_NODELIST"; {launch}'
srun python3 train.py
""")
    lines, ended = output_of(cluster, "--spare=1", path)
    assert sorted(line for line in lines if line.startswith("shell")) == ["shell 2 2 node1,node2"] * 3, ended
    counted = [f"SLURM_NNODES=2 SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=2 SLURM_NODEID={rank}" for rank in (0, 1)]
    ranks = [f"show RANK={rank} {counted[rank]}" for rank in (0, 1)]
    tasks = [f"show RANK= {counted[rank]}" for rank in (0, 1)]
    assert sorted(line for line in lines if line.startswith("show")) == sorted(ranks * 2 + tasks), ended
    ended = cluster.run("submit", "-N2", "--spare=1", "-t5", "--follow", "--env=OMP_NUM_THREADS=1", "--", "--no-python",
                        WORKER, f"show={names}")
    told = sorted(line for line in ended.out.splitlines() if line.startswith("[rank"))
    assert ended.rc == 0 and told == [f"[rank{rank}]: {ranks[rank]}" for rank in (0, 1)], ended


def script_with_a_wheel(cluster, body, bad):
    """The wheel loads on every node but `bad`."""
    module = f"import socket\nassert socket.gethostname() != {bad!r}, 'no GPU'\n"
    wheel = write_wheel(cluster.work, "toy", "1.0", module)
    (cluster.work / "train.py").write_text(
        "import os, socket, toy\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], 'on', "
        "socket.gethostname(), flush=True)\n")
    return script(cluster, "--nodes=2|--ntasks-per-node=1|--time=5", f"export OMP_NUM_THREADS=1\n{body}"), wheel


@pytest.mark.parametrize("launch", ("srun torchrun --nnodes 2 train.py", "torchrun --nnodes 2 train.py",
                                    "srun bash -c 'torchrun --nnodes $SLURM_NNODES train.py'"))
def test_a_wheel_that_fails_on_the_first_node(cluster, launch):
    """The batch script runs on the first node. Its launch goes on without this node, and a spare replaces it."""
    path, wheel = script_with_a_wheel(cluster, launch, "node1")
    lines, ended = output_of(cluster, "--spare=1", f"--wheel={wheel}", "--no-check", path, timeout=60)
    assert sorted(line for line in lines if line.startswith("rank")) == ["rank 0 of 2 on node2", "rank 1 of 2 on node3"]
    told = cluster.run("why", ended.out.split()[3]).out
    assert re.search(r"  without node1: toy-1\.0.*no GPU", told), told


def test_no_binary_stays_on_a_node_that_takes_no_part(cluster):
    """torchrun on the first node alone: the wheel goes there by srun, and the job has another node."""
    path, wheel = script_with_a_wheel(cluster, "torchrun --nproc_per_node 1 train.py", "")
    lines, _ = output_of(cluster, "--binary=sbcast", f"--wheel={wheel}", "--no-check", path)
    assert "rank 0 of 1 on node1" in lines
    assert brought(cluster) == [0, 0, 0, 0]


def test_what_is_submitted(cluster):
    """Every line of the script stays as it is; ours stand between; arguments of any bytes arrive."""
    head = "#!/bin/bash\n#SBATCH   -N1   # one\n#SBATCH --time=5 --comment=\"it's\"\n# mine\n"
    body = 'printf "<%s>\\n" "$@"\n\n\t# the end\t\n'
    path = cluster.script("old.sh", head + body)
    shown_script = cluster.run("submit", "--print", "--no-check", path).out
    assert shown_script.startswith(head) and shown_script.endswith("\n" + body)
    assert not (cluster.home / ".local/state/lockstep/slurm").exists()
    nasty = ["", "a b", "$HOME", "`id`", "*", "'\"\\", "ä", "-N9", "--", "a\tb"]
    lines, ended = output_of(cluster, path, *nasty)
    assert lines == [f"<{word}>" for word in nasty]
    number = ended.out.split()[3]
    assert cluster.job(number)["Comment"] == "it's"
    # Options on the command line count more than those in the script.
    named = cluster.script("named.sh", "#!/bin/bash\n#SBATCH -N1 --time=5 --job-name=its-own\n"
                           'echo "$SLURM_JOB_NAME $LOCKSTEP_PREFLIGHT"\n')
    assert output_of(cluster, "--name=ours", "--preflight=off", named)[0] == ["ours off"]
    # Behind "--" it is a command; a script with an error is not submitted.
    assert "slurm-batch" in cluster.run("submit", "--print", "--no-check", "-N2", "--", "old.sh").out
    assert "--script" not in cluster.run("submit", "--print", "--no-check", "-N2", "--", "old.sh").out
    bad = cluster.script("bad.sh", "#!/bin/bash\n#SBATCH --time=5\necho\n#SBATCH -N2\n")
    refused = cluster.run("submit", bad)
    assert refused.rc == 1 and "bad.sh:4: error" in refused.err, refused
    csh = cluster.script("c.sh", "#!/bin/tcsh\n#SBATCH --time=5\necho\n")
    refused = cluster.run("submit", "--no-check", csh)
    assert refused.rc == 2 and "not a shell like sh or bash" in refused.err, refused


def test_accelerate_is_asked_in_the_job(cluster):
    """If only the nodes have accelerate, the first node asks it, and the agents start the same."""
    folder = cluster.work / "env"
    (folder / "accelerate/commands").mkdir(parents=True)
    (folder / "accelerate/__init__.py").write_text("__version__ = '1'\n")
    (folder / "accelerate/utils").mkdir()
    for name in ("commands/__init__.py", "utils/__init__.py", "utils/launch.py"):
        (folder / "accelerate" / name).touch()
    (folder / "accelerate/commands/launch.py").write_text("""
import os, subprocess, sys
from torch.distributed import run
def main():
    os.environ["ACCELERATE_MIXED_PRECISION"] = "bf16"
    words = sys.argv[1:]
    machines = words[words.index("--num_machines") + 1]
    at = words.index("--num_processes") + 2
    args = run.get_args_parser().parse_args(["--nnodes", machines, "--nproc_per_node", "2", *words[at:]])
    run.run(args)
""")
    (cluster.work / "train.py").write_text(
        "import os, sys\n"
        "line = 'rank {RANK} of {WORLD_SIZE} {ACCELERATE_MIXED_PRECISION} '.format(**os.environ) + str(sys.argv[1:])\n"
        "os.write(1, (line + '\\n').encode())  # at once, as ranks share the file\n")
    words = ("accelerate", "launch", "--machine_rank", "0", "--num_machines", "2", "--num_processes", "4", "train.py",
             "a b")
    path = {"PYTHONPATH": str(folder)}
    expected = [f"rank {rank} of 4 bf16 ['a b']" for rank in range(4)]
    script_path = script(cluster, "--nodes=2|--ntasks-per-node=1|--time=5", f"""
export PYTHONPATH={folder}
srun accelerate launch --num_machines $SLURM_NNODES --machine_rank $SLURM_PROCID --num_processes 4 train.py "a b"
""")
    lines, _ = output_of(cluster, script_path)
    assert sorted(line for line in lines if line.startswith("rank")) == expected
    # Not importable here, so it is asked there.
    lines, ended = output_of(cluster, "-N2", "-t5", f"--env=PYTHONPATH={folder}", "--", *words)
    assert "the first node's accelerate will interpret" in ended.err
    assert sorted(line for line in lines if line.startswith("rank")) == expected
    # Importable here, so it is asked here.
    lines, ended = output_of(cluster, "-N2", "-t5", f"--env=PYTHONPATH={folder}", "--", *words, env=path)
    assert "the first node's accelerate" not in ended.err
    assert sorted(line for line in lines if line.startswith("rank")) == expected
    refused = cluster.run("submit", "-N3", "-t5", "--", *words)
    assert refused.rc == 2 and "configured for 2 machines, but the job has 3 nodes" in refused.err, refused


def test_deepspeed_with_a_hostfile(cluster):
    """Where pdsh would reach the hosts of the file, agents are on the nodes; the two must be equal."""
    path = script(cluster, "--nodes=2|--ntasks-per-node=1|--gpus-per-node=2|--time=5", f"""
export FROM_SCRIPT="a b"
scontrol show hostnames | sed 's/$/ slots=2/' > hosts
deepspeed --hostfile hosts --num_gpus 2 --no_local_rank --no_python {WORKER} {SHOW} || exit
echo "node3 slots=2" >> hosts
deepspeed --hostfile hosts --num_gpus 2 --no_local_rank --no_python {WORKER} {SHOW}
""")
    lines, ended = output_of(cluster, path, rc=2)
    assert sorted(line for line in lines if line.startswith("show")) == shown(4, 2)
    assert "the hostfile has 3 hosts, and the job has 2 nodes" in ended.out
