"""The part of Compute Engine's filter language that clients use, and the `fields` mask of answers."""
import fnmatch
import re

from cloud_http import Refused

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\(|\)|!=|<=|>=|=|:|<|>|[^\s()=!:<>"]+)')
WORDS = {"eq": "=~", "ne": "!~"}


def wrong(text):
    return Refused("invalid", f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.")


class Filter:
    """A filter: labels.a=b, (name eq "x.*") AND status != RUNNING, name:abc*, labels.a:*, OR."""

    def __init__(self, text):
        self.text, self.tokens, place = text, [], 0
        while text[place:].strip():
            found = TOKEN.match(text, place)
            if found is None:
                raise wrong(text)
            self.tokens.append(found.group(1))
            place = found.end()
        self.at = 0
        self.tree = self.either() if self.tokens else ("all",)
        if self.at != len(self.tokens):
            raise wrong(text)

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self):
        token = self.peek()
        if not token:
            raise wrong(self.text)
        self.at += 1
        return token

    def either(self):
        parts = [self.both()]
        while self.peek() == "OR":
            self.take()
            parts.append(self.both())
        return ("any", parts)

    def both(self):
        parts = [self.one()]
        while self.peek() not in ("", ")", "OR"):
            if self.peek() == "AND":
                self.take()
            parts.append(self.one())
        return ("every", parts)

    def one(self):
        if self.peek() == "(":
            self.take()
            inner = self.either()
            if self.take() != ")":
                raise wrong(self.text)
            return inner
        name, sign, value = self.take(), self.take(), self.take()
        sign = WORDS.get(sign, sign)
        if sign not in ("=", "!=", ":", "<", ">", "<=", ">=", "=~", "!~") or value in ("(", ")"):
            raise wrong(self.text)
        return ("is", name, sign, value[1:-1] if value.startswith('"') else value)

    def passes(self, row):
        return holds(self.tree, row)


def holds(tree, row):
    if tree[0] == "all":
        return True
    if tree[0] == "any":
        return any(holds(each, row) for each in tree[1])
    if tree[0] == "every":
        return all(holds(each, row) for each in tree[1])
    _, path, sign, wanted = tree
    value = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return compare(value, sign, wanted)


def compare(value, sign, wanted):
    if sign == ":" and wanted == "*":
        return value is not None
    if sign in ("!=", "!~") and value is None:
        return True
    if value is None:
        return False
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if sign in ("<", ">", "<=", ">="):
        low, high = float(value), float(wanted)
        return {"<": low < high, ">": low > high, "<=": low <= high, ">=": low >= high}[sign]
    if sign in ("=~", "!~"):
        return (re.fullmatch(wanted, text) is not None) == (sign == "=~")
    if sign == ":":
        return fnmatch.fnmatchcase(text, wanted if "*" in wanted else f"*{wanted}*")
    return fnmatch.fnmatchcase(text, wanted) == (sign == "=")


def mask(value, fields):
    """Returns the part of an answer that `fields=items(name,status),nextPageToken` keeps."""
    tree, rest = parse_mask(fields)
    if rest:
        raise Refused("invalidParameter", f"Invalid field selection {fields}")
    return masked(value, tree)


def parse_mask(text):
    tree = {}
    while text and not text.startswith(")"):
        one, text = parse_path(text)
        tree.update(one)
        text = text[1:] if text.startswith(",") else text
        if text and not text.startswith(")") and not re.match(r"[A-Za-z0-9_*]", text):
            break
    return tree, text


def parse_path(text):
    """Parses one name of a path and its sub-paths, without its siblings."""
    found = re.match(r"([A-Za-z0-9_*]+)", text)
    if found is None:
        raise Refused("invalidParameter", f"Invalid field selection {text}")
    name, text = found.group(1), text[found.end():]
    if text.startswith("/"):
        inner, text = parse_path(text[1:])
    elif text.startswith("("):
        inner, text = parse_mask(text[1:])
        text = text[1:]
    else:
        inner = None
    return {name: inner}, text


def masked(value, tree):
    if tree is None:
        return value
    if isinstance(value, list):
        return [masked(each, tree) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: masked(each, tree[name] if name in tree else tree["*"]) for name, each in value.items()
            if name in tree or "*" in tree}
