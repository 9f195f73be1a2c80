"""`lockstep run --sweep`: rows of values here, and on hosts as one job."""
import csv
import json
import os
import re
import signal

import pytest

import container_image
from harness import BINARY, one_line, read, until
from ssh_hosts import SshWorld

ROW = 'echo "$LOCKSTEP_SWEEP_ROW {x}"'


@pytest.fixture
def world(hosts):
    made = SshWorld(hosts)
    yield made
    left = made.close()
    assert not left, f"left running on hosts: {left}"


def sh(*options, script=ROW):
    return (*options, "--no-python", "sh", "-c", script)


class Gang:
    """A client, and hosts that it knows as `gpus`."""

    def __init__(self, world, count):
        self.client, *self.servers = world(count)
        words = [word for server in self.servers for word in ("--host", f"me@{server.addr}")]
        assert self.client.run("cluster", "add", "gpus", *words).rc == 0

    def sweep(self, *options, script=ROW, run=None):
        return (run or self.client.run)("run", "--on", "gpus", "--sync", "none", "--cwd", ".",
                                        *sh(*options, script=script))

    def jobs(self):
        return json.loads(self.client.run("jobs", "--json").out)["jobs"]

    def rows(self, name="sh"):
        """The rows of the newest job, by number."""
        told = json.loads(self.client.run("why", name, "--json").out)
        return {row["row"]: row for row in told["rows"]}


def test_rows_run_here(lockstep):
    ended = lockstep.run(*sh("--sweep", "x=a,b", "--sweep", "y=0-2", "--at-once", "2",
                             script='echo "{x} {y} $LOCKSTEP_SWEEP_X $LOCKSTEP_SWEEP_ROW {z}"'))
    assert ended.rc == 0, ended
    assert sorted(ended.out.splitlines()) == [f"[row{i}]: {x} {y} {x} {i} {{z}}" for i, (x, y) in enumerate(
        (x, y) for x in "ab" for y in range(3))]


def test_explain_prints_the_rows_and_starts_nothing(lockstep, tmp_path):
    for where in ((), ("--on", "nowhere.example")):
        ended = lockstep.run(*where, "--explain", "--sweep", "lr=1e-3,3e-4", "train.py", "--lr", "{lr}")
        assert ended.rc == 0, ended
        assert ended.out == "   0  lr=1e-3  train.py --lr 1e-3\n   1  lr=3e-4  train.py --lr 3e-4\n"


def test_rows_of_a_file(lockstep, tmp_path):
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([["x", "note"], ["1", 'say "no", or'], ["2", ""], ["3", " "]])
    ended = lockstep.run(*sh("--sweep-file", tmp_path / "rows.csv", "--sweep-only", "0,2",
                             script='echo "$LOCKSTEP_SWEEP_X<$LOCKSTEP_SWEEP_NOTE>"'))
    assert ended.rc == 0, ended
    assert ended.out.splitlines() == ['[row0]: 1<say "no", or>', "[row2]: 3<>"]


@pytest.mark.parametrize("options, words", [
    (("--sweep", "x"), ("--sweep", "'='")),
    (("--sweep", "x=1", "--sweep", "x=2"), ("twice",)),
    (("--sweep", "x=0-99999"), ("10000 rows",)),
    (("--sweep", "x=1", "--sweep-only", "1"), ("no row 1",)),
    (("--sweep", "x=1", "--sweep-file", "rows.csv"), ("leave one of them out",)),
    (("--sweep-file", "/nowhere/rows.csv"), ("/nowhere/rows.csv",)),
    (("--at-once", "2"), ("--at-once needs --sweep",)),
    (("--sweep", "x=1", "--at-once", "0"), ("--at-once",)),
    (("--sweep", "x=1", "--gpus-per-job", "1"), ("this host has 0",)),
    (("--sweep", "x=1", "--nnodes", "2"), ("one node", "--on")),
])
def test_bad_input_starts_nothing(lockstep, options, words, tmp_path):
    one_line(lockstep.run("--explain", *sh(*options)), 2, *words)
    one_line(lockstep.run(*sh(*options, script=f"touch {tmp_path}/ran")), 2, *words)
    assert not (tmp_path / "ran").exists()


