"""The fakes of Google Compute, Lambda Cloud and RunPod are as strict as the real services, and count money right."""
import json
import pathlib
import subprocess
import threading
import time
import urllib.parse

import pytest

from fake_clouds import HOUR, cloud, fake_cloud, machines, running, server, usd  # noqa: F401
from harness import PYTHON, killed_at_end, until

import cloud_clients
import cloud_keys
import metadata_service
from cloud_clients import Gce, lambda_ask, runpod_ask, runpod_graphql

DEPLOY = """mutation Make($input: PodFindAndDeployOnDemandInput!) {
  podFindAndDeployOnDemand(input: $input) { id desiredStatus machine { podHostId } } }"""
POD = {"cloudType": "SECURE", "gpuCount": 1, "gpuTypeId": "NVIDIA L4", "name": "ls-x-0", "imageName": "runpod/base",
       "containerDiskInGb": 20, "ports": "22/tcp", "env": [{"key": "PUBLIC_KEY", "value": "ssh-ed25519 AAAA me"}]}
LAUNCH = {"region_name": "us-east-1", "instance_type_name": "gpu_1x_a10", "ssh_key_names": ["me"], "name": "ls-x-0"}


# Google.

def test_tokens_of_google(cloud):
    gce = Gce(cloud)
    good = gce.jwt()
    head, body, signature = good.split(".")
    other = json.loads(cloud_keys.unbase64url(body))
    forged = f"{head}.{cloud_clients.coded(json.dumps({**other, 'exp': other['exp'] - 1}).encode())}.{signature}"
    assert gce.buy(good).status == 200
    for wrong in (forged, gce.jwt(iss="x@y"), gce.jwt(aud="https://example.com/"), gce.jwt(exp=int(time.time()) + 7200),
                  gce.jwt(iat=int(time.time()) + 900, exp=int(time.time()) + 4000), gce.jwt(exp=int(time.time()) - 1)):
        assert gce.buy(wrong).code == "invalid_grant"
    assert gce.buy(gce.jwt(scope="email")).code == "invalid_scope"
    assert gce.get("zones").status == 200
    cloud.world.advance(3600)
    assert gce.get("zones").status == 401
    user = json.loads((cloud.folder / "gcp_user.json").read_text())
    form = {"grant_type": "refresh_token", **{name: user[name] for name in cloud_keys.REFRESH}}
    assert cloud_clients.ask(user["token_uri"], urllib.parse.urlencode(form).encode()).json["token_type"] == "Bearer"


def test_google_does_a_request_once(cloud):
    gce = Gce(cloud)
    path = "zones/us-central1-a/instances?requestId=0b9ccd1c-1111-4222-8333-444444444444"
    first = gce.post(path, gce.instance()).json
    assert gce.finished(gce.post(path, gce.instance()))["name"] == first["name"] and len(machines(cloud)) == 1
    again = gce.post("zones/us-central1-a/instances", gce.instance())
    assert (again.status, again.code) == (409, "alreadyExists")
    assert gce.post("zones/us-central1-a/instances?requestId=00000000-0000-0000-0000-000000000000",
                    gce.instance(name="ls-b-0")).status == 400


@pytest.mark.parametrize("change, words", [
    ({"colour": "red"}, "unknown"), ({"name": "Upper"}, "name"), ({"labels": {"Key": "x"}}, "labels"),
    ({"machineType": "zones/us-central1-b/machineTypes/a2-highgpu-1g"}, "machineType"),
    ({"scheduling": {"onHostMaintenance": "MIGRATE"}}, "onHostMaintenance"),
    ({"scheduling": {"onHostMaintenance": "TERMINATE", "maxRunDuration": {"seconds": 60}}}, "maxRunDuration"),
    ({"disks": [{"boot": True}]}, "source"),
    ({"guestAccelerators": [{"acceleratorType": "zones/us-central1-a/acceleratorTypes/nvidia-l4",
                             "acceleratorCount": 1}]}, "guestAccelerators"),
])
def test_what_google_refuses(cloud, change, words):
    gce = Gce(cloud)
    answer = gce.post("zones/us-central1-a/instances", {**gce.instance(), **change})
    assert answer.status == 400 and words in answer.json["error"]["message"], answer.text
    assert machines(cloud) == []


