"""lockstep submit --on: a laptop submits jobs to a real Slurm cluster, and later asks about them."""
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from harness import BINARY, SCRIPTS, until
from package_index import write_wheel
from slurm_cluster import Page, SlurmCluster
from ssh_hosts import Client, SshHost, make_key

SENT = ".cache/lockstep/bin"


class LoginHost(SshHost):
    """The login host of a Slurm cluster, where root logs in over SSH. All nodes share its home."""

    def __init__(self, cluster, client):
        self.cluster = cluster
        self.wrappers = cluster.folder / "wrappers"  # first in PATH there
        self.wrappers.mkdir()
        self.path = f"{self.wrappers}:/usr/bin:/bin"
        super().__init__(cluster.login, users={})
        (self.root_home / ".ssh/authorized_keys").write_text(client.public_key)

    def start_sshd(self, *options, port=22):
        env = {**self.cluster.env, "PATH": self.path}
        env.pop("HOME")
        super().start_sshd(f"SetEnv {' '.join(f'{name}={value}' for name, value in env.items())}", *options, port=port)

    def wrap(self, program, text):
        """Puts a shell script in front of one of Slurm's programs, which stays in /usr/bin."""
        path = self.wrappers / program
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    @property
    def home(self):
        return self.root_home


class World:
    def __init__(self, hosts, sent):
        self.cluster = SlurmCluster(hosts, 2)
        self.client = Client(hosts(1)[0])
        self.login = LoginHost(self.cluster, self.client)
        self.on = self.login.addr
        self.sent = sent
        if any(sent.iterdir()):  # what one test has sent need not be sent in each
            shutil.copytree(sent, self.login.home / SENT)
        self.project = pathlib.Path(self.client.folder) / "project"
        (self.project / ".git").mkdir(parents=True)
        self.write("note.txt", "brought\n")

    def write(self, name, text):
        (self.project / name).write_text(text)

    def start(self, *words, **options):
        return self.client.start(*words, cwd=self.project, **options)

    def run(self, *words, timeout=120.0, **options):
        return self.start(*words, **options).wait(timeout)

    def submit(self, *words, **options):
        return self.run("submit", "--on", self.on, *words, **options)

    def jobs(self):
        return json.loads(self.run("jobs", "--json").out)["jobs"]

    def queue(self):
        return self.cluster.slurm("squeue", "-h", "--states=all", "-o", "%i %T").out.splitlines()

    def numbers(self):
        return [line.split()[0] for line in self.queue()]

    def book(self):
        return json.loads(self.run("jobs", "--json", "--offline").out)["jobs"]

    def close(self):
        if not any(self.sent.iterdir()) and (self.login.home / SENT).exists():
            shutil.copytree(self.login.home / SENT, self.sent, dirs_exist_ok=True)
        self.client.forget_masters()
        self.login.stop_sshd()
        self.cluster.close()


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    return tmp_path_factory.mktemp("sent")


@pytest.fixture
def world(hosts, sent):
    made = World(hosts, sent)
    yield made
    made.close()


def shell(text):
    return ("--", "--no-python", "/bin/sh", "-c", text)


def number_of(ended):
    assert ended.rc == 0, ended
    return re.fullmatch(r"Submitted batch job (\d+)\n", ended.out)[1]


def number_in(running):
    return until(lambda: re.search(r"Submitted batch job (\d+)\n", running.out()), 60, "it is submitted")[1]


def refused(ended, code, *words):
    assert ended.rc == code and ended.out == "", ended
    (line,) = ended.err.splitlines()
    assert all(word in line for word in words), ended


