"""`lockstep run --container`: real bubblewrap and podman, and stand-ins that check the words for the other runtimes."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile

import pytest

import container_image
from harness import BINARY, PEERS, SUPPORT, alive, children, free_port, one_line, read, skip, until
from ssh_hosts import SshWorld

SHELL = ("--no-python", "sh", "-c")


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            skip(f"no {program}: run ./dev test once, which installs it")


@pytest.fixture(scope="module")
def folder_image(tmp_path_factory):
    return container_image.make(tmp_path_factory.mktemp("image"))


class Podman:
    """Podman with a storage of its own. runc and these limits also do on machines that deny setrlimit()."""

    def __init__(self, folder):
        self.folder = folder

        def limits(which, most):
            soft, hard = (min(value if value >= 0 else most, most) for value in resource.getrlimit(which))
            return f"{soft}:{hard}"
        pids = int(read("/proc/sys/kernel/pid_max"))
        nofile = limits(resource.RLIMIT_NOFILE, 1 << 20)
        nproc = limits(resource.RLIMIT_NPROC, pids)
        (folder / "containers.conf").write_text(
            f'[containers]\ndefault_ulimits = ["nofile={nofile}", "nproc={nproc}"]\n'
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
            # The locks of other users of podman are in /dev/shm.
            f'lock_type = "file"\ntmp_dir = "{folder}/tmp"\n')
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n')
        self.env = {"CONTAINERS_CONF": f"{folder}/containers.conf", "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf"}

    def __call__(self, *words, **options):
        return subprocess.run(["podman", *words], env={**os.environ, **self.env}, check=True, capture_output=True,
                              text=True, **options).stdout

    def containers(self):
        return self("ps", "--all", "--quiet").split()


@pytest.fixture(scope="module")
def podman(folder_image):
    need("podman", "runc")
    # Not below pytest's folder: podman hangs if the path of a socket has more than 107 bytes.
    made = Podman(pathlib.Path(tempfile.mkdtemp(prefix="lockstep-podman-")))
    packed = subprocess.run(["tar", "-C", folder_image, "-c", "."], check=True, capture_output=True).stdout
    subprocess.run(["podman", "import", "--change", "ENV WHO=image", "-", "mine"], input=packed, check=True,
                   capture_output=True, env={**os.environ, **made.env})
    yield made
    made("rmi", "--all", "--force")
    shutil.rmtree(made.folder)


class World:
    def __init__(self, image, env, containers):
        self.image = ("--container", str(image))
        self.env = env
        self.containers = containers


# By hand (CONTRIBUTING.md): the folder of a real enroot, which no package has, a real apptainer, which Debian 12 lacks,
# and the socket of a real dockerd.
ENROOT = os.environ.get("LOCKSTEP_ENROOT")
APPTAINER = os.environ.get("LOCKSTEP_APPTAINER")
DOCKERD = os.environ.get("LOCKSTEP_DOCKERD")


@pytest.fixture(scope="module")
def squashfs_image(folder_image):
    file = folder_image.parent / "mine.sqsh"
    subprocess.run(["mksquashfs", folder_image, file, "-quiet"], check=True, capture_output=True)
    return file


@pytest.fixture(scope="module")
def docker(folder_image, tmp_path_factory):
    """The image at a dockerd, and PATH without podman, which would be chosen."""
    folder = tmp_path_factory.mktemp("docker")
    for program in ("/usr/bin/docker", "/bin/sh"):
        (folder / pathlib.Path(program).name).symlink_to(program)
    env = {"DOCKER_HOST": f"unix://{DOCKERD}", "PATH": str(folder)}
    packed = subprocess.run(["tar", "-C", folder_image, "-c", "."], check=True, capture_output=True).stdout
    subprocess.run(["docker", "import", "--change", "ENV WHO=image", "-", "localhost/mine"], input=packed, check=True,
                   capture_output=True, env=env)

    def containers():
        return subprocess.run(["docker", "ps", "-aq"], check=True, capture_output=True, env=env).stdout.split()
    return World("localhost/mine", env, containers)


@pytest.fixture(scope="module")
def apptainer(folder_image, tmp_path_factory):
    """The folder, the same as a .sif file, and PATH without bubblewrap, which would be chosen for the folder."""
    folder = tmp_path_factory.mktemp("apptainer")
    for program in (APPTAINER, "/bin/sh"):
        (folder / pathlib.Path(program).name).symlink_to(program)
    file = folder / "mine.sif"
    subprocess.run([APPTAINER, "build", file, folder_image], check=True, capture_output=True)
    env = {"PATH": str(folder), "APPTAINER_WRITABLE_TMPFS": "1"}

    def mounts():  # these processes have an environment of their own
        return subprocess.run(["pgrep", "-u", str(os.getuid()), "squashfuse|fuse-overlayfs"], check=False,
                              capture_output=True).stdout.split()
    return {"sif": World(file, env, mounts), "folder": World(folder_image, env, mounts)}


REAL = [*(["enroot"] if ENROOT else []), *(["apptainer-sif", "apptainer-folder"] if APPTAINER else []),
        *(["docker"] if DOCKERD else [])]


@pytest.fixture(params=["bubblewrap", "podman", *REAL])
def world(request, folder_image):
    """The same image for all: the options, the variables, and which containers podman knows."""
    if request.param == "bubblewrap":
        need("bwrap")
        return World(folder_image, {}, list)
    if request.param == "enroot":
        file = request.getfixturevalue("squashfs_image")
        return World(file, {"PATH": f"{ENROOT}/bin:{os.environ['PATH']}", "ENROOT_ROOTFS_WRITABLE": "yes"}, list)
    if request.param.startswith("apptainer-"):
        return request.getfixturevalue("apptainer")[request.param.removeprefix("apptainer-")]
    if request.param == "docker":
        return request.getfixturevalue("docker")
    podman = request.getfixturevalue("podman")
    return World("localhost/mine", podman.env, podman.containers)


def nothing_left(lockstep, run, world):
    run.none_left(10)
    until(lambda: not world.containers(), 10, "no container left")
    assert not [path for path in lockstep.temp.iterdir() if "lockstep-container" in path.name]


def test_exit_code_streams_and_report(lockstep, world):
    ended = lockstep.run(
        *world.image, "--nproc-per-node", "2", "--exit-code", "worker", "--report", "report.json", *SHELL,
        'cat /opt/marker; echo "$FOO in $PWD as $(id -u)"; touch made.$RANK; echo oops >&2; [ $RANK = 0 ] || exit 7; '
        'sleep 1000', env={**world.env, "FOO": "a b"})
    assert ended.rc == 7, ended
    assert f"a b in {lockstep.work} as {os.getuid()}\n" in ended.out and "in the image\n" in ended.out, ended
    assert "oops" in ended.err and "rank      : 1 (local_rank: 1)" in ended.err, ended
    assert f"  image     : {world.image[1]}\n" in ended.err, ended
    assert json.loads(read(lockstep.work / "report.json"))["image"] == world.image[1]
    assert (lockstep.work / "made.1").stat().st_uid == os.getuid()
    assert not world.containers()


def test_success_leaves_nothing(lockstep, world):
    run = lockstep.start(*world.image, *SHELL, "echo fine", env=world.env)
    ended = run.wait()
    # enroot's lines about the unpacking end with this one. apptainer tells what it uses to mount.
    err = ended.err.rpartition("created 0 hardlinks\n")[2].splitlines()
    assert (ended.rc, ended.out, [line for line in err if "INFO: " not in line]) == (0, "fine\n", []), ended
    nothing_left(lockstep, run, world)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1], ids=["TERM", "INT", "USR1"])
def test_signals_reach_the_ranks(lockstep, world, number):
    name = number.name[3:]
    run = lockstep.start(*world.image, "--nproc-per-node", "2", *SHELL,
                         f'trap "echo got {name}; exit 0" {name}; echo ready; while true; do sleep 0.01; done',
                         env=world.env)
    until(lambda: run.out().count("ready") == 2)
    run.signal(number)
    ended = run.wait()
    assert ended.rc == (0 if number == signal.SIGUSR1 else 1), ended
    assert ended.out.count(f"got {name}") == 2, ended
    nothing_left(lockstep, run, world)


def test_nothing_outlives_the_command(lockstep, world):
    run = lockstep.start(*world.image, "--nproc-per-node", "2", *SHELL,
                         'trap "" TERM INT HUP; sleep 1000 & echo $! > pid.$RANK; wait', env=world.env)
    pids = [until(lambda: (lockstep.work / f"pid.{rank}").exists() and read(lockstep.work / f"pid.{rank}").strip())
            for rank in range(2)]
    assert all(alive(int(pid)) for pid in pids)  # the pids are those of the host
    run.signal(signal.SIGKILL)
    run.wait()
    nothing_left(lockstep, run, world)
    assert not any(alive(int(pid)) for pid in pids)


@pytest.mark.parametrize("comm", ["lockstep-inside", "lockstep-guard", "lockstep-agent"])
def test_any_process_of_ours_may_be_killed(lockstep, world, comm):
    run = lockstep.start(*world.image, *SHELL, "echo ready; sleep 1000", env=world.env)
    until(lambda: "ready" in run.out())
    (pid,) = [pid for pid, name in run.living().items() if name == comm]
    run.signal(signal.SIGKILL, pid)
    assert run.wait().rc != 0
    nothing_left(lockstep, run, world)


def test_a_rank_restarts_in_the_same_container(lockstep, world):
    # As torchrun does, Lockstep replaces $$ in arguments by $.
    ended = lockstep.run(
        *world.image, "--max-restarts", "1", *SHELL,
        'if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then touch /kept; kill -KILL $$$$; fi; '
        'echo $(ls /kept) $TORCHELASTIC_RESTART_COUNT', env=world.env)
    assert (ended.rc, ended.out) == (0, "/kept 1\n"), ended


def test_mounts_and_workdir(lockstep, world, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_text("data\n")
    (lockstep.work / "out").mkdir()
    ended = lockstep.run(
        *world.image, "--container-mounts", f"{tmp_path}/data:/opt/data:ro,out:/results", "--container-workdir",
        "/opt/data", *SHELL, "cat file; cat /opt/marker; touch /results/made; touch file2 2>&1 || echo refused",
        env=world.env)
    assert ended.out.splitlines()[:2] == ["data", "in the image"] and "refused" in ended.out, ended
    assert os.listdir(lockstep.work / "out") == ["made"] and os.listdir(tmp_path / "data") == ["file"]


def test_variables_pass_without_their_values_in_any_argv(lockstep, world):
    run = lockstep.start(*world.image, "--container-env", "TOKEN", *SHELL,
                         'echo "$TOKEN $OTHER [$LD_LIBRARY_PATH] [$LOCKSTEP_CONTAINER_TETHER]"; sleep 1000',
                         env={**world.env, "TOKEN": "s3cret-1", "OTHER": "s3cret-2", "LD_LIBRARY_PATH": "/opt/cuda"})
    # apptainer has a folder of its own in LD_LIBRARY_PATH.
    until(lambda: "s3cret-1 s3cret-2 [] []" in run.out().replace("/.singularity.d/libs", ""), what=run.err())
    words = [read(f"/proc/{pid}/cmdline") for pid in run.living()]
    assert len(words) >= 5 and not any("s3cret" in word for word in words), words
    run.signal(signal.SIGTERM)
    run.wait()
    nothing_left(lockstep, run, world)


def test_the_images_variables_win_unless_named(lockstep, podman):
    def who(*options):
        return lockstep.run("--container", "localhost/mine", *options, *SHELL, "echo $WHO",
                            env={**podman.env, "WHO": "caller"}).out
    assert who() == "image\n"
    assert who("--container-env", "WHO") == "caller\n"


def test_explain_tells_the_runtime(lockstep, folder_image):
    need("bwrap")
    ended = lockstep.run("--container", folder_image, "--explain", *SHELL, "true")
    rows = [line.split("  ") for line in ended.out.splitlines()]
    told = {row[0]: [cell.strip() for cell in row[1:] if cell.strip()] for row in rows}
    assert told["container"] == [str(folder_image), "option --container"], ended
    assert told["container runtime"] == ["bubblewrap", "rule: bubblewrap runs a folder"], ended


def test_exec_enters_the_container(lockstep, world):
    run = lockstep.start(*world.image, "--container-workdir", "/opt", *SHELL, "echo ready; sleep 1000",
                         env={**world.env, "FOO": "a b", "LOCKSTEP_PAGE_TOKEN": "s3cret-" * 5})
    until(lambda: "ready" in run.out(), what=run.err())
    (job,) = [f"pid-{pid}" for pid, name in run.living().items() if name == "lockstep-guard"]
    assert job in lockstep.run(program=(BINARY, "jobs")).out

    def enter(*words, options=(), **more):
        return lockstep.run(*options, job, "--", *words, program=(BINARY, "exec"), **more)

    ended = enter("sh", "-c", 'cat marker; echo "$FOO $PWD $GIVEN $HOME"; id -u; ls -l /proc/$$/exe >/dev/null; exit 3',
                  options=("--secret", "GIVEN", "--env", "HOME=/none", "--env", "XDG_STATE_HOME=/none"),
                  env={"GIVEN": "s3cret"})
    assert (ended.rc, ended.out, ended.err) == (3, f"in the image\na b /opt s3cret /none\n{os.getuid()}\n", ""), ended
    assert "LOCKSTEP" not in enter("env").out
    ended = enter("sh", "-c", "echo $PWD; kill -KILL $$", options=("--cwd", str(lockstep.work)))
    assert (ended.rc, ended.out) == (128 + signal.SIGKILL, f"{lockstep.work}\n"), ended
    one_line(enter("nope"), 127, "no executable nope", "PATH")
    one_line(enter("true", options=("--cwd", "/gone")), 126, "/gone: No such file or directory")
    one_line(enter("true", options=("--user", "me")), 2, "is a job", "--user")
    run.signal(signal.SIGTERM)
    run.wait()
    nothing_left(lockstep, run, world)
    one_line(enter("true"), 255, f"no job '{job}'")
    # A number is Slurm's job, and no host.
    ended = lockstep.run("4711", "--", "true", program=(BINARY, "exec"))
    assert ended.rc == 255 and "ssh" not in ended.err and len(ended.err.splitlines()) == 1, ended


def test_bad_input_is_one_line(lockstep, folder_image):
    need("bwrap")
    def refused(*options, words, rc=1, env=None):
        one_line(lockstep.run(*options, *SHELL, "true", env=env), rc, *words)
    image = ("--container", folder_image)
    refused("--container", "/no/image", words=["/no/image: no such file or folder"])
    refused("--container", "gone.tar", words=["gone.tar: no such file or folder"])
    refused("--container", "s3://bucket/image", words=["s3://bucket/image", "docker://"])
    refused("--container=-v", words=["-v"])
    refused("--container-mounts", "/a:/b", words=["--container-mounts needs --container"])
    for mounts in ("/tmp", "/tmp:relative", "/tmp:/a:rx", "/tmp:/"):
        refused(*image, "--container-mounts", mounts, words=["src:dst[:ro]", mounts])
    refused(*image, "--container-mounts", "/no/source:/a", words=["/no/source: no such file or folder"])
    refused(*image, "--container-workdir", "here", words=["absolute"])
    refused(*image, "--container-workdir", "/no/folder", words=["/no/folder", "of the image"])
    refused(*image, "--container-env", "A=s3cret", words=["names of variables", "'A'"])
    # Nothing but these is in PATH.
    refused(*image, words=[folder_image, "needs bwrap"], rc=127, env={"PATH": "/nowhere"})
    refused("--container", "docker://a/b", words=["enroot or apptainer or singularity or podman or docker"], rc=127,
            env={"PATH": "/nowhere"})


def test_an_image_that_cannot_be_fetched(lockstep, podman):
    image = f"docker://localhost:{free_port()}/none:1"
    ended = lockstep.run("--container", image, *SHELL, "true", env=podman.env, timeout=60)
    assert ended.rc == 1 and f"podman could not fetch the image {image}" in ended.err, ended


def test_an_archive_is_loaded_once(lockstep, podman, tmp_path):
    archive = lockstep.work / "image.tar"
    podman("save", "--format", "oci-archive", "--output", str(archive), "mine")
    log = tmp_path / "log"
    wrapper = tmp_path / "bin/podman"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {shutil.which("podman")} "$@"\n')
    wrapper.chmod(0o755)
    env = {**podman.env, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"}
    for name in ("image.tar", f"oci-archive:{archive}"):
        ended = lockstep.run("--container", name, *SHELL, "cat /opt/marker", env=env)
        assert (ended.rc, ended.out) == (0, "in the image\n"), ended
    assert read(log).split().count("load") == 1, read(log)


if APPTAINER:
    @pytest.mark.parametrize("form", ["oci-archive", "docker-archive"])
    def test_a_real_apptainer_runs_an_archive(lockstep, podman, apptainer, form):
        podman("save", "--format", form, "--output", str(lockstep.work / "image.tar"), "mine")
        env = {**apptainer["sif"].env, "PATH": f"{apptainer['sif'].env['PATH']}:{os.environ['PATH']}", "WHO": "$(id)"}
        for options, who in (((), "image"), (("--container-env", "WHO"), "$(id)")):
            ended = lockstep.run("--container", "image.tar", *options, *SHELL, "cat /opt/marker; echo $WHO $HOME",
                                 env=env)
            assert (ended.rc, ended.out) == (0, f"in the image\n{who} {lockstep.home}\n"), ended
            assert ("Creating SIF file" in ended.err) == (who == "image"), ended

    def test_a_real_apptainer_may_be_killed(lockstep, apptainer):
        world = apptainer["sif"]
        run = lockstep.start(*world.image, *SHELL, "echo ready; sleep 1000", env=world.env)
        until(lambda: "ready" in run.out())
        (pid,) = children(run.pid)
        run.signal(signal.SIGKILL, pid)
        ended = run.wait()
        assert ended.rc == 128 + signal.SIGKILL and "apptainer was killed by SIGKILL" in ended.err, ended
        nothing_left(lockstep, run, world)


FAKE = """#!/usr/bin/python3
# A runtime that records its words and runs our binary on the host.
import os, pathlib, sys, time
here = pathlib.Path(__file__).parent
with open(here / "log", "a") as log:
    log.write("\\t".join(sys.argv[1:]) + "\\n")
