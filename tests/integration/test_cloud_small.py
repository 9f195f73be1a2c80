"""Lambda Cloud and RunPod against their fakes, with the real HTTP client: offers, launches, lost answers, termination.

Only our own fakes check these two: no other client of theirs is available here.
"""
import base64
import json
import pathlib
import time

import pytest
from cloud_tool import INTENT, KEY, OWNER, FakeCloud, Tool, spec, until

# The fake's limits and the client's pauses, shortened alike; the fake allows for 50 ms of network.
PACE = 0.02


@pytest.fixture(name="cloud")
def running_cloud(tmp_path):
    with FakeCloud(tmp_path / "fake") as cloud:
        cloud.world.settings["limits"] = PACE
        yield cloud
        assert not cloud.failures, cloud.failures
        assert not cloud.world.errors, cloud.world.errors


@pytest.fixture(name="tool")
def tool_maker(cloud, tmp_path):
    made = []

    def start(provider, folder="own", **env):
        env.setdefault("LOCKSTEP_CLOUD_PACE", str(PACE))
        made.append(Tool(provider, cloud, tmp_path / folder, **env))
        return made[-1]
    yield start
    for each in made:
        each.__exit__()


def now_ms():
    return int(time.time() * 1000)


def offers(tool, **given):
    answer = tool.ask("offers", **given)
    assert not answer["silent"], answer
    return answer["offers"]


def launch(tool, gpu, **more):
    """(offer, answer) of one launch of the first offer."""
    offer = next(each for each in offers(tool, gpu=gpu, spot=more.pop("spot", False), fresh=True)
                 if each["stock"] == "in stock")
    return offer, tool.ask("launch", spec=spec(offer, now_ms(), **more))


def live(cloud):
    return [machine for machine in cloud.world.machines.values() if machine.alive()]


def end_all(cloud, tool):
    assert tool.ask("end", machines=tool.machines(owner=OWNER)) == {"ok": True}
    until(lambda: not live(cloud), 20, "all ended")
    until(lambda: all(each["state"] == "gone" for each in tool.machines(owner=OWNER)), 20, "all seen gone")


# Both.

@pytest.mark.parametrize("provider,gpu,user,cents", [("lambda", "A10:1", "ubuntu", 75), ("runpod", "L4:2", "root", 86)])
def test_a_machine_from_offer_to_its_end(cloud, tool, provider, gpu, user, cents):
    one = tool(provider)
    offer, made = launch(one, gpu)
    assert offer["price_micros_per_hour"] == cents * 10_000
    assert made["outcome"]["kind"] == "answered", made
    machine, = one.running()
    assert [machine["id"]] == made["outcome"]["ids"]
    assert (machine["intent"], machine["owner"], machine["cluster"], machine["node"]) == (INTENT, OWNER, "mine", 0)
    assert machine["user"] == user and machine["region"] == offer["region"]
    assert abs(machine["launched_ms"] - now_ms()) < 30_000
    assert abs(machine["ends_ms"] - now_ms() - 3600_000) < 30_000
    assert one.machines(intent="another") == []
    real = cloud.world.machines[machine["id"]]
    assert real.public_key == KEY
    end_all(cloud, one)
    assert one.ask("end", machines=[machine]) == {"ok": True}, "what is gone is no error"


@pytest.mark.parametrize("provider,gpu", [("lambda", "A10:1"), ("runpod", "L4:1")])
@pytest.mark.parametrize("fault", [{"kind": "cut", "when": "after"}, {"kind": "half"}, {"kind": "cut_at", "bytes": 9}])
def test_a_launch_without_an_answer_is_adopted(cloud, tool, provider, gpu, fault):
    one = tool(provider)
    action = "launch" if provider == "lambda" else "graphql.podFindAndDeployOnDemand"
    cloud.faults.add({"face": provider, "action": action, "do": fault})
    _, made = launch(one, gpu)
    assert made["outcome"]["kind"] == "unknown", made
    assert len(live(cloud)) == 1, "and it is not launched twice"
    found = one.ask("resolve", call=made["call"], age_ms=0)["outcome"]
    assert found["kind"] == "answered" and found["ids"] == [live(cloud)[0].id]
    end_all(cloud, one)


