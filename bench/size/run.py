#!/usr/bin/python3
"""What each part of the binary weighs, from the linker's map. Prints markdown; `./dev bench` collects it.

Links the release binary once more, into a folder of its own, with a map beside it.
"""
import collections
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build/release"))
# docs/architecture.md: run; ssh, link and remote; hosts, project and jobs; setup; doctor; sync; peer; job; launchers;
# cli; the glue.
GOAL = 12_000_000
# Not loaded, and gone when it is stripped.
UNLOADED = (".debug", ".symtab", ".strtab", ".shstrtab", ".comment", ".bss", ".tbss")
NAMES = {"libcrypto.a": "OpenSSL: libcrypto", "CRYPTO.a": "OpenSSL: libcrypto", "libssl.a": "OpenSSL: libssl",
         "SSL.a": "OpenSSL: libssl", "libuv_a.a": "libuv", "libstdc++.a": "libstdc++", "libc.a": "glibc",
         "libgcc.a": "gcc's runtime", "libgcc_eh.a": "gcc's runtime", "<internal>": "made by the linker (merged texts)"}


def link_with_map(folder):
    commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "lockstep"], check=True, capture_output=True,
                              text=True)
    command = commands.stdout.splitlines()[-1].removeprefix(": && ").removesuffix(" && :")
    words = shlex.split(command)
    out = pathlib.Path(folder) / "lockstep"
    words[words.index("-o") + 1] = str(out)
    subprocess.run([*words, f"-Wl,-Map={folder}/map"], check=True, cwd=BUILD)
    subprocess.run(["strip", out], check=True)
    return out.stat().st_size, pathlib.Path(folder) / "map"


def part_of(file):
    name = re.sub(r"\(.*", "", file).rsplit("/", 1)[-1]
    room = re.fullmatch(r"liblockstep_(\w+)\.a", name)
    if room or name.endswith(".cc.o"):
        name = room.group(1).replace("rendezvous_", "rendezvous/") if room else "cli"
        return "our " + name.replace("cli_options", "cli").replace("cli_commands", "cli")
    return NAMES.get(name, "gcc's runtime")


def weigh(path):
    """Bytes by part: code, tables for exceptions, data."""
    parts = collections.defaultdict(collections.Counter)
    section = None
    for line in path.read_text().splitlines():
        found = re.match(r"\s*[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)\s+\d+ (\s*)(\S.*)$", line)
        if not found:
            continue
        size, depth, what = int(found.group(1), 16), len(found.group(2)), found.group(3)
        if depth == 0:
            section = what
        elif depth == 8 and not section.startswith(UNLOADED):
            unwinding = section in (".eh_frame", ".gcc_except_table")
            kind = "code" if section == ".text" else "unwinding" if unwinding else "data"
            parts[part_of(what.split(":(")[0])][kind] += size
    return parts


def main():
    with tempfile.TemporaryDirectory() as folder:
        size, path = link_with_map(folder)
        parts = weigh(path)
    print(f"The stripped binary has {size:,} bytes; goal: at most {GOAL:,}.\n")
    print("| part | KB | of it code | tables for exceptions | data |\n|---|---|---|---|---|")
    total = collections.Counter()
    for name, kinds in sorted(parts.items(), key=lambda part: -sum(part[1].values())):
        print(f"| {name} | {sum(kinds.values()) / 1000:.0f} | " +
              " | ".join(f"{kinds[kind] / 1000:.0f}" for kind in ("code", "unwinding", "data")) + " |")
        total.update(kinds)
    ours = sum(sum(kinds.values()) for name, kinds in parts.items() if name.startswith("our "))
    print(f"| all | {sum(total.values()) / 1000:.0f} | " +
          " | ".join(f"{total[kind] / 1000:.0f}" for kind in ("code", "unwinding", "data")) + " |")
    print(f"\nOur own rooms together: {ours / 1000:.0f} KB.")


if __name__ == "__main__":
    main()
