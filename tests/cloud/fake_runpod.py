"""The face of RunPod: REST v2 under /v2 and GraphQL under /graphql. Both are held against schemas/runpod.json.

Its peculiarities: "400" stands for a broken rule and for lack of capacity; no idempotency and no tags; sshd has
another port than 22; `terminateAfter`, which only GraphQL accepts, always ends a pod. A pod whose container has ended
shows EXITED and is billed until a client removes it. The pod's own key may do that (extra["key"]; RUNPOD_API_KEY inside
the pod)."""
import calendar
import re
import time

import cloud_keys
import graphql_reader as graphql
import json_schema
from cloud_faults import first, traits
from cloud_http import Refused, Reply
from cloud_world import Machine, disk_rate, micros
from ec2_places import stamp

NO_ROOM = "There are no instances currently available"
WINDOW = 600
TITLES = {400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
          422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error",
          503: "Service Unavailable"}
OPERATIONS = {"podFindAndDeployOnDemand": "mutation", "podRentInterruptable": "mutation", "podTerminate": "mutation",
              "gpuTypes": "query", "myself": "query", "pod": "query"}
# The fields of a pod. Selections are checked before anything is done.
POD = {**dict.fromkeys(("id", "name", "imageName", "machineId", "desiredStatus", "costPerHr", "gpuCount", "env")),
       "machine": dict.fromkeys(("podHostId", "gpuDisplayName", "dataCenterId", "location")),
       "runtime": {"uptimeInSeconds": None,
                   "ports": dict.fromkeys(("ip", "isIpPublic", "privatePort", "publicPort", "type"))}}