@pytest.mark.parametrize("provider,gpu", [("lambda", "A10:1"), ("runpod", "L4:1")])
def test_absence_counts_late_and_twice(cloud, tool, provider, gpu):
    one = tool(provider)
    action, listing = (("launch", "instances.list") if provider == "lambda"
                       else ("graphql.podFindAndDeployOnDemand", "pods.list"))
    cloud.faults.add({"face": provider, "action": action, "do": {"kind": "cut", "when": "before"}})
    _, made = launch(one, gpu)
    assert made["outcome"]["kind"] == "unknown" and not live(cloud)
    assert one.ask("resolve", call=made["call"], age_ms=0)["outcome"]["kind"] == "unknown"
    late = int(300_000 * PACE)
    cloud.faults.add({"face": provider, "action": listing, "times": -1, "do": {"kind": "half"}})
    assert one.ask("resolve", call=made["call"], age_ms=late)["outcome"]["kind"] == "unknown"
    cloud.faults.remove()
    before = len(cloud.records)
    never = one.ask("resolve", call=made["call"], age_ms=late)["outcome"]
    assert never["kind"] == "refused" and never["code"] == ""
    assert sum(record["action"] == listing for record in cloud.records[before:]) == 2


@pytest.mark.parametrize("provider", ["lambda", "runpod"])
def test_no_key_a_wrong_key_and_a_file_for_all(cloud, tool, provider, tmp_path):
    name = f"{provider.upper()}_API_KEY"
    nowhere = tool(provider, HOME=str(tmp_path))
    silence, = nowhere.ask("offers", gpu="A100:1")["silent"]
    assert silence["no_keys"] and name in silence["why"]
    assert nowhere.ask("check")["findings"][0]["kind"] == "bad"
    assert not cloud.records, "nothing was asked without a key"
    wrong = tool(provider, "wrong", **{name: "wrong-and-secret"})
    silence, = wrong.ask("offers", gpu="A100:1")["silent"]
    assert not silence["no_keys"] and "401" in silence["why"]
    findings = wrong.ask("check")["findings"]
    assert "wrong-and-secret" not in json.dumps([silence, findings])
    bad = [each for each in findings if each["kind"] == "bad"]
    assert bad and all(each["hint"] for each in bad)
    path = pathlib.Path(cloud.folder) / "home" / {"lambda": ".lambda_cloud/lambda_keys",
                                                  "runpod": ".runpod/config.toml"}[provider]
    path.chmod(0o644)
    findings = tool(provider, "open").ask("check")["findings"]
    assert [each["what"] for each in findings if each["kind"] == "bad"] == [f"others may read ~/{path.parent.name}/"
                                                                           f"{path.name}"]


@pytest.mark.parametrize("provider,action", [("lambda", "instance-types.list"), ("runpod", "gpus.list")])
def test_a_busy_service_is_asked_again(cloud, tool, provider, action):
    one = tool(provider)
    cloud.faults.add({"face": provider, "action": action, "do": {"kind": "status", "status": 503}})
    cloud.faults.add({"face": provider, "action": action, "do": {"kind": "status", "status": 429, "retry_after": 1}})
    cloud.faults.add({"face": provider, "action": action, "do": {"kind": "cut", "when": "before"}})
    assert offers(one, gpu="L4:1" if provider == "runpod" else "A10:1")
    cloud.faults.add({"face": provider, "action": action, "times": -1, "do": {"kind": "status", "status": 500}})
    silence, = one.ask("offers", gpu="A100:1", fresh=True)["silent"]
    assert "500" in silence["why"]


@pytest.mark.parametrize("provider,gpu", [("lambda", "A10:1"), ("runpod", "L4:1")])
def test_a_redirect_takes_no_key_along(cloud, tool, provider, gpu):
    one = tool(provider)
    cloud.faults.add({"face": provider, "times": -1, "do": {"kind": "status", "status": 301}})
    before = len(cloud.records)
    silence, = one.ask("offers", gpu=gpu)["silent"]
    assert "redirects are not followed" in silence["why"]
    assert len(cloud.records) == before + 1


