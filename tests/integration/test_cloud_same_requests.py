"""Our requests to AWS and Google equal those of their own clients: the vendor's client repeats each recorded request,
and the two must agree name by name. Costs that we read from all four providers equal the fakes' meters."""
import time

import pytest

from cloud_tool import Tool, spec
from fake_clouds import cloud, fake_cloud, running, server  # noqa: F401
from harness import REPOSITORY

import cloud_clients
import request_record

MODULES = REPOSITORY / ".cache/cloud-sdk/node_modules"


@pytest.fixture(scope="module")
def sdk(server):
    assert MODULES.is_dir(), f"{MODULES} is not there: run ./dev cloud-sdk first"
    made = request_record.Sdk(server.url, server.env, MODULES)
    yield made
    made.close()


@pytest.fixture
def tool(cloud, tmp_path):
    def start(provider):
        tools.append(Tool(provider, cloud, tmp_path, LOCKSTEP_CLOUD_PACE="0.02"))
        return tools[-1]
    tools = []
    yield start
    for each in tools:
        each.__exit__()


def offer_of(tool, gpu, zone, **query):
    catalog = tool.ask("offers", gpu=gpu, **query)
    assert catalog["silent"] == []
    return next(each for each in catalog["offers"] if each["zone"] == zone and each["gpus"] == int(gpu[-1]))


def rented(cloud, tool, offer, **more):
    """Launched, listed, and running."""
    made = tool.ask("launch", spec={**spec(offer, int(time.time() * 1000)), "disk_gb": 100, **more})
    assert made["outcome"]["kind"] == "answered", made
    running(cloud, more.get("count", 1))
    return tool.ask("list")["machines"]


def whole_life(cloud, tool, gpu, zone):
    """All that a provider's folder can do, on demand and on spot, alone and as a gang."""
    assert "account" in tool.ask("account")
    machines = rented(cloud, tool, offer_of(tool, gpu, zone))
    assert tool.ask("host_key", machine=machines[0]) == {"key": ""}, "the fake's machine has told nothing yet"
    cloud.world.machines[next(iter(cloud.world.machines))].host_keys = ["ssh-rsa AAAA", "ssh-ed25519 BBBB"]
    told = {"key": "ssh-ed25519 BBBB"} if machines[0]["region"] == "us-central1" else {"key": ""}
    assert tool.ask("host_key", machine=machines[0]) == told
    tool.ask("list", intent="abcdefghij0123456789")
    assert "error" not in tool.ask("allow", region=machines[0]["region"], cidr="203.0.113.9/32")
    assert "error" not in tool.ask("end", machines=machines)
    spot = offer_of(tool, gpu, zone, spot=True)
    gang = rented(cloud, tool, spot, count=2, attempt=2, allow_from="203.0.113.9/32")
    assert "error" not in tool.ask("end", machines=[each for each in gang if each["state"] != "gone"])
    tool.ask("check")
    tool.ask("clean")
    assert cloud.world.live() == []


def actions(cloud):
    return {record["action"] for record in cloud.records}


def test_aws(cloud, sdk, tool):
    whole_life(cloud, tool("aws"), "L4:1", "us-east-1b")
    assert actions(cloud) >= {
        "GetCallerIdentity", "DescribeRegions", "DescribeAvailabilityZones", "DescribeInstanceTypeOfferings",
        "DescribeSpotPriceHistory", "GetProducts", "GetServiceQuota", "GetParameter", "DescribeImages", "DescribeVpcs",
        "DescribeSubnets", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress",
        "RunInstances", "DescribeInstances", "TerminateInstances"}
    assert request_record.compare_all(cloud, sdk) == {}


def test_google(cloud, sdk, tool):
    whole_life(cloud, tool("gcp"), "A100-40GB:1", "us-central1-a")
    assert actions(cloud) >= {
        "token", "skus.list", "machineTypes.aggregatedList", "instances.insert", "instances.bulkInsert",
        "instances.aggregatedList", "instances.getGuestAttributes",
        "instances.delete", "firewalls.insert", "firewalls.patch"}
    assert request_record.compare_all(cloud, sdk) == {}


