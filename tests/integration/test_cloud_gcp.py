"""Google Compute against a fake that checks tokens, schemas and limits: offers, launches with lost answers, refusals,
lists, termination. Each of our requests equals that of Google's own client."""
import json
import time

import pytest

from cloud_tool import INTENT, OWNER, FakeCloud, Tool, spec, until
from harness import REPOSITORY

import request_record

MODULES = REPOSITORY / ".cache/cloud-sdk/node_modules"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with FakeCloud(tmp_path_factory.mktemp("fake")) as made:
        yield made


@pytest.fixture
def cloud(shared):
    shared.reset()
    shared.world.advance(scale=1, skew=0)
    shared.world.settings.update(boot_s=0.0, end_s=0.0, operation_s=0.02, gce_capacity_s=0.02, delay_s=0, token_s=3599)
    yield shared
    assert shared.failures == [] and shared.world.errors == []


@pytest.fixture
def start(cloud, tmp_path):
    tools = []

    def begin(**env):
        folder = tmp_path / f"tool{len(tools)}"
        folder.mkdir()
        with (folder / "log").open("w") as log:
            tools.append(Tool("gcp", cloud, folder, log=log, LOCKSTEP_CLOUD_PACE="0.02", **env))
        return tools[-1]
    yield begin
    for tool in tools:
        tool.__exit__()


@pytest.fixture
def tool(start):
    return start()


def offer(tool, gpu="L4:1", zone="us-central1-b", **query):
    given = tool.ask("offers", gpu=gpu, **query)
    return next(each for each in given["offers"] if each["zone"] == zone)


def spec_for(wanted, **more):
    return {**spec(wanted, int(time.time() * 1000)), "disk_gb": 100, **more}


def launch(tool, wanted, **more):
    return tool.ask("launch", spec=wanted, **more)


def fault(cloud, kind, action="instances.insert", times=1, zone="*", **more):
    cloud.faults.add({"face": "gce", "action": action, "zone": zone, "times": times, "do": {"kind": kind, **more}})


def live(cloud):
    return cloud.world.live()


def asked(cloud, action):
    return [each for each in cloud.records if each["action"] == action]


# Offers.

@pytest.mark.parametrize("gpu, spot, zone", [
    ("L4:1", False, "europe-west4-a"), ("L4:8", True, "us-east1-b"), ("V100:1", True, "asia-east1-c"),
    ("V100:8", False, "us-central1-f"), ("T4:4", False, "us-west1-b"), ("A100-40GB:8", False, "us-central1-a"),
    ("A100-80GB:1", True, "europe-west4-a"), ("H100:8", False, "us-east1-d"), ("H100:1", True, "us-central1-c"),
    ("H200:8", True, "us-central1-b"), ("B200:8", True, "us-central1-b"), ("RTXPRO6000:1", False, "us-west1-b")])
def test_what_is_offered_is_what_is_billed(cloud, tool, gpu, spot, zone):
    wanted = offer(tool, gpu, zone, spot=spot)
    assert wanted["price_source"] == "live" and wanted["not_for_sale"] == ""
    assert launch(tool, spec_for(wanted))["outcome"]["kind"] == "answered"
    machine, = live(cloud)
    bills = {bill.what: bill.rate for bill in machine.bills}
    # Google's prices have nine digits, and each part is rounded to them before they are summed up.
    assert abs(wanted["price_micros_per_hour"] + wanted["extra_micros_per_hour"] - bills["machine"]) <= 1
    assert wanted["address_micros_per_hour"] == bills["address"]
    disk = wanted["disk_micros_per_gb_month"] * 100 / 730
    assert abs(disk - bills["disk"]) <= 1
    assert machine.spot == spot and machine.gpus == int(gpu.partition(":")[2])


def test_what_is_priced_but_not_for_sale_says_so(tool):
    for gpu in ("H100:1", "H200:8", "B200:8"):
        assert all("spot" in each["not_for_sale"] for each in tool.ask("offers", gpu=gpu)["offers"])


