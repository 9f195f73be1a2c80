"""The vendors' own clients drive the fakes of EC2 (with its neighbours) and of Compute Engine: each client parses the
fake's answers, and the fake accepts the client's requests. Lambda Cloud and RunPod have no such client: see
test_cloud_rules.py."""
import base64
import json
import os
import subprocess

import pytest

from fake_clouds import cloud, fake_cloud, machines, running, server  # noqa: F401
from harness import REPOSITORY, until

import cloud_clients
import cloud_keys
import request_record

MODULES = REPOSITORY / ".cache/cloud-sdk/node_modules"
PROJECT = "lockstep-test"
ZONE = {"project": PROJECT, "zone": "us-central1-a"}
IMAGE = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
# The launch of the vendor's client of 2026-08, field by field. A newer client must send the same.
LAUNCH = {
    "Action": "RunInstances", "Version": "2016-11-15", "MaxCount": "1", "MinCount": "1",
    "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true", "BlockDeviceMapping.1.Ebs.VolumeSize": "200",
    "BlockDeviceMapping.1.Ebs.VolumeType": "gp3", "BlockDeviceMapping.1.DeviceName": "/dev/sda1",
    "InstanceType": "g6.xlarge", "TagSpecification.1.ResourceType": "instance",
    "TagSpecification.1.Tag.1.Key": "lockstep:intent", "TagSpecification.1.Tag.1.Value": "i",
    "TagSpecification.2.ResourceType": "volume", "TagSpecification.2.Tag.1.Key": "lockstep:intent",
    "TagSpecification.2.Tag.1.Value": "i", "InstanceMarketOptions.MarketType": "spot",
    "InstanceMarketOptions.SpotOptions.SpotInstanceType": "one-time",
    "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior": "terminate",
    "MetadataOptions.HttpTokens": "required", "MetadataOptions.HttpPutResponseHopLimit": "2",
    "InstanceInitiatedShutdownBehavior": "terminate", "ClientToken": "t1",
    "NetworkInterface.1.AssociatePublicIpAddress": "true", "NetworkInterface.1.DeleteOnTermination": "true",
    "NetworkInterface.1.DeviceIndex": "0"}


@pytest.fixture(scope="module")
def sdk(server):
    assert MODULES.is_dir(), f"{MODULES} is not there: run ./dev cloud-sdk first"
    made = request_record.Sdk(server.url, server.env, MODULES)
    yield made
    made.close()


def launch(image, group, subnet, **more):
    tags = [{"Key": "lockstep:intent", "Value": "i"}]
    return {"ImageId": image, "InstanceType": "g6.xlarge", "MinCount": 1, "MaxCount": 1, "ClientToken": "t1",
            "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 200, "VolumeType": "gp3",
                                                                        "DeleteOnTermination": True}}],
            "TagSpecifications": [{"ResourceType": "instance", "Tags": tags}, {"ResourceType": "volume", "Tags": tags}],
            "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": {
                "SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}},
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
            "InstanceInitiatedShutdownBehavior": "terminate", "NetworkInterfaces": [{
                "AssociatePublicIpAddress": True, "DeleteOnTermination": True, "DeviceIndex": 0, "SubnetId": subnet,
                "Groups": [group]}], **more}


