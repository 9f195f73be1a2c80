"""Renting with bad input and in a broken world: one line that says who, where and what to do, the right exit code, and
no unwanted machine. The providers are the fakes of tests/cloud; their machines have no sshd."""
import contextlib
import http.server
import json
import os
import signal
import threading

import pytest

from cloud_worlds import (cloud, fake_cloud, fault, laptop, laptops, machines, meter, nothing_rented,  # noqa: F401
                          server, until, without_keys)
from harness import one_line

AWS = ("--gpus", "L4:1", "--provider", "aws", "-y")
WRONG = {"aws": {"AWS_ACCESS_KEY_ID": "AKIAWRONG", "AWS_SECRET_ACCESS_KEY": "wrongsecretwrong"},
         "lambda": {"LAMBDA_API_KEY": "wrongwrongwrong"}, "runpod": {"RUNPOD_API_KEY": "wrongwrongwrong"}}
GUARDED = ("--i-will-watch",)


def refused(laptop, rc, *words, args=AWS, name="gpus", **options):  # noqa: F811
    """`lockstep up` ends with one line, and nothing was ever rented."""
    ended = laptop.run("up", name, *args, **{"timeout": 60, **options})
    one_line(ended, rc, *words)
    assert nothing_rented(laptop.cloud)
    return ended


def renting(laptop, *args, name="gpus", **options):  # noqa: F811
    """A `lockstep up` that has its machine and waits for sshd for ever."""
    run = laptop.start("up", name, *(args or AWS), **options)
    until(lambda: "waits for sshd" in run.err() or run.process.poll() is not None, 60, "it waits for sshd")
    assert "waits for sshd" in run.err(), run.err()
    return run


def left_behind(laptop, *args, **options):  # noqa: F811
    """A rental whose client was killed."""
    run = renting(laptop, *args, **options)
    run.signal(signal.SIGKILL)
    run.wait()


def plan_line(ended):
    return next(line for line in (ended.out + ended.err).splitlines() if line.startswith("plan:"))


# Keys.

def test_no_keys_at_all(laptop):  # noqa: F811
    refused(laptop, 1, "no provider's keys were found", "AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS",
            "LAMBDA_API_KEY", "RUNPOD_API_KEY", args=("--gpus", "L4:1", "-y"), env=without_keys())
    one_line(laptop.run("offers", "L4:1", env=without_keys()), 1, "no provider's keys were found")
    assert laptop.run("down", "--all", env=without_keys()).out == "no provider was asked: no keys are found\n"


def test_the_provider_that_is_named_has_no_keys(laptop):  # noqa: F811
    refused(laptop, 1, "RUNPOD_API_KEY", args=("--gpus", "L4:1", "--provider", "runpod", "-y"),
            env=without_keys("runpod"))
    refused(laptop, 2, "no provider is called 'azure'", "aws, gcp, lambda, runpod",
            args=("--gpus", "L4:1", "--provider", "azure", "-y"))


@pytest.mark.parametrize("provider, gpus, words", [
    ("aws", "L4:1", ("us-east-1", "AuthFailure")), ("lambda", "A10:1", ("invalid-api-key",)),
    ("runpod", "L4:1", ("Invalid or missing API key",))])
def test_wrong_keys(laptop, provider, gpus, words):  # noqa: F811
    env = {"AWS_SHARED_CREDENTIALS_FILE": None, **WRONG[provider]}
    ended = refused(laptop, 1, provider, *words, f"lockstep cloud check {provider}",
                    args=("--gpus", gpus, "--provider", provider, "-y", *GUARDED), env=env)
    for secret in WRONG[provider].values():
        assert secret not in ended.err or secret == "AKIAWRONG"


def test_wrong_keys_of_one_leave_the_others(laptop):  # noqa: F811
    ended = laptop.run("up", "gpus", "--gpus", "L4:1", "--print", env=WRONG["runpod"], timeout=60)
    assert ended.rc == 0 and "gcp" in plan_line(ended), ended
    offers = laptop.run("offers", "L4:1", env=WRONG["runpod"], timeout=60)
    assert offers.rc == 0 and "runpod: RunPod: list GPUs: HTTP 401" in offers.out, offers


def test_expired_keys(cloud, laptop):  # noqa: F811
    fault(cloud, {"kind": "token_expired"}, face="ec2", times=-1)
    refused(laptop, 1, "aws", "ExpiredToken", "lockstep cloud check aws")