def test_offers_are_kept(cloud, tool, start):
    offer(tool)
    before = len(cloud.records)
    again = offer(tool, "V100:1", "us-central1-a")
    assert again["price_source"] == "cached" and len(cloud.records) == before
    assert offer(tool, fresh=True)["price_source"] == "live"


def test_without_a_price_list_the_table_stands_in(cloud, tool):
    cloud.faults.add({"face": "billing", "times": -1, "do": {"kind": "error", "code": "accessNotConfigured",
                                                            "message": "enable it at https://x", "status": 403}})
    given = tool.ask("offers", gpu="L4:1")["offers"]
    assert {each["price_source"] for each in given} == {"built in"}
    assert {each["note"] for each in given if each["region"] != "us-central1"} == {"us-central1's price"}
    four = tool.ask("offers", gpu="L4:4")
    assert four["offers"] == [] and "enable it at https://x" in four["silent"][0]["why"]


def test_a_region_that_nobody_reaches_is_named(cloud, tool):
    fault(cloud, "unreachable", action="*", times=-1, zone="us-east1-b")
    given = tool.ask("offers", gpu="L4:1", regions=["us-east1", "mars-north1"])
    assert {each["zone"] for each in given["offers"]} == {"us-east1-c", "us-east1-d"}
    assert [each["region"] for each in given["silent"]] == ["us-east1-b", "mars-north1"]
    listing = tool.ask("list", owner=OWNER)
    assert listing["machines"] == [] and [each["region"] for each in listing["unheard"]] == ["us-east1-b"]


# Launches.

def test_a_machine_from_launch_to_end(cloud, tool):
    wanted = spec_for(offer(tool, "V100:1", "us-central1-a", spot=True))
    made = launch(tool, wanted)
    assert made["outcome"]["ids"] == [f"ls-{INTENT}-1-0"]
    machine, = tool.running()
    assert (machine["id"], machine["node"], machine["user"]) == (f"ls-{INTENT}-1-0", 0, "ubuntu")
    assert machine["owner"] == OWNER and abs(machine["ends_ms"] - wanted["ends_ms"]) <= 1000
    booked, = live(cloud)
    assert booked.user_data == wanted["user_data"] and booked.public_key == f"ubuntu:{wanted['public_key']}"
    assert booked.extra["spec"].scheduling["instanceTerminationAction"] == "DELETE"
    assert "serviceAccounts" not in booked.extra["spec"].given and booked.disk_gb == 100
    rule, tags = asked(cloud, "firewalls.insert")[0]["params"], booked.extra["spec"].given["tags"]["items"]
    assert rule["sourceRanges"] == [wanted["allow_from"]] and rule["targetTags"] == tags
    assert tool.ask("end", machines=[machine]) == {"ok": True}
    assert tool.ask("end", machines=[machine]) == {"ok": True}  # gone already
    assert tool.machines(intent=INTENT) == [] and live(cloud) == []


def test_a_gang_is_one_call_and_all_or_none(cloud, tool):
    wanted = spec_for(offer(tool), count=3)
    fault(cloud, "trait", action="instances.bulkInsert", dies="Server.Error")
    refused = launch(tool, wanted)["outcome"]
    assert (refused["kind"], refused["code"]) == ("refused", "VM_MIN_COUNT_NOT_REACHED") and live(cloud) == []
    ids = launch(tool, {**wanted, "attempt": 2})["outcome"]["ids"]
    assert ids == [f"ls-{INTENT}-2-{node}" for node in range(3)]
    machines = tool.running(3)
    assert tool.ask("end", machines=machines) == {"ok": True} and live(cloud) == []


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("do", [{"kind": "cut", "when": "before"}, {"kind": "cut", "when": "after"}, {"kind": "half"},
                                {"kind": "cut_at", "bytes": 1}, {"kind": "status", "status": 500}])
