#!/usr/bin/env python3
"""The metadata service that a rented machine sees at 169.254.169.254, of EC2 (IMDSv2) or of Google. Its answers come
from a file that is read for each request, so a test gives notice by writing the file (tell()):

    python3 metadata_service.py --kind ec2 --state FILE [--address 169.254.169.254] [--port 80] [--own-address]

FILE is JSON; all is optional: {"instance_id", "region", "zone", "user_data", "name", "attributes": {..},
"instance_action": {"action", "time"}, "rebalance": {"noticeTime"}, "role": {"name", "keys": {..}},  (ec2)
"preempted": true, "maintenance": "TERMINATE_ON_HOST_MAINTENANCE"}  (gce). --own-address puts the address on lo first,
for a network namespace. One JSON line tells the address. With --until-eof it ends when its standard input closes.
"""
import argparse
import hashlib
import json
import os
import pathlib
import secrets
import subprocess
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LONGEST_TOKEN_S = 21600
LOOK_S = 0.05


def tell(path, **news):
    """Adds to the answers of the service; None removes an answer. Replaces the file atomically."""
    path = pathlib.Path(path)
    said = {**read(path), **news}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({name: value for name, value in said.items() if value is not None}), encoding="utf-8")
    partial.replace(path)


def read(path):
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def said(self, text, status=200, **headers):
        body = text.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        # Both real services refuse requests through a proxy: no web server on the machine can be tricked into asking.
        if "X-Forwarded-For" in self.headers:
            return self.said("Forbidden", 403)
        return self.get_ec2() if self.server.kind == "ec2" else self.get_gce()

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        lasts = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
        if self.server.kind != "ec2" or self.path != "/latest/api/token" or "X-Forwarded-For" in self.headers:
            return self.said("Forbidden", 403)
        if not lasts.isdigit() or not 1 <= int(lasts) <= LONGEST_TOKEN_S:
            return self.said("Bad Request", 400)
        token = secrets.token_urlsafe(40)
        self.server.tokens[token] = time.monotonic() + int(lasts)
        return self.said(token, X_aws_ec2_metadata_token_ttl_seconds=lasts)

    # EC2.

    def get_ec2(self):
        if self.server.tokens.get(self.headers.get("X-aws-ec2-metadata-token", ""), 0) < time.monotonic():
            return self.said("Unauthorized", 401)
        found = ec2_tree(read(self.server.state)).get(self.path.removeprefix("/latest"))
        if found is None:
            return self.said("Not Found", 404)
        return self.said(found if isinstance(found, str) else json.dumps(found))

    # Google.

    def get_gce(self):
        if self.headers.get("Metadata-Flavor") != "Google":
            return self.said("Missing Metadata-Flavor:Google header.", 403)
        place = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(place.query))
        if set(asked) - {"wait_for_change", "last_etag", "timeout_sec", "alt", "recursive"}:
            return self.said("Bad Request", 400)
        path = place.path.removeprefix("/computeMetadata/v1/")
        value = gce_tree(read(self.server.state)).get(path)
        if asked.get("wait_for_change") == "true":
            value = self.changed(path, value, asked)
        if value is None:
            return self.said("Not Found", 404, Metadata_Flavor="Google")
        return self.said(value, Metadata_Flavor="Google", ETag=etag(value))

    def changed(self, path, value, asked):
        """Waits until the value differs from that of last_etag (default: from now), or the time is up."""
        last = asked.get("last_etag") or etag(value)
        until = time.monotonic() + (float(asked["timeout_sec"]) if "timeout_sec" in asked else 3600)
        while etag(value) == last and time.monotonic() < until and not self.server.ended.is_set():
            self.server.ended.wait(LOOK_S)
            value = gce_tree(read(self.server.state)).get(path)
        return value


def ec2_tree(said):
    role = said.get("role")
    made = {"/meta-data/instance-id": said.get("instance_id", "i-0fake"), "/user-data": said.get("user_data"),
            "/meta-data/placement/region": said.get("region"),
            "/meta-data/placement/availability-zone": said.get("zone"),
            "/meta-data/spot/instance-action": said.get("instance_action"),
            "/meta-data/events/recommendations/rebalance": said.get("rebalance"),
            "/meta-data/iam/security-credentials/": role and role["name"]}
    if "instance_action" in said:
        made["/meta-data/spot/termination-time"] = said["instance_action"]["time"]
    if role:
        made[f"/meta-data/iam/security-credentials/{role['name']}"] = role["keys"]
    return made


def gce_tree(said):
    made = {"instance/preempted": "TRUE" if said.get("preempted") else "FALSE",
            "instance/maintenance-event": said.get("maintenance", "NONE"), "instance/name": said.get("name"),
            "instance/id": said.get("instance_id"), "instance/zone": said.get("zone")}
    return {**made, **{f"instance/attributes/{name}": value for name, value in said.get("attributes", {}).items()}}


def etag(value):
    return hashlib.sha256(str(value).encode()).hexdigest()[:16]


class Service(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, kind, state, address="127.0.0.1", port=0):
        super().__init__((address, port), Handler)
        self.kind, self.state, self.tokens, self.ended = kind, pathlib.Path(state), {}, threading.Event()

    def close(self):
        self.ended.set()
        self.shutdown()
        self.server_close()


def main():
    parser = argparse.ArgumentParser(description="A machine's metadata service, for tests.")
    parser.add_argument("--kind", choices=("ec2", "gce"), required=True)
    parser.add_argument("--state", required=True)
    parser.add_argument("--address", default="169.254.169.254")
    parser.add_argument("--port", type=int, default=80)
    parser.add_argument("--own-address", action="store_true", help="put the address on lo first")
    parser.add_argument("--until-eof", action="store_true", help="end when standard input does")
    given = parser.parse_args()
    if given.own_address:
        subprocess.run(["ip", "addr", "replace", f"{given.address}/32", "dev", "lo"], check=True)
    service = Service(given.kind, given.state, given.address, given.port)
    print(json.dumps({"address": given.address, "port": service.server_address[1], "pid": os.getpid()}), flush=True)
    if not given.until_eof:
        return service.serve_forever()
    threading.Thread(target=service.serve_forever, daemon=True).start()
    sys.stdin.read()
    return service.close()


if __name__ == "__main__":
    main()
