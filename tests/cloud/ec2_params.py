"""Reads parameters of AWS's query protocol, checks them by schemas/ec2.json, and returns nested values."""
import base64
import binascii
import fnmatch
import json
import pathlib
import re
import urllib.parse

from cloud_http import Refused

ACTIONS = json.loads((pathlib.Path(__file__).parent / "schemas/ec2.json").read_text(encoding="utf-8"))["actions"]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


def read_form(body):
    """Returns the pairs of a form body. Refuses a repeated name, and a malformed body."""
    try:
        pairs = urllib.parse.parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise Refused("MalformedQueryString", "the body is no form") from None
    params = dict(pairs)
    if len(params) != len(pairs):
        raise Refused("InvalidQueryParameter", "a parameter stands twice")
    return params


def check(action, params):
    """Refuses parameters that the service's model does not have, and missing ones."""
    model = ACTIONS[action]
    for name, value in params.items():
        if name in ("Action", "Version"):
            continue
        shape = re.sub(r"\.[1-9]\d{0,3}(?=\.|$)", ".n", name)
        if shape in ("Filter.n.Name", "Filter.n.Value.n") and "filters" in model:
            continue
        kind = model["params"].get(shape)
        if kind is None:
            raise Refused("UnknownParameter", f"The parameter {name} is not recognized")
        check_value(name, value, kind.rstrip("!"))
    for name, kind in model["params"].items():
        if kind.endswith("!") and not any(name == re.sub(r"\.[1-9]\d*", ".n", each) for each in params):
            raise Refused("MissingParameter", f"The request must contain the parameter {name.removesuffix('.n')}")
    check_numbering(params)
    for name in filters(params):
        if not any(fnmatch.fnmatchcase(name, known) for known in model.get("filters", [])):
            raise Refused("InvalidParameterValue", f"The filter '{name}' is invalid")


def check_value(name, value, kind):
    wrong = Refused("InvalidParameterValue", f"Invalid value '{value[:80]}' for {name}")
    if kind == "int" and not re.fullmatch(r"-?\d{1,9}", value):
        raise wrong
    if kind == "bool" and value not in ("true", "false"):
        raise wrong
    if kind == "time" and not TIME.fullmatch(value):
        raise wrong
    if kind.startswith("enum:") and value not in kind[5:].split("|"):
        raise wrong
    if kind == "str" and value == "" and not name.endswith(".Value"):
        raise wrong
    if kind == "b64":
        try:
            raw = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise Refused("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from None
        if len(raw) > 16384:
            raise Refused("InvalidParameterValue", "User data is limited to 16384 bytes")


def check_numbering(params):
    """Refuses lists that do not count from 1 without a gap."""
    seen = {}
    for name in params:
        for found in re.finditer(r"\.(\d+)(?=\.|$)", name):
            seen.setdefault(name[:found.start()], set()).add(int(found.group(1)))
    for name, numbers in seen.items():
        if numbers != set(range(1, len(numbers) + 1)):
            raise Refused("InvalidParameterValue", f"The list {name} does not count from 1 on: {sorted(numbers)}")


def tree(params):
    """Returns nested dicts and lists: {"TagSpecification": [{"ResourceType": .., "Tag": [..]}], ..}."""
    made = {}
    for name, value in params.items():
        place, parts = made, name.split(".")
        for part in parts[:-1]:
            place = place.setdefault(part, {})
        place[parts[-1]] = value
    return listed(made)


def listed(value):
    if not isinstance(value, dict):
        return value
    if value and all(name.isdigit() for name in value):
        return [listed(value[name]) for name in sorted(value, key=int)]
    return {name: listed(each) for name, each in value.items()}


def filters(params):
    """{name: [values]}."""
    return {each.get("Name", ""): each.get("Value", []) for each in tree(params).get("Filter", [])}


def passes(row, wanted):
    """Returns whether a row {filter name: value or values} passes all filters. Values may have * and ?."""
    for name, patterns in wanted.items():
        values = row.get(name, [])
        values = values if isinstance(values, list) else [values]
        if not any(fnmatch.fnmatchcase(str(value), pattern) for value in values for pattern in patterns):
            return False
    return True


def tag_row(tags):
    return {"tag-key": list(tags), **{f"tag:{name}": value for name, value in tags.items()}}


def xml(value, name=None):
    """Returns XML as EC2 writes it: a list is a run of <item>."""
    if isinstance(value, dict):
        inner = "".join(xml(each, key) for key, each in value.items() if each is not None)
    elif isinstance(value, list):
        inner = "".join(xml(each, "item") for each in value)
    elif isinstance(value, bool):
        inner = "true" if value else "false"
    else:
        inner = str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<{name}>{inner}</{name}>" if name else inner
