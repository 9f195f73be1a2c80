#!/usr/bin/env python3
"""Prints those of the given C++ files whose code differs from a commit. Comments, the contents of string literals and
white space don't count: clang-tidy has nothing new to say of them.

usage: changed_code.py COMMIT FILE...
"""
import re
import subprocess
import sys

TOKEN = re.compile(r"""
    (?P<raw> R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)" )
  | (?P<text> "(?:\\.|[^"\\\n])*" )
  | (?P<number> \b\d(?:'?[\w.])* )
  | (?P<character> '(?:\\.|[^'\\\n])+' )
  | (?P<comment> //[^\n]* | /\*.*?\*/ )
""", re.X | re.S)


def code_of(text):
    """The text without comments, contents of literals and white space. NOLINT comments stay: they mean clang-tidy."""
    def blank(found):
        if found.lastgroup == "comment":
            return found.group() if "NOLINT" in found.group() else ""
        return found.group() if found.lastgroup in ("character", "number") else '""'
    return re.sub(r"\s+", "", TOKEN.sub(blank, text))


def main():
    commit, files = sys.argv[1], sys.argv[2:]
    for file in files:
        old = subprocess.run(["git", "show", f"{commit}:{file}"], capture_output=True, text=True)
        with open(file, encoding="utf-8") as now:
            if old.returncode != 0 or code_of(old.stdout) != code_of(now.read()):
                print(file)


if __name__ == "__main__":
    main()
