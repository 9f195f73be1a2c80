"""Containers where Slurm has a plugin for them: real Slurm with support/spank_image.c, which does what pyxis documents.
The script that `lockstep submit` makes runs outside of the image, and its ranks run in it."""
import pathlib
import re
import signal
import subprocess

import pytest

import container_image
from harness import SUPPORT, one_line, skip, until
from slurm_cluster import SlurmCluster


@pytest.fixture
def cluster(hosts, tmp_path):
    if not pathlib.Path("/usr/include/slurm/spank.h").exists():
        skip("no slurm/spank.h: run ./dev test once, which installs libslurm-dev")
    plugin, table = tmp_path / "spank_image.so", tmp_path / "plugstack.conf"
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o",
                    plugin, SUPPORT / "spank_image.c"], check=True)
    table.write_text(f"required {plugin}\n")
    made = SlurmCluster(hosts, 2, extra=[f"PlugStackConfig={table}"])
    made.image = container_image.make(tmp_path / "image")
    yield made
    made.close()


def sbatch(cluster, name, text, **options):
    """What the script prints by sbatch alone, outside of Lockstep."""
    out = cluster.work / f"{name}.out"
    cluster.slurm("sbatch", "--wait", "-o", out, cluster.script(name, text), **options)
    return out.read_text()


# A rank that fails waits for the other, which would be stopped.
END = "touch /data/end.$RANK; until [ -e /data/end.0 ]; do sleep 0.01; done;"


def lines_of(ended):
    return [re.sub(r"^(\[\w+\]: ?)", "", line) for line in ended.out.splitlines()]


def nothing_left(cluster):
    until(lambda: not any(name.startswith(("bwrap", "lockstep", "busybox", "sh")) for node in cluster.nodes
                          for name in node.processes().values()), 10, "no process is left")


def test_a_script_in_the_image_is_refused(cluster):
    """sbatch runs such a script in the image, where it finds no srun."""
    look = "cat /opt/marker; command -v srun || echo no srun\n"
    script = f"#!/bin/sh\n#SBATCH --container-image={cluster.image}\n{look}"
    assert sbatch(cluster, "by_line", script) == "in the image\nno srun\n"
    assert sbatch(cluster, "by_name", f"#!/bin/sh\n{look}", env={"PYXIS_CONTAINER_IMAGE": cluster.image}) == (
        "in the image\nno srun\n")
    assert "/usr/bin/srun" in sbatch(cluster, "outside", f"#!/bin/sh\n{look}")
    one_line(cluster.run("submit", cluster.work / "by_line"), 2, "line 2: #SBATCH --container-image", "srun is absent")
    one_line(cluster.run("submit", "-N2", "--", "train.py", env={"PYXIS_CONTAINER_IMAGE": cluster.image}), 2,
             "PYXIS_CONTAINER_IMAGE is set", "srun is absent")


def test_ranks_run_in_the_image_and_the_script_outside(cluster, tmp_path):
    submit = ("submit", "-N2", "-t5", "--follow", "--no-check", f"--container-image={cluster.image}",
              f"--container-mounts={tmp_path}:/data", "--container-workdir=/opt")
    shell = ("--", "--no-python", "sh", "-c")
    # In the image the script would find no srun, and start no rank.
    ended = cluster.run(*submit, *shell, f'echo "$RANK of $WORLD_SIZE $(cat marker) in $PWD"; {END} exit $((RANK * 7))')
    assert ended.rc == 7 and {f"{rank} of 2 in the image in /opt" for rank in (0, 1)} <= set(lines_of(ended)), ended

    run = cluster.start(*submit, "--max-restarts", "1", *shell,
                        'A=$TORCHELASTIC_RESTART_COUNT; echo rank $RANK start $A $(cat marker); touch /data/$RANK.$A; '
                        'until [ $A = 1 ]; do sleep 0.1; done')
    until(lambda: all((tmp_path / f"{rank}.0").exists() for rank in (0, 1)), 60, run.err())
    node = cluster.nodes[1]
    killed = min(pid for pid, name in node.processes().items() if name == "sh")
    run.signal(signal.SIGKILL, killed)
    ended = run.wait(60)
    assert ended.rc == 0, ended
    starts = [line for line in lines_of(ended) if line.startswith("rank")]
    assert sorted(starts) == [f"rank {rank} start {again} in the image" for rank in (0, 1) for again in (0, 1)], ended
    nothing_left(cluster)


def test_an_old_script_that_asks_for_containers(cluster, tmp_path):
    """Lockstep starts what it knows, and leaves the others to srun and the plugin."""
    image = f"--container-image={cluster.image}"
    script = cluster.script("old.sh", f"""#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --time=5
command -v srun > /dev/null && echo script outside
srun {image} --container-mounts={tmp_path}:/data --container-workdir=/opt torchrun --nnodes 2 --no-python sh -c \
  'echo rank $RANK $(cat marker); {END} exit $((RANK * 3))'
echo code $?
srun {image} sh -c 'echo task $SLURM_PROCID $(cat /opt/marker)'
export PYXIS_CONTAINER_IMAGE={cluster.image}
srun torchrun --nnodes 2 train.py || echo no torchrun in the image
MASTER_ADDR=$(hostname) torchrun --standalone --no-python sh -c 'ls /opt/marker || echo by itself: outside'
""")
    ended = cluster.run("submit", "--follow", "--no-check", script)
    assert ended.rc == 0 and "left unchanged, without Lockstep: PYXIS_CONTAINER_IMAGE is set" in ended.out, ended
    shown = re.compile("script|rank|code|task|no torchrun|by itself")
    lines = [line for line in lines_of(ended) if shown.match(line)]
    assert lines[0] == "script outside" and lines[-2:] == ["no torchrun in the image", "by itself: outside"], ended
    assert sorted(lines[1:-2]) == ["code 3", *(f"rank {rank} in the image" for rank in (0, 1)),
                                   *(f"task {task} in the image" for task in (0, 1))], ended
    nothing_left(cluster)
