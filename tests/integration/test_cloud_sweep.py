"""Every on-demand command compares our machines in the providers' lists with the journal. It terminates unwanted
machines, says what they cost, and leaves those of other installations alone. The command's own result neither waits for
this nor changes."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import time

import pytest

from cloud_worlds import (cloud, fake_cloud, fault, laptop, laptops, machines, meter, server, until,  # noqa: F401
                          without_keys)

import cloud_keys  # noqa: E402  (cloud_worlds knows its folder)

WISH = ("--gpus", "L4:1", "--provider", "aws", "-y")
ENDED = "was ours and no longer wanted: ended"
# Commands, and their exit codes when nothing is rented.
COMMANDS = [(("offers", "L4:1"), 0), (("offers", "L4:1", "--json"), 0), (("offers", "Z9:1"), 2), (("cost",), 0),
            (("cost", "--json"), 0), (("cloud", "check"), None), (("cluster", "list"), 0),
            (("cluster", "list", "--json"), 0), (("keep", "gpus", "1h"), 1), (("down", "gpus"), 0),
            (("up", "other", *WISH, "--print"), 0), (("down", "--orphans"), 0)]


def rented_and_killed(laptop, name="gpus", provider="aws"):  # noqa: F811
    args = {"aws": WISH, "runpod": ("--gpus", "L4:1", "--provider", "runpod", "-y"),
            "gcp": ("--gpus", "L4:1", "--provider", "gcp", "-y"),
            "lambda": ("--gpus", "A10:1", "--provider", "lambda", "-y", "--i-will-watch")}[provider]
    run = laptop.start("up", name, *args)
    until(lambda: "waits for sshd" in run.err() or run.process.poll() is not None, 60, "it waits for sshd")
    assert "waits for sshd" in run.err(), run.err()
    with contextlib.suppress(ProcessLookupError):
        run.signal(signal.SIGKILL)
    run.wait()


def forget(laptop, cluster):  # noqa: F811
    """The journal is restored from a copy in which that was not rented yet."""
    with journal(laptop) as known, known:
        known.execute("DELETE FROM records WHERE kind = 'rental' AND json LIKE ?", (f'%"cluster":"{cluster}"%',))


def journal(laptop):  # noqa: F811
    return contextlib.closing(sqlite3.connect(laptop.home / ".local/state/lockstep/rentals.db", timeout=10))


def owner_of(laptop):  # noqa: F811
    with journal(laptop) as known:
        ((owner,),) = known.execute("SELECT json FROM records WHERE kind = 'owner'").fetchall()
    return owner


def a_minute_later(laptop):  # noqa: F811
    """Moves the last clean sweep 61 s into the past."""
    for path in laptop.home.glob(".cache/lockstep/clean-sweep.kept"):
        at, _, rest = path.read_text(encoding="utf-8").partition("\n")
        path.write_text(f"{int(at) - 61_000}\n{rest}", encoding="utf-8")


def leftover(laptop, rented_before=False):  # noqa: F811
    """A machine of ours of which the journal knows nothing, two hours old. rented_before: "gpus", now terminated."""
    if rented_before:
        rented_and_killed(laptop)
        assert laptop.down("gpus").rc == 0
        a_minute_later(laptop)
    assert laptop.run("cost", env=without_keys()).rc == 0  # an installation has a name from its first command on
    world = laptop.cloud.world
    tags = {"lockstep:intent": "lost0intent0of0ours0", "lockstep:owner": owner_of(laptop), "lockstep:cluster": "lost"}
    (ident,) = fake_cloud.control(laptop.cloud.url, "foreign", {"face": "ec2", "zone": "us-east-1a",
                                                                "type": "g6.xlarge", "tags": tags})["ids"]
    with world.lock:
        world.machines[ident].launched -= 7200
    return world.machines[ident].view(world.now())


def age(laptop):  # noqa: F811
    """The rental is two minutes older: nobody waits here for what a provider may list late."""
    with journal(laptop) as known, known:
        for ident, text in known.execute("SELECT id, json FROM records WHERE kind = 'rental'").fetchall():
            rental = json.loads(text)
            for attempt in rental["attempts"]:
                for name in ("asked_ms", "answered_ms"):
                    attempt[name] = max(0, attempt.get(name, 0) - 120_000)
            known.execute("UPDATE records SET json = ? WHERE id = ?", (json.dumps(rental), ident))


def asked(cloud):  # noqa: F811
    """How often machines of anybody were listed at AWS."""
    return sum(each.get("action") == "DescribeInstances" for each in cloud.records)


@pytest.mark.parametrize("words, code", COMMANDS, ids=lambda each: " ".join(each) if isinstance(each, tuple) else "")
def test_every_command_ends_what_nobody_wants(cloud, laptop, words, code):  # noqa: F811
    left = leftover(laptop, rented_before=words[0] in ("cluster", "down"))
    first = laptop.run(*words, timeout=60)
    if words == ("offers", "Z9:1"):  # bad input asks nobody
        assert first.rc == code and meter(cloud)["live"] == [left["id"]], first
        return
    assert f"{left['id']} in {left['zone']} {ENDED}; it ran for 2 h" in first.err, first
    assert ", about 1.6" in first.err, first  # 2 h of a g6.xlarge
    until(lambda: meter(cloud)["live"] == [], 20, "it is ended")
    again = laptop.run(*words, timeout=60)
    assert ENDED not in again.err, again
    assert again.rc == first.rc and code in (None, first.rc), (first, again)
    if "--json" in words:
        told = [json.loads(each.out) for each in (first, again)]
        if "cost" in words:
            assert [each["id"] for each in told[0].pop("swept")["ended"]] == [left["id"]]
            assert told[1].pop("swept") == {"ended": [], "foreign": [], "closed": [], "not_ended": [],
                                            "unheard": []}
            assert told[0] == told[1]
    elif words[0] not in ("offers", "down", "up"):  # ages of prices are in those
        assert first.out == again.out


def test_the_answer_is_there_before_the_sweep(cloud, laptop):  # noqa: F811
    left = leftover(laptop)
    with laptop.held("before", action="DescribeInstances"):
        run = laptop.start("offers", "L4:1")
        until(lambda: "g6.xlarge" in run.out() and "left over" in run.err(), 20, "the answer, and why it goes on")
        assert run.process.poll() is None
        assert meter(cloud)["live"] == [left["id"]]
    ended = run.wait(30)
    assert ended.rc == 0 and f"{left['id']} in {left['zone']} {ENDED}" in ended.err, ended


def test_ctrl_c_ends_the_sweep_and_the_answer_stays(cloud, laptop):  # noqa: F811
    leftover(laptop)
    with laptop.held("before", action="DescribeInstances"):
        run = laptop.start("offers", "L4:1", "--json")
        until(lambda: run.out().endswith("\n"), 20, "the answer")
        run.signal(signal.SIGINT)
        ended = run.wait(30)
    assert ended.rc == 130 and json.loads(ended.out)["offers"], ended
    assert "not known" not in ended.err and ENDED not in ended.err, ended


def test_a_sweep_that_fails_changes_nothing_but_words(cloud, laptop):  # noqa: F811
    left = leftover(laptop, rented_before=True)
    for name in ("instances.list", "pods.list"):  # Lambda's, and RunPod's
        fault(cloud, {"kind": "status", "status": 403}, action=name, times=-1)
    fault(cloud, {"kind": "error", "code": "UnauthorizedOperation", "message": "no", "status": 403},
          action="DescribeInstances", times=-1)
    for words in (("offers", "L4:1"), ("cost",), ("cluster", "list")):
        ended = laptop.run(*words, timeout=60)
        assert ended.rc == 0 and "machines there are not known: aws" in ended.err, ended
        assert "runpod" not in ended.err, "nothing was ever rented there"
        assert "UnauthorizedOperation" not in ended.out, ended
    assert meter(cloud)["live"] == [left["id"]]


def test_a_silent_region_holds_up_ten_seconds_and_no_other(cloud, laptop):  # noqa: F811
    left = leftover(laptop, rented_before=True)
    fault(cloud, {"kind": "stall", "seconds": 40}, action="DescribeInstances", region="eu-west-1", times=-1)
    began = time.monotonic()
    ended = laptop.run("cost", timeout=60)
    assert 9 < time.monotonic() - began < 16, ended
    assert ended.rc == 0 and f"{left['id']} in {left['zone']} {ENDED}" in ended.err, ended
    assert "machines there are not known: aws eu-west-1" in ended.err, ended
    until(lambda: meter(cloud)["live"] == [], 20, "it is ended")


def test_nothing_of_ours_is_believed_for_a_minute_and_not_after_a_launch(cloud, laptop):  # noqa: F811
    def lists(*words):
        before = asked(cloud)
        assert laptop.run(*words, timeout=60).rc == 0
        return asked(cloud) - before
    once = lists("offers", "L4:1")
    assert once > 10
    assert lists("offers", "L4:1") == 0 and lists("cost") == 0
    a_minute_later(laptop)
    assert lists("cost") > 0 and lists("cost") == 0
    rented_and_killed(laptop)
    assert lists("cost") == once and lists("cost") == once, "as long as something is rented; and each region once"
    forget(laptop, "gpus")
    (left,) = [each for each in machines(cloud) if each["alive"]]
    assert left["id"] in laptop.run("offers", "L4:1", timeout=60).err
    assert lists("offers", "L4:1") > 0, "it was ended and not yet seen gone"


def test_keys_without_a_rental_are_asked_by_no_list_of_clusters(cloud, laptop):  # noqa: F811
    """Nor is anybody asked without keys, whatever is typed."""
    assert laptop.run("cluster", "add", "mine", "--host", "192.0.2.1").rc == 0
    for words in (("cluster", "list"), ("cluster", "show", "mine")):
        assert laptop.run(*words).rc == 0
    assert not (laptop.home / ".local/state/lockstep/rentals.db").exists()
    for words in (("cost",), ("cloud", "check"), ("keep", "x", "1h"), ("down", "--orphans")):
        ended = laptop.run(*words, env=without_keys())
        assert "not known" not in ended.err, ended
    assert cloud.records == []


def test_what_another_installation_has_rented_is_shown_and_left_alone(cloud, laptops):  # noqa: F811
    ann, bob = laptops("ann"), laptops("bob")
    rented_and_killed(ann)
    (of_ann,) = machines(cloud)
    for words in (("offers", "L4:1"), ("cost", "--json"), ("cloud", "check", "aws")):
        a_minute_later(bob)
        ended = bob.run(*words, timeout=60)
        assert f"{of_ann['id']} in {of_ann['zone']} belongs to another installation" in ended.err, ended
    assert meter(cloud)["live"] == [of_ann["id"]]


def test_up_lists_machines_while_it_asks_for_offers(cloud, laptop):  # noqa: F811
    """One round: a pending answer about prices does not delay questions about machines."""
    with laptop.held("before", face="lambda", action="instance-types.list"):
        run = laptop.start("up", "gpus", "--gpus", "A10:1", "-y", "--print", "--i-will-watch")
        until(lambda: asked(cloud) > 0, 20, "machines are listed")
        assert run.process.poll() is None
    assert run.wait(60).rc == 0


def test_the_answer_goes_first_where_one_question_a_second_is_taken(cloud, laptop):  # noqa: F811
    """The command that a user waits for gets Lambda's turn. The sweep takes the next turn."""
    for _ in range(5):
        before = len(cloud.records)
        assert laptop.run("offers", "L4:1", env={"XDG_CACHE_HOME": str(laptop.home / f"cold{before}")}).rc == 0
        assert [each["action"] for each in cloud.records[before:] if each["face"] == "lambda"] == [
            "instance-types.list", "instances.list"]


