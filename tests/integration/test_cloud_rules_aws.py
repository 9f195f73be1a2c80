"""The fake of AWS is as strict as AWS, and counts money right (tests/cloud). All tests against the fake rely on
this."""
import ast
import base64
import hashlib
import re
import threading
import time

import pytest

from fake_clouds import HOUR, cloud, fake_cloud, machines, running, server, usd  # noqa: F401
from harness import REPOSITORY, until

import aws_signature
import cloud_clients
import cloud_keys
from cloud_clients import Aws


# AWS: signatures.

def published():
    """The 38 cases, where our own signer has them written down: (name, method, target, headers, signature)."""
    text = (REPOSITORY / "src/codec/sigv4_test.cc").read_text()
    constants = dict(re.findall(r'const char\* const (k\w+) =\s+("[^;]+);', text))
    cases = re.search(r"kSuite\[\] = \{(.*?)\n\};", text, re.S).group(1)
    tokens = {"get-vanilla-with-session-token": "kSuiteToken", "post-sts-header-before": "kStsToken"}
    for name, *rest in ast.literal_eval("[" + cases.replace("{", "[").replace("}", "]") + "]"):
        yield name, *rest, ast.literal_eval(f"({constants[tokens[name]]})") if name in tokens else ""


def test_published_signatures_come_out():
    key, secret, stamp = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830T123600Z"
    cases = list(published())
    assert len(cases) == 38
    marks = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    for name, method, target, given, wanted, token in cases:
        body = b"Param1=value1" if "urlencoded" in name else b""
        digest = hashlib.sha256(body).hexdigest()
        headers = [*given, ("Host", "example.amazonaws.com"), ("X-Amz-Date", stamp)]
        headers += [("X-Amz-Security-Token", token)] if token else []
        headers += [("X-Amz-Content-Sha256", digest)] if body else []
        # C++'s texts are bytes.
        path, _, query = target.replace("@", marks).encode("latin-1").decode().partition("?")
        canonical = aws_signature.canonical_request(
            method, path, query, headers, sorted({each.lower() for each, _ in headers}), digest,
            normalize=not name.endswith("-unnormalized"))
        assert aws_signature.signature(secret, stamp, "us-east-1", "service", canonical) == wanted, name
    signed = aws_signature.sign(key, secret, "us-east-1", "ec2", "POST", "https://ec2.us-east-1.amazonaws.com/",
                                b"Action=DescribeRegions&Version=2016-11-15", stamp,
                                [("content-type", "application/x-www-form-urlencoded; charset=utf-8")])
    assert signed["Authorization"].endswith("0961b80cfe2d492b65901a9220582465d0ed2094d2964a79fe0e9fdd612541ab")


@pytest.mark.parametrize("ask, code, status", [
    (lambda cloud: Aws(cloud).ec2("DescribeRegions", skew=-301), "RequestExpired", 400),
    (lambda cloud: Aws(cloud).ec2("DescribeRegions", skew=320), "RequestExpired", 400),
    (lambda cloud: Aws(cloud).sts("GetCallerIdentity", skew=-3600), "SignatureDoesNotMatch", 403),
    (lambda cloud: Aws(cloud, secret="other").ec2("DescribeRegions"), "AuthFailure", 401),
    (lambda cloud: Aws(cloud, secret="other").sts("GetCallerIdentity"), "SignatureDoesNotMatch", 403),
    (lambda cloud: Aws(cloud, key="AKIANOBODY").sts("GetCallerIdentity"), "InvalidClientTokenId", 403),
    (lambda cloud: Aws(cloud, token="stale").ec2("DescribeRegions"), "AuthFailure", 401),
    (lambda cloud: Aws(cloud, region="me-south-1").ec2("DescribeInstances"), "AuthFailure", 401),
    (lambda cloud: Aws(cloud, region="us-west-2").service("pricing", "AWSPriceListService.GetProducts",
                                                          ServiceCode="AmazonEC2"), "UnrecognizedClientException", 403),
    (lambda cloud: Aws(cloud).ec2("DescribeRegions", Bogus="1"), "UnknownParameter", 400),
    (lambda cloud: Aws(cloud).ec2("DescribeRegions", version="2014-01-01"), "InvalidAction", 400),
    (lambda cloud: Aws(cloud).ec2("DescribeInstances", InstanceId__2="i-1"), "InvalidParameterValue", 400),
    (lambda cloud: Aws(cloud).ec2("DescribeInstances", InstanceId__1="i-1"), "InvalidInstanceID.NotFound", 400),
    (lambda cloud: Aws(cloud).ec2("DescribeInstances", Filter__1__Name="colour", Filter__1__Value__1="red"),
     "InvalidParameterValue", 400),
    (lambda cloud: Aws(cloud).ec2("RunInstances", ImageId="ami-1"), "MissingParameter", 400),
    (lambda cloud: Aws(cloud).run(UserData="not base64"), "InvalidUserData.Malformed", 400),
    (lambda cloud: Aws(cloud).run(UserData=base64.b64encode(b"x" * 16385).decode()),
     "InvalidParameterValue", 400),
    (lambda cloud: Aws(cloud).run(token="t" * 65), "InvalidParameterValue", 400),
    (lambda cloud: Aws(cloud).run(DryRun="true"), "DryRunOperation", 412),
    (lambda cloud: Aws(cloud).run(kind="p5e.48xlarge", zone="us-east-1b"), "Unsupported", 400),
    (lambda cloud: Aws(cloud).run(kind="p4de.24xlarge", zone="us-east-1c"), "InsufficientInstanceCapacity", 500),
    (lambda cloud: Aws(cloud).run(kind="p5.48xlarge", count=7, zone="us-east-1a"), "VcpuLimitExceeded", 400),
    (lambda cloud: Aws(cloud).run(InstanceMarketOptions__MarketType="spot",
                                  InstanceMarketOptions__SpotOptions__MaxPrice="0.01"),
     "SpotMaxPriceTooLow", 400),
    (lambda cloud: Aws(cloud).run(NetworkInterface__1__DeviceIndex="0"), "InvalidParameterCombination", 400),
])
def test_what_aws_refuses(cloud, ask, code, status):
    answer = ask(cloud)
    assert (answer.code, answer.status) == (code, status), answer.text
    envelope = {"<Response>": "<Response><Errors><Error><Code>", "sts.amazon": "<Error><Type>Sender</Type><Code>"}
    marked = [words for mark, words in envelope.items() if mark in answer.text]
    assert (marked and marked[0] in answer.text) or answer.json["__type"]
    assert machines(cloud) == []


