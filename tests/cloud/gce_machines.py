"""Machines of Compute Engine: operations that end later, idempotent requestIds, gangs, ends by themselves."""
import time

from cloud_faults import first, traits
from cloud_http import Refused
from cloud_world import Machine
from ec2_places import hash_of
from gce_lists import not_found, region_of
from gce_spec import Spec

WORDS = {"running": "RUNNING", "ending": "STOPPING", "stopped": "TERMINATED"}
WAIT_S = 120


class Machines:
    def __init__(self, face):
        self.face, self.world, self.lists = face, face.world, face.lists
        self.operations, self.asked, self.count = {}, {}, 0
        self.actions = {
            "instances.insert": self.insert, "instances.bulkInsert": self.bulk, "regionInstances.bulkInsert": self.bulk,
            "instances.get": self.get, "instances.list": self.list_zone, "instances.aggregatedList": self.list_all,
            "instances.delete": self.delete, "instances.setLabels": self.set_labels,
            "instances.getGuestAttributes": self.guest_attributes, "zoneOperations.list": self.list_operations,
            "globalOperations.aggregatedList": self.all_operations,
            **{f"{scope}Operations.{what}": getattr(self, f"{what}_operation")
               for scope in ("zone", "region", "global") for what in ("get", "wait")}}

    # Operations.

    def operation(self, request, kind, target, seconds=None, error=None, done=None):
        """Starts an operation. done(): runs at its end; error: its (code, message)."""
        self.count += 1
        number = 7000000000000000000 + self.count
        name = f"operation-{number}"
        scope = (f"zones/{request.zone}" if request.zone else
                 f"regions/{request.region}" if request.region else "global")
        now = self.stamp()
        made = {"kind": "compute#operation", "id": str(number), "name": name, "operationType": kind,
                "targetLink": target, "targetId": str(hash_of(target)), "status": "RUNNING", "progress": 0,
                "user": "tester", "insertTime": now, "startTime": now,
                "selfLink": self.face.link(f"{scope}/operations/{name}")}
        for word in ("zone", "region"):
            if scope.startswith(word):
                made[word] = self.face.link(scope)
        self.operations[scope, name] = made

        def finish():
            made.update(status="DONE", progress=100, endTime=self.stamp())
            if error:
                made.update(error={"errors": [{"code": error[0], "message": error[1]}]}, httpErrorStatusCode=503,
                            httpErrorMessage="SERVICE UNAVAILABLE")
            if done is not None:
                done()
        self.world.after(self.world.settings["operation_s"] if seconds is None else seconds, finish)
        return made

    def stamp(self):
        now = self.world.now()
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}+00:00"

    def found_operation(self, request):
        scope = "/".join(request.path.split("/")[5:])
        scope = scope.partition("/operations/")[0]
        made = self.operations.get((scope, request.names["name"]))
        if made is None:
            raise not_found(self.face, f"{scope}/operations/{request.names['name']}")
        return made

    def get_operation(self, request):
        return dict(self.found_operation(request))

    def wait_operation(self, request):
        """Waits until the operation is done, for at most two minutes of real time."""
        made, until = self.found_operation(request), time.monotonic() + WAIT_S
        while made["status"] != "DONE" and time.monotonic() < until:
            self.world.happen()
            if made["status"] != "DONE":
                self.world.changed.wait(min(1.0, until - time.monotonic()))
        return dict(made)

    def list_operations(self, request):
        rows = [made for (scope, _), made in self.operations.items() if scope == f"zones/{request.zone}"]
        return self.lists.page(request, rows, "operationList")

    def all_operations(self, request):
        rows = [(scope[6:], made) for (scope, _), made in self.operations.items() if scope.startswith("zones/")]
        return self.lists.scoped(request, rows, "operations", "operationAggregatedList")

    def once(self, request, do):
        """Answers a repeated requestId with its first operation, and does nothing again."""
        ident = request.query.get("requestId")
        key = (request.method, request.path, ident)
        if ident is not None and key in self.asked:
            return dict(self.asked[key])
        made = do()
        if ident is not None:
            self.asked[key] = made
        return dict(made)

    # Launching.

    def insert(self, request):
        return self.once(request, lambda: self.inserted(request))

    def inserted(self, request):
        given, zone = request.params, request.zone
        link = self.face.link(f"zones/{zone}/instances/{given['name']}")
        self.check_free(zone, given["name"])
        spec = Spec(self.lists, given, zone, bare=False)
        refused = spec.room(1, first(request.found, "capacity"), first(request.found, "quota"))
        if refused:
            late = first(request.found, "capacity") or {}
            return self.operation(request, "insert", link, late.get("after_s", self.world.settings["gce_capacity_s"]),
                                  refused)
        machine = self.launch(request, spec, given["name"], zone)
        died = ("INTERNAL_ERROR", machine.traits["dies"]) if "dies" in machine.traits else None
        return self.operation(request, "insert", link, error=died)

    def check_free(self, zone, name):
        if any(machine.name == name and machine.state != "gone" for machine in self.world.find(face="gce", zone=zone)):
            raise Refused("alreadyExists", f"The resource 'projects/{self.face.project}/zones/{zone}/instances/{name}' "
                          "already exists", 409)

    def launch(self, request, spec, name, zone):
        self.count += 1
        machine = Machine("gce", str(8000000000000000000 + self.count), spec.kind, region_of(zone), zone, spec.spot)
        machine.name, machine.tags = name, dict(spec.given.get("labels", {}))
        machine.extra = {"metadata": spec.metadata(), "spec": spec, "public": spec.public(), "created": self.stamp(),
                         "action": spec.scheduling.get("instanceTerminationAction", "STOP"), "fingerprint": "fp0",
                         "preempted": lambda: self.taken(machine, request),
                         "powered_off": lambda: self.stop(machine, "")}
        machine.user_data = machine.extra["metadata"].get("user-data", "")
        machine.public_key = machine.extra["metadata"].get("ssh-keys", "")
        machine.gpu, machine.gpus = spec.gpu, spec.gpus
        machine.disk_gb = sum(disk["gb"] for disk in spec.disks)
        machine.image = next(disk["image"] for disk in spec.disks if disk["image"])
        self.world.launch(machine, spec.rates(), self.face.catalog["minimum_s"], traits(request.found))
        lasts = spec.scheduling.get("maxRunDuration")
        if lasts is not None:
            machine.extra["ends"] = self.world.now() + int(lasts["seconds"])
            late = self.world.settings["max_run_late_s"]
            self.world.after(int(lasts["seconds"]) + late, lambda: self.time_is_up(machine))
        return machine

    def kept(self, machine):
        return () if all(disk["delete"] for disk in machine.extra["spec"].disks) else ("disk",)

    def remove(self, machine, why):
        self.world.end(machine, why, self.kept(machine))

    def stop(self, machine, why):
        """Stops a machine. Its disk is still billed."""
        self.world.end(machine, why or "stopped", ("disk",), "stopped")

    def time_is_up(self, machine):
        """Ends a running machine. A stopped machine keeps its billed disk until a client deletes the machine."""
        if machine.state in ("booting", "running"):
            (self.remove if machine.extra["action"] == "DELETE" else self.stop)(machine, "maxRunDuration")

    def taken(self, machine, request):
        (self.remove if machine.extra["action"] == "DELETE" else self.stop)(machine, "preempted")
        self.operation(request, "compute.instances.preempted",
                       self.face.link(f"zones/{machine.zone}/instances/{machine.name}"), 0)

    def foreign(self, given):
        zone, kind = given.get("zone", "us-central1-a"), given.get("type", "e2-small")
        image = self.lists.catalog["images"][0]
        disk = {"boot": True, "autoDelete": True, "initializeParams": {
            "sourceImage": f"projects/{image['project']}/global/images/{image['name']}"}}
        spec = Spec(self.lists, {"machineType": kind, "labels": given.get("labels", {}), "networkInterfaces": [{}],
                                 "disks": [disk]}, zone, bare=True)
        self.count += 1
        machine = Machine("gce", str(8000000000000000000 + self.count), kind, region_of(zone), zone, False)
        machine.name, machine.tags = given.get("name", f"foreign-{self.count}"), dict(given.get("labels", {}))
        machine.gpu, machine.gpus, machine.disk_gb = spec.gpu, spec.gpus, image["gb"]
        machine.extra = {"metadata": {}, "spec": spec, "public": False, "created": self.stamp(), "action": "STOP",
                         "fingerprint": "fp0", "preempted": lambda: None, "powered_off": lambda: self.stop(machine, "")}
        return self.world.place_foreign(machine, spec.rates())

    # Gangs.

    def bulk(self, request):
        return self.once(request, lambda: self.bulk_inserted(request))

    def bulk_inserted(self, request):
        given = request.params
        count, least = int(given["count"]), int(given.get("minCount", given["count"]))
        if not 1 <= least <= count <= 1000 or "instanceProperties" not in given:
            raise Refused("invalid", "Invalid value for field 'count', 'minCount' or 'instanceProperties'.")
        names = list(given.get("perInstanceProperties", {}))
        names = names or [self.numbered(given.get("namePattern", ""), number) for number in range(1, count + 1)]
        if len(names) != count:
            raise Refused("invalid", "perInstanceProperties must name as many instances as count says.")
        zone, spec, refused = self.choose(request, given, count)
        for name in names:
            self.check_free(zone, name)
        link = self.face.link(f"zones/{zone}/instances")
        if refused:
            late = (first(request.found, "capacity") or {}).get("after_s", self.world.settings["gce_capacity_s"])
            error = refused if refused[0] != "ZONE_RESOURCE_POOL_EXHAUSTED" or least == 1 else (
                "VM_MIN_COUNT_NOT_REACHED", "Requested minimum count of VMs could not be created: " + refused[1])
            return self.operation(request, "bulkInsert", link, late, error)
        machines = [self.launch(request, spec, name, zone) for name in names]
        doomed = [machine for machine in machines if "dies" in machine.traits]
        error = ("VM_MIN_COUNT_NOT_REACHED", doomed[0].traits["dies"]) if doomed else None

        def none_stays():
            for machine in machines:
                self.remove(machine, "VM_MIN_COUNT_NOT_REACHED")
        return self.operation(request, "bulkInsert", link, error=error, done=none_stays if doomed else None)

    def numbered(self, pattern, number):
        if "#" not in pattern:
            raise Refused("invalid", "namePattern or perInstanceProperties is needed.")
        marks = pattern.count("#")
        return pattern.replace("#" * marks, f"{number:0{marks}d}")

    def choose(self, request, given, count):
        """Returns (zone, spec, why not). A regional request gets the first allowed zone with capacity."""
        properties, zones = given["instanceProperties"], [request.zone]
        if not request.zone:
            policy = given.get("locationPolicy", {}).get("locations", {})
            denied = {name for name, each in policy.items() if each.get("preference") == "DENY"}
            allowed = {name for name, each in policy.items() if each.get("preference") == "ALLOW"}
            zones = [zone for zone in self.lists.catalog["regions"][request.region]["zones"]
                     if f"zones/{zone}" not in denied and (not allowed or f"zones/{zone}" in allowed)]
        why = ("ZONE_RESOURCE_POOL_EXHAUSTED", "no zone is allowed")
        spec = None
        for zone in zones:
            spec = Spec(self.lists, properties, zone, bare=True)
            capacity = first(request.found, "capacity") or (not request.zone and self.face.cloud.faults.look(
                {**request.place(), "zone": zone}, "capacity"))
            why = spec.room(count, capacity, first(request.found, "quota"))
            if why is None:
                return zone, spec, None
        return zones[-1] if zones else "", spec, why

    # Listing, ending.

    def row(self, machine):
        now, spec, extra = self.world.now(), machine.extra["spec"], machine.extra
        status = WORDS.get(machine.state, "STAGING" if machine.hook_done else "PROVISIONING")
        there = machine.hook_done and machine.state in ("booting", "running")
        interface = {"name": "nic0", "network": self.face.link("global/networks/default"),
                     "networkIP": machine.private_address or "10.128.0.2", "stackType": "IPV4_ONLY"}
        if extra["public"]:
            nat = {"kind": "compute#accessConfig", "type": "ONE_TO_ONE_NAT", "name": "External NAT"}
            if there and now >= machine.address_from:
                nat["natIP"] = machine.address
            interface["accessConfigs"] = [nat]
        made = {"kind": "compute#instance", "id": machine.id, "name": machine.name, "status": status,
                "creationTimestamp": extra["created"], "zone": self.face.link(f"zones/{machine.zone}"),
                "machineType": self.face.link(f"zones/{machine.zone}/machineTypes/{machine.type}"),
                "labels": machine.tags, "labelFingerprint": extra["fingerprint"], "networkInterfaces": [interface],
                "scheduling": spec.scheduling, "tags": spec.given.get("tags", {}),
                "metadata": {"items": [{"key": key, "value": value} for key, value in extra["metadata"].items()]},
                "disks": [{"boot": bool(disk["image"]), "autoDelete": disk["delete"], "diskSizeGb": str(disk["gb"])}
                          for disk in spec.disks],
                "selfLink": self.face.link(f"zones/{machine.zone}/instances/{machine.name}")}
        if "ends" in extra and there:
            made["resourceStatus"] = {"scheduling": {"terminationTimestamp": time.strftime(
                "%Y-%m-%dT%H:%M:%S.000-00:00", time.gmtime(extra["ends"]))}}
        return made

    def listed(self):
        now = self.world.now()
        return [machine for machine in self.world.find(face="gce") if machine.state != "gone"
                and now >= machine.listed_from]

    def list_all(self, request):
        return self.lists.scoped(request, [(machine.zone, self.row(machine)) for machine in self.listed()], "instances",
                                 "instanceAggregatedList")

    def list_zone(self, request):
        rows = [self.row(machine) for machine in self.listed() if machine.zone == request.zone]
        return self.lists.page(request, rows, "instanceList")

    def known(self, request):
        found = next((machine for machine in self.listed()
                      if machine.zone == request.zone and machine.name == request.names["name"]), None)
        if found is None:
            raise not_found(self.face, f"zones/{request.zone}/instances/{request.names['name']}")
        return found

    def get(self, request):
        return self.row(self.known(request))

    def delete(self, request):
        return self.once(request, lambda: self.deleted(request))

    def deleted(self, request):
        machine = self.known(request)
        self.remove(machine, "deleted")
        link = self.face.link(f"zones/{machine.zone}/instances/{machine.name}")
        return self.operation(request, "delete", link, self.world.settings["end_s"] + 0.01)

    def set_labels(self, request):
        machine = self.known(request)
        if request.params["labelFingerprint"] != machine.extra["fingerprint"]:
            raise Refused("conditionNotMet", "Labels fingerprint either invalid or resource labels have changed", 412)
        machine.tags = dict(request.params["labels"])
        self.count += 1
        machine.extra["fingerprint"] = f"fp{self.count}"
        return self.operation(request, "setLabels", self.face.link(f"zones/{machine.zone}/instances/{machine.name}"))

    def guest_attributes(self, request):
        machine, path = self.known(request), request.query.get("queryPath", "")
        items = [{"namespace": "hostkeys", "key": key.split()[0], "value": key.split()[1]}
                 for key in machine.host_keys if path in ("", "hostkeys/", f"hostkeys/{key.split()[0]}")]
        if machine.extra["metadata"].get("enable-guest-attributes") != "TRUE" or not items:
            raise Refused("notFound", f"The resource '{path}' of type 'Guest Attribute' was not found.", 404)
        return {"kind": "compute#guestAttributes", "queryPath": path, "queryValue": {"items": items}}
