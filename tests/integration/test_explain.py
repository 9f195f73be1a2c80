"""--explain: the plan and the origin of each value, with nothing started; environments of schedulers; the way of the
token."""
import re

import pytest

from harness import BINARY, SCRIPTS, one_line, read

TOUCH = SCRIPTS / "touch.py"

# One task a node of `srun -N2 --exclude=n2` in a job of four nodes.
SLURM = {
    "SLURM_JOB_ID": 123, "SLURM_JOB_NUM_NODES": 4, "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_NNODES": 2,
    "SLURM_NTASKS": 2, "SLURM_STEP_ID": 0, "SLURM_STEP_NUM_NODES": 2, "SLURM_STEP_NUM_TASKS": 2,
    "SLURM_STEP_NODELIST": "n[1,3]", "SLURM_PROCID": 1, "SLURM_NODEID": 1, "SLURM_LOCALID": 0}


def explain(lockstep, *args, **options):
    """(row -> (value, origin), stderr); nothing was started and nothing made."""
    env = {"OUT_DIR": lockstep.facts, **options.pop("env", {})}
    ended = lockstep.run("--explain", *args, TOUCH, env=env, **options)
    assert ended.rc == 0, str(ended)
    assert not list(lockstep.facts.iterdir()) and not list(lockstep.temp.iterdir())
    rows = {}
    for line in ended.out.splitlines()[1:]:
        what, value, *origin = re.split(r"  +", line)
        rows[what] = (value, *origin)
    return rows, ended.err


def test_defaults(lockstep):
    rows, said = explain(lockstep)
    assert rows["nodes"] == ("1", "default")
    assert rows["backend"] == ("none", "one node meets nobody")
    assert rows["workers here"] == ("1", "default")
    assert rows["restarts"] == ("0", "default")
    assert rows["token"] == ("none", "default")
    assert rows["command"] == (f"/usr/bin/python3 -u {TOUCH}",)
    assert said == ""


def test_every_origin(lockstep):
    rows, _ = explain(lockstep, "--nnodes", "2:4", "--rdzv-endpoint", "h", "--log-dir", lockstep.logs,
                      "--exit-barrier-timeout", "9", env={"PET_RDZV_ID": "job", "PET_MAX_RESTARTS": "3"})
    assert rows["nodes"] == ("2 to 4", "option --nnodes")
    assert rows["backend"] == ("lockstep", "rule: several nodes, no backend named")
    assert rows["endpoint"] == ("h:29400", "option --rdzv-endpoint")
    assert rows["run id"] == ("job", "environment variable PET_RDZV_ID")
    assert rows["restarts"] == ("3", "environment variable PET_MAX_RESTARTS")
    assert rows["log directory"] == (str(lockstep.logs), "option --log-dir")
    assert rows["exit barrier"] == ("9 s", "option --exit-barrier-timeout")
    assert rows["rank order"] == ("host", "the backend")
    assert rows["lost host"] == (
        "from the first round on another node hosts, if more than half of the nodes are left", "the backend")
    for endpoint in ("a", "a,b"):
        rows, _ = explain(lockstep, "--nnodes", "1:2", "--rdzv-endpoint", endpoint)
        assert rows["lost host"][0] == ("the job ends with a: of two nodes only the host goes on alone (two hosts of "
                                        "run --on have a witness)")
    for backend in ("lockstep", "c10d", "etcd3"):
        rows, _ = explain(lockstep, "--nnodes", "2", "--rdzv-backend", backend, "--rdzv-endpoint", "a")
        assert rows["lost host"] == ("the job ends, as with any node: all are needed, and no spare or other node may "
                                     "take its place", "option --nnodes")
    assert not lockstep.logs.exists()


def test_the_command_line_beats_the_environment(lockstep):
    rows, _ = explain(lockstep, "--max-restarts", "1", env={"PET_MAX_RESTARTS": "3"})
    assert rows["restarts"] == ("1", "option --max-restarts")