def test_google_says_late_that_there_is_none(cloud):
    gce = Gce(cloud)
    cloud.world.settings.update(gce_capacity_s=30)
    made = gce.post("zones/us-central1-a/instances", gce.instance(kind="a2-ultragpu-8g"))
    assert made.status == 200 and made.json["status"] == "RUNNING"
    cloud.world.advance(31)
    done = gce.finished(made)
    assert done["error"]["errors"][0]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED" and machines(cloud) == []
    cloud.world.settings.update(gce_capacity_s=0)
    for body, code in ((gce.instance(kind="a3-highgpu-1g"), "UNSUPPORTED_OPERATION"),
                       (gce.instance(kind="a3-megagpu-8g"), "RESOURCE_NOT_FOUND")):
        done = gce.finished(gce.post("zones/us-central1-a/instances", body))
        assert done["error"]["errors"][0]["code"] == code
    fake_cloud.control(cloud.url, "quota", {"face": "gce", "region": "us-central1", "metric": "NVIDIA_A100_GPUS",
                                            "limit": 0})
    done = gce.finished(gce.post("zones/us-central1-a/instances", gce.instance()))
    assert done["error"]["errors"][0]["code"] == "QUOTA_EXCEEDED"


def test_google_ends_what_has_an_end(cloud):
    gce = Gce(cloud)
    gce.finished(gce.post("zones/us-central1-a/instances", gce.instance(lasts=HOUR)))
    gce.finished(gce.post("zones/us-central1-a/instances", gce.instance(name="ls-a-1", lasts=HOUR)))
    down = running(cloud, 2)[0]["id"]
    fake_cloud.control(cloud.url, f"machines/{down}/poweroff", {})
    cloud.world.advance(HOUR + 1)
    states = {each["id"]: each for each in machines(cloud)}
    assert sorted(each["state"] for each in states.values()) == ["gone", "stopped"]
    before = usd(cloud)
    cloud.world.advance(730 * HOUR)  # powered off, the machine is free, and its disk is not
    assert usd(cloud) - before == pytest.approx(100 * 0.10, rel=0.001)
    ended = [bill for bill in states.values() if bill["state"] == "gone"][0]["bills"]
    assert ended[0]["micros"] == pytest.approx(3.6735e6, rel=0.002)  # one hour of a2-highgpu-1g
    name = states[down]["name"]
    gce = Gce(cloud)  # a new token: a month has gone by
    assert gce.finished(gce.delete(f"zones/us-central1-a/instances/{name}"))["status"] == "DONE"
    assert gce.get(f"zones/us-central1-a/instances/{name}").status == 404
    assert fake_cloud.control(cloud.url, "meter")["billed"] == []


@pytest.mark.parametrize("kind, demand, spot", [
    ("g2-standard-4", 0.707, 0.397), ("g4-standard-48", 4.50, 1.80), ("a2-highgpu-1g", 3.67, 1.93),
    ("a2-ultragpu-1g", 5.07, 2.76), ("a2-ultragpu-8g", 40.55, 22.1), ("a3-highgpu-8g", 88.49, 50.61)])
def test_prices_of_google_as_people_pay_them(cloud, kind, demand, spot):
    entry, lists = cloud.world.catalog["gcp"]["machine_types"][kind], cloud.face("gce").lists
    rates = [lists.rate(kind, entry["gpu"], entry["gpus"], "us-central1-a", taken) / 1e6 for taken in (False, True)]
    assert rates == pytest.approx([demand, spot], rel=0.002)
    # The SKUs are made of the same parts, and do not fit on one page.
    page = cloud_clients.ask(f"{cloud.url}/v1/services/6F81-5844-456A/skus?pageSize=100&key=fake-api-key").json
    assert len(page["skus"]) == 100 and page["nextPageToken"]