def test_the_source_is_brought_and_the_job_is_known_here(world):
    """One command from a laptop. Afterwards jobs, logs, wait and cancel use the laptop's own journal."""
    ended = world.submit("-N2", "-t5", "--follow", "--env=GREETING=hi there", "--secret=KEY",
                         *shell('echo $RANK of $WORLD_SIZE $GREETING $KEY $(cat note.txt)'), env={"KEY": "s3cret"})
    assert ended.rc == 0, ended
    submitted, *lines = ended.out.splitlines()
    job = submitted.split()[-1]
    assert sorted(lines) == [f"[rank{rank}]: {rank} of 2 hi there s3cret brought" for rank in (0, 1)], ended
    assert (world.login.home / "project/note.txt").read_text() == "brought\n"
    assert sorted((world.login.home / f"project/slurm-{job}.out").read_text().splitlines()) == sorted(lines)
    (known,) = world.jobs()
    assert (known["state"], known["code"], known["job"], known["on"]) == ("succeeded", 0, job, world.on), known
    for name in (job, known["id"], known["name"]):
        assert world.run("logs", name).out.splitlines() == lines
    assert world.run("logs", "--rank", "1", job).out == "[rank1]: 1 of 2 hi there s3cret brought\n"
    assert world.run("logs", "-n", "1", job).out.splitlines() == lines[-1:]
    assert world.run("wait", job).rc == 0
    # The same job is known on the login host.
    assert world.login.host.run("jobs", "--json", program=(BINARY,), env={
        **world.cluster.env, "HOME": world.login.home}).rc == 0


def test_print_submits_and_brings_nothing(world):
    ended = world.submit("--print", "-N2", "--spare", "1", "-t5", "-o", "logs/%j.out", *shell("true"))
    assert ended.rc == 0, ended
    assert "#SBATCH --nodes=3\n" in ended.out and "slurm-batch --folder" in ended.out, ended
    assert f"#SBATCH --output={world.login.home}/project/logs/%j.out\n" in ended.out, ended
    assert "note: " in ended.err and f"would be synced to {world.login.home}/project" in ended.err, ended
    assert not (world.login.home / "project").exists()
    assert world.queue() == [] and world.book() == []


def test_a_laptop_that_is_killed_and_a_connection_that_is_lost(world, tmp_path):
    """The job goes on. A later follower, or the same one after a break, gets every byte once."""
    follower = world.start("submit", "--on", world.on, "-N1", "-t5", "--follow", *shell(
        f'for i in 1 2 3 4; do echo line $i; touch {tmp_path}/said$i; while [ ! -e {tmp_path}/go$i ]; do sleep 0.05; '
        f'done; done; exit 7'))
    job = number_in(follower)
    until(lambda: "line 1\n" in follower.out(), 60, "it is followed")
    (there,) = world.login.host.spoken("host-job", "follow")
    os.kill(there, signal.SIGTERM)  # which ends no job
    until(lambda: world.login.host.spoken("host-job", "follow") not in ([], [there]) or
          follower.process.poll() is not None, 30, "another follower runs there")
    assert follower.process.poll() is None and follower.out().count("line 1\n") == 1, follower.err()
    follower.kill()
    world.client.forget_masters()
    (tmp_path / "go1").touch()
    until((tmp_path / "said2").exists, 30, "the job went on")
    again = world.start("logs", "-f", job)
    until(lambda: again.out() == "line 1\nline 2\n", 60, "it is followed again")
    world.client.forget_masters()
    (tmp_path / "go2").touch()
    until(lambda: "line 3\n" in again.out(), 60, "the connection is back")
    assert "trying again" in again.err() and "is back" in again.err(), again.err()
    for number in (3, 4):
        (tmp_path / f"go{number}").touch()
    ended = again.wait(60)
    # srun tells the exit code of a task as soon as it knows, which may be before the task's last line.
    lines = [line for line in ended.out.splitlines() if not line.startswith("srun: ")]
    assert ended.rc == 7 and lines[:4] == ["line 1", "line 2", "line 3", "line 4"], ended
    assert ended.out == (world.login.home / f"project/slurm-{job}.out").read_text()
    assert world.run("wait", job).rc == 7
    assert [(each["job"], each["state"], each["code"]) for each in world.jobs()] == [(job, "failed", 7)]


def test_cancel_from_the_laptop(world, tmp_path):
    job = number_of(world.submit("-N2", "-t5", "--name", "mine", *shell(f"touch {tmp_path}/$RANK; sleep 600")))
    until(lambda: len(list(tmp_path.glob("[01]"))) == 2, 60, "both ranks run")
    assert world.jobs()[0]["state"] == "running"
    waiting = world.start("wait", "mine", "--json")
    ended = world.run("cancel", job, "--json")
    assert ended.rc == 0 and json.loads(ended.out)["canceled"] is True, ended
    waited = waiting.wait(60)
    assert waited.rc == 143 and json.loads(waited.out)["state"] == "canceled", waited
    until(lambda: world.queue() == [f"{job} CANCELLED"], 60, "Slurm knows one job, which has ended")


