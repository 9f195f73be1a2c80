"""Small clients for tests of the fakes: signatures, tokens and keys, without retries."""
import base64
import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree

import aws_signature
import cloud_keys

IMAGES = "ubuntu-os-accelerator-images"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        self.text = body.decode()
        self.json = json.loads(body) if body[:1] in (b"{", b"[") else None

    def all(self, name):
        """Returns the texts of all XML elements of this name."""
        root = xml.etree.ElementTree.fromstring(self.text)
        return [each.text for each in root.iter() if each.tag.rpartition("}")[2] == name]

    @property
    def code(self):
        """Returns the provider's error code; "": no error."""
        if self.status < 300 and not (self.json or {}).get("errors"):
            return ""
        if self.json is None:
            return self.all("Code")[0]
        error = self.json.get("error", self.json)
        if "__type" in self.json:
            return self.json["__type"].partition("#")[2]
        if isinstance(error, str):
            return error
        if isinstance(error.get("code"), str):
            return error["code"]
        first = (error.get("errors") or [{}])[0]
        return first.get("reason") or first.get("extensions", {}).get("code") or error.get("detail", "")


def ask(url, body=None, headers=None, method=None):
    request = urllib.request.Request(url, body, headers or {}, method=method)
    try:
        with OPENER.open(request, timeout=60) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())


class Aws:
    def __init__(self, cloud, region="us-east-1", key=cloud_keys.AWS_KEY, secret=cloud_keys.AWS_SECRET, token=None):
        self.cloud, self.region, self.key, self.secret, self.token = cloud, region, key, secret, token

    def ec2(self, action, skew=0, service="ec2", version="2016-11-15", **params):
        """Parameters with dots are written with "__": Filter__1__Name."""
        named = {name.replace("__", "."): value for name, value in params.items()}
        form = {"Action": action, "Version": version, **named}
        return self.send(service, urllib.parse.urlencode(form).encode(),
                         [("content-type", "application/x-www-form-urlencoded; charset=utf-8")], skew)

    def sts(self, action, skew=0, **params):
        return self.ec2(action, skew, "sts", "2011-06-15", **params)

    def service(self, service, target, **members):
        return self.send(service, json.dumps(members).encode(),
                         [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", target)])

    def send(self, service, body, headers, skew=0):
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + skew))
        signed = aws_signature.sign(self.key, self.secret, self.region, service, "POST", self.cloud.url + "/", body,
                                    stamp, headers, self.token)
        return ask(self.cloud.url + "/", body, signed)

    def image(self, name="base-oss-nvidia-driver-gpu-ubuntu-24.04"):
        path = f"/aws/service/deeplearning/ami/x86_64/{name}/latest/ami-id"
        return self.service("ssm", "AmazonSSM.GetParameter", Name=path).json["Parameter"]["Value"]

    def subnet(self, zone):
        found = self.ec2("DescribeSubnets", Filter__1__Name="availability-zone", Filter__1__Value__1=zone)
        return found.all("subnetId")[0]

    def run(self, kind="g6.xlarge", count=1, zone="us-east-1b", token="t", **more):
        return self.ec2("RunInstances", ImageId=self.image(), InstanceType=kind, MinCount=count, MaxCount=count,
                        ClientToken=token, SubnetId=self.subnet(zone), InstanceInitiatedShutdownBehavior="terminate",
                        **more)


class Gce:
    def __init__(self, cloud):
        self.cloud = cloud
        self.top = f"{cloud.url}/compute/v1/projects/{cloud.keys.project}/"
        self.headers = {"Authorization": f"Bearer {self.token()}", "Content-Type": "application/json"}

    def jwt(self, **claims):
        given = {"iss": cloud_keys.GCP_EMAIL, "scope": "https://www.googleapis.com/auth/cloud-platform",
                 "aud": f"{self.cloud.url}/token", "iat": int(time.time()), "exp": int(time.time()) + 3600, **claims}
        head = {"alg": "RS256", "typ": "JWT", "kid": self.cloud.keys.key_id}
        signed = ".".join(coded(json.dumps(each).encode()) for each in (head, given))
        made = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(self.cloud.folder / "gcp.pem")], check=True,
                              input=signed.encode(), capture_output=True, timeout=60)
        return f"{signed}.{coded(made.stdout)}"

    def buy(self, assertion):
        form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
        return ask(f"{self.cloud.url}/token", urllib.parse.urlencode(form).encode())

    def token(self):
        return self.buy(self.jwt()).json["access_token"]

    def get(self, path):
        return ask(self.top + path, None, self.headers)

    def post(self, path, body=None):
        return ask(self.top + path, json.dumps(body).encode() if body else b"", self.headers, "POST")

    def delete(self, path):
        return ask(self.top + path, None, self.headers, "DELETE")

    def finished(self, answer):
        """Waits for the operation in the answer, and returns it."""
        made = answer.json
        while made["status"] != "DONE":
            path = re.sub(r".*/projects/[^/]+/", "", made["selfLink"])
            made = self.post(f"{path}/wait").json
        return made

    def instance(self, name="ls-a-0", zone="us-central1-a", kind="a2-highgpu-1g", spot=False, lasts=None, **more):
        scheduling = {"onHostMaintenance": "TERMINATE", "automaticRestart": False,
                      "provisioningModel": "SPOT" if spot else "STANDARD"}
        if spot or lasts:
            scheduling["instanceTerminationAction"] = "DELETE"
        if lasts:
            scheduling["maxRunDuration"] = {"seconds": str(lasts)}
        image = f"projects/{IMAGES}/global/images/family/ubuntu-accelerator-2404-amd64-with-nvidia-580"
        return {"name": name, "machineType": f"zones/{zone}/machineTypes/{kind}", "scheduling": scheduling,
                "disks": [{"boot": True, "autoDelete": True, "initializeParams": {
                    "sourceImage": image, "diskSizeGb": "100", "diskType": f"zones/{zone}/diskTypes/pd-balanced"}}],
                "networkInterfaces": [{"network": "global/networks/default", "accessConfigs": [
                    {"type": "ONE_TO_ONE_NAT", "name": "External NAT"}]}], "labels": {"lockstep-owner": "me"}, **more}


def coded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def lambda_ask(cloud, path, body=None, method=None):
    headers = {"Authorization": f"Bearer {cloud_keys.LAMBDA_KEY}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    return ask(f"{cloud.url}/api/v1/{path}", None if body is None else json.dumps(body).encode(), headers, method)


def runpod_ask(cloud, path, body=None, method=None, key=cloud_keys.RUNPOD_KEY):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return ask(f"{cloud.url}/{path}", None if body is None else json.dumps(body).encode(), headers, method)


def runpod_graphql(cloud, query, given=None):
    return runpod_ask(cloud, "graphql", {"query": query, "variables": {"input": given or {}}})