def test_google_lists_in_part(cloud):
    gce = Gce(cloud)
    gce.finished(gce.post("zones/us-central1-a/instances", gce.instance()))
    gce.finished(gce.post("zones/us-west1-b/instances", gce.instance(zone="us-west1-b", name="ls-b-0",
                                                                    labels={"lockstep-owner": "you"})))
    asked = "aggregated/instances?filter=" + urllib.parse.quote("labels.lockstep-owner=me")
    found = gce.get(f"{asked}&returnPartialSuccess=true").json["items"]
    assert [zone for zone, each in found.items() if "instances" in each] == ["zones/us-central1-a"]
    cloud.faults.add({"zone": "us-central1-a", "times": -1, "do": {"kind": "unreachable"}})
    assert gce.get(asked).status == 503
    part = gce.get(f"{asked}&returnPartialSuccess=true").json
    assert part["unreachables"] == ["projects/lockstep-test/zones/us-central1-a"]
    assert not any("instances" in each for each in part["items"].values())


def test_a_gang_of_google_is_all_or_none(cloud):
    gce = Gce(cloud)
    bare = gce.instance()
    properties = {**{name: bare[name] for name in ("scheduling", "networkInterfaces", "labels")},
                  "machineType": "a2-highgpu-1g", "disks": [{**bare["disks"][0], "initializeParams": {
                      **bare["disks"][0]["initializeParams"], "diskType": "pd-balanced"}}]}
    body = {"count": "2", "minCount": "2", "instanceProperties": properties,
            "perInstanceProperties": {"ls-a-0": {}, "ls-a-1": {}}}
    cloud.faults.add({"action": "instances.bulkInsert", "do": {"kind": "capacity"}})
    done = gce.finished(gce.post("zones/us-central1-a/instances/bulkInsert", body))
    assert done["error"]["errors"][0]["code"] == "VM_MIN_COUNT_NOT_REACHED" and machines(cloud) == []
    cloud.faults.add({"zone": "us-central1-a", "times": -1, "do": {"kind": "capacity"}})
    gce.finished(gce.post("regions/us-central1/instances/bulkInsert", body))
    assert [(each["name"], each["zone"]) for each in machines(cloud)] == [
        ("ls-a-0", "us-central1-b"), ("ls-a-1", "us-central1-b")]


# Lambda and RunPod: compared only with their published documents.

def test_lambda_bills_until_somebody_ends_it(cloud):
    assert lambda_ask(cloud, "instance-operations/launch", LAUNCH).code == "global/object-does-not-exist"
    lambda_ask(cloud, "ssh-keys", {"name": "me", "public_key": "ssh-ed25519 AAAA me"})
    assert lambda_ask(cloud, "ssh-keys", {"name": "me", "public_key": "ssh-ed25519 AAAB me"}).code == "global/duplicate"
    ident = lambda_ask(cloud, "instance-operations/launch", LAUNCH).json["data"]["instance_ids"][0]
    again = lambda_ask(cloud, "instance-operations/launch", LAUNCH).json["data"]["instance_ids"][0]
    assert again != ident  # no idempotency: the same name twice
    running(cloud, 2)
    fake_cloud.control(cloud.url, f"machines/{ident}/poweroff", {})
    cloud.world.advance(HOUR)
    assert usd(cloud) == pytest.approx(2 * 0.75, rel=0.002)
    cloud.faults.add({"action": "terminate", "do": {"kind": "omit_id"}})
    said = lambda_ask(cloud, "instance-operations/terminate", {"instance_ids": [ident, again]}).json["data"]
    assert [each["id"] for each in said["terminated_instances"]] == [again]
    assert fake_cloud.control(cloud.url, "meter")["billed"] == []


