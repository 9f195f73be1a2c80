"""The face of Google: the token endpoint (/token), Compute Engine v1 (/compute/v1) and the SKUs of Cloud Billing
(/v1/services). Clients exchange JWTs (RS256, verified with the test key) for tokens, or send such JWTs as tokens,
as the vendor's libraries do. Lists are in gce_lists.py, machines in gce_machines.py."""
import json
import re
import time
import urllib.parse

import cloud_keys
import gce_filter
import gce_lists
import gce_machines
import json_schema
from cloud_http import Refused, Reply

TOP = "/compute/v1/projects/"
PUBLIC_TOKEN_URI = "https://oauth2.googleapis.com/token"  # google-auth-library writes this, whatever the key file says
COMMON = {"alt", "$alt", "fields", "prettyPrint", "quotaUser", "key"}
LIST = {"filter", "maxResults", "pageToken", "orderBy", "returnPartialSuccess"}
AGGREGATED = LIST | {"includeAllScopes", "serviceProjectNumber"}
ASK = {"requestId"}
# (method, path, action, query, schema of the body)
ROUTES = [
    ("GET", "", "projects.get", set(), None),
    ("GET", "regions", "regions.list", LIST, None),
    ("GET", "regions/{region}", "regions.get", set(), None),
    ("GET", "zones", "zones.list", LIST, None),
    ("GET", "zones/{zone}", "zones.get", set(), None),
    ("GET", "aggregated/instances", "instances.aggregatedList", AGGREGATED, None),
    ("GET", "aggregated/machineTypes", "machineTypes.aggregatedList", AGGREGATED, None),
    ("GET", "aggregated/acceleratorTypes", "acceleratorTypes.aggregatedList", AGGREGATED, None),
    ("GET", "aggregated/operations", "globalOperations.aggregatedList", AGGREGATED, None),
    ("GET", "zones/{zone}/machineTypes", "machineTypes.list", LIST, None),
    ("GET", "zones/{zone}/machineTypes/{name}", "machineTypes.get", set(), None),
    ("GET", "zones/{zone}/acceleratorTypes", "acceleratorTypes.list", LIST, None),
    ("GET", "zones/{zone}/instances", "instances.list", LIST, None),
    ("POST", "zones/{zone}/instances", "instances.insert", ASK, "Instance"),
    ("POST", "zones/{zone}/instances/bulkInsert", "instances.bulkInsert", ASK, "BulkInsert"),
    ("POST", "regions/{region}/instances/bulkInsert", "regionInstances.bulkInsert", ASK, "BulkInsert"),
    ("GET", "zones/{zone}/instances/{name}", "instances.get", set(), None),
    ("DELETE", "zones/{zone}/instances/{name}", "instances.delete", ASK, None),
    ("POST", "zones/{zone}/instances/{name}/setLabels", "instances.setLabels", ASK, "LabelsRequest"),
    ("GET", "zones/{zone}/instances/{name}/getGuestAttributes", "instances.getGuestAttributes",
     {"queryPath", "variableKey"}, None),
    ("GET", "zones/{zone}/operations", "zoneOperations.list", LIST, None),
    ("GET", "zones/{zone}/operations/{name}", "zoneOperations.get", set(), None),
    ("POST", "zones/{zone}/operations/{name}/wait", "zoneOperations.wait", set(), None),
    ("GET", "regions/{region}/operations/{name}", "regionOperations.get", set(), None),
    ("POST", "regions/{region}/operations/{name}/wait", "regionOperations.wait", set(), None),
    ("GET", "global/operations/{name}", "globalOperations.get", set(), None),
    ("POST", "global/operations/{name}/wait", "globalOperations.wait", set(), None),
    ("GET", "global/images", "images.list", LIST, None),
    ("GET", "global/images/family/{name}", "images.getFromFamily", set(), None),
    ("GET", "global/images/{name}", "images.get", set(), None),
    ("GET", "global/networks", "networks.list", LIST, None),
    ("GET", "global/networks/{name}", "networks.get", set(), None),
    ("GET", "global/firewalls", "firewalls.list", LIST, None),
    ("GET", "global/firewalls/{name}", "firewalls.get", set(), None),
    ("POST", "global/firewalls", "firewalls.insert", ASK, "Firewall"),
    ("PATCH", "global/firewalls/{name}", "firewalls.patch", ASK, "Firewall"),
    ("DELETE", "global/firewalls/{name}", "firewalls.delete", ASK, None),
]
STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
          409: "ALREADY_EXISTS", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}


def pattern(path):
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


MATCHERS = [(method, pattern(path), action, query, schema) for method, path, action, query, schema in ROUTES]