def test_a_registered_cluster(world):
    refused(world.run("cluster", "add", "hpc", "--slurm", "--login", world.on, "--key-path", "no-key"), 2, "no-key")
    added = world.run("cluster", "add", "hpc", "--slurm", "--login", world.on, "--key-path",
                      os.path.relpath(world.client.key, world.project))
    assert added.rc == 0 and added.out.startswith("hpc: Slurm "), added
    shown = json.loads(world.run("cluster", "show", "hpc", "--json").out)
    key = shown["nodes"][0]["key_path"]
    assert os.path.isabs(key) and os.path.normpath(key) == str(world.client.key), shown
    # Failed nodes are those that the login host knows, not this machine.
    kept = world.login.home / ".local/state/lockstep/bad-nodes"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(f"{int(time.time())}\t1.000\ttestbed\tnode2\tpower cut\n")
    assert "left out: node2 until 20" in world.run("cluster", "show", "hpc").out
    refused(world.run("cluster", "show", "hpc", "--forget-node", "node1"), 1, "node1 is not left out")
    forgotten = world.run("cluster", "show", "hpc", "--forget-node", "node2")
    assert forgotten.rc == 0 and "left out" not in forgotten.out and "node2" not in kept.read_text(), forgotten
    ended = world.run("submit", "--on", "hpc", "-N1", "-t5", "--wait", "--json", *shell("exit 5"))
    assert ended.rc == 5, ended
    told = json.loads(ended.out)
    (known,) = world.book()
    assert (known["on"], known["job"], known["id"]) == ("hpc", told["job"], told["id"]), known
    assert told["output"] == f"{world.login.home}/project/slurm-{told['job']}.out"
    ended = world.run("submit", "--on", "hpc", "-N1", "-t5", "--follow", "--json", *shell("echo it ran"))
    told, *lines = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.rc == 0 and told["output"] and [line["text"] for line in lines] == ["it ran"], ended


def test_words_that_are_wrong_reach_no_host(world):
    for words, text in (
            (("--on", "nowhere.invalid", "-N2"), "no command is given"),
            (("--on", "nowhere.invalid", "-N", "x", "--", "train.py"), "--nodes=x must be a number of nodes"),
            (("--on", "nowhere.invalid", "--venv", "v", "--conda", "c", "--", "train.py"), "--venv"),
            (("--sync", "none", "--", "train.py"), "--sync needs --on"),
            (("--on", "local", "--sync", ".", "--", "train.py"), "a run on this machine syncs and installs nothing")):
        refused(world.run("submit", *words), 2, text)
    assert world.run("cluster", "add", "two", "--host", "a", "--host", "b").rc == 0
    refused(world.run("submit", "--on", "two", "--", "train.py"), 2, "two has 2 nodes, but a login host is a")


def test_bad_login_hosts(world):
    refused(world.run("submit", "--on", "10.77.0.99", "--sync", "none", *shell("true")), 255, "10.77.0.99")
    # sbatch refuses: its own words, and nothing is kept.
    ended = world.submit("-N1", "-p", "nowhere", "--no-check", *shell("true"))
    assert ended.rc == 1 and "Invalid partition name specified" in ended.err, ended
    assert world.book() == []
    world.cluster.stop_controller()
    ended = world.submit("-N1", "--no-check", *shell("true"), timeout=200)
    assert ended.rc == 1 and "sbatch refused the job" in ended.error_lines[-1], ended
    assert world.book() == []
    # No sbatch.
    farm = world.cluster.folder / "farm"
    farm.mkdir()
    for program in ("sh", "uname", "wc", "cat", "mkdir", "rm", "mv", "chmod", "gzip", "sha256sum", "rsync"):
        (farm / program).symlink_to(f"/usr/bin/{program}")
    world.login.stop_sshd()
    world.login.path = str(farm)
    world.login.start_sshd()
    world.client.forget_masters()
    refused(world.submit("-N1", *shell("true")), 1, f"{world.on} has no sbatch in PATH")
    # Another key.
    world.login.stop_sshd()
    world.login.host_key.unlink()
    make_key(world.login.host_key)
    world.login.start_sshd()
    world.client.forget_masters()
    refused(world.submit("-N1", *shell("true")), 255, world.on, "key")


