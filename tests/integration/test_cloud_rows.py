"""`lockstep run --on-demand --sweep`: rented machines work through the rows and are terminated."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

from harness import one_line  # noqa: E402
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