def test_a_lost_answer_makes_no_second_machine(cloud, tool, do, count):
    wanted = spec_for(offer(tool), count=count)
    action = "instances.insert" if count == 1 else "instances.bulkInsert"
    cloud.faults.add({"face": "gce", "action": action, "times": 1, "do": do})
    made = launch(tool, wanted)
    outcome = made["outcome"]
    if outcome["kind"] == "unknown":
        outcome = tool.ask("resolve", spec=wanted, call=made["call"])["outcome"]
    assert outcome["kind"] == "answered" and len(outcome["ids"]) == len(live(cloud)) == count
    # Asked once more, as after a crash: the same machines.
    assert tool.ask("resolve", spec=wanted, call=made["call"])["outcome"]["ids"] == outcome["ids"]
    assert launch(tool, wanted, call=made["call"])["outcome"]["ids"] == outcome["ids"]
    assert len(live(cloud)) == count


def test_what_was_never_made_is_not_made_by_asking_late(cloud, tool):
    wanted = spec_for(offer(tool))
    call = tool.ask("prepare", spec=wanted)["call"]
    late = tool.ask("resolve", spec=wanted, call=call, age_ms=20 * 60_000)["outcome"]
    assert (late["kind"], late["code"]) == ("refused", "") and live(cloud) == []


def test_a_name_that_is_taken_is_ours_only_by_its_labels(cloud, tool):
    wanted = spec_for(offer(tool))
    made = launch(tool, wanted)
    for label, outcome in (("lockstep-ends", "answered"), ("lockstep-intent", "refused")):
        live(cloud)[0].tags[label] = "another"
        other = made["call"]["target"][:-1] + "de"[outcome == "refused"]  # of another requestId
        call = {**made["call"], "target": other}
        assert launch(tool, wanted, call=call)["outcome"]["kind"] == outcome
    assert len(live(cloud)) == 1


@pytest.mark.parametrize("do, refusal, code", [
    ({"kind": "capacity", "after_s": 0.3}, "next_zone", "ZONE_RESOURCE_POOL_EXHAUSTED"),
    ({"kind": "quota"}, "next_region", "QUOTA_EXCEEDED"),
    ({"kind": "error", "code": "quotaExceeded", "status": 403}, "next_region", "quotaExceeded"),
    ({"kind": "error", "code": "accessNotConfigured", "status": 403}, "provider_out", "accessNotConfigured"),
    ({"kind": "error", "code": "neverSeen", "status": 400}, "unknown", "neverSeen")])
def test_refusals_have_a_meaning(cloud, tool, do, refusal, code):
    wanted = spec_for(offer(tool))
    cloud.faults.add({"face": "gce", "action": "instances.insert", "times": 1, "do": do})
    outcome = launch(tool, wanted)["outcome"]
    assert (outcome["kind"], outcome["refusal"], outcome["code"]) == ("refused", refusal, code)
    assert live(cloud) == []
    # And the next zone is asked without looking anything up again.
    before = len(cloud.records)
    assert launch(tool, spec_for(offer(tool, zone="us-central1-c"), attempt=2))["outcome"]["kind"] == "answered"
    assert {each["action"] for each in cloud.records[before:]} == {"instances.insert", "zoneOperations.wait"}


def test_what_is_refused_everywhere_says_so(cloud, tool):
    wanted = spec_for(offer(tool))
    assert launch(tool, {**wanted, "image": "no-such"})["outcome"]["refusal"] == "stop"
    assert launch(tool, {**wanted, "image": "No Such"})["outcome"]["refusal"] == "stop"
    gone = spec_for({**offer(tool, "A100-40GB:8", "us-central1-a"), "zone": "us-central1-b"}, attempt=2)
    assert launch(tool, gone)["outcome"]["refusal"] == "next_zone"
    cloud.face("gce").change("quota", {"metric": "GPUS_ALL_REGIONS", "limit": 0})
    try:
        assert launch(tool, {**wanted, "attempt": 3})["outcome"]["refusal"] == "provider_out"
    finally:
        cloud.face("gce").change("quota", {"metric": "GPUS_ALL_REGIONS", "limit": 32})


@pytest.mark.parametrize("do", [{"kind": "status", "status": 503}, {"kind": "status", "status": 429, "retry_after": 1},
                                {"kind": "error", "code": "rateLimitExceeded", "status": 403},
                                {"kind": "token_expired"}])