@pytest.mark.parametrize("change, code", [
    ({"quantity": 1}, "global/invalid-parameters"), ({"ssh_key_names": []}, "global/invalid-parameters"),
    ({"name": "x" * 65}, "global/invalid-parameters"), ({"region_name": "mars"}, "global/invalid-parameters"),
    ({"tags": [{"key": "Upper", "value": "x"}]}, "global/invalid-parameters"),
    ({"image": {"family": "no-such"}}, "global/object-does-not-exist"),
    ({"region_name": "us-west-3"}, "instance-operations/launch/insufficient-capacity"),
])
def test_what_lambda_refuses(cloud, change, code):
    lambda_ask(cloud, "ssh-keys", {"name": "me", "public_key": "ssh-ed25519 AAAA me"})
    answer = lambda_ask(cloud, "instance-operations/launch", {**LAUNCH, **change})
    assert answer.code == code and machines(cloud) == []


def test_lambda_s_pauses(cloud):
    cloud.world.settings.update(limits=0.1)
    assert lambda_ask(cloud, "instances").status == 200
    assert (lambda_ask(cloud, "instances").status, lambda_ask(cloud, "images").status) == (429, 429)
    until(lambda: lambda_ask(cloud, "instances").status == 200, 20)
    assert lambda_ask(cloud, "instances", method="PUT").status == 404


def test_runpod_ends_what_has_an_end(cloud):
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(cloud.world.now() + HOUR))
    made = runpod_graphql(cloud, DEPLOY, {**POD, "terminateAfter": ends}).json["data"]["podFindAndDeployOnDemand"]
    running(cloud)
    seen = runpod_ask(cloud, f"v2/pods/{made['id']}").json
    assert seen["status"] == "RUNNING"
    assert seen["ssh"]["direct"] == {"host": "127.0.0.1", "port": 22, "username": "root",
                                     "command": "ssh root@127.0.0.1 -p 22"}
    assert seen["cost"] == pytest.approx(0.43 + 20 * 0.10 / 730, abs=1e-5)
    fake_cloud.control(cloud.url, f"machines/{made['id']}/poweroff", {})
    assert runpod_ask(cloud, f"v2/pods/{made['id']}").json["status"] == "EXITED"
    cloud.world.advance(HOUR + 1)
    assert runpod_ask(cloud, "v2/pods").json == {"pods": []}
    assert usd(cloud) == pytest.approx(seen["cost"], rel=0.002)
    assert fake_cloud.control(cloud.url, "meter")["billed"] == []


def test_a_pod_may_end_itself_only(cloud):
    for _ in range(2):
        assert runpod_graphql(cloud, DEPLOY, POD).code == ""
    one, two = cloud.world.machines.values()
    assert runpod_ask(cloud, f"v2/pods/{two.id}", method="DELETE", key=one.extra["key"]).status == 403
    assert runpod_ask(cloud, "v2/pods", key=one.extra["key"]).status == 403
    assert runpod_ask(cloud, f"v2/pods/{one.id}", method="DELETE", key=one.extra["key"]).status == 204
    assert [each["id"] for each in runpod_ask(cloud, "v2/pods").json["pods"]] == [two.id]


@pytest.mark.parametrize("query, given, code", [
    (DEPLOY, {**POD, "colour": "red"}, "GRAPHQL_VALIDATION_FAILED"),
    (DEPLOY.replace("desiredStatus", "colour"), POD, "GRAPHQL_VALIDATION_FAILED"),
    (DEPLOY.replace("{ id", "id"), POD, "GRAPHQL_VALIDATION_FAILED"),
    (DEPLOY, {**POD, "bidPerGpu": 0.3}, "BAD_USER_INPUT"),
    (DEPLOY, {**POD, "gpuTypeId": "NVIDIA B200"}, "SUPPLY_CONSTRAINT"),
    (DEPLOY, {**POD, "terminateAfter": "2020-01-01T00:00:00Z"}, "BAD_USER_INPUT"),
    (DEPLOY.replace("podFindAndDeployOnDemand", "podRentInterruptable"), {**POD, "bidPerGpu": 0.1},
     "SUPPLY_CONSTRAINT"),
])
def test_what_runpod_refuses(cloud, query, given, code):
    assert runpod_graphql(cloud, query, given).code == code
    assert machines(cloud) == []


