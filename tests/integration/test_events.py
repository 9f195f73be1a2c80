"""The events of a job: --events, lockstep events, notices, goodput, traces."""
import http.server
import json
import os
import re
import ssl
import subprocess
import threading
import time
import urllib.request

import pytest

from certificates import Certificates
from harness import BINARY, SCRIPTS, until
from nodes import Job
from ssh_hosts import SshWorld
from test_jobs import PARKED, add_cluster, go, script

FIELDS = {"event": str, "time_ms": int, "agent": str, "number": int, "attempt": int, "node": str, "words": str,
          "numbers": dict}


def events_in(text):
    events = [json.loads(line) for line in text.splitlines()]
    for event in events:
        assert {name: type(value) for name, value in event.items() if name != "rank"} == FIELDS, event
    return events


def kinds(events):
    return [event["event"] for event in events]


def lockstep_command(lockstep, *words, timeout=30, **more):
    return subprocess.run([BINARY, *map(str, words)], env=lockstep.environment(), capture_output=True, text=True,
                          timeout=timeout, **more)


class Webhook:
    """Records the posts. delay: seconds until an answer."""

    def __init__(self, status=200, delay=0.0, context=None):
        self.posts = []
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.posts.append((self.path, dict(self.headers), json.loads(body)))
                time.sleep(delay)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_address[1]

    def url(self, path="/hook"):
        return f"http://127.0.0.1:{self.port}{path}"

    def bodies(self):
        return [body for _, _, body in self.posts]

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()


def test_a_notice_hides_the_variables_of_a_notice_around_it(lockstep):
    """A job that a program of --notify-exec starts has variables of the first job's notice."""
    outer = {"LOCKSTEP_NOTICE": "outer", "LOCKSTEP_NOTIFY_URL": "http://127.0.0.1:1/x"}
    ended = lockstep.run_worker("--notify-exec", "/usr/bin/env", actions=["exit=0"], env=outer)
    assert ended.rc == 0 and "LOCKSTEP_NOTICE=start\n" in ended.err, str(ended)
    assert "LOCKSTEP_NOTICE=outer" not in ended.err and "LOCKSTEP_NOTIFY_URL" not in ended.err


def test_a_file_gets_a_line_for_each_event(lockstep):
    path = lockstep.folder / "events.jsonl"
    ended = lockstep.run_worker("--nproc-per-node", 2, "--max-restarts", 1, "--events", path,
                                actions=["%0", "@0", "err=boom\\n", "exit=3", "@*", "pause", "%1", "exit=0"])
    assert ended.rc == 0, str(ended)
    events = events_in(path.read_text())
    assert kinds(events) == [
        "started", "rendezvous_begun", "round_formed", "ranks_started", "failed", "stopping", "rank_ended",
        "workers_ended", "rendezvous_begun", "round_formed", "restarting", "ranks_started", "rank_ended", "rank_ended",
        "workers_ended", "ended"], events
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert len({event["agent"] for event in events}) == len({event["node"] for event in events}) == 1
    times = [event["time_ms"] for event in events]
    assert times == sorted(times) and abs(times[-1] / 1000 - time.time()) < 60
    failed = events[4]
    assert (failed["rank"], failed["attempt"], failed["numbers"]) == (0, 1, {"exit_code": 3}), failed
    assert "rank 0 on" in failed["words"] and "failed (exitcode: 3): boom" in failed["words"]
    assert events[3]["numbers"] == {"first_rank": 0, "ranks": 2, "restarts": 0, "world": 2}
    assert events[-1]["words"].startswith("succeeded after ")
    # A second run appends, under another name.
    assert lockstep.run_worker("--events", path, actions=["exit=0"]).rc == 0
    assert len({event["agent"] for event in events_in(path.read_text())}) == 2


@pytest.mark.parametrize("path, why", [("-", "must be a file"), ("", "needs a file name"),
                                       ("/no/such/events", "No such file or directory"), ("/", "Is a directory")])
def test_a_file_that_cannot_be_is_refused_before_the_start(lockstep, path, why):
    ended = lockstep.run_worker("--events", path, actions=[f"touch={lockstep.facts}"])
    assert ended.rc == 1 and "--events" in ended.err and why in ended.err, str(ended)
    assert not list(lockstep.facts.iterdir())


def test_a_fifo_without_a_reader_and_a_full_disk_stop_nothing(lockstep):
    fifo = lockstep.folder / "fifo"
    os.mkfifo(fifo)
    assert lockstep.run_worker("--events", fifo, actions=["exit=0"]).rc == 0
    ended = lockstep.run_worker("--events", "/dev/full", "--max-restarts", 2, actions=["exit=5"])
    assert ended.rc == 1 and ended.err.count("--events /dev/full: No space left") == 1, str(ended)


