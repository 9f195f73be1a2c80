"""The face of Lambda Cloud: https://cloud.lambda.ai/api/v1. Requests and answers are checked by schemas/lambda.json.
Its peculiarities: stock is a hint; no idempotency, creation time or lifetime; a machine whose guest powers off is still
billed and "active". At most 1 request a second and 1 launch in 12 s (setting "limits": 0 is off, 0.1 a tenth)."""
import base64
import re

import cloud_keys
import json_schema
from cloud_faults import first, traits
from cloud_http import Refused, Reply
from cloud_world import Machine, micros
from ec2_places import hash_of

TOP = "/api/v1/"
WORDS = {"booting": "booting", "running": "active", "ending": "terminating", "gone": "terminated"}
# Network jitter can make a pause of a second look a little shorter.
TOLERANCE_S = 0.05
ROUTES = [
    ("GET", "instance-types", "instance-types.list", None, "Types"),
    ("GET", "images", "images.list", None, "Images"),
    ("GET", "instances", "instances.list", None, "Instances"),
    ("GET", "instances/{id}", "instances.get", None, "Instance"),
    ("POST", "instance-operations/launch", "launch", "Launch", "Launched"),
    ("POST", "instance-operations/terminate", "terminate", "Terminate", "Terminated"),
    ("GET", "ssh-keys", "ssh-keys.list", None, "Keys"),
    ("POST", "ssh-keys", "ssh-keys.add", "AddKey", "Key"),
    ("DELETE", "ssh-keys/{id}", "ssh-keys.delete", None, "Empty"),
    ("GET", "firewall-rulesets", "rulesets.list", None, "Rulesets"),
    ("POST", "firewall-rulesets", "rulesets.add", "AddRuleset", "FirewallRuleset"),
    ("GET", "firewall-rulesets/{id}", "rulesets.get", None, "FirewallRuleset"),
    ("PATCH", "firewall-rulesets/{id}", "rulesets.change", "ChangeRuleset", "FirewallRuleset"),
    ("DELETE", "firewall-rulesets/{id}", "rulesets.delete", None, "Empty"),
]