def test_cost_says_what_is_true_now(cloud, laptop):  # noqa: F811
    """A machine that was ended in the console is not shown as rented."""
    rented_and_killed(laptop)
    (machine,) = machines(cloud)
    with cloud.world.lock:
        cloud.world.end(cloud.world.machines[machine["id"]], "User.Shutdown")
    ended = laptop.run("cost", timeout=60)
    assert ended.rc == 0 and "gpus: its machines are gone; it cost" in ended.err, ended
    assert "rented" not in ended.out.replace("RENTED", ""), ended


# Keys, networks and firewall rules that renting makes in an account.

def made_there(cloud, provider):  # noqa: F811
    """The names of what is there with the name of an installation."""
    if provider == "aws":
        names = [group["name"] for group in cloud.face("ec2").places.groups.values()]
    elif provider == "gcp":
        names = list(cloud.face("gce").lists.firewalls)
    else:
        face = cloud.face("lambda")
        names = [each["name"] for each in (*face.keys.values(), *face.rulesets.values())]
    return [name for name in names if name.startswith("lockstep-")]


@pytest.mark.parametrize("provider", ["aws", "gcp", "lambda"])
def test_down_all_removes_what_renting_has_made_and_nobody_elses(cloud, laptops, provider):  # noqa: F811
    ann, bob = laptops("ann"), laptops("bob")
    for one in (ann, bob):
        rented_and_killed(one, provider=provider)
        age(one)
    both = made_there(cloud, provider)
    first = ann.down("gpus", timeout=100)
    assert first.rc == 0 and made_there(cloud, provider) == both, first  # it is kept for the next rental
    for words in (("down", "--orphans"), ("cost",)):
        assert ann.run(*words, timeout=60).rc == 0 and made_there(cloud, provider) == both
    ended = ann.down(timeout=60)
    assert ended.rc == 0 and f"{provider}: the keys, networks and firewall rules made there" in ended.err, ended
    of_bob = owner_of(bob)
    assert made_there(cloud, provider) == [name for name in both if of_bob in name] != []
    asked_before = len(cloud.records)
    again = ann.down(timeout=60)
    assert again.rc == 0 and "networks and firewall rules" not in again.err, "once, until something is rented again"
    assert not any("DELETE" in str(each) or "ecurityGroup" in str(each) for each in cloud.records[asked_before:])
    assert bob.down("--all", timeout=100).rc == 0 and made_there(cloud, provider) == []