WAIT_FOR = "until [ -e {0}/go ]; do sleep 0.05; done"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_that_is_lost_while_it_submits(world, tmp_path, when):
    """The job is submitted once, whether or not sbatch had run before the loss."""
    real = '/usr/bin/sbatch "$@"'
    first = f"[ -e {tmp_path}/once ] && exec {real}\ntouch {tmp_path}/once; "
    hang = f"touch {tmp_path}/there; {WAIT_FOR.format(tmp_path)}"
    world.login.wrap("sbatch", first + (f"{real} >{tmp_path}/said; {hang}" if when == "after" else f"{hang}; {real}"))
    running = world.start("submit", "--on", world.on, "-N1", "-t5", "--no-check", "--follow", *shell("echo ran"))
    until((tmp_path / "there").exists, 60, "sbatch is called")
    world.client.forget_masters()
    ended = running.wait(120)
    assert ended.rc == 0 and "asking again about job" in ended.err, ended
    job = ended.out.split()[3]
    assert ended.out == f"Submitted batch job {job}\nran\n", ended
    until(lambda: world.queue() == [f"{job} COMPLETED"], 60, "Slurm knows one job, which has ended")
    if when == "after":
        assert (tmp_path / "said").read_text().strip() == job


def test_a_laptop_that_is_killed_while_it_submits(world, tmp_path):
    """The laptop's journal has the job, and finds out its number later."""
    world.login.wrap("sbatch", f'/usr/bin/sbatch "$@"; touch {tmp_path}/there; {WAIT_FOR.format(tmp_path)}')
    running = world.start("submit", "--on", world.on, "-N1", "-t5", "--no-check", *shell("exit 3"))
    until((tmp_path / "there").exists, 60, "sbatch is called")
    assert [each["state"] for each in world.book()] == ["starting"]
    running.kill()
    world.client.forget_masters()
    (known,) = world.jobs()
    assert known["job"] == world.queue()[0].split()[0], known
    assert world.run("wait", known["id"]).rc == 3
    # A job that never reached sbatch.
    world.login.wrap("sbatch", f'touch {tmp_path}/second; rm -f {tmp_path}/go; {WAIT_FOR.format(tmp_path)}')
    running = world.start("submit", "--on", world.on, "-N1", "-t5", "--no-check", *shell("exit 3"))
    until((tmp_path / "second").exists, 60, "sbatch is called")
    running.kill()
    world.client.forget_masters()
    assert world.jobs()[0]["state"] == "lost"
    assert len(world.queue()) == 1


def test_why_from_the_laptop(world):
    """By name, id and number, for waiting and failed jobs, and for jobs of other users."""
    failed = world.submit("-N2", "-t5", "--name", "mine", "--wait", "--json",
                          *shell('[ $RANK = 0 ] || exit 6; sleep 600'))
    assert failed.rc == 6, failed
    told = json.loads(failed.out)
    for name in (told["job"], told["id"], "mine"):
        ended = world.run("why", name)
        assert ended.rc == 0 and "why     rank 1 on node2 exited with 6 after " in ended.out, ended
    held = number_of(world.submit("-N1", "--hold", *shell("true")))
    assert "the owner holds the job" in world.run("why", held).out
    (facts,) = json.loads(world.run("why", held, "--json").out)["jobs"]
    assert facts["outlook"] == "held" and facts["ids"] == [held], facts
    plain = world.cluster.slurm("sbatch", "--parsable", "--hold", "--wrap", "true").out.strip()
    for words in ((plain, "--on", world.on), (told["job"], "--on", world.on), ("mine", "--on", world.on)):
        ended = world.run("why", *words)
        assert ended.rc == 0, ended
        assert ("the owner holds the job" if words[0] == plain else "rank 1 on node2 exited with 6") in ended.out, ended
    refused(world.run("why", "4242", "--on", world.on), 1, "Slurm knows no job 4242")
    refused(world.run("why", "nosuch", "--on", world.on), 2, "'nosuch' is neither a Slurm job id")
    refused(world.run("why", "1", "--on", "10.77.0.99"), 1, "10.77.0.99")
    refused(world.run("why", "nosuch"), 2, "'nosuch' is neither a Slurm job id")
    # A cluster that is registered.
    assert world.run("cluster", "add", "hpc", "--slurm", "--login", world.on).rc == 0
    assert "the owner holds the job" in world.run("why", plain, "--on", "hpc").out
    refused(world.run("resume", held), 2, "only Slurm can resume a Slurm job", f"scontrol requeue {held}")
    assert world.cluster.slurm("scancel", plain, held).rc == 0