def test_keys_without_the_right_to_launch(cloud, laptop):  # noqa: F811
    fault(cloud, {"kind": "error", "code": "UnauthorizedOperation", "status": 403,
                  "message": "You are not authorized to perform this operation. Encoded: AAAABBBB"},
          face="ec2", action="RunInstances", times=-1)
    ended = laptop.run("up", "gpus", *AWS, timeout=60)
    assert ended.rc == 1 and nothing_rented(cloud), ended
    last = ended.error_lines[-1]
    assert "us-east-1" in last and "UnauthorizedOperation" in last and "`lockstep cloud check aws`" in last, ended
    assert "asked again" not in ended.err, ended


def test_an_account_that_never_had_spot_and_may_not_begin(cloud, laptop):  # noqa: F811
    """EC2's answer to the first spot launch of an account whose keys may not make its role."""
    cloud.world.settings["spot_role"] = False
    remedy = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
    ended = laptop.run("up", "gpus", *AWS, "--spot", timeout=60)
    assert ended.rc == 1 and remedy in ended.error_lines[-1] and nothing_rented(cloud), ended
    assert "asked again" not in ended.err and ended.err.count("asking for") <= 1, ended
    assert remedy in laptop.run("cloud", "check", "aws").out
    run = renting(laptop, *AWS, "--spot=prefer")
    (machine,) = machines(cloud)
    assert not machine["spot"] and remedy in run.err(), run.err()
    run.signal(signal.SIGINT)
    assert run.wait(60).rc == 130


ENDS = {"aws": ("ec2", "TerminateInstances", "https://us-east-1.console.aws.amazon.com/ec2/"),
        "gcp": ("gce", "instances.delete", "https://console.cloud.google.com/compute/instances"),
        "lambda": ("lambda", "terminate", "https://cloud.lambda.ai/instances"),
        "runpod": ("runpod", "pods.delete", "https://console.runpod.io/pods")}
# Each refusal lasts until the user repairs it: a missing permission, keys that are revoked or have expired.
REFUSALS = [("aws", "UnauthorizedOperation", 403), ("aws", "RequestExpired", 400), ("aws", "AuthFailure", 401),
            ("aws", "InvalidClientTokenId", 403), ("gcp", "forbidden", 403), ("gcp", "authError", 401),
            ("lambda", "global/invalid-api-key", 401), ("lambda", "global/account-inactive", 403),
            ("runpod", "Unauthorized", 401)]


def refusal_to_end(cloud, provider, code, status):  # noqa: F811
    face, action, _ = ENDS[provider]
    fault(cloud, {"kind": "error", "code": code, "status": status, "message": "You may not end it."}, face=face,
          action=action, times=-1)


def left_at(laptop, provider):  # noqa: F811
    gpus = "A10:1" if provider == "lambda" else "L4:1"
    left_behind(laptop, "--gpus", gpus, "--provider", provider, "-y", *(GUARDED if provider == "lambda" else ()))
    (machine,) = machines(laptop.cloud)
    return machine


def tells_where_to_end(line, provider, machine):
    name = machine["name" if provider == "gcp" else "id"]
    for words in (name, "USD an hour", "You may not end it.", ENDS[provider][2]):
        assert words in line, line


@pytest.mark.parametrize("provider, code, status", REFUSALS)
def test_a_refusal_to_end_is_told_at_once(cloud, laptop, provider, code, status):  # noqa: F811
    """The line names the machine, its cost, and how to terminate it. The machine ends once the permission is back."""
    machine = left_at(laptop, provider)
    refusal_to_end(cloud, provider, code, status)
    run = laptop.start("down", "gpus")
    until(lambda: "cannot be ended" in run.err(), 20, "it is told")
    line = next(line for line in run.err().splitlines() if "cannot be ended" in line)
    tells_where_to_end(line, provider, machine)
    cloud.faults.remove()
    ended = run.wait(60)
    assert ended.rc == 0 and ended.err.count("cannot be ended") == 1 and not meter(cloud)["live"], ended


def test_a_provider_that_fails_for_a_while_has_refused_nothing(cloud, laptop):  # noqa: F811
    left_at(laptop, "aws")
    fault(cloud, {"kind": "status", "status": 503}, face="ec2", action="TerminateInstances", times=8)
    ended = laptop.run("down", "gpus", timeout=90)
    assert ended.rc == 0 and "cannot be ended" not in ended.err and not meter(cloud)["live"], ended


