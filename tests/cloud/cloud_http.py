"""Requests and answers of the fake clouds, and the code that all faces share: refusals, JSON, canonical records."""
import json
import re
import urllib.parse


class Refused(Exception):
    """A refusal by the provider. Each face writes it in its own envelope."""

    def __init__(self, code, message, status=400, headers=(), **more):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status, self.headers, self.more = code, message, status, dict(headers), more


class Request:
    """One request. The face that reads the request fills in the lower half, which faults and records use."""

    def __init__(self, method, target, headers, body, peer):
        self.method, self.target, self.headers, self.body, self.peer = method, target, headers, body, peer
        self.path, _, self.query_text = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(self.query_text, keep_blank_values=True))
        self.face = self.action = self.region = self.zone = self.type = ""
        self.params = {}
        self.found = []  # faults

    def header(self, name, default=""):
        return self.headers.get(name, default)

    def place(self):
        return {"face": self.face, "action": self.action, "path": self.path, "region": self.region, "zone": self.zone,
                "type": self.type}

    def json(self, code="invalid", status=400):
        try:
            read = json.loads(self.body.decode("utf-8"), object_pairs_hook=once)
        except ValueError as error:
            raise Refused(code, f"the body is no JSON: {error}", status) from None
        if not isinstance(read, dict):
            raise Refused(code, "the body is no JSON object", status)
        return read

    def canonical(self):
        """Returns the request without parts that differ between senders, for comparison (request_record.py)."""
        return {"method": self.method, "path": self.path, "query": dict(sorted(self.query.items())),
                "target": self.header("X-Amz-Target"), "params": self.params}


class Reply:
    def __init__(self, body=b"", status=200, kind="application/json", headers=()):
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status, self.headers = status, {"Content-Type": kind, **dict(headers)}


def once(pairs):
    """Returns a JSON object, and refuses one with a repeated name."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(f"a name stands twice among {[name for name, _ in pairs]}")
    return made


def pages(rows, size, token, wrong):
    """Returns (the page, the token of the next page or ""). A token only encodes where its page begins."""
    if token and not re.fullmatch(r"page-\d+", token):
        raise wrong
    begin = int(token[5:]) if token else 0
    return rows[begin:begin + size], f"page-{begin + size}" if begin + size < len(rows) else ""