@pytest.mark.parametrize("provider,gpu", [("lambda", "A10:1"), ("runpod", "L4:1")])
def test_what_is_not_sent_was_not_launched(cloud, tool, provider, gpu):
    one = tool(provider)
    offer, made = launch(one, gpu)
    end_all(cloud, one)
    url = {f"LOCKSTEP_{provider.upper()}_ENDPOINT": "http://127.0.0.1:1"}
    refused = tool(provider, "closed", **url).ask("launch", call=made["call"], spec=spec(offer, 0))["outcome"]
    assert (refused["kind"], refused["refusal"], refused["code"]) == ("refused", "provider_out", "unreachable")


@pytest.mark.parametrize("provider,gpu,spot", [("lambda", "A10:1", False), ("runpod", "L4:1", False),
                                               ("runpod", "L4:1", True)])
def test_a_price_raised_since_the_offer_is_not_taken(cloud, tool, provider, gpu, spot):
    one = tool(provider)
    offer = next(each for each in offers(one, gpu=gpu, spot=spot) if each["stock"] == "in stock")
    more = offer["price_micros_per_hour"] / 1e6 + 0.01
    cloud.face(provider).change("price", {"type": offer["type"], "usd": more, "spot": spot})
    refused = one.ask("launch", spec=spec(offer, now_ms()))["outcome"]
    assert (refused["kind"], refused["refusal"]) == ("refused", "next_zone"), refused
    assert refused["code"] == ("bid-too-low" if spot else "price-raised")
    assert not live(cloud)


# Lambda.

@pytest.mark.parametrize("provider", ["lambda", "runpod"])
def test_no_gpu_of_the_catalog_is_unknown(cloud, tool, provider):
    catalog = cloud.world.catalog[provider]
    kinds = ({name for name, entry in catalog["types"].items() if entry["gpus"]} if provider == "lambda"
             else {name for name, entry in catalog["gpus"].items() if entry["secure"]})
    assert {each["type"] for each in offers(tool(provider))} == kinds


def test_lambda_offers_are_where_there_is_room(tool):
    one = tool("lambda")
    assert {each["region"] for each in offers(one, gpu="A100-40GB:1")} == {"us-east-1", "us-west-2", "asia-northeast-1"}
    sold_out, = offers(one, gpu="B200:1")
    assert sold_out["region"] == "" and sold_out["stock"] == "none"
    gh200, = offers(one, gpu="GH200:1")
    assert gh200["arch"] == "arm64" and not gh200["ends_by_itself"]
    assert one.ask("offers", gpu="A10:1", spot=True)["silent"][0]["why"] == "Lambda Cloud has no spot machines"


def test_lambda_makes_what_a_launch_needs_once(cloud, tool):
    one = tool("lambda")
    _, made = launch(one, "A10:1")
    assert made["outcome"]["kind"] == "answered", made
    offer, made = launch(one, "A10:1", node=1, attempt=2)
    assert made["outcome"]["kind"] == "answered", made
    face = cloud.face("lambda")
    assert [key["name"].startswith("lockstep-") for key in face.keys.values()] == [True]
    (ruleset,) = face.rulesets.values()
    assert ruleset["rules"][0]["source_network"] == "198.51.100.7/32"
    assert one.ask("allow", region=offer["region"], cidr="203.0.113.9/32") == {"ok": True}
    (ruleset,) = face.rulesets.values()
    assert [rule["source_network"] for rule in ruleset["rules"]] == ["203.0.113.9/32"]
    assert one.ask("clean") == {"ok": True}
    assert face.keys and face.rulesets, "machines of ours are there"
    end_all(cloud, one)
    assert one.ask("clean") == {"ok": True}
    assert not face.keys and not face.rulesets


def test_lambda_takes_a_key_that_another_process_registers(cloud, tool):
    one = tool("lambda")
    cloud.face("lambda").keys["k"] = {"id": "k", "name": "laptop", "public_key": KEY.rsplit(" ", 1)[0] + " me"}
    _, made = launch(one, "A10:1")
    assert made["outcome"]["kind"] == "answered", made
    assert len(cloud.face("lambda").keys) == 1
    assert cloud.world.machines[made["outcome"]["ids"][0]].extra["keys"] == ["laptop"]