def test_what_is_not_signed_is_refused(cloud):
    body = b"Action=DescribeRegions&Version=2016-11-15"
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert cloud_clients.ask(f"{cloud.url}/", body, headers).code == "MissingAuthenticationToken"
    signed = aws_signature.sign(cloud_keys.AWS_KEY, cloud_keys.AWS_SECRET, "us-east-1", "ec2", "POST", cloud.url + "/",
                                body, stamp)
    assert cloud_clients.ask(f"{cloud.url}/", body, {**headers, **signed}).status == 200
    assert cloud_clients.ask(f"{cloud.url}/", body + b"&AllRegions=true", {**headers, **signed}).code == "AuthFailure"


def test_a_role_s_keys_end(cloud):
    given = Aws(cloud).sts("AssumeRole", RoleArn="arn:aws:iam::1:role/r", RoleSessionName="s", DurationSeconds="900")
    role = Aws(cloud, key=given.all("AccessKeyId")[0], secret=given.all("SecretAccessKey")[0],
               token=given.all("SessionToken")[0])
    assert role.sts("GetCallerIdentity").status == 200
    cloud.world.advance(901)
    assert role.sts("GetCallerIdentity").code == "ExpiredToken"


# AWS: tokens, ends, money.

def test_a_token_launches_once_in_a_zone(cloud):
    aws = Aws(cloud)
    one = aws.run(token="t1", count=2).all("instanceId")
    assert aws.run(token="t1", count=2).all("instanceId") == one and len(machines(cloud)) == 2
    assert aws.run(token="t1", count=1).code == "IdempotentParameterMismatch"
    # Tokens are zonal: the same one makes another machine elsewhere.
    other = aws.run(token="t1", count=2, zone="us-east-1a").all("instanceId")
    assert set(other).isdisjoint(one) and len(machines(cloud)) == 4
    aws.ec2("TerminateInstances", InstanceId__1=one[0])
    assert aws.run(token="t1", count=2).code == "IdempotentInstanceTerminated"
    cloud.faults.add({"action": "RunInstances", "do": {"kind": "capacity"}})
    assert aws.run(token="t2").code == "InsufficientInstanceCapacity"
    assert aws.run(token="t2").status == 200  # a refusal uses no token up


def test_ec2_s_bill_ends_with_the_machine(cloud):
    aws = Aws(cloud)
    ident = aws.run(token="t").all("instanceId")[0]
    running(cloud)
    cloud.world.advance(HOUR)
    rate = 0.8048 + 75 * 0.08 / 730 + 0.005
    assert usd(cloud) == pytest.approx(rate, rel=0.002)
    fake_cloud.control(cloud.url, f"machines/{ident}/poweroff", {})
    until(lambda: machines(cloud)[0]["state"] == "gone")
    cloud.world.advance(10 * HOUR)
    seen = machines(cloud)[0]
    assert usd(cloud) == pytest.approx(rate, rel=0.002) and not seen["billed"]
    assert seen["why"] == "Client.InstanceInitiatedShutdown"
    second = aws.run(token="t2", zone="us-east-1a").all("instanceId")[0]
    before = cloud.world.micros()
    aws.ec2("TerminateInstances", InstanceId__1=second)
    cloud.world.advance(HOUR)  # a minute is the least
    assert cloud.world.machines[second].micros(cloud.world.now()) == pytest.approx(rate / 60 * 1e6, rel=0.001)
    assert cloud.world.micros() >= before