def test_every_call_of_aws(cloud, sdk):
    """In the order in which our binary makes them."""
    def ec2(call, **given):
        return sdk.ok("ec2", call, given)
    assert sdk.ok("sts", "GetCallerIdentity")["Account"] == "123456789012"
    role = sdk.ok("sts", "AssumeRole", {"RoleArn": "arn:aws:iam::1:role/r", "RoleSessionName": "lockstep"})
    assert role["Credentials"]["Expiration"].endswith("Z")
    assert len(ec2("DescribeRegions")["Regions"]) == 12
    zones = ec2("DescribeAvailabilityZones", Filters=[{"Name": "zone-type", "Values": ["availability-zone"]}])
    assert {"ZoneName": "us-east-1a", "ZoneId": "use1-az4"}.items() <= zones["AvailabilityZones"][0].items()
    offered = ec2("DescribeInstanceTypeOfferings", LocationType="availability-zone", MaxResults=1000,
                  Filters=[{"Name": "instance-type", "Values": ["p5.48xlarge"]}])
    assert [each["Location"] for each in offered["InstanceTypeOfferings"]] == ["us-east-1a", "us-east-1b", "us-east-1d"]
    gpu = ec2("DescribeInstanceTypes", InstanceTypes=["p4d.24xlarge"])["InstanceTypes"][0]
    assert gpu["GpuInfo"]["Gpus"][0]["MemoryInfo"]["SizeInMiB"] == 40960 and gpu["VCpuInfo"]["DefaultVCpus"] == 96
    image = sdk.ok("ssm", "GetParameter", {"Name": IMAGE})["Parameter"]["Value"]
    shown = ec2("DescribeImages", ImageIds=[image])["Images"][0]
    assert shown["RootDeviceName"] == "/dev/sda1" and shown["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 75
    found = ec2("DescribeImages", Owners=["898082745236"], Filters=[{"Name": "name", "Values": [
        "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) *"]}])
    assert max(found["Images"], key=lambda each: each["CreationDate"])["ImageId"] == image
    vpc = ec2("DescribeVpcs", Filters=[{"Name": "isDefault", "Values": ["true"]}])["Vpcs"][0]["VpcId"]
    subnet = ec2("DescribeSubnets", Filters=[{"Name": "vpc-id", "Values": [vpc]}, {"Name": "default-for-az", "Values": [
        "true"]}, {"Name": "availability-zone", "Values": ["us-east-1b"]}])["Subnets"][0]["SubnetId"]
    group = ec2("CreateSecurityGroup", GroupName="lockstep-me", Description="ssh for lockstep", VpcId=vpc)["GroupId"]
    door = {"GroupId": group, "IpPermissions": [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [
        {"CidrIp": "198.51.100.7/32", "Description": "ann"}]}]}
    ec2("AuthorizeSecurityGroupIngress", **door)
    ec2("AuthorizeSecurityGroupIngress", GroupId=group, IpPermissions=[
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}])
    rules = ec2("DescribeSecurityGroups", Filters=[{"Name": "group-name", "Values": ["lockstep-me"]}])
    assert rules["SecurityGroups"][0]["IpPermissions"][0]["IpRanges"] == [{"CidrIp": "198.51.100.7/32"}]
    prices = ec2("DescribeSpotPriceHistory", InstanceTypes=["g6.xlarge"], ProductDescriptions=["Linux/UNIX"],
                 StartTime="2026-11-20T00:00:00.000Z", MaxResults=1000)["SpotPriceHistory"]
    assert prices[3]["SpotPrice"] == "0.265584" and prices[3]["AvailabilityZone"] == "us-east-1d"
    assert ec2("GetSpotPlacementScores", InstanceTypes=["g6.xlarge"], TargetCapacity=1, SingleAvailabilityZone=True,
               RegionNames=["us-east-1"])["SpotPlacementScores"][0]["Score"] >= 1
    made = ec2("RunInstances", **launch(image, group, subnet, UserData=base64.b64encode(b"#cloud-config\n").decode()))
    one = made["Instances"][0]
    assert (one["State"]["Name"], one["Placement"]["AvailabilityZone"]) == ("pending", "us-east-1b")
    running(cloud)
    named = [{"Name": "tag:lockstep:intent", "Values": ["i"]}]
    seen = ec2("DescribeInstances", Filters=named)["Reservations"][0]["Instances"][0]
    assert seen["PublicIpAddress"] == "127.0.0.1" and seen["Tags"] == [{"Key": "lockstep:intent", "Value": "i"}]
    assert ec2("GetConsoleOutput", InstanceId=one["InstanceId"])["InstanceId"] == one["InstanceId"]
    ec2("CreateTags", Resources=[one["InstanceId"]], Tags=[{"Key": "lockstep:ends", "Value": "2026"}])
    ended = ec2("TerminateInstances", InstanceIds=[one["InstanceId"]])["TerminatingInstances"][0]
    assert ended["PreviousState"]["Name"] == "running"
    status = ec2("DescribeSpotInstanceRequests", SpotInstanceRequestIds=[one["SpotInstanceRequestId"]])
    assert status["SpotInstanceRequests"][0]["Status"]["Code"] == "instance-terminated-by-user"
    ec2("CancelSpotInstanceRequests", SpotInstanceRequestIds=[one["SpotInstanceRequestId"]])
    until(lambda: machines(cloud)[0]["state"] == "gone")
    ec2("RevokeSecurityGroupIngress", **door)
    ec2("DeleteSecurityGroup", GroupId=group)
    quota = sdk.ok("service-quotas", "GetServiceQuota", {"ServiceCode": "ec2", "QuotaCode": "L-DB2E81BA"})["Quota"]
    assert quota["Value"] == 1152
    filters = {"instanceType": "g6.xlarge", "regionCode": "us-east-1", "operatingSystem": "Linux", "tenancy": "Shared",
               "preInstalledSw": "NA", "capacitystatus": "Used"}
    rows = sdk.ok("pricing", "GetProducts", {"ServiceCode": "AmazonEC2", "Filters": [
        {"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in filters.items()]})["PriceList"]
    terms = json.loads(rows[0])["terms"]["OnDemand"]
    assert [each["pricePerUnit"]["USD"] for term in terms.values() for each in term["priceDimensions"].values()] == [
        "0.8048000000"] and len(rows) == 1
    assert {record["status"] for record in cloud.records} == {200}
    sent = request_record.of(cloud.records, "RunInstances")[0]["params"]
    rest = {"ImageId": image, "NetworkInterface.1.SubnetId": subnet, "NetworkInterface.1.SecurityGroupId.1": group,
            "UserData": base64.b64encode(b"#cloud-config\n").decode()}
    assert sent == {**LAUNCH, **rest}
    assert request_record.compare_all(cloud, sdk) == {}


@pytest.mark.parametrize("fault, service, call, given, name", [
    ({"kind": "capacity"}, "ec2", "RunInstances", {}, "InsufficientInstanceCapacity"),
    ({"kind": "quota"}, "ec2", "RunInstances", {}, "MaxSpotInstanceCountExceeded"),
    ({"kind": "token_expired"}, "ec2", "DescribeRegions", {}, "ExpiredToken"),
    ({"kind": "status", "status": 503}, "ec2", "DescribeRegions", {}, "Unavailable"),
    ({"kind": "error", "code": "UnauthorizedOperation", "status": 403}, "ec2", "RunInstances", {},
     "UnauthorizedOperation"),
    ({"kind": "error", "code": "AccessDenied", "status": 403}, "sts", "GetCallerIdentity", {}, "AccessDenied"),
    ({"kind": "error", "code": "ThrottlingException"}, "ssm", "GetParameter", {"Name": IMAGE}, "ThrottlingException"),
    ({"kind": "token_expired"}, "pricing", "GetProducts", {"ServiceCode": "AmazonEC2"}, "ExpiredTokenException"),
])
def test_refusals_of_aws_are_read(cloud, sdk, fault, service, call, given, name):
    if call == "RunInstances":
        image = sdk.ok("ssm", "GetParameter", {"Name": IMAGE})["Parameter"]["Value"]
        group = sdk.ok("ec2", "CreateSecurityGroup", {"GroupName": "g", "Description": "d"})["GroupId"]
        given = launch(image, group, cloud_clients.Aws(cloud).subnet("us-east-1a"))
    cloud.faults.add({"action": call, "do": fault})
    said = sdk.run(service, call, given)
    assert said.get("error", {}).get("name") == name, said


def test_skew_is_seen_by_the_client(cloud, sdk):
    fake_cloud.control(cloud.url, "clock", {"skew": 3600})
    said = sdk.run("ec2", "DescribeInstances", {}, "eu-west-1")
    assert said["error"]["name"] == "RequestExpired"


def test_debian_s_aws_program(cloud, tmp_path):
    """Another implementation, of another year."""
    def aws(*words):
        settings = {**os.environ, **cloud.env, "HOME": str(tmp_path), "AWS_PAGER": ""}
        done = subprocess.run(["/usr/bin/aws", "--endpoint-url", cloud.url, "--region", "us-east-2", "--output", "json",
                               *words], env=settings, capture_output=True, text=True, timeout=120)
        return json.loads(done.stdout or "{}") if done.returncode == 0 else done.stderr
    image = aws("ssm", "get-parameter", "--name", IMAGE)["Parameter"]["Value"]
    made = aws("ec2", "run-instances", "--image-id", image, "--instance-type", "g6.xlarge", "--count", "2",
               "--user-data", "#cloud-config", "--client-token", "t", "--instance-initiated-shutdown-behavior",
               "terminate", "--metadata-options", "HttpTokens=required,HttpPutResponseHopLimit=2",
               "--tag-specifications", "ResourceType=instance,Tags=[{Key=lockstep:intent,Value=i}]")
    assert [each["ClientToken"] for each in made["Instances"]] == ["t", "t"]
    seen = aws("ec2", "describe-instances", "--filters", "Name=tag:lockstep:intent,Values=i", "--page-size", "5")
    assert len(seen["Reservations"]) == 2 and machines(cloud)[0]["user_data"] == "#cloud-config"
    ended = aws("ec2", "terminate-instances", "--instance-ids", *[each["InstanceId"] for each in made["Instances"]])
    assert len(ended["TerminatingInstances"]) == 2
    assert "InvalidInstanceID.NotFound" in aws("ec2", "terminate-instances", "--instance-ids", "i-0123456789abcdef0")
    quota = aws("service-quotas", "get-service-quota", "--service-code", "ec2", "--quota-code", "L-417A185B")
    assert quota["Quota"]["QuotaCode"] == "L-417A185B"


def test_every_call_of_google(cloud, sdk):
    def gce(call, **given):
        return sdk.ok("compute", call, {"project": PROJECT, **given})

    def done(operation, **where):
        place = where or {"zone": "us-central1-a"}
        client = "ZoneOperationsClient" if "zone" in place else (
            "RegionOperationsClient" if "region" in place else "GlobalOperationsClient")
        return gce(f"{client}.wait", operation=operation["name"], **{
            name: value for name, value in place.items() if name != "global"})
    quota = gce("ProjectsClient.get")["quotas"][0]
    assert (quota["metric"], quota["limit"], quota["usage"]) == ("GPUS_ALL_REGIONS", 32, 0)
    quotas = gce("RegionsClient.get", region="us-central1")["quotas"]
    assert {each["metric"]: each["limit"] for each in quotas}["PREEMPTIBLE_NVIDIA_A100_GPUS"] == 16
    assert len(gce("ZonesClient.listAsync")) == 18 and len(gce("RegionsClient.listAsync")) == 6
    types = dict(gce("MachineTypesClient.aggregatedListAsync", filter="name=a2-highgpu-1g", returnPartialSuccess=True))
    assert types["zones/us-central1-f"]["machineTypes"][0]["accelerators"][0]["guestAcceleratorCount"] == 1
    assert gce("MachineTypesClient.get", zone="us-central1-a", machineType="g2-standard-4")["guestCpus"] == 4
    gpus = dict(gce("AcceleratorTypesClient.aggregatedListAsync", returnPartialSuccess=True))
    assert "nvidia-tesla-v100" in [each["name"] for each in gpus["zones/asia-east1-c"]["acceleratorTypes"]]
    family = sdk.ok("compute", "ImagesClient.getFromFamily", {
        "project": cloud_clients.IMAGES, "family": "ubuntu-accelerator-2404-amd64-with-nvidia-580"})
    assert family["diskSizeGb"] == "20"
    images = sdk.ok("compute", "ImagesClient.listAsync", {"project": "deeplearning-platform-release",
                                                          "filter": "family eq common-cu.*"})
    assert len(images) == 3
    assert gce("NetworksClient.get", network="default")["name"] == "default"
    wall = {"name": "lockstep-ssh", "network": "global/networks/default", "sourceRanges": ["198.51.100.7/32"],
            "targetTags": ["lockstep"], "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}]}
    done(gce("FirewallsClient.insert", firewallResource=wall), **{"global": True})
    done(gce("FirewallsClient.patch", firewall="lockstep-ssh", firewallResource={"sourceRanges": ["198.51.100.8/32"]}),
         **{"global": True})
    assert gce("FirewallsClient.get", firewall="lockstep-ssh")["sourceRanges"] == ["198.51.100.8/32"]
    body = cloud_clients.Gce(cloud).instance(
        lasts=3600, tags={"items": ["lockstep"]}, metadata={"items": [
            {"key": "user-data", "value": "#cloud-config"}, {"key": "enable-guest-attributes", "value": "TRUE"}]})
    ask = "0b9ccd1c-1111-4222-8333-444444444444"
    cloud.world.on_launch = lambda machine: {"address": "198.51.100.9", "host_keys": ["ssh-ed25519 AAAA"]}
    done(gce("InstancesClient.insert", zone="us-central1-a", requestId=ask, instanceResource=body))
    running(cloud)
    listed = dict(gce("InstancesClient.aggregatedListAsync", filter="labels.lockstep-owner=me",
                      returnPartialSuccess=True))
    one = listed["zones/us-central1-a"]["instances"][0]
    assert one["networkInterfaces"][0]["accessConfigs"][0]["natIP"] == "198.51.100.9" and one["status"] == "RUNNING"
    # The client's model of v1 does not have terminationTimestamp yet: what it drops is there on the wire.
    wire = cloud_clients.Gce(cloud).get("zones/us-central1-a/instances/ls-a-0").json
    assert wire["resourceStatus"]["scheduling"]["terminationTimestamp"]
    keys = gce("InstancesClient.getGuestAttributes", zone="us-central1-a", instance="ls-a-0", queryPath="hostkeys/")
    assert keys["queryValue"]["items"][0]["value"] == "AAAA"
    done(gce("InstancesClient.setLabels", zone="us-central1-a", instance="ls-a-0", instancesSetLabelsRequestResource={
        "labels": {"lockstep-ends": "1"}, "labelFingerprint": one["labelFingerprint"]}))
    assert gce("InstancesClient.get", zone="us-central1-a", instance="ls-a-0")["labels"] == {"lockstep-ends": "1"}
    done(gce("InstancesClient.delete", zone="us-central1-a", instance="ls-a-0", requestId=ask.replace("0b", "0c")))
    until(lambda: machines(cloud)[0]["state"] == "gone")
    missing = sdk.run("compute", "InstancesClient.get", {**ZONE, "instance": "ls-a-0"})
    assert "was not found" in missing["error"]["message"]
    gang(cloud, gce, done, body)
    done(gce("FirewallsClient.delete", firewall="lockstep-ssh"), **{"global": True})
    assert request_record.compare_all(cloud, sdk) == {}


def gang(cloud, gce, done, body):
    """Many at once: in a zone, and in a region that chooses."""
    disk = {**body["disks"][0]["initializeParams"], "diskType": "pd-balanced"}
    many = {"count": 2, "minCount": 2, "instanceProperties": {
        **{name: body[name] for name in ("scheduling", "networkInterfaces", "labels", "metadata", "tags")},
        "machineType": "a2-highgpu-1g", "disks": [{**body["disks"][0], "initializeParams": disk}]}}
    done(gce("InstancesClient.bulkInsert", zone="us-central1-a", bulkInsertInstanceResourceResource={
        **many, "perInstanceProperties": {"ls-b-0": {"name": "ls-b-0"}, "ls-b-1": {"name": "ls-b-1"}}}))
    done(gce("RegionInstancesClient.bulkInsert", region="us-central1", bulkInsertInstanceResourceResource={
        **many, "perInstanceProperties": {"ls-c-0": {"name": "ls-c-0"}, "ls-c-1": {"name": "ls-c-1"}},
        "locationPolicy": {"targetShape": "ANY_SINGLE_ZONE"}}), region="us-central1")
    assert sorted(each["name"] for each in machines(cloud) if each["alive"]) == ["ls-b-0", "ls-b-1", "ls-c-0", "ls-c-1"]


def test_a_late_refusal_of_google_is_read(cloud, sdk):
    cloud.faults.add({"action": "instances.insert", "do": {"kind": "capacity"}})
    given = {**ZONE, "instanceResource": cloud_clients.Gce(cloud).instance()}
    made = sdk.ok("compute", "InstancesClient.insert", given)
    end = sdk.ok("compute", "ZoneOperationsClient.wait", {**ZONE, "operation": made["name"]})
    assert end["error"]["errors"][0]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"
    cloud.faults.add({"action": "instances.insert", "do": {"kind": "error", "code": "quotaExceeded", "status": 403,
                                                           "message": "Quota 'GPUS' exceeded."}})
    said = sdk.run("compute", "InstancesClient.insert", given)
    assert "Quota 'GPUS' exceeded." in said["error"]["message"]


def test_google_s_library_buys_a_token(cloud, sdk, tmp_path):
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    token = sdk.ok("auth", "token", {"scopes": scopes})["token"]
    headers = {"Authorization": f"Bearer {token}"}
    assert cloud_clients.ask(f"{cloud.url}/compute/v1/projects/{PROJECT}/zones", None, headers).status == 200
    other = cloud_keys.Keys(tmp_path / "other", cloud.url, cloud.world.catalog)
    said = sdk.run("auth", "token", {"scopes": scopes, "keyFile": str(other.folder / "gcp.json")})
    assert "Invalid JWT Signature" in said["error"]["message"]