def test_every_command_tells_of_a_machine_that_is_refused_its_end(cloud, laptop):  # noqa: F811
    """`down` was interrupted, or the lease is over: the sweep terminates unwanted machines, where it has permission."""
    machine = left_at(laptop, "aws")
    refusal_to_end(cloud, "aws", "UnauthorizedOperation", 403)
    run = laptop.start("down", "gpus")
    until(lambda: "cannot be ended" in run.err(), 20, "it is told")
    run.signal(signal.SIGKILL)
    run.wait()
    for words in (("offers", "L4:1"), ("cost",), ("down", "--orphans"), ("cost", "--json")):
        ended = laptop.run(*words, timeout=60)
        (line,) = [line for line in ended.err.splitlines() if machine["id"] in line]
        tells_where_to_end(line, "aws", machine)
        assert ended.rc == (1 if words[0] == "down" else 0), ended
    assert machine["id"] in json.loads(ended.out)["swept"]["not_ended"][0]
    cloud.faults.remove()
    ended = laptop.run("down", "--orphans", timeout=60)
    assert ended.rc == 0 and not meter(cloud)["live"], ended


def test_keys_that_were_renewed_in_their_file_are_read_again(cloud, laptop, tmp_path):  # noqa: F811
    """Another program renews temporary keys in this file. A long job outlives the first keys."""
    def temporary(number):
        cloud.face("ec2").credentials[f"ASIATEMPORARY{number}"] = {
            "secret": f"secret{number}", "token": f"token{number}", "expires": None}
        (tmp_path / "credentials").write_text(
            f"[work]\naws_access_key_id = ASIATEMPORARY{number}\naws_secret_access_key = secret{number}\n"
            f"aws_session_token = token{number}\n")
        (tmp_path / "credentials").chmod(0o600)
    temporary(1)
    env = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_PROFILE": "work",
           "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    run = renting(laptop, *AWS, env=env)
    assert "the keys of AWS profile work are temporary" in run.err(), run.err()
    assert "lockstep reads the file again" in run.err(), run.err()
    temporary(2)
    cloud.face("ec2").credentials["ASIATEMPORARY1"]["expires"] = cloud.world.now() - 1
    run.signal(signal.SIGINT)
    ended = run.wait(60)
    assert ended.rc == 130 and not meter(cloud)["live"] and "cannot be ended" not in ended.err, ended


@pytest.mark.parametrize("variable, provider, gpus, folder, text", [
    ("LAMBDA_API_KEY", "lambda", "A10:1", ".lambda_cloud/lambda_keys", "api_key = {LAMBDA_KEY}\n"),
    ("RUNPOD_API_KEY", "runpod", "L4:1", ".runpod/config.toml", 'apikey = "{RUNPOD_KEY}"\n'),
    ("AWS_SHARED_CREDENTIALS_FILE", "aws", "L4:1", ".aws/credentials",
     "[default]\naws_access_key_id = {AWS_KEY}\naws_secret_access_key = {AWS_SECRET}\n")])
def test_key_files_that_others_may_read(laptop, variable, provider, gpus, folder, text):  # noqa: F811
    path = laptop.home / folder
    path.parent.mkdir()
    path.write_text(text.format(**vars(fake_cloud.cloud_keys)))
    path.chmod(0o644)
    args = ("offers", gpus, "--provider", provider)
    loose = laptop.run(*args, env={variable: None})
    assert loose.rc == 0 and loose.err.count("chmod 600") == 1 and str(path) in loose.err, loose
    path.chmod(0o600)
    assert "chmod" not in laptop.run(*args, env={variable: None}).err


# What is wished for.

