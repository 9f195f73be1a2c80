"""Machines of EC2: launched once per token, listed, ended; spot requests. As documented, a token belongs to a zone if a
subnet or zone is given, and lives a day longer than its machines."""
import base64
import hashlib
import json

from cloud_faults import first, traits
from cloud_http import Refused
from cloud_world import Machine, disk_rate, micros
from ec2_params import passes, tag_row
from ec2_places import stamp

CODES = {"booting": (0, "pending"), "running": (16, "running"), "ending": (32, "shutting-down"),
         "stopping": (64, "stopping"), "stopped": (80, "stopped"), "gone": (48, "terminated")}
WORDS = {"Server.SpotInstanceTermination": "Server.SpotInstanceTermination: Spot instance termination",
         "Client.InstanceInitiatedShutdown": "Client.InstanceInitiatedShutdown: Instance initiated shutdown",
         "Client.UserInitiatedShutdown": "Client.UserInitiatedShutdown: User initiated shutdown"}
CAPACITY = ("We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}). "
            "Our system will be working on provisioning additional capacity. You can currently get {kind} capacity by "
            "not specifying an Availability Zone in your request or choosing {others}.")


class Machines:
    def __init__(self, face):
        self.face, self.world, self.catalog, self.places = face, face.world, face.catalog, face.places
        self.tokens, self.requests = {}, {}
        self.actions = {"RunInstances": self.run, "DescribeInstances": self.describe,
                        "TerminateInstances": self.terminate, "DescribeSpotInstanceRequests": self.spot_requests,
                        "CancelSpotInstanceRequests": self.cancel, "GetConsoleOutput": self.console,
                        "CreateTags": self.create_tags}

    def place(self, request):
        """Returns the zone and type of a launch, which faults match."""
        if request.action != "RunInstances":
            return
        request.type = request.params["InstanceType"]
        first_interface = (request.tree.get("NetworkInterface") or [{}])[0]
        subnet = request.params.get("SubnetId") or first_interface.get("SubnetId")
        request.zonal = bool(subnet or request.params.get("Placement.AvailabilityZone"))
        if subnet:
            request.zone = self.places.zone_of_subnet(request.region, subnet)
        else:
            zones = list(self.places.zone_names(request.region, local=False))
            request.zone = request.params.get("Placement.AvailabilityZone", zones[0])
            if request.zone not in self.places.zone_names(request.region):
                raise Refused("InvalidParameterValue", f"Invalid availability zone: [{request.zone}]")

    # RunInstances.

    def run(self, request):
        token = request.params.get("ClientToken")
        if token is not None and (len(token) > 64 or not token.isascii()):
            raise Refused("InvalidParameterValue", "ClientToken must be at most 64 ASCII characters")
        key = (request.region, request.zone if request.zonal else "", token)
        print_ = hashlib.sha256(json.dumps(sorted(request.params.items())).encode()).hexdigest()
        if token is not None and key in self.tokens:
            return self.repeated(request, *self.tokens[key], print_)
        spec = self.checked(request)
        if request.params.get("DryRun") == "true":
            raise Refused("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        self.check_room(request, spec)
        launched = [self.launch(request, spec, number, token) for number in range(spec["count"])]
        if token is not None:
            self.tokens[key] = print_, [machine.id for machine in launched], self.world.ident("r-")
        return self.reservation(launched, self.tokens[key][2] if token is not None else self.world.ident("r-"))

    def repeated(self, request, before, idents, reservation, print_):
        if before != print_:
            raise Refused("IdempotentParameterMismatch",
                          "Arguments on this idempotent request are inconsistent with arguments used in previous "
                          "request(s).")
        machines = [self.world.machines[ident] for ident in idents]
        if any(machine.state in ("ending", "gone") for machine in machines):
            raise Refused("IdempotentInstanceTerminated",
                          "The client token provided has been used to launch an instance that is terminated.")
        return self.reservation(machines, reservation)

    def checked(self, request):
        params, tree = request.params, request.tree
        kind = self.catalog["types"].get(request.type)
        if kind is None:
            raise Refused("InvalidParameterValue", f"Invalid value '{request.type}' for InstanceType.")
        count = int(params["MaxCount"])
        if not 1 <= int(params["MinCount"]) <= count <= 1000:
            raise Refused("InvalidParameterValue", "MinCount and MaxCount must be from 1 on, and in order")
        image = self.places.find_image(request.region, params["ImageId"])
        if image["arch"] != kind.get("arch", "x86_64"):
            raise Refused("InvalidParameterValue", f"The architecture '{kind.get('arch', 'x86_64')}' of the specified "
                          f"instance type does not match the architecture '{image['arch']}' of the specified AMI.")
        groups = self.check_network(request)
        disks = self.check_disks(tree, image)
        tags = self.check_tags(tree)
        market = tree.get("InstanceMarketOptions", {})
        spot = market.get("MarketType") == "spot"
        # The first spot launch of an account creates a role, which needs a separate permission.
        if spot and not self.world.settings["spot_role"]:
            raise Refused("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "The provided credentials do not have "
                          "permission to create the service-linked role for EC2 Spot Instances.", 403)
        if spot and tree.get("InstanceInitiatedShutdownBehavior") == "stop":
            raise Refused("InvalidParameterCombination", "one-time Spot instances cannot be stopped")
        hops = int(params.get("MetadataOptions.HttpPutResponseHopLimit", 1))
        if not 1 <= hops <= 64:
            raise Refused("InvalidParameterValue", "HttpPutResponseHopLimit is from 1 to 64")
        return {"count": count, "kind": kind, "image": image, "groups": groups, "disks": disks, "tags": tags,
                "spot": spot,
                "options": market.get("SpotOptions", {}),
                "public": (tree.get("NetworkInterface") or [{}])[0].get("AssociatePublicIpAddress", "true") == "true",
                "shutdown": params.get("InstanceInitiatedShutdownBehavior", "stop")}

    def check_network(self, request):
        interfaces = request.tree.get("NetworkInterface", [])
        groups = request.tree.get("SecurityGroupId", [])
        if interfaces and (groups or "SubnetId" in request.params):
            raise Refused("InvalidParameterCombination", "Network interfaces and an instance-level subnet ID or "
                          "security groups may not be specified on the same request")
        if len(interfaces) > 1 and any(each.get("AssociatePublicIpAddress") == "true" for each in interfaces):
            raise Refused("InvalidParameterCombination", "The associatePublicIPAddress parameter cannot be specified "
                          "when launching with multiple network interfaces.")
        for each in interfaces:
            groups = groups + each.get("SecurityGroupId", [])
            if "DeviceIndex" not in each:
                raise Refused("MissingParameter", "Each network interface requires a device index.")
        for each in groups:
            self.places.find_group(request.region, each)
        return groups

    def check_disks(self, tree, image):
        disks = {image["root"]: {"gb": image["gb"], "delete": True}}
        for each in tree.get("BlockDeviceMapping", []):
            name, ebs = each.get("DeviceName", ""), each.get("Ebs", {})
            size = int(ebs.get("VolumeSize", disks.get(name, {"gb": 0})["gb"]))
            if not 1 <= size <= 65536 or (name == image["root"] and size < image["gb"]):
                raise Refused("InvalidBlockDeviceMapping", f"Volume of size {size}GB is smaller than snapshot, expect "
                              f"size >= {image['gb']}GB")
            disks[name] = {"gb": size, "delete": ebs.get("DeleteOnTermination", "true") == "true"}
        return disks

    def check_tags(self, tree):
        made = {}
        for each in tree.get("TagSpecification", []):
            tags = {tag.get("Key", ""): tag.get("Value", "") for tag in each.get("Tag", [])}
            check_tags(tags)
            made[each.get("ResourceType", "")] = tags
        return made

    def check_room(self, request, spec):
        """Refuses correct requests for lack of stock, price or quota."""
        kind, zone, region = request.type, request.zone, request.region
        sold = [each for each in self.places.zone_names(region, local=False) if self.places.sold_in(kind, each)]
        if zone not in sold or (spec["spot"] and self.places.spot(kind, zone) is None):
            raise Refused("Unsupported", f"Your requested instance type ({kind}) is not supported in your requested "
                          f"Availability Zone ({zone}). Please retry your request by not specifying an Availability "
                          f"Zone or choosing {', '.join(each for each in sold if each != zone)}.")
        if not spec["spot"] and self.places.demand(kind, region) is None:
            raise Refused("Unsupported", f"The requested configuration is currently not supported: {kind} is sold by "
                          "capacity blocks only.")
        price = micros(spec["options"]["MaxPrice"]) if "MaxPrice" in spec["options"] else None
        if spec["spot"] and price is not None and price < self.places.spot(kind, zone):
            raise Refused("SpotMaxPriceTooLow", f"Your Spot request price of {price / 1e6} is lower than the minimum "
                          f"required Spot request fulfillment price of {self.places.spot(kind, zone) / 1e6}.")
        self.check_quota(request, spec)
        none = {(kind, zone)} | ({(kind, zone, "spot")} if spec["spot"] else set())
        if first(request.found, "capacity") or none & self.places.none:
            others = [each for each in sold if each != zone and (kind, each) not in self.places.none]
            raise Refused("InsufficientInstanceCapacity", CAPACITY.format(
                kind=kind, zone=zone, others=", ".join(others) or "another region"), 500)

    def check_quota(self, request, spec):
        quota = self.catalog["quota"]
        codes = quota["spot_codes"] if spec["spot"] else quota["codes"]
        name = spec["kind"].get("spot_quota", spec["kind"]["quota"]) if spec["spot"] else spec["kind"]["quota"]
        used = sum(self.catalog["types"][machine.type]["vcpus"] for machine in self.world.find(
            face="ec2", region=request.region, spot=spec["spot"]) if machine.alive()
            and machine.extra["quota"] == codes[name])
        limit = self.places.limit(request.region, codes[name])
        if first(request.found, "quota") or used + spec["kind"]["vcpus"] * spec["count"] > limit:
            if spec["spot"]:
                raise Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
            raise Refused("VcpuLimitExceeded", f"You have requested more vCPU capacity than your current vCPU limit of "
                          f"{limit} allows for the instance bucket that the specified instance type belongs to.")
        spec["quota"] = codes[name]

    def launch(self, request, spec, number, token):
        said, world = traits(request.found), self.world
        machine = Machine("ec2", world.ident("i-"), request.type, request.region, request.zone, spec["spot"])
        machine.tags, machine.image = dict(spec["tags"].get("instance", {})), spec["image"]["id"]
        machine.user_data = base64.b64decode(request.params.get("UserData", "")).decode("utf-8", "replace")
        machine.gpu, machine.gpus = spec["kind"]["gpu"] or "", spec["kind"]["count"]
        machine.disk_gb = sum(disk["gb"] for disk in spec["disks"].values())
        machine.extra = {"groups": spec["groups"], "token": token, "number": number, "shutdown": spec["shutdown"],
                         "public": spec["public"], "disks": spec["disks"], "quota": spec["quota"],
                         "volume_tags": spec["tags"].get("volume", {}),
                         "tokens": request.params.get("MetadataOptions.HttpTokens", "optional"),
                         "preempted": lambda: self.preempted(machine), "powered_off": lambda: self.powered_off(machine)}
        if spec["spot"]:
            machine.extra["request"] = world.ident("sir-", 8)
            self.requests[machine.extra["request"]] = {"machine": machine, "state": "active", "code": "fulfilled"}
        price = (self.places.spot(request.type, request.zone) if spec["spot"]
                 else self.places.demand(request.type, request.region))
        disk = disk_rate(machine.disk_gb, self.catalog["gp3_gb_month"])
        address = micros(self.catalog["ipv4_hour"]) if spec["public"] else 0
        rates = [("machine", price), ("disk", disk), ("address", address)]
        world.launch(machine, rates, self.catalog["minimum_s"], said)
        return machine

    def foreign(self, given):
        zone, kind = given.get("zone", "us-east-1a"), given.get("type", "t3.micro")
        region = self.places.region_of(zone)
        machine = Machine("ec2", self.world.ident("i-"), kind, region, zone, False)
        machine.tags, machine.image, machine.disk_gb = dict(given.get("tags", {})), "ami-0", 8
        machine.extra = {"groups": [], "token": None, "number": 0, "shutdown": "stop", "public": False, "disks": {},
                         "quota": "", "tokens": "optional", "preempted": lambda: None,
                         "powered_off": lambda: self.powered_off(machine)}
        return self.world.place_foreign(machine, [("machine", self.places.demand(kind, region))])

    def kept(self, machine):
        """Returns the bills of volumes that outlive their machine."""
        return () if all(disk["delete"] for disk in machine.extra["disks"].values()) else ("disk",)

    def close_request(self, machine, code):
        if "request" in machine.extra:
            self.requests[machine.extra["request"]].update(state="closed", code=code)

    def preempted(self, machine):
        self.close_request(machine, "instance-terminated-no-capacity")
        self.world.end(machine, "Server.SpotInstanceTermination", self.kept(machine))

    def powered_off(self, machine):
        if machine.extra["shutdown"] == "stop":
            return self.world.end(machine, "Client.InstanceInitiatedShutdown", ("disk",), "stopped")
        self.close_request(machine, "instance-terminated-by-user")
        return self.world.end(machine, "Client.InstanceInitiatedShutdown", self.kept(machine))

    # Listing and ending.

    def reservation(self, machines, ident):
        return {"reservationId": ident, "ownerId": self.catalog["account"], "groupSet": [],
                "instancesSet": [self.row(machine) for machine in machines]}

    def row(self, machine):
        now = self.world.now()
        code, word = CODES[machine.state]
        if machine.state == "ending" and machine.extra["shutdown"] == "stop" and "InstanceInitiated" in machine.why:
            code, word = CODES["stopping"]
        there = machine.hook_done and machine.state in ("booting", "running")
        public = there and machine.extra["public"] and now >= machine.address_from
        reason = {"code": machine.why, "message": WORDS.get(machine.why, machine.why)} if machine.why else None
        return {"instanceId": machine.id, "imageId": machine.image, "instanceState": {"code": code, "name": word},
                "privateDnsName": "", "dnsName": "", "reason": "", "amiLaunchIndex": machine.extra["number"],
                "productCodes": [], "instanceType": machine.type, "launchTime": stamp(machine.launched),
                "placement": {"availabilityZone": machine.zone, "groupName": "", "tenancy": "default"},
                "privateIpAddress": machine.private_address if there else None,
                "ipAddress": machine.address if public else None, "stateReason": reason,
                "clientToken": machine.extra["token"] or "", "instanceLifecycle": "spot" if machine.spot else None,
                "spotInstanceRequestId": machine.extra.get("request"),
                "tagSet": [{"key": key, "value": value} for key, value in machine.tags.items()],
                "groupSet": [{"groupId": each, "groupName": each} for each in machine.extra["groups"]],
                "metadataOptions": {"state": "applied", "httpTokens": machine.extra["tokens"]},
                "rootDeviceType": "ebs", "architecture": self.catalog["types"][machine.type].get("arch", "x86_64")}

    def listed(self, region):
        now, keep = self.world.now(), self.world.settings["listed_terminated_s"]
        return [machine for machine in self.world.find(face="ec2", region=region) if now >= machine.listed_from
                and not (machine.state == "gone" and now > (machine.ended or now) + keep)]

    def known(self, request, ident):
        found = next((machine for machine in self.listed(request.region) if machine.id == ident), None)
        if found is None:
            code = "NotFound" if ident.startswith("i-") else "Malformed"
            raise Refused(f"InvalidInstanceID.{code}", f"The instance ID '{ident}' does not exist")
        return found

    def describe(self, request):
        wanted = request.tree.get("InstanceId", [])
        rows = [self.known(request, ident) for ident in wanted] if wanted else self.listed(request.region)
        found = []
        for machine in rows:
            row = self.row(machine)
            if passes({"instance-id": machine.id, "instance-state-name": row["instanceState"]["name"],
                       "instance-state-code": row["instanceState"]["code"], "instance-type": machine.type,
                       "availability-zone": machine.zone, "client-token": machine.extra["token"] or "",
                       "instance-lifecycle": row["instanceLifecycle"] or "", **tag_row(machine.tags)}, request.filters):
                found.append(machine)
        if wanted and "MaxResults" in request.params:
            raise Refused("InvalidParameterCombination", "The parameter instancesSet cannot be used with maxResults")
        page, token = self.places.paged(request, found, 1000)
        return {"reservationSet": [self.reservation([machine], f"r-{machine.id[2:]}") for machine in page],
                "nextToken": token or None}

    def terminate(self, request):
        machines = [self.known(request, ident) for ident in request.tree["InstanceId"]]
        rows = []
        for machine in machines:
            before = self.row(machine)["instanceState"]
            self.close_request(machine, "instance-terminated-by-user")
            self.world.end(machine, "Client.UserInitiatedShutdown", self.kept(machine))
            rows.append({"instanceId": machine.id, "currentState": self.row(machine)["instanceState"],
                         "previousState": before})
        return {"instancesSet": rows}

    def spot_requests(self, request):
        wanted, rows = request.tree.get("SpotInstanceRequestId", []), []
        for ident in wanted:
            self.find_request(ident)
        for ident, entry in self.requests.items():
            machine = entry["machine"]
            seen = {"instance-id": machine.id, "state": entry["state"], "status-code": entry["code"],
                    "spot-instance-request-id": ident, **tag_row(machine.tags)}
            if machine.region == request.region and passes(seen, request.filters) and (not wanted or ident in wanted):
                rows.append({"spotInstanceRequestId": ident, "type": "one-time", "state": entry["state"],
                             "status": {"code": entry["code"], "message": entry["code"],
                                        "updateTime": stamp(self.world.now())},
                             "instanceId": machine.id, "createTime": stamp(machine.launched),
                             "productDescription": "Linux/UNIX", "launchedAvailabilityZone": machine.zone,
                             "tagSet": []})
        return {"spotInstanceRequestSet": rows}

    def find_request(self, ident):
        if ident not in self.requests:
            raise Refused("InvalidSpotInstanceRequestID.NotFound",
                          f"The spot instance request ID '{ident}' does not exist")
        return self.requests[ident]

    def cancel(self, request):
        rows = []
        for ident in request.tree["SpotInstanceRequestId"]:
            self.find_request(ident)["state"] = "cancelled"
            rows.append({"spotInstanceRequestId": ident, "state": "cancelled"})
        return {"spotInstanceRequestSet": rows}

    def console(self, request):
        machine = self.known(request, request.params["InstanceId"])
        keys = "\n".join(machine.host_keys)
        text = f"-----BEGIN SSH HOST KEY KEYS-----\n{keys}\n-----END SSH HOST KEY KEYS-----\n" if keys else ""
        return {"instanceId": machine.id, "timestamp": stamp(self.world.now()),
                "output": base64.b64encode(text.encode()).decode()}

    def create_tags(self, request):
        tags = {tag["Key"]: tag.get("Value", "") for tag in request.tree["Tag"]}
        check_tags(tags)
        for ident in request.tree["ResourceId"]:
            self.known(request, ident).tags.update(tags)
        return {"return": True}


def check_tags(tags):
    for key, value in tags.items():
        if not 1 <= len(key) <= 128 or len(value) > 256 or key.lower().startswith("aws:"):
            raise Refused("InvalidParameterValue", f"Tag {key!r} is too long, empty or reserved")
    if len(tags) > 50:
        raise Refused("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