def test_a_failed_row_is_told_and_the_others_run(lockstep, tmp_path):
    ended = lockstep.run("--report", tmp_path / "report.json",
                     *sh("--sweep", "x=0-4", script='echo "bad {x}" >&2; test {x} != 3'))
    assert ended.rc == 1, ended
    assert "row 3 (x=3) failed with exit code 1: bad 3" in ended.err, ended
    lines = [json.loads(line) for line in read(tmp_path / "report.json.rows/rows.jsonl").splitlines()]
    assert {line["row"]: line["code"] for line in lines if "code" in line} == {0: 0, 1: 0, 2: 0, 3: 1, 4: 0}
    report = json.loads(read(tmp_path / "report.json"))
    assert (report["code"], report["done"], report["failed"]) == (1, 4, 1)
    assert [(row["values"]["x"], row["state"]) for row in report["rows"]][2:4] == [("2", "done"), ("3", "failed")]
    assert report["rows"][3]["last_line"] == "bad 3"


def test_a_row_has_workers_and_restarts(lockstep, tmp_path):
    ran = tmp_path / "ran"
    ran.mkdir()
    script = f'touch {ran}/$LOCKSTEP_SWEEP_ROW.$RANK; exit $((1 - TORCHELASTIC_RESTART_COUNT))'
    ended = lockstep.run(*sh("--sweep", "x=0-1", "--nproc-per-node", "2", "--max-restarts", "1",
                                "--restart-backoff", "0", script=script))
    assert ended.rc == 0, ended
    assert sorted(os.listdir(ran)) == ["0.0", "0.1", "1.0", "1.1"]


def test_a_warning_about_all_rows_is_printed_once(lockstep):
    """The workers of no row inherit the variable that says so."""
    ended = lockstep.run(*sh("--sweep", "x=0-4", "--nproc-per-node", "2",
                             script='echo "$OMP_NUM_THREADS $(env | grep -c LOCKSTEP_WARNED)"'),
                         env={"OMP_NUM_THREADS": None, "PET_NNODE": "1"})
    assert ended.rc == 0, ended
    assert [ended.err.count(each) for each in ("OMP_NUM_THREADS is not set", "PET_NNODE is not read")] == [1, 1], ended
    assert {line.split("]: ")[1] for line in ended.out.splitlines()} == {"1 0"}, ended


def test_each_host_prints_a_warning_about_all_rows(world):
    gang = Gang(world, 2)
    ended = gang.sweep("--sweep", "x=0-9", "--at-once", "4", "--nproc-per-node", "2", script="true")
    # One host may have run all rows before the other began.
    assert ended.rc == 0 and ended.err.count("OMP_NUM_THREADS is not set") in (1, 2), ended


def test_a_row_sees_its_own_values_alone(lockstep):
    """The variables of an outer sweep, or a table of rows, say nothing about this row."""
    env = {"LOCKSTEP_SWEEP_X": "stale", "LOCKSTEP_SWEEP_ROW": "77", "LOCKSTEP_SWEEP_TABLE": "y\n1\n",
           "LOCKSTEP_JOB_ID": "abcd"}
    ended = lockstep.run(*sh("--sweep", "x=0-1", script='env | grep ^LOCKSTEP_SWEEP_ | sort | tr "\\n" " "; echo'),
                         env=env)
    assert ended.rc == 0, ended
    assert sorted(line.strip() for line in ended.out.splitlines()) == [
        f"[row{x}]: LOCKSTEP_SWEEP_ROW={x} LOCKSTEP_SWEEP_X={x}" for x in range(2)]
    one_line(lockstep.run(*sh("--sweep", "x=0", "--master-port", "29999")), 2, "--master-port")