@pytest.mark.parametrize("args, rc, words", [
    (("--gpus", "H1000:1"), 2, ("'H1000'", "H100")),
    (("--gpus", "L4:7", "--provider", "aws"), 1, ("nobody offers L4:7", "near it", "L4:4", "L4:1")),
    (("--gpus", "V100:1", "--provider", "aws"), 1, ("nobody offers V100:1", "gcp has V100-16GB:1")),
    (("--gpus", "A10:1", "--spot", "--provider", "lambda", *GUARDED), 1,
     ("nobody offers A10:1 on spot", "lambda has A10:1", "0.75")),
    (("--gpus", "L4:1", "--max-price", "0.05"), 1, ("the cheapest, runpod", "0.44", "--max-price 0.05")),
    (("--gpus", "L4:1", "--budget", "0.01"), 2, ("ten minutes", "runpod", "0.07", "raise --budget")),
    (("--gpus", "GH200:1", *GUARDED), 1, ("lambda gpu_1x_gh200", "us-east-1", "arm64", "binary")),
    (("--gpus", "A10:1", "--provider", "lambda"), 1, ("cannot end its own bill", "--guard", "--i-will-watch")),
    (("--gpus", "L4:1", "--nodes", "0"), 2, ("--nodes must be a number from 1 to 64", "(got 0)")),
    (("--gpus", "L4:1", "--nodes", "3:4"), 2, ("(got 3:4)", "write --nodes 4")),
    (("--gpus", "L4:1", "--lifetime", "soon"), 2, ("--lifetime must be a length of time (got 'soon')", "6h")),
    (("--gpus", "L4:1", "--allow-from", "198.51.100.0/24,here"), 2,
     ("a list of networks (got 'here')", "198.51.100.7/32")),
    (("--gpus", "L4:1", "--allow-from", "198.51.100.7/33"), 2, ("'198.51.100.7/33'",)),
    (("--gpus", "L4:1", "--allow-from", "198.51.100.7"), 2, ("'198.51.100.7'", "/32")),
    (("--gpus", "L4:1", "--allow-from", ","), 2, ("a list of networks (got ',')",)),
], ids=lambda value: None if not isinstance(value, tuple) else "-".join(value)[:40])
def test_wishes_that_nobody_fulfils(laptop, args, rc, words):  # noqa: F811
    refused(laptop, rc, *words, args=(*args, "-y"))


def test_arm_machines_are_taken_if_their_binary_is_here(laptop):  # noqa: F811
    assert laptop.run("offers", "GH200:1").rc == 1
    folder = laptop.home / ".local/share/lockstep"
    folder.mkdir(parents=True)
    (folder / "lockstep-aarch64.gz").touch()
    shown = laptop.run("offers", "GH200:1")
    assert shown.rc == 0 and "gpu_1x_gh200" in shown.out and "arm64" not in shown.out, shown


@pytest.mark.parametrize("args", [AWS, ("--gpus", "L4:1", "--provider", "gcp", "-y"),
                                  ("--gpus", "A10:1", "--provider", "lambda", "-y", *GUARDED)],
                         ids=lambda args: args[3])
def test_several_networks_are_let_in(cloud, laptop, args):  # noqa: F811
    both = ["198.51.100.0/24", "203.0.113.7/32"]
    left_behind(laptop, *args, "--allow-from", ",".join(both))
    if "aws" in args:
        found = [{each[-1] for each in group["rules"] if each[-2] == "cidr"}
                 for group in cloud.face("ec2").places.groups.values() if group["name"].startswith("lockstep-")]
    elif "gcp" in args:
        found = [set(rule["sourceRanges"]) for name, rule in cloud.face("gce").lists.firewalls.items()
                 if name.startswith("lockstep-")]
    else:
        found = [{rule["source_network"] for rule in rules["rules"]}
                 for rules in cloud.face("lambda").rulesets.values() if rules["name"].startswith("lockstep-")]
    assert found == [set(both)]


def test_no_quota(cloud, laptop):  # noqa: F811
    for region in cloud.world.catalog["aws"]["regions"]:
        fake_cloud.control(cloud.url, "quota", {"face": "ec2", "region": region, "code": "L-DB2E81BA", "limit": 0})
    refused(laptop, 1, "aws g6.xlarge in us-east-1a", "quota 0 vCPUs, ask for 4")


def test_nobody_has_any_now(cloud, laptop):  # noqa: F811
    """The command waits as long as --wait says, and then names the last providers in one line."""
    for action in ("RunInstances", "instances.insert", "graphql.podFindAndDeployOnDemand"):
        fault(cloud, {"kind": "capacity"}, action=action, times=-1)
    ended = laptop.run("up", "gpus", "--gpus", "L4:1", "--provider", "aws,gcp,runpod", "--region",
                       "us-east-1,us-central1,EU-RO-1", "-y", "--wait", "6s", timeout=120)
    assert ended.rc == 1 and nothing_rented(cloud), ended
    assert "lockstep up: no offer is available now; prices and stock are checked again in" in ended.err, ended
    asked = [line for line in ended.error_lines if line.startswith("lockstep up: asking for")]
    assert len(asked) == len(set(asked)) and {line.split()[4] for line in asked} == {"aws", "gcp", "runpod"}, ended
    assert [line for line in ended.error_lines if ": error: " in line] == ended.error_lines[-1:], ended
    assert laptop.run("cluster", "list").out.count("\n") == 1, "its name is free again"