def test_a_controller_that_was_too_slow_for_sbatch(world):
    """sbatch fails, and the job is there all the same."""
    world.login.wrap("sbatch", '/usr/bin/sbatch "$@" >/dev/null; echo "sbatch: error: Batch job submission failed: '
                     'Socket timed out on send/recv operation" >&2; exit 1')
    ended = world.submit("-N1", "-t5", "--no-check", "--wait", *shell("exit 3"))
    assert ended.rc == 3, ended
    assert world.numbers() == [ended.out.split()[-1]]
    # If it is not, the command says so in sbatch's own words.
    world.login.wrap("sbatch", 'echo "sbatch: error: Batch job submission failed: Socket timed out" >&2; exit 1')
    ended = world.submit("-N1", "-t5", "--no-check", *shell("exit 3"))
    assert ended.rc == 1 and "sbatch refused the job" in ended.err and "Socket timed out" in ended.err, ended
    assert len(world.queue()) == 1 and len(world.book()) == 1


def test_an_ordinary_user_with_tcsh_and_a_space_in_the_home(world):
    """Users of a cluster are not root. All nodes share homes and passwd."""
    for folder in (world.cluster.folder, *world.cluster.folder.parents[:4]):
        folder.chmod(folder.stat().st_mode | 0o711)
    home = world.cluster.folder / "ann"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/authorized_keys").write_text(world.client.public_key)
    if any(world.sent.iterdir()):
        shutil.copytree(world.sent, home / SENT)
    subprocess.run(["chown", "-R", "2001:2001", home], check=True)
    passwd = world.login.folder / "passwd"
    with passwd.open("a") as file:
        file.write("ann:x:2001:2001::/home/an n:/bin/tcsh\n")
    with (world.login.folder / "shadow").open("a") as file:
        file.write("ann:*:19000:0:99999:7:::\n")
    for host in (world.cluster.login, *world.cluster.nodes):
        inside = ["nsenter", "--target", str(host.holder.pid), "--mount", "--"]
        if host is not world.cluster.login:
            subprocess.run([*inside, "mount", "-t", "tmpfs", "tmpfs", "/home"], check=True)
            subprocess.run([*inside, "mount", "--bind", passwd, "/etc/passwd"], check=True)
        subprocess.run([*inside, "mkdir", "/home/an n"], check=True)
        subprocess.run([*inside, "mount", "--bind", home, "/home/an n"], check=True)
    # Rank 1 fails only when rank 0 has spoken: it would be ended before.
    ended = world.run("submit", "--on", f"ann@{world.on}", "-N2", "-t5", "--follow", "--name", "it's; $(id)",
                      *shell("echo $RANK $(id -u) $(cat note.txt) $PWD; "
                             "[ $RANK = 1 ] || { echo >spoke; exec sleep 300; }; "
                             "until [ -s spoke ]; do sleep 0.05; done; exit 4"), timeout=300)
    assert ended.rc == 4, ended
    assert "[rank0]: 0 2001 brought /home/an n/project\n" in ended.out, ended
    assert "rank 1 on node2 exited with 4" in world.run("why", "it's; $(id)").out
    for path in (home / ".local/state/lockstep/slurm").iterdir():
        assert path.stat().st_mode & 0o077 == 0 or not path.is_dir(), path