def test_success_that_is_not_recorded_is_none(lockstep, tmp_path):
    (tmp_path / "report.rows").mkdir()
    (tmp_path / "report.rows/rows.jsonl").write_text("\n" * 8192)
    limited = ("sh", "-c", 'ulimit -f 16; exec "$0" run "$@"', BINARY)
    ended = lockstep.run("--report", tmp_path / "report", *sh("--sweep", "x=0"), program=limited,
                         env={"LOCKSTEP_SWEEP_PART": "1"})
    assert ended.rc == 1 and "rows.jsonl: File too large" in ended.err, ended


@pytest.mark.parametrize("part", [{}, {"LOCKSTEP_SWEEP_PART": "1"}], ids=["here", "on a host"])
@pytest.mark.parametrize("kind", ["link", "fifo", "fifo with a reader"])
def test_what_lies_in_the_way_of_the_record_is_left_alone(lockstep, kind, part, tmp_path):
    """In a shared folder another user may plant a link to a file of ours, or a FIFO that nobody reads."""
    (tmp_path / "ours").write_text("kept")
    (tmp_path / "report.rows").mkdir()
    record = tmp_path / "report.rows/rows.jsonl"
    record.symlink_to(tmp_path / "ours") if kind == "link" else os.mkfifo(record)
    reader = os.open(record, os.O_RDONLY | os.O_NONBLOCK) if "reader" in kind else None
    ended = lockstep.run("--report", tmp_path / "report", *sh("--sweep", "x=0"), env=part)
    if reader is not None:
        os.close(reader)
    assert (tmp_path / "ours").read_text() == "kept"
    if part:
        one_line(ended, 1, str(record))
    else:
        assert ended.rc == 0 and record.is_file() and not record.is_symlink(), ended


@pytest.mark.parametrize("by_link", [False, True], ids=["fifo", "link"])
def test_a_report_into_a_fifo_leaves_the_fifo(lockstep, by_link, tmp_path):
    report = fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    if by_link:
        report = tmp_path / "link"
        report.symlink_to(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    ended = lockstep.run("--report", report, *sh("--sweep", "x=0-1"))
    told = os.read(reader, 1 << 16)
    os.close(reader)
    assert ended.rc == 0 and fifo.is_fifo() and report.is_symlink() == by_link, ended
    assert json.loads(told)["done"] == 2, told
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".rows")]


def test_a_signal_ends_the_wait_for_the_queue(lockstep):
    run = lockstep.start("--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint", "127.0.0.1:3", *sh("--sweep", "x=0"),
                         env={"LOCKSTEP_SWEEP_PART": "1", "LOGLEVEL": "INFO"})
    until(lambda: "waits for" in run.err(), 20, "the runner waits for the queue")
    run.signal(signal.SIGTERM)
    ended = run.wait(10)
    assert ended.rc == 128 + signal.SIGTERM, ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_rows_and_begins_no_other(lockstep, number, tmp_path):
    (tmp_path / "began").touch()
    report = tmp_path / "report.json"
    # A run that has the same name: its rows do not count in the next report.
    assert lockstep.run(*sh("--sweep", "x=0-2", "--report", report, script=":")).rc == 0
    run = lockstep.start(*sh("--sweep", "x=0-9", "--at-once", "2", "--report", report,
                             script=f"echo {{x}} >> {tmp_path}/began; exec sleep 600"))
    until(lambda: len(read(tmp_path / "began").split()) == 2, 20, "two rows run")
    run.signal(number)
    ended = run.wait(30)
    assert ended.rc == 128 + number, ended
    assert sorted(read(tmp_path / "began").split()) == ["0", "1"]
    told = json.loads(read(report))
    assert (told["done"], told["failed"], told["not begun"], told["rows"][0]["tries"]) == (0, 2, 8, 1), told