@pytest.mark.parametrize("words,said", [
    (("train.py", "--lr", "1"), ("there is no train.py",)),
    (("--install", ".", "here.py"), ("'.' is a path", "pip:PATH")),
    (("--back", "../other", "here.py"), ("../other",)),
    (("--sync", "none", "--back", "out", "here.py"), ("--back", "leave --sync none out")),
    (("--sync", "none", "--install", "numpy", "here.py"), ("--install", "leave --sync none out")),
    (("--env-file", "none.env", "here.py"), ("none.env",)), (("--explain", "here.py"), ("--explain",)),
    (("--nnodes", "2", "here.py"), ("waits for 2 nodes, and one is rented; --nodes 2",)),
    (("--nodes", "2", "--nnodes", "1:3", "here.py"), ("waits for 3 nodes, and 2 are rented; --nodes 3",)),
    (("--nodes", "2", "--nnodes", "3:4", "--rdzv-backend", "lockstep", "here.py"), ("waits for 3 nodes",)),
    (("--detach", "--report", "r.json", "here.py"), ("--report", "--detach"))])
def test_a_job_that_can_not_run_rents_nothing(cloud, laptop, tmp_path, words, said):  # noqa: F811
    (tmp_path / "here").mkdir()
    (tmp_path / "here/here.py").touch()
    ended = laptop.run("run", "--on-demand", "L4:1", "--provider", "aws", "-y", *words, cwd=tmp_path / "here")
    assert ended.rc in (1, 2) and len(ended.error_lines) == 1 and ": error: " in ended.err, ended
    assert all(word in ended.err for word in said) and nothing_rented(cloud), ended


def raise_prices(cloud, face):  # noqa: F811
    """Raises the prices of everything."""
    if face == "ec2":
        zones = [zone for region in cloud.world.catalog["aws"]["regions"].values() for zone in region["zones"]]
        changes = [{"type": "g6.xlarge", "zone": zone, "usd": 9, "spot": True} for zone in zones]
    else:
        kinds = cloud.world.catalog[face]["types" if face == "lambda" else "gpus"]
        changes = [{"type": kind, "usd": 9} for kind in kinds]
    for change in changes:
        cloud.face(face).change("price", change)


@pytest.mark.parametrize("provider,args,code", [
    ("aws", ("L4:1", "--spot"), "SpotMaxPriceTooLow"), ("lambda", ("A10:1", *GUARDED), "price-raised"),
    ("runpod", ("L4:1",), "price-raised")])
def test_a_price_that_was_raised_since_the_plan(cloud, laptop, provider, args, code):  # noqa: F811
    """Over the cap: not taken, wherever it is."""
    main, side = os.openpty()
    run = laptop.start("up", "gpus", "--provider", provider, "--max-price", "0.9", "--wait", "1s", "--gpus", *args,
                       stdin=side, stderr=side)
    os.close(side)
    said = b""
    while b"rent it?" not in said:
        said += os.read(main, 4096)
    raise_prices(cloud, "ec2" if provider == "aws" else provider)
    os.write(main, b"y\n")
    with contextlib.suppress(OSError):  # its end of the terminal is closed
        while more := os.read(main, 4096):
            said += more
    ended = run.wait(30)
    os.close(main)
    last = said.decode().strip().splitlines()[-1]
    assert ended.rc == 1 and nothing_rented(cloud), said
    assert "lockstep up: error: " in last and code in last and provider in last, said


def test_nobody_to_ask_and_no_cap(laptop):  # noqa: F811
    refused(laptop, 2, "nothing caps the cost", "-y", "--max-price", "--budget",
            args=("--gpus", "L4:1", "--provider", "aws"))


def test_a_plan_promises_no_end_where_nothing_ends_the_bill(laptop):  # noqa: F811
    args = ("up", "gpus", "--gpus", "A10:1", "--provider", "lambda", "--budget", "5", *GUARDED, "--print")
    ended = laptop.run(*args)
    assert ended.rc == 0 and "nothing else ends the bill of lambda's machines" in ended.out, ended
    assert "at the latest" not in ended.out and "at most" not in ended.out, ended
    told = json.loads(laptop.run(*args, "--json").out)
    assert told["ends_ms"] is None and told["most_micros"] is None and not told["capped"], told


