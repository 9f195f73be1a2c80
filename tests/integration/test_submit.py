"""Slurm jobs that Lockstep submits, on a real Slurm cluster of hosts on this machine."""
import json
import os
import pathlib
import re

import pytest

import container_image
from harness import BINARY, PYTHON, WORKER, one_line, until
from package_index import write_wheel
from slurm_cluster import SlurmCluster


@pytest.fixture
def cluster(hosts):
    made = SlurmCluster(hosts, 4)
    yield made
    made.close()


def submit(cluster, *words, **options):
    return cluster.run("submit", *words, **options)


def number_of(ended):
    assert ended.rc == 0, ended
    return re.fullmatch(r"Submitted batch job (\d+)\n", ended.out)[1]


def number_of_first_line(ended):
    return re.match(r"Submitted batch job (\d+)\n", ended.out)[1]


def number_in(running):
    """Returns the number of a followed job."""
    return until(lambda: re.search(r"Submitted batch job (\d+)\n", running.out()), 60, "it is submitted")[1]


def worker(*actions):
    return ("--", "--no-python", WORKER, *actions)


def test_ranks_on_all_nodes(cluster):
    """-N and GPUs are counted as with srun; the output is where sbatch puts it; nothing is left."""
    ended = submit(cluster, "-N2", "--gpus-per-node=2", "-t", "5", "--follow", "--env=OMP_NUM_THREADS=2",
                   *worker("show=RANK,WORLD_SIZE,LOCAL_WORLD_SIZE,CUDA_VISIBLE_DEVICES"))
    assert ended.rc == 0, ended
    number, *lines = ended.out.splitlines()
    job = number.split()[-1]
    assert sorted(lines) == [
        f"[rank{rank}]: show RANK={rank} WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 CUDA_VISIBLE_DEVICES=0,1" for rank in range(4)]
    assert sorted((cluster.work / f"slurm-{job}.out").read_text().splitlines()) == sorted(lines)
    assert cluster.run("logs", job).out.splitlines() == lines
    assert cluster.run("wait", job).rc == 0


def test_threads_of_ranks_are_the_same_on_all_nodes(cluster):
    """As with torchrun: 1 if a node has several ranks, with one line for the job; else the user's value."""
    for words, threads, said in ((("--gpus-per-node=1",), "-", 0), (("--gpus-per-node=2",), "1", 1)):
        ended = submit(cluster, "-N2", "-t5", "--follow", "--no-check", *words, *worker("show=RANK,OMP_NUM_THREADS"))
        assert ended.rc == 0, ended
        shown = re.findall(r"show RANK=\d OMP_NUM_THREADS=(\S*)", ended.out)
        assert len(shown) in (2, 4) and set(shown) == {threads}, ended
        assert (ended.out + ended.err).count("OMP_NUM_THREADS is not set") == said, ended


def test_gpus_and_tasks_in_every_spelling_of_slurms(cluster):
    """Slurm takes the job, and all ranks of a node see all of its GPUs."""
    for words, ranks, cpus in ((("--gres=gres/gpu:2",), 4, None), (("--gres=gpu=2",), 4, None),
                               (("--tres-per-task=gres/gpu=1", "--ntasks-per-node=2"), 4, "2"),
                               (("--tres-per-task=cpu:2,gres/gpu:1", "--ntasks-per-node=2"), 4, "4"),
                               (("--ntasks-per-gpu=1", "--gpus-per-node=2"), 4, "2"),
                               (("--gres=gpu:2", "--gpus-per-task=1"), 4, "2"),
                               (("--gpus-per-node=2", "--ntasks-per-node=2", "--cpus-per-gpu=2"), 4, None),
                               (("--gpus-per-node=2", "--gpu-bind=single:1"), 4, None)):
        plain = cluster.script("plain.sh", "#!/bin/sh\n")
        if cluster.slurm("sbatch", "--test-only", "-N2", "-t5", *words, plain, check=False).rc != 0:
            continue  # a version that does not take it
        # A job that completes still has its GPUs, and the next one would get others.
        until(lambda: not cluster.slurm("squeue", "-h").out.strip(), 30, "the job before is gone")
        ended = submit(cluster, "-N2", "-t5", "--follow", "--no-check", "--env=OMP_NUM_THREADS=1", *words,
                       *worker("show=RANK,WORLD_SIZE,CUDA_VISIBLE_DEVICES,SLURM_CPUS_PER_TASK"))
        assert ended.rc == 0, (words, ended)
        lines = sorted(ended.out.splitlines()[1:])
        assert len(lines) == ranks, (words, ended)
        for rank, line in enumerate(lines):
            assert f": show RANK={rank} WORLD_SIZE={ranks} CUDA_VISIBLE_DEVICES=0,1 " in line, (words, ended)
            assert cpus is None or line.endswith(f"SLURM_CPUS_PER_TASK={cpus}"), (words, ended)