name, words = pathlib.Path(__file__).name, sys.argv[1:]
mark = here / "fetched"
verb = words[0]
if verb == "image":
    if "Env" in " ".join(words):
        print("WHO=image")
    sys.exit(0 if mark.exists() else 1)
if verb == "info":
    print("/tmp")
elif verb == "list":
    print(mark.read_text() if mark.exists() else "other", *(root.name for root in here.glob("lockstep-*")), sep="\\n")
elif verb == "remove":
    (here / words[-1]).unlink()
elif verb == "import":
    option, file, uri = words[1:]
    # enroot's manual: docker://[USER@][REGISTRY#]IMAGE[:TAG]. It refuses a file that exists.
    assert (option, uri) == ("--output", "docker://nvcr.io#a/b:1"), words
    with open(file, "x") as image:
        image.write("hsqs")
    sys.exit(3 if (here / "broken").exists() else 0)
elif verb in ("pull", "create", "build"):
    if name == "enroot":
        assert words[1] == "--name" and pathlib.Path(words[3]).read_text() == "hsqs", words
        (here / words[2]).touch(exist_ok=False)  # as enroot does
    if name == "apptainer":
        pathlib.Path(words[2]).write_text("a part")
    while (here / "slow").exists():
        time.sleep(0.01)
    if (here / "broken").exists():
        sys.exit(3)
    mark.write_text((words[2:] or words[1:])[0])
    if name == "apptainer":
        pathlib.Path(words[2]).write_text("sif")