class Face:
    name, notice_s, ended_by_hand = "lambda", 0, "terminated"

    def __init__(self, cloud):
        self.world = cloud.world
        self.catalog = self.world.catalog["lambda"]
        self.schema = json_schema.load("lambda")
        self.reset()

    def reset(self):
        self.keys, self.rulesets, self.prices, self.last = {}, {}, {}, {}
        self.regions = {name: list(entry["regions"]) for name, entry in self.catalog["types"].items()}
        self.quota = self.catalog["quota_gpus"]
        self.actions = {
            "instance-types.list": self.list_types, "images.list": self.list_images, "instances.list": self.list_all,
            "instances.get": self.get, "launch": self.launch, "terminate": self.terminate,
            "ssh-keys.list": lambda _: list(self.keys.values()), "ssh-keys.add": self.add_key,
            "ssh-keys.delete": self.delete_key,
            "rulesets.list": lambda _: [self.ruleset(each) for each in self.rulesets],
            "rulesets.add": self.add_ruleset, "rulesets.get": lambda request: self.ruleset(request.ident),
            "rulesets.change": self.change_ruleset, "rulesets.delete": self.delete_ruleset}

    def change(self, what, given):
        """price: {"type", "usd"}; stock: {"type", "regions": [..]}; quota: {"gpus"}."""
        if what == "price":
            self.prices[given["type"]] = round(float(given["usd"]) * 100)
        elif what == "stock":
            self.regions[given["type"]] = list(given["regions"])
        else:
            self.quota = int(given["gpus"])

    def takes(self, request):
        return request.path.startswith(TOP)

    def read(self, request):
        request.face, path = "lambda", request.path[len(TOP):]
        known, _, ident = path.partition("/") if not path.startswith("instance-operations/") else (path, "", "")
        route = next((each for each in ROUTES if each[0] == request.method
                      and each[1] == (f"{known}/{{id}}" if ident else known)), None)
        if route is None:
            raise Refused("global/object-does-not-exist", f"no {request.method} {path}", 404)
        request.ident, request.action, request.route = ident, route[2], route
        self.authenticate(request)
        self.pace("any", 1.0)
        if request.action == "launch":
            self.pace("launch", 12.0)
        if request.query_text:
            raise Refused("global/invalid-parameters", f"unknown query {request.query_text}")
        if route[3]:
            if request.header("Content-Type").partition(";")[0] != "application/json":
                raise Refused("global/invalid-parameters", "Content-Type must be application/json")
            request.params = request.json("global/invalid-parameters")
            wrongs = json_schema.wrongs(request.params, self.schema[route[3]], self.schema)
            if wrongs:
                raise Refused("global/invalid-parameters", "; ".join(wrongs))
        elif request.body:
            raise Refused("global/invalid-parameters", "this call has no body")
        request.region = request.params.get("region_name", "")
        request.type = request.params.get("instance_type_name", "")

    def authenticate(self, request):
        kind, _, key = request.header("Authorization").partition(" ")
        if kind == "Basic":
            try:
                key, colon, rest = base64.b64decode(key, validate=True).decode().partition(":")
            except ValueError:
                key, colon, rest = "", "", ""
            key = key if colon and not rest else ""
        if kind not in ("Basic", "Bearer") or key != cloud_keys.LAMBDA_KEY:
            raise Refused("global/invalid-api-key", "API key was invalid, expired, or deleted.", 401)

    def pace(self, what, seconds):
        """Checks the clients' pauses, in real time."""
        now, limit = self.world.wall() - self.world.clock.skew, seconds * self.world.settings["limits"]
        if limit and now - self.last.get(what, 0) < limit - TOLERANCE_S:
            raise Refused("global/too-many-requests", f"at most one request in {seconds} s", 429)
        self.last[what] = now

    def answer(self, request):
        made = self.actions[request.action](request)
        wrongs = json_schema.wrongs(made, self.schema[request.route[4]], self.schema)
        assert not wrongs, f"the fake answers what the schema does not have: {wrongs}"
        return Reply({"data": made})

    def refuse(self, _, refused):
        error = {"code": refused.code, "message": refused.message, **refused.more}
        return Reply({"error": error}, refused.status, headers=refused.headers)

    def fault(self, _, wrong):
        headers = {"Retry-After": str(wrong["retry_after"])} if "retry_after" in wrong else {}
        if wrong["kind"] == "token_expired":
            return Refused("global/invalid-api-key", "API key was invalid, expired, or deleted.", 401)
        status = wrong.get("status", 400)
        code = wrong.get("code", "global/too-many-requests" if status == 429 else "global/internal-error")
        return Refused(code, wrong.get("message", "scripted"), status, headers)

    # What is sold.

    def place(self, region):
        return {"name": region, "description": self.catalog["regions"].get(region, region)}

    def type_row(self, name):
        entry = self.catalog["types"][name]
        return {"name": name, "description": entry["description"], "gpu_description": entry["gpu_description"],
                "price_cents_per_hour": self.prices.get(name, entry["cents"]),
                "specs": {part: entry[part] for part in ("vcpus", "memory_gib", "storage_gib", "gpus")}}

    def list_types(self, _):
        return {name: {"instance_type": self.type_row(name),
                       "regions_with_capacity_available": [self.place(each) for each in self.regions[name]]}
                for name in self.catalog["types"]}

    def images(self):
        for family, archs in self.catalog["images"].items():
            for arch in archs:
                for region in self.catalog["regions"]:
                    yield {"id": f"{hash_of(family + arch + region):032x}", "created_time": "2026-10-01T00:00:00.000Z",
                           "updated_time": "2026-10-01T00:00:00.000Z", "name": family, "description": family,
                           "family": family, "version": "2026.10.1", "architecture": arch, "region": self.place(region)}

    def list_images(self, _):
        return list(self.images())

    # Machines.

    def row(self, machine):
        now, status = self.world.now(), WORDS[machine.state]
        if machine.state == "running" and machine.traits.get("unhealthy"):
            status = "unhealthy"
        there = {"available": machine.state == "running"}
        made = {"id": machine.id, "name": machine.name, "status": machine.traits.get("status", status),
                "ssh_key_names": machine.extra["keys"], "file_system_names": [], "region": self.place(machine.region),
                "instance_type": self.type_row(machine.type), "hostname": machine.extra["hostname"] or machine.id,
                "actions": {each: dict(there)
                            for each in ("migrate", "rebuild", "restart", "cold_reboot", "terminate")},
                "tags": [{"key": key, "value": value} for key, value in machine.tags.items()],
                "firewall_rulesets": [{"id": each} for each in machine.extra["rulesets"]]}
        if machine.hook_done and now >= machine.address_from:
            made["ip"] = machine.address
            if not machine.traits.get("no_private_ip"):
                made["private_ip"] = machine.private_address
        return made

    def listed(self):
        """Returns the listed machines. A terminated machine soon leaves the list."""
        now = self.world.now()
        return [machine for machine in self.world.find(face="lambda") if now >= machine.listed_from
                and not (machine.state == "gone" and now > machine.ended + 60)]

    def list_all(self, _):
        return [self.row(machine) for machine in self.listed()]

    def known(self, ident):
        found = next((machine for machine in self.listed() if machine.id == ident), None)
        if found is None:
            raise Refused("global/object-does-not-exist", "Specified instance does not exist.", 404)
        return found

    def get(self, request):
        return self.row(self.known(request.ident))

    def launch(self, request):
        given, said = request.params, traits(request.found)
        entry = self.check_launch(request)
        machine = Machine("lambda", self.world.ident("", 32), request.type, request.region, "", False)
        machine.name = given.get("name", "")
        machine.tags = {tag["key"]: tag["value"] for tag in given.get("tags", [])}
        machine.user_data, machine.image = given.get("user_data", ""), str(given.get("image", {}))
        machine.public_key = next(key["public_key"] for key in self.keys.values()
                                  if key["name"] == given["ssh_key_names"][0])
        machine.gpu, machine.gpus = entry["gpu_description"], entry["gpus"]
        machine.extra = {"keys": given["ssh_key_names"], "hostname": given.get("hostname", ""),
                         "rulesets": [each["id"] for each in given.get("firewall_rulesets", [])],
                         "preempted": lambda: None, "powered_off": lambda: self.powered_off(machine)}
        cents = self.prices.get(request.type, entry["cents"])
        self.world.launch(machine, [("machine", micros(cents / 100))], self.catalog["minimum_s"], said)
        return {"instance_ids": [machine.id]}

    def check_launch(self, request):
        given, entry = request.params, self.catalog["types"].get(request.type)
        if entry is None or request.region not in self.catalog["regions"]:
            raise Refused("global/object-does-not-exist", "Specified instance type or region does not exist.", 404)
        if len(given["ssh_key_names"]) != 1:
            raise Refused("global/invalid-parameters", "Exactly one SSH key must be specified")
        if given["ssh_key_names"][0] not in [key["name"] for key in self.keys.values()]:
            raise Refused("global/object-does-not-exist", "Specified SSH key does not exist.")
        self.check_image(given.get("image"), entry, request.region)
        for each in given.get("firewall_rulesets", []):
            if self.rulesets.get(each["id"], {"region": ""})["region"] != request.region:
                raise Refused("global/object-does-not-exist", "Specified firewall ruleset does not exist there.")
        used = sum(machine.gpus for machine in self.world.find(face="lambda") if machine.alive())
        if first(request.found, "quota") or used + entry["gpus"] > self.quota:
            raise Refused("global/quota-exceeded", "Quota exceeded.")
        if first(request.found, "capacity") or request.region not in self.regions[request.type]:
            raise Refused("instance-operations/launch/insufficient-capacity",
                          "Not enough capacity to fulfill launch request.",
                          suggestion="Choose an instance type with more availability, or try again later.")
        return entry

    def check_image(self, image, entry, region):
        if image is None:
            return
        fits = [each for each in self.images() if each["region"]["name"] == region
                and each["architecture"] == entry.get("arch", "x86_64")
                and (each["id"] == image.get("id") or each["family"] == image.get("family"))]
        if not fits:
            raise Refused("global/object-does-not-exist", "Specified image does not exist for this type and region.")

    def powered_off(self, machine):
        """Does nothing: the machine stays "active" and billed until a client terminates it."""
        machine.traits["guest_off"] = True

    def terminate(self, request):
        machines = [self.known(ident) for ident in request.params["instance_ids"]]
        if not machines:
            raise Refused("global/invalid-parameters", "no instance ids")
        for machine in machines:
            self.world.end(machine, "terminated")
        shown = machines[1:] if first(request.found, "omit_id") else machines
        return {"terminated_instances": [self.row(machine) for machine in shown]}

    def foreign(self, given):
        """Adds a running machine of another user: {"region", "name", "type"}."""
        kind = given.get("type", "gpu_1x_a10")
        machine = Machine("lambda", self.world.ident("", 32), kind, given.get("region", "us-east-1"), "", False)
        machine.name, machine.gpus = given.get("name", "theirs"), self.catalog["types"][kind]["gpus"]
        machine.tags = dict(given.get("tags", {}))
        machine.extra = {"keys": ["theirs"], "hostname": "", "rulesets": [], "preempted": lambda: None,
                         "powered_off": lambda: self.powered_off(machine)}
        return self.world.place_foreign(machine, [("machine", micros(self.catalog["types"][kind]["cents"] / 100))])

    # Keys and firewall.

    def add_key(self, request):
        given = request.params
        parts = given.get("public_key", "").split()
        if len(parts) < 2 or not re.fullmatch(r"ssh-(ed25519|rsa)|ecdsa-sha2-nistp\d+", parts[0]):
            raise Refused("global/invalid-parameters", "Invalid SSH public key")
        if any(key["name"] == given["name"] for key in self.keys.values()):
            raise Refused("global/duplicate", "An SSH key with this name exists.")
        ident = self.world.ident("", 32)
        self.keys[ident] = {"id": ident, "name": given["name"], "public_key": given["public_key"]}
        return self.keys[ident]

    def delete_key(self, request):
        if self.keys.pop(request.ident, None) is None:
            raise Refused("global/object-does-not-exist", "Specified SSH key does not exist.", 404)
        return {}

    def ruleset(self, ident):
        if ident not in self.rulesets:
            raise Refused("global/object-does-not-exist", "Specified firewall ruleset does not exist.", 404)
        entry = self.rulesets[ident]
        used = [machine.id for machine in self.world.find(face="lambda")
                if machine.alive() and ident in machine.extra["rulesets"]]
        return {**entry, "region": self.place(entry["region"]), "instance_ids": used}

    def add_ruleset(self, request):
        given = request.params
        if given["region"] in self.catalog["no_rulesets"]:
            raise Refused("global/invalid-parameters", f"Firewall rulesets are not supported in {given['region']}.")
        ident = self.world.ident("", 32)
        self.rulesets[ident] = {"id": ident, "created": "2026-11-01T00:00:00.000Z", **given}
        return self.ruleset(ident)

    def change_ruleset(self, request):
        self.ruleset(request.ident)
        self.rulesets[request.ident].update(request.params)
        return self.ruleset(request.ident)

    def delete_ruleset(self, request):
        if self.ruleset(request.ident)["instance_ids"]:
            raise Refused("firewall-rulesets/firewall-ruleset-in-use", "Firewall ruleset is in use.")
        del self.rulesets[request.ident]
        return {}
