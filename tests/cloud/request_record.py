"""Compares recorded requests: those of a vendor's own client with those of our binary. Names and values must be equal.
The order of a form, or 5 for "5", does not count."""
import json
import os
import pathlib
import re
import subprocess

import cloud_keys
import ec2_params
import fake_gce

SDK = pathlib.Path(__file__).parent / "sdk"
# Requests that no vendor's client makes in this form, such as waiting for operations.
NOT_COMPARED = ("token", "checkip", "billing", "resourcemanager", "lambda", "runpod", "")
# Parameters that Google's clients add to every query, without effect on the answer.
IGNORED_QUERY = {"$alt", "alt", "prettyPrint", "fields"}


class Sdk:
    """The vendors' clients in one Node process. run(service, call, input) returns the parsed answer."""

    def __init__(self, cloud_url, env, modules):
        settings = {**os.environ, **env, "FAKE_CLOUD_URL": cloud_url, "FAKE_AWS_KEY": cloud_keys.AWS_KEY,
                    "FAKE_AWS_SECRET": cloud_keys.AWS_SECRET, "NODE_PATH": str(modules), "AWS_PROFILE": "default",
                    "AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE": "1", "NODE_NO_WARNINGS": "1"}
        for name in ("AWS_ENDPOINT_URL", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            settings.pop(name, None)
        self.process = subprocess.Popen(["node", str(SDK / "calls.js")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=settings, text=True)

    def run(self, service, call, given=None, region="us-east-1"):
        line = json.dumps({"service": service, "call": call, "input": given or {}, "region": region})
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the SDK's process ended at {service} {call}"
        return json.loads(answer)

    def ok(self, service, call, given=None, region="us-east-1"):
        said = self.run(service, call, given, region)
        assert "ok" in said, f"{service} {call}: {said['error']}"
        return said["ok"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def flat(value, where=""):
    """Returns {path: text} of nested values. A number equals its text, and true equals "true". Empty values are left
    out, since they mean nothing in Google's JSON, except machines that are named by a key."""
    if where.endswith(".perInstanceProperties"):
        return {f"{where}.{key}": str(inner.get("name", key)) for key, inner in value.items()}
    if isinstance(value, dict):
        return {name: each for key, inner in value.items() for name, each in flat(inner, f"{where}.{key}").items()}
    if isinstance(value, list):
        return {name: each for number, inner in enumerate(value)
                for name, each in flat(inner, f"{where}[{number}]").items()}
    if isinstance(value, bool):
        return {where: "true" if value else "false"}
    return {where: "" if value is None else str(value)}


def canonical(record):
    """Returns a recorded request as {name: value}, in a form that does not depend on the sender."""
    made = {"face": record["face"], "action": record["action"], "region": record["region"]}
    if record["face"] in ("ec2", "sts"):
        return {**made, **record["params"]}
    if record["face"] in ("ssm", "quotas", "pricing"):
        return {**made, **flat(record["params"], "body")}
    query = {f"?{name}": value for name, value in record["query"].items() if name not in IGNORED_QUERY}
    return {**made, "method": record["method"], "path": record["path"], **query, **flat(record["params"], "body")}


def differences(ours, theirs, but=()):
    """Returns a line for each difference of two requests. but: patterns of names that may differ (tokens, times)."""
    one, other = canonical(ours), canonical(theirs)
    found = []
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name) and not any(re.fullmatch(pattern, name) for pattern in but):
            found.append(f"{name}: ours {one.get(name)!r}, theirs {other.get(name)!r}")
    return found


# EC2's names on the wire and in its clients, where these differ. By path without numbers; the longest match counts.
EC2_WORDS = {
    "Filter": "Filters", "Filter.Value": "Values", "Owner": "Owners", "ImageId.": "ImageIds", "ZoneName": "ZoneNames",
    "ZoneId": "ZoneIds", "RegionName": "RegionNames", "InstanceId.": "InstanceIds", "VpcId.": "VpcIds",
    "SubnetId.": "SubnetIds", "GroupId.": "GroupIds", "GroupName.": "GroupNames", "InstanceType.": "InstanceTypes",
    "ProductDescription": "ProductDescriptions", "SpotInstanceRequestId": "SpotInstanceRequestIds",
    "TagSpecification": "TagSpecifications", "TagSpecification.Tag": "Tags", "ResourceId": "Resources", "Tag": "Tags",
    "BlockDeviceMapping": "BlockDeviceMappings", "NetworkInterface": "NetworkInterfaces",
    "NetworkInterface.SecurityGroupId": "Groups", "SecurityGroupId": "SecurityGroupIds",
    "IpPermissions.Groups": "UserIdGroupPairs", "GroupDescription": "Description",
}
RESOURCES = {"instances.insert": "instanceResource", "instances.bulkInsert": "bulkInsertInstanceResourceResource",
             "regionInstances.bulkInsert": "bulkInsertInstanceResourceResource", "firewalls.insert": "firewallResource",
             "firewalls.patch": "firewallResource", "instances.setLabels": "instancesSetLabelsRequestResource"}


def sdk_call(record):
    """Returns (service, call, input, region), with which the vendor's client repeats our recorded request. Members that
    the client's model lacks are left out, so that the two requests differ."""
    if record["face"] in ("ec2", "sts"):
        given = {name: value for name, value in record["params"].items() if name not in ("Action", "Version")}
        model = ec2_params.ACTIONS[record["action"]]["params"]
        return record["face"], record["action"], ec2_input(ec2_params.tree(given), "", model), record["region"]
    if record["face"] in ("ssm", "quotas", "pricing"):
        service = {"quotas": "service-quotas"}.get(record["face"], record["face"])
        return service, record["action"], record["params"], record["region"]
    thing, method = record["action"].split(".")
    rest = "/".join(record["path"].split("/")[5:])
    names = next(found.groupdict() for verb, matcher, action, _, _ in fake_gce.MATCHERS if action == record["action"]
                 for found in [matcher.fullmatch(rest)] if found)
    given = {"project": record["path"].split("/")[4], **record["query"]}
    for name, value in names.items():
        word = {"name": "family" if method == "getFromFamily" else re.sub(r"^(zone|region|global)O", "o", thing)[:-1]}
        given[word.get(name, name)] = value
    if record["action"] in RESOURCES:
        given[RESOURCES[record["action"]]] = record["params"]
    given.update({name: int(given[name]) for name in ("maxResults",) if name in given})
    given.update({name: given[name] == "true" for name in ("returnPartialSuccess",) if name in given})
    listing = "Async" if method in ("list", "aggregatedList") else ""
    return "compute", f"{thing[0].upper()}{thing[1:]}Client.{method}{listing}", given, ""


def ec2_input(tree, where, model):
    """Converts names on the wire to the client's names, and texts to the types of the model."""
    if isinstance(tree, list):
        return [ec2_input(each, where, model) for each in tree]
    if not isinstance(tree, dict):
        kind = next((kind for shape, kind in model.items() if shape.replace(".n", "") == where), "str").rstrip("!")
        return int(tree) if kind == "int" else tree == "true" if kind == "bool" else tree
    made = {}
    for name, value in tree.items():
        path = f"{where}.{name}" if where else name
        keys = [f"{path}.", path] if isinstance(value, list) else [path]
        word = next((EC2_WORDS[key] for key in keys if key in EC2_WORDS), name)
        made[word] = ec2_input(value, path, model)
    return made


def compare_all(cloud, sdk, but=()):
    """Repeats each recorded call with the vendor's client. Returns {line of the request: differences}."""
    found, seen = {}, set()
    for record in list(cloud.records):
        words = json.dumps(canonical(record), sort_keys=True) if record["face"] not in NOT_COMPARED else ""
        if not words or words in seen or record["action"].endswith("Operations.wait"):
            continue
        seen.add(words)
        at = len(cloud.records)
        said = sdk.run(*sdk_call(record))
        sent = [each for each in cloud.records[at:] if each["face"] not in NOT_COMPARED]
        assert sent, f"the client sent nothing for {words}: {said}"
        # The client itself adds a token to a launch without one, which is only a dry run.
        made_up = () if "ClientToken" in record["params"] else ("ClientToken",)
        wrong = differences(record, sent[0], (*but, *made_up))
        if wrong:
            found[words] = wrong
    return found


def of(records, action, face=None):
    return [record for record in records if record["action"] == action and face in (None, record["face"])]
