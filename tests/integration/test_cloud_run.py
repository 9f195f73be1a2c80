"""`lockstep run --on-demand` from the first question to the bill: fakes of the providers, and behind them real machines
(network namespaces that Debian's cloud-init has set up, with real sshd); only GPUs are stand-ins."""
import json
import os
import pathlib
import re
import signal
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cloud"))

import container_image  # noqa: E402
from harness import SCRIPTS, until  # noqa: E402
from rented_jobs import LASTING, project_in, run_ids  # noqa: E402
from rented_world import CloudWorld  # noqa: E402

TRAIN = """import os, sys
os.makedirs("out", exist_ok=True)
rank = os.environ["RANK"]
with open("out/result", "w") as file:
    file.write(f"{os.environ['WORLD_SIZE']} ranks, {sys.argv[1:]}\\n")
print("rank", rank, "of", os.environ["WORLD_SIZE"], "attempt", os.environ.get("LOCKSTEP_ATTEMPT"), flush=True)
sys.exit(int(os.environ.get("END_WITH", "0")))
"""


@pytest.fixture
def world(hosts, tmp_path):
    with CloudWorld(hosts, tmp_path) as made:
        yield made
        assert made.fake.failures == [] and made.fake.world.errors == []


@pytest.fixture
def project(tmp_path):
    side = (SCRIPTS / "kineto_side.py").read_text()
    return project_in(tmp_path, train=TRAIN, lasting=LASTING, side=side)


def words(world, *more, provider="aws", gpus="L4:1"):
    return ["run", "--on-demand", gpus, "--provider", provider, "-y", "--allow-from", f"{world.client.addr}/32", *more]


def ends_ms(world, name):
    return json.loads(world.lockstep("cluster", "show", name, "--json").out)["ends_ms"]


def test_two_machines_for_one_job_and_its_output_comes_back(world, project):
    ended = world.lockstep(*words(world, "--nodes", "2", "--back", "out", "train.py", "--lr", "1"), cwd=project,
                           timeout=180)
    assert ended.rc == 0, ended
    assert "rank 0 of 2" in ended.out and "rank 1 of 2" in ended.out, ended
    assert (project / "out/result").read_text() == "2 ranks, ['--lr', '1']\n"
    assert "it cost" in ended.err, ended
    assert len(world.machines.all) == 2 and world.live() == []
    for machine in world.machines.all:
        assert machine.sshd.err().count("Accepted publickey") == 1, "the first contact's connection serves the job"
    world.bill_is_the_meters()
    assert world.lockstep("cluster", "list").out.count("\n") == 1


def test_the_jobs_code_is_ours_and_its_machine_is_given_back(world, project):
    ended = world.lockstep(*words(world, "--env", "END_WITH=7", "train.py"), cwd=project, timeout=180)
    assert ended.rc == 1 and "exitcode  : 7" in ended.err and world.live() == [], ended


def states(world):
    """Returns the states that `lockstep jobs` shows, newest first."""
    return [job["state"] for job in json.loads(world.lockstep("jobs", "--json").out)["jobs"]]


def test_spot_is_taken_in_the_middle_and_the_job_goes_on_from_its_checkpoint(world, project):
    run = world.start(*words(world, "--spot", "--back", "out", "--resume-arg=--resume", "--env", "LAST=2",
                             "lasting.py"), cwd=project)
    until(lambda: "began at step 0" in run.out(), 120, f"it trains: {run.out()} {run.err()}")
    (first,) = world.live()
    assert states(world) == ["running"]
    (job,) = json.loads(world.lockstep("jobs", "--json").out)["jobs"]
    waits, logs = world.start("wait", "--json", job["id"]), world.start("logs", "-f", job["id"])
    until(lambda: "began at step 0" in logs.out(), 30, "another terminal shows it")

    def course():
        return json.loads(world.lockstep("why", "--json", job["id"]).out).get("course", {})
    world.fake.world.notify(first, 60)
    until(lambda: states(world) == ["restarting"], 60, "others are being found")
    (loss,) = until(lambda: [loss for loss in course().get("losses", []) if loss["at_ms"] > 0], 60, "a lost machine")
    assert loss["attempt"] == 1 and loss["machine"].endswith("-0"), loss
    again = "began at step 1 args ['--resume'] attempt 2"
    until(lambda: again in logs.out(), 120, f"the id is that of all attempts: {logs.out()} {logs.err()}")
    assert states(world) == ["running"]
    machine = world.machines.all[1]
    machine.path(f"/home/{machine.user}/go").touch()
    ended = run.wait(180)
    assert ended.rc == 0, ended
    waited, shown = waits.wait(30), logs.wait(30)
    assert waited.rc == 0 and json.loads(waited.out)["state"] == "succeeded", waited
    assert shown.rc == 0, shown
    assert states(world) == ["succeeded"], "one job, although its first attempt has ended at the notice"
    assert "saved 1" in ended.out and again in ended.out, ended
    assert len(run_ids(ended.out)) == 1, "one run id over both attempts"
    assert len(world.machines.all) == 2 and world.live() == [], ended
    first, second = world.fake.world.machines.values()
    assert first.zone != second.zone, "the zone that took it is not asked again"
    world.bill_is_the_meters()