@pytest.mark.parametrize("name", ["../evil", "a/b", "-x y", "n" * 64])
def test_names_that_are_none(laptop, name):  # noqa: F811
    ended = laptop.run("up", "--gpus", "L4:1", "-y", "--", name)
    one_line(ended, 2, "cannot be the name of a cluster")
    one_line(laptop.run("keep", "--", name, "2h"), 2, "cannot be the name of a cluster")


def test_a_name_in_use(laptop):  # noqa: F811
    assert laptop.run("cluster", "add", "gpus", "--host", "10.0.0.1").rc == 0
    refused(laptop, 1, "'gpus' is already the name of a cluster of hosts", "lockstep cluster remove gpus")


# The world.

def test_a_clock_that_is_off_by_an_hour(cloud, laptop):  # noqa: F811
    cloud.world.advance(0, skew=3600)
    run = renting(laptop)
    run.signal(signal.SIGINT)
    ended = run.wait(60)
    assert ended.rc == 130 and "this machine's clock is 60 min behind that of AWS" in ended.err, ended
    assert meter(cloud)["live"] == [] and len(machines(cloud)) == 1


def test_a_region_that_does_not_answer(cloud, laptop):  # noqa: F811
    fault(cloud, {"kind": "stall", "seconds": 25}, face="ec2", region="eu-west-1", times=-1)
    ended = laptop.run("offers", "L4:1", "--provider", "aws", timeout=60)
    rows = "".join(line for line in ended.out.splitlines() if "g6.xlarge" in line)
    assert ended.rc == 0 and "us-east-1" in rows and "eu-west-1" not in rows, ended
    assert "aws eu-west-1: DescribeAvailabilityZones in eu-west-1: no answer within " in ended.out, ended
    assert 9 < ended.seconds < 18, ended


@pytest.mark.parametrize("words", [("offers", "L4:1"),
                                   ("up", "gpus", "--gpus", "L4:1", "--print", "--spot=prefer", "--region",
                                    "us-east-1,us-west-2")])
def test_a_home_region_that_does_not_answer_takes_no_longer(cloud, laptop, words):  # noqa: F811
    fault(cloud, {"kind": "stall", "seconds": 25}, face="ec2", region="us-east-1", times=-1)
    ended = laptop.run(*words, "--provider", "aws", timeout=60)
    assert ended.rc == 0 and "us-west-2" in ended.out, ended
    assert 9 < ended.seconds < 16, ended


def test_a_proxy_that_refuses(laptop):  # noqa: F811
    refused(laptop, 1, "aws said nothing", "proxy http://127.0.0.1:1 (HTTPS_PROXY)", "Connection refused",
            env={"HTTPS_PROXY": "http://127.0.0.1:1", "AWS_ENDPOINT_URL": None})


# Several, and what has changed meanwhile.

def test_two_clients_on_one_cluster(cloud, laptop):  # noqa: F811
    first = renting(laptop)
    for args in (("up", "gpus", *AWS), ("keep", "gpus", "2h")):
        one_line(laptop.run(*args, timeout=60), 1, "another lockstep is renting or terminating 'gpus'", "wait for it")
    assert len(machines(cloud)) == 1
    first.signal(signal.SIGTERM)
    assert first.wait(60).rc == 143
    assert meter(cloud)["live"] == []


def test_down_while_the_first_contact_is_waited_for(cloud, laptop):  # noqa: F811
    first = renting(laptop)
    ended = laptop.run("down", "gpus", timeout=60)
    assert ended.rc == 0 and "another lockstep has 'gpus' in hands: that ends first" in ended.err, ended
    assert "'gpus' is terminated; it cost 0." in ended.err and ended.seconds < 10, ended
    renter = first.wait(10)
    assert renter.rc == 1, renter
    assert renter.err.splitlines()[-1] == "lockstep up: error: 'gpus' is terminated by another lockstep", renter
    assert laptop.cost()["rentals"][0]["closed_ms"] != 0
    assert meter(cloud)["live"] == [] and len(machines(cloud)) == 1