def test_lambda_images_fit_the_machine(cloud, tool):
    one = tool("lambda")
    for gpu, family in [("GH200:1", "lambda-stack-24-04"), ("V100:8", "lambda-stack-legacy-22-04"),
                        ("A10:1", "lambda-stack-24-04")]:
        _, made = launch(one, gpu)
        assert made["outcome"]["kind"] == "answered", (gpu, made)
        assert family in cloud.world.machines[made["outcome"]["ids"][0]].image
    end_all(cloud, one)


def test_lambda_refusals_say_what_to_do(cloud, tool):
    one = tool("lambda")
    cloud.faults.add({"face": "lambda", "action": "launch", "do": {"kind": "capacity"}})
    assert launch(one, "A10:1")[1]["outcome"]["refusal"] == "next_zone"
    cloud.faults.add({"face": "lambda", "action": "launch", "do": {"kind": "quota"}})
    assert launch(one, "A10:1")[1]["outcome"]["refusal"] == "provider_out"
    cloud.faults.add({"face": "lambda", "action": "launch", "do": {"kind": "token_expired"}})
    assert launch(one, "A10:1")[1]["outcome"]["refusal"] == "provider_out"
    stop = launch(one, "A10:1", image="no-such-family")[1]["outcome"]
    assert stop["refusal"] == "stop" and "image" in stop["message"]
    assert not live(cloud)


def test_lambda_ends_all_though_the_answer_lacks_one(cloud, tool):
    one = tool("lambda")
    for node in range(2):
        assert launch(one, "A10:1", node=node)[1]["outcome"]["kind"] == "answered"
    cloud.faults.add({"face": "lambda", "action": "terminate", "do": {"kind": "omit_id"}})
    end_all(cloud, one)


def test_lambda_states_of_machines(cloud, tool):
    one = tool("lambda")
    cloud.faults.add({"face": "lambda", "action": "launch", "do": {"kind": "trait", "unhealthy": True}})
    _, made = launch(one, "A10:1")
    until(lambda: one.machines()[0]["state"] == "unhealthy", 20, "unhealthy")
    end_all(cloud, one)
    cloud.faults.add({"face": "lambda", "action": "launch", "do": {"kind": "trait", "no_private_ip": True,
                                                                   "no_address_s": 600}})
    _, made = launch(one, "A10:1")
    machine = until(lambda: next((each for each in one.machines() if each["id"] == made["outcome"]["ids"][0]
                                  and each["state"] == "running"), None), 20, "running")
    assert machine["address"] == "" and machine["private_address"] == ""
    cloud.world.power_off(cloud.world.machines[machine["id"]])
    assert cloud.world.machines[machine["id"]].billed(), "its own power-off does not end the bill"
    end_all(cloud, one)


def test_lambda_processes_share_the_accounts_turns(cloud, tool):
    """Three processes, 12 questions and 3 launches: the fake sees no request too early."""
    pace = 0.15
    cloud.world.settings["limits"] = pace
    tools = [tool("lambda", LOCKSTEP_CLOUD_PACE=str(pace)) for _ in range(3)]
    offer = next(each for each in offers(tools[0], gpu="A10:1"))
    for node, one in enumerate(tools):
        one.tell("launch", spec=spec(offer, now_ms(), node=node))
        one.tell("list")
    for one in tools:
        assert one.answer()["outcome"]["kind"] == "answered"
        assert "machines" in one.answer()
    statuses = [record["status"] for record in cloud.records]
    assert len(statuses) >= 9 and 429 not in statuses, statuses
    assert len(live(cloud)) == 3


# RunPod.

def test_runpod_offers_spot_and_on_demand(tool):
    one = tool("runpod")
    h100 = offers(one, gpu="H100-SXM:8")
    assert {each["region"]: each["stock"] for each in h100} == {"US-KS-2": "in stock", "US-GA-1": "in stock",
                                                                "EU-SE-1": "in stock"}
    assert h100[0]["price_micros_per_hour"] == 8 * 2_690_000
    assert h100[0]["ends_by_itself"] and h100[0]["most_nodes"] == 1
    assert offers(one, gpu="H100-SXM:1", spot=True)[0]["price_micros_per_hour"] == 1_750_000
    v100, = offers(one, gpu="V100:1")
    assert v100["type"] == "Tesla V100-PCIE-16GB", "the other one is not in the secure cloud"


