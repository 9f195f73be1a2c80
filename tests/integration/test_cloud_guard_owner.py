"""`run --on-demand --guard HOST`: the host owns the rental. The project goes there, course and guard run there, and
commands here ask the host. Client, host and rented machines are network namespaces with real sshds. The host reaches
the fakes by its own route, so tests can cut the client's network."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3

import pytest

from harness import read, until
from test_cloud_guard_host import HostWorld  # first: it says where the fakes are

import cloud_keys  # noqa: I100
from follow_world import FollowWorld, kill, plain_text  # noqa: I100
from lying_host import LyingHost  # noqa: I100
from rented_jobs import LASTING, project_in, taken  # noqa: I100
from rented_world import ours  # noqa: I100

SECRET = "s3cret-of-the-job"
MINE, FROM_FILE = "value-of-mine", "value-from-a-file"


class OwnerWorld(HostWorld, FollowWorld):
    """With AWS's key in the home of the host's user, too."""

    def __init__(self, hosts, folder):
        super().__init__(hosts, folder)
        aws = self.home / ".aws"
        aws.mkdir()
        self.aws_key = aws / "credentials"
        self.aws_key.write_text(read(self.fake.env["AWS_SHARED_CREDENTIALS_FILE"]))
        self.aws_key.chmod(0o600)
        self.give(".aws", ".aws/credentials")
        self.begin_again()
        self.project = project_in(folder)

    def begin_again(self):
        self.restart_sshd(self.relay.url, AWS_ENDPOINT_URL=self.relay.url, AWS_EC2_METADATA_DISABLED="true",
                          AWS_REGION="us-east-1")

    def train(self, *options, gpus="L4:1", provider="aws", **more):
        return self.start("run", "--on-demand", gpus, "--provider", provider, "--guard", self.where, "-y", "--name",
                          "lab", "--back", "out", "--allow-from", f"{self.server.addr}/32", *options, "train.py",
                          cwd=self.project, **more)

    @property
    def owner_state(self):
        return self.home / ".local/state/lockstep"

    def there(self, *wanted):
        """Processes of lockstep on the host."""
        return ours(self.server.host, *wanted)

    def courses(self):
        return self.there(b"follow-rented")

    def owner_jobs(self):
        return jobs_in(self.owner_state)

    def course_log(self):
        return plain_text("".join(map(read, sorted(self.owner_state.glob("rentals/lab.log*")))))

    def client_words(self):
        """Returns the client's processes on this machine."""
        return self.processes(b"run", b"--on-demand")

    def silence(self):
        self.server.stop_sshd()
        self.client.forget_masters()

    def close(self):
        for pid in [*self.there(b"guard-rentals"), *self.courses()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().close()


def jobs_in(state):
    with contextlib.suppress(sqlite3.OperationalError), \
         contextlib.closing(sqlite3.connect(f"file:{state}/rentals.db?mode=ro", uri=True)) as journal:
        return [json.loads(row[0]) for row in journal.execute("SELECT json FROM records WHERE kind = 'job'")]
    return []  # it is being made


@pytest.fixture
def world(hosts, tmp_path):
    with OwnerWorld(hosts, tmp_path) as made:
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


def begun(world, run=None):
    """Waits for the job's start, in the command's output or in the log of the course."""
    says = run.out if run else world.course_log
    until(lambda: "began at step 0" in says() or run and run.process.poll() is not None, 150, "it trains")
    assert "began at step 0" in says(), run and (run.out(), run.err())


def told(world):
    """Returns the next command's line about the job, which must come once."""
    ended, again = world.lockstep("cost"), world.lockstep("cost")
    assert ended.rc == 0 and "lab" not in again.err, (ended, again)
    lines = [line for line in ended.err.splitlines() if f"'lab' has ended at {world.where}" in line]
    assert len(lines) == 1, ended
    assert jobs_in(world.state) == [] and world.owner_jobs() == []
    return lines[0]


def test_the_host_does_all_and_the_command_shows_it(world):
    (world.project.parent / "job.env").write_text(f"OF_FILE={FROM_FILE}\n")
    says = 'print("done", os.environ["MINE"], os.environ["OF_FILE"], os.environ["TYPED"], flush=True)'
    (world.project / "train.py").write_text(LASTING.replace('print("done", flush=True)', says))
    run = world.train("--secret", "TOKEN", "--env", "MINE", "--env", "TYPED=typed", "--env-file",
                      world.project.parent / "job.env", env={"TOKEN": SECRET, "MINE": MINE})
    begun(world, run)
    assert world.guards() == [] and world.followers() == [], "no course and no guard is here"
    assert len(world.courses()) == len(world.there(b"guard-rentals")) == 1
    until(lambda: f"secret {SECRET}" in run.out(), 30, "the command shows its output")
    state = world.lockstep("jobs")
    assert "lab" in state.out and "running" in state.out and world.where in state.out, state
    shown = world.lockstep("cluster", "show", "lab")
    assert shown.rc == 0 and "is followed by process " in shown.out, shown
    ended = world.lockstep("keep", "lab", "1h")
    assert ended.rc == 0 and "'lab' ends" in ended.out, ended
    ended = world.lockstep("cost")
    assert ended.rc == 0 and f"at {world.where}" in ended.out, ended
    rows = json.loads(world.lockstep("cost", "--json").out)["rentals"]
    assert [(row["name"], row["host"]) for row in rows] == [("lab", world.where)], rows
    # The values travel by stdin: no command line and no file has them.
    for pid in world.server.host.processes():
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            assert not any(value.encode() in words for value in (SECRET, MINE, FROM_FILE)), words
    for path in [path for path in world.home.rglob("*") if path.is_file() and ".cache" not in path.parts]:
        # The log has what the job has printed. The book of jobs has plain variables, for `lockstep resume`.
        kept = [SECRET, MINE, FROM_FILE] if path.name.startswith("lab.log") else []
        kept = [MINE, FROM_FILE] if path.name.startswith("state.db") else kept
        assert not kept or path.stat().st_mode & 0o77 == 0, path
        for value in {SECRET, MINE, FROM_FILE} - set(kept):
            assert value.encode() not in path.read_bytes(), (path, value)
    (guard,) = world.there(b"guard-rentals")
    assert SECRET.encode() not in pathlib.Path(f"/proc/{guard}/environ").read_bytes()
    world.go()
    ended = run.wait(90)
    assert ended.rc == 0 and f"done {MINE} {FROM_FILE} typed" in ended.out, ended
    assert "is terminated; it cost" in ended.err and not world.live(), ended
    assert (world.project / "out/result").read_text() == "done"
    assert world.owner_jobs() == [] == jobs_in(world.state)
    assert "lab" not in world.lockstep("cost").err, "the end was seen"


def test_a_job_goes_on_elsewhere_and_to_its_end_when_the_client_is_gone(world):
    run = world.train("--spot", "--resume-arg=--resume")
    begun(world, run)
    kill(world, *world.client_words())
    world.client.host.cut()
    until(lambda: (world.machines.by_id[world.live()[0].id].path("/home/ubuntu/project/out").exists()), 20, "it saves")
    (machine,) = world.live()
    world.fake.world.notify(machine, 30)
    until(lambda: "began at step 1 args ['--resume'] attempt 2" in world.course_log(), 150,
          f"it is begun again: {world.course_log()}")
    (course,) = world.courses()
    os.kill(course, signal.SIGKILL)
    until(lambda: world.courses() not in ([], [course]), 60, "the guard there has started another")
    world.go()
    until(lambda: not world.live() and not world.courses(), 120, f"it ends: {world.course_log()}")
    assert (world.home / "project/out/result").read_text() == "done" and not (world.project / "out").exists()
    (job,) = world.owner_jobs()
    assert job["stage"] == "ended" and job["code"] == 0, job
    world.client.host.heal()
    line = told(world)
    assert "exit code 0, outputs in out, " in line, line
    assert (world.project / "out/result").read_text() == "done"
    assert (world.home / "project/out/result").exists(), "nothing is removed there"
    assert len(world.machines.all) == 2


def test_the_command_may_be_killed_as_soon_as_the_host_has_the_job(world):
    run = world.train()
    until(world.owner_jobs, 60, "the host has the job")
    kill(world, *world.client_words())
    world.client.host.cut()
    begun(world)
    world.go()
    until(lambda: not world.live() and not world.courses(), 120, f"it ends: {world.course_log()}")
    world.client.host.heal()
    ended = world.start("wait", "lab").wait(60)
    assert ended.rc == 0, ended
    assert (world.project / "out/result").read_text() == "done"
    assert jobs_in(world.state) == [] and "lab" not in world.lockstep("cost").err
    assert run.wait(10).rc != 0


def test_other_terminals_follow_wait_and_cancel(world):
    detached = world.train("--detach").wait(180)
    assert detached.rc == 0 and "began" not in detached.out, detached
    assert f"'lab' goes on at {world.where}" in detached.err, detached
    job = detached.out.strip()
    begun(world)
    logs = world.start("logs", "-f", "lab")
    waits = world.start("wait", job)
    until(lambda: "began at step 0" in logs.out(), 30, "the log from its beginning")
    assert "began at step 0" in world.lockstep("logs", "lab").out
    logs.process.send_signal(signal.SIGINT)  # as the terminal of the command would
    ended = logs.wait(90)
    assert ended.rc not in (0, 255) and "is terminated; it cost" in ended.err, ended
    assert waits.wait(30).rc == ended.rc and not world.live()
    assert jobs_in(world.state) == [], "wait returns once the other command has brought the outputs"
    assert (world.project / "out/checkpoint").read_text() == "1", "what it saved is here"
    assert jobs_in(world.state) == [] == world.owner_jobs()
    # The same by `cancel`, while machines are being rented.
    world.machines.boots = False
    run = world.train()
    until(lambda: world.live(), 60, "a machine")
    ended = world.lockstep("cancel", "lab")
    assert ended.rc == 0 and ended.out == "lab: canceled\n" and not world.live(), ended
    assert run.wait(60).rc != 0


def test_commands_about_the_job_know_it_as_any_other(world):
    detached = world.train("--detach").wait(180)
    assert detached.rc == 0, detached
    job = detached.out.strip()
    begun(world)
    (row,) = json.loads(world.lockstep("jobs", "--json").out)["jobs"]
    assert (row["id"], row["name"], row["on"], row["state"]) == (job, "lab", world.where, "running"), row
    why = world.lockstep("why", "--json", "lab")
    assert why.rc == 0 and json.loads(why.out)["state"] == "running", why
    assert "running" in world.lockstep("why", job).out
    shown = world.lockstep("top", "--once", "--json", "lab")
    (node,) = json.loads(shown.out)["nodes"]
    assert [rank["rank"] for rank in node["rows"]] == [0], shown
    events = world.lockstep("events", "--json", "lab")
    assert events.rc == 0 and "ranks_started" in events.out, events
    threads = world.lockstep("why", "--rank", "0", "lab")
    assert threads.rc == 0 and "train.py" in threads.out, threads
    for words, what in ((("page", "lab"), "its page"), (("profile", "lab"), "its ranks"),
                        (("exec", job, "--", "true"), "the ranks of"),
                        (("exec", "lab[3]", "--", "true"), f"lockstep exec '{job}[3]' -- COMMAND"),
                        (("logs", "lab[3]"), f"on {world.where}: lockstep logs '{job}[3]'"),
                        (("resume", "lab"), "begins it again")):
        ended = world.lockstep(*words)
        assert ended.rc == 2 and what in ended.err and world.where in ended.err, (words, ended)
        assert len(ended.err.splitlines()) == 1, ended
    last = world.lockstep("logs", "-n", "1", job)
    assert last.rc == 0 and last.out.count("\n") == 1, last
    waits = world.start("wait", "--json", "lab")
    until(lambda: world.there(b"host-rental", b"follow"), 30, "it waits")
    ended = world.lockstep("cancel", "--json", job)
    told_here = json.loads(ended.out)
    assert ended.rc == 0 and told_here["state"] == "canceled" and told_here["canceled"] is True, ended
    assert (told_here["id"], told_here["name"], told_here["on"]) == (job, "lab", world.where), told_here
    ended = waits.wait(30)
    told_there = json.loads(ended.out)
    assert ended.rc == told_there["code"] != 0 and set(told_there) == set(told_here), (told_there, told_here)
    assert not world.live() and jobs_in(world.state) == [] == world.owner_jobs()


def test_ctrl_c_cancels_and_a_closed_terminal_does_not(world):
    run = world.train()
    begun(world, run)
    run.process.send_signal(signal.SIGHUP)
    ended = run.wait(30)
    assert ended.rc == 129 and f"'lab' goes on at {world.where}; lockstep logs -f lab shows it" in ended.err, ended
    assert world.live() and len(world.courses()) == 1
    ended = world.lockstep("down", "lab", stdin=None)
    assert ended.rc == 2 and f"the job of 'lab' at {world.where} goes on; give --force" in ended.err, ended
    ended = world.lockstep("down", "--all", "--force")
    assert ended.rc == 0 and not world.live(), ended
    until(lambda: not world.courses() and not world.there(b"guard-rentals"), 60, "nothing is left there")
    assert jobs_in(world.state) == [] == world.owner_jobs()
    run = world.train()
    begun(world, run)
    run.process.send_signal(signal.SIGINT)
    ended = run.wait(60)
    assert ended.rc not in (0, 255) and not world.live(), ended
    assert (world.project / "out/checkpoint").read_text() == "1" and jobs_in(world.state) == []
    shutil.rmtree(world.project / "out")  # which would go with the project
    run = world.train()
    begun(world, run)
    run.process.send_signal(signal.SIGTERM)
    ended = run.wait(60)
    assert ended.rc not in (0, 255) and "'lab' is being canceled" in ended.err and not world.live(), ended
    assert jobs_in(world.state) == [] == world.owner_jobs()


def test_a_host_that_is_silent_is_never_taken_for_success(world):
    run = world.train()
    begun(world, run)
    world.silence()
    ended = run.wait(120)
    assert ended.rc not in (0, 2) and f"'lab' goes on at {world.where}" in ended.err, ended
    assert "trying again for 60 s" in ended.err and "is back" not in ended.err, ended
    for words in (("wait", "lab"), ("logs", "-f", "lab"), ("logs", "lab"), ("cancel", "lab"), ("down", "lab")):
        ended = world.lockstep(*words)
        assert ended.rc in (1, 255) and len(ended.err.splitlines()) <= 2 and world.server.addr in ended.err, ended
    ended = world.lockstep("cost")
    assert "the state of the job of 'lab' is not known: " in ended.err, ended
    assert "unreachable since" in world.lockstep("jobs").out
    world.begin_again()
    world.go()
    until(lambda: not world.live() and not world.courses(), 60, "it ends there")
    assert "exit code 0" in told(world) and (world.project / "out/result").read_text() == "done"
    # A job that is gone for good is forgotten, and does not count as a success.
    shutil.rmtree(world.project / "out")
    run = world.train()
    begun(world, run)
    kill(world, *world.client_words())
    world.silence()
    ended = world.lockstep("down", "lab", "--force")
    assert ended.rc == 1 and "'lab' is forgotten here; its machines end with their lease" in ended.err, ended
    assert jobs_in(world.state) == []


def test_a_host_that_cannot_own_it_is_refused_in_one_line(world):
    key = read(world.aws_key)
    world.aws_key.unlink()
    ended = world.train().wait(60)
    assert ended.rc == 1 and f"{world.where}: " in ended.err and "AWS" in ended.err, ended
    assert len(ended.err.splitlines()) == 1, ended
    world.aws_key.write_text(key)
    world.give(".aws/credentials")
    world.silence()
    ended = world.train().wait(60)
    assert ended.rc == 1 and world.server.addr in ended.err and len(ended.err.splitlines()) == 1, ended
    assert world.fake.world.machines == {} and jobs_in(world.state) == []
    assert json.loads(world.lockstep("cost", "--json").out)["rentals"] == []
    world.begin_again()
    ended = world.train("--print").wait(60)
    assert ended.rc == 0 and ended.out.startswith("plan: 1 x ") and world.fake.world.machines == {}, ended
    assert not (world.home / "project").exists(), "a plan brings no project"


def test_outputs_that_are_newer_here_stay_and_the_host_keeps_its_copy(world):
    run = world.train("--spot")
    begun(world, run)
    kill(world, *world.client_words())
    taken(world, world.live()[0])
    until(lambda: "attempt 2 rank" in world.course_log(), 150, "it is begun again")
    world.go()
    until(lambda: not world.live() and not world.courses(), 60, "it ends")
    (world.project / "out").mkdir()
    (world.project / "out/result").write_text("mine")
    os.utime(world.project / "out/result", (4e9, 4e9))
    ended = world.lockstep("cost")
    assert f"out/result; {world.where} keeps its copy in project" in ended.err, ended
    assert (world.project / "out/result").read_text() == "mine"
    assert (world.home / "project/out/result").read_text() == "done"


def test_a_job_whose_machine_is_held_for_its_outputs_is_not_forgotten(world):
    run = world.train()
    begun(world, run)
    (world.home / "project/out").mkdir()  # of another user: the outputs cannot be brought there
    world.go()
    ended = run.wait(90)
    assert ended.rc == 1 and "'lab' is held for " in ended.err and world.live(), ended
    assert "lab" not in world.lockstep("cost").err and len(jobs_in(world.state)) == len(world.owner_jobs()) == 1
    assert "saving" in world.lockstep("jobs").out
    assert "in /home/me/project on " in ended.err and f"'lab' goes on at {world.where}" in ended.err, ended
    ended = world.lockstep("down", "lab", "--force")
    assert ended.rc == 0 and not world.live(), ended
    assert jobs_in(world.state) == [] == world.owner_jobs()


def test_a_waiting_command_starts_the_guard_again_after_a_reboot_of_the_host(world):
    detached = world.train("--detach").wait(180)
    assert detached.rc == 0, detached
    begun(world)
    # As a reboot does: only commands of the client know of the job then.
    kill(world, *world.there(b"guard-rentals"), *world.courses())
    waits = world.start("wait", "lab")
    until(world.courses, 60, "the guard there has started another course")
    world.go()
    assert waits.wait(90).rc == 0 and (world.project / "out/result").read_text() == "done"
    assert not world.live() and jobs_in(world.state) == [] == world.owner_jobs()


def test_ctrl_c_while_the_host_begins_leaves_nothing(world):
    moments = {"plan": lambda: world.there(b"host-rental", b"plan"),
               "begin": lambda: world.there(b"host-rental", b"begin"),
               "record": world.owner_jobs, "course": world.courses}
    for name, moment in moments.items():
        for number in (signal.SIGINT, signal.SIGTERM):
            run = world.train()
            until(moment, 60, "the host begins")
            run.process.send_signal(number)
            ended = run.wait(60)
            assert ended.rc == 128 + number and not world.live(), (name, ended)
            assert jobs_in(world.state) == [] == world.owner_jobs(), (name, ended)
            says = [line for line in ended.err.splitlines() if line.startswith("lockstep run") and "cancel" in line]
            assert len(says) == 1 or name == "plan", (name, ended)
    until(lambda: not world.courses() and not world.there(b"guard-rentals"), 60, "nothing is left there")


def test_views_go_on_when_a_broken_link_is_back(world):
    run = world.train()
    begun(world, run)
    logs, waits = world.start("logs", "-f", "lab"), world.start("wait", "lab")
    until(lambda: "began at step 0" in logs.out() and len(world.there(b"host-rental", b"follow")) == 3, 30, "3 views")
    shown = run.out()
    world.silence()
    for view in (run, logs, waits):
        until(lambda view=view: "the job needs no connection, trying again for 60 s" in view.err(), 30, "one line")
    world.begin_again()
    for view in (run, logs, waits):
        until(lambda view=view: f"{world.where} is back" in view.err(), 30, "the view goes on")
    world.go()
    for view in (run, logs, waits):
        ended = view.wait(90)
        assert ended.rc == 0 and ended.err.count("trying again") == ended.err.count("is back") == 1, ended
    assert run.out().startswith(shown) and run.out().count("began at step 0") == 1, "nothing is shown twice"
    assert "done" in run.out() and logs.out() == run.out() and waits.out() == ""
    assert (world.project / "out/result").read_text() == "done" and jobs_in(world.state) == []


def test_ctrl_c_while_the_host_is_away_cancels_once_it_is_back(world):
    run = world.train()
    begun(world, run)
    world.silence()
    until(lambda: "trying again" in run.err(), 30, "the link is lost")
    run.process.send_signal(signal.SIGINT)
    until(lambda: f"'lab' is canceled once {world.where} is back" in run.err(), 10, "it says so")
    assert world.live() and run.process.poll() is None
    world.begin_again()
    ended = run.wait(90)
    assert ended.rc not in (0, 255) and not world.live() and jobs_in(world.state) == [], ended
    # Ctrl-C ends a `wait` alone.
    assert world.train("--detach", "--env", "LAST=2").wait(180).rc == 0
    waits = world.start("wait", "lab")
    until(lambda: world.there(b"host-rental", b"follow"), 30, "it waits")
    waits.process.send_signal(signal.SIGINT)
    ended = waits.wait(30)
    assert ended.rc == 130 and "'lab' goes on at" in ended.err and world.live(), ended
    assert world.lockstep("cancel", "lab").rc == 0


HOSTILE = r"""
link.hello(); words = link.words(); link.started()
link.data("stdout \x1b[2J\u009b\u202e ends\n")
link.data("stderr \x1b]0;x\x07\u202e ends\n", stream=ERR)
if words[1] == "ask":
    link.all(b"flood\n" * 300_000, stream=ERR)
link.exit(3)
"""


def test_words_of_a_hostile_owner_reach_the_terminal_without_its_control(world):
    assert world.train("--detach").wait(180).rc == 0
    host = LyingHost(world.client, world.server)
    host.lies(HOSTILE)
    for words in (("cost", "lab"), ("keep", "lab", "1h"), ("cluster", "show", "lab"), ("why", "lab"), ("events", "lab"),
                  ("top", "--once", "lab"), ("why", "--rank=0", "lab"), ("down", "lab", "--force"), ("wait", "lab"),
                  ("jobs",), ("cost",)):
        ended = world.lockstep(*words)
        said = ended.out + ended.err
        assert not any(control in said for control in "\x1b\x07\u009b\u202e"), (words, said[:1000])
        if words[-1] == "lab":
            assert ended.rc != 0 and "\\x1b" in said and len(said) < 2_000_000, (words, said[:1000])
        if words == ("cost", "lab"):
            assert ended.rc == 3 and "stdout \\x1b[2J" in ended.out and "stderr \\x1b]0;x" in ended.err, ended
            assert len(ended.err) < 1_100_000 and "the host says more, which is not shown" in ended.err
    host.lies('link.hello(); link.words(); link.started(); link.data(\'{"error": "no agent"}\'); link.exit(0)')
    ended = world.lockstep("why", "lab")
    assert ended.rc != 0 and "no agent" in ended.err and "login host" not in ended.err, ended
    host.is_honest()
    assert world.lockstep("cancel", "lab").rc == 0


def test_commands_for_machines_of_another_host_name_that_host(world):
    assert world.train("--detach").wait(180).rc == 0
    for words in (("exec", "lab", "--", "true"), ("ssh", "lab"), ("forward", "lab", "8080"), ("sync", "lab")):
        ended = world.lockstep(*words)
        assert ended.rc in (1, 255) and len(ended.err.splitlines()) == 1, ended
        assert f"the machines of 'lab' belong to {world.where}" in ended.err, ended
        assert f"lockstep ssh {world.where}" in ended.err, ended
    assert world.lockstep("cancel", "lab").rc == 0
