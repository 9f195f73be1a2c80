"""Makes and checks AWS signatures (version 4), written from the published description, without vendor code."""
import hashlib
import hmac
import re
import urllib.parse

AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/(\d{8})/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request,\s*"
                           r"SignedHeaders=([a-z0-9;-]+),\s*Signature=([0-9a-f]{64})")


class Scope:
    """What an Authorization header claims."""

    def __init__(self, header):
        read = AUTHORIZATION.fullmatch(header.strip())
        if read is None:
            raise ValueError("the Authorization header is not one of AWS4-HMAC-SHA256")
        self.key, self.date, self.region, self.service = read.group(1, 2, 3, 4)
        self.names, self.signature = read.group(5).split(";"), read.group(6)


def quoted(text, keep=""):
    return urllib.parse.quote(text, safe=keep + "-_.~")


def canonical_path(path, normalize=True):
    """Encodes each segment once more, and drops ".", ".." and empty segments, as all services except S3 do."""
    if not normalize:
        return quoted(path, "/") or "/"
    kept = []
    for segment in path.split("/"):
        if segment == ".." and kept:
            kept.pop()
        elif segment not in ("", ".", ".."):
            kept.append(segment)
    made = "/" + "/".join(kept)
    return quoted(made + ("/" if path.endswith("/") and kept else ""), "/")


def canonical_query(query):
    pairs = [part.partition("=")[::2] for part in query.split("&") if part]
    coded = sorted((quoted(urllib.parse.unquote(name)), quoted(urllib.parse.unquote(value))) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in coded)


def canonical_request(method, path, query, headers, names, body_hash, normalize=True):
    """headers: [(name, value)] in order of arrival."""
    lines = []
    for name in names:
        values = [" ".join(value.split()) for each, value in headers if each.lower() == name]
        lines.append(f"{name}:{','.join(values)}\n")
    return "\n".join([method, canonical_path(path, normalize), canonical_query(query), "".join(lines), ";".join(names),
                      body_hash])


def to_sign(stamp, scope, canonical):
    return f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"


def signing_key(secret, date, region, service):
    key = b"AWS4" + secret.encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def signature(secret, stamp, region, service, canonical):
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    key = signing_key(secret, stamp[:8], region, service)
    return hmac.new(key, to_sign(stamp, scope, canonical).encode(), hashlib.sha256).hexdigest()


def verify(scope, secret, method, path, query, headers, body):
    """Returns "" if the signature holds and covers all required headers, else what was expected."""
    given = {name.lower() for name, _ in headers}
    must = {"host", "x-amz-date"} | {name for name in given if name == "content-type" or name.startswith("x-amz-")}
    missing = must - set(scope.names)
    # x-amz-user-agent and the like: the SDKs do not sign all of them, and the services accept that.
    missing -= {"x-amz-user-agent", "x-amz-content-sha256", "content-type"}
    if missing:
        return f"these headers must be signed: {sorted(missing)}"
    if scope.names != sorted(set(scope.names)) or set(scope.names) - given:
        return "SignedHeaders is not sorted, or names a header that is not there"
    body_hash = hashlib.sha256(body).hexdigest()
    stamp = next(value for name, value in headers if name.lower() == "x-amz-date")
    if stamp[:8] != scope.date:
        return f"Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date: {scope.date}"
    canonical = canonical_request(method, path, query, headers, scope.names, body_hash)
    expected = signature(secret, stamp, scope.region, scope.service, canonical)
    if hmac.compare_digest(expected, scope.signature):
        return ""
    return f"The Canonical String for this request should have been '{canonical}'"


def sign(key, secret, region, service, method, url, body, stamp, headers=(), token=None):
    """Returns the headers of a signed request, for tests that talk to the fakes directly."""
    place = urllib.parse.urlsplit(url)
    named = [("host", place.netloc), ("x-amz-date", stamp), *headers]
    named += [("x-amz-security-token", token)] if token else []
    names = sorted(name.lower() for name, _ in named)
    canonical = canonical_request(method, place.path or "/", place.query, named, names,
                                  hashlib.sha256(body).hexdigest())
    made = signature(secret, stamp, region, service, canonical)
    return dict(named, Authorization=f"AWS4-HMAC-SHA256 Credential={key}/{stamp[:8]}/{region}/{service}/aws4_request, "
                                     f"SignedHeaders={';'.join(names)}, Signature={made}")