def test_a_stopped_machine_s_disk_is_billed(cloud):
    aws = Aws(cloud)
    made = aws.ec2("RunInstances", ImageId=aws.image(), InstanceType="t3.micro", MinCount=1, MaxCount=1)
    ident = made.all("instanceId")[0]
    running(cloud)
    fake_cloud.control(cloud.url, f"machines/{ident}/poweroff", {})
    until(lambda: machines(cloud)[0]["state"] == "stopped")
    before = usd(cloud)
    cloud.world.advance(730 * HOUR)
    assert usd(cloud) - before == pytest.approx(75 * 0.08, rel=0.001)
    aws.ec2("TerminateInstances", InstanceId__1=ident)
    assert fake_cloud.control(cloud.url, "meter")["billed"] == []


def test_spot_is_taken_with_a_notice(cloud):
    told = []
    cloud.world.on_notice = lambda machine, seconds: told.append((machine.id, seconds))
    aws = Aws(cloud)
    made = aws.run(InstanceMarketOptions__MarketType="spot")
    ident = made.all("instanceId")[0]
    running(cloud)
    fake_cloud.control(cloud.url, f"machines/{ident}/preempt", {"notice": 120})
    until(lambda: told == [(ident, 120.0)])
    cloud.world.advance(119)
    assert machines(cloud)[0]["state"] == "running"
    cloud.world.advance(2)
    assert machines(cloud)[0]["why"] == "Server.SpotInstanceTermination"
    status = aws.ec2("DescribeSpotInstanceRequests", SpotInstanceRequestId__1=made.all("spotInstanceRequestId")[0])
    assert "instance-terminated-no-capacity" in status.all("code")


# Faults.

def test_what_goes_wrong_on_the_way(cloud):
    aws = Aws(cloud)

    def broken(what, token):
        cloud.faults.add({"action": "RunInstances", "do": what})
        with pytest.raises(Exception) as error:
            aws.run(token=token)
        return error.value
    broken({"kind": "cut", "when": "before"}, "a")
    assert len(machines(cloud)) == 0
    broken({"kind": "cut"}, "b")
    assert len(machines(cloud)) == 1
    assert "IncompleteRead" in repr(broken({"kind": "half"}, "c"))
    broken({"kind": "cut_at", "bytes": 9}, "d")
    assert len(machines(cloud)) == 3
    assert len(aws.run(token="b").all("instanceId")) == 1 and len(machines(cloud)) == 3
    cloud.faults.add({"action": "Describe*", "region": "us-*", "times": 2, "skip": 1,
                      "do": {"kind": "status", "status": 503, "retry_after": 7}})
    answers = [aws.ec2("DescribeInstances") for _ in range(4)]
    assert [each.status for each in answers] == [200, 503, 503, 200] and answers[1].headers["Retry-After"] == "7"
    begun = time.monotonic()
    cloud.faults.add({"do": {"kind": "stall", "seconds": 0.3}})
    assert aws.ec2("DescribeInstances").status == 200 and time.monotonic() - begun >= 0.3
    assert fake_cloud.control(cloud.url, "clock", {"skew": 3600})["skew"] == 3600
    assert aws.ec2("DescribeInstances").code == "RequestExpired"


def test_machines_that_come_up_wrong(cloud):
    aws = Aws(cloud)
    cloud.faults.add({"action": "RunInstances", "do": {"kind": "trait", "dies": "Server.InsufficientInstanceCapacity"}})
    aws.run(token="a")
    until(lambda: machines(cloud)[0]["state"] == "gone")
    assert "Server.InsufficientInstanceCapacity" in aws.ec2("DescribeInstances").all("code")
    cloud.faults.add({"action": "RunInstances",
                      "do": {"kind": "trait", "no_address_s": 60, "not_listed_s": 30, "gpu": "802"}})
    ident = aws.run(token="b").all("instanceId")[0]
    assert running(cloud)[0]["traits"]["gpu"] == "802"
    assert aws.ec2("DescribeInstances", InstanceId__1=ident).code == "InvalidInstanceID.NotFound"
    cloud.world.advance(31)
    seen = aws.ec2("DescribeInstances", InstanceId__1=ident)
    assert seen.all("name")[0] == "running" and seen.all("ipAddress") == []
    cloud.world.advance(31)
    assert aws.ec2("DescribeInstances", InstanceId__1=ident).all("ipAddress") == ["127.0.0.1"]


def test_hooks_stand_for_the_machines(cloud):
    calls, go = [], threading.Event()

    def launched(machine):
        go.wait(20)
        calls.append(("launch", machine.user_data))
        return {"address": "10.1.2.3", "private_address": "10.0.0.3", "port": 22, "host_keys": ["ssh-ed25519 AAAA"]}
    cloud.world.on_launch, cloud.world.on_end = launched, lambda machine: calls.append(("end", machine.why))
    ident = Aws(cloud).run(UserData=base64.b64encode(b"#cloud-config").decode()).all("instanceId")[0]
    assert machines(cloud)[0]["state"] == "booting"
    Aws(cloud).ec2("TerminateInstances", InstanceId__1=ident)  # before it is up: it is taken down once it is
    go.set()
    until(lambda: calls == [("launch", "#cloud-config"), ("end", "Client.UserInitiatedShutdown")], 20, calls)
