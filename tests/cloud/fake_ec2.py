"""The face of AWS: EC2, STS, SSM, Service Quotas and Price List behind one port. The scope of the signature tells the
service and the region; the signature is verified. Actions are in ec2_places.py, ec2_machines.py and
aws_services.py."""
import calendar
import re
import time

import aws_services
import cloud_keys
import ec2_machines
import ec2_params
import ec2_places
from aws_signature import Scope, verify
from cloud_faults import first
from cloud_http import Refused, Reply
from ec2_params import xml

SKEW_S = 300
FORM = "application/x-www-form-urlencoded"
VERSIONS = {"ec2": "2016-11-15", "sts": "2011-06-15"}
TARGETS = {"ssm": "AmazonSSM", "servicequotas": "ServiceQuotasV20190624", "pricing": "AWSPriceListService"}
PRICING_REGIONS = ("us-east-1", "ap-south-1", "eu-central-1")
FACES = {"ec2": "ec2", "sts": "sts", "ssm": "ssm", "servicequotas": "quotas", "pricing": "pricing"}


class Face:
    name, notice_s, ended_by_hand = "ec2", 120, "Client.UserInitiatedShutdown"

    def __init__(self, cloud):
        self.cloud, self.world = cloud, cloud.world
        self.catalog = self.world.catalog["aws"]
        self.reset()

    def reset(self):
        self.credentials = {cloud_keys.AWS_KEY: {"secret": cloud_keys.AWS_SECRET, "token": None, "expires": None}}
        self.places = ec2_places.Places(self)
        self.machines = ec2_machines.Machines(self)
        self.services = aws_services.Services(self)

    def takes(self, request):
        return request.path == "/"

    def change(self, what, given):
        return self.places.change(what, given)

    def foreign(self, given):
        """Adds a running machine of another user: {"zone", "tags", "type"}."""
        return self.machines.foreign(given)

    # Reading.

    def read(self, request):
        request.face = "ec2"
        if request.method == "GET" and not request.query_text and "Authorization" not in request.headers:
            request.action, request.face = "CheckIp", "checkip"
            return
        request.headers_list = list(request.headers.items())
        try:
            scope = request.scope = Scope(request.header("Authorization"))
        except ValueError as error:
            request.service = "ec2"
            raise Refused("MissingAuthenticationToken", str(error), 403) from None
        request.service, request.region = scope.service, scope.region
        if scope.service not in FACES:
            raise Refused("SignatureDoesNotMatch", f"no service {scope.service}", 403)
        request.face = FACES[scope.service]
        # Read the action first: the record of a refused request then names its action.
        (self.read_form if scope.service in VERSIONS else self.read_json)(request)
        self.authenticate(request, scope)
        self.check_place(request)
        (self.check_form if scope.service in VERSIONS else self.services.check)(request)

    def read_form(self, request):
        if request.method != "POST" or request.query_text:
            raise Refused("InvalidAction", "only POST with a form body is known here", 400)
        if request.header("Content-Type").partition(";")[0].strip() != FORM:
            raise Refused("InvalidAction", f"Content-Type must be {FORM}", 400)
        request.params = ec2_params.read_form(request.body)
        request.action = request.params.get("Action", "")

    def read_json(self, request):
        prefix, _, request.action = request.header("X-Amz-Target").partition(".")
        if prefix != TARGETS[request.service] or not request.action:
            raise Refused("UnknownOperationException", f"no target {request.header('X-Amz-Target')!r}", 400)
        if request.method != "POST" or request.header("Content-Type") != "application/x-amz-json-1.1":
            raise Refused("SerializationException", "POST with Content-Type application/x-amz-json-1.1 is needed", 400)
        request.params = request.json("SerializationException")

    def authenticate(self, request, scope):
        known = self.credentials.get(scope.key)
        stamp = request.header("X-Amz-Date")
        if known is None:
            raise self.not_known(request)
        if known["token"] != request.headers.get("X-Amz-Security-Token"):
            raise self.not_known(request)
        if not re.fullmatch(r"\d{8}T\d{6}Z", stamp):
            raise Refused("IncompleteSignature", f"Date must be in ISO-8601 'basic format'. Got '{stamp}'", 400)
        wrong = verify(scope, known["secret"], request.method, request.path, request.query_text, request.headers_list,
                       request.body)
        if wrong:
            raise Refused(*self.mismatch(request), 403) if request.service != "ec2" else self.not_known(request)
        signed = calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))
        if abs(signed - self.world.wall()) > SKEW_S:
            raise self.skewed(request, stamp)
        if known["expires"] is not None and self.world.now() > known["expires"]:
            raise self.expired(request)

    def mismatch(self, request):
        code = "SignatureDoesNotMatch" if request.service in VERSIONS else "InvalidSignatureException"
        return code, ("The request signature we calculated does not match the signature you provided. Check your AWS "
                      "Secret Access Key and signing method. Consult the service documentation for details.")

    def not_known(self, request):
        if request.service == "ec2":
            return Refused("AuthFailure", "AWS was not able to validate the provided access credentials", 401)
        code = "InvalidClientTokenId" if request.service == "sts" else "UnrecognizedClientException"
        return Refused(code, "The security token included in the request is invalid.", 403)

    def skewed(self, request, stamp):
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.world.wall()))
        if request.service == "ec2":
            return Refused("RequestExpired", f"Request has expired. Timestamp date is {stamp}, and now is {now}.", 400)
        code = self.mismatch(request)[0]
        return Refused(code, f"Signature expired: {stamp} is earlier or later than {now} by more than 5 min.", 403)

    def expired(self, request):
        if request.service == "ec2":
            return Refused("RequestExpired", "Request has expired.", 400)
        return Refused("ExpiredToken" if request.service == "sts" else "ExpiredTokenException",
                       "The security token included in the request is expired", 403)

    def check_place(self, request):
        region = self.catalog["regions"].get(request.region)
        if request.service == "pricing":
            if request.region not in PRICING_REGIONS:
                raise Refused("UnrecognizedClientException", f"Price List has no endpoint in {request.region}", 403)
            return
        if region is None:
            raise Refused("SignatureDoesNotMatch",
                          f"Credential should be scoped to a valid region: {request.region}", 403)
        if not region.get("opted_in", True):
            raise self.not_known(request)

    def check_form(self, request):
        version = VERSIONS[request.service]
        known = (self.services.sts if request.service == "sts" else {**self.places.actions, **self.machines.actions})
        if request.params.get("Version") != version or request.action not in known:
            raise Refused("InvalidAction", f"The action {request.action} is not valid for this web service.", 400)
        ec2_params.check(request.action, request.params)
        request.tree = ec2_params.tree(request.params)
        request.filters = ec2_params.filters(request.params)
        self.machines.place(request)

    # Answering.

    def answer(self, request):
        if request.action == "CheckIp":
            return Reply(f"{request.peer}\n".encode(), kind="text/plain")
        if request.service == "ec2":
            return self.answer_ec2(request)
        return self.services.answer(request)

    def answer_ec2(self, request):
        if request.params.get("DryRun") == "true" and request.action != "RunInstances":
            raise Refused("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        actions = {**self.places.actions, **self.machines.actions}
        made = {"requestId": self.request_id(), **actions[request.action](request)}
        name = f"{request.action}Response"
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
                f"{xml(made)}</{name}>")
        return Reply(body.encode(), kind="text/xml;charset=UTF-8")

    def request_id(self):
        return "-".join(self.world.ident("", count) for count in (8, 4, 4, 4, 12))

    # Refusing.

    def refuse(self, request, refused):
        message = refused.message
        if request.service in TARGETS:
            body = {"__type": f"com.amazonaws.fake#{refused.code}", "message": message}
            return Reply(body, refused.status, "application/x-amz-json-1.1",
                         {"x-amzn-RequestId": self.request_id(), **refused.headers})
        if request.service == "sts":
            fields = xml({"Type": "Sender", "Code": refused.code, "Message": message})
            text = (f'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>{fields}</Error>'
                    f"<RequestId>{self.request_id()}</RequestId></ErrorResponse>")
        else:
            fields = xml({"Code": refused.code, "Message": message})
            text = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error>{fields}</Error></Errors>'
                    f"<RequestID>{self.request_id()}</RequestID></Response>")
        return Reply(text.encode(), refused.status, "text/xml;charset=UTF-8", refused.headers)

    def fault(self, request, wrong):
        """Raises a fault that ends the request before the action."""
        headers = {"Retry-After": str(wrong["retry_after"])} if "retry_after" in wrong else {}
        if wrong["kind"] == "token_expired":
            return self.expired(request) if request.service != "ec2" else Refused(
                "ExpiredToken", "The security token included in the request is expired", 400)
        status = wrong.get("status", 400)
        code = wrong.get("code", {429: "RequestLimitExceeded", 503: "Unavailable"}.get(status, "InternalError"))
        return Refused(code, wrong.get("message", "scripted"), status, headers)

    def capacity_fault(self, request):
        return first(request.found, "capacity") is not None