class Face:
    name, notice_s, ended_by_hand = "runpod", 5, "terminated"

    def __init__(self, cloud):
        self.world = cloud.world
        self.catalog = self.world.catalog["runpod"]
        self.schema = json_schema.load("runpod")
        self.reset()

    def reset(self):
        self.prices, self.stock, self.pod_keys = {}, {}, {}
        self.balance = micros(self.catalog["balance"])
        self.window = []

    def change(self, what, given):
        """price: {"type", "usd", "spot"}; stock: {"type", "zone", "level"}; quota: {"balance"}."""
        if what == "price":
            self.prices[given["type"], bool(given.get("spot"))] = micros(given["usd"])
        elif what == "stock":
            self.stock[given["type"], given["zone"]] = given["level"]
        else:
            self.balance = micros(given["balance"])

    def takes(self, request):
        return request.path.startswith("/v2/") or request.path == "/graphql"

    # Reading.

    def read(self, request):
        request.face, request.is_graphql = "runpod", request.path == "/graphql"
        kind, _, key = request.header("Authorization").partition(" ")
        if kind != "Bearer" or (key != cloud_keys.RUNPOD_KEY and key not in self.pod_keys):
            raise Refused("unauthorized", "Invalid or missing API key.", 401)
        request.own_pod = self.pod_keys.get(key)  # a pod's own key may only end that pod
        if request.is_graphql:
            return self.read_graphql(request)
        return self.read_rest(request)

    def read_rest(self, request):
        parts = request.path.split("/")[2:]
        name = "/".join(parts[:2] if parts[0] == "catalog" else [parts[0]] + ["{id}"] * (len(parts) - 1))
        actions = {("GET", "catalog/gpus"): "gpus.list", ("GET", "catalog/datacenters"): "dataCenters.list",
                   ("GET", "pods"): "pods.list", ("POST", "pods"): "pods.create", ("GET", "pods/{id}"): "pods.get",
                   ("DELETE", "pods/{id}"): "pods.delete"}
        if (request.method, name) not in actions:
            raise Refused("not_found", f"no {request.method} {request.path}", 404)
        request.action, request.ident = actions[request.method, name], parts[-1]
        known = {"include", "product", "count", "cloud", "minCudaVersion"} if parts[0] == "catalog" else set()
        if set(request.query) - known or request.query.get("include", "AVAILABILITY") != "AVAILABILITY":
            raise Refused("invalid", f"unknown query: {request.query_text}", 422)
        if request.action == "pods.create":
            request.params = request.json("invalid", 422)
            self.check(request.params, "CreatePod", Refused)
            gpu = request.params["gpu"]
            request.type, request.zone = gpu["id"], ",".join(request.params.get("dataCenterIds", []))
        elif request.body:
            raise Refused("invalid", "this call has no body", 422)

    def read_graphql(self, request):
        given = request.json("BAD_USER_INPUT")
        if request.method != "POST" or set(given) - {"query", "variables", "operationName"}:
            raise Refused("BAD_USER_INPUT", "POST {query, variables} is needed")
        try:
            kind, fields = graphql.Reader(given.get("query", ""), given.get("variables") or {}).document()
            if len(fields) != 1 or OPERATIONS.get(fields[0].name) != kind:
                raise graphql.Wrong(f"Cannot query field {[each.name for each in fields]} on type {kind}.")
            if fields[0].name in ("podFindAndDeployOnDemand", "podRentInterruptable", "pod"):
                graphql.pick(POD, fields[0].fields, "Pod")
        except graphql.Wrong as wrong:
            raise Refused("GRAPHQL_VALIDATION_FAILED", str(wrong), 400) from None
        request.field = fields[0]
        request.action = f"graphql.{request.field.name}"
        request.input = request.field.arguments.get("input", {})
        request.params = {"field": request.field.name, "input": request.input}
        if set(request.field.arguments) - {"input"}:
            raise Refused("GRAPHQL_VALIDATION_FAILED", "Unknown argument.", 400)
        schema = {"podFindAndDeployOnDemand": "DeployInput", "podRentInterruptable": "DeployInput",
                  "gpuTypes": "TypeInput"}.get(request.field.name, "TerminateInput")
        if request.field.name != "myself":
            self.check(request.input, schema, lambda code, detail, _: Refused("GRAPHQL_VALIDATION_FAILED", detail, 400))
        request.type, request.zone = request.input.get("gpuTypeId", ""), request.input.get("dataCenterId", "")

    def check(self, given, schema, refused):
        wrongs = json_schema.wrongs(given, self.schema[schema], self.schema)
        if wrongs:
            raise refused("invalid", "; ".join(wrongs), 422)

    # Answering and refusing.

    def answer(self, request):
        self.window = [at for at in self.window if at > self.world.wall() - 60] + [self.world.wall()]
        if request.own_pod and request.action not in ("pods.delete", "graphql.podTerminate"):
            raise Refused("forbidden", "this key may only end its own pod", 403)
        if request.is_graphql:
            made = self.answer_graphql(request)
        else:
            actions = {"gpus.list": self.gpus, "dataCenters.list": self.data_centers, "pods.list": self.list_pods,
                       "pods.create": self.create, "pods.get": self.get, "pods.delete": self.delete}
            made = actions[request.action](request)
        made.headers.update({"RateLimit-Policy": f'"default";q={WINDOW};w=60',
                             "RateLimit": f'"default";r={max(0, WINDOW - len(self.window))};t=60'})
        return made

    def said(self, value, schema, status=200):
        wrongs = json_schema.wrongs(value, self.schema[schema], self.schema)
        assert not wrongs, f"the fake answers what the schema does not have: {wrongs}"
        return Reply(value, status)

    def refuse(self, request, refused):
        if getattr(request, "is_graphql", False) and refused.status in (200, 400, 402):
            error = {"message": refused.message, "path": [getattr(request, "field", None) and request.field.name],
                     "extensions": {"code": refused.code}}
            status = 400 if refused.code == "GRAPHQL_VALIDATION_FAILED" else 200
            return Reply({"errors": [error], "data": None}, status)
        problem = {"title": TITLES.get(refused.status, "Error"), "status": refused.status, "detail": refused.message,
                   "errors": []}
        return Reply(problem, refused.status, "application/problem+json", refused.headers)

    def fault(self, request, wrong):
        headers = {"Retry-After": str(wrong["retry_after"])} if "retry_after" in wrong else {}
        if wrong["kind"] == "token_expired":
            return Refused("unauthorized", "Invalid or missing API key.", 401)
        return Refused(wrong.get("code", "error"), wrong.get("message", "scripted"), wrong.get("status", 500), headers)

    # What is sold.

    def price(self, kind, spot=False, cloud="SECURE"):
        entry = self.catalog["gpus"][kind]
        return self.prices.get((kind, spot), micros(entry["spot" if spot else cloud.lower()]))

    def level(self, kind, center):
        return self.stock.get((kind, center), self.catalog["gpus"][kind]["dcs"].get(center, "NONE"))

    def levels(self, kind):
        return {center: self.level(kind, center) for center in {
            **self.catalog["gpus"][kind]["dcs"], **{place: 0 for name, place in self.stock if name == kind}}}

    def best(self, kind):
        return min(self.levels(kind).values(), key=["HIGH", "MEDIUM", "LOW", "NONE"].index, default="NONE")

    def gpus(self, request):
        rows = []
        for name, entry in self.catalog["gpus"].items():
            secure, community = self.price(name), self.price(name, cloud="COMMUNITY")
            row = {"id": name, "name": entry["name"], "pool": None, "manufacturer": "NVIDIA", "memory": entry["memory"],
                   "secure": secure is not None, "community": community is not None,
                   "price": {"secure": usd(secure) or 0.0, "community": usd(community) or 0.0},
                   "maxCount": {"secure": entry["max"][0], "community": entry["max"][1]}}
            if request.query.get("include") == "AVAILABILITY":
                row.update(availability=self.best(name), cudaVersions=[{"version": "12.8", "available": True}],
                           dataCenters=[{"id": center, "name": center, "availability": level}
                                        for center, level in self.levels(name).items()])
            rows.append(row)
        return self.said({"gpus": rows}, "Gpus")

    def data_centers(self, _):
        rows = [{"id": name, "name": place, "region": "EUROPE" if name.startswith("EU") else "NORTH_AMERICA",
                 "networkVolumeTypes": ["STANDARD"], "compliance": [], "globalNetwork": True}
                for name, place in self.catalog["data_centers"].items()]
        return self.said({"dataCenters": rows}, "DataCenters")

    # Pods.

    def row(self, machine):
        status = {"booting": "STARTING" if machine.hook_done else "PROVISIONING", "running": "RUNNING",
                  "ending": "TERMINATED", "gone": "TERMINATED"}[machine.state]
        if machine.traits.get("guest_off"):
            status = "EXITED"
        rate = sum(bill.rate for bill in machine.bills if bill.end is None)
        return {"id": machine.id, "name": machine.name, "status": machine.traits.get("status", status),
                "image": machine.image, "cloud": machine.extra["cloud"], "disk": machine.disk_gb, "env": machine.env,
                "gpu": {"id": machine.type, "count": machine.gpus}, "dataCenterId": machine.zone or None,
                "cost": round(rate / 1e6, 6), "ports": machine.extra["ports"], "createdAt": stamp(machine.launched),
                "startedAt": stamp(machine.running_at) if machine.running_at else None,
                "ssh": {"proxy": ssh_endpoint("ssh.runpod.io", 22, f"{machine.id}-64411eb2"),
                        "direct": self.direct(machine)},
                "actions": ["stop", "restart", "terminate"] if status == "RUNNING" else ["terminate"],
                "args": machine.user_data, "mounts": {}, "registry": None, "cudaVersion": None, "template": None,
                "locked": False, "runtime": {}, "globalNetworking": {"enabled": False}}

    def direct(self, machine):
        if machine.state != "running" or "22/tcp" not in machine.extra["ports"]:
            return None
        if self.world.now() < machine.address_from or machine.traits.get("no_ssh"):
            return None
        return ssh_endpoint(machine.address, machine.port, "root")

    def listed(self):
        return [machine for machine in self.world.find(face="runpod")
                if machine.alive() and machine.state != "ending" and self.world.now() >= machine.listed_from]

    def known(self, ident):
        found = next((machine for machine in self.listed() if machine.id == ident), None)
        if found is None:
            raise Refused("not_found", "Pod not found", 404)
        return found

    def list_pods(self, _):
        return self.said({"pods": [self.row(machine) for machine in self.listed()]}, "Pods")

    def get(self, request):
        return self.said(self.row(self.known(request.ident)), "Pod")

    def end(self, request, ident):
        machine = self.known(ident)
        if request.own_pod not in (None, ident):
            raise Refused("forbidden", "this key may only end its own pod", 403)
        self.world.end(machine, "terminated")

    def delete(self, request):
        self.end(request, request.ident)
        return Reply(b"", 204)

    def create(self, request):
        given = request.params
        spec = {"gpu": given["gpu"]["id"], "count": given["gpu"]["count"], "cloud": given.get("cloud", "SECURE"),
                "centers": given.get("dataCenterIds", []), "name": given["name"], "image": given["image"],
                "disk": given.get("disk", 20) + given.get("mounts", {}).get("persistent", {}).get("size", 0),
                "env": given.get("env", {}), "ports": given.get("ports", []), "args": given.get("args", ""),
                "bid": None}
        return self.said(self.row(self.launch(request, spec)), "Pod", 201)

    def launch(self, request, spec):
        entry = self.catalog["gpus"].get(spec["gpu"])
        if entry is None:
            raise Refused("invalid", f"unknown GPU type {spec['gpu']}", 400)
        center, price = self.room(request, spec, entry)
        machine = Machine("runpod", self.world.ident("", 14), spec["gpu"], "", center, spec["bid"] is not None)
        machine.name, machine.image, machine.disk_gb = spec["name"], spec["image"], spec["disk"]
        machine.gpu, machine.gpus = entry["name"], spec["count"]
        key = f"pod_{self.world.ident('', 24)}"
        self.pod_keys[key] = machine.id
        machine.env = {**spec["env"], "RUNPOD_POD_ID": machine.id}
        machine.user_data, machine.public_key = spec["args"], spec["env"].get("PUBLIC_KEY", "")
        machine.extra = {"cloud": spec["cloud"], "ports": spec["ports"], "key": key,
                         "preempted": lambda: self.world.end(machine, "preempted"),
                         "powered_off": lambda: machine.traits.update(guest_off=True)}
        rates = [("machine", price * spec["count"]), ("disk", disk_rate(spec["disk"], self.catalog["disk_gb_month"]))]
        self.world.launch(machine, rates, self.catalog["minimum_s"], traits(request.found))
        return machine

    def foreign(self, given):
        """Adds a running pod of another user: {"name", "type", "env"}."""
        kind = given.get("type", "NVIDIA L4")
        machine = Machine("runpod", self.world.ident("", 14), kind, "", next(iter(self.levels(kind))), False)
        machine.name, machine.image, machine.disk_gb = given.get("name", "theirs"), "runpod/base", 20
        machine.gpu, machine.gpus, machine.env = self.catalog["gpus"][kind]["name"], 1, dict(given.get("env", {}))
        machine.extra = {"cloud": "SECURE", "ports": [], "key": "", "preempted": lambda: None,
                         "powered_off": lambda: machine.traits.update(guest_off=True)}
        return self.world.place_foreign(machine, [("machine", self.price(kind))])

    def room(self, request, spec, entry):
        """Returns (data center, price of a GPU), or refuses with no more detail than the real service."""
        price = self.price(spec["gpu"], cloud=spec["cloud"])
        most = entry["max"][0 if spec["cloud"] == "SECURE" else 1]
        if first(request.found, "quota") or self.balance < micros(0.01):
            raise Refused("BALANCE", "Your balance is too low to rent a pod", 402)
        centers = [each for each in spec["centers"] or self.levels(spec["gpu"])
                   if self.level(spec["gpu"], each) != "NONE"]
        if price is None or spec["count"] > most or not centers or first(request.found, "capacity"):
            raise Refused("SUPPLY_CONSTRAINT", NO_ROOM, 400)
        if spec["bid"] is not None:
            least = self.price(spec["gpu"], spot=True)
            if least is None or spec["bid"] < least:
                raise Refused("SUPPLY_CONSTRAINT", f"bid is below the minimum of {usd(least)}", 400)
            price = spec["bid"]
        return centers[0], price

    # GraphQL.

    def answer_graphql(self, request):
        name = request.field.name
        made = {"podFindAndDeployOnDemand": self.deploy, "podRentInterruptable": self.deploy,
                "podTerminate": self.terminate, "gpuTypes": self.gpu_types, "myself": self.myself,
                "pod": self.pod}[name](request)
        try:
            picked = graphql.pick(made, request.field.fields, name)
        except graphql.Wrong as wrong:
            raise Refused("GRAPHQL_VALIDATION_FAILED", str(wrong), 400) from None
        return Reply({"data": {request.field.alias: picked}})

    def deploy(self, request):
        given, spot = request.input, request.field.name == "podRentInterruptable"
        if spot != ("bidPerGpu" in given):
            raise Refused("BAD_USER_INPUT", "bidPerGpu belongs to podRentInterruptable, and is needed there", 400)
        ends = given.get("terminateAfter")
        moment = calendar.timegm(time.strptime(re.sub(r"\.\d+", "", ends), "%Y-%m-%dT%H:%M:%SZ")) if ends else None
        if moment is not None and moment <= self.world.now():
            raise Refused("BAD_USER_INPUT", "terminateAfter is in the past", 400)
        spec = {"gpu": given["gpuTypeId"], "count": given.get("gpuCount", 1), "name": given.get("name", ""),
                "cloud": "COMMUNITY" if given.get("cloudType") == "COMMUNITY" else "SECURE",
                "image": given["imageName"],
                "centers": [given["dataCenterId"]] if "dataCenterId" in given else [],
                "disk": given.get("containerDiskInGb", 20) + given.get("volumeInGb", 0),
                "env": {each["key"]: each["value"] for each in given.get("env", [])},
                "ports": [each for each in given.get("ports", "").split(",") if each],
                "args": given.get("dockerArgs", ""), "bid": micros(given["bidPerGpu"]) if spot else None}
        machine = self.launch(request, spec)
        if moment is not None:
            machine.extra["terminate_after"] = moment
            self.world.after(moment - self.world.now(), lambda: self.world.end(machine, "terminateAfter"))
        return self.pod_fields(machine)

    def pod_fields(self, machine):
        row, direct = self.row(machine), self.direct(machine)
        ports = [{"ip": direct["host"], "isIpPublic": True, "privatePort": 22, "publicPort": direct["port"],
                  "type": "tcp"}] if direct else []
        up = int(self.world.now() - machine.running_at) if machine.running_at else 0
        return {"id": machine.id, "name": machine.name, "imageName": machine.image, "machineId": f"m-{machine.id}",
                "desiredStatus": row["status"], "costPerHr": row["cost"], "gpuCount": machine.gpus,
                "env": [f"{key}={value}" for key, value in machine.env.items()],
                "runtime": {"uptimeInSeconds": up, "ports": ports} if machine.running_at else None,
                "machine": {"podHostId": f"{machine.id}-644", "gpuDisplayName": machine.gpu,
                            "dataCenterId": machine.zone, "location": machine.zone}}

    def terminate(self, request):
        self.end(request, request.input["podId"])

    def pod(self, request):
        return self.pod_fields(self.known(request.input["podId"]))

    def myself(self, _):
        return {"id": "user_fake", "email": "tester@example.com", "clientBalance": usd(self.balance),
                "currentSpendPerHr": sum(self.row(machine)["cost"] for machine in self.listed()),
                "pods": [self.pod_fields(machine) for machine in self.listed()]}

    def gpu_types(self, request):
        wanted = request.input.get("id")
        rows = []
        for name, entry in self.catalog["gpus"].items():
            if wanted in (None, name):
                rows.append({"id": name, "displayName": entry["name"], "memoryInGb": entry["memory"],
                             "secureCloud": self.price(name) is not None, "communityCloud": True,
                             "securePrice": usd(self.price(name)),
                             "communityPrice": usd(self.price(name, cloud="COMMUNITY")),
                             "maxGpuCount": max(entry["max"]),
                             "lowestPrice": lambda input=None, name=name: self.lowest(name, input or {})})
        return rows

    def lowest(self, name, given):
        self.check(given, "PriceInput", lambda code, detail, _: Refused("GRAPHQL_VALIDATION_FAILED", detail, 400))
        cloud = "SECURE" if given.get("secureCloud", True) else "COMMUNITY"
        level = self.best(name)
        there = level != "NONE" and given.get("gpuCount", 1) <= self.catalog["gpus"][name]["max"][cloud == "COMMUNITY"]
        return {"minimumBidPrice": usd(self.price(name, spot=True)) if there else None,
                "uninterruptablePrice": usd(self.price(name, cloud=cloud)),
                "stockStatus": level.capitalize() if there else None}


def ssh_endpoint(host, port, user):
    return {"host": host, "port": port, "username": user, "command": f"ssh {user}@{host} -p {port}"}


def usd(value):
    return None if value is None else round(value / 1e6, 6)