def test_whoever_looks_meanwhile_takes_no_machine_out_of_the_journal(cloud, laptop):  # noqa: F811
    """A command finds the cluster's machine gone. Before it says so, another terminal has rented a new machine."""
    left_behind(laptop)
    (first,) = machines(cloud)
    fake_cloud.control(cloud.url, f"machines/{first['id']}/end", {})
    with laptop.held("after", action="DescribeInstances") as hold:
        using = laptop.start("exec", "gpus", "--", "true")
        hold.arrived()
        again = renting(laptop)
    one_line(using.wait(60), 255, "another lockstep is renting or terminating 'gpus'")
    (row,) = laptop.cost()["rentals"]
    (second,) = meter(cloud)["live"]
    assert row["closed_ms"] == 0 and [node["id"] for node in row["nodes"]] == [second], (row, second)
    again.signal(signal.SIGTERM)
    assert again.wait(60).rc == 143 and meter(cloud)["live"] == []


def test_one_client_answers_when_another_has_rented(cloud, laptop):  # noqa: F811
    """The user answers a question while another terminal rents under the same name: one gang, not two."""
    main, side = os.openpty()
    asked = laptop.start("up", "gpus", *AWS[:-1], stdin=side, stderr=side)
    os.close(side)
    seen = b""
    while b"rent it?" not in seen:
        seen += os.read(main, 4096)
    one_line(laptop.run("up", "gpus", *AWS, timeout=60), 1, "another lockstep is renting")
    os.write(main, b"n\n")
    ended = asked.wait(30)
    os.close(main)
    assert ended.rc == 1 and nothing_rented(cloud), ended


def test_down_of_what_never_was_and_of_what_is_gone(cloud, laptop):  # noqa: F811
    one_line(laptop.down("gpus"), 1, "nothing is rented for 'gpus'", "lockstep cost")
    one_line(laptop.run("keep", "gpus", "2h"), 1, "nothing is rented for 'gpus'", "lockstep cost")
    left_behind(laptop)
    assert laptop.down("gpus").rc == 0
    again = laptop.down("gpus")
    assert again.rc == 0 and "'gpus' is gone already" in again.err, again
    assert meter(cloud)["live"] == []


def test_a_machine_that_was_ended_in_the_console(cloud, laptop):  # noqa: F811
    left_behind(laptop)
    (machine,) = machines(cloud)
    fake_cloud.control(cloud.url, f"machines/{machine['id']}/end", {})
    ended = laptop.down("gpus")
    assert ended.rc == 0 and "'gpus' is terminated" in ended.err, ended
    assert laptop.cost()["cost_micros"] == meter(cloud)["micros"]


@pytest.mark.parametrize("provider, gpus", [("aws", "L4:1"), ("gcp", "L4:1"), ("lambda", "A10:1"),
                                            ("runpod", "L4:1")])
def test_what_was_rented_just_now_is_given_back_at_once(cloud, laptop, provider, gpus):  # noqa: F811
    """A new machine may be missing in lists for a minute, so a list alone does not prove its end."""
    left_behind(laptop, "--gpus", gpus, "--provider", provider, "-y", *GUARDED)
    ended = laptop.down("gpus")
    assert ended.rc == 0 and meter(cloud)["live"] == [] and ended.seconds < 25, ended


def test_up_after_the_machine_was_ended_in_the_console_rents_again(cloud, laptop):  # noqa: F811
    left_behind(laptop)
    (first,) = machines(cloud)
    fake_cloud.control(cloud.url, f"machines/{first['id']}/end", {})
    again = renting(laptop)
    assert [each["alive"] for each in machines(cloud)] == [False, True]
    again.signal(signal.SIGINT)
    assert again.wait(60).rc == 130 and meter(cloud)["live"] == []


def test_a_second_machine_that_is_never_reached_ends_the_attempt(cloud, laptop):  # noqa: F811
    """As with a local firewall that blocks outgoing port 22: more machines would only cost money."""
    ended = laptop.run("up", "gpus", *AWS, env={"LOCKSTEP_CLOUD_PACE": "0.003", "LOCKSTEP_SSH_PROBE": "none"},
                       timeout=120)
    assert ended.rc == 1 and "no SSH server has answered at 127.0.0.1 port 22 for" in ended.err, ended
    assert "the previous machine was not reached, either: a firewall here may block outgoing port 22" in ended.err
    assert ended.err.count("is unusable") == 1 and len(machines(cloud)) == 2 and meter(cloud)["live"] == [], ended


