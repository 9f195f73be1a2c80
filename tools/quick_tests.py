#!/usr/bin/env python3
"""Chooses the black-box files of `./dev test quick`: tests/integration/rooms.txt names them for each changed file.

usage: quick_tests.py check
       quick_tests.py choose SECONDS SLOTS COSTS RAN OUT <CHANGED_FILES

check names each room and each black-box file that rooms.txt lacks. choose prints which rooms changed, which files run
and why, and which files do not fit into SECONDS with SLOTS files at a time. COSTS is the file in which ctest notes how
long each test took. RAN has the names that ran already, a line each; choose leaves them out. choose writes the chosen
names to OUT, separated by "|". Changed black-box files come first, the shortest first; the shortest always runs.
"""
import itertools
import pathlib
import re
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
REGISTERED = re.compile(r"^lockstep_blackbox\((\w+) (\d+)( SERIAL)?\)", re.M)
# The binary that black-box tests run does not contain these files.
UNIT_TEST = re.compile(r"src/.*_(test|testing)\.(cc|h)")


class Cost(typing.NamedTuple):
    seconds: float
    alone: bool  # the file takes all slots


class Changes(typing.NamedTuple):
    own: list  # names of changed black-box files
    paths: dict  # path of rooms.txt -> number of changed files
    rest: list  # changed files that choose nothing


def read_rows(text):
    """Parses rooms.txt: path -> names of black-box files."""
    lines = (line.partition("#")[0].partition(":") for line in text.splitlines())
    return {path: names.split() for path, colon, names in lines if colon}


def sort_changes(files, rows):
    changes = Changes([], {}, [])
    for file in files:
        fitting = [path for path in rows if file == path or file.startswith(path + "/")]
        own = re.fullmatch(r"tests/integration/test_(\w+)\.py", file)
        if own:
            changes.own.append(own[1])
        elif fitting and not UNIT_TEST.fullmatch(file):
            path = max(fitting, key=len)
            changes.paths[path] = changes.paths.get(path, 0) + 1
        else:
            changes.rest.append(file)
    return changes


def read_costs(cmake_text, record):
    """Returns the cost of each file. A file that ctest has not timed yet counts as a quarter of its time limit."""
    measured = dict(re.findall(r"^blackbox\.(\w+) \d+ ([\d.]+)$", record, re.M))
    return {name: Cost(float(measured.get(name, int(limit) / 4)), bool(serial))
            for name, limit, serial in REGISTERED.findall(cmake_text)}


def in_turn(rows):
    """Returns the first name of each row, then the second of each row and so on, so that every changed room gets tests
    before the time is used up."""
    return list(dict.fromkeys(filter(None, itertools.chain(*itertools.zip_longest(*rows)))))


def choose(own, candidates, ran, costs, seconds, slots):
    """Returns the files to run, and the files that do not fit into the time. Files that ran are in neither. The
    shortest changed file always runs."""
    def share(name):
        return costs[name].seconds * (slots if costs[name].alone else 1)
    own = sorted(own, key=share)
    chosen, left_out = [] if ran else own[:1], []
    taken = sum(map(share, chosen))
    for name in dict.fromkeys(own + candidates):
        if name in ran or name in chosen:
            continue
        if taken + share(name) > seconds * slots or costs[name].seconds > seconds:
            left_out.append(name)
        else:
            taken += share(name)
            chosen.append(name)
    return chosen, left_out


def explain_changes(changes):
    """Yields lines for a person: what changed."""
    for path, count in changes.paths.items():
        yield f"changed: {path} ({count} file{'s' if count > 1 else ''})"
    if changes.rest:
        more = f" and {len(changes.rest) - 5} more" if len(changes.rest) > 5 else ""
        yield f"changed, chooses no black-box file: {' '.join(changes.rest[:5])}{more}"


def explain_choice(changes, rows, chosen, ran, left_out, costs):
    """Yields lines for a person: what runs and why. Says last what never ran."""
    for name in chosen:
        paths = ", ".join(path for path in changes.paths if name in rows[path])
        why = "changed itself" if name in changes.own else paths
        yield f"runs: test_{name}.py (about {costs[name].seconds:.0f} s): {why}"
    if left_out and not chosen:
        yield (f"A SUBSET: {len(left_out)} of {len(ran) + len(left_out)} files do not fit into the time; "
               f"`./dev test` runs them: {' '.join(left_out)}")


def complaints(rows, root):
    """Yields the names that rooms.txt lacks, and names in rooms.txt that do not exist."""
    named = {name for names in rows.values() for name in names}
    files = {path.stem.removeprefix("test_") for path in (root / "tests/integration").glob("test_*.py")}
    rooms = {path.parent.relative_to(root).as_posix() for path in (root / "src").rglob("CMakeLists.txt")}
    yield from (f"no row names test_{name}.py" for name in sorted(files - named))
    yield from (f"no such file: test_{name}.py" for name in sorted(named - files))
    yield from (f"no row for {room}" for room in sorted(rooms) if not rows.get(room))
    yield from (f"no such path: {path}" for path in rows if not (root / path).exists())


def main(words):
    rows = read_rows((ROOT / "tests/integration/rooms.txt").read_text())
    if words == ["check"]:
        found = list(complaints(rows, ROOT))
        print(*(f"tests/integration/rooms.txt: {each}" for each in found), f"rooms: {len(found)} complaints", sep="\n")
        return 1 if found else 0
    seconds, slots, record, ran_file, out = words[1:]
    ran = pathlib.Path(ran_file).read_text().split()
    costs = read_costs((ROOT / "tests/CMakeLists.txt").read_text(), pathlib.Path(record).read_text())
    changes = sort_changes(sys.stdin.read().split(), rows)
    candidates = in_turn([rows[path] for path in changes.paths])
    chosen, left_out = choose(changes.own, candidates, ran, costs, int(seconds), int(slots))
    for line in itertools.chain([] if ran else explain_changes(changes),
                                explain_choice(changes, rows, chosen, ran, left_out, costs)):
        print(line)
    if chosen and costs[chosen[0]].seconds > int(seconds):
        alone = costs[chosen[0]].seconds
        print(f"TOO LONG: test_{chosen[0]}.py alone takes about {alone:.0f} s, more than {seconds} s")
    pathlib.Path(out).write_text("|".join(chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
