"""The lists of EC2: regions, zones, types, images, networks, security groups, spot prices."""
import hashlib
import ipaddress
import time

from cloud_http import Refused, pages
from cloud_world import micros
from ec2_params import passes, tag_row


def stamp(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + ".000Z"


class Places:
    def __init__(self, face):
        self.face, self.world, self.catalog = face, face.world, face.catalog
        self.prices = {}   # changed by tests: (type, zone, "spot") or (type, region, "demand") -> micro-USD
        self.none = {(kind, zone) for kind, zones in self.catalog["stock"]["none"].items() for zone in zones}
        self.limits = {}   # (region, quota code) -> vCPUs
        self.groups = {}
        self.images = [self.made_image(region, each) for region in self.catalog["regions"]
                       for each in self.catalog["images"]]
        self.actions = {
            "DescribeRegions": self.regions, "DescribeAvailabilityZones": self.zones,
            "DescribeInstanceTypeOfferings": self.offerings, "DescribeInstanceTypes": self.types,
            "DescribeImages": self.list_images, "DescribeVpcs": self.vpcs, "DescribeSubnets": self.list_subnets,
            "DescribeSecurityGroups": self.list_groups, "CreateSecurityGroup": self.create_group,
            "DeleteSecurityGroup": self.delete_group, "AuthorizeSecurityGroupIngress": self.authorize,
            "RevokeSecurityGroupIngress": self.revoke, "DescribeSpotPriceHistory": self.spot_prices,
            "GetSpotPlacementScores": self.scores,
        }

    def change(self, what, given):
        """price: {"type", "region" | "zone", "spot", "usd"}; stock: {"type", "zone", "none": true, "spot"};
        quota: {"region", "code", "limit"}."""
        if what == "price":
            place = given["zone"] if given.get("spot") else given["region"]
            self.prices[given["type"], place, "spot" if given.get("spot") else "demand"] = micros(given["usd"])
        elif what == "stock":
            place = (given["type"], given["zone"], *(["spot"] if given.get("spot") else []))
            (self.none.add if given["none"] else self.none.discard)(place)
        else:
            self.limits[given["region"], given["code"]] = int(given["limit"])

    # Places and prices.

    def zone_names(self, region, local=True):
        entry = self.catalog["regions"][region]
        return {**entry["zones"], **(entry.get("local_zones", {}) if local else {})}

    def region_of(self, zone):
        return next((region for region in self.catalog["regions"] if zone in self.zone_names(region)), None)

    def sold_in(self, kind, zone):
        zones = self.catalog["types"][kind]["zones"]
        return zones == "all" or zone in zones

    def demand(self, kind, region):
        """Returns micro-USD per hour; None: not sold on demand."""
        if (kind, region, "demand") in self.prices:
            return self.prices[kind, region, "demand"]
        usd = self.catalog["types"][kind]["usd"]
        return None if usd is None else micros(usd * self.catalog["regions"][region]["factor"])

    def spot(self, kind, zone):
        if (kind, zone, "spot") in self.prices:
            return self.prices[kind, zone, "spot"]
        differ = self.catalog["spot"]["differ"].get(kind, {})
        if zone in differ:
            return micros(differ[zone])
        region = self.region_of(zone)
        demand = self.demand(kind, region)
        if demand is None:
            return None
        if self.catalog["regions"][region].get("spot") == "floor":
            return demand // 10
        return demand * round(self.catalog["spot"]["factors"][zone[-1]] * 1000) // 1000

    def limit(self, region, code):
        return self.limits.get((region, code), self.catalog["quota"]["limits"][code])

    # Regions, zones, types.

    def regions(self, request):
        wanted = request.tree.get("RegionName", [])
        every = request.params.get("AllRegions") == "true"
        rows = []
        for name, entry in self.catalog["regions"].items():
            opted = entry.get("opted_in", True)
            status = "opt-in-not-required" if opted else "not-opted-in"
            if (opted or every) and passes({"region-name": name, "opt-in-status": status}, request.filters):
                rows.append({"regionName": name, "regionEndpoint": f"ec2.{name}.amazonaws.com", "optInStatus": status})
        for name in wanted:
            if name not in self.catalog["regions"]:
                raise Refused("InvalidParameterValue", f"Invalid region names: [{name}]")
        return {"regionInfo": [row for row in rows if not wanted or row["regionName"] in wanted]}

    def zones(self, request):
        entry = self.catalog["regions"][request.region]
        rows = [(name, ident, "availability-zone") for name, ident in entry["zones"].items()]
        rows += [(name, ident, "local-zone") for name, ident in entry.get("local_zones", {}).items()]
        wanted, ids = request.tree.get("ZoneName", []), request.tree.get("ZoneId", [])
        made = []
        for name, ident, kind in rows:
            opted = "opt-in-not-required" if kind == "availability-zone" else "opted-in"
            seen = {"zone-name": name, "zone-id": ident, "zone-type": kind, "state": "available",
                    "region-name": request.region, "opt-in-status": opted}
            if passes(seen, request.filters) and (not wanted or name in wanted) and (not ids or ident in ids):
                made.append({"optInStatus": opted, "messageSet": [], "regionName": request.region, "zoneName": name,
                             "zoneId": ident, "groupName": request.region, "networkBorderGroup": request.region,
                             "zoneType": kind, "zoneState": "available"})
        return {"availabilityZoneInfo": made}

    def paged(self, request, rows, most):
        size = int(request.params.get("MaxResults", most))
        wrong = Refused("InvalidParameterValue", "MaxResults must be between 5 and 1000")
        if not 5 <= size <= 1000 and request.action != "DescribeSpotPriceHistory":
            raise wrong
        return pages(rows, min(max(size, 1), self.world.settings["page_most"]), request.params.get("NextToken", ""),
                     Refused("InvalidNextToken", "The token is not valid"))

    def offerings(self, request):
        kind = request.params.get("LocationType", "region")
        rows = []
        for name in self.catalog["types"]:
            for zone, ident in self.zone_names(request.region).items():
                place = {"region": request.region, "availability-zone": zone, "availability-zone-id": ident}[kind]
                row = {"instanceType": name, "locationType": kind, "location": place}
                if self.sold_in(name, zone) and row not in rows and passes(
                        {"instance-type": name, "location": place}, request.filters):
                    rows.append(row)
        page, token = self.paged(request, rows, 1000)
        return {"instanceTypeOfferingSet": page, "nextToken": token or None}

    def types(self, request):
        wanted = request.tree.get("InstanceType", [])
        sold = [name for name in self.catalog["types"] if any(self.sold_in(name, zone)
                                                              for zone in self.zone_names(request.region))]
        for name in wanted:
            if name not in sold:
                raise Refused("InvalidInstanceType", f"The following supplied instance types do not exist: [{name}]")
        rows = []
        for name in sold:
            entry = self.catalog["types"][name]
            arch = entry.get("arch", "x86_64")
            if (not wanted or name in wanted) and passes(
                    {"instance-type": name, "processor-info.supported-architecture": arch}, request.filters):
                rows.append(self.type_row(name, entry, arch))
        page, token = self.paged(request, rows, 100)
        return {"instanceTypeSet": page, "nextToken": token or None}

    def type_row(self, name, entry, arch):
        usage = (["on-demand"] if entry["usd"] else []) + ["spot"] + (["capacity-block"] if entry.get("capacity_block")
                                                                     else [])
        gpus = None
        if entry["gpu"]:
            gpus = {"gpus": [{"name": entry["gpu"], "manufacturer": "NVIDIA", "count": entry["count"],
                              "memoryInfo": {"sizeInMiB": entry["gpu_mib"]}}],
                    "totalGpuMemoryInMiB": entry["gpu_mib"] * max(entry["count"], 1)}
        disks = entry.get("nvme_gb", 0)
        return {"instanceType": name, "currentGeneration": True, "supportedUsageClasses": usage, "bareMetal": False,
                "processorInfo": {"supportedArchitectures": [arch]}, "vCpuInfo": {"defaultVCpus": entry["vcpus"]},
                "memoryInfo": {"sizeInMiB": entry["mib"]}, "gpuInfo": gpus, "instanceStorageSupported": disks > 0,
                "instanceStorageInfo": {"totalSizeInGB": disks, "nvmeSupport": "required"} if disks else None}

    # Images.

    def made_image(self, region, entry):
        ident = f"ami-{abs(hash_of(region + entry['name'])) % 16 ** 17:017x}"
        return {"region": region, "id": ident, **entry}

    def find_image(self, region, ident):
        found = next((each for each in self.images if each["id"] == ident and each["region"] == region), None)
        if found is None:
            code = "NotFound" if ident.startswith("ami-") else "Malformed"
            raise Refused(f"InvalidAMIID.{code}", f"The image id '[{ident}]' does not exist")
        return found

    def list_images(self, request):
        wanted = request.tree.get("ImageId", [])
        rows = [self.find_image(request.region, each) for each in wanted] or [
            each for each in self.images if each["region"] == request.region]
        owners = request.tree.get("Owner", [])
        deprecated = bool(wanted) or request.params.get("IncludeDeprecated") == "true"
        made = []
        for each in rows:
            if each.get("deprecated") and not deprecated:
                continue
            owner = each.get("owner", self.catalog["image_owner"])
            alias = None if "owner" in each else "amazon"
            seen = {"name": each["name"], "state": "available", "architecture": each["arch"], "owner-id": owner,
                    "image-id": each["id"], "virtualization-type": "hvm"}
            if passes(seen, request.filters) and (not owners or owner in owners or alias in owners):
                made.append({"imageId": each["id"], "imageState": "available", "imageOwnerId": owner, "isPublic": True,
                             "architecture": each["arch"], "imageType": "machine", "name": each["name"],
                             "creationDate": each["created"], "rootDeviceType": "ebs", "rootDeviceName": each["root"],
                             "virtualizationType": "hvm", "hypervisor": "xen", "imageOwnerAlias": alias,
                             "blockDeviceMapping": [{"deviceName": each["root"], "ebs": {
                                 "snapshotId": f"snap-{each['id'][4:]}", "volumeSize": each["gb"],
                                 "deleteOnTermination": True, "volumeType": "gp3", "encrypted": False}}]})
        page, token = self.paged(request, made, 1000)
        return {"imagesSet": page, "nextToken": token or None}

    # Networks.

    def vpc_id(self, region):
        return f"vpc-{abs(hash_of(region)) % 16 ** 17:017x}"

    def vpcs(self, request):
        row = {"vpcId": self.vpc_id(request.region), "state": "available", "cidrBlock": "172.31.0.0/16",
               "isDefault": True, "ownerId": self.catalog["account"]}
        seen = {"isDefault": "true", "is-default": "true", "vpc-id": row["vpcId"], "state": "available"}
        wanted = request.tree.get("VpcId", [])
        if any(each != row["vpcId"] for each in wanted):
            raise Refused("InvalidVpcID.NotFound", f"The vpc ID '{wanted[0]}' does not exist")
        return {"vpcSet": [row] if passes(seen, request.filters) else []}

    def subnets(self, region):
        """Returns (subnet id, zone, zone id) of the default subnets. Local zones have none."""
        for zone, ident in self.zone_names(region, local=False).items():
            yield f"subnet-{abs(hash_of(zone)) % 16 ** 17:017x}", zone, ident

    def zone_of_subnet(self, region, subnet):
        zone = next((zone for each, zone, _ in self.subnets(region) if each == subnet), None)
        if zone is None:
            raise Refused("InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' does not exist")
        return zone

    def list_subnets(self, request):
        wanted, made = request.tree.get("SubnetId", []), []
        for each in wanted:
            self.zone_of_subnet(request.region, each)
        for number, (subnet, zone, ident) in enumerate(self.subnets(request.region)):
            seen = {"vpc-id": self.vpc_id(request.region), "default-for-az": "true", "defaultForAz": "true",
                    "availability-zone": zone, "availability-zone-id": ident, "subnet-id": subnet, "state": "available"}
            if passes(seen, request.filters) and (not wanted or subnet in wanted):
                made.append({"subnetId": subnet, "state": "available", "vpcId": self.vpc_id(request.region),
                             "cidrBlock": f"172.31.{number * 16}.0/20", "availableIpAddressCount": 4091,
                             "availabilityZone": zone, "availabilityZoneId": ident, "defaultForAz": True,
                             "mapPublicIpOnLaunch": True})
        return {"subnetSet": made}

    def find_group(self, region, ident="", name=""):
        found = next((each for each in self.groups.values() if each["region"] == region
                      and (each["id"] == ident if ident else each["name"] == name)), None)
        if found is None:
            raise Refused("InvalidGroup.NotFound", f"The security group '{ident or name}' does not exist")
        return found

    def list_groups(self, request):
        ids, names = request.tree.get("GroupId", []), request.tree.get("GroupName", [])
        wanted = [self.find_group(request.region, ident=each) for each in ids]
        wanted += [self.find_group(request.region, name=each) for each in names]
        made = []
        for each in wanted or self.groups.values():
            seen = {"group-name": each["name"], "group-id": each["id"], "vpc-id": each["vpc"], **tag_row(each["tags"])}
            if each["region"] == request.region and passes(seen, request.filters):
                made.append({"ownerId": self.catalog["account"], "groupId": each["id"], "groupName": each["name"],
                             "groupDescription": each["description"], "vpcId": each["vpc"],
                             "tagSet": [{"key": key, "value": value} for key, value in each["tags"].items()],
                             "ipPermissions": [permission_row(rule) for rule in each["rules"]],
                             "ipPermissionsEgress": []})
        return {"securityGroupInfo": made}

    def create_group(self, request):
        name = request.params["GroupName"]
        vpc = request.params.get("VpcId", self.vpc_id(request.region))
        if vpc != self.vpc_id(request.region):
            raise Refused("InvalidVpcID.NotFound", f"The vpc ID '{vpc}' does not exist")
        if len(name) > 255 or name.startswith("sg-"):
            raise Refused("InvalidParameterValue", f"Invalid value '{name}' for groupName")
        if any(each["name"] == name and each["region"] == request.region for each in self.groups.values()):
            raise Refused("InvalidGroup.Duplicate", f"The security group '{name}' already exists for VPC '{vpc}'")
        ident = self.world.ident("sg-")
        tags = {tag["Key"]: tag.get("Value", "") for each in request.tree.get("TagSpecification", [])
                for tag in each.get("Tag", [])}
        self.groups[ident] = {"id": ident, "name": name, "region": request.region, "vpc": vpc, "rules": [],
                              "tags": tags, "description": request.params["GroupDescription"]}
        return {"return": True, "groupId": ident,
                "tagSet": [{"key": key, "value": value} for key, value in tags.items()]}

    def group_of(self, request):
        if not request.params.get("GroupId") and not request.params.get("GroupName"):
            raise Refused("MissingParameter", "The request must contain the parameter groupName or groupId")
        return self.find_group(request.region, request.params.get("GroupId", ""), request.params.get("GroupName", ""))

    def delete_group(self, request):
        group = self.group_of(request)
        if any(group["id"] in machine.extra["groups"] and machine.state != "gone"
               for machine in self.world.find(face="ec2")):
            raise Refused("DependencyViolation", f"resource {group['id']} has a dependent object")
        del self.groups[group["id"]]
        return {"return": True, "groupId": group["id"]}

    def rules_of(self, request):
        made = []
        for each in request.tree.get("IpPermissions", []):
            ports = (each.get("IpProtocol"), int(each.get("FromPort", -1)), int(each.get("ToPort", -1)))
            for part in each.get("IpRanges", []):
                try:
                    ipaddress.ip_network(part.get("CidrIp", ""))
                except ValueError:
                    raise Refused("InvalidParameterValue", f"CIDR block {part.get('CidrIp')} is malformed") from None
                made.append((*ports, "cidr", part["CidrIp"]))
            for part in each.get("Groups", []):
                self.find_group(request.region, part.get("GroupId", "?"))
                made.append((*ports, "group", part["GroupId"]))
        if not made or any(rule[0] not in ("tcp", "udp", "icmp", "-1") for rule in made):
            raise Refused("InvalidParameterValue", "IpPermissions name no protocol, or nobody who may come in")
        return made

    def authorize(self, request):
        group, rules = self.group_of(request), self.rules_of(request)
        for rule in rules:
            if rule in group["rules"]:
                raise Refused("InvalidPermission.Duplicate", f"the specified rule \"peer: {rule[4]}\" already exists")
        group["rules"] += rules
        return {"return": True, "securityGroupRuleSet": []}

    def revoke(self, request):
        group = self.group_of(request)
        for rule in self.rules_of(request):
            if rule not in group["rules"]:
                raise Refused("InvalidPermission.NotFound", "The specified rule does not exist in this security group.")
            group["rules"].remove(rule)
        return {"return": True}

    # Spot.

    def spot_prices(self, request):
        wanted = request.tree.get("InstanceType", [])
        products = request.tree.get("ProductDescription", [])
        rows = []
        for name in self.catalog["types"]:
            for zone in self.zone_names(request.region):
                price = self.spot(name, zone) if self.sold_in(name, zone) else None
                seen = {"availability-zone": zone, "instance-type": name, "product-description": "Linux/UNIX"}
                if price is None or (wanted and name not in wanted) or not passes(seen, request.filters):
                    continue
                if request.params.get("AvailabilityZone", zone) == zone and (not products or "Linux/UNIX" in products):
                    rows.append({"instanceType": name, "productDescription": "Linux/UNIX",
                                 "spotPrice": f"{price / 1_000_000:.6f}", "availabilityZone": zone,
                                 "timestamp": stamp(self.world.now() - 1800)})
        page, token = self.paged(request, rows, 1000)
        return {"spotPriceHistorySet": page, "nextToken": token or ""}

    def scores(self, request):
        rows = []
        for region in request.tree.get("RegionName", [request.region]):
            for zone, ident in self.zone_names(region, local=False).items():
                if all(self.sold_in(kind, zone) for kind in request.tree.get("InstanceType", [])):
                    rows.append({"region": region, "availabilityZoneId": ident, "score": 1 + hash_of(zone) % 9})
        return {"spotPlacementScoreSet": rows}


def permission_row(rule):
    protocol, low, high, kind, peer = rule
    return {"ipProtocol": protocol, "fromPort": None if low < 0 else low, "toPort": None if high < 0 else high,
            "groups": [{"groupId": peer}] if kind == "group" else [],
            "ipRanges": [{"cidrIp": peer}] if kind == "cidr" else [], "ipv6Ranges": [], "prefixListIds": []}


def hash_of(text):
    """Returns a hash that is equal in all processes, unlike hash()."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
