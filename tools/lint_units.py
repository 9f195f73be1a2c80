#!/usr/bin/env python3
"""Puts files that clang-tidy is to read together into units, as the sanitizer build compiles them.

Nearly all that clang-tidy does for a file is done for the headers that it includes: ten files in a unit cost little
more than one of them. A unit here has only the files that were asked for, so a few files cost no more than alone.

    lint_units.py BUILD FILE...   BUILD: configured with LOCKSTEP_UNITY; prints what clang-tidy -p BUILD/units reads
"""
import json
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "(.*)"$', re.M)
UNIT = re.compile(r"/CMakeFiles/(\w+)\.dir/Unity/unity_(\w+)_cxx\.cxx$")


def members(entry):
    """What a command compiles: the files of its unit, or its file."""
    path = entry["file"]
    return INCLUDE.findall(pathlib.Path(path).read_text()) if UNIT.search(path) else [path]


def write_unit(folder, entry, files):
    """A unit of some files of another one, and the command that compiles it."""
    path = folder / (UNIT.search(entry["file"])[2] + ".cxx")
    path.write_text("".join(f'#include "{file}"  // NOLINT(bugprone-suspicious-include)\n' for file in files))
    return {**entry, "file": str(path), "command": entry["command"].replace(entry["file"], str(path))}


def units_of(build, wanted):
    """The commands that compile the wanted files."""
    folder = build / "units"
    folder.mkdir(exist_ok=True)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        files = [file for file in members(entry) if file in wanted]
        if len(files) > 1:
            yield files, write_unit(folder, entry, files)
        elif files:
            yield files, {**entry, "file": files[0], "command": entry["command"].replace(entry["file"], files[0])}


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = {str(pathlib.Path(file).resolve()) for file in sys.argv[2:]}
    units = list(units_of(build, wanted))
    unknown = wanted.difference(*(files for files, _ in units))
    if unknown:
        sys.exit(f"lint_units.py: {', '.join(sorted(unknown))}: nothing compiles it; "
                 "name it in the CMakeLists.txt of its room, or remove it")
    # The largest first: none of them is left alone at the end.
    units.sort(key=lambda unit: -len(unit[0]))
    (build / "units/compile_commands.json").write_text(json.dumps([entry for _, entry in units], indent=1))
    print("\n".join(entry["file"] for _, entry in units))


if __name__ == "__main__":
    main()
