"""AWS EC2 against a fake that verifies each signature and knows the models of the requests: offers, launches with lost
answers, refusals, lists, termination, permissions."""
import http.server
import json
import os
import pathlib
import threading
import time

import pytest

from cloud_tool import INTENT, OWNER, FakeCloud, Tool, cloud_keys, spec, until

KEYS = {"AccessKeyId": cloud_keys.AWS_KEY, "SecretAccessKey": cloud_keys.AWS_SECRET}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with FakeCloud(tmp_path_factory.mktemp("fake")) as made:
        yield made


@pytest.fixture
def cloud(shared):
    shared.reset()
    shared.world.advance(skew=0)
    yield shared
    assert shared.failures == [] and shared.world.errors == []


class AwsTool(Tool):
    def __init__(self, cloud, folder, **env):
        folder.mkdir(exist_ok=True)
        self.folder, self.log = folder, folder / "log"
        with self.log.open("w") as log:
            super().__init__("aws", cloud, folder, log=log, LOCKSTEP_CLOUD_PACE="0.02", **env)

    def launch(self, wanted, **more):
        return self.ask("launch", spec=wanted, **more)["outcome"]

    def machines(self, **query):
        listing = self.ask("list", **query)
        assert listing["unheard"] == [], listing
        return listing["machines"]


def spec_for(offer, **more):
    return {**spec(offer, int(time.time() * 1000)), "disk_gb": 100, **more}


@pytest.fixture
def start(cloud, tmp_path):
    tools = []

    def begin(**env):
        tools.append(AwsTool(cloud, tmp_path / f"tool{len(tools)}", **env))
        return tools[-1]
    yield begin
    for tool in tools:
        tool.__exit__()


@pytest.fixture
def tool(start):
    return start()


def offers(tool, gpu="L4:1", **query):
    catalog = tool.ask("offers", gpu=gpu, **query)
    assert catalog["silent"] == [], catalog["silent"]
    return catalog["offers"]


def offer_in(tool, zone, gpu="L4:1", **query):
    return next(offer for offer in offers(tool, gpu, **query) if offer["zone"] == zone)


def asked(cloud, action):
    return [record for record in cloud.records if record["action"] == action]


def live(cloud):
    return [machine.id for machine in cloud.world.live()]


# Keys.


def test_no_keys_are_said(start):
    tool = start(AWS_SHARED_CREDENTIALS_FILE="/proc/none", AWS_CONFIG_FILE="/proc/none")
    assert "no keys" in tool.ask("keys")["error"]
    silent = tool.ask("offers", gpu="L4:1")["silent"]
    assert [each["no_keys"] for each in silent] == [True]


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_half_a_pair_is_an_error(start, name):
    said = start(**{name: "x"}).ask("keys")
    assert "is set and" in said["error"] and name in said["error"]


def test_wrong_keys_are_named_and_not_shown(start, cloud):
    tool = start(AWS_ACCESS_KEY_ID=cloud_keys.AWS_KEY, AWS_SECRET_ACCESS_KEY="notTheSecret")
    why = tool.ask("offers", gpu="L4:1")["silent"][0]["why"]
    assert "AuthFailure" in why and "notTheSecret" not in why
    assert why.endswith("the keys are those of AWS_ACCESS_KEY_ID")
    assert tool.ask("account")["error"].startswith("GetCallerIdentity in us-east-1: SignatureDoesNotMatch")


def test_an_unknown_profile_is_named(start):
    assert "'nobody'" in start(AWS_PROFILE="nobody").ask("keys")["error"]


def config_with(folder, text, monkey=None):
    path = pathlib.Path(folder) / "config"
    path.write_text(text)
    return {"AWS_CONFIG_FILE": str(path), "AWS_SHARED_CREDENTIALS_FILE": "/proc/none", **(monkey or {})}