def test_a_busy_google_is_asked_again(cloud, tool, do):
    wanted = spec_for(offer(tool))
    cloud.faults.add({"face": "gce", "action": "instances.insert", "times": 1, "do": do})
    assert launch(tool, wanted)["outcome"]["kind"] == "answered"
    first, second = asked(cloud, "instances.insert")
    assert first["query"] == second["query"] and first["params"] == second["params"] and len(live(cloud)) == 1


# Ends.

def test_a_machine_that_google_takes(cloud, tool):
    launch(tool, spec_for(offer(tool, spot=True)))
    machine, = tool.running()
    cloud.world.notify(live(cloud)[0], 0)
    taken, = until(lambda: [each for each in tool.machines(intent=INTENT, owner=OWNER) if each["taken"]], 20)
    assert (taken["id"], taken["state"], taken["why"]) == (machine["id"], "gone", "preempted")


def test_a_guest_that_went_down_is_still_billed_for_its_disk(cloud, tool):
    launch(tool, spec_for(offer(tool)))
    tool.running()
    booked, = live(cloud)
    cloud.world.power_off(booked)
    stopped = until(lambda: [each for each in tool.machines(owner=OWNER) if each["state"] == "stopped"], 20)
    assert booked.billed()
    assert tool.ask("end", machines=stopped) == {"ok": True}
    assert not booked.billed() and tool.machines(owner=OWNER) == []


def test_the_lifetime_ends_it_without_us(cloud, tool):
    launch(tool, spec_for(offer(tool)))
    booked, = live(cloud)
    cloud.world.advance(7201)
    until(lambda: not live(cloud), 20)
    assert not booked.billed()


def test_another_address_is_let_in_and_the_old_one_out(cloud, tool):
    launch(tool, spec_for(offer(tool)))
    assert tool.ask("allow", region="us-central1", cidr="203.0.113.9/32") == {"ok": True}
    rules = cloud.face("gce").lists.firewalls
    assert rules[f"lockstep-ssh-{OWNER}"]["sourceRanges"] == ["203.0.113.9/32"]
    assert tool.ask("clean") == {"ok": True} and f"lockstep-ssh-{OWNER}" not in rules
    assert tool.ask("clean") == {"ok": True}


# Keys.

def test_a_user_s_keys_and_a_clock_that_is_off(cloud, start, tmp_path):
    user = start(GOOGLE_APPLICATION_CREDENTIALS=str(cloud.folder / "gcp_user.json"),
                 GOOGLE_CLOUD_PROJECT="lockstep-test")
    assert user.ask("account")["account"].startswith("project lockstep-test")
    cloud.world.advance(skew=3600)
    late = start()
    assert "tester@" in late.ask("account")["account"]
    assert "clock is off by 3" in (tmp_path / "tool1/log").read_text()


def test_tokens_of_gcloud(cloud, start, tmp_path):
    start().ask("account")
    token = list(cloud.face("gce").tokens)[-1]
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "gcloud"
    program.write_text(f"#!/bin/sh\n[ \"$*\" = 'auth print-access-token' ] && echo {token}\n")
    program.chmod(0o755)
    (tmp_path / "sdk/configurations").mkdir(parents=True)
    (tmp_path / "sdk/credentials.db").touch()
    (tmp_path / "sdk/configurations/config_default").write_text("[core]\nproject = lockstep-test\n")
    env = {"GOOGLE_APPLICATION_CREDENTIALS": None, "CLOUDSDK_CONFIG": str(tmp_path / "sdk"),
           "PATH": f"{folder}:/usr/bin:/bin"}
    assert start(**env).ask("account") == {"account": "project lockstep-test, keys of gcloud"}
    program.write_text("#!/bin/sh\necho 'ERROR: no active account' >&2; exit 1\n")
    said = start(**env).ask("account")
    assert "no active account" in said["error"] and said["error"].count("\n") == 0