def test_runpod_ends_a_pod_though_nobody_comes_back(cloud, tool):
    one = tool("runpod")
    _, made = launch(one, "L4:1", lifetime_s=3600)
    assert made["outcome"]["kind"] == "answered", made
    machine, = one.running()
    assert machine["port"] == cloud.world.machines[machine["id"]].port
    cloud.world.advance(3500)
    assert len(live(cloud)) == 1
    cloud.world.advance(200)
    until(lambda: not live(cloud), 20, "ended by the provider")
    assert one.machines() == []


def test_runpod_spot_bids_no_more_than_it_costs(cloud, tool):
    one = tool("runpod")
    _, made = launch(one, "L4:2", spot=True)
    assert made["outcome"]["kind"] == "answered", made
    machine, = one.running()
    # What is billed: the bid and 50 GB of disk.
    assert machine["per_hour"] == 2 * 220_000 + round(50 * 100_000 / 730)
    end_all(cloud, one)
    offer = offers(one, gpu="L4:2", spot=True)[0]
    cloud.face("runpod").change("price", {"type": "NVIDIA L4", "usd": 0.4, "spot": True})
    raised = one.ask("launch", spec=spec(offer, now_ms(), max_spot=500_000))["outcome"]
    assert (raised["kind"], raised["code"], raised["refusal"]) == ("refused", "bid-too-low", "next_zone")
    assert not live(cloud)


def test_runpod_refusals_say_what_to_do(cloud, tool):
    one = tool("runpod")
    action = "graphql.podFindAndDeployOnDemand"
    cloud.faults.add({"face": "runpod", "action": action, "do": {"kind": "capacity"}})
    assert launch(one, "L4:1")[1]["outcome"]["refusal"] == "next_zone"
    cloud.faults.add({"face": "runpod", "action": action, "do": {"kind": "quota"}})
    assert launch(one, "L4:1")[1]["outcome"]["refusal"] == "provider_out"
    cloud.faults.add({"face": "runpod", "action": action, "do": {"kind": "status", "status": 422}})
    assert launch(one, "L4:1")[1]["outcome"]["refusal"] == "stop"
    cloud.faults.add({"face": "runpod", "action": action, "do": {"kind": "status", "status": 403}})
    assert launch(one, "L4:1")[1]["outcome"]["refusal"] == "next_zone"
    gang = launch(one, "L4:1", count=2)[1]["outcome"]
    assert gang["code"] == "one-node"
    assert not live(cloud)


def test_runpod_states_of_pods(cloud, tool):
    one = tool("runpod")
    action = "graphql.podFindAndDeployOnDemand"
    cloud.faults.add({"face": "runpod", "action": action, "do": {"kind": "trait", "no_ssh": True}})
    _, made = launch(one, "L4:1")
    machine = until(lambda: next((each for each in one.machines() if each["state"] == "running"), None), 20, "running")
    assert machine["address"] == "", "no direct SSH yet"
    cloud.world.power_off(cloud.world.machines[machine["id"]])
    until(lambda: one.machines()[0]["state"] == "stopped", 20, "its container has ended")
    end_all(cloud, one)
    cloud.faults.add({"face": "runpod", "action": action, "do": {"kind": "trait", "status": "ERROR"}})
    launch(one, "L4:1")
    assert one.machines()[0]["state"] == "unhealthy"
    end_all(cloud, one)


def test_runpod_the_script_is_in_a_variable_not_in_a_command(cloud, tool):
    one = tool("runpod")
    _, made = launch(one, "L4:1", user_data="#!/bin/sh\necho host-key-inside\n")
    machine = cloud.world.machines[made["outcome"]["ids"][0]]
    assert "host-key-inside" not in machine.user_data and "LOCKSTEP_START" in machine.user_data
    assert machine.env["PUBLIC_KEY"] == KEY
    script = base64.b64decode(machine.env["LOCKSTEP_START"]).decode()
    assert script == "#!/bin/sh\necho host-key-inside\n"
    end_all(cloud, one)
