#!/usr/bin/env python3
"""Runs an example of a project on a machine of your own: copies the local source there, installs it and what the
example needs, and runs the example with its arguments.

    python run_on_remote.py --user ubuntu --host 10.0.0.5 --key_path ~/.ssh/id_ed25519 \\
        --example pytorch/text-generation/run_generation.py --model_type=gpt2 --prompt "I am"

Arguments that are not listed here go to the example as they are; behind `--` all of them do. It is the user story of
Hugging Face's script of this name; docs/run_on_remote.md shows both side by side.
"""
import argparse
import os
import shlex
import sys

import lockstep

ON_DEMAND = ("instance", "provider", "use_spot")


def true_or_false(text):
    values = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return values[text.lower()]


def parse(words):
    # A default of None means "not given": what was given is not told from what was not by comparing with defaults. An
    # abbreviation is not taken, as it may be an option of the example.
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--user", help="log in as this user (default: ssh's own choice)")
    parser.add_argument("--host", help="your own machine: an address, or a name that ssh knows")
    parser.add_argument("--key_path", help="private key (default: ssh's own choice)")
    parser.add_argument("--instance", help="on demand: GPUs to rent, as V100:1")
    parser.add_argument("--provider", help="on demand: where")
    parser.add_argument("--use_spot", nargs="?", const=True, type=true_or_false, help="on demand: may be interrupted")
    parser.add_argument("--example", default="pytorch/text-generation/run_generation.py",
                        help="below examples/ of the project, or from its top (default: %(default)s)")
    parser.add_argument("--torch", default="torch", metavar="SPEC",
                        help="as pip takes it: 'torch --index-url URL'; '' for none (default: %(default)s)")
    own, separator, rest = words, [], []
    if "--" in words:
        own, rest = words[:words.index("--")], words[words.index("--") + 1:]
    args, unknown = parser.parse_known_args(own)
    given = [f"--{name}" for name in ON_DEMAND if getattr(args, name) is not None]
    if args.host is not None and given:
        parser.error(f"--host and {given[0]} exclude each other: --host is a machine of your own, {given[0]} is of one "
                     "that is rented; leave one of them out")
    if args.host is None:
        parser.error("machines on demand are not built yet: give --host, a machine of your own")
    return args, unknown + rest


def main(words):
    args, rest = parse(words)
    example = args.example if os.path.isfile(args.example) else os.path.join("examples", args.example)
    if not os.path.isfile(example):
        print(f"run_on_remote.py: error: there is no {example} here; run this from the top of the project",
              file=sys.stderr)
        return 2
    creds = {"ssh_user": args.user, "ssh_private_key": args.key_path}
    gpu = lockstep.cluster(ips=[args.host], ssh_creds={name: value for name, value in creds.items() if value})
    requirements = os.path.join(os.path.dirname(example), "requirements.txt")
    packages = ["pip:./"] if any(map(os.path.isfile, ("pyproject.toml", "setup.py"))) else []
    packages += [f"reqs:{shlex.quote('./' + requirements)}"] if os.path.isfile(requirements) else []
    try:
        # Each step is checked: one that fails ends this with its last lines.
        gpu.install_packages(packages)
        if args.torch and gpu.run(["python3 -c 'import torch' 2>/dev/null"])[0].code != 0:
            gpu.install_packages([args.torch])
    except lockstep.LockstepError as error:
        print(f"run_on_remote.py: error: {error}", file=sys.stderr)
        return error.code or 1
    # Arguments arrive byte for byte: no shell sees them.
    return gpu.run([["python3", example, *rest]])[0].code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