def test_keys_that_are_missing_or_wrong_are_said_in_one_line(cloud, start, tmp_path):
    nothing = start(GOOGLE_APPLICATION_CREDENTIALS=None)
    assert nothing.ask("offers", gpu="L4:1")["silent"][0]["no_keys"]
    key = json.loads((cloud.folder / "gcp.json").read_text())
    for change, words in (({"client_email": "somebody@else"}, "invalid_grant"), ({"private_key": "hunter2"}, "key"),
                          ({"type": "external_account"}, "gcloud"),
                          ({"token_uri": "http://192.0.2.1/token"}, "plain http")):
        path = tmp_path / "wrong.json"
        path.write_text(json.dumps({**key, **change}))
        said = start(GOOGLE_APPLICATION_CREDENTIALS=str(path), PATH="/bin").ask("account")
        assert words in said["error"] and "\n" not in said["error"], said
        assert "hunter2" not in json.dumps(said) and "PRIVATE" not in json.dumps(said)


def test_an_endpoint_that_refuses_or_shows_keys(start):
    for endpoint, words in (("http://127.0.0.1:9", "refused"), ("http://192.0.2.1", "plain http")):
        tool = start(LOCKSTEP_GCE_ENDPOINT=endpoint)
        begun = time.monotonic()
        silent, = tool.ask("offers", gpu="L4:1")["silent"]
        assert words in silent["why"] and time.monotonic() - begun < 10


def test_the_check_costs_nothing(cloud, tool):
    found = {each["what"]: each for each in tool.ask("check")["findings"]}
    assert not [each for each in found.values() if each["kind"] == "bad"]
    assert any("image for V100-16GB: " in what for what in found)
    assert found["the rule default-allow-ssh opens port 22 of all machines to everybody"]["kind"] == "note"
    assert cloud.world.machines == {}
    assert {each["method"] for each in cloud.records if each["face"] == "gce"} == {"GET"}


def test_rights_that_are_missing_are_named_with_the_role_that_has_them(cloud, tool):
    cloud.world.settings["gce_denied"] = ["compute.instances.create"]
    try:
        bad, = [each for each in tool.ask("check")["findings"] if each["kind"] == "bad"]
    finally:
        cloud.world.settings["gce_denied"] = []
    assert bad["what"] == "rights are missing: compute.instances.create"
    rights = asked(cloud, "projects.testIamPermissions")[0]["params"]["permissions"]
    assert all(each.startswith("compute.") for each in rights) and "compute.globalOperations.list" in rights
    assert bad["hint"].startswith("gcloud iam roles create lockstep --project lockstep-test --permissions compute.")
    assert "serviceAccount:tester@" in bad["hint"]


# Beside Google's own client.

def test_our_requests_are_those_of_google_s_client(cloud, tool):
    assert MODULES.is_dir(), f"{MODULES} is not there: run ./dev cloud-sdk first"
    tool.ask("check")
    for attempt, (gpu, zone, count, more) in enumerate((
            ("V100:2", "us-central1-a", 1, {"spot": True}), ("L4:1", "us-central1-b", 3, {}),
            ("RTXPRO6000:1", "us-central1-b", 1, {})), 1):
        assert launch(tool, spec_for(offer(tool, gpu, zone, **more), attempt=attempt, count=count))["outcome"]["ids"]
    machines = tool.running(5)
    tool.machines()
    tool.ask("allow", region="us-central1", cidr="203.0.113.9/32")
    tool.ask("end", machines=machines)
    tool.machines(intent=INTENT)
    tool.ask("clean")
    ours = [each for each in cloud.records if each["face"] == "gce"]
    sdk, seen = request_record.Sdk(cloud.url, cloud.env, MODULES), set()
    try:
        for record in ours:
            at = len(cloud.records)
            sdk.run(*request_record.sdk_call(record))
            theirs = next(each for each in cloud.records[at:] if each["face"] == "gce")
            assert request_record.differences(record, theirs) == [], record
            seen.add(record["action"])
    finally:
        sdk.close()
    assert seen >= {"projects.get", "regions.list", "machineTypes.aggregatedList", "acceleratorTypes.aggregatedList",
                    "images.getFromFamily", "images.list", "networks.get", "firewalls.get", "firewalls.insert",
                    "firewalls.patch", "firewalls.delete", "instances.insert", "instances.bulkInsert",
                    "instances.aggregatedList", "instances.delete", "zoneOperations.wait", "globalOperations.wait",
                    "globalOperations.aggregatedList"}
