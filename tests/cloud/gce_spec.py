"""Checks the properties of a Compute Engine instance (type, GPUs, disks, scheduling) as the service does."""
from cloud_http import Refused
from cloud_world import disk_rate
from gce_lists import region_of


def invalid(field, value, why=""):
    return Refused("invalid", f"Invalid value for field '{field}': '{value}'. {why}")


def last(link):
    return link.rpartition("/")[2]


class Spec:
    """Checked properties of one machine (or of each of a gang) in a zone."""

    def __init__(self, lists, properties, zone, bare):
        self.lists, self.catalog, self.zone, self.given = lists, lists.catalog, zone, properties
        self.kind = self.named("machineType", properties["machineType"], "machineTypes", bare)
        self.entry = self.catalog["machine_types"].get(self.kind)
        self.scheduling = properties.get("scheduling", {})
        self.spot = self.scheduling.get("provisioningModel") == "SPOT" or self.scheduling.get("preemptible", False)
        self.gpu, self.gpus = self.accelerators(bare)
        self.disks = [self.disk(each, bare) for each in properties["disks"]]
        self.check_scheduling()
        self.check_rest()

    def named(self, field, value, what, bare):
        """Returns a resource of the zone by its partial link, or by its bare name in a bulk request."""
        if bare and "/" in value:
            raise invalid(f"instanceProperties.{field}", value, "Must be a name, not a link.")
        if not bare and not value.endswith(f"zones/{self.zone}/{what}/{last(value)}"):
            raise invalid(f"resource.{field}", value, f"The URL is malformed, or of another zone than {self.zone}.")
        return last(value)

    def accelerators(self, bare):
        given = self.given.get("guestAccelerators", [])
        if self.entry is None:
            return "", 0
        if given and self.entry["family"] != "N1":
            raise invalid("resource.guestAccelerators", self.kind, "This machine type has its GPUs by itself.")
        if not given:
            return self.entry.get("gpu", ""), self.entry["gpus"]
        gpu = self.named("guestAccelerators", given[0]["acceleratorType"], "acceleratorTypes", bare)
        count = given[0]["acceleratorCount"]
        known = self.catalog["attachable"].get(gpu)
        if known is None or str(count) not in known["counts"] or len(given) > 1:
            raise invalid("resource.guestAccelerators", f"{count} x {gpu}", "No such number of such GPUs.")
        cpus, memory = known["counts"][str(count)]
        if self.entry["vcpus"] > cpus or self.entry["mb"] > memory * 1024:
            raise invalid("resource.machineType", self.kind, f"{count} x {gpu} take at most {cpus} vCPUs, {memory} GB.")
        return gpu, count

    def disk(self, given, bare):
        params = given.get("initializeParams", {})
        kind = params.get("diskType", "pd-standard")
        kind = self.named("disks.diskType", kind, "diskTypes", bare) if "diskType" in params else kind
        if kind not in self.catalog["disk_gb_month"]:
            raise invalid("resource.disks[0].initializeParams.diskType", kind)
        allowed = (self.entry or {}).get("disks")
        if allowed and kind not in allowed:
            raise invalid("resource.disks[0].initializeParams.diskType", kind,
                          f"[{kind}] features are not compatible for creating instance of {self.kind}.")
        size, image = int(params.get("diskSizeGb", 0)), None
        if given.get("boot"):
            if "sourceImage" not in params:
                raise invalid("resource.disks[0]", "", "Boot disk must have a source specified")
            image = self.lists.find_image(params["sourceImage"])
            size = size or image["gb"]
            if size < image["gb"]:
                raise invalid("resource.disks[0].initializeParams.diskSizeGb", size,
                              f"Requested disk size cannot be smaller than the image size ({image['gb']} GB)")
        if not 1 <= size <= 65536:
            raise invalid("resource.disks[0].initializeParams.diskSizeGb", size)
        return {"kind": kind, "gb": size, "delete": given.get("autoDelete", False), "image": image and image["name"]}

    def check_scheduling(self):
        given = self.scheduling
        ends, action = given.get("maxRunDuration"), given.get("instanceTerminationAction")
        if self.gpus and given.get("onHostMaintenance") != "TERMINATE":
            raise invalid("resource.scheduling.onHostMaintenance", given.get("onHostMaintenance", "MIGRATE"),
                          "Instances with guest accelerators do not support live migration.")
        if self.spot and given.get("automaticRestart", True):
            raise invalid("resource.scheduling.automaticRestart", "true", "Spot VMs cannot restart by themselves.")
        if action and not self.spot and ends is None:
            raise invalid("resource.scheduling.instanceTerminationAction", action,
                          "It needs SPOT, or a run that has an end.")
        if ends is not None:
            if action is None:
                raise invalid("resource.scheduling.maxRunDuration", ends, "instanceTerminationAction must be set.")
            if not 30 <= int(ends["seconds"]) <= 120 * 86400:
                raise invalid("resource.scheduling.maxRunDuration.seconds", ends["seconds"],
                              "It is from 30 seconds to 120 days.")
        if "preemptionNoticeDuration" in given and not self.spot:
            raise invalid("resource.scheduling.preemptionNoticeDuration", "", "Only Spot VMs are preempted.")

    def check_rest(self):
        if sum(bool(each.get("boot")) for each in self.given["disks"]) != 1:
            raise invalid("resource.disks", "", "Exactly one boot disk is needed.")
        for each in self.given["networkInterfaces"]:
            if last(each.get("network", "default")) != "default":
                raise Refused("notFound", f"The resource '{each['network']}' was not found", 404)
        items = self.given.get("metadata", {}).get("items", [])
        if len({item["key"] for item in items}) != len(items):
            raise invalid("resource.metadata.items", "", "Metadata has duplicate keys.")
        if sum(len(item["key"]) + len(item.get("value", "")) for item in items) > 512 * 1024:
            raise invalid("resource.metadata", "", "Metadata is larger than 512 KB.")

    def metadata(self):
        return {item["key"]: item.get("value", "") for item in self.given.get("metadata", {}).get("items", [])}

    def public(self):
        return any(each.get("accessConfigs") for each in self.given["networkInterfaces"])

    def room(self, count, capacity, quota):
        """Returns the (code, message) with which an accepted launch fails, or None."""
        metric = self.catalog["quota_metrics"].get(self.gpu)
        region, where = region_of(self.zone), f"projects/{self.lists.face.project}/zones/{self.zone}"
        if self.entry is None or not self.lists.sold_in(self.kind, self.zone) or (
                self.gpu and self.zone not in self.lists.accelerator_zones(self.gpu)):
            return "RESOURCE_NOT_FOUND", f"The resource '{where}/machineTypes/{self.kind}' was not found"
        if self.entry.get("only") == "spot" and not self.spot:
            return "UNSUPPORTED_OPERATION", (f"Instances of type {self.kind} are not available with the provisioning "
                                             "model STANDARD.")
        if metric:
            for name, place in ((("PREEMPTIBLE_" if self.spot else "") + metric, region), ("GPUS_ALL_REGIONS", "")):
                limit = self.lists.limit(place, name)
                if quota or self.lists.used(place, name) + self.gpus * count > limit:
                    return "QUOTA_EXCEEDED", (f"Quota '{name}' exceeded.  Limit: {float(limit)} "
                                              + (f"in region {region}." if place else "globally."))
        if capacity or (self.kind, self.zone) in self.lists.none:
            return "ZONE_RESOURCE_POOL_EXHAUSTED", (
                f"The zone '{where}' does not have enough resources available to fulfill the request.  Try a different "
                "zone, or try again later.")
        return None

    def rates(self):
        disk = sum(disk_rate(each["gb"], self.catalog["disk_gb_month"][each["kind"]]) for each in self.disks)
        address = round(self.catalog["ipv4_hour"] * 1_000_000) if self.public() else 0
        return [("machine", self.lists.rate(self.kind, self.gpu, self.gpus, self.zone, self.spot)), ("disk", disk),
                ("address", address)]