def test_ctrl_c_ends_the_job_and_gives_back(world, project):
    run = world.start(*words(world, "lasting.py"), cwd=project)
    until(lambda: "began at step 0" in run.out(), 120, "it trains")
    (machine,) = world.machines.all
    (follower,) = machine.spoken("host-job", "follow")
    os.kill(follower, signal.SIGKILL)  # as where its memory runs out: the job goes on, and so does its machine
    until(lambda: machine.spoken("host-job", "follow") not in ([], [follower]) or run.process.poll() is not None, 30,
          "another follower runs there")
    assert run.process.poll() is None and len(world.live()) == 1, run.err()
    run.process.send_signal(2)
    ended = run.wait(120)
    assert ended.rc != 0 and "saved 1" in ended.out and world.live() == [], ended


def test_a_job_in_a_container_restarts_there_and_nothing_of_it_is_left(world, project):
    """The image is a folder of the project."""
    container_image.make(project / "image")
    (project / "job.sh").write_text("""cat /opt/marker
[ -e began ] && echo again && exec sleep 1000
touch began
exit 3
""")
    run = world.start(*words(world, "--container", "image", "--max-restarts", "1", "--no-python", "/bin/sh", "job.sh"),
                      cwd=project)
    until(lambda: run.out().endswith("again\n") or run.process.poll() is not None, 120, "it runs again")
    assert run.out() == 2 * "in the image\n" + "again\n", (run.out(), run.err())
    (job,) = json.loads(world.lockstep("jobs", "--json").out)["jobs"]
    assert world.lockstep("exec", job["id"], "--", "cat", "/opt/marker").out == "in the image\n"
    (machine,) = world.machines.all
    (supervisor,) = machine.spoken("host-job", "start")
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not machine.spoken("sleep", "1000"), 30, "nothing of the job is left on the machine")
    ended = run.wait(60)
    assert ended.rc != 0 and world.live() == [], ended


def test_a_rented_job_is_profiled(world, project):
    run = world.lockstep(*words(world, "--nodes", "2", "--detach", "--name", "left", "--profile", "side.py", "good"),
                         cwd=project, timeout=180)
    assert run.rc == 0, run
    output = world.client.folder / "traces"
    ended = world.lockstep("profile", "-o", output, "--steps", "1", run.out.strip())
    assert (ended.rc, ended.out) == (0, f"{output}/profile.json: ranks 0-1\n"), ended
    events = json.loads((output / "profile.json").read_text())["traceEvents"]
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == ["rank 0: python", "rank 1: python"]
    assert not [path for machine in world.machines.all for path in machine.path("/tmp").glob("lockstep-profile-*/p*")]
    assert world.lockstep("down", "left", "--force").rc == 0 and world.live() == []


def test_a_job_that_is_left_keeps_its_machine_and_down_asks_first(world, project):
    left = world.lockstep(*words(world, "--detach", "--name", "left", "--autostop", "never", "lasting.py"), cwd=project)
    assert left.rc == 0 and len(world.live()) == 1, left
    assert "'left' goes on: 0.82 USD an hour; it ends with its job, which is followed from here, or 2" in left.err, left
    refused = world.lockstep("down", "left")
    assert refused.rc == 2 and "may still run on 'left'" in refused.err and len(world.live()) == 1, refused
    assert left.out.strip() in refused.err, "the job is named"
    assert world.lockstep("down", "left", "--force").rc == 0 and world.live() == []


def test_down_asks_the_machines_whether_a_job_still_runs(world, project):
    """This machine is not told the end of a detached job, and `lockstep jobs` may not have asked."""
    up = world.lockstep("up", "left", "--gpus", "L4:1", "--provider", "aws", "-y", "--autostop", "never",
                        "--allow-from", f"{world.client.addr}/32", timeout=180)
    assert up.rc == 0, up
    first = world.lockstep("run", "--on", "left", "--detach", "lasting.py", cwd=project)
    assert first.rc == 0, first
    (machine,) = world.machines.all
    home = machine.path(f"/home/{machine.user}")

    def ended(run):
        state = home / f".local/state/lockstep/jobs/{run.out.strip()}/state.json"
        return state.exists() and json.loads(state.read_text())["stage"] == "ended"
    (home / "go").touch()
    until(lambda: ended(first), 60, "the first job ends")
    (home / "go").unlink()
    second = world.lockstep("run", "--on", "left", "--detach", "lasting.py", cwd=project)
    assert second.rc == 0, second
    refused = world.lockstep("down", "left")
    assert refused.rc == 2 and f"job {second.out.strip()} may still run on 'left'" in refused.err, refused
    (home / "go").touch()
    until(lambda: ended(second), 60, "the second job ends")
    given_back = world.lockstep("down", "left")
    assert given_back.rc == 0 and world.live() == [], given_back