def test_nobody_has_a_file_where_the_binary_comes_to(cluster):
    """A file in /tmp would still belong to the user who put it there, who could then change the job's program."""
    put = "for i in $(seq 9); do for end in '' -0 -1; do echo his > /tmp/lockstep-$i$end; done; done; " \
          "chown nobody /tmp/lockstep-*; chmod 777 /tmp/lockstep-*"
    for node in cluster.nodes:
        assert node.run("-c", put, program=("/bin/sh",)).rc == 0
    ended = submit(cluster, "-N4", "-t5", "--binary=sbcast", "--wait", *worker("exit=0"))
    assert ended.rc == 0, ended
    for node in cluster.nodes:
        told = node.run("-c", "cat /tmp/lockstep-*; stat -c %U /tmp/lockstep-* | sort -u", program=("/bin/sh",))
        assert told.out == "his\n" * 27 + "nobody\n", told


@pytest.mark.parametrize("words, by, brought", (((), "login", False), (("--binary=sbcast",), "login", True),
                                                ((), "node", True)))
def test_the_binary_is_brought_where_it_may_not_be_seen(cluster, words, by, brought):
    """This home looks like a local disk. A submission from another host shows that it is shared."""
    host = cluster.login if by == "login" else cluster.nodes[0]
    running = host.start("submit", "-N2", "-w", "node1,node2", "-t5", "--follow", *words, *worker("pause"),
                         program=(BINARY,), env=cluster.env, cwd=cluster.work)
    job = number_in(running)
    (seen,) = cluster.home.glob(".local/state/lockstep/slurm/*/lockstep")
    place = rf"/tmp/lockstep-{job}-0-\w+ \(deleted\)" if brought else re.escape(str(seen))
    for node in cluster.nodes[:2]:
        assert re.fullmatch(place, os.readlink(f"/proc/{node.agent()}/exe"))
    assert [node.run("/tmp", program=("/bin/ls",)).out.count("lockstep-") for node in cluster.nodes] == [0, 0, 0, 0]
    assert cluster.run("cancel", job).rc == 0
    assert running.wait(60).rc != 0


def test_the_root_cause_is_the_exit_code(cluster):
    for rank, code in ((3, 7), (0, 3)):
        ended = submit(cluster, "-N2", "--ntasks-per-node=2", "-t5", "--wait",
                       *worker(f"@{rank}", f"exit={code}", "@*", "pause"))
        assert ended.rc == code, ended
        listed = json.loads(cluster.run("jobs", "--json").out)["jobs"][0]
        assert (listed["state"], listed["code"]) == ("succeeded" if code == 0 else "failed", code)
    assert f"rank 0 on node1 exited with {code}" in cluster.run("logs", listed["job"]).out


def test_print_submits_nothing(cluster):
    ended = submit(cluster, "--print", "--no-check", "-N2", "--spare", "1", "--comment", "it's", "--",
                   "train.py", "a b")
    assert ended.rc == 0 and ended.err == "", ended
    assert "#SBATCH --nodes=3\n" in ended.out
    assert cluster.slurm("squeue", "-h").out == ""
    assert not (cluster.home / ".local/state/lockstep/slurm").exists()
    # sbatch accepts the script that --print shows.
    script = cluster.script("shown.sh", ended.out)
    assert cluster.slurm("sbatch", "--test-only", script).rc == 0
    told = cluster.slurm("sbatch", "--parsable", "--hold", script).out.strip()
    assert cluster.job(told)["Comment"] == "it's"
    cluster.slurm("scancel", told)