def test_an_old_script_from_the_laptop(world):
    """It is brought with the project, and read on the login host."""
    world.write("job.py", "import os, sys; print('rank', os.environ['RANK'], sys.argv[1:], flush=True); sys.exit(8)\n")
    world.write("old.slurm", "#!/bin/bash\n#SBATCH -N2 -t5 --job-name=old\n#SBATCH --ntasks-per-node=1\n"
                "srun torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint=$HOSTNAME:29500 "
                "job.py --lr 0.1\n")
    ended = world.submit("--no-check", "--wait", "old.slurm", timeout=240)
    assert ended.rc == 8, ended
    job = ended.out.split()[-1]
    assert "['--lr', '0.1']" in world.run("logs", "old").out
    assert (world.book()[0]["name"], world.book()[0]["job"]) == ("old", job)
    refused(world.submit("--print", "old.slurm"), 2, "--print can't show")


def test_a_wheel_of_the_project_goes_along(world):
    """The wheel comes with the project, under the same path, and every node has it before its ranks start."""
    (world.project / "dist").mkdir()
    wheel = write_wheel(world.project / "dist", "toy", "1.0", "V = 7\n")
    words = ("-N2", "-t5", "--follow", "--wheel", f"dist/{wheel.name}", "--", "--no-python", "/usr/bin/python3", "-c",
             "import toy; print('toy', toy.V, toy.__file__.rsplit('/', 2)[0])")
    ended = world.submit(*words)
    assert ended.rc == 0 and ended.out.count("toy 7 /tmp/lockstep-0/overlays\n") == 2, ended
    # A missing wheel is named, and nothing is submitted.
    before = world.numbers()
    for given in ("nowhere.whl", "wheel:0123456789abcdef"):
        ended = world.submit("-N1", "-t5", "--wheel", given, "--", "--no-python", "/bin/true")
        assert ended.rc in (1, 2) and given.removeprefix("wheel:") in ended.error_lines[-1], ended
    assert world.numbers() == before  # not the states: the job may be COMPLETED a moment after its follower


def test_what_the_ranks_do_is_asked_through_the_login_host(world):
    job = number_of(world.submit("-N2", "-t5", *shell("exec sleep 1000")))

    def ranks():
        ended = world.run("top", "--json", job)
        assert ended.rc == 0, ended
        return [(node["node"], row["rank"]) for node in json.loads(ended.out)["nodes"] for row in node["rows"]]

    until(lambda: ranks() == [("node1", 0), ("node2", 1)], 60, "both ranks are seen")
    told = world.run("why", job, "--json")
    assert told.rc == 0 and len(json.loads(told.out)["looks"]) == 2, told
    one = world.run("why", job, "--rank", "1")
    assert one.rc == 0 and one.out.startswith("rank 1, pid "), one
    happened = world.run("events", job)
    assert happened.rc == 0 and happened.out, happened
    assert world.run("cancel", job).rc == 0


def others(world):
    """Returns the processes on all hosts except kept ssh connections."""
    return [{pid: comm for pid, comm in host.processes().items() if not comm.startswith("ssh")}
            for host in (world.client.host, world.cluster.login, *world.cluster.nodes)]


def steps(world):
    return world.cluster.slurm("squeue", "-h", "-s", "-o", "%i").out.split()


