#!/usr/bin/env python3
"""Prints the C++ files whose code differs from a commit. Comments, the contents of string literals and white space do
not count, because clang-tidy does not depend on them. With --texts, literals count, because black-box tests compare
messages, and files of other languages are always printed.

usage: changed_code.py [--texts] COMMIT FILE...
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


def code_of(text, texts):
    """Returns the text without comments, white space and, unless texts, contents of literals. Keeps NOLINT comments,
    which clang-tidy reads."""
    def blank(found):
        if found.lastgroup == "comment":
            return found.group() if "NOLINT" in found.group() else ""
        if found.lastgroup == "number":
            return found.group()
        if texts:
            return found.group().encode().hex()  # white space inside of a literal counts
        return found.group() if found.lastgroup == "character" else '""'
    return re.sub(r"\s+", "", TOKEN.sub(blank, text))


def has_changed(file, commit, texts):
    if texts and not file.endswith((".cc", ".h", ".c")):
        return True
    old = subprocess.run(["git", "show", f"{commit}:{file}"], capture_output=True, text=True)
    with open(file, encoding="utf-8") as now:
        return old.returncode != 0 or code_of(old.stdout, texts) != code_of(now.read(), texts)


def main():
    texts = sys.argv[1] == "--texts"
    commit, *files = sys.argv[2 if texts else 1:]
    for file in files:
        if has_changed(file, commit, texts):
            print(file)


if __name__ == "__main__":
    main()