def test_wait_cancel_and_jobs(cluster, tmp_path):
    job = number_of(submit(cluster, "-N2", "-t5", *worker(f"touch={tmp_path}", "pause")))
    until(lambda: len(list(tmp_path.glob("[01]"))) == 2, 60, "both ranks run")
    assert json.loads(cluster.run("jobs", "--json").out)["jobs"][0]["state"] == "running"
    waiting = cluster.start("wait", job, "--json")
    ended = cluster.run("cancel", job)
    assert ended.rc == 0 and ended.out.startswith(f"{job}: "), ended
    waited = waiting.wait(60)
    assert waited.rc == 143, waited
    assert json.loads(waited.out)["state"] == "canceled"
    until(lambda: not any(cluster._of_jobs(node) for node in cluster.nodes), 30, "nothing is left")


def test_bad_input_submits_nothing(cluster):
    cluster.script("train.py", "")
    cluster.script("ds.json", '{"a": 1,}')
    for words, rc, text in (
            (("-N2",), 2, "no command is given"),
            (("-N", "x", "--", "train.py"), 2, "--nodes=x must be a number of nodes"),
            (("--nodez=2", "--", "train.py"), 2, "nodez"),
            (("-N2", "-p", "nowhere", "-t5", "--", "train.py"), 1, "invalid partition"),
            (("-N9", "-t5", "--", "train.py"), 1, "test-only"),
            (("-N9", "-t5", "--no-check", "-p", "nowhere", "--", "train.py"), 1, "sbatch refused the job"),
            (("-N2", "-t5", "-o", "nowhere/x.out", "--", "train.py"), 2, "nowhere does not exist"),
            (("-N2", "-t5", "--", "trian.py"), 1, "trian.py is not there"),
            (("-N2", "-t5", "--", "train.py", "--deepspeed", "ds.json"), 1, "it is not a JSON object"),
            (("-N2", "--detach", "--", "train.py"), 2, "--detach is not for jobs of Slurm's"),
            (("-N2", "--queue=5", "--", "train.py"), 2, "--queue is not for jobs of Slurm's"),
            (("-N2", "--mixed-hosts", "--", "train.py"), 2, "--mixed-hosts is not for jobs of Slurm's"),
            (("-N2", "--name=a", "-J", "b", "--", "train.py"), 2, "--name and --job-name")):
        ended = submit(cluster, *words)
        assert ended.rc == rc, ended
        assert all(line.startswith("lockstep submit: ") for line in ended.error_lines), ended
        assert text in ended.error_lines[-1], ended
    assert cluster.slurm("squeue", "-h").out == ""
    folder = pathlib.Path(cluster.home / ".local/state/lockstep/slurm")
    assert [path.name for path in folder.glob("*") if path.is_dir()] == []


def test_an_agent_that_can_not_begin_says_why(cluster):
    """The reason is the job's, in place of an exit code of srun's."""
    job = number_of(submit(cluster, "-N2", "-t5", "--no-check", "trian.py"))
    assert cluster.run("wait", job).rc == 1
    told = cluster.run("why", job).out
    assert re.search(r"  why     node\d: can't open script 'trian.py': No such file or directory; ", told), told


def test_a_job_that_cron_submits(cluster):
    """Without a PATH."""
    bare = {name: None for name in ("PATH", "TMPDIR", "LANG", "PYTHON_EXEC")}
    ended = submit(cluster, "-N2", "-t5", "--follow", *worker("out=here"), env=bare)
    assert ended.rc == 0 and ended.out.count("here") == 2, ended


@pytest.fixture
def slow_to_notice(hosts):
    made = SlurmCluster(hosts, 4, extra=["SlurmdTimeout=300"])  # Slurm's default
    yield made
    made.close()


