"""AWS beside EC2: STS (query protocol), and SSM, Service Quotas and Price List (JSON 1.1)."""
import json

from cloud_http import Refused, Reply, pages
from ec2_params import xml
from ec2_places import stamp

# action: {member: type}; "!": a required member.
MODELS = {
    "GetParameter": {"Name": "str!", "WithDecryption": "bool"},
    "GetServiceQuota": {"ServiceCode": "str!", "QuotaCode": "str!"},
    "GetProducts": {"ServiceCode": "str!", "Filters": "list", "FormatVersion": "str", "NextToken": "str",
                    "MaxResults": "int"},
}
OF = {"ssm": ("GetParameter",), "servicequotas": ("GetServiceQuota",), "pricing": ("GetProducts",)}
KINDS = {"str": str, "bool": bool, "list": list, "int": int}
FILTERS = {"instanceType", "regionCode", "operatingSystem", "tenancy", "preInstalledSw", "capacitystatus", "location",
           "marketoption", "licenseModel", "servicecode", "usagetype"}
PARAMETER = "/aws/service/deeplearning/ami/{arch}/{name}/latest/ami-id"


class Services:
    def __init__(self, face):
        self.face, self.world, self.catalog = face, face.world, face.catalog
        self.sts = {"GetCallerIdentity": self.identity, "AssumeRole": self.assume}
        self.actions = {"GetParameter": self.parameter, "GetServiceQuota": self.quota, "GetProducts": self.products}

    def check(self, request):
        if request.action not in OF[request.service]:
            raise Refused("UnknownOperationException", f"no action {request.action}")
        model = MODELS[request.action]
        for name, value in request.params.items():
            if name not in model:
                raise Refused("SerializationException", f"unknown member {name}")
            if not isinstance(value, KINDS[model[name].rstrip("!")]):
                raise Refused("SerializationException", f"{name} is no {model[name].rstrip('!')}")
        for name, kind in model.items():
            if kind.endswith("!") and not request.params.get(name):
                raise Refused("ValidationException", f"'{name}' failed to satisfy constraint: must not be null")

    def answer(self, request):
        if request.service == "sts":
            made = self.sts[request.action](request)
            text = (f'<{request.action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
                    f"<{request.action}Result>{xml(made)}</{request.action}Result><ResponseMetadata><RequestId>"
                    f"{self.face.request_id()}</RequestId></ResponseMetadata></{request.action}Response>")
            return Reply(text.encode(), kind="text/xml")
        return Reply(self.actions[request.action](request), kind="application/x-amz-json-1.1",
                     headers={"x-amzn-RequestId": self.face.request_id()})

    def identity(self, _):
        account = self.catalog["account"]
        return {"Arn": f"arn:aws:iam::{account}:user/tester", "UserId": "AIDALOCKSTEPFAKE00001", "Account": account}

    def assume(self, request):
        role, name = request.params["RoleArn"], request.params["RoleSessionName"]
        if not role.startswith("arn:aws:iam::") or "denied" in role:
            raise Refused("AccessDenied", f"User is not authorized to perform: sts:AssumeRole on resource: {role}", 403)
        seconds = int(request.params.get("DurationSeconds", 3600))
        if not 900 <= seconds <= 43200:
            raise Refused("ValidationError", "DurationSeconds is from 900 to 43200")
        key = self.world.ident("ASIAY34FZKBO", 8).upper()
        made = {"secret": self.world.ident("", 40), "token": self.world.ident("FwoG", 200),
                "expires": self.world.now() + seconds}
        self.face.credentials[key] = made
        return {"AssumedRoleUser": {"AssumedRoleId": f"AROAFAKE:{name}", "Arn": f"{role}/{name}"},
                "Credentials": {"AccessKeyId": key, "SecretAccessKey": made["secret"], "SessionToken": made["token"],
                                "Expiration": stamp(made["expires"])}}

    def parameter(self, request):
        for image in self.face.places.images:
            name = image["parameter"]
            if name and not name.startswith("/"):
                name = PARAMETER.format(arch=image["arch"], name=name)
            if image["region"] == request.region and name == request.params["Name"]:
                return {"Parameter": {"ARN": f"arn:aws:ssm:{request.region}::parameter{name}", "DataType": "text",
                                      "LastModifiedDate": 1793520000.0, "Name": name, "Type": "String",
                                      "Value": image["id"], "Version": 7}}
        raise Refused("ParameterNotFound", "")

    def quota(self, request):
        code, names = request.params["QuotaCode"], {}
        for words, table in (("Running On-Demand", "codes"), ("All", "spot_codes")):
            for name, each in self.catalog["quota"][table].items():
                names[each] = f"{words} {name.upper()} {'instances' if table == 'codes' else 'Spot Instance Requests'}"
        if request.params["ServiceCode"] != "ec2" or code not in names:
            raise Refused("NoSuchResourceException",
                          "The request failed because the specified service quota does not exist.")
        return {"Quota": {"Adjustable": True, "GlobalQuota": False, "QuotaCode": code, "QuotaName": names[code],
                          "QuotaArn": f"arn:aws:servicequotas:{request.region}:{self.catalog['account']}:ec2/{code}",
                          "ServiceCode": "ec2", "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
                          "Unit": "None", "Value": float(self.face.places.limit(request.region, code))}}

    def products(self, request):
        if request.params["ServiceCode"] != "AmazonEC2":
            raise Refused("InvalidParameterException", f"no service {request.params['ServiceCode']}")
        wanted = {}
        for each in request.params.get("Filters", []):
            if not isinstance(each, dict) or set(each) != {"Type", "Field", "Value"} or each["Type"] != "TERM_MATCH":
                raise Refused("InvalidParameterException",
                              f"a filter is {{Type: TERM_MATCH, Field, Value}}, not {each}")
            if each["Field"] not in FILTERS:
                raise Refused("InvalidParameterException", f"no field {each['Field']}")
            wanted[each["Field"]] = each["Value"]
        rows = [row for row in self.rows() if all(row["product"]["attributes"].get(name) == value
                                                  for name, value in wanted.items())]
        size = request.params.get("MaxResults", 100)
        if not 1 <= size <= 100:
            raise Refused("InvalidParameterException", "MaxResults is from 1 to 100")
        page, token = pages(rows, min(size, self.world.settings["page_most"]), request.params.get("NextToken", ""),
                            Refused("InvalidNextTokenException", "The pagination token is not valid."))
        made = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(row) for row in page]}
        return {**made, "NextToken": token} if token else made

    def rows(self):
        """Returns each type in each region, also with dedicated tenancy and reserved capacity, like the real list."""
        for kind, entry in self.catalog["types"].items():
            for region in self.catalog["regions"]:
                if not any(self.face.places.sold_in(kind, zone) for zone in self.face.places.zone_names(region)):
                    continue
                price = self.face.places.demand(kind, region)
                # Not for sale on demand: the list has a row with a price of 0.
                yield self.row(kind, entry, region, "Shared", "Used", price or 0)
                yield self.row(kind, entry, region, "Shared", "UnusedCapacityReservation", price or 0)
                yield self.row(kind, entry, region, "Dedicated", "Used", (price or 0) * 11 // 10)

    def row(self, kind, entry, region, tenancy, capacity, price):
        sku = f"{abs(hash((kind, region, tenancy, capacity))) % 16 ** 12:012X}"
        attributes = {"instanceType": kind, "regionCode": region, "operatingSystem": "Linux", "tenancy": tenancy,
                      "preInstalledSw": "NA", "capacitystatus": capacity, "marketoption": "OnDemand",
                      "licenseModel": "No License required", "servicecode": "AmazonEC2", "location": region,
                      "usagetype": f"BoxUsage:{kind}", "vcpu": str(entry["vcpus"]),
                      "memory": f"{entry['mib'] // 1024} GiB", "gpu": str(entry["count"])}
        term = f"{sku}.JRTCKXETXF"
        return {"product": {"productFamily": "Compute Instance", "attributes": attributes, "sku": sku},
                "serviceCode": "AmazonEC2", "version": "20261101000000", "publicationDate": "2026-11-01T00:00:00Z",
                "terms": {"OnDemand": {term: {
                    "sku": sku, "offerTermCode": "JRTCKXETXF", "effectiveDate": "2026-11-01T00:00:00Z",
                    "termAttributes": {}, "priceDimensions": {f"{term}.6YS6EN2CT7": {
                        "unit": "Hrs", "beginRange": "0", "endRange": "Inf", "appliesTo": [],
                        "rateCode": f"{term}.6YS6EN2CT7", "description": f"per On Demand Linux {kind} Instance Hour",
                        "pricePerUnit": {"USD": f"{price / 1_000_000:.10f}"}}}}}}}