def test_a_machine_is_held_to_its_providers_clock_and_the_users_is_told_of(world):
    """The provider is half a minute ahead of both machines: that their clocks agree proves nothing."""
    world.fake.world.advance(skew=30)
    run = world.start("up", "lab", "--gpus", "L4:1", "--provider", "aws", "-y",
                      "--allow-from", f"{world.client.addr}/32")
    until(lambda: "is unusable" in run.err() or run.process.poll() is not None, 120, "the machine is judged")
    run.process.send_signal(signal.SIGINT)
    ended = run.wait(60)
    assert re.search(r"this machine's clock is (29|30) s behind its provider's: set the clock", ended.err), ended
    assert re.search(r"the clock is (29|30|31) s behind the provider's", ended.err), ended
    assert world.live() == [], ended


def test_keep_promises_no_more_than_the_provider_gives(world):
    """Google ends a machine after its maxRunDuration, and setScheduling takes stopped machines only."""
    began = time.time()
    ended = world.lockstep("up", "lab", "--gpus", "L4:1", "--provider", "gcp", "-y", "--lifetime", "62m",
                           "--allow-from", f"{world.client.addr}/32", timeout=180)
    assert ended.rc == 0 and "keep: cannot extend this end: Google Compute itself terminates" in ended.err, ended
    (machine,) = world.live()
    kept = world.lockstep("keep", "lab", "5h")
    assert kept.rc == 0 and "the provider ends the machine then" in kept.out, kept
    ends = ends_ms(world, "lab") / 1000
    assert began + 3600 < ends <= machine.extra["ends"], (ends, machine.extra["ends"])
    assert world.lockstep("keep", "lab", "30m").out.count("\n") == 1
    assert world.lockstep("down", "lab").rc == 0 and world.live() == []


def test_a_cluster_is_rented_at_its_use_and_again_when_it_has_ended(world, project):
    added = world.lockstep("cluster", "add", "big", "--on-demand", "L4:1", "--provider", "aws", "--max-price", "3",
                           "--autostop", "60s", "--allow-from", f"{world.client.addr}/32")
    assert added.rc == 0 and world.live() == [], added
    first = world.lockstep("exec", "big", "--", "hostname")
    assert first.rc == 0 and len(world.live()) == 1, first
    assert "USD/h" in world.lockstep("cluster", "list").out
    ends = [ends_ms(world, "big")]
    for time in ("2h", "40h"):  # a day was agreed on: keep gives more, never less
        assert world.lockstep("keep", "big", time).rc == 0
        ends.append(ends_ms(world, "big"))
    assert ends[1] == ends[0] and ends[2] > ends[0] + 15 * 3_600_000, ends
    again = world.lockstep("exec", "big", "--", "hostname")
    assert again.out == first.out and len(world.machines.all) == 1, again
    world.fake.world.end(world.live()[0], "by hand")
    used = world.client.root_home / ".local/state/lockstep/rentals/big/used"
    used.unlink()  # as if it had been idle for long
    other = world.lockstep("exec", "big", "--", "hostname")
    assert other.rc == 0 and "have ended" in other.err and len(world.machines.all) == 2, other
    refused = world.lockstep("cluster", "remove", "big")
    assert refused.rc == 2 and "lockstep down big" in refused.err, refused
    assert world.lockstep("down", "big").rc == 0 and world.live() == []
    assert "rented at its use" in world.lockstep("cluster", "list").out
    assert world.lockstep("cluster", "remove", "big").rc == 0


def test_keep_says_which_machine_it_waits_for(world):
    ended = world.lockstep("up", "lab", "--gpus", "L4:1", "--provider", "aws", "-y", "--allow-from",
                           f"{world.client.addr}/32", timeout=180)
    assert ended.rc == 0, ended
    (machine,) = world.machines.all
    world.client.forget_masters()
    machine.cut()
    keep = world.start("keep", "lab", "5h")
    until(lambda: "waiting for lab-0 for 5 s: logging in; Ctrl-C ends this command" in keep.err(), 30, "it is told")
    machine.heal()
    ended = keep.wait(60)
    assert ended.rc == 0, ended
    assert world.lockstep("down", "lab").rc == 0 and world.live() == []