def test_ranks_in_a_container(cluster, tmp_path):
    """One container per node, by the option of pyxis. The node's Python is not asked, and nothing is left."""
    image = container_image.make(tmp_path / "image")
    options = ("-N2", "-t5", "--follow", f"--container-image={image}", f"--container-mounts={tmp_path}:/data:ro")
    shell = ("--", "--no-python", "sh", "-c")
    ended = submit(cluster, *options, *shell, 'echo "$RANK of $WORLD_SIZE $(cat /opt/marker) $(ls -d /data/image)"')
    assert ended.rc == 0, ended
    assert {f"[rank{rank}]: {rank} of 2 in the image /data/image" for rank in (0, 1)} <= set(ended.out.splitlines())
    running = cluster.start("submit", *options, *shell,
                            "echo up; until [ -e /data/go ]; do sleep 0.1; done; exit $RANK")
    until(lambda: running.out().count("up") == 2, 60, running.err())
    job = number_in(running)
    ended = cluster.run("exec", "--secret", "A", job, "--", "sh", "-c", 'cat /opt/marker; echo "$A $PWD"; exit 5',
                        env={"A": "s3cret"})
    assert ended.rc == 5, ended
    assert sorted(ended.out.splitlines()) == sorted(
        f"{node}: {line}" for node in (0, 1) for line in ("in the image", f"s3cret {cluster.work}")), ended
    (tmp_path / "go").touch()
    ended = running.wait()
    assert ended.rc == 1 and f"  image     : {image}\n" in ended.out, ended
    until(lambda: not any(name.startswith(("bwrap", "lockstep")) for node in cluster.nodes
                          for name in node.processes().values()), 10, "no container is left")


def test_a_container_that_starts_on_all_nodes_but_one(cluster, tmp_path):
    """The pre-flight cannot know. The job ends in seconds, not after the rendezvous's ten minutes, unless enough nodes
    are left."""
    image = container_image.make(tmp_path / "image")
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho bwrap: no room for a root >&2\nexit 1\n")
    broken.chmod(0o755)
    ended = cluster.nodes[1].run("--bind", broken, "/usr/bin/bwrap", program=("mount",))
    assert ended.rc == 0, ended
    job = (f"--container-image={image}", "-t5", "--follow", "--", "--no-python", "sh", "-c",
           "echo $RANK of $WORLD_SIZE")
    # The nodes of the second job would meet at node2, also with a spare.
    for words in (("-N3", "-w", "node[1-3]"), ("-N2", "--spare", "1", "-w", "node[2-4]")):
        ended = submit(cluster, *words, "--requeue", *job, timeout=60)
        assert ended.rc == 126 and "bwrap: no room for a root" in ended.out and "[rank" not in ended.out, ended
        assert f"not started: node2: bubblewrap started no container of the image {image} (exit code 1)" in ended.out, \
            ended
    number = number_of_first_line(ended)
    said = cluster.run("why", number)
    assert f"why     node2: bubblewrap started no container of the image {image} (exit code 1)" in said.out, said
    assert cluster.job(number)["Restarts"] == "0", cluster.job(number)
    for words in (("-N2", "--spare", "1", "-w", "node[1-3]"), ("-N3", "--min-nodes", "2", "-w", "node[1-3]")):
        ended = submit(cluster, *words, *job, timeout=90)
        assert ended.rc == 0, (words, ended)
        assert {"[rank0]: 0 of 2", "[rank1]: 1 of 2"} <= set(ended.out.splitlines()), (words, ended)


def test_options_of_pyxis(cluster, tmp_path):
    printed = submit(cluster, "-N2", "--print", "--container-image", "nvcr.io#nvidia/pytorch:24.05-py3",
                     "--container-workdir=/w", "--no-container-mount-home", "--no-container-remap-root",
                     "--no-container-entrypoint", "--", "train.py")
    assert printed.rc == 0 and "--container-workdir=/w" in printed.out, printed
    assert "--container=docker://nvcr.io/nvidia/pytorch:24.05-py3" in printed.out, printed
    assert "#SBATCH --container" not in printed.out and "#SBATCH --no-container" not in printed.out, printed
    assert printed.out.splitlines()[-1] == (
        "# The container: docker://nvcr.io/nvidia/pytorch:24.05-py3 is an image of a registry, and each node runs it "
        "by enroot, or else apptainer, or else singularity, or else podman, or else docker"), printed
    printed = submit(cluster, "--print", "--container=/gone.sqsh", "--", "train.py")
    assert printed.out.splitlines()[-1] == (
        "# The container: --container /gone.sqsh: no such file or folder; each node looks for the image again, and "
        "chooses a runtime by its kind"), printed
    ended = submit(cluster, "--", "train.py", env={"PYXIS_CONTAINER_IMAGE": "ubuntu"})
    one_line(ended, 2, "PYXIS_CONTAINER_IMAGE is set, by which pyxis would run the script itself in the image")
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --container-image=ubuntu\ntorchrun train.py\n")
    for words, says in (((script,), "line 2: #SBATCH --container-image=ubuntu would run the script itself"),
                        (("--container-remap-root", "--", "train.py"), "--container-remap-root is pyxis'"),
                        (("--container-name=x", "--", "train.py"), "--container-name is pyxis'")):
        ended = submit(cluster, *words)
        assert ended.rc == 2 and says in ended.err and len(ended.err.splitlines()) == 1, ended
    assert cluster.run("jobs").out.count("train") == 0
    script.write_text("#!/bin/bash\n#SBATCH --no-container-mount-home\ntorchrun train.py\n")
    assert submit(cluster, "--print", "--no-check", script).rc == 0