class Face:
    name, notice_s, ended_by_hand = "gce", 30, "deleted"

    def __init__(self, cloud):
        self.cloud, self.world = cloud, cloud.world
        self.catalog = self.world.catalog["gcp"]
        self.project = self.catalog["project"]
        self.schema = json_schema.load("gce")
        self.tokens = {}  # outlive a reset: clients keep theirs
        self.reset()

    def reset(self):
        self.lists = gce_lists.Lists(self)
        self.machines = gce_machines.Machines(self)

    def change(self, what, given):
        return self.lists.change(what, given)

    def takes(self, request):
        return request.path == "/token" or request.path.startswith((TOP, "/v1/services/", "/v1/projects/"))

    # Reading.

    def read(self, request):
        request.face = "gce"
        if request.path == "/token":
            request.face, request.action = "token", "token"
            return self.read_token(request)
        if request.path.startswith("/v1/projects/"):
            request.face, request.action = "resourcemanager", "projects.testIamPermissions"
            self.authenticate(request)
            request.params = request.json("parseError")
            if (request.method, request.path) != ("POST", f"/v1/projects/{self.project}:testIamPermissions") or (
                    set(request.params) != {"permissions"}):
                raise Refused("notFound", f"no {request.method} {request.path}", 404)
            return None
        if request.path.startswith("/v1/services/"):
            request.face, request.action = "billing", "skus.list"
            self.authenticate(request, key=True)
            self.known_query(request, {"pageSize", "pageToken", "currencyCode"})
            if request.method != "GET" or request.path != "/v1/services/6F81-5844-456A/skus":
                raise Refused("notFound", f"no {request.method} {request.path}", 404)
            return None
        return self.read_compute(request)

    def read_compute(self, request):
        project, _, rest = urllib.parse.unquote(request.path[len(TOP):]).partition("/")
        for method, matcher, action, query, schema in MATCHERS:
            found = matcher.fullmatch(rest)
            if found and method == request.method:
                request.action, request.names = action, {"project": project, **found.groupdict()}
                break
        else:
            raise Refused("notFound", f"The requested URL {request.path} was not found on this server.", 404)
        request.zone = request.names.get("zone", "")
        request.region = request.names.get("region") or request.zone.rpartition("-")[0]
        self.authenticate(request)
        self.known_query(request, query)
        self.known_place(request, project)
        if schema:
            self.read_body(request, schema)
        elif request.body not in (b"", b"{}", b'""'):  # the last is what the vendor's client sends
            raise Refused("invalid", f"this call has no body, but {request.body[:100]!r} came")

    def read_body(self, request, schema):
        if request.header("Content-Type").partition(";")[0].strip() != "application/json":
            raise Refused("parseError", "Content-Type must be application/json")
        request.params = request.json("parseError")
        wrongs = json_schema.wrongs(request.params, self.schema[schema], self.schema, "resource")
        if wrongs:
            raise Refused("invalid", f"Invalid JSON payload received. {'; '.join(wrongs)}")
        properties = request.params.get("instanceProperties", request.params)
        request.type = properties.get("machineType", "").rpartition("/")[2]
        ident = request.query.get("requestId")
        if ident is not None and (not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", ident)
                                  or set(ident) <= {"0", "-"}):
            raise Refused("invalid", f"Invalid value for field 'requestId': '{ident}'. Must be a valid, nonzero UUID.")

    def known_query(self, request, known):
        unknown = set(request.query) - known - COMMON
        if unknown:
            raise Refused("invalidParameter", f'Invalid JSON payload received. Unknown name "{sorted(unknown)[0]}": '
                          "Cannot bind query parameter.")

    def known_place(self, request, project):
        images = {each["project"] for each in self.catalog["images"]}
        if project != self.project and not (request.action.startswith("images.") and project in images):
            raise Refused("notFound", f"The resource 'projects/{project}' was not found", 404)
        region = self.catalog["regions"].get(request.region) if request.region else {"zones": []}
        if region is None or (request.zone and request.zone not in region["zones"]):
            what = f"zones/{request.zone}" if request.zone else f"regions/{request.region}"
            last = request.zone or request.region
            raise Refused("invalid", f"Invalid value for field '{what.split('s/')[0]}': '{last}'. Unknown.", 400)

    # Keys and tokens.

    def authenticate(self, request, key=False):
        if key and request.query.get("key") == "fake-api-key":
            return
        kind, _, token = request.header("Authorization").partition(" ")
        expires = self.tokens.get(token)
        if kind == "Bearer" and token.count(".") == 2:
            claims = self.claims(token, lambda why: unauthenticated(why))
            if claims.get("sub") != cloud_keys.GCP_EMAIL:
                raise unauthenticated("a self-signed token has sub = iss")
            return
        if kind != "Bearer" or expires is None or self.world.now() >= expires:
            raise unauthenticated("Request had invalid authentication credentials.")

    def claims(self, token, wrong):
        """Returns the claims of a JWT of the test account. Refuses a bad signature or time."""
        head, body, signature = token.split(".")
        try:
            header = json.loads(cloud_keys.unbase64url(head))
            claims = json.loads(cloud_keys.unbase64url(body))
            signed = cloud_keys.unbase64url(signature)
        except ValueError as error:
            raise wrong(f"Invalid JWT: {error}") from None
        if header.get("alg") != "RS256" or header.get("typ", "JWT") != "JWT":
            raise wrong("Invalid JWT: alg must be RS256")
        if header.get("kid", self.cloud.keys.key_id) != self.cloud.keys.key_id:
            raise wrong("Invalid JWT: no such key id")
        if not cloud_keys.rs256_holds(self.cloud.keys.modulus, f"{head}.{body}".encode(), signed):
            raise wrong("Invalid JWT Signature.")
        now = self.world.wall()
        if not isinstance(claims.get("iat"), int) or not isinstance(claims.get("exp"), int):
            raise wrong("Invalid JWT: iat and exp must be whole numbers")
        if claims["iat"] > now + 300 or claims["exp"] <= now or claims["exp"] - claims["iat"] > 3600:
            raise wrong("Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
                        "Check your iat and exp values in the JWT claim.")
        if claims.get("iss") != cloud_keys.GCP_EMAIL:
            raise wrong("Invalid grant: account not found")
        return claims

    def read_token(self, request):
        if request.method != "POST" or request.header("Content-Type").partition(";")[0] != (
                "application/x-www-form-urlencoded"):
            raise Refused("invalid_request", "POST with a form is needed")
        given = request.given = dict(urllib.parse.parse_qsl(request.body.decode("utf-8", "replace")))
        request.params = {"grant_type": given.get("grant_type", "")}
        if given.get("grant_type") == "refresh_token":
            if {name: given.get(name) for name in cloud_keys.REFRESH} != cloud_keys.REFRESH:
                raise Refused("invalid_grant", "Bad Request")
        elif given.get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            if given.get("assertion", "").count(".") != 2:
                raise Refused("invalid_request", "no assertion")
            claims = self.claims(given["assertion"], lambda why: Refused("invalid_grant", why))
            if claims.get("aud") not in (f"{self.cloud.url}/token", PUBLIC_TOKEN_URI):
                raise Refused("invalid_grant", f"Invalid JWT: aud {claims.get('aud')!r} is not the token endpoint")
            if "https://www.googleapis.com/auth/cloud-platform" not in str(claims.get("scope", "")).split():
                raise Refused("invalid_scope", "Invalid OAuth scope or ID token audience provided.")
            request.params["claims"] = sorted(claims)
        else:
            raise Refused("unsupported_grant_type", "Invalid grant_type")

    # Answering.

    def answer(self, request):
        if request.face == "token":
            token = "ya29.fake-" + self.world.ident("", 40)
            lasts = self.world.settings.get("token_s", 3599)
            self.tokens[token] = self.world.now() + lasts
            return Reply({"access_token": token, "expires_in": int(lasts), "token_type": "Bearer"})
        if request.face == "resourcemanager":
            denied = self.world.settings["gce_denied"]
            return Reply({"permissions": [each for each in request.params["permissions"] if each not in denied]})
        actions = {**self.lists.actions, **self.machines.actions}
        made = actions[request.action](request)
        if "fields" in request.query:
            made = gce_filter.mask(made, request.query["fields"])
        return Reply(made, kind="application/json; charset=UTF-8")

    def refuse(self, request, refused):
        if request.face == "token":
            return Reply({"error": refused.code, "error_description": refused.message}, refused.status,
                         headers=refused.headers)
        error = {"code": refused.status, "message": refused.message, "status": STATUS.get(refused.status, "UNKNOWN"),
                 "errors": [{"message": refused.message, "domain": refused.more.get("domain", "global"),
                             "reason": refused.code}]}
        return Reply({"error": error}, refused.status, "application/json; charset=UTF-8", refused.headers)

    def fault(self, request, wrong):
        headers = {"Retry-After": str(wrong["retry_after"])} if "retry_after" in wrong else {}
        if wrong["kind"] == "token_expired":
            return Refused("invalid_grant", "expired") if request.face == "token" else unauthenticated("expired")
        status = wrong.get("status", 400)
        code = wrong.get("code", {429: "rateLimitExceeded", 503: "backendError"}.get(status, "internalError"))
        return Refused(code, wrong.get("message", "scripted"), status, headers)

    def foreign(self, given):
        """Adds a running machine of another user: {"zone", "labels", "name"}."""
        return self.machines.foreign(given)

    def link(self, rest):
        return f"{self.cloud.url}{TOP}{self.project}/{rest}"


def unauthenticated(why):
    return Refused("authError", f"{why} Expected OAuth 2 access token.", 401, {"WWW-Authenticate": "Bearer"})


def rfc3339(moment):
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    return f"{whole}.{int(moment % 1 * 1000):03d}+00:00"