def test_watchdogs_and_python(lockstep):
    rows, said = explain(lockstep)
    assert rows["health check"] == ("none", "TORCHELASTIC_HEALTH_CHECK_PORT is not set")
    assert rows["stuck workers"] == ("not watched", "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT is not set")
    assert rows["python"] == ("/usr/bin/python3", "environment variable PYTHON_EXEC")  # the harness sets it
    rows, said = explain(lockstep, env={
        "TORCHELASTIC_HEALTH_CHECK_PORT": "x", "TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": "/t",
        "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "7"})
    assert rows["health check"] == ("none", "environment variable TORCHELASTIC_HEALTH_CHECK_PORT")
    assert "TORCHELASTIC_HEALTH_CHECK_PORT=x must be a port" in said
    assert rows["file timer"] == ("/t", "environment variable TORCHELASTIC_TIMER_FILE")
    assert rows["stuck workers"] == ("end the job after 7 s",
                                     "environment variable TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT")


def test_static(lockstep):
    rows, _ = explain(lockstep, "--nnodes", "2", "--node-rank", "1", "--master-addr", "head", "--master-port", "5")
    assert rows["backend"][0] == "static"
    assert rows["node rank"] == ("1", "option --node-rank")
    assert rows["master address"] == ("head", "option --master-addr")
    assert rows["master port"] == ("5", "option --master-port")


@pytest.mark.parametrize("program", [["torchrun"], [BINARY, "launch"]])
def test_under_torchruns_names_the_backend_is_torchruns(lockstep, program):
    link = lockstep.folder / "torchrun"
    link.symlink_to(BINARY)
    rows, _ = explain(lockstep, "--nnodes", "2", "--rdzv-endpoint", "h:5",
                      program=[link] if program == ["torchrun"] else program)
    assert rows["backend"] == ("static", "rule: torchrun's default")
    assert rows["endpoint"] == ("h:5", "option --rdzv-endpoint")


@pytest.mark.parametrize("args, rc, word", [
    (["--nnodes", "0"], 1, "min_nodes"), (["--bogus"], 2, "--bogus"), (["--max-restarts", "x"], 2, "max-restarts"),
    (["--nnodes", "2"], 1, "place to meet"), (["--rdzv-backend", "zeus"], 1, "zeus")])
def test_bad_input_is_refused_in_the_same_words(lockstep, args, rc, word):
    explained = lockstep.run("--explain", *args, TOUCH)
    one_line(explained, rc, word)
    assert explained.out == ""
    assert explained.err == lockstep.run(*args, TOUCH).err


def test_a_missing_script_is_refused_as_well(lockstep):
    one_line(lockstep.run("--explain", "absent.py"), 1, "absent.py")
    one_line(lockstep.run("--explain"), 2, "script")


def test_no_file_of_the_current_folder_runs_where_torch_is_asked_for_devices(lockstep, tmp_path):
    ran = tmp_path / "ran"
    for name in ("torch", "json", "os"):
        (tmp_path / f"{name}.py").write_text(f"open({str(ran)!r}, 'w')\n")
    lockstep.run("--explain", "--nproc-per-node", "mydevice", TOUCH, cwd=tmp_path)
    assert not ran.exists()


def test_slurm(lockstep):
    rows, said = explain(lockstep, env=SLURM)
    assert rows["nodes"] == ("2", "Slurm: SLURM_STEP_NUM_NODES")
    assert rows["node rank"] == ("1", "Slurm: SLURM_NODEID")
    assert rows["backend"][0] == "lockstep"
    assert rows["endpoint"] == ("n1:20123", "Slurm: SLURM_STEP_NODELIST")
    assert rows["run id"][0] == "123.0"
    assert rows["rank order"][0] == "node-rank"
    (line,) = said.splitlines()
    for word in ("Slurm", "123.0", "--nnodes 2", "--node-rank 1", "--rdzv-endpoint n1:20123"):
        assert word in line
    first, _ = explain(lockstep, env={**SLURM, "SLURM_NODEID": 0, "SLURM_PROCID": 0})
    assert first["endpoint"] == rows["endpoint"] and first["run id"] == rows["run id"]
    assert first["node rank"][0] == "0"


def test_what_is_given_is_not_taken_from_slurm(lockstep):
    rows, said = explain(lockstep, "--nnodes", "1:2", "--rdzv-endpoint", "h:1", "--rdzv-id", "x", env=SLURM)
    assert rows["nodes"] == ("1 to 2", "option --nnodes")
    assert rows["endpoint"] == ("h:1", "option --rdzv-endpoint")
    assert rows["run id"] == ("x", "option --rdzv-id")
    assert rows["node rank"] == ("1", "Slurm: SLURM_NODEID")
    assert len(said.splitlines()) == 1


def test_a_batch_script_without_srun_uses_one_node_and_says_so(lockstep):
    batch = {k: v for k, v in SLURM.items() if "STEP" not in k}
    rows, said = explain(lockstep, env=batch)
    assert rows["nodes"] == ("1", "default")
    assert "4 nodes" in said and "srun" in said
    # ... and so does a run that starts something.
    ended = lockstep.run(TOUCH, env={"OUT_DIR": lockstep.facts, **batch})
    assert ended.rc == 0 and (lockstep.facts / "0").exists(), str(ended)


def test_an_interactive_shell_uses_one_node(lockstep):
    rows, said = explain(lockstep, env={**SLURM, "SLURM_PTY_PORT": 4711, "SLURM_NODEID": 0})
    assert (rows["nodes"], said) == (("1", "default"), "")


def test_torchrun_takes_nothing_from_slurm(lockstep):
    link = lockstep.folder / "torchrun"
    link.symlink_to(BINARY)
    rows, said = explain(lockstep, env=SLURM, program=[link])
    assert (rows["nodes"], said) == (("1", "default"), "")


def test_open_mpi(lockstep):
    rows, said = explain(lockstep, "--rdzv-endpoint", "h", env={
        "OMPI_COMM_WORLD_SIZE": 3, "OMPI_COMM_WORLD_RANK": 2, "OMPI_COMM_WORLD_LOCAL_SIZE": 1})
    assert rows["nodes"] == ("3", "Open MPI: OMPI_COMM_WORLD_SIZE")
    assert rows["node rank"] == ("2", "Open MPI: OMPI_COMM_WORLD_RANK")
    assert "Open MPI" in said


def test_kubeflow_sets_options(lockstep):
    rows, _ = explain(lockstep, env={
        "KUBERNETES_SERVICE_HOST": "10.0.0.1", "PET_NNODES": 2, "PET_NODE_RANK": 1, "PET_NPROC_PER_NODE": 4,
        "PET_MASTER_ADDR": "job-master-0", "PET_MASTER_PORT": 23456, "MASTER_ADDR": "job-master-0",
        "MASTER_PORT": 23456, "WORLD_SIZE": 8, "RANK": 1})
    assert rows["nodes"] == ("2", "environment variable PET_NNODES")
    assert rows["node rank"] == ("1", "environment variable PET_NODE_RANK")
    assert rows["backend"][0] == "static"
    assert rows["endpoint"][0] == "job-master-0:23456"
    assert rows["workers here"] == ("4", "environment variable PET_NPROC_PER_NODE")
    elastic, _ = explain(lockstep, env={
        "KUBERNETES_SERVICE_HOST": "10.0.0.1", "PET_NNODES": "1:3", "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "job-worker-0:23456", "PET_RDZV_ID": "job"})
    assert elastic["nodes"] == ("1 to 3", "environment variable PET_NNODES")
    assert elastic["backend"] == ("c10d", "environment variable PET_RDZV_BACKEND")


def test_kubernetes_pods_without_pet_variables(lockstep):
    rows, said = explain(lockstep, env={
        "KUBERNETES_SERVICE_HOST": "10.0.0.1", "MASTER_ADDR": "job-master-0", "MASTER_PORT": 23456,
        "WORLD_SIZE": 2, "RANK": 1})
    assert rows["nodes"] == ("2", "Kubernetes: WORLD_SIZE")
    assert rows["endpoint"] == ("job-master-0:23456", "Kubernetes: MASTER_ADDR, MASTER_PORT")
    assert len(said.splitlines()) == 1


def test_the_token_is_named_and_not_shown(lockstep):
    rows, said = explain(lockstep, env={"LOCKSTEP_RDZV_TOKEN": "hidden-in-env"})
    assert rows["token"] == ("given", "environment variable LOCKSTEP_RDZV_TOKEN")
    key = lockstep.folder / "key"
    key.write_text("hidden-in-file\n")
    key.chmod(0o600)
    with_file, more = explain(lockstep, "--rdzv-token-file", key, env={"LOCKSTEP_RDZV_TOKEN": "hidden-in-env"})
    assert with_file["token"] == ("given", "option --rdzv-token-file")
    assert "hidden" not in f"{rows} {said} {with_file} {more}"


@pytest.mark.parametrize("isolation", ["guardian", "pidns", "none"])
def test_no_process_of_the_job_shows_the_token(lockstep, isolation):
    go = lockstep.folder / "go"
    run = lockstep.start_worker("--isolation", isolation, env={"LOCKSTEP_RDZV_TOKEN": "hidden-in-env"}, actions=[
        f"env={lockstep.facts}", f"touch={lockstep.facts}", f"wait={go}"])
    lockstep.ready(1)
    assert not any(name.startswith("LOCKSTEP_RDZV") for name in lockstep.worker_env())
    living = run.living()
    assert len(living) >= 2, living
    for pid in living:
        assert "hidden-in-env" not in read(f"/proc/{pid}/environ") + read(f"/proc/{pid}/cmdline"), living[pid]
    go.touch()
    assert run.wait().rc == 0