OTHERS = {"aws": {"face": "ec2", "tags": {"lockstep:owner": "them", "lockstep:intent": "i"}},
          "gcp": {"face": "gce", "labels": {"lockstep-owner": "them", "lockstep-intent": "i"}}}


@pytest.mark.parametrize("provider", ["aws", "gcp"])
def test_small_pages_change_nothing(cloud, tmp_path, provider):
    """A provider may cut any list into pages, and as short as it likes."""
    fake_cloud.control(cloud.url, "foreign", {**OTHERS[provider], "count": 20})
    seen = []
    for most in (5000, 7):
        cloud.world.settings["page_most"] = most
        begun = len(cloud.records)
        with Tool(provider, cloud, tmp_path / str(most), LOCKSTEP_CLOUD_PACE="0.02") as each:
            offers = [offer for spot in (False, True) for offer in each.ask("offers", gpu="L4:1", spot=spot)["offers"]]
            for offer in offers:
                offer.pop("price_as_of_ms")
            machines = [machine["id"] for machine in each.ask("list")["machines"]]
        seen.append((sorted(map(str, offers)), sorted(machines), len(cloud.records) - begun))
    assert seen[0][:2] == seen[1][:2] and len(seen[0][1]) == 20 and len(seen[0][0]) > 30
    assert seen[1][2] > seen[0][2] + 5


def metered(cloud, offer):
    """Micro-USD an hour, as the fake would bill a machine of this offer, without disk and address."""
    kind, spot = offer["type"], offer["spot"]
    if offer["provider"] == "aws":
        places = cloud.face("ec2").places
        return places.spot(kind, offer["zone"]) if spot else places.demand(kind, offer["region"])
    if offer["provider"] == "gcp":
        lists = cloud.face("gce").lists
        name, _, gpu = kind.partition("+")
        gpu = gpu or lists.catalog["machine_types"][name]["gpu"]
        return lists.rate(name, gpu, offer["gpus"], offer["zone"], spot)
    if offer["provider"] == "lambda":
        return cloud.face("lambda").catalog["types"][kind]["cents"] * 10_000
    return cloud.face("runpod").price(kind, spot) * offer["gpus"]


@pytest.mark.parametrize("provider, least", [("aws", 500), ("gcp", 300), ("lambda", 15), ("runpod", 100)])
def test_every_price_is_what_the_meter_counts(cloud, tool, provider, least):
    asked, seen = tool(provider), {}
    for gpu in ("V100", "P100", "T4", "L4", "A10G", "A10", "L40S", "RTXPRO6000", "RTXPRO4500", "A100", "H100", "H200",
                "B200", "B300", "GH200"):
        for spot in (False, True):
            for offer in asked.ask("offers", gpu=f"{gpu}:1", spot=spot, at_least=True)["offers"]:
                place = offer["type"], offer["gpus"], offer["zone"] or offer["region"], spot
                seen[place] = offer["price_micros_per_hour"] + offer["extra_micros_per_hour"], offer
    wrong = {place: (price, metered(cloud, offer)) for place, (price, offer) in seen.items()
             if not offer["not_for_sale"] and price != pytest.approx(metered(cloud, offer), rel=1e-5, abs=3)}
    assert wrong == {} and len(seen) > least


def test_a_difference_is_seen(cloud, sdk):
    """Tests the comparison: it rejects requests that no client of the vendor would send."""
    aws = cloud_clients.Aws(cloud)
    aws.ec2("DescribeInstances", Filter__1__Name="tag-key", Filter__1__Value__1="a", Colour="red")
    assert "Colour: ours 'red', theirs None" in str(request_record.compare_all(cloud, sdk))
    gce = cloud_clients.Gce(cloud)
    gce.post("zones/us-central1-a/instances", {**gce.instance(), "colour": "red"})
    assert "body.colour: ours 'red', theirs None" in str(request_record.compare_all(cloud, sdk))
