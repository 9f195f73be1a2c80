"""The lists of Compute Engine (regions, zones, types, images, firewalls, SKUs) and its prices."""
import ipaddress

import gce_skus
from cloud_http import Refused, pages
from cloud_world import micros
from ec2_places import hash_of
from gce_filter import Filter


DEFAULT_RULES = [
    ("default-allow-ssh", "0.0.0.0/0", [{"IPProtocol": "tcp", "ports": ["22"]}]),
    ("default-allow-rdp", "0.0.0.0/0", [{"IPProtocol": "tcp", "ports": ["3389"]}]),
    ("default-allow-icmp", "0.0.0.0/0", [{"IPProtocol": "icmp"}]),
    ("default-allow-internal", "10.128.0.0/9", [{"IPProtocol": "tcp", "ports": ["0-65535"]}, {
        "IPProtocol": "udp", "ports": ["0-65535"]}, {"IPProtocol": "icmp"}])]


class Lists:
    def __init__(self, face):
        self.face, self.world, self.catalog = face, face.world, face.catalog
        self.factors, self.limits = {}, {}
        self.none = {(kind, zone) for kind, zones in self.catalog["stock"]["none"].items() for zone in zones}
        # The rules of each new project.
        self.firewalls = {name: {
            "kind": "compute#firewall", "name": name, "id": str(1000001 + number), "direction": "INGRESS",
            "network": face.link("global/networks/default"), "priority": 65534, "sourceRanges": [where],
            "allowed": allowed, "selfLink": face.link(f"global/firewalls/{name}")}
            for number, (name, where, allowed) in enumerate(DEFAULT_RULES)}
        self.actions = {
            "projects.get": self.project, "regions.list": self.regions, "regions.get": self.region,
            "zones.list": self.zones, "zones.get": lambda request: self.zone_row(request.zone),
            "machineTypes.aggregatedList": self.all_types, "machineTypes.list": self.zone_types,
            "machineTypes.get": self.get_type, "acceleratorTypes.aggregatedList": self.all_accelerators,
            "acceleratorTypes.list": self.zone_accelerators, "images.list": self.images, "images.get": self.get_image,
            "images.getFromFamily": self.family, "networks.list": self.networks, "networks.get": self.get_network,
            "firewalls.list": self.list_firewalls, "firewalls.get": self.get_firewall,
            "firewalls.insert": self.add_firewall, "firewalls.patch": self.change_firewall,
            "firewalls.delete": self.delete_firewall, "skus.list": self.skus,
        }

    def change(self, what, given):
        """price: {"type" (as in parts), "spot", "factor"}; stock: {"type", "zone", "none"};
        quota: {"region", "metric", "limit"}, region "" for GPUS_ALL_REGIONS."""
        if what == "price":
            self.factors[given["type"], bool(given.get("spot"))] = float(given["factor"])
        elif what == "stock":
            (self.none.add if given["none"] else self.none.discard)((given["type"], given["zone"]))
        else:
            self.limits[given.get("region", ""), given["metric"]] = int(given["limit"])

    # Money and limits.

    def factor(self, part, spot):
        return self.factors.get((part, spot), 1.0)

    def part(self, table, key, spot):
        prices = self.catalog["parts"][table].get(key, [0, 0])
        return prices[spot] * self.factor(key, bool(spot))

    def rate(self, kind, gpu, gpus, zone, spot):
        """Returns the micro-USD per hour of a machine: vCPUs, memory, GPUs and the local SSDs of its type."""
        entry, spot = self.catalog["machine_types"][kind], int(spot)
        usd = entry.get("paid_vcpus", entry["vcpus"]) * self.part("core", entry["family"], spot)
        usd += entry["mb"] / 1024 * self.part("ram", entry["family"], spot)
        usd += gpus * self.part("gpu", gpu, spot) if gpus else 0
        ssd = self.catalog["parts"]["local_ssd_gb_month"][spot] * self.factor("local-ssd", bool(spot))
        # The price of an A4 slice includes core, memory and local SSD.
        usd += 0 if entry["family"] == "A4" else entry.get("local_ssd_gb", 0) * ssd / 730
        return micros(usd * self.catalog["regions"][region_of(zone)]["factor"])

    def limit(self, region, metric):
        if metric == "GPUS_ALL_REGIONS":
            return self.limits.get(("", metric), self.catalog["gpus_all_regions"])
        return self.limits.get((region, metric), self.catalog["quota"][metric.removeprefix("PREEMPTIBLE_")])

    def used(self, region, metric):
        """Returns the number of GPUs in use that count against a metric."""
        total = 0
        for machine in self.world.find(face="gce"):
            if machine.state in ("booting", "running", "ending") and machine.gpus and region in ("", machine.region):
                own = self.catalog["quota_metrics"][machine.gpu]
                if metric in ("GPUS_ALL_REGIONS", ("PREEMPTIBLE_" if machine.spot else "") + own):
                    total += machine.gpus
        return total

    # Lists in general.

    def page(self, request, rows, kind):
        """Returns a page of one scope's list, filtered and ordered by name."""
        wanted = Filter(request.query.get("filter", ""))
        kept = [row for row in rows if wanted.passes(row)]
        if request.query.get("orderBy", "name") not in ("name", "creationTimestamp desc"):
            raise Refused("invalid", "Invalid value for field 'orderBy'")
        if "orderBy" in request.query and request.query["orderBy"] != "name":
            kept.sort(key=lambda row: row["creationTimestamp"], reverse=True)
        page, token = pages(kept, self.size_of(request), request.query.get("pageToken", ""),
                            Refused("invalid", "Invalid value for field 'pageToken'"))
        made = {"kind": f"compute#{kind}", "id": f"projects/{self.face.project}/{kind}", "items": page}
        return {**made, "nextPageToken": token} if token else made

    def scoped(self, request, rows, name, kind):
        """Returns an aggregated list: rows by zone. Names zones that a fault made unreachable, or fails as a whole."""
        silent = [zone for zone in self.all_zones() if self.face.cloud.faults.look(
            {**request.place(), "zone": zone, "region": region_of(zone)}, "unreachable")]
        if silent and request.query.get("returnPartialSuccess") != "true":
            raise Refused("backendError", f"Backend error in {silent[0]}", 503)
        wanted = Filter(request.query.get("filter", ""))
        kept = [(zone, row) for zone, row in rows if zone not in silent and wanted.passes(row)]
        page, token = pages(kept, self.size_of(request), request.query.get("pageToken", ""),
                            Refused("invalid", "Invalid value for field 'pageToken'"))
        items = {}
        for zone in self.all_zones():
            here = [row for each, row in page if each == zone]
            warning = {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": f"No results for scope 'zones/{zone}'.",
                                   "data": [{"key": "scope", "value": f"zones/{zone}"}]}}
            items[f"zones/{zone}"] = {name: here} if here else warning
        made = {"kind": f"compute#{kind}", "id": f"projects/{self.face.project}/aggregated/{name}", "items": items}
        if silent:
            made["unreachables"] = [f"projects/{self.face.project}/zones/{zone}" for zone in silent]
        return {**made, "nextPageToken": token} if token else made

    def size_of(self, request):
        size = request.query.get("maxResults", "500")
        if not size.isdigit() or not 1 <= int(size) <= 500:
            raise Refused("invalid", f"Invalid value for field 'maxResults': '{size}'. Must be from 1 to 500")
        return min(int(size), self.world.settings["page_most"])

    def all_zones(self):
        return [zone for entry in self.catalog["regions"].values() for zone in entry["zones"]]

    # Places.

    def project(self, _):
        return {"kind": "compute#project", "name": self.face.project, "id": "1234567890", "quotas": [
            {"metric": "GPUS_ALL_REGIONS", "limit": self.limit("", "GPUS_ALL_REGIONS"),
             "usage": self.used("", "GPUS_ALL_REGIONS")}]}

    def region_row(self, name):
        quotas = []
        for metric in self.catalog["quota"]:
            for each in (metric, f"PREEMPTIBLE_{metric}"):
                quotas.append({"metric": each, "limit": self.limit(name, each), "usage": self.used(name, each)})
        return {"kind": "compute#region", "name": name, "id": str(hash_of(name)), "status": "UP", "quotas": quotas,
                "zones": [self.face.link(f"zones/{zone}") for zone in self.catalog["regions"][name]["zones"]],
                "selfLink": self.face.link(f"regions/{name}")}

    def regions(self, request):
        return self.page(request, [self.region_row(name) for name in self.catalog["regions"]], "regionList")

    def region(self, request):
        return self.region_row(request.region)

    def zone_row(self, zone):
        return {"kind": "compute#zone", "name": zone, "id": str(hash_of(zone)), "status": "UP",
                "region": self.face.link(f"regions/{region_of(zone)}"), "selfLink": self.face.link(f"zones/{zone}")}

    def zones(self, request):
        return self.page(request, [self.zone_row(zone) for zone in self.all_zones()], "zoneList")

    # Types.

    def sold_in(self, kind, zone):
        zones = self.catalog["machine_types"][kind]["zones"]
        return zones == "all" or zone in zones

    def type_row(self, kind, zone):
        entry = self.catalog["machine_types"][kind]
        made = {"kind": "compute#machineType", "name": kind, "id": str(hash_of(kind)), "guestCpus": entry["vcpus"],
                "memoryMb": entry["mb"], "zone": zone, "isSharedCpu": "paid_vcpus" in entry,
                "maximumPersistentDisks": 128, "description": kind,
                "selfLink": self.face.link(f"zones/{zone}/machineTypes/{kind}")}
        if entry["gpus"]:
            made["accelerators"] = [{"guestAcceleratorType": entry["gpu"], "guestAcceleratorCount": entry["gpus"]}]
        return made

    def type_rows(self):
        return [(zone, self.type_row(kind, zone)) for zone in self.all_zones()
                for kind in self.catalog["machine_types"] if self.sold_in(kind, zone)]

    def all_types(self, request):
        return self.scoped(request, self.type_rows(), "machineTypes", "machineTypeAggregatedList")

    def zone_types(self, request):
        return self.page(request, [row for zone, row in self.type_rows() if zone == request.zone], "machineTypeList")

    def get_type(self, request):
        kind = request.names["name"]
        if kind not in self.catalog["machine_types"] or not self.sold_in(kind, request.zone):
            raise not_found(self.face, f"zones/{request.zone}/machineTypes/{kind}")
        return self.type_row(kind, request.zone)

    def accelerator_zones(self, gpu):
        if gpu in self.catalog["attachable"]:
            return self.catalog["attachable"][gpu]["zones"]
        return [zone for zone in self.all_zones() if any(
            entry.get("gpu") == gpu and self.sold_in(kind, zone)
            for kind, entry in self.catalog["machine_types"].items())]

    def accelerator_rows(self):
        return [(zone, {"kind": "compute#acceleratorType", "name": gpu, "id": str(hash_of(gpu)), "description": words,
                        "zone": self.face.link(f"zones/{zone}"), "maximumCardsPerInstance": 8,
                        "selfLink": self.face.link(f"zones/{zone}/acceleratorTypes/{gpu}")})
                for gpu, words in self.catalog["accelerators"].items() for zone in self.accelerator_zones(gpu)]

    def all_accelerators(self, request):
        return self.scoped(request, self.accelerator_rows(), "acceleratorTypes", "acceleratorTypeAggregatedList")

    def zone_accelerators(self, request):
        rows = [row for zone, row in self.accelerator_rows() if zone == request.zone]
        return self.page(request, rows, "acceleratorTypeList")

    # Images.

    def image_row(self, each):
        made = {"kind": "compute#image", "name": each["name"], "id": str(hash_of(each["name"])), "status": "READY",
                "family": each["family"], "architecture": each["arch"], "diskSizeGb": str(each["gb"]),
                "creationTimestamp": each["created"],
                "selfLink": f"{self.face.cloud.url}/compute/v1/projects/{each['project']}/global/images/{each['name']}"}
        if each.get("deprecated"):
            made["deprecated"] = {"state": "DEPRECATED"}
        return made

    def images_of(self, request):
        return [self.image_row(each) for each in self.catalog["images"] if each["project"] == request.names["project"]]

    def images(self, request):
        return self.page(request, self.images_of(request), "imageList")

    def get_image(self, request):
        return self.one_image(request, "name")

    def family(self, request):
        return self.one_image(request, "family")

    def one_image(self, request, by):
        rows = [row for row in self.images_of(request) if row[by] == request.names["name"]
                and (by == "name" or "deprecated" not in row)]
        if not rows:
            raise not_found(self.face, f"global/images/{request.names['name']}")
        return max(rows, key=lambda row: row["creationTimestamp"])

    def find_image(self, source):
        """Returns the image of a sourceImage: a full link, or projects/P/global/images/[family/]NAME."""
        path = source.partition("/compute/v1/")[2] or source
        parts = path.split("/")
        if len(parts) >= 5 and parts[0] == "projects" and parts[2:4] == ["global", "images"]:
            by = "family" if parts[4] == "family" else "name"
            rows = [each for each in self.catalog["images"] if each["project"] == parts[1] and each[by] == parts[-1]
                    and (by == "name" or not each.get("deprecated"))]
            if rows:
                return rows[0]
        raise Refused("notFound", f"The resource '{source}' was not found", 404)

    # Network.

    def network_row(self):
        return {"kind": "compute#network", "name": "default", "id": "1000000", "autoCreateSubnetworks": True,
                "selfLink": self.face.link("global/networks/default")}

    def networks(self, request):
        return self.page(request, [self.network_row()], "networkList")

    def get_network(self, request):
        if request.names["name"] != "default":
            raise not_found(self.face, f"global/networks/{request.names['name']}")
        return self.network_row()

    def list_firewalls(self, request):
        return self.page(request, list(self.firewalls.values()), "firewallList")

    def get_firewall(self, request):
        if request.names["name"] not in self.firewalls:
            raise not_found(self.face, f"global/firewalls/{request.names['name']}")
        return self.firewalls[request.names["name"]]

    def check_firewall(self, given):
        for each in given.get("sourceRanges", []):
            try:
                ipaddress.ip_network(each)
            except ValueError:
                raise Refused("invalid", f"Invalid value for field 'resource.sourceRanges': '{each}'.") from None

    def add_firewall(self, request):
        given, name = request.params, request.params.get("name", "")
        self.check_firewall(given)
        if not name or not given.get("allowed"):
            raise Refused("required", "Invalid value for field 'resource.name' or 'resource.allowed'.")
        if name in self.firewalls:
            raise Refused("alreadyExists", f"The resource 'projects/{self.face.project}/global/firewalls/{name}' "
                          "already exists", 409)
        link = self.face.link(f"global/firewalls/{name}")
        self.firewalls[name] = {"kind": "compute#firewall", "id": str(hash_of(name)), "direction": "INGRESS",
                                "priority": 1000, "selfLink": link, **given}
        return self.face.machines.operation(request, "insert", link)

    def change_firewall(self, request):
        self.get_firewall(request)
        self.check_firewall(request.params)
        self.firewalls[request.names["name"]].update(request.params)
        return self.face.machines.operation(request, "patch", self.face.link(request.path.split("/", 5)[5]))

    def delete_firewall(self, request):
        self.get_firewall(request)
        link = self.firewalls.pop(request.names["name"])["selfLink"]
        return self.face.machines.operation(request, "delete", link)

    # Billing.

    def skus(self, request):
        size = int(request.query.get("pageSize", 5000))
        if not 1 <= size <= 5000:
            raise Refused("invalid", "page_size must be at most 5000")
        page, token = pages(gce_skus.all_skus(self.catalog, self.factor),
                            min(size, self.world.settings["page_most"]), request.query.get("pageToken", ""),
                            Refused("invalid", "page_token is invalid"))
        return {"skus": page, "nextPageToken": token}


def region_of(zone):
    return zone.rpartition("-")[0]


def not_found(face, what):
    return Refused("notFound", f"The resource 'projects/{face.project}/{what}' was not found", 404)