def test_machines_of_others_are_listed(cloud):
    for given in ({"face": "gce", "zone": "us-west1-b", "labels": {"lockstep-owner": "them"}, "count": 3},
                  {"face": "ec2", "zone": "us-east-1a", "tags": {"lockstep:owner": "them"}}, {"face": "lambda"},
                  {"face": "runpod", "name": "theirs"}):
        fake_cloud.control(cloud.url, "foreign", given)
    gce, aws = Gce(cloud), cloud_clients.Aws(cloud)
    found = gce.get("aggregated/instances?filter=labels.lockstep-owner%3Dthem").json["items"]["zones/us-west1-b"]
    assert len(found["instances"]) == 3
    assert len(aws.ec2("DescribeInstances", Filter__1__Name="tag:lockstep:owner",
                       Filter__1__Value__1="them").all("instanceId")) == 1
    assert len(lambda_ask(cloud, "instances").json["data"]) == len(runpod_ask(cloud, "v2/pods").json["pods"]) == 1
    ident = aws.ec2("DescribeInstances").all("instanceId")[0]
    assert aws.ec2("TerminateInstances", InstanceId__1=ident).status == 200
    until(lambda: {each["id"]: each["state"] for each in machines(cloud)}[ident] == "gone")


def test_rights_at_google(cloud):
    cloud.world.settings["gce_denied"] = ["compute.instances.create"]
    gce = Gce(cloud)
    asked = {"permissions": ["compute.instances.create", "compute.instances.list"]}
    said = cloud_clients.ask(f"{cloud.url}/v1/projects/{cloud.keys.project}:testIamPermissions",
                             json.dumps(asked).encode(), gce.headers)
    assert said.json == {"permissions": ["compute.instances.list"]}


@pytest.mark.parametrize("what, code, status", [
    ({"kind": "capacity"}, "instance-operations/launch/insufficient-capacity", 400),
    ({"kind": "quota"}, "global/quota-exceeded", 400), ({"kind": "token_expired"}, "global/invalid-api-key", 401),
    ({"kind": "status", "status": 503, "retry_after": 3}, "global/internal-error", 503),
    ({"kind": "error", "code": "global/account-inactive", "status": 403}, "global/account-inactive", 403)])
def test_faults_of_lambda(cloud, what, code, status):
    lambda_ask(cloud, "ssh-keys", {"name": "me", "public_key": "ssh-ed25519 AAAA me"})
    cloud.faults.add({"face": "lambda", "action": "launch", "region": "us-east-1", "type": "gpu_1x_*", "do": what})
    answer = lambda_ask(cloud, "instance-operations/launch", LAUNCH)
    assert (answer.code, answer.status) == (code, status) and machines(cloud) == []
    assert lambda_ask(cloud, "instance-operations/launch", LAUNCH).status == 200  # once, and no more


@pytest.mark.parametrize("what, code, status", [
    ({"kind": "capacity"}, "There are no instances currently available", 400),
    ({"kind": "quota"}, "Your balance is too low to rent a pod", 402),
    ({"kind": "token_expired"}, "Invalid or missing API key.", 401),
    ({"kind": "status", "status": 429, "retry_after": 3}, "scripted", 429)])
def test_faults_of_runpod(cloud, what, code, status):
    cloud.faults.add({"face": "runpod", "action": "pods.create", "do": what})
    pod = {"name": "ls-x-0", "image": "runpod/base", "gpu": {"id": "NVIDIA L4", "count": 1}}
    answer = runpod_ask(cloud, "v2/pods", pod)
    assert (answer.code, answer.status) == (code, status) and machines(cloud) == []
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Retry-After"] == ("3" if status == 429 else None)


