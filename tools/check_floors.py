#!/usr/bin/env python3
"""Checks house rules that the compiler does not check (docs/architecture.md): the includes between rooms, and the
length of files.

- A room may include rooms on its own floor and on floors below.
- A room may include the rooms in DEPS of its CMakeLists.txt, and rooms that those depend on. Each room in DEPS must be
  included.
- A subfolder that calls lockstep_room() is a room of its own, on the same floor. rendezvous/hub is the room
  rendezvous_hub with the namespace lockstep::rendezvous::hub.
- A file that uses std::uint64_t and the like must include <cstdint>, directly or through a header of ours. With other
  compilers the standard headers do not include it.
- JSON goes through codec/json.h, which limits what a peer can send.
- A file has at most MAX_LINES lines.
"""
import pathlib
import re
import sys

FLOORS = {
    0: "base",
    1: "codec io",
    2: "proc host http db stacks recorder",
    3: "store logs link sync",
    4: "rendezvous launch container rows launchers ssh setup peer slurm cloud looks",
    5: "agent status page remote job machine top",
    6: "hosts project",
    7: "rent",
    8: "jobs",
    9: "cli",
}
TOP_FLOOR_OF = {room: floor for floor, rooms in FLOORS.items() for room in rooms.split()}
MAX_LINES = 800
INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_0-9/]+)/[a-z_0-9]+\.h"', re.M)
NAMESPACE = re.compile(r"^namespace (lockstep(?:::\w+)*) \{", re.M)
JSON_DOOR = ("src/codec/json.h", "src/codec/json.cc")
# Parsers and printers of nlohmann that have no limits.
JSON_DIRECT = re.compile(r"<nlohmann/|\b\w*[jJ]son::(?:parse|sax_parse|accept|from_\w+)\b|\.dump\(")
SIZED = re.compile(r"\bu?int(?:8|16|32|64)_t\b")
OWN = re.compile(r'^\s*#\s*include\s+"([a-z_0-9/]+\.h)"', re.M)
CALL = re.compile(r"\b(lockstep_room|target_link_libraries)\((.*?)\)", re.S)


def floor_of(room):
    """Returns the floor of a room, or of a room inside a room (rendezvous_hub). None: no such room."""
    return TOP_FLOOR_OF.get(room, TOP_FLOOR_OF.get(room.partition("_")[0]))


def declared_deps(cmake_text, rooms):
    """Returns the rooms that a CMakeLists.txt names: DEPS of lockstep_room(), and target_link_libraries()."""
    deps, linked = set(), set()
    for call, body in CALL.findall(re.sub(r"#.*", "", cmake_text)):
        words, reading = body.split()[1:], False
        for word in words:
            if call == "target_link_libraries":
                linked |= {word.removeprefix("lockstep_")} & rooms
            elif word.isupper():
                reading = word == "DEPS"
            elif reading:
                deps.add(word)
    return deps, linked


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
        if floor_of(room) is None:
            yield f"{room}: FLOORS has no floor for this room"
            continue
        for dep in sorted(names):
            if dep not in deps:
                yield f"{room}: DEPS names {dep}, which is not a room"
            elif floor_of(dep) > floor_of(room):
                yield f"{room}: DEPS names {dep}, which is on a floor above"
        if room in reachable(room, deps):
            yield f"{room}: depends on itself"


def included_rooms(text, rooms):
    found = {folder.replace("/", "_") for folder in INCLUDE.findall(text)}
    # A subfolder without lockstep_room() (launch/backends) belongs to the room above.
    return {room if room in rooms else room.partition("_")[0] for room in found} & rooms


def check_file(path, room, text, deps):
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield f"{path}: {lines} lines, more than {MAX_LINES}"
    if path.as_posix() not in JSON_DOOR and not path.stem.endswith("_test"):
        for direct in sorted(set(JSON_DIRECT.findall(text))):
            yield f"{path}: '{direct}' bypasses codec/json.h"
    for other in sorted(included_rooms(text, deps.keys()) - reachable(room, deps) - {room}):
        where = "which is on a floor above" if floor_of(other) > floor_of(room) else "which DEPS does not reach"
        yield f"{path}: includes {other}, {where}"
    top, _, part = room.partition("_")
    own = f"lockstep::{top}::{part}" if part else ""
    for namespace in NAMESPACE.findall(text) if own else []:
        if namespace != own and not namespace.startswith(own + "::"):
            yield f"{path}: {namespace} is the namespace of another room; use {own}"


def check_sized(texts):
    """Yields a complaint for each file that uses types of <cstdint> without including it. texts: path below src/ ->
    text."""
    for path, text in texts.items():
        if not SIZED.search(re.sub(r"//.*", "", text)):
            continue
        seen, todo = {path}, [path]
        while todo:
            for header in OWN.findall(texts[todo.pop()]):
                if header in texts and header not in seen:
                    seen.add(header)
                    todo.append(header)
        if not any("#include <cstdint>" in texts[each] or "#include <stdint.h>" in texts[each] for each in seen):
            yield f"src/{path}: uses types of <cstdint> without including it"


def find_rooms(source):
    """Returns the folder of each room, by the room's name."""
    rooms = {}
    for cmake in sorted(source.rglob("CMakeLists.txt")):
        if "lockstep_room(" in cmake.read_text():
            rooms["_".join(cmake.parent.relative_to(source).parts)] = cmake.parent
    return rooms


def room_of(path, source, rooms):
    parts = path.relative_to(source).parts[:-1]
    while parts and "_".join(parts) not in rooms:
        parts = parts[:-1]
    return "_".join(parts)


def check(source):
    rooms = find_rooms(source)
    deps, linked = {}, {}
    for room, folder in rooms.items():
        named, by_hand = declared_deps((folder / "CMakeLists.txt").read_text(), rooms.keys())
        linked[room] = named
        deps[room] = (named | by_hand) - {room}
    yield from check_deps(deps)
    used = {room: set() for room in rooms}
    texts = {}
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".cc", ".h", ".c"):
            continue
        text = texts[path.relative_to(source).as_posix()] = path.read_text()
        room = room_of(path, source, rooms)
        if not room:
            continue
        used[room] |= included_rooms(text, rooms.keys())
        yield from check_file(path.relative_to(source.parent), room, text, deps)
    yield from check_sized(texts)
    for room, named in linked.items():
        for dep in sorted(named - used[room]):
            yield f"{room}: DEPS names {dep}, but no file includes {dep}"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1]
    complaints = list(check(root / "src"))
    for complaint in complaints:
        print(complaint)
    print(f"floors: {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
