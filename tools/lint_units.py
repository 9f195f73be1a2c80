#!/usr/bin/env python3
"""Groups files into units for clang-tidy, as the sanitizer build groups them for the compiler.

clang-tidy spends most of its time on included headers, so a unit of ten files costs little more than one file. A unit
contains only the requested files, so a few files never cost more than they would alone.

usage: lint_units.py BUILD FILE...

BUILD is a build folder that was configured with LOCKSTEP_UNITY. Prints the units, for clang-tidy -p BUILD/units.
"""
import json
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "(.*)"$', re.M)
UNIT = re.compile(r"/CMakeFiles/(\w+)\.dir/Unity/unity_(\w+)_cxx\.cxx$")


def members(entry):
    """Returns the files that a command compiles: those of its unit, or its single file."""
    path = entry["file"]
    return INCLUDE.findall(pathlib.Path(path).read_text()) if UNIT.search(path) else [path]


def write_unit(folder, entry, files):
    """Writes a unit with some files of another unit, and returns the command that compiles the new unit."""
    path = folder / (UNIT.search(entry["file"])[2] + ".cxx")
    path.write_text("".join(f'#include "{file}"  // NOLINT(bugprone-suspicious-include)\n' for file in files))
    return {**entry, "file": str(path), "command": entry["command"].replace(entry["file"], str(path))}


def units_of(build, wanted):
    """Yields the wanted files of each unit, with the command that compiles them."""
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
        sys.exit(f"lint_units.py: {', '.join(sorted(unknown))}: not part of the build; "
                 "add the file to the CMakeLists.txt of its room, or remove the file")
    # Print the largest first, so that no large unit runs alone at the end.
    units.sort(key=lambda unit: -len(unit[0]))
    (build / "units/compile_commands.json").write_text(json.dumps([entry for _, entry in units], indent=1))
    print("\n".join(entry["file"] for _, entry in units))


if __name__ == "__main__":
    main()