def test_machines_of_lambda_and_runpod_that_come_up_wrong(cloud):
    lambda_ask(cloud, "ssh-keys", {"name": "me", "public_key": "ssh-ed25519 AAAA me"})
    cloud.faults.add({"action": "launch", "do": {"kind": "trait", "unhealthy": True, "no_private_ip": True}})
    lambda_ask(cloud, "instance-operations/launch", LAUNCH)
    running(cloud)
    seen = lambda_ask(cloud, "instances").json["data"][0]
    assert seen["status"] == "unhealthy" and "private_ip" not in seen and "ip" in seen
    cloud.faults.add({"action": "graphql.*", "do": {"kind": "trait", "status": "ERROR", "no_ssh": True}})
    runpod_graphql(cloud, DEPLOY, POD)
    running(cloud, 2)
    pod = runpod_ask(cloud, "v2/pods").json["pods"][0]
    assert pod["status"] == "ERROR" and pod["ssh"]["direct"] is None


def metadata(service, path, method="GET", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return cloud_clients.ask(f"http://127.0.0.1:{service.server_address[1]}{path}", None, named, method)


@pytest.fixture
def service(tmp_path):
    def start(kind):
        made.append(metadata_service.Service(kind, tmp_path / "said.json"))
        threading.Thread(target=made[-1].serve_forever, args=(0.05,), daemon=True).start()
        return made[-1]
    made = []
    yield start
    for each in made:
        each.close()


def test_notice_at_ec2(service):
    ec2 = service("ec2")
    notice = "/latest/meta-data/spot/instance-action"
    assert metadata(ec2, "/latest/api/token", "PUT").status == 400
    lasts = {"X_aws_ec2_metadata_token_ttl_seconds": "60"}
    assert metadata(ec2, "/latest/api/token", "PUT", X_Forwarded_For="1.2.3.4", **lasts).status == 403
    token = {"X_aws_ec2_metadata_token": metadata(ec2, "/latest/api/token", "PUT", **lasts).text}
    assert metadata(ec2, notice).status == 401 and metadata(ec2, notice, **token).status == 404
    metadata_service.tell(ec2.state, instance_action={"action": "terminate", "time": "2026-11-23T08:00:00Z"})
    assert metadata(ec2, notice, **token).json == {"action": "terminate", "time": "2026-11-23T08:00:00Z"}


def test_notice_at_google(service):
    gce = service("gce")
    path, flavor = "/computeMetadata/v1/instance/preempted", {"Metadata_Flavor": "Google"}
    assert metadata(gce, path).status == 403
    said = metadata(gce, path, **flavor)
    assert said.text == "FALSE" and said.headers["Metadata-Flavor"] == "Google"
    late = metadata(gce, f"{path}?wait_for_change=true&timeout_sec=0.2&last_etag={said.headers['ETag']}", **flavor)
    assert late.text == "FALSE"
    waiting = f"{path}?wait_for_change=true&last_etag={said.headers['ETag']}"
    teller = threading.Timer(0.2, metadata_service.tell, (gce.state,), {"preempted": True})
    teller.start()
    assert metadata(gce, waiting, **flavor).text == "TRUE"
    teller.join(20)


def test_the_server_by_itself(tmp_path):
    program = pathlib.Path(fake_cloud.__file__)
    with killed_at_end(PYTHON, program, "--folder", tmp_path, stdout=subprocess.PIPE, text=True) as process:
        said = json.loads(process.stdout.readline())
        assert cloud_clients.ask(said["url"] + "/").text == "127.0.0.1\n"  # what checkip says
        assert pathlib.Path(said["env"]["GOOGLE_APPLICATION_CREDENTIALS"]).stat().st_mode & 0o077 == 0
        process.terminate()
        assert process.wait(20) == 0