def test_hosts_share_the_rows_of_one_job(world):
    gang = Gang(world, 2)
    ended = gang.sweep("--sweep", "x=0-19", "--at-once", "4")
    assert ended.rc == 0, ended
    assert {line.split("]: ")[1] for line in ended.out.splitlines()} == {f"{x} {x}" for x in range(20)}
    (job,) = gang.jobs()
    assert job["state"] == "succeeded" and job["why"] == "20 done", job
    rows = gang.rows()
    assert sorted(rows) == list(range(20)) and {row["state"] for row in rows.values()} == {"done"}
    assert {row["tries"] for row in rows.values()} == {1}, "each row ran once"
    # The port of the queue is only for those who know the job's secret.
    assert "token" not in ended.err.lower()
    told = gang.client.run("logs", "sh[x=7]")
    assert told.rc == 0 and told.out.splitlines()[-1].endswith("7 7"), told
    assert len(told.out.splitlines()) == 1, told
    one_line(gang.client.run("logs", "sh", "--rank", "7"), 2, "no ranks", "[7]'")
    one_line(gang.client.run("logs", "sh[20]"), 2, "no row 20")


def test_exec_enters_the_container_of_one_row(world):
    """Two rows run in containers of one host. A row that does not run is named, and nothing is entered."""
    gang = Gang(world, 1)
    container_image.make(gang.servers[0].homes["me"] / "image")
    run = gang.sweep("--sweep", "x=a,b", "--at-once", "2", "--container", "image",
                     script="ls -l /proc/self/ns/mnt; sleep 1000", run=gang.client.start)
    until(lambda: run.out().count("mnt:[") == 2 or run.process.poll() is not None, 60, "both rows run")

    (job,) = gang.jobs()
    of_row = {int(line[line.index("[row") + 4]): line.split()[-1] for line in run.out().splitlines()}
    assert of_row[0] != of_row[1], run.out()
    several = gang.client.run("exec", job["id"], "--", "true")
    assert several.rc == 255 and "several containers here: pid-" in several.err and "'JOB[12]'" in several.err, several
    for word in (f"{job['id']}[1]", "sh[x=b]"):
        entered = gang.client.run("exec", word, "--", "sh", "-c", "cat /opt/marker; ls -l /proc/self/ns/mnt")
        marker, space = entered.out.splitlines()
        assert marker == "in the image" and space.split()[-1] == of_row[1], entered
    one_line(gang.client.run("exec", "sh[2]", "--", "true"), 2, "no row 2")
    one_line(gang.client.run("exec", "--nodes", "0", "sh[1]", "--", "true"), 2, "a row runs on one node")
    one_line(gang.client.run("exec", "ash[1]", "--", "true"), 255, "no job 'ash'")
    assert gang.client.run("cancel", job["id"]).rc == 0
    run.wait(30)
    one_line(gang.client.run("exec", "sh[1]", "--", "true"), 255, f"row 1 of job {job['id']} is ",
             f"lockstep logs '{job['id']}[1]'")


def test_failed_rows_are_explained_and_run_again(world):
    gang = Gang(world, 2)
    for server in gang.servers:
        (server.homes["me"] / "bad").touch()
    ended = gang.sweep("--sweep", "x=0-9", "--at-once", "4",
                       script='echo "step {x}: loss 0.5"; echo saved; '
                              'test ! -e ~/bad || test $(({x} % 3)) = 0 || { echo "no luck" >&2; exit 7; }')
    assert ended.rc == 1, ended
    (job,) = gang.jobs()
    assert (job["state"], job["code"], job["why"]) == ("failed", 1, "4 done, 6 failed"), job
    why = gang.client.run("why", "sh")
    assert "  6 rows: no luck\n" in why.out and "x=1" in why.out, why
    assert {(row["step"], row["step_line"]) for row in gang.rows().values()} == {
        (x, f"step {x}: loss 0.5") for x in range(10)}
    for server in gang.servers:
        (server.homes["me"] / "bad").unlink()
    resumed = gang.client.run("resume", job["id"])
    assert resumed.rc == 0, resumed
    waited = gang.client.run("wait", job["id"])
    assert waited.rc == 0, waited
    rows = gang.rows()
    assert {row["state"] for row in rows.values()} == {"done"}, rows
    assert {number for number, row in rows.items() if row["tries"] == 2} == {1, 2, 4, 5, 7, 8}
    (job,) = gang.jobs()
    assert (job["state"], job["why"]) == ("succeeded", "10 done"), job
    one_line(gang.client.run("resume", job["id"]), 2, "all rows", "done")