def waits_for_the_account(run):
    folder = pathlib.Path(f"/proc/{run.process.pid}/fd")
    return any(os.readlink(each).endswith("/account.lock") for each in folder.iterdir() if each.is_symlink())


def test_what_is_just_being_removed_is_made_anew_for_who_rents_then(cloud, laptop):  # noqa: F811
    rented_and_killed(laptop, provider="gcp")
    age(laptop)
    assert laptop.down("gpus", timeout=100).rc == 0
    with laptop.held("before", action="firewalls.delete") as hold:
        removing = laptop.start("down", "--all")
        hold.arrived()
        renting = laptop.start("up", "gpus", "--gpus", "L4:1", "--provider", "gcp", "-y")
        until(lambda: waits_for_the_account(renting) or "it is booting" in renting.err(), 30, "it rents")
    assert "are removed" in removing.wait(60).err
    until(lambda: "waits for sshd" in renting.err(), 60, "it rents")
    assert made_there(cloud, "gcp") != []
    renting.signal(signal.SIGKILL)
    renting.wait()


def test_what_can_not_be_removed_costs_nothing_and_is_no_failure(cloud, laptop):  # noqa: F811
    rented_and_killed(laptop)
    fault(cloud, {"kind": "error", "code": "DependencyViolation", "message": "in use", "status": 400},
          action="DeleteSecurityGroup")
    ended = laptop.down(timeout=60)
    assert ended.rc == 0 and "stay, and cost nothing" in ended.err and "DependencyViolation" in ended.err, ended
    assert "are removed" in laptop.down(timeout=60).err and made_there(cloud, "aws") == []