def test_a_spare_replaces_a_dead_node(slow_to_notice, tmp_path):
    """A training node loses power. The spare replaces it, and the job ends with the training, before Slurm notices
    the loss."""
    cluster = slow_to_notice
    running = cluster.start("submit", "-N2", "--spare", "1", "-t10", "--follow",
                            *worker(f"env={tmp_path}", f"touch={tmp_path}", f"wait={tmp_path}/go"))
    until(lambda: len(list(tmp_path.glob("[01]"))) == 2, 60, "both ranks run")
    first = {rank: (tmp_path / str(rank)).stat().st_mtime_ns for rank in (0, 1)}
    # The first nodes train. Choose one other than the node of the batch script.
    dead = next(node for node in cluster.nodes[1:] if "test_worker" in node.processes().values())
    cluster.power_cut(dead)
    until(lambda: all((tmp_path / str(rank)).stat().st_mtime_ns != first[rank] for rank in (0, 1)), 60,
          "both ranks run again")
    assert cluster.job(number_in(running))["JobState"] == "RUNNING"
    (tmp_path / "go").touch()
    ended = running.wait(90)
    assert ended.rc == 0, ended
    assert f"{dead.name} is gone" in ended.out, ended
    assert "down" not in cluster.node_states()[dead.name]


@pytest.mark.parametrize("preflight", ("quick", "off"))
def test_a_wheel_that_fails_on_the_first_node(cluster, preflight):
    """The other nodes would meet on this node. They meet elsewhere, and a spare replaces it."""
    wheel = write_wheel(cluster.work, "toy", "1.0", "import socket\nassert socket.gethostname() != 'node1', 'no GPU'\n")
    program = ("--", "--no-python", PYTHON, "-c", "import os, socket, toy; print('rank', os.environ['RANK'], 'of', "
               "os.environ['WORLD_SIZE'], 'on', socket.gethostname(), flush=True)")
    running = cluster.start("submit", "-N2", "--spare=1", "-w", "node[1-3]", "-t5", "--follow", f"--wheel={wheel}",
                            f"--preflight={preflight}", "--env=OMP_NUM_THREADS=1", *program)
    ended = running.wait(60)
    assert ended.rc == 0, ended
    lines = [line for line in ended.out.splitlines() if "rank" in line]
    assert {re.sub(r"^\[rank\d\]: ", "", line) for line in lines} == {"rank 0 of 2 on node2", "rank 1 of 2 on node3"}
    told = cluster.run("why", number_in(running)).out
    assert re.search(r"  without node1: toy-1\.0.*no GPU", told), told


