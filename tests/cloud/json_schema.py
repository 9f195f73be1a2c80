"""A small checker for the part of JSON Schema that schemas/*.json use. Members that a schema does not name are errors,
unless it has "additionalProperties"."""
import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).parent / "schemas"
TYPES = {"string": str, "boolean": bool, "array": list, "object": dict, "number": (int, float), "integer": int}


def load(name):
    """Returns the definitions of one file."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["definitions"]


def wrongs(value, schema, definitions, where=""):
    """Returns a line for each error; none: the value is valid."""
    if "$ref" in schema:
        return wrongs(value, definitions[schema["$ref"]], definitions, where)
    if "anyOf" in schema:
        tried = [wrongs(value, each, definitions, where) for each in schema["anyOf"]]
        return [] if any(not each for each in tried) else min(tried, key=len)
    if value is None and schema.get("nullable"):
        return []
    kind = schema.get("type")
    if kind == "int64":  # a number, or the text of a number, as in Google's JSON
        return [] if re.fullmatch(r"-?\d{1,19}", str(value)) and not isinstance(value, bool) else [
            f"{where}: {value!r} is no integer"]
    if kind and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [f"{where}: {value!r} is no {kind}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if isinstance(value, str):
        found += wrong_text(value, schema, where)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            found.append(f"{where}: {value} is out of range")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{where}: {len(value)} items")
        for number, each in enumerate(value):
            found += wrongs(each, schema.get("items", {}), definitions, f"{where}[{number}]")
    if isinstance(value, dict):
        found += wrong_object(value, schema, definitions, where)
    return found


def wrong_text(value, schema, where):
    found = []
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        found.append(f"{where}: {len(value)} characters")
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        found.append(f"{where}: {value!r} is not {schema['pattern']}")
    return found


def wrong_object(value, schema, definitions, where):
    known, others = schema.get("properties", {}), schema.get("additionalProperties", "type" not in schema)
    found = [f"{where}.{name}: missing" for name in schema.get("required", []) if name not in value]
    if len(value) > schema.get("maxProperties", len(value)):
        found.append(f"{where}: {len(value)} members")
    for name, each in value.items():
        if name in known:
            found += wrongs(each, known[name], definitions, f"{where}.{name}")
        elif isinstance(others, dict):
            found += wrongs(each, others, definitions, f"{where}.{name}")
        elif not others:
            found.append(f"{where}.{name}: unknown")
        if "propertyNames" in schema:
            found += wrongs(name, schema["propertyNames"], definitions, f"{where}: name")
    return found
