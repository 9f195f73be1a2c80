#!/usr/bin/env python3
"""Prints how many lines of each folder's .cc files ran, by gcov's data in build/coverage (`./dev coverage`).

usage: line_coverage.py [--least PERCENT] [--files] FOLDER...

FOLDER is a room, for example src/jobs. The table has a row for FOLDER, for each folder below FOLDER, and for the sum.
Lines of tests do not count. --files adds a row for each file; files with the most missed lines stand first. --least
makes the exit status 1 if less than PERCENT of the lines of a FOLDER ran.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/coverage"
PRODUCT = re.compile(r"src/.*(?<!_test)(?<!_testing)\.cc")


def merge(report, files):
    """Adds gcov's JSON of one unit to files: path -> line -> whether the line ran. gcov lists a line of a template once
    for each instance; here the line counts once."""
    for file in report["files"]:
        path = os.path.relpath(os.path.join(ROOT, file["file"]), ROOT)
        if PRODUCT.fullmatch(path):
            lines = files.setdefault(path, {})
            for line in file["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, False) or line["count"] > 0


def read_build(folders):
    files = {}
    for folder in folders:
        for notes in sorted((BUILD / folder).rglob("*.gcno")):
            if not notes.with_suffix(".o").exists():
                continue  # an earlier build had this unit; CMake removes only the object
            # No test links some units, so they have no .gcda file. gcov then reports that no line ran.
            report = subprocess.run(["gcov", "--json-format", "--stdout", notes], cwd=BUILD, capture_output=True)
            merge(json.loads(report.stdout), files)
    return files


def counts(files):
    """Returns the number of lines, and of lines that ran, of a list of files."""
    return sum(map(len, files)), sum(sum(lines.values()) for lines in files)


def row(name, files):
    total, ran = counts(files)
    return f"{name:44} {len(files):5} {total:7} {ran:7} {100 * ran / max(total, 1):6.1f} %"


def table(folder, files):
    """Yields the rows of a room: a row for each folder in the room, and the sum if there are several."""
    inside = {path: lines for path, lines in files.items() if path.startswith(folder + "/")}
    parents = sorted({os.path.dirname(path) for path in inside})
    for parent in parents:
        yield row(parent, [lines for path, lines in inside.items() if os.path.dirname(path) == parent])
    if len(parents) > 1:
        yield row(f"{folder} and below", list(inside.values()))


def too_low(folder, files, least):
    total, ran = counts([lines for path, lines in files.items() if path.startswith(folder + "/")])
    return 100 * ran < least * max(total, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("folders", nargs="+")
    wanted = parser.parse_args()
    files = read_build(wanted.folders)
    heading = f"{'':44} {'files':>5} {'lines':>7} {'ran':>7}"
    print(heading, *(line for folder in wanted.folders for line in table(folder, files)), sep="\n")
    if wanted.files:
        missed = sorted(files.items(), key=lambda each: sum(each[1].values()) - len(each[1]))
        print("", *(row(path, [lines]) for path, lines in missed), sep="\n")
    low = [folder for folder in wanted.folders if too_low(folder, files, wanted.least)]
    for folder in low:
        print(f"{folder}: less than {wanted.least:g} % of its lines ran")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