def test_jobs_that_share_nodes_have_ports_of_their_own(cluster, tmp_path):
    """Two jobs on the same two nodes at the same time. On the first node another program also holds the usual port."""
    listens = "import socket, time; s = socket.create_server(('', 29500)); print('up', flush=True); time.sleep(600)"
    taken = cluster.nodes[0].start("-c", listens, program=(PYTHON,))
    until(lambda: "up" in taken.out(), 20, "port 29500 is taken")
    jobs = [cluster.start("submit", "-N2", "-w", "node[1-2]", "--ntasks-per-node=2", "-t5", "--follow",
                          *worker("show=MASTER_ADDR,MASTER_PORT", f"touch={tmp_path}/{number}", f"wait={tmp_path}/go"))
            for number in range(2) if (tmp_path / str(number)).mkdir() is None]
    until(lambda: all(len(list((tmp_path / str(number)).iterdir())) == 4 for number in range(2)), 60, "all ranks run")
    (tmp_path / "go").touch()
    meeting = []
    for job in jobs:
        ended = job.wait(60)
        assert ended.rc == 0, ended
        places = set(re.findall(r"show (MASTER_ADDR=\S+ MASTER_PORT=\d+)", ended.out))
        assert len(places) == 1 and ended.out.count("show MASTER_ADDR") == 4, ended
        meeting += places
    assert meeting[0] != meeting[1] and not any(place.endswith("=29500") for place in meeting), meeting
    taken.kill()


def test_a_job_that_somebody_else_submitted(cluster):
    script = cluster.script("plain.sh", "#!/bin/sh\n#SBATCH -N1 -t5\necho from plain sbatch\nexit 9\n")
    job = cluster.slurm("sbatch", "--parsable", script).out.strip()
    assert cluster.run("wait", job).rc == 9
    assert cluster.run("logs", job).out == "from plain sbatch\n"
    # What lies there is its owner's business: nobody waits for a pipe.
    output = cluster.work / f"slurm-{job}.out"
    output.unlink()
    os.mkfifo(output)
    assert cluster.run("logs", job, timeout=30).out == ""
    ended = cluster.run("logs", "424242")
    assert ended.rc == 2 and "Slurm knows no job 424242" in ended.err, ended


def shell(text):
    return ("--", "--no-python", "/bin/sh", "-c", text)


def test_the_time_limit_stops_all_ranks_and_queues_the_job_again(cluster, tmp_path):
    """The lead signal, by hand: Slurm's own comes up to a minute early or late."""
    running = cluster.start("submit", "-N2", "-t30", "--requeue", "--follow", "--env=OMP_NUM_THREADS=1", *shell(
        f'[ "$SLURM_RESTART_COUNT" = 1 ] && exit 0; trap "echo checkpoint; touch {tmp_path}/$RANK.saved; exit 0" TERM; '
        f'touch {tmp_path}/$RANK.runs; while :; do sleep 0.1; done'))
    until(lambda: len(list(tmp_path.glob("*.runs"))) == 2, 60, "both ranks run")
    cluster.slurm("scancel", "--batch", "--signal=USR1", number_in(running))
    until(lambda: len(list(tmp_path.glob("*.saved"))) == 2, 30, "both ranks have saved")
    ended = running.wait(120)
    assert ended.rc == 0, ended
    # Slurm signals every process of a step, and the agents their ranks: some are told twice.
    assert "time limit" in ended.out and ended.out.count("checkpoint") >= 2, ended
    assert cluster.job(number_in(running))["Restarts"] == "1"


def test_ranks_have_the_time_before_the_limit_to_save_their_state(cluster, tmp_path):
    """After another worker's failure a worker has half a minute. Here one needs longer, before the time limit."""
    running = cluster.start("submit", "-N2", "-t30", "--wait", *shell(
        f'trap "[ $RANK = 0 ] || sleep 35; touch {tmp_path}/$RANK.saved; exit 0" TERM; '
        f'touch {tmp_path}/$RANK.runs; while :; do sleep 0.1; done'))
    until(lambda: len(list(tmp_path.glob("*.runs"))) == 2, 60, "both ranks run")
    cluster.slurm("scancel", "--batch", "--signal=USR1", number_in(running))
    assert running.wait(120).rc == 124
    assert len(list(tmp_path.glob("*.saved"))) == 2


def test_without_requeue_the_time_limit_is_124(cluster, tmp_path):
    running = cluster.start("submit", "-N2", "-t30", "--wait", *shell(
        f'touch {tmp_path}/$RANK.runs; while :; do sleep 0.1; done'))
    until(lambda: len(list(tmp_path.glob("*.runs"))) == 2, 60, "both ranks run")
    cluster.slurm("scancel", "--batch", "--signal=USR1", number_in(running))
    assert running.wait(60).rc == 124
    assert cluster.job(number_in(running))["ExitCode"] == "124:0"