def test_a_journal_that_is_damaged_and_moved_away(cloud, laptop):  # noqa: F811
    """The machines still belong to this installation: the next sweep terminates them."""
    rented_and_killed(laptop)
    state = laptop.home / ".local/state/lockstep"
    for ending in ("-wal", "-shm"):
        (state / f"rentals.db{ending}").unlink(missing_ok=True)
    (state / "rentals.db").write_bytes(b"no database\n" * 999)
    ended = laptop.down()
    assert ended.rc == 1 and "rentals.db is damaged" in ended.err and "move the file away" in ended.err, ended
    assert "ends all that is rented" in ended.err, ended
    (state / "rentals.db").rename(state / "rentals.db.damaged")
    a_minute_later(laptop)
    ended = laptop.down()
    assert ended.rc == 0 and ENDED in ended.err + ended.out, ended
    assert [each for each in machines(cloud) if each["alive"]] == []


def test_regions_that_the_organization_denies_are_told_once_and_hide_nothing(cloud, laptop):  # noqa: F811
    """Accounts of companies: a service control policy refuses all calls in most regions."""
    denied = {"face": "ec2", "region": "[!u]*", "times": -1, "do": {
        "kind": "error", "status": 403, "code": "UnauthorizedOperation",
        "message": "You are not authorized to perform this operation. User: arn:aws:iam::1:user/ann is not authorized "
                   "to perform: ec2:DescribeInstances with an explicit deny in a service control policy"}}
    cloud.faults.add(denied)
    first = laptop.down("--all")
    assert first.rc == 0, first
    (line,) = [line for line in first.err.splitlines() if "denies" in line]
    assert "aws: a policy of your organization denies" in line and "region" in line, first
    before = len(cloud.records)
    offers = laptop.run("offers", "L4:1", "--provider", "aws")
    assert offers.rc == 0 and "denies" not in offers.out + offers.err, offers
    again = laptop.down("--all")
    assert again.rc == 0 and "denies" not in again.err, again
    places = {each["region"] for each in cloud.records[before:] if each.get("region")}
    assert places and all(place.startswith("u") for place in places), places
    named = laptop.run("offers", "L4:1", "--provider", "aws", "--region", "eu-west-1")
    assert "denies 1 region (eu-west-1)" in named.out, named


