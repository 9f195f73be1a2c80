"""`lockstep run --on-demand --sweep`: rented machines work through the rows and are terminated."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from harness import one_line, until  # noqa: E402
from rented_jobs import project_in  # noqa: E402
from rented_world import CloudWorld  # noqa: E402

TRAIN = """import os, sys
folder = "out/" + os.environ["LOCKSTEP_SWEEP_ROW"]
os.makedirs(folder)
with open(folder + "/result", "w") as file:
    file.write(" ".join(sys.argv[1:]))
"""


@pytest.fixture
def world(hosts, tmp_path):
    with CloudWorld(hosts, tmp_path) as made:
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


def words(world, *more):
    return ["run", "--on-demand", "L4:1", "--provider", "aws", "-y", "--allow-from", f"{world.client.addr}/32", *more]


def test_machines_share_the_rows_and_all_outputs_come_back(world, tmp_path):
    project = project_in(tmp_path, train=TRAIN)
    ended = world.lockstep(*words(world, "--nodes", "2", "--back", "out", "--sweep", "lr=1e-3,3e-4", "--sweep",
                                  "seed=0-2", "--at-once", "2", "train.py", "{lr}", "{seed}"), cwd=project, timeout=180)
    assert ended.rc == 0, ended
    results = {path.parent.name: path.read_text() for path in project.glob("out/*/result")}
    assert results == {str(i): f"{lr} {seed}" for i, (lr, seed) in enumerate(
        (lr, seed) for lr in ("1e-3", "3e-4") for seed in range(3))}, ended
    (job,) = json.loads(world.lockstep("jobs", "--json").out)["jobs"]
    assert job["state"] == "succeeded", job
    assert world.live() == []
    world.bill_is_the_meters()


# A row writes its result, waits for the file `go` in its home, and then lives for the seconds in it.
LONG = """import os, sys, time
folder, go = "out/" + os.environ["LOCKSTEP_SWEEP_ROW"], os.path.expanduser("~/go")
os.makedirs(folder)
with open(folder + "/result", "w") as file:
    file.write(sys.argv[1])
while not os.path.exists(go):
    time.sleep(0.05)
seconds, why = open(go).read().split(",")
time.sleep(float(seconds))
sys.exit(why or 0)
"""


def put_at_once(machine, inside, text):
    """Puts a file for a reader that looks at any moment."""
    machine.put(inside + ".new", text)
    machine.path(inside + ".new").replace(machine.path(inside))


def test_a_machine_without_rows_stays_until_the_last_row_of_all_has_ended(world, tmp_path):
    project = project_in(tmp_path, train=LONG)
    run = world.start(*words(world, "--nodes", "2", "--back", "out", "--autostop", "60s", "--sweep", "seed=4-5",
                             "train.py", "{seed}"), cwd=project)

    def parts(name, text):
        """Returns the machines with this text in this file of the job."""
        return [machine for machine in world.machines.all for file in
                machine.path(f"/home/{machine.user}/.local/state/lockstep/jobs").glob(f"*/{name}")
                if text in file.read_text()]

    until(lambda: len(parts("report.json.rows/rows.jsonl", "began_ms")) == 2, 150, "a row runs on each machine")
    (first,), (guest,) = parts("job.json", "--node-rank=0"), parts("job.json", "--node-rank=1")
    lease = json.loads(guest.path("/run/lockstep/lease.json").read_text())
    lease["terms"]["idle_s"] = 3  # the least of --autostop is a minute
    put_at_once(guest, "/run/lockstep/lease.json", json.dumps(lease))
    put_at_once(guest, f"/home/{guest.user}/go", "0,")
    until(lambda: parts("report.json.rows/rows.jsonl", "ended_ms") == [guest], 60, "its only row has ended")
    put_at_once(first, f"/home/{first.user}/go", "12,no luck")
    ended = run.wait(180)
    assert ended.rc == 1 and "2 rows begin again" not in ended.err, ended
    assert {path.read_text() for path in project.glob("out/*/result")} == {"4", "5"}, ended
    assert len(world.machines.all) == 2 and world.live() == [], ended
    explain_after_the_end(world)


def explain_after_the_end(world):
    """Checks that the rows are still told, although the machines that ran them are gone."""
    (job,) = json.loads(world.lockstep("jobs", "--json").out)["jobs"]
    assert job["state"] == "failed" and job["why"] == "1 done, 1 failed", job
    why = json.loads(world.lockstep("why", "--json", job["id"]).out)
    assert {row["state"] for row in why["rows"]} == {"done", "failed"}, why
    (failed,) = [row for row in why["rows"] if row["state"] == "failed"]
    assert failed["code"] == 1 and failed["values"]["seed"] in ("4", "5"), why
    told = world.lockstep("why", job["id"])
    assert told.rc == 0 and f"1 row: {failed['last_line']}" in told.out, told
    told = world.lockstep("why", f"{job['id']}[{failed['row']}]")
    assert told.rc == 0 and told.err == "" and f"reason: {failed['last_line']}" in told.out, told
    assert f"--sweep-only {failed['row']} " in told.out and "lockstep logs" not in told.out, told
    one_line(world.lockstep("resume", job["id"]), 2, f"--sweep-only {failed['row']} ")


def test_the_rows_of_a_file_go_with_the_job(world, tmp_path):
    project = project_in(tmp_path, train=TRAIN)
    rows = tmp_path / "rows.csv"
    rows.write_text('lr,words\n1e-3,"a b"\n3e-4,"c ""d"" {e}"\n')
    ended = world.lockstep(*words(world, "--nodes", "2", "--back", "out", "--back", "train.py", "--sweep-file", rows,
                                  "--gpus-per-job", "0", "train.py", "{lr}", "{words}"), cwd=project, timeout=180)
    assert ended.rc == 0, ended
    assert ended.err.count("train.py: 0 files, ") == 2, "both machines were asked, whichever ran the rows"
    assert {path.parent.name: path.read_text() for path in project.glob("out/*/result")} == {
        "0": "1e-3 a b", "1": '3e-4 c "d" {e}'}, ended
    assert world.live() == []


def test_what_cannot_work_rents_nothing(world, tmp_path):
    project = project_in(tmp_path, train=TRAIN)
    for options, says in ((("--sweep-file", "rows.csv"), "rows.csv"), (("--sweep", "x"), "'='"),
                          (("--sweep", "x=1", "--nnodes", "1"), "one node")):
        one_line(world.lockstep(*words(world, *options, "train.py"), cwd=project), 2, says)
    assert world.machines.all == []