def test_one_row_is_explained(world):
    """A failed row by its report on the host that ran it, a running row by what its ranks do."""
    gang = Gang(world, 2)
    run = gang.sweep("--sweep", "x=a,b,c", "--at-once", "2",
                     script='echo "step 4: loss 0.5"; test {x} = c || exec sleep 1000; echo "no luck" >&2; exit 7',
                     run=gang.client.start)
    until(lambda: gang.jobs() and gang.jobs()[0]["why"] == "0 done, 2 running, 1 queued", 60, "two rows run")
    (job,) = gang.jobs()
    rows = gang.rows()
    said = gang.client.run("why", "sh[x=b]")
    assert said.rc == 0 and said.out.startswith(f"row 1 of job {job['id']} (sh) on gpus: running\n  x=b\n"), said
    assert f"  on {rows[1]['host']}\n" in said.out, said
    told = json.loads(gang.client.run("why", f"{job['id']}[1]", "--json").out)
    assert (told["row"], told["state"], told["values"], len(told["looks"])) == (1, "running", {"x": "b"}, 1), told
    said = gang.client.run("why", "sh[2]")
    assert said.rc == 0 and said.out.endswith(f": queued\n  x=c\nlockstep why {job['id']} shows the other rows\n"), said
    # Row 2 takes the slot of row 0.
    entered = gang.client.run("exec", "sh[0]", "--", "sh", "-c",
                              "for p in /proc/[0-9]*; do grep -qxz LOCKSTEP_SWEEP_ROW=0 $p/environ && "
                              "grep -qx sleep $p/comm && kill ${p#/proc/}; done 2>/dev/null; true")
    assert entered.rc == 0, entered
    until(lambda: gang.rows()[2]["state"] == "failed", 60, "row 2 has failed")
    said = gang.client.run("why", "sh[2]")
    assert re.fullmatch(rf"row 2 of job {job['id']} \(sh\) on gpus: failed \(1\)\n  x=c\n"
                        rf"  on {rows[0]['host']}, \d+\.\d s\n  step 4: step 4: loss 0.5\nreason: no luck\n"
                        r"root cause: rank 0 on \S+, exit code 7\n  no luck\n(  log on .*\n)?"
                        rf"lockstep logs '{job['id']}\[2\]' shows the output\n", said.out), said
    told = json.loads(gang.client.run("why", "sh[x=c]", "--json").out)
    assert (told["code"], told["tries"], told["last_line"], told["step"]) == (1, 1, "no luck", 4), told
    assert told["root_cause"]["exit_code"] == 7 and told["root_cause"]["message"] == "no luck", told
    one_line(gang.client.run("why", "sh[999]"), 2, "no row 999", "the last one is 2")
    one_line(gang.client.run("why", "sh[x=3]"), 2, "no row has x=3")
    one_line(gang.client.run("why", "other[1]"), 2, "other")
    one_line(gang.client.run("why", "sh[2]", "--threads"), 2, "--threads", "not a row")
    assert gang.client.run("cancel", job["id"]).rc == 0
    run.wait(30)


def test_a_broken_host_does_not_empty_the_queue(world):
    """One slot on each host. After three rows that failed at once, the host tries one now and then, until it works."""
    gang = Gang(world, 2)
    bad = gang.servers[1].homes["me"] / "bad"
    bad.touch()
    run = gang.sweep("--sweep", "x=0-89", "--at-once", "2",
                     script="test ! -e ~/bad || exit 1; test {x} -lt 45 || sleep 0.4",
                     run=gang.client.start)
    until(lambda: "have all failed at once" in run.err(), 60, "the host is taken for broken")
    bad.unlink()
    ended = run.wait(120)
    assert ended.rc == 1, ended
    rows = gang.rows().values()
    failed = [row for row in rows if row["state"] == "failed"]
    assert 3 <= len(failed) <= 40 and {row["host"] for row in failed} == {"gpus-1"}, failed
    assert "gpus-1" in {row["host"] for row in rows if row["state"] == "done"}, rows
    assert gang.jobs()[0]["why"] == f"{90 - len(failed)} done, {len(failed)} failed"


