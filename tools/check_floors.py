#!/usr/bin/env python3
"""Checks the house rules that a compiler does not: which room may include which (docs/architecture.md),
and that no file grows past what one sitting can read.

A room may include rooms on floors below its own; a room on its own floor, or none at all above, only
where its CMakeLists.txt names it in DEPS. Every room that is included must be in DEPS or be reached
through them. JSON goes through codec/json.h, whose limits hold for all that a peer may send.
"""
import pathlib
import re
import sys

FLOORS = {
    0: "base",
    1: "codec io",
    2: "proc host http",
    3: "store logs",
    4: "rendezvous launch ssh setup slurm cloud",
    5: "agent status",
    6: "cluster",
    7: "cli",
}
FLOOR_OF = {room: floor for floor, rooms in FLOORS.items() for room in rooms.split()}
MAX_LINES = 800
INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_0-9]+)/', re.M)
JSON_DOOR = ("src/codec/json.h", "src/codec/json.cc")
# nlohmann's own ways in and out.
JSON_DIRECT = re.compile(r"<nlohmann/|\b\w*[jJ]son::(?:parse|sax_parse|accept|from_\w+)\b|\.dump\(")
CALL = re.compile(r"\b(lockstep_room|target_link_libraries)\((.*?)\)", re.S)


def declared_deps(cmake_text):
    """The rooms that one CMakeLists.txt names: DEPS of lockstep_room(), libraries linked by hand."""
    found = set()
    for call, body in CALL.findall(re.sub(r"#.*", "", cmake_text)):
        words, reading = body.split()[1:], False
        for word in words:
            if call == "target_link_libraries":
                library = word.removeprefix("lockstep_")
                found |= {library} & FLOOR_OF.keys()
            elif word.isupper():
                reading = word == "DEPS"
            elif reading:
                found.add(word)
    return found


def reachable(room, deps):
    seen, todo = set(), [room]
    while todo:
        for dep in deps.get(todo.pop(), ()):
            if dep not in seen:
                seen.add(dep)
                todo.append(dep)
    return seen


def check_deps(deps):
    for room, names in deps.items():
        if room not in FLOOR_OF:
            yield f"src/{room}: no floor is known for it"
            continue
        for dep in sorted(names):
            if dep not in FLOOR_OF:
                yield f"src/{room}/CMakeLists.txt: DEPS names {dep}, which is no room"
            elif FLOOR_OF[dep] > FLOOR_OF[room]:
                yield f"src/{room}/CMakeLists.txt: DEPS names {dep}, a floor above"
        if room in reachable(room, deps):
            yield f"src/{room}/CMakeLists.txt: {room} depends on itself"


def check_file(path, room, text, deps):
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield f"{path}: {lines} lines, more than {MAX_LINES}"
    if path.as_posix() not in JSON_DOOR and not path.stem.endswith("_test"):
        for direct in sorted(set(JSON_DIRECT.findall(text))):
            yield f"{path}: '{direct}' goes past codec/json.h"
    allowed = reachable(room, deps) | {room}
    for other in sorted(set(INCLUDE.findall(text))):
        if other not in FLOOR_OF or other in allowed:
            continue
        where = "above" if FLOOR_OF[other] > FLOOR_OF[room] else "not among its DEPS"
        yield f"{path}: includes {other}/, {where}"


def check(source):
    deps = {}
    for cmake in sorted(source.glob("*/CMakeLists.txt")):
        deps[cmake.parent.name] = declared_deps(cmake.read_text()) - {cmake.parent.name}
    yield from check_deps(deps)
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".cc", ".h", ".c"):
            continue
        room = path.relative_to(source).parts[0]
        if room in FLOOR_OF:
            yield from check_file(path.relative_to(source.parent), room, path.read_text(), deps)


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1]
    complaints = list(check(root / "src"))
    for complaint in complaints:
        print(complaint)
    print(f"floors: {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