def test_a_reader_of_a_fifo_gets_all(lockstep):
    fifo = lockstep.folder / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True) as reader:
        assert lockstep.run_worker("--events", fifo, actions=["exit=0"]).rc == 0
        events = events_in(reader.communicate(timeout=10)[0])
    assert kinds(events)[0] == "started" and kinds(events)[-1] == "ended"


def test_a_running_job_is_asked(lockstep):
    run = lockstep.start_worker("--nproc-per-node", 2, actions=[f"touch={lockstep.facts}", "pause"])
    lockstep.ready(2)
    said = lockstep_command(lockstep, "events", f"pid-{run.pid}")
    assert said.returncode == 0, said
    assert "ranks_started     ranks 0-1 of 2" in said.stdout and "attempt 1" in said.stdout, said.stdout
    events = events_in(lockstep_command(lockstep, "events", "--json", f"pid-{run.pid}").stdout)
    assert kinds(events) == ["started", "rendezvous_begun", "round_formed", "ranks_started"]
    follower = subprocess.Popen([BINARY, "events", "-f", "--json", f"pid-{run.pid}"], env=lockstep.environment(),
                                stdout=subprocess.PIPE, text=True)
    try:
        assert json.loads(follower.stdout.readline())["event"] == "started"
        trace = lockstep.folder / "job.json"
        told = lockstep_command(lockstep, "trace", "-o", trace, f"pid-{run.pid}")
        assert told.returncode == 0 and re.match(rf"{trace}: \d+ events; https://ui.perfetto.dev ", told.stdout), told
        assert "attempt 1" in trace.read_text()
        run.kill()
        follower.communicate(timeout=20)
        assert follower.returncode == 0, "the follower ends with the job"
    finally:
        follower.kill()
    gone = lockstep_command(lockstep, "events", f"pid-{run.pid}")
    assert gone.returncode == 1 and len(gone.stderr.splitlines()) == 1, gone


def test_training_hang_and_first_output_of_a_real_job(lockstep, tmp_path):
    path = tmp_path / "events.jsonl"
    path.touch()
    with Webhook() as hook:
        run = lockstep.start("--nproc-per-node", 2, "--events", path, "--hang-after", 5, "--notify", hook.url(),
                             "--tee", 3, SCRIPTS / "hang.py", "sleep", 1,
                             env={"TEST_FOLDER": tmp_path, "OMP_NUM_THREADS": "1"})
        try:
            until(lambda: '"hung"' in path.read_text(), 90, "the hang is noted")
            until(lambda: len(hook.posts) == 2, 20, "the hang is told")
        finally:
            run.kill()
        events = events_in(path.read_text())
        assert 0 in {event["rank"] for event in events if event["event"] == "first_output"}, "rank 0 prints"
        assert "training" in kinds(events)
        (hung,) = [event for event in events if event["event"] == "hung"]
        assert "rank 1 at hang.py:" in hung["words"], hung
        assert [body["notice"] for body in hook.bodies()] == ["start", "hang"]


def check_nesting(trace):
    open_spans = {}
    for line in trace["traceEvents"]:
        assert {"name", "ph", "pid"} <= set(line), line
        if line["ph"] != "X":
            continue
        begin, end = line["ts"], line["ts"] + line["dur"]
        stack = open_spans.setdefault((line["pid"], line["tid"]), [])
        while stack and stack[-1] <= begin < end:
            stack.pop()
        assert not stack or end <= stack[-1], line
        stack.append(end)


def test_a_trace_of_two_nodes_nests(lockstep):
    path = lockstep.folder / "events.jsonl"
    job = Job(lockstep)
    runs = [job.node(number, "--events", path, "--max-restarts", 1, nproc=2,
                     actions=["%0", "@3", "exit=1", "@*", "pause", "%1", "exit=0"]) for number in range(2)]
    assert [run.wait(40).rc for run in runs] == [0, 0], [run.err() for run in runs]
    said = lockstep_command(lockstep, "trace", "--from", path)
    assert said.returncode == 0 and not said.stderr, said
    trace = json.loads(said.stdout)
    check_nesting(trace)
    spans = [line["name"] for line in trace["traceEvents"] if line["ph"] == "X"]
    assert spans.count("attempt 1") == spans.count("attempt 2") == 2, spans
    assert spans.count("rank 3") == 2 and spans.count("rendezvous") == 4, spans
    with open(path, "a") as file:
        file.write("half a li")
    assert "1 lines are not events" in lockstep_command(lockstep, "trace", "--from", path).stderr
    (lockstep.folder / "none").write_text("x\n")
    assert lockstep_command(lockstep, "trace", "--from", lockstep.folder / "none").returncode == 1