elif verb in ("run", "exec", "start"):
    if (here / "broken").exists():
        sys.exit(125)
    if (here / "mounter").exists() and os.fork() == 0:
        os.setsid()
        os.execv("/bin/sleep", ["sleep", "1000"])
    while (here / "held").exists():
        time.sleep(0.01)
    inside = "/run/lockstep/lockstep"
    # enroot's manual: without --rc, the image's own script runs, and with it the entrypoint.
    if name == "enroot":
        assert pathlib.Path(words[words.index("--rc") + 1]).read_text() == 'exec "$@"\\n', words
        assert (here / words[words.index(inside) - 1]).exists(), words
        # enroot writes a line for each variable into a file. The container has no other variables.
        names = [word for option, word in zip(words, words[1:]) if option == "--env"]
        lines = "\\n".join(f"{each}={os.environ.get(each, '')}" for each in names).split("\\n")
        kept = {each: os.environ[each] for each in ("PATH", "REAL_LOCKSTEP")}
        os.environ.clear()
        os.environ.update(kept, **dict(line.split("=", 1) for line in lines if "=" in line))
    # apptainer's manual: HOME is the account's unless --home is given. Without --no-eval, a shell evaluates values.
    if name == "apptainer":
        os.environ["HOME"] = os.environ.get("APPTAINER_HOME", "/account")
    assert "APPTAINERENV_HOME" not in os.environ  # is refused
    for each in [each for each in os.environ if each.startswith("APPTAINERENV_")]:
        value = os.environ[each]
        if os.environ.get("APPTAINER_NO_EVAL") != "1":
            value = os.popen(f'printf %s "{value}"').read()
        os.environ[each.removeprefix("APPTAINERENV_")] = value
    # There is no mount.
    os.environ["LOCKSTEP_CONTAINER_TETHER"] = os.environ["LOCKSTEP_CONTAINER_TETHER_FOLDER"] + "/fifo"
    end = words.index("docker.io/a/b") if name in ("docker", "podman") else words.index(inside)
    assert name not in ("docker", "podman") or "--entrypoint=" + inside in words
    if not (here / "zero").exists() or os.fork() == 0:
        os.execv(os.environ["REAL_LOCKSTEP"], [inside, *words[end + 1:]])
    os.wait()