def test_the_client_may_die_at_any_row(world):
    gang = Gang(world, 2)
    run = gang.sweep("--sweep", "x=0-39", "--at-once", "2", script="echo {x}; sleep 0.1", run=gang.client.start)
    until(lambda: len(run.out().splitlines()) > 5, 30, "some rows are done")
    run.signal(signal.SIGKILL)
    run.wait(10)
    (job,) = gang.jobs()
    waited = gang.client.run("wait", job["id"])
    assert waited.rc == 0, waited
    rows = gang.rows()
    assert {row["state"] for row in rows.values()} == {"done"} and {row["tries"] for row in rows.values()} == {1}


def test_cancel_ends_all_rows(world):
    gang = Gang(world, 2)
    gang.sweep("--detach", "--sweep", "x=0-9", "--at-once", "2", script="exec sleep 600")
    until(lambda: gang.jobs()[0]["why"] == "0 done, 2 running, 8 queued", 20, "two rows run")
    (job,) = gang.jobs()
    assert gang.client.run("cancel", job["id"]).rc == 0
    (job,) = gang.jobs()
    assert job["state"] == "canceled" and job["why"] == "0 done, 2 failed, 8 not begun", job


def test_a_lost_host_takes_only_its_own_row_along(world):
    gang = Gang(world, 2)
    gang.sweep("--detach", "--sweep", "x=0-9", "--at-once", "2", script="until test -e ~/go; do sleep 0.1; done")
    zero, one = gang.servers
    until(lambda: gang.jobs()[0]["why"] == "0 done, 2 running, 8 queued", 20, "two rows run")
    job = gang.jobs()[0]["id"]
    (lost,) = [row for row, told in gang.rows().items() if told.get("host") == "gpus-1"]
    one.switch_off()
    for server in gang.servers:
        (server.homes["me"] / "go").touch()
    waited = gang.client.run("wait", job, timeout=150)
    assert waited.rc == 1, waited
    one.switch_on()
    assert gang.jobs()[0]["why"] == "9 done, 1 unknown", gang.jobs()
    # The client's kernel may still hold the address for unreachable.
    until(lambda: gang.client.run("exec", f"me@{one.addr}", "--", "true").rc == 0, 30, "the host answers")
    for words in (("resume", job), ("wait", job)):
        ended = gang.client.run(*words, timeout=60)
        assert ended.rc == 0, ended
    rows = gang.rows()
    assert {row["state"] for row in rows.values()} == {"done"}
    assert {number for number, row in rows.items() if row["tries"] > 1} == {lost}


@pytest.mark.parametrize("rows", [("--sweep", "x=0-1"), ("--sweep-file", "rows.csv")])
def test_outputs_come_back_from_all_hosts(world, rows):
    """A row ends once both run: each host has one."""
    gang = Gang(world, 2)
    project = gang.client.folder / "proj"
    project.mkdir()
    (project / "rows.csv").write_text("x\n0\n1\n")
    run = gang.client.start("run", "--on", "gpus", "--back", "out", "--at-once", "2", *sh(
        *rows, script="mkdir -p out; echo {x} > out/{x}; until test -e ~/go; do sleep 0.1; done"), cwd=project)
    until(lambda: gang.jobs() and gang.jobs()[0]["why"] == "0 done, 2 running", 30, "both rows run")
    for server in gang.servers:
        (server.homes["me"] / "go").touch()
    ended = run.wait(60)
    assert ended.rc == 0 and all(f"gpus-{node}: out: 1 file, 2 B brought back" in ended.err for node in (0, 1)), ended
    assert [read(project / "out" / x) for x in "01"] == ["0\n", "1\n"]