def test_denied_regions_are_remembered_for_a_role_whose_keys_are_new_each_time(cloud, laptop, tmp_path):  # noqa: F811
    """As in companies: a login, or a role, gives each command other keys of the same account."""
    role = tmp_path / "config"
    role.write_text("[profile work]\nrole_arn = arn:aws:iam::1:role/gpu\nsource_profile = base\n[profile base]\n"
                    f"aws_access_key_id = {cloud_keys.AWS_KEY}\naws_secret_access_key = {cloud_keys.AWS_SECRET}\n")
    env = {"AWS_CONFIG_FILE": str(role), "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_PROFILE": "work"}
    cloud.faults.add({"face": "ec2", "region": "[!u]*", "times": -1, "do": {
        "kind": "error", "status": 403, "code": "UnauthorizedOperation",
        "message": "not authorized, with an explicit deny in a service control policy"}})
    first = laptop.down("--all", env=env)
    assert first.rc == 0 and first.err.count("denies") == 1, first
    again = laptop.down("--all", env=env)
    assert again.rc == 0 and "denies" not in again.err, again
    assert len([key for key in cloud.face("ec2").credentials if key.startswith("ASIA")]) >= 2


def test_a_denied_region_where_something_was_rented_is_not_empty(cloud, laptop):  # noqa: F811
    rented_and_killed(laptop)
    (machine,) = machines(cloud)
    cloud.faults.add({"face": "ec2", "region": "us-east-1", "times": -1, "do": {
        "kind": "error", "status": 403, "code": "UnauthorizedOperation",
        "message": "not authorized, with an explicit deny in a service control policy"}})
    ended = laptop.down("--orphans")
    assert ended.rc == 1 and "machines there are not known: aws" in ended.err, ended
    cloud.faults.remove()
    assert laptop.down().rc == 0 and not machines(cloud)[0]["alive"], machine