def test_a_report_has_events_and_goodput(lockstep):
    path = lockstep.folder / "report.json"
    assert lockstep.run_worker("--report", path, actions=["sleep=1500", "exit=0"]).rc == 0
    report = json.loads(path.read_text())
    assert kinds(report["events"])[-1] == "ended"
    goodput = report["goodput"]
    assert 0 <= goodput["share"] <= 1
    spent = sum(value for name, value in goodput.items() if name.endswith("_ms"))
    assert abs(spent - report["duration_ms"]) < 100, report
    assert goodput["start_ms"] + goodput["training_ms"] + goodput["waiting_ms"] > 1400, goodput
    trace = json.loads(lockstep_command(lockstep, "trace", "--from", path).stdout)
    check_nesting(trace)


REPEATS = """import os, sys, time
again = os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
for step in range(10 if again else 0, 31):  # the checkpoint is of step 10
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
    print(os.environ["TEST_LINE"], step, flush=True)
    if step == 20 and not again:
        sys.exit(1)
while not os.path.exists(os.environ["TEST_END"]):
    time.sleep(0.1)
"""


@pytest.mark.parametrize("line, options, guessed", [("step", (), True), ("saw", (), None),
                                                    ("batch", ("--progress", "batch ([0-9]+)"), False)])
def test_steps_that_a_restart_repeats_are_not_training(lockstep, tmp_path, line, options, guessed):
    script, report, end = tmp_path / "repeats.py", tmp_path / "report.json", tmp_path / "end"
    script.write_text(REPEATS)
    run = lockstep.start("--max-restarts", 1, "--report", report, "--metrics", "--log-dir", lockstep.logs, "--tee", 3,
                         *options, script, env={"TEST_LINE": line, "TEST_END": end})
    try:
        until(lambda: f"{line} 30\n" in run.out(), 90, f"the last step: {run.err()}")
        place = re.search(r"metrics: (http://\S+)", run.err())[1]
        with urllib.request.urlopen(place, timeout=10) as answer:
            text = answer.read().decode()
        phases = {name: float(value) for name, value in
                  re.findall(r'^lockstep_goodput_seconds_total\{.*phase="(\w+)"\} (\S+)$', text, re.M)}
        begun = float(re.search(r"^lockstep_start_time_seconds\{.*\} (\S+)$", text, re.M)[1])
        assert abs(sum(phases.values()) - (time.time() - begun)) < 3, phases
        end.touch()
        assert run.wait(30).rc == 0, run.err()
    finally:
        run.kill()
    goodput = json.loads(report.read_text())["goodput"]
    if guessed is None:
        assert "redone" not in phases and not any(name.startswith("redone") for name in goodput), (phases, goodput)
        return
    # From the line of step 10 until that of step 20; the looks come once a second.
    assert 3 <= phases["redone"] <= 7.5, phases
    assert abs(goodput["redone_ms"] / 1000 - phases["redone"]) < 0.1 and goodput["redone_guessed"] == guessed, goodput
    assert goodput["training_ms"] >= 10_000, goodput


# --- notices


def test_a_webhook_hears_of_start_failure_restart_and_end(lockstep):
    with Webhook() as hook:
        ended = lockstep.run_worker("--max-restarts", 1, "--notify", hook.url("/secret?x=1"),
                                    actions=["%0", "err=boom\\n", "exit=3", "%1", "exit=0"])
        assert ended.rc == 0 and "notify" not in ended.err, str(ended)
        assert [body["notice"] for body in hook.bodies()] == ["start", "failure", "restart", "end"]
        assert {path for path, _, _ in hook.posts} == {"/secret?x=1"}
        failure = hook.bodies()[1]
        assert failure["event"] == "failed" and failure["numbers"] == {"exit_code": 3}
        assert failure["text"].startswith("test_worker: failure on ") and "boom" in failure["text"], failure
        assert hook.posts[0][1]["Content-Type"] == "application/json"


def test_the_webhook_of_the_environment_is_in_slacks_form_and_stays_secret(lockstep):
    with Webhook() as hook:
        ended = lockstep.run_worker(actions=["show=LOCKSTEP_NOTIFY,LOCKSTEP_NOTIFY_URL", "exit=0"],
                                    env={"LOCKSTEP_NOTIFY": "slack+" + hook.url("/T0/secret"), "LOGLEVEL": "DEBUG"})
        assert ended.rc == 0 and "secret" not in ended.out + ended.err, str(ended)
        assert [list(body) for body in hook.bodies()] == [["text"], ["text"]]