def test_the_page_comes_through_the_login_host(world):
    """The bytes go over the existing connection. Every kind of end leaves nothing running."""
    go = pathlib.Path(world.cluster.work) / "go"
    os.mkfifo(go)
    job = number_of(world.submit("-N2", "-t9", "--exclusive", "--mem=0", "--no-check", *shell(f": <{go}")))
    until(lambda: [node["node"] for node in json.loads(world.run("top", "--json", job).out)["nodes"]] ==
          ["node1", "node2"], 60, "both ranks are seen")
    until(lambda: len(steps(world)) == 2, 20, "the script and the agents")
    before = others(world)

    def nothing_left():
        until(lambda: len(steps(world)) == 2, 20, f"the step of the page has ended: {steps(world)}")
        until(lambda: others(world) == before, 20, f"nothing is left: {before} {others(world)}")

    page = Page(world.start, world.client.host, "--node", "1", job)
    assert page.get("/", token="x" * 32)[0] == 403
    status, text = page.get("/")
    assert status == 200 and text.startswith("<!doctype html>") and len(text) > 20 << 10
    until(lambda: page.ranks() == [1], 20, "the page of the other node")
    with page.connect() as live, contextlib.ExitStack() as crowd:
        live.sendall(f"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {page.token}\r\n\r\n".encode())
        seen = b""
        while seen.count(b"event: state") < 3:  # one a second
            seen += live.recv(65536)
        for _ in range(20):
            crowd.enter_context(page.connect())
        assert page.get("/state")[0] == 200, "beside connections that say nothing"
        assert len(steps(world)) == 3, "one step carries all of them"
        page.run.signal(signal.SIGINT)
        ended = page.run.wait(20)
        assert ended.rc == 128 + signal.SIGINT, ended
        # On a busy machine the way may take a while.
        assert all("] waiting for " in line for line in ended.err.splitlines()), ended
        while live.recv(65536):
            pass
    nothing_left()

    page = Page(world.start, world.client.host, job)
    page.run.signal(signal.SIGKILL)
    page.run.wait(20)
    nothing_left()

    page = Page(world.start, world.client.host, job)
    world.client.forget_masters()
    ended = page.run.wait(30)
    refused(dataclasses.replace(ended, out=""), 1, "lockstep page: error: the status page is gone: node1: ", world.on)
    nothing_left()

    page = Page(world.start, world.client.host, job)
    go.write_text("")  # both ranks wait for a writer
    ended = page.run.wait(60)
    refused(dataclasses.replace(ended, out=""), 1, "lockstep page: error: the status page is gone: node1: ")
    until(lambda: world.queue() == [f"{job} COMPLETED"], 30, f"the job succeeds: {world.queue()}")
    refused(world.run("page", job), 1, "no agent of ")
    world.login.stop_sshd()
    world.client.forget_masters()
    refused(world.run("page", job), 1, world.on)


def test_a_page_that_does_not_come_through_the_login_host(world):
    """The wait is told, and a login host that hangs holds nothing here."""
    go, srun_waits = (pathlib.Path(world.cluster.work) / name for name in ("go", "srun_waits"))
    os.mkfifo(go)
    os.mkfifo(srun_waits)
    job = number_of(world.submit("-N1", "-t9", "--exclusive", "--mem=0", "--no-check", *shell(f": <{go}")))
    until(lambda: json.loads(world.run("top", "--json", job).out)["nodes"], 60, "the rank is seen")
    until(lambda: len(steps(world)) == 2, 20, "the script and the agent")
    before = others(world)
    world.login.wrap("srun", f'case "$*" in *--in-step*) : <{srun_waits} ;; esac; exec /usr/bin/srun "$@"')
    page = world.start("page", job)
    until(lambda: "waiting for node1 for 5 s: its answer; Ctrl-C ends this command" in page.err(), 30, "it is told")
    links = [pid for pid, comm in others(world)[1].items() if pid not in before[1] and comm.startswith("lockstep")]
    assert links, others(world)
    for pid in links:
        os.kill(pid, signal.SIGSTOP)
    page.signal(signal.SIGINT)
    assert page.wait(20).rc == 128 + signal.SIGINT
    until(lambda: others(world)[0] == before[0], 10, f"nothing is left here: {before[0]} {others(world)[0]}")
    for pid in links:
        os.kill(pid, signal.SIGCONT)
    until(lambda: others(world) == before, 20, f"nothing is left there: {before} {others(world)}")
    go.write_text("")


def test_a_profile_comes_through_the_login_host(world):
    world.write("side.py", (SCRIPTS / "kineto_side.py").read_text())
    job = number_of(world.submit("-N2", "-t5", "--no-check", "--env=LOCKSTEP_PROFILE=1", "--", "side.py", "good"))
    places = [world.login.home / f"project/{rank}.folder" for rank in (0, 1)]
    until(lambda: all(place.exists() for place in places), 60, f"both ranks run: {world.run('logs', job)}")
    output = world.client.folder / "traces"
    ended = world.run("profile", "-o", output, job)
    assert (ended.rc, ended.out) == (0, f"{output}/profile.json: ranks 0-1\n"), ended
    assert len(json.loads((output / "profile.json").read_text())["traceEvents"]) == 6
    left = list(world.login.home.rglob("lockstep-profile-*"))
    assert len(left) == 2 and not any(any(folder.iterdir()) for folder in left), left
    assert world.run("cancel", job).rc == 0
    assert not list(world.login.home.rglob("lockstep-profile-*"))