def program(folder, name, printed, code=0):
    path = pathlib.Path(folder) / name
    path.write_text(f"#!/bin/sh\necho \"$0 $@\" >>'{folder}/calls'\ncat <<'E'\n{json.dumps(printed)}\nE\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_a_credential_process_runs_without_a_shell(start, tmp_path):
    made = program(tmp_path, "my keys", {"Version": 1, **KEYS})
    command = f"\"{made}\" 'a b' $(touch {tmp_path}/evil)"
    tool = start(**config_with(tmp_path, f"[default]\ncredential_process = {command}\n"))
    assert "account 123456789012" in tool.ask("account")["account"]
    assert not (tmp_path / "evil").exists()
    assert "a b $(touch" in (tmp_path / "calls").read_text()


def test_a_role_is_assumed_with_other_keys(start, cloud, tmp_path):
    text = ("[profile work]\nrole_arn = arn:aws:iam::1:role/gpu\nsource_profile = base\nregion = us-west-2\n"
            f"[profile base]\naws_access_key_id = {KEYS['AccessKeyId']}\n"
            f"aws_secret_access_key = {KEYS['SecretAccessKey']}\n")
    tool = start(**config_with(tmp_path, text, {"AWS_PROFILE": "work"}))
    assert offers(tool)
    assert len(asked(cloud, "AssumeRole")) == 1
    assert any(key.startswith("ASIA") for key in cloud.face("ec2").credentials)
    # The keys are valid for an hour. Then they are fetched again.
    for made in cloud.face("ec2").credentials.values():
        if made["token"]:
            made["expires"] = cloud.world.now() - 1
    assert tool.machines(regions=["us-east-1"]) == []
    assert len(asked(cloud, "AssumeRole")) == 2
    assert (tmp_path / "config").read_text() == text


def test_a_denied_role_says_so(start, tmp_path):
    text = ("[default]\nrole_arn = arn:aws:iam::1:role/denied\nsource_profile = base\n[profile base]\n"
            f"aws_access_key_id = {KEYS['AccessKeyId']}\naws_secret_access_key = {KEYS['SecretAccessKey']}\n")
    assert "AssumeRole in us-east-1: AccessDenied" in start(**config_with(tmp_path, text)).ask("account")["error"]


def test_the_aws_program_knows_the_rest(start, tmp_path):
    program(tmp_path, "aws", {"Version": 1, **KEYS})
    tool = start(**config_with(tmp_path, "[default]\nsso_start_url = https://x.example/start\n"),
                 PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert "tester" in tool.ask("account")["account"]
    assert "configure export-credentials --format process" in (tmp_path / "calls").read_text()


def test_a_machine_of_aws_has_keys_of_its_own(start, tmp_path):
    class Metadata(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def say(self, text):
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_PUT(self):
            assert self.headers["X-aws-ec2-metadata-token-ttl-seconds"] and self.path == "/latest/api/token"
            self.say("proof")

        def do_GET(self):
            assert self.headers["X-aws-ec2-metadata-token"] == "proof"
            self.say("role\n" if self.path.endswith("/") else json.dumps(KEYS))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    tool = start(AWS_SHARED_CREDENTIALS_FILE="/proc/none", AWS_CONFIG_FILE="/proc/none", AWS_EC2_METADATA_DISABLED=None,
                 AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://127.0.0.1:{server.server_address[1]}/")
    assert "tester" in tool.ask("account")["account"]
    server.shutdown()
    server.server_close()


def test_files_that_others_may_read_are_noted(start, cloud, tmp_path):
    path = tmp_path / "credentials"
    path.write_text(pathlib.Path(cloud.env["AWS_SHARED_CREDENTIALS_FILE"]).read_text())
    path.chmod(0o644)
    found = start(AWS_SHARED_CREDENTIALS_FILE=str(path)).ask("check")["findings"]
    note, = [each for each in found if each["kind"] == "note"]
    assert note["hint"] == f"chmod 600 {path}"


# Offers.


def test_offers_are_of_usable_zones_with_their_ids(tool, cloud):
    catalog = cloud.world.catalog["aws"]["regions"]
    for offer in offers(tool):
        assert catalog[offer["region"]]["zones"][offer["zone"]] == offer["zone_id"]
        assert catalog[offer["region"]].get("opted_in", True)
        assert (offer["price_source"], offer["disk_micros_per_gb_month"]) == ("live", 80_000)
    assert {offer["region"] for offer in offers(tool)} > {"us-east-1", "eu-west-1"}


def test_spot_is_live_in_each_zone_and_says_where_there_is_no_market(tool, cloud):
    cloud.face("ec2").change("price", {"type": "g6.xlarge", "zone": "us-east-1b", "spot": True, "usd": 0.123456})
    cloud.face("ec2").change("price", {"type": "g6.xlarge", "zone": "us-east-1a", "spot": True, "usd": 0.9})
    found = offers(tool, spot=True)
    assert next(each for each in found if each["zone"] == "us-east-1b")["price_micros_per_hour"] == 123_456
    assert "no cheaper" in next(each for each in found if each["zone"] == "us-east-1a")["note"]
    floors = {each["region"] for each in found if each["floor_price"]}
    regions = cloud.world.catalog["aws"]["regions"]
    assert floors == {name for name, each in regions.items() if each.get("spot") == "floor"}


def test_what_is_kept_is_not_asked_again(tool, cloud):
    first = offers(tool)
    before = len(cloud.records)
    again = offers(tool)
    assert len(cloud.records) == before
    assert {offer["price_source"] for offer in again} == {"cached"}
    assert again[0]["price_as_of_ms"] == first[0]["price_as_of_ms"]
    assert {offer["price_source"] for offer in offers(tool, fresh=True)} == {"live"}


def test_without_the_right_to_prices_only_the_built_in_ones_are_sold(tool, cloud):
    cloud.faults.add({"action": "GetProducts", "times": -1,
                      "do": {"kind": "error", "code": "AccessDeniedException", "message": "no", "status": 400}})
    for offer in offers(tool):
        if offer["region"] == "us-east-1":
            assert (offer["price_source"], offer["price_micros_per_hour"]) == ("built in", 804_800)
        else:
            assert "pricing:GetProducts" in offer["not_for_sale"]


def test_capacity_blocks_are_not_for_sale(tool):
    found = offers(tool, "H200:8")
    assert {each["not_for_sale"] for each in found if each["type"] == "p5e.48xlarge"} == {"only in capacity blocks"}
    assert not any(each["not_for_sale"] for each in found if each["type"] == "p5en.48xlarge")


def test_a_quota_of_none_is_said_with_its_link(tool, cloud):
    cloud.face("ec2").change("quota", {"region": "us-east-1", "code": "L-417A185B", "limit": 0})
    quota = next(each for each in offers(tool, "H100:8") if each["region"] == "us-east-1")["quota"]
    assert (quota["limit"], quota["needed"], quota["unit"]) == (0, 192, "vCPUs")
    assert quota["link"].endswith("/ec2/quotas/L-417A185B")


def test_a_dead_region_is_named_and_the_others_go_on(tool, cloud):
    cloud.faults.add({"region": "eu-west-1", "times": -1, "do": {"kind": "stall", "seconds": 12}})
    begun = time.monotonic()
    catalog = tool.ask("offers", gpu="L4:1")
    assert time.monotonic() - begun < 20
    assert [each["region"] for each in catalog["silent"]] == ["eu-west-1"]
    assert {each["region"] for each in catalog["offers"]} >= {"us-east-1", "us-west-2"}


def test_a_region_that_is_none_is_a_line(tool):
    silent = tool.ask("offers", gpu="L4:1", regions=["evil.example/x"])["silent"]
    assert silent[0]["region"] == "evil.example/x" and silent[0]["why"]


# Launches.


def test_a_launch_has_all_that_it_must_have(tool, cloud):
    offer = offer_in(tool, "us-east-1b", spot=True)
    outcome = tool.launch(spec_for(offer, count=2, max_spot=700_000))
    assert outcome["kind"] == "answered" and len(outcome["ids"]) == 2
    for machine in cloud.world.live():
        assert (machine.zone, machine.spot, machine.disk_gb) == ("us-east-1b", True, 100)
        assert machine.extra["shutdown"] == "terminate" and machine.extra["tokens"] == "required"
        assert all(disk["delete"] for disk in machine.extra["disks"].values())
        assert machine.tags["lockstep:owner"] == OWNER and machine.tags["lockstep:ends"].endswith("Z")
        assert machine.extra["volume_tags"]["lockstep:intent"] == INTENT
        assert machine.user_data == "#cloud-config\n"
    group, = cloud.face("ec2").places.groups.values()
    assert group["name"] == f"lockstep-{OWNER}"
    assert sorted(rule[3:] for rule in group["rules"]) == [("cidr", "198.51.100.7/32"), ("group", group["id"])]
    assert len(asked(cloud, "AuthorizeSecurityGroupIngress")) == 1
    # The next zone of the region needs nothing more.
    before = len(cloud.records)
    tool.launch(spec_for(offer_in(tool, "us-east-1c", spot=True), attempt=2))
    assert [record["action"] for record in cloud.records[before:]] == ["RunInstances"]
    tokens = [record["params"].get("ClientToken") for record in asked(cloud, "RunInstances")]
    assert tokens[0] is None and tokens[1] != tokens[2] and len(tokens) == 3


@pytest.mark.parametrize("fault", [{"kind": "cut", "when": "before"}, {"kind": "cut", "when": "after"},
                                   {"kind": "half"}, {"kind": "cut_at", "bytes": 1}, {"kind": "status", "status": 503}])
def test_a_lost_answer_makes_no_second_machine(tool, cloud, fault):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    call = tool.ask("prepare", spec=wanted)["call"]
    cloud.faults.add({"action": "RunInstances", "times": 2, "do": fault})
    outcome = tool.launch(wanted, call=call)
    assert outcome["kind"] == "answered" and outcome["ids"] == live(cloud)
    bodies = {json.dumps(record["params"], sort_keys=True) for record in asked(cloud, "RunInstances")[-3:]}
    assert len(bodies) == 1


def test_a_launch_without_any_answer_is_unknown_until_it_is_resolved(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    call = tool.ask("prepare", spec=wanted)["call"]
    fault = cloud.faults.add({"action": "RunInstances", "times": -1, "do": {"kind": "cut", "when": "after"}})
    assert tool.launch(wanted, call=call)["kind"] == "unknown"
    assert tool.ask("resolve", spec=wanted, call=call, age_ms=1000)["outcome"]["kind"] == "unknown"
    cloud.faults.remove(fault)
    for age_ms in (1000, 120_000):
        outcome = tool.ask("resolve", spec=wanted, call=call, age_ms=age_ms)["outcome"]
        assert outcome["kind"] == "answered" and outcome["ids"] == live(cloud), age_ms


def test_what_never_came_through_is_not_launched_later(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    call = tool.ask("prepare", spec=wanted)["call"]
    outcome = tool.ask("resolve", spec=wanted, call=call, age_ms=61_000)["outcome"]
    assert (outcome["kind"], outcome["code"]) == ("refused", "")
    assert live(cloud) == []


def test_a_machine_that_is_not_listed_yet_is_found_by_its_token(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    call = tool.ask("prepare", spec=wanted)["call"]
    cloud.faults.add({"action": "RunInstances", "do": {"kind": "trait", "not_listed_s": 3600}})
    made = tool.launch(wanted, call=call)["ids"]
    assert tool.machines(intent=wanted["intent"]) == []
    assert tool.ask("resolve", spec=wanted, call=call, age_ms=5000)["outcome"]["ids"] == made == live(cloud)


def test_a_token_whose_machine_is_gone_is_found_gone(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    made = tool.ask("launch", spec=wanted)
    tool.ask("end", machines=[{"id": made["outcome"]["ids"][0], "region": "us-east-1"}])
    outcome = tool.ask("resolve", spec=wanted, call=made["call"], age_ms=1000)["outcome"]
    assert outcome["ids"] == made["outcome"]["ids"]
    until(lambda: live(cloud) == [], 10, "its end")


def test_other_words_under_the_same_token_launch_nothing(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    made = tool.ask("launch", spec=wanted)
    other = {**made["call"], "body": made["call"]["body"].replace("VolumeSize=100", "VolumeSize=200")}
    assert tool.launch(wanted, call=other)["ids"] == made["outcome"]["ids"] == live(cloud)


def test_a_zone_without_room_names_those_that_have_some(tool, cloud):
    cloud.face("ec2").change("stock", {"type": "g6.xlarge", "zone": "us-east-1b", "none": True})
    outcome = tool.launch(spec_for(offer_in(tool, "us-east-1b")))
    assert (outcome["refusal"], outcome["code"]) == ("next_zone", "InsufficientInstanceCapacity")
    assert "us-east-1b" not in outcome["zones_to_try"] and "us-east-1a" in outcome["zones_to_try"]
    assert len([each for each in asked(cloud, "RunInstances") if "DryRun" not in each["params"]]) == 1


@pytest.mark.parametrize("code, status, refusal", [
    ("Unsupported", 400, "next_zone"), ("SpotMaxPriceTooLow", 400, "next_zone"),
    ("VcpuLimitExceeded", 400, "next_region"), ("OptInRequired", 401, "next_region"),
    ("AuthFailure", 401, "next_region"), ("PendingVerification", 400, "provider_out"),
    ("InvalidParameterValue", 400, "stop"), ("SomethingNew", 400, "unknown")])
def test_refusals_say_what_to_do(tool, cloud, code, status, refusal):
    wanted = spec_for(offer_in(tool, "us-west-2a"))
    cloud.faults.add({"action": "RunInstances", "times": -1,
                      "do": {"kind": "error", "code": code, "message": "because\nof \u0085this", "status": status}})
    outcome = tool.launch(wanted)
    assert (outcome["kind"], outcome["refusal"], outcome["code"]) == ("refused", refusal, code)
    assert "us-west-2" in outcome["message"] and "\n" not in outcome["message"] and "\u0085" not in outcome["message"]


def test_a_missing_right_is_found_before_anything_is_rented(tool, cloud):
    cloud.faults.add({"action": "RunInstances", "times": -1, "do": {
        "kind": "error", "code": "UnauthorizedOperation", "status": 403,
        "message": "You are not authorized. Encoded authorization failure message: BLOB"}})
    outcome = tool.launch(spec_for(offer_in(tool, "us-east-1b")))
    assert outcome["refusal"] == "provider_out" and "BLOB" not in outcome["message"]
    assert "lockstep cloud check aws" in outcome["message"]
    assert [record["params"]["DryRun"] for record in asked(cloud, "RunInstances")] == ["true"]


def test_values_that_would_be_refused_anywhere_stop(tool, cloud):
    offer = offer_in(tool, "us-east-1b")
    for more in ({"user_data": "x" * 16385}, {"image": "ubuntu"}, {"image": "ami-00000000000000000"}):
        assert tool.launch(spec_for(offer, **more))["refusal"] == "stop", more
    assert live(cloud) == []


def test_throttling_is_waited_for_with_the_same_call(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    call = tool.ask("prepare", spec=wanted)["call"]
    cloud.faults.add({"action": "RunInstances", "times": 3, "do": {"kind": "status", "status": 503, "retry_after": 1}})
    assert tool.launch(wanted, call=call)["kind"] == "answered"
    assert len(live(cloud)) == 1


def test_an_image_that_was_taken_back_is_looked_for_again(start, cloud):
    tool = start()
    offer = offer_in(tool, "us-east-1b")
    assert tool.ask("prepare", spec=spec_for(offer))["call"]
    kept, = (tool.folder / "cache").glob("*-image-us-east-1-x86_64.kept")
    kept.write_text(kept.read_text().replace("ami-0", "ami-f"))
    with AwsTool(cloud, tool.folder) as again:
        assert again.launch(spec_for(offer))["kind"] == "answered"


def test_without_aws_parameter_the_newest_image_is_taken(tool, cloud):
    cloud.faults.add({"action": "GetParameter", "times": -1,
                      "do": {"kind": "error", "code": "AccessDeniedException", "message": "", "status": 400}})
    assert tool.launch(spec_for(offer_in(tool, "us-east-1b")))["kind"] == "answered"
    machine, = cloud.world.live()
    image = next(each for each in cloud.face("ec2").places.images if each["id"] == machine.image)
    assert "24.04" in image["name"] and "OSS" in image["name"]


def test_older_gpus_get_the_driver_that_knows_them(tool, cloud):
    assert tool.launch(spec_for(offers(tool, "V100:8")[0]))["kind"] == "answered"
    machine, = cloud.world.live()
    image = next(each for each in cloud.face("ec2").places.images if each["id"] == machine.image)
    assert "Proprietary" in image["name"] and image["deprecated"]  # AWS makes no newer one


# The list, and the end.


def test_a_machine_that_dies_for_want_of_room_says_so(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    tool.ask("prepare", spec=wanted)
    cloud.faults.add({"action": "RunInstances",
                      "do": {"kind": "trait", "dies": "Server.InsufficientInstanceCapacity", "dies_after_s": 0.1}})
    assert tool.launch(wanted)["kind"] == "answered"
    until(lambda: tool.machines(intent=wanted["intent"])[0]["state"] == "gone", 10, "its end")
    assert tool.machines(intent=wanted["intent"])[0]["no_room"]


def test_machines_are_listed_over_all_regions_and_ended(tool, cloud):
    for number, zone in enumerate(("us-east-1b", "eu-west-1a", "us-west-2a")):
        tool.launch(spec_for(offer_in(tool, zone), intent=f"intent0000000000000{number}"))
    tool.launch(spec_for(offer_in(tool, "us-west-2b"), intent="other000000000000000", owner="owner00000000002"))
    until(lambda: all(each["state"] == "running" for each in tool.machines()), 20, "all of them to run")
    mine = tool.machines(owner=OWNER)
    assert {each["region"] for each in mine} == {"us-east-1", "eu-west-1", "us-west-2"}
    assert len(tool.machines()) == 4
    assert all(each["user"] == "ubuntu" and each["address"] and each["launched_ms"] for each in mine)
    gone = {"id": "i-00000000000000000", "region": "us-east-1"}
    assert tool.ask("end", machines=mine + [gone]) == {"ok": True}
    assert tool.ask("end", machines=mine) == {"ok": True}
    until(lambda: len(live(cloud)) == 1, 10, "the end of ours")
    assert {each["state"] for each in tool.machines(owner=OWNER)} == {"gone"}


def test_spot_that_is_taken_is_told_from_what_we_ended(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b", spot=True))
    tool.launch(wanted)
    machine, = cloud.world.live()
    cloud.world.notify(machine, 0.1)
    until(lambda: tool.machines(intent=wanted["intent"])[0]["state"] == "gone", 10, "its end")
    found, = tool.machines(intent=wanted["intent"])
    assert found["taken"] and found["why"] == "Server.SpotInstanceTermination"


def test_regions_not_heard_of_are_unknown_not_empty(tool, cloud):
    cloud.faults.add({"action": "DescribeInstances", "region": "eu-west-1", "times": -1,
                      "do": {"kind": "error", "code": "InternalFailure", "message": "", "status": 500}})
    listing = tool.ask("list")
    assert [each["region"] for each in listing["unheard"]] == ["eu-west-1"]


def test_a_new_address_takes_the_place_of_the_old(tool, cloud):
    tool.launch(spec_for(offer_in(tool, "us-east-1b")))
    assert tool.ask("allow", region="us-east-1", cidr="203.0.113.9/32") == {"ok": True}
    group, = cloud.face("ec2").places.groups.values()
    assert sorted(rule[3:] for rule in group["rules"]) == [("cidr", "203.0.113.9/32"), ("group", group["id"])]
    assert tool.ask("allow", region="us-east-1", cidr="203.0.113.9/32") == {"ok": True}


def test_a_rule_that_is_there_already_is_no_obstacle(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    # Both are made, and the answer is lost.
    cloud.faults.add({"action": "AuthorizeSecurityGroupIngress", "do": {"kind": "cut", "when": "after"}})
    assert tool.launch(wanted)["kind"] == "answered"
    group, = cloud.face("ec2").places.groups.values()
    assert sorted(rule[3] for rule in group["rules"]) == ["cidr", "group"]


@pytest.mark.parametrize("fault", [{"kind": "cut", "when": "after"}, {"kind": "half"}])
def test_a_group_whose_making_was_not_heard_of_is_taken(tool, cloud, fault):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    cloud.faults.add({"action": "CreateSecurityGroup", "do": fault})
    assert tool.launch(wanted)["kind"] == "answered"
    assert len(cloud.face("ec2").places.groups) == 1


def test_a_group_of_another_network_is_no_help(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    groups = cloud.face("ec2").places.groups
    groups["sg-old"] = {"id": "sg-old", "name": f"lockstep-{OWNER}", "region": "us-east-1", "vpc": "vpc-old",
                        "rules": [], "tags": {}, "description": ""}
    # The fake knows one network only, and refuses a second group of that name there.
    cloud.faults.add({"action": "CreateSecurityGroup", "times": -1,
                      "do": {"kind": "error", "code": "InvalidGroup.Duplicate", "message": "there"}})
    outcome = tool.launch(wanted)
    assert (outcome["kind"], outcome["code"]) == ("refused", "InvalidGroup.Duplicate")
    assert groups["sg-old"]["rules"] == []


def test_the_group_is_removed_once_it_is_empty(tool, cloud):
    wanted = spec_for(offer_in(tool, "us-east-1b"))
    tool.launch(wanted)
    assert "DependencyViolation" in tool.ask("clean")["error"]
    tool.ask("end", machines=tool.machines())
    until(lambda: not live(cloud), 10, "its end")
    assert tool.ask("clean") == {"ok": True}
    assert cloud.face("ec2").places.groups == {}
    assert tool.ask("clean") == {"ok": True}


# The check.


def test_the_check_finds_all_good(tool, cloud):
    found = tool.ask("check")["findings"]
    assert {each["kind"] for each in found} == {"good"}, found
    assert any("account 123456789012" in each["what"] for each in found)
    assert live(cloud) == [] and cloud.face("ec2").places.groups == {}


def test_the_check_names_missing_rights_with_the_policy(tool, cloud):
    for action in ("TerminateInstances", "RunInstances"):
        cloud.faults.add({"action": action, "times": -1, "do": {
            "kind": "error", "code": "UnauthorizedOperation", "message": "no", "status": 403}})
    cloud.faults.add({"action": "GetServiceQuota", "times": -1, "do": {
        "kind": "error", "code": "AccessDeniedException", "message": "no", "status": 400}})
    found = tool.ask("check")["findings"]
    bad, = [each for each in found if each["kind"] == "bad"]
    assert bad["what"] == "rights that are missing: ec2:TerminateInstances, ec2:RunInstances"
    policy = json.loads(bad["hint"].partition("\n")[2])
    assert "ec2:RunInstances" in policy["Statement"][0]["Action"]
    note, = [each for each in found if each["kind"] == "note"]
    assert "servicequotas:GetServiceQuota" in note["what"]


def test_a_clock_that_is_an_hour_off_is_said_and_worked_around(tool, cloud):
    cloud.world.advance(skew=3600)
    found = tool.ask("check")["findings"]
    assert any("60 min behind" in each["what"] for each in found), found
    assert tool.launch(spec_for(offer_in(tool, "us-east-1b")))["kind"] == "answered"
    assert "clock is 60 min behind" in tool.log.read_text()


def test_nothing_secret_is_in_the_log(start, cloud):
    tool = start(LOGLEVEL="DEBUG")
    assert tool.launch(spec_for(offer_in(tool, "us-east-1b"), user_data="the-private-key"))["kind"] == "answered"
    said = tool.log.read_text()
    assert cloud_keys.AWS_SECRET not in said and "Signature=" not in said
    assert "the-private-key" not in said and "dGhlLXByaXZhdGUta2V5" not in said
