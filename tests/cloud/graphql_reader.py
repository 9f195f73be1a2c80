"""The part of GraphQL that RunPod's clients use: one operation, fields with arguments, variables, aliases."""
import re

TOKEN = re.compile(r'[\s,]*(?:#[^\n]*[\s,]*)*("(?:[^"\\]|\\.)*"|[{}()\[\]:$!=]'
                   r"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
                   r"|[_A-Za-z][_A-Za-z0-9]*|\Z)")


class Wrong(Exception):
    pass


class Field:
    def __init__(self, name, alias, arguments, fields):
        self.name, self.alias, self.arguments, self.fields = name, alias, arguments, fields


class Enum(str):
    """A bare word, in contrast to a text."""


class Reader:
    def __init__(self, text, variables):
        self.tokens, place = [], 0
        while True:
            found = TOKEN.match(text, place)
            if found is None:
                raise Wrong(f"Syntax Error: Unexpected character at {place}: {text[place:place + 20]!r}")
            self.tokens.append(found.group(1))
            place = found.end()
            if found.group(1) == "":
                break
        self.at, self.variables, self.used = 0, variables, set()

    def peek(self):
        return self.tokens[self.at]

    def take(self, wanted=None):
        token = self.tokens[self.at]
        if wanted is not None and token != wanted:
            raise Wrong(f"Syntax Error: Expected {wanted!r}, found {token or '<EOF>'!r}.")
        self.at += 1
        return token

    def name(self):
        token = self.take()
        if not re.fullmatch(r"[_A-Za-z]\w*", token):
            raise Wrong(f"Syntax Error: Expected Name, found {token!r}.")
        return token

    def document(self):
        """Returns (query or mutation, [fields])."""
        kind, declared = "query", set()
        if self.peek() in ("query", "mutation"):
            kind = self.take()
            if self.peek() not in ("(", "{"):
                self.name()
            if self.peek() == "(":
                declared = self.declarations()
        fields = self.selection()
        if self.peek() != "":
            raise Wrong(f"Syntax Error: Unexpected {self.peek()!r}.")
        if self.used - declared:
            raise Wrong(f"Variable {sorted(self.used - declared)} is not defined.")
        return kind, fields

    def declarations(self):
        self.take("(")
        declared = set()
        while self.peek() != ")":
            self.take("$")
            declared.add(self.name())
            self.take(":")
            while self.peek() in ("[", "]", "!") or re.fullmatch(r"[_A-Za-z]\w*", self.peek()):
                self.take()
        self.take(")")
        return declared

    def selection(self):
        self.take("{")
        fields = []
        while self.peek() != "}":
            name = alias = self.name()
            if self.peek() == ":":
                self.take()
                name = self.name()
            arguments = self.arguments() if self.peek() == "(" else {}
            fields.append(Field(name, alias, arguments, self.selection() if self.peek() == "{" else None))
        self.take("}")
        if not fields:
            raise Wrong("Syntax Error: Expected Name, found '}'.")
        return fields

    def arguments(self):
        self.take("(")
        made = {}
        while self.peek() != ")":
            name = self.name()
            self.take(":")
            made[name] = self.value()
        self.take(")")
        return made

    def value(self):
        token = self.take()
        if token == "$":
            name = self.name()
            self.used.add(name)
            return self.variables.get(name)
        if token == "[":
            made = []
            while self.peek() != "]":
                made.append(self.value())
            self.take("]")
            return made
        if token == "{":
            made = {}
            while self.peek() != "}":
                name = self.name()
                self.take(":")
                made[name] = self.value()
            self.take("}")
            return made
        if token.startswith('"'):
            return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", unescaped, token[1:-1])
        if re.fullmatch(r"-?\d+", token):
            return int(token)
        if re.fullmatch(r"-?\d.*", token):
            return float(token)
        if token in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[token]
        if re.fullmatch(r"[_A-Za-z]\w*", token):
            return Enum(token)
        raise Wrong(f"Syntax Error: Unexpected {token!r}.")


def unescaped(found):
    text = found.group(1)
    if text[0] == "u":
        return chr(int(text[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(text, text)


def pick(value, fields, where):
    """Returns the selected fields of a value. Raises Wrong for fields that the value does not have."""
    if isinstance(value, list):
        return [pick(each, fields, where) for each in value]
    if not isinstance(value, dict):
        if fields and value is not None:
            raise Wrong(f'Field "{where}" must not have a selection since it has no subfields.')
        return value
    if not fields:
        raise Wrong(f'Field "{where}" must have a selection of subfields.')
    made = {}
    for field in fields:
        if field.name not in value:
            raise Wrong(f'Cannot query field "{field.name}" on type "{where}".')
        each = value[field.name]
        if set(field.arguments) - ({"input"} if callable(each) else set()):
            raise Wrong(f'Unknown argument on field "{field.name}".')
        made[field.alias] = pick(each(**field.arguments) if callable(each) else each, field.fields, field.name)
    return made
