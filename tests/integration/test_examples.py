"""The job scripts of examples/: they can be read, and lockstep understands the command lines in them."""
import re
import shlex
import subprocess

import yaml

from harness import REPOSITORY

SBATCH = REPOSITORY / "examples/slurm/train.sbatch"
MANIFEST = REPOSITORY / "examples/kubernetes/train.yaml"


def explained(lockstep, args, env):
    """`lockstep run --explain` with args as in the example; only what needs GPUs is replaced."""
    (lockstep.work / "train.py").touch()
    args = [re.sub(r"^(--nproc-per-node=)?gpu$", r"\g<1>8", arg) for arg in args]
    assert "--explain" not in args
    ended = lockstep.run("--explain", *args, env=env)
    assert ended.rc == 0 and "error" not in ended.err, str(ended)
    return {re.split(r"  +", line)[0]: re.split(r"  +", line)[1] for line in ended.out.splitlines()[1:]}


def test_the_batch_script(lockstep):
    subprocess.run(["bash", "-n", SBATCH], check=True, timeout=20)
    directives = dict(re.findall(r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", SBATCH.read_text(), re.M))
    assert directives["ntasks-per-node"] == "1"
    command = re.search(r"^exec srun (.*)\Z", SBATCH.read_text(), re.M | re.S)[1].replace("\\\n", " ")
    words = shlex.split(command.replace("$SLURM_JOB_ID", "7"))
    args = words[words.index("lockstep") + 2:]
    nodes = directives["nodes"]
    env = {"OMP_NUM_THREADS": 8, "SLURM_JOB_ID": 7, "SLURM_STEP_ID": 0, "SLURM_NODEID": 1, "SLURM_PROCID": 1,
           "SLURM_STEP_NUM_NODES": nodes, "SLURM_STEP_NUM_TASKS": nodes, "SLURM_NNODES": nodes, "SLURM_NTASKS": nodes,
           "SLURM_STEP_NODELIST": "n[1-4]"}
    rows = explained(lockstep, args, env)
    assert (rows["nodes"], rows["workers here"], rows["run id"]) == (nodes, "8", "7.0")
    assert rows["endpoint"].startswith("n1:")


def test_the_manifest(lockstep):
    service, job = yaml.safe_load_all(MANIFEST.read_text())
    spec = job["spec"]
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    assert (service["spec"]["clusterIP"], pod["subdomain"]) == ("None", service["metadata"]["name"])
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert spec["completions"] == spec["parallelism"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    program, verb, *args = [word.replace("$(JOB_UID)", "c0ffee") for word in container["command"]]
    assert (program, verb) == ("lockstep", "run")
    env = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    rows = explained(lockstep, args, {**env, "KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert (rows["nodes"], rows["run id"]) == (str(spec["completions"]), "c0ffee")
    assert rows["endpoint"] == f"{job['metadata']['name']}-0.{pod['subdomain']}:29400"
    stop = next(int(arg.split("=")[1]) for arg in args if arg.startswith("--shutdown-timeout"))
    assert stop < pod["terminationGracePeriodSeconds"]
