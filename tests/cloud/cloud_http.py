"""Requests and answers as the fake clouds see them, and what all faces share: refusals, JSON, canonical records."""
import json
import re
import urllib.parse


class Refused(Exception):
    """The provider says no. Each face writes it in its own envelope."""

    def __init__(self, code, message, status=400, headers=(), **more):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status, self.headers, self.more = code, message, status, dict(headers), more


class Request:
    """What came in. The face that reads it fills in the lower half, which faults and records go by."""

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
        """The request without what differs from sender to sender: for comparison (request_record.py)."""
        return {"method": self.method, "path": self.path, "query": dict(sorted(self.query.items())),
                "target": self.header("X-Amz-Target"), "params": self.params}


class Reply:
    def __init__(self, body=b"", status=200, kind="application/json", headers=()):
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status, self.headers = status, {"Content-Type": kind, **dict(headers)}


def once(pairs):
    """An object of JSON in which no name stands twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(f"a name stands twice among {[name for name, _ in pairs]}")
    return made


def pages(rows, size, token, wrong):
    """(the page, the token of the next or ""). Tokens are made of where the page begins, and of nothing else."""
    if token and not re.fullmatch(r"page-\d+", token):
        raise wrong
    begin = int(token[5:]) if token else 0
    return rows[begin:begin + size], f"page-{begin + size}" if begin + size < len(rows) else ""