"""


@pytest.fixture
def fake(tmp_path):
    """fake(name): returns a PATH folder with only this runtime, and the variables to use it."""
    def make(name):
        folder = tmp_path / f"fake-{name}"
        folder.mkdir()
        (folder / name).write_text(FAKE)
        (folder / name).chmod(0o755)
        return folder, {"PATH": f"{folder}:/nowhere", "REAL_LOCKSTEP": str(BINARY)}
    return make


def logged(folder):
    return [line.split("\t") for line in read(folder / "log").splitlines()]


@pytest.mark.parametrize("name", ["docker", "podman", "apptainer", "enroot"])
def test_each_runtime_fetches_once_and_starts(lockstep, fake, name):
    folder, env = fake(name)
    env.update(TOKEN="s3cret")
    image = "docker://a/b"
    if name == "enroot":
        image = "a.sqsh"
        (lockstep.work / image).write_text("hsqs")
    options = ("--container", image, "--container-env", "TOKEN", "--no-python", "/bin/sh", "-c",
               'echo "$TOKEN $APPTAINERENV_TOKEN"')
    # Both start while the image is fetched.
    (folder / "slow").touch()
    runs = [lockstep.start(*options, env=env) for _ in range(2)]
    until(lambda: (folder / "log").exists() and {"pull", "create"} & {words[0] for words in logged(folder)})
    (folder / "slow").unlink()
    for run in runs:
        ended = run.wait()
        assert (ended.rc, ended.out.split()[0]) == (0, "s3cret"), ended
    ended = lockstep.run(*options, env=env)
    assert (ended.rc, ended.out) == (0, "s3cret s3cret\n" if name == "apptainer" else "s3cret \n"), ended
    calls = logged(folder)
    verbs = [words[0] for words in calls]
    assert verbs.count("pull") + verbs.count("create") == 1, verbs
    assert not any("s3cret" in word for words in calls for word in words), calls
    start = calls[-1]
    mounts = {"apptainer": "/tmp:/tmp", "enroot": "/tmp:/tmp:none:x-create=auto,rbind"}
    assert mounts.get(name, "--volume=/tmp:/tmp") in start, start
    assert str(BINARY) in " ".join(start) and start[-4:] == list(options[-4:]), start


def test_enroot_imports_an_image_of_a_registry(lockstep, fake):
    folder, env = fake("enroot")
    storage = lockstep.folder / "storage"
    storage.mkdir()
    env["ENROOT_DATA_PATH"] = str(storage)
    command = ("--container", "docker://nvcr.io/a/b:1", "--no-python", "/bin/sh", "-c", "echo ran")
    (folder / "broken").touch()
    one_line(lockstep.run(*command, env=env), 1, "enroot could not fetch the image docker://nvcr.io/a/b:1")
    assert not list(lockstep.folder.rglob("*.sqsh"))
    (folder / "broken").unlink()
    for _ in range(2):
        assert lockstep.run(*command, env=env).out == "ran\n"
    verbs = [words[0] for words in logged(folder)]
    assert [verb for verb in verbs if verb in ("import", "create")] == ["import", "import", "create"], verbs
    # The home may be on every node, and only the storage's disk is looked at.
    files = [pathlib.Path(words[2]).parent for words in logged(folder) if words[0] == "import"]
    assert files == [storage, storage], files
    assert not list(lockstep.folder.rglob("*.sqsh"))
    one_line(lockstep.run("--container", "docker://nvcr.io/a@sha256:1", *SHELL, "true", env=env), 127,
             "--container docker://nvcr.io/a@sha256:1", "needs apptainer or singularity or podman or docker")


def test_a_variable_of_several_lines_with_enroot(lockstep, fake):
    """enroot would make variables of the other lines."""
    _, env = fake("enroot")
    (lockstep.work / "a.sqsh").write_text("hsqs")
    env.update(KEY="a\nEVIL=1", OTHER="b c")
    command = ("--no-python", "/bin/sh", "-c", 'echo "[$KEY] [$EVIL] [$OTHER]"')
    assert lockstep.run("--container", "a.sqsh", *command, env=env).out == "[] [] [b c]\n"
    one_line(lockstep.run("--container", "a.sqsh", "--container-env", "KEY", *command, env=env), 1,
             "enroot cannot pass KEY: the value has several lines")


def test_nodes_that_share_enroots_storage(lockstep, fake):
    """As they do where the storage is in the home: no node removes the root that another one uses."""
    if os.getuid() != 0:
        skip("changing the host name needs root")
    folder, env = fake("enroot")
    (lockstep.work / "a.sqsh").write_text("hsqs")
    node = ("/usr/bin/unshare", "--uts", "/bin/sh", "-c", 'echo "$0" > /proc/sys/kernel/hostname; exec "$@"')
    for name in ("node1", "node2", "node1"):
        ended = lockstep.run("--container", "a.sqsh", "--no-python", "/bin/sh", "-c", "echo ran", env=env,
                             program=(*node, name, BINARY, "run"))
        assert (ended.rc, ended.out) == (0, "ran\n"), ended
    roots = [words[2] for words in logged(folder) if words[0] == "create"]
    assert [root.partition(".")[2] for root in roots] == ["node1", "node2"], roots


def test_a_fetch_that_fails_or_is_stopped(lockstep, fake):
    folder, env = fake("podman")
    (folder / "broken").touch()
    ended = lockstep.run("--container", "docker://a/b", *SHELL, "true", env=env)
    one_line(ended, 1, "podman could not fetch the image docker://a/b (exit code 3)")
    (folder / "slow").touch()
    run = lockstep.start("--container", "docker://a/b", *SHELL, "true", env=env)
    until(lambda: [words[0] for words in logged(folder)].count("pull") == 2)
    run.signal(signal.SIGTERM)
    ended = run.wait()
    one_line(ended, 128 + signal.SIGTERM, "stopped while podman fetched the image docker://a/b")
    run.none_left()


@pytest.mark.parametrize("name,image", [("podman", "image.tar"), ("enroot", "image.sqsh")])
def test_a_file_that_cannot_fit(lockstep, fake, name, image):
    """At least as much as the file has, whatever its kind and size."""
    folder, env = fake(name)
    evaluated = lockstep.folder / "evaluated"
    env.update(ENROOT_DATA_PATH=f"/tmp/$(: > {evaluated})")
    with open(lockstep.work / image, "wb") as archive:
        archive.truncate(1 << 43)
    one_line(lockstep.run("--container", image, *SHELL, "true", env=env), 1,
             f"no room for the image {image}: /tmp has", "GiB left, and the file has 8192.0 GiB")
    assert not evaluated.exists()
    if name == "podman":
        assert [words[0] for words in logged(folder)] == ["info"]
    small = lockstep.work / f"small{pathlib.Path(image).suffix}"
    small.write_text("hsqs")
    lockstep.run("--container", small, *SHELL, "true", env={**env, "PATH": f"{folder}:/bin"})
    assert ["info", "load"] == [words[0] for words in logged(folder)][1:3] if name == "podman" else (
        "create" in [words[0] for words in logged(folder)])


def test_a_cache_that_cannot_be_written(lockstep, fake):
    folder, env = fake("podman")
    env["XDG_CACHE_HOME"] = "/proc/none"
    locks = pathlib.Path(f"/tmp/lockstep-{os.getuid()}/containers")
    before = set(locks.glob("*"))
    for _ in range(2):
        ended = lockstep.run("--container", "docker://a/b", "--no-python", "/bin/echo", "ran", env=env)
        assert (ended.rc, ended.out) == (0, "ran\n"), ended
    assert [words[0] for words in logged(folder)].count("pull") == 1
    for path in set(locks.glob("*")) - before:
        path.unlink()


def test_a_container_that_does_not_start(lockstep, fake):
    folder, env = fake("podman")
    (folder / "fetched").write_text("a/b")
    (folder / "broken").touch()
    ended = lockstep.run("--container", "docker://a/b", *SHELL, "true", env=env)
    one_line(ended, 126, "podman started no container of the image docker://a/b (exit code 125)")
    assert not list(lockstep.temp.iterdir())


def test_success_is_what_the_process_inside_recorded(lockstep, fake):
    """`docker run` against `podman system service` 4.3 gives 0 for a container that failed (podman's issue 18889)."""
    folder, env = fake("docker")
    for name in ("fetched", "zero"):
        (folder / name).touch()
    command = ("--container", "docker://a/b", "--exit-code", "worker", "--no-python", "/bin/sh", "-c")
    assert [lockstep.run(*command, f"exit {code}", env=env).rc for code in (0, 7)] == [0, 7]
    run = lockstep.start(*command, "echo ready; exec /bin/sleep 1000", env=env)
    until(lambda: "ready" in run.out())
    (pid,) = [pid for pid, name in run.living().items() if name == "lockstep-inside"]
    run.signal(signal.SIGKILL, pid)
    ended = run.wait()
    # The agent may write its last line after this one.
    assert ended.rc == 1 and "docker ended with exit code 0, but" in ended.err, ended
    run.none_left(10)


def test_a_command_killed_before_its_container_runs(lockstep, fake):
    folder, env = fake("podman")
    (folder / "fetched").touch()
    (folder / "held").touch()
    run = lockstep.start("--container", "docker://a/b", "--no-python", "/bin/sleep", "1000", env=env)
    until(lambda: (folder / "log").exists() and "run" in [words[0] for words in logged(folder)])
    run.signal(signal.SIGKILL)
    run.wait()
    (folder / "held").unlink()
    run.none_left(10)
    # No job begins, since a job would leave its own files.
    until(lambda: "the process outside of the container is gone" in run.err(), 10, "the process inside ends")
    # The process inside has an environment of its own, so it is not counted above.
    until(lambda: not list(lockstep.temp.iterdir()), 10, "the folder of the tether goes")


def test_a_killed_fetch_is_never_taken_for_whole(lockstep, fake):
    folder, env = fake("apptainer")
    command = ("--container", "docker://a/b", "--no-python", "/bin/sh", "-c", "echo ran")
    assert lockstep.run(*command, env=env).out == "ran\n"
    (image,) = lockstep.folder.rglob("*.sif")
    image.unlink()
    (folder / "slow").touch()
    run = lockstep.start(*command, env=env)
    until(lambda: any(read(file) == "a part" for file in image.parent.glob("*.sif*")))
    run.signal(signal.SIGKILL)
    run.wait()
    run.none_left(10)
    (folder / "slow").unlink()
    assert lockstep.run(*command, env=env).out == "ran\n"
    assert [words[0] for words in logged(folder)].count("pull") == 3
    assert read(image) == "sif"


def test_apptainer_changes_no_variable(lockstep, fake):
    _, env = fake("apptainer")
    (lockstep.work / "image.sif").write_text("sif")
    ended = lockstep.run("--container", "image.sif", "--container-env", "KEY,HOME", "--no-python", "/bin/sh", "-c",
                         'echo "$KEY $HOME"', env={**env, "KEY": "$(echo ran) $HOME `echo ran`"})
    assert (ended.rc, ended.out) == (0, f"$(echo ran) $HOME `echo ran` {lockstep.home}\n"), ended


def test_the_callers_own_variables_for_apptainer_do_not_win(lockstep, fake):
    """Of two variables with the same name, Go takes the first, and so does Python."""
    _, env = fake("apptainer")
    (lockstep.work / "image.sif").write_text("sif")
    own = {"APPTAINER_NO_EVAL": "0", "APPTAINER_HOME": "/other", "APPTAINERENV_KEY": "other", "APPTAINERENV_MORE": "1"}
    # The order of the environment is that of these words.
    ended = lockstep.run(*(f"{name}={value}" for name, value in own.items()), "KEY=$(echo ran)", BINARY, "run",
                         "--container", "image.sif", "--container-env", "KEY", "--no-python", "/bin/sh", "-c",
                         'echo "$KEY $HOME $MORE"', env=env, program=("/usr/bin/env",))
    assert (ended.rc, ended.out) == (0, f"$(echo ran) {lockstep.home} 1\n"), ended


@pytest.mark.parametrize("form,top", [("docker-archive", "manifest.json"), ("docker-archive", "./manifest.json"),
                                      ("oci-archive", "oci-layout")])
def test_apptainer_is_told_the_form_of_an_archive(lockstep, fake, form, top):
    folder, env = fake("apptainer")
    archive = lockstep.work / "image.tar"
    (lockstep.work / top).write_text("[]")
    subprocess.run(["tar", "-C", lockstep.work, "-cf", archive, top], check=True)
    for _ in range(2):
        ended = lockstep.run("--container", "image.tar", "--no-python", "/bin/echo", "ran",
                             env={**env, "PATH": f"{folder}:/bin"})
        assert (ended.rc, ended.out) == (0, "ran\n"), ended
    (build,) = [words for words in logged(folder) if words[0] != "exec"]
    (image,) = lockstep.folder.rglob("*.sif")
    assert build == ["build", "--force", f"{image}.part", f"{form}:{archive}"]
    assert str(image) in logged(folder)[-1]


def test_the_form_that_the_caller_tells_needs_no_tar(lockstep, fake):
    folder, env = fake("apptainer")
    for form in ("docker-archive", "oci-archive"):
        archive = lockstep.work / form
        archive.write_text("")
        ended = lockstep.run("--container", f"{form}:{form}", "--no-python", "/bin/echo", "ran", env=env)
        assert (ended.rc, ended.out) == (0, "ran\n"), ended
        assert logged(folder)[-2][-1] == f"{form}:{archive}", logged(folder)
    (lockstep.work / "image.tar").write_text("")
    one_line(lockstep.run("--container", "image.tar", *SHELL, "true", env=env), 1,
             "look into image.tar: find tar in PATH", "oci-archive:FILE")


def test_what_mounts_for_apptainer_ends_with_it(lockstep, fake):
    """squashfuse_ll has a session of its own, and stays if apptainer is killed."""
    folder, env = fake("apptainer")
    for name in ("mounter", "held", "zero"):
        (folder / name).touch()
    (lockstep.work / "image.sif").write_text("sif")
    command = ("--container", "image.sif", "--no-python", "/bin/sh", "-c", "echo ready; exec /bin/sleep 1000")
    run = lockstep.start(*command, env=env)
    until(lambda: "sleep" in run.living().values())
    run.signal(signal.SIGTERM)
    assert run.wait().rc == 128 + signal.SIGTERM
    run.none_left()
    (folder / "held").unlink()
    run = lockstep.start(*command, env=env)
    # The mounter has the name apptainer until its exec.
    until(lambda: "ready" in run.out() and list(run.living().values()).count("sleep") == 2)
    (pid,) = [pid for pid, name in run.living().items() if name == "apptainer"]
    run.signal(signal.SIGKILL, pid)
    ended = run.wait()
    assert ended.rc == 128 + signal.SIGKILL, ended
    assert "apptainer was killed by SIGKILL, and the job with it" in ended.err, ended
    run.none_left()


def test_processes_of_the_callers_shell_outlive_an_apptainer(lockstep, fake):
    _, env = fake("apptainer")
    (lockstep.work / "image.sif").write_text("sif")
    run = lockstep.start('/bin/sleep 1000 & exec "$@"', "sh", BINARY, "run", "--container", "image.sif", "--no-python",
                         "/bin/echo", "ran", env=env, program=("/bin/sh", "-c"))
    ended = run.wait()
    left = run.living()
    run.kill()
    assert (ended.rc, ended.out, list(left.values())) == (0, "ran\n", ["sleep"]), ended


def test_a_wait_for_another_jobs_fetch_ends_by_a_signal(lockstep, fake):
    folder, env = fake("podman")
    (folder / "slow").touch()
    command = ("--container", "docker://a/b", "--no-python", "/bin/sh", "-c", "echo ran")
    first = lockstep.start(*command, env=env)
    until(lambda: (folder / "log").exists() and "pull" in [words[0] for words in logged(folder)])
    second = lockstep.start(*command, env=env)
    until(lambda: "waits for another job that fetches the image docker://a/b" in second.err())
    second.signal(signal.SIGTERM)
    ended = second.wait()
    assert ended.rc == 128 + signal.SIGTERM and "stopped while another job fetched the image" in ended.err, ended
    (folder / "slow").unlink()
    assert first.wait().out == "ran\n"


def test_a_mount_over_the_folder_for_temporary_files(lockstep, world, tmp_path):
    (tmp_path / "mine").mkdir()
    run = lockstep.start(*world.image, "--container-mounts", f"{tmp_path}/mine:{lockstep.temp}", *SHELL,
                         f"touch {lockstep.temp}/made; echo ran", env=world.env)
    ended = run.wait()
    assert (ended.rc, ended.out) == (0, "ran\n"), ended
    assert "made" in os.listdir(tmp_path / "mine")
    nothing_left(lockstep, run, world)


def test_the_mask_of_files_is_the_callers(lockstep, world):
    ended = lockstep.run('umask 027; exec "$@"', "sh", BINARY, "run", *world.image, *SHELL, "umask", env=world.env,
                         program=("sh", "-c"))
    assert (ended.rc, ended.out) == (0, "0027\n"), ended


def test_enroot_refuses_paths_with_spaces(lockstep, fake):
    _, env = fake("enroot")
    (lockstep.work / "a.sqsh").write_text("hsqs")
    (lockstep.work / "a b").mkdir()
    ended = lockstep.run("--container", "a.sqsh", "--container-mounts", "a b:/x", *SHELL, "true", env=env)
    one_line(ended, 1, "enroot cannot mount", "/a b: the path has a space")


def test_secrets_are_wiped_where_no_rank_needs_them(lockstep, world):
    run = lockstep.start(*world.image, *SHELL, "echo up; sleep 1000",
                         env={**world.env, "LOCKSTEP_PAGE_TOKEN": "s3cret-s3cret-s3cret-s3cret-s3cret"})
    until(lambda: "up" in run.out(), what=run.err())
    ours = [pid for pid, name in run.living().items() if name.startswith("lockstep")]
    assert len(ours) >= 4 and not any("s3cret" in read(f"/proc/{pid}/environ") for pid in ours), run.living()
    run.signal(signal.SIGTERM)
    run.wait()
    nothing_left(lockstep, run, world)


def test_a_name_that_is_not_here_is_never_fetched(lockstep, fake):
    folder, env = fake("podman")
    one_line(lockstep.run("--container", "rootfz", *SHELL, "true", env=env), 1, "rootfz", "podman", "docker://rootfz")
    assert [words[0] for words in logged(folder)] == ["image"]


def test_files_of_the_job_outside_of_the_working_folder(lockstep, world, tmp_path):
    work = lockstep.work / "a/b"
    work.mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    (work / "link").symlink_to(tmp_path / "scratch")
    ended = lockstep.run(*world.image, "--log-dir", "link", "--redirects", "3", "--report", "../r/report.json",
                         "--events", "../../e/events.jsonl", *SHELL, "echo kept", env=world.env, cwd=work)
    assert ended.rc == 0, ended
    assert "kept\n" in [read(file) for file in (tmp_path / "scratch").rglob("stdout.log")]
    assert (work / "../r/report.json").exists() and (lockstep.work / "e/events.jsonl").exists()


@pytest.mark.parametrize("target", ["usr/bin", "/usr/bin"])
def test_a_mount_behind_a_link_of_the_image(lockstep, target, tmp_path, open_folder):
    need("bwrap")
    root = container_image.make(open_folder / "image")
    (root / "usr").mkdir()
    (root / "bin").rename(root / "usr/bin")
    (root / "bin").symlink_to(target)
    (tmp_path / "tool").write_text("of the host\n")
    ended = lockstep.run("--container", root, "--container-mounts", f"{tmp_path}/tool:/bin/tool", *SHELL,
                         "cat /bin/tool /usr/bin/tool; ls -l /bin")
    assert ended.rc == 0 and ended.out.startswith("of the host\n" * 2), ended
    assert "-> " + target in ended.out, ended


def test_torchrun_in_a_container_keeps_torchruns_rules(lockstep, folder_image):
    need("bwrap")
    link = lockstep.folder / "torchrun"
    link.symlink_to(BINARY)
    ended = lockstep.run("--container", folder_image, "--nnodes", "2", "--explain", *SHELL, "true", program=(link,))
    assert "rule: torchrun's default" in ended.out, ended


def test_podman_without_root(lockstep, folder_image, open_folder):
    need("podman", "runc", "newuidmap", "setpriv")
    if os.getuid() != 0:
        skip("changing the user needs root")
    user, base = 4321, open_folder
    work, home = base / "work", base / "home"
    work.mkdir()
    home.mkdir()
    shutil.copy(BINARY, base / "lockstep")
    podman = Podman(base)
    for name, line in (("passwd", f"me:x:{user}:{user}::{home}:/bin/sh"), ("group", f"me:x:{user}:"),
                       ("subuid", "me:700000:65536"), ("subgid", "me:700000:65536")):
        (base / name).write_text(read(f"/etc/{name}").rstrip() + f"\n{line}\n")
    subprocess.run(["tar", "-C", folder_image, "-cf", base / "image.tar", "."], check=True)
    for path in [base, *base.rglob("*")]:
        os.chown(path, user, user)
    script = (f"for name in passwd group subuid subgid; do mount --bind {base}/$name /etc/$name; done; "
              f"cd {work}; exec setpriv --reuid {user} --regid {user} --clear-groups sh -c '"
              f"podman import {base}/image.tar mine >/dev/null 2>&1; "
              f"{base}/lockstep run --container localhost/mine --no-python sh -c "
              "\"id -u; touch made; while [ ! -e go ]; do :; done; exit 5\" & "
              "until [ -e made ]; do :; done; "
              f"job=$({base}/lockstep jobs | grep -o pid-[0-9]*); {base}/lockstep exec $job -- cat /opt/marker; "
              f"{base}/lockstep exec $job -- id -u; touch go; wait $!; "
              "echo rc $?; podman ps -a -q; podman system reset --force >/dev/null 2>&1'")
    run = lockstep.start(script, program=("unshare", "--mount", "sh", "-c"),
                         env={**podman.env, "HOME": home, "TMPDIR": "/tmp", "XDG_RUNTIME_DIR": None})
    ended = run.wait(60)
    # One process of podman's holds the user's namespaces for later commands.
    for pid in [pid for pid, name in run.living().items() if name == "podman pause"]:
        os.kill(pid, signal.SIGKILL)
    run.none_left()
    assert ended.out == f"{user}\nin the image\n{user}\nrc 1\n", ended
    assert "image     : localhost/mine" in ended.err
    assert (work / "made").stat().st_uid == user


def test_pytorch_of_the_image(lockstep):
    need("bwrap")
    image = (PEERS / "trixie").resolve()
    if not (image / ".complete").exists():
        skip("no .cache/peers/trixie: run ./dev peers")
    (lockstep.work / "train.py").write_text(
        "import os, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "part = torch.ones(1) * (dist.get_rank() + 1)\n"
        "dist.all_reduce(part)\n"
        "print(f'{torch.__version__[:5]} {int(part)}\\n', end='', flush=True)\n"
        "dist.destroy_process_group()\n")
    # Debian's PyTorch is built without libuv, and its TCPStore asks for it.
    ended = lockstep.run("--container", image, "--container-mounts", f"{SUPPORT}/torch-2.6:/opt/aid:ro",
                         "--nproc-per-node", "2", "train.py", timeout=100,
                         env={"PYTHON_EXEC": None, "PYTHONPATH": "/opt/aid"})
    assert ended.rc == 0 and sorted(ended.out.splitlines()) == ["2.6.0 3", "2.6.0 3"], ended


STEPS = """
import os, signal, torch, torch.distributed as dist
again = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
first = int(open("step").read()) if os.path.exists("step") else 0
for step in range(first, 6):
    part = torch.ones(1) * (dist.get_rank() + 1)
    dist.all_reduce(part)
    if again == 0 and step == 3 and dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()
    if dist.get_rank() == 0:
        open("step", "w").write(str(step + 1))
print(f"rank {dist.get_rank()} attempt {again} from {first} sum {int(part)}\\n", end="", flush=True)
dist.destroy_process_group()
"""


def test_pytorch_of_the_image_on_two_hosts_and_a_killed_rank(lockstep, hosts):
    need("bwrap")
    image = (PEERS / "trixie").resolve()
    if not (image / ".complete").exists():
        skip("no .cache/peers/trixie: run ./dev peers")
    (lockstep.work / "train.py").write_text(STEPS)
    made = hosts(2)
    runs = [host.start("--container", image, "--container-mounts", f"{SUPPORT}/torch-2.6:/opt/aid:ro", "--nnodes", "2",
                       "--max-restarts", "1", "--rdzv-backend", "lockstep", "--rdzv-id", "steps", "--rdzv-endpoint",
                       f"{made[0].addr}:29400", "train.py", env={"PYTHON_EXEC": None, "PYTHONPATH": "/opt/aid"})
            for host in made]
    ended = [run.wait(60) for run in runs]  # takes about 9 s
    assert [each.rc for each in ended] == [0, 0], ended
    # The ranks go on from the step that rank 0 wrote. The killed rank never reached that step's barrier.
    assert sorted(line for each in ended for line in each.out.splitlines()) == [
        f"rank {rank} attempt 1 from 3 sum 3" for rank in (0, 1)], ended
    assert "SIGKILL" in ended[0].err + ended[1].err, ended
    for host in made:
        until(lambda host=host: not host.processes(), 10, "nothing is left on the host")


def test_a_nested_run_is_not_taken_for_the_first(lockstep, folder_image):
    """The variables of the first process are not for the ranks."""
    need("bwrap")
    ended = lockstep.run("--container", folder_image, *SHELL, "env")
    assert ended.rc == 0 and "LOCKSTEP_CONTAINER" not in ended.out, ended


@pytest.fixture
def ssh_world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def test_jobs_on_hosts_run_in_the_image(ssh_world, folder_image):
    """The options travel with the command: each node looks for its own runtime, and for the image by that path."""
    need("bwrap")
    client, *servers = ssh_world(count=2)
    client.run("cluster", "add", "gpus", *[word for server in servers for word in ("--host", f"me@{server.addr}")])
    for server in servers:
        shutil.copytree(folder_image, server.homes["me"] / "image", symlinks=True)

    def on(*words, image="image", options=()):
        return client.run("run", "--on", "gpus", "--sync", "none", "--cwd", ".", *options, "--container", image,
                          *words)

    ended = on(*SHELL, "echo rank $RANK of $WORLD_SIZE; touch made; read line < /opt/marker; echo $line")
    assert ended.rc == 0 and ended.out.count("in the image") == 2, ended
    assert "rank 0 of 2" in ended.out and "rank 1 of 2" in ended.out, ended
    ended = on(*SHELL, "[ $RANK = 0 ] || exit 7; sleep 1000", options=("--exit-code", "worker"))
    assert ended.rc == 7 and "  image     : image\n" in ended.err, ended
    for server in servers:
        made, home = server.homes["me"] / "made", server.homes["me"]
        assert made.stat().st_uid == home.stat().st_uid

    one_line(on(*SHELL, "true", image="gone.tar"), 2,
             "gpus-0, gpus-1: --container gone.tar: no such file or folder; nothing was started")
    one_line(on(*SHELL, "touch started", options=("--env", "PATH=/nowhere")), 2,
             "gpus-0, gpus-1: --container image is a folder and needs bwrap or apptainer or singularity, "
             "and PATH has none; nothing was started")
    assert not any((server.homes["me"] / "started").exists() for server in servers)
    assert client.run("jobs").out.count("starting") == 0

    job = on(*SHELL, "touch up; sleep 1000", options=("--detach",)).out.strip()
    until(lambda: all((server.homes["me"] / "up").exists() for server in servers), 20)
    # The looks at ranks come from the agents in the containers.
    until(lambda: len(json.loads(client.run("why", "--json", job).out).get("looks", [])) == 2, 20)
    ended = client.run("exec", job, "--shell", "cat /opt/marker; pwd; exit 4")
    assert ended.rc == 4 and ended.out.count("in the image") == 2 and ended.out.count("/home/me") == 2, ended
    assert client.run("exec", job, "--nodes", "1", "--", "id").out.count("uid=") == 1
    assert client.run("cancel", job).rc == 0
    ended = client.run("wait", job)
    assert ended.rc != 0, ended
    for server in servers:
        server.nothing_left()


def test_a_lost_host_under_containers(ssh_world, folder_image):
    """As without containers: the ranks of the other host begin again, in the same container."""
    need("bwrap")
    client, *servers = ssh_world(count=2)
    client.run("cluster", "add", "gpus", *[word for server in servers for word in ("--host", f"me@{server.addr}")])
    for server in servers:
        shutil.copytree(folder_image, server.homes["me"] / "image", symlinks=True)
    here, lost = servers
    run = client.start("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--container", "image", "--nnodes", "1:2",
                       *SHELL, "touch up.$WORLD_SIZE; until [ -e go ]; do sleep 0.1; done; cat /opt/marker")
    until(lambda: all((server.homes["me"] / "up.2").exists() for server in servers), 20, run.err())
    # A child has the agent's name until its exec.
    agent = min(pid for pid, name in here.host.processes().items() if name == "lockstep-agent")
    lost.switch_off()
    until(lambda: (here.homes["me"] / "up.1").exists(), 30, run.err())
    assert here.host.processes().get(agent) == "lockstep-agent"
    (here.homes["me"] / "go").touch()
    client.forget_masters()
    ended = run.wait(60)
    assert ended.rc == 0 and ended.out.count("in the image") == 1, ended
    here.nothing_left()