def test_a_dead_node_without_spares_is_left_out_of_the_next_run(cluster, tmp_path):
    running = cluster.start("submit", "-N2", "-t30", "--requeue", "--follow", *shell(
        f'[ "$SLURM_RESTART_COUNT" = 1 ] && exit 0; touch {tmp_path}/$RANK.runs; while :; do sleep 0.1; done'))
    until(lambda: len(list(tmp_path.glob("*.runs"))) == 2, 60, "both ranks run")
    cluster.power_cut(cluster.nodes[1])
    ended = running.wait(180)
    assert ended.rc == 0, ended
    told = cluster.job(number_in(running))
    assert (told["Restarts"], told["ExcNodeList"]) == ("1", "node2"), ended


def test_a_preempted_job_goes_on(cluster, tmp_path):
    running = cluster.start("submit", "-N4", "--exclusive", "-t30", "--follow", *shell(
        f'[ "$SLURM_RESTART_COUNT" = 1 ] && exit 0; trap "touch {tmp_path}/$RANK.saved; exit 0" TERM; '
        f'touch {tmp_path}/$RANK.runs; while :; do sleep 0.1; done'))
    until(lambda: len(list(tmp_path.glob("*.runs"))) == 4, 60, "all ranks run")
    urgent = cluster.slurm("sbatch", "--parsable", "-p", "urgent", "-N4", "--exclusive", "-t5", "--wrap", "true").out
    until(lambda: len(list(tmp_path.glob("*.saved"))) == 4, 60, "all ranks have saved")
    ended = running.wait(180)
    assert ended.rc == 0, ended
    assert cluster.job(number_in(running))["Restarts"] == "1"
    assert cluster.job(urgent.strip())["JobState"] == "COMPLETED"


def test_a_file_of_its_own_for_errors(cluster, tmp_path):
    """Each stream has whole, tagged lines in its file; the job's own notes are errors."""
    running = cluster.start("submit", "-N2", "--ntasks-per-node=2", "-t5", "-e", "errors.%j", "--follow",
                            *worker("lines=50", "err=to stderr\\n", f"touch={tmp_path}", f"wait={tmp_path}/go",
                                    "@3", "exit=4", "@*", "pause"))
    until(lambda: len(list(tmp_path.glob("[0-3]"))) == 4, 60, "all ranks have spoken")
    (tmp_path / "go").touch()
    ended = running.wait(60)
    assert ended.rc == 4, ended
    job = re.search(r"Submitted batch job (\d+)\n", ended.out)[1]
    out = (cluster.work / f"slurm-{job}.out").read_text().splitlines()
    errors = (cluster.work / f"errors.{job}").read_text().splitlines()
    assert len(out) == 200 and all(re.match(r"\[rank[0-3]\]: ", line) for line in out), out
    assert [f"[rank{rank}]: to stderr" in errors for rank in range(4)] == [True] * 4, errors
    assert any(f"job {job}: worker: rank 3 on node2 exited with 4" in line for line in errors), errors
    assert ended.out.splitlines()[1:] == out


@pytest.fixture
def bound(hosts):
    """Returns a cluster whose Slurm binds tasks to their CPUs."""
    made = SlurmCluster(hosts, 2, cpus=2, extra=["TaskPlugin=task/affinity"])
    yield made
    made.close()


def test_ranks_have_the_cpus_of_the_allocation(bound):
    # One write per line: lines of other ranks may come between two writes.
    program = ("--", "--no-python", PYTHON, "-c",
               "import os; os.write(1, b'cpus %d\\n' % len(os.sched_getaffinity(0)))")
    for words, ranks, cpus in ((("-c1",), 2, 1), (("-c2",), 2, 2), (("--ntasks-per-node=2", "-c1"), 4, 2)):
        ended = submit(bound, "-N2", "-t5", "--follow", "--env=OMP_NUM_THREADS=1", *words, *program)
        assert ended.rc == 0, ended
        assert re.findall(r"cpus \d+", ended.out) == [f"cpus {cpus}"] * ranks, (words, ended)
    # The binding of srun itself.
    plain = bound.slurm("srun", "-N2", "-n2", "-c1", *program[2:])
    assert re.findall(r"cpus \d+", plain.out) == ["cpus 1"] * 2, plain