def test_ctrl_c_names_no_machine_that_it_has_ended(cloud, laptop):  # noqa: F811
    run = renting(laptop)
    run.signal(signal.SIGINT)
    assert run.wait(60).rc == 130 and meter(cloud)["live"] == []
    assert "there may still be" not in run.err(), run.err()


def test_a_machine_that_is_ended_in_the_console_while_up_waits_for_it(cloud, laptop):  # noqa: F811
    run = renting(laptop)
    (first,) = machines(cloud)
    fake_cloud.control(cloud.url, f"machines/{first['id']}/end", {})
    until(lambda: len(machines(cloud)) == 2 and run.err().count("waits for sshd") == 2, 30, "the next one is taken")
    lines = [line for line in run.err().splitlines() if "the machine was lost" in line]
    assert len(lines) == 1 and "aws " in lines[0] and "Client.UserInitiatedShutdown" in lines[0], run.err()
    assert [each["alive"] for each in machines(cloud)] == [False, True]
    run.signal(signal.SIGINT)
    assert run.wait(60).rc == 130 and meter(cloud)["live"] == []


def test_spot_machines_that_are_taken_while_they_boot_say_nothing_of_this_network(cloud, laptop):  # noqa: F811
    run = renting(laptop, *AWS, "--spot", env={"LOCKSTEP_SSH_PROBE": "none"})
    for number in (2, 3):
        fake_cloud.control(cloud.url, f"machines/{machines(cloud)[-1]['id']}/end",
                           {"why": "Server.SpotInstanceTermination"})
        until(lambda: len(machines(cloud)) == number and run.err().count("waits for sshd") == number, 30,
              "the next one is taken")
    run.signal(signal.SIGINT)
    assert run.wait(60).rc == 130 and meter(cloud)["live"] == [] and "firewall" not in run.err()


def test_up_prints_no_plan_for_what_is_there(cloud, laptop):  # noqa: F811
    left_behind(laptop)
    ended = laptop.run("up", "gpus", *AWS, "--print")
    assert ended.rc == 0 and "rented already" in ended.err and ended.seconds < 5, ended
    assert "does not change" not in ended.err
    ended = laptop.run("up", "gpus", *AWS, "--print", "--spot", "--guard", "elsewhere")
    assert "--guard does not change rented machines: 'gpus' has none" in ended.err, ended
    assert "--spot does not change rented machines: 'gpus' is on demand" in ended.err, ended
    assert len(machines(cloud)) == 1 and laptop.down().rc == 0


class CheckIp(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"203.0.113.7\n")

    def log_message(self, *_):
        pass


NOBODY = {"LOCKSTEP_CHECKIP_URL": "http://127.0.0.1:9"}


def test_a_provider_that_opens_the_port_to_all_needs_no_public_address(cloud, laptop):  # noqa: F811
    args = ("--gpus", "L4:1", "--provider", "runpod", "-y")
    left_behind(laptop, *args, env=NOBODY)
    again = renting(laptop, *args, env=NOBODY)
    assert "address" not in again.err(), again.err()
    again.signal(signal.SIGINT)
    assert again.wait(60).rc == 130 and meter(cloud)["live"] == []


def test_without_a_public_address_no_port_is_opened(cloud, laptop):  # noqa: F811
    ended = laptop.run("up", "gpus", *AWS, env=NOBODY, timeout=60)
    assert ended.rc == 1 and nothing_rented(cloud), ended
    assert "public address was not found" in ended.err and "--allow-from ADDRESS/32" in ended.err, ended


def test_the_users_address_has_changed_since_up(cloud, laptop):  # noqa: F811
    left_behind(laptop)
    before = len(fake_cloud.control(cloud.url, "record"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), CheckIp) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, args=(0.05,), daemon=True).start()
        run = renting(laptop, env={"LOCKSTEP_CHECKIP_URL": f"http://127.0.0.1:{elsewhere.server_port}"})
        elsewhere.shutdown()
    asked = [each["action"] for each in fake_cloud.control(cloud.url, "record")[before:]]
    assert "your address changed from 127.0.0.1/32 to 203.0.113.7/32" in run.err(), run.err()
    assert "AuthorizeSecurityGroupIngress" in asked and "RevokeSecurityGroupIngress" in asked, asked
    run.signal(signal.SIGINT)
    assert run.wait(60).rc == 130 and len(machines(cloud)) == 1 and meter(cloud)["live"] == []