def test_https_is_checked(lockstep, tmp_path):
    made = Certificates(tmp_path)
    made.sign("server", "IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made["server.pem"], made["server.key"])
    with Webhook(context=context) as hook:
        url = hook.url().replace("http:", "https:")
        trusted = lockstep.run_worker("--notify", url, actions=["exit=0"],
                                      env={"LOCKSTEP_CA_FILE": made["ca.pem"]})
        assert trusted.rc == 0 and len(hook.posts) == 2 and "--notify" not in trusted.err, str(trusted)
        refused = lockstep.run_worker("--notify", url, actions=["exit=0"])
        assert refused.rc == 0 and len(hook.posts) == 2, str(refused)
        assert refused.err.count("--notify: ") == 1 and "certificate" in refused.err, str(refused)


@pytest.mark.parametrize("hook", [{"status": 404}, {"delay": 60}, {"dead": True}])
def test_a_bad_webhook_costs_one_warning_and_five_seconds(lockstep, hook):
    with Webhook(hook.get("status", 200), hook.get("delay", 0)) as server:
        url = "http://127.0.0.1:1/hook" if hook.get("dead") else server.url()
        ended = lockstep.run_worker("--max-restarts", 2, "--notify", url, actions=["exit=3"], timeout=40)
    assert ended.rc == 1, str(ended)
    assert ended.err.count("--notify: ") <= 1 and "/hook" not in ended.err, str(ended)
    if not hook.get("delay"):
        assert ended.err.count("--notify: ") == 1, str(ended)
    assert ended.seconds < 10, str(ended)


def test_a_program_is_told(lockstep):
    told = lockstep.folder / "told"
    program = lockstep.folder / "tell me"
    program.write_text(f'#!/bin/sh\necho "$1 $LOCKSTEP_NOTICE $(cat)" >> {told}\necho to stdout\n')
    program.chmod(0o755)
    ended = lockstep.run_worker("--notify-exec", f"'{program}' 'a  b'", actions=["exit=3"])
    assert ended.rc == 1 and "to stdout" not in ended.out, str(ended)
    lines = told.read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["start", "failure", "end"], lines
    assert all(line.startswith("a  b ") for line in lines)
    assert json.loads(lines[1].split(" ", 4)[4])["event"] == "failed"


@pytest.mark.parametrize("isolation", ["pidns", "guardian", "none"])
def test_a_program_survives_sweeps_and_hears_the_end(lockstep, isolation):
    """Processes that workers left behind are killed between attempts and at the end. The notice program is not."""
    told = lockstep.folder / "told"
    ended = lockstep.run_worker("--isolation", isolation, "--max-restarts", 1, "--notify-exec",
                                f"/bin/sh -c 'sleep 0.3; echo $LOCKSTEP_NOTICE >> {told}'", actions=["exit=3"])
    if "--isolation" in ended.err:
        pytest.skip(ended.err)
    assert ended.rc == 1 and "behind" not in ended.err, str(ended)
    assert told.read_text().split() == ["start", "failure", "restart", "failure", "end"]


@pytest.mark.parametrize("command, why", [("/no/such/program", "No such file"), ("/bin/false", "exit code 1")])
def test_a_program_that_fails_costs_one_warning(lockstep, command, why):
    ended = lockstep.run_worker("--notify-exec", command, actions=["exit=0"])
    assert ended.rc == 0 and ended.err.count(f"--notify-exec {command}: ") == 1 and why in ended.err, str(ended)


def test_only_the_first_node_tells(lockstep):
    job = Job(lockstep)
    with Webhook() as hook:
        runs = [job.node(number, "--notify", hook.url(), actions=["exit=0"]) for number in range(2)]
        assert [run.wait(40).rc for run in runs] == [0, 0]
        assert [body["notice"] for body in hook.bodies()] == ["start", "end"], hook.bodies()


# --- jobs on hosts


def test_events_of_a_job_on_hosts(hosts):
    world = SshWorld(hosts)
    client, one, two = world(2)
    add_cluster(client, (one, two))
    for server in (one, two):
        script(server, PARKED)
    ended = client.run("run", "--on", "gpus", "--sync", "none", "--cwd", ".", "--detach", "job.py")
    assert ended.rc == 0, ended
    job = ended.out.strip()

    def told(*options):
        said = client.run("events", "--json", *options, job)
        return events_in(said.out) if said.rc == 0 else []

    until(lambda: kinds(told()).count("ranks_started") == 2, 90, "both nodes answer")
    assert len({event["node"] for event in told()}) == 2
    go(one, two)
    assert client.run("wait", job).rc == 0
    assert kinds(told()).count("ended") == 2, "the reports have the events"
    assert kinds(told("-f")).count("ended") == 2
    left = world.close()
    assert not left
