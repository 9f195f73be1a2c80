#!/usr/bin/env python3
"""Runs an example of a project on a machine of your own, or on one that is rented for it: copies the local source
there, installs it and what the example needs, and runs the example with its arguments.

    python run_on_remote.py --user ubuntu --host 10.0.0.5 --key_path ~/.ssh/id_ed25519 \\
        --example pytorch/text-generation/run_generation.py --model_type=gpt2 --prompt "I am"
    python run_on_remote.py --instance A100:1 --provider cheapest --use_spot --max_price 2 \\
        --example pytorch/text-generation/run_generation.py --model_type=gpt2 --prompt "I am"

A rented machine is terminated at the end, however the example ends. Arguments that are not listed here go to the
example as they are; behind `--` all of them do. It is the user story of Hugging Face's script of this
name; docs/python.md shows both side by side.
"""
import argparse
import contextlib
import os
import shlex
import sys

import lockstep

OWN = ("host", "user", "key_path")
RENTED = ("instance", "provider", "use_spot", "max_price", "budget")


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
    parser.add_argument("--host", help="your own machine: an address, or a name that ssh knows; localhost is this one")
    parser.add_argument("--user", help="of your own machine: log in as this user (default: ssh's own choice)")
    parser.add_argument("--key_path", help="of your own machine: private key (default: ssh's own choice)")
    parser.add_argument("--instance", help="on demand: GPUs to rent (default: V100:1)")
    parser.add_argument("--provider", help="on demand: aws, gcp, lambda, runpod or cheapest (default: cheapest)")
    parser.add_argument("--use_spot", nargs="?", const=True, type=true_or_false, metavar="true|false",
                        help="on demand: a machine that may be taken away (default: false)")
    parser.add_argument("--max_price", type=float, metavar="USD", help="on demand: most to pay an hour")
    parser.add_argument("--budget", type=float, metavar="USD", help="on demand: most to pay in all")
    parser.add_argument("--example", default="pytorch/text-generation/run_generation.py",
                        help="below examples/ of the project, or from its top (default: %(default)s)")
    parser.add_argument("--torch", default="torch", metavar="SPEC",
                        help="as pip takes it: 'torch --index-url URL'; '' for none (default: %(default)s)")
    own, separator, rest = words, [], []
    if "--" in words:
        own, rest = words[:words.index("--")], words[words.index("--") + 1:]
    args, unknown = parser.parse_known_args(own)
    own, rented = ([f"--{name}" for name in names if getattr(args, name) is not None] for names in (OWN, RENTED))
    if own and rented:
        parser.error(f"{own[0]} and {rented[0]} exclude each other: {own[0]} is of a machine of your own, {rented[0]} "
                     f"of one that is rented; leave out {' and '.join(own)}, or {' and '.join(rented)}")
    if own and args.host is None:
        parser.error(f"{own[0]} is of a machine of your own: give its --host, too")
    if not own and not rented:
        parser.error("on which machine? give --host, one of your own, or --instance, GPUs to rent (as A100:1)")
    return args, unknown + rest


def machine(args):
    """A context that ends with a rented machine being terminated."""
    if args.host is not None:
        creds = {"ssh_user": args.user, "ssh_private_key": args.key_path}
        return contextlib.nullcontext(
            lockstep.cluster(ips=[args.host], ssh_creds={name: value for name, value in creds.items() if value}))
    return lockstep.ondemand_cluster(
        name="run-on-remote", instance_type=args.instance or "V100:1", provider=args.provider or "cheapest",
        use_spot=args.use_spot is True, max_price=args.max_price, budget=args.budget)


def main(words):
    args, rest = parse(words)
    example = args.example if os.path.isfile(args.example) else os.path.join("examples", args.example)
    if not os.path.isfile(example):
        print(f"run_on_remote.py: error: there is no {example} here; run this from the top of the project",
              file=sys.stderr)
        return 2
    requirements = os.path.join(os.path.dirname(example), "requirements.txt")
    packages = ["pip:./"] if any(map(os.path.isfile, ("pyproject.toml", "setup.py"))) else []
    packages += [f"reqs:{shlex.quote('./' + requirements)}"] if os.path.isfile(requirements) else []
    try:
        with machine(args) as gpu:
            # A step that fails raises, with its last lines.
            gpu.install_packages(packages)
            if args.torch and gpu.run(["python3 -c 'import torch' 2>/dev/null"], check=False)[0].code:
                gpu.install_packages([args.torch])
            # Arguments arrive byte for byte: no shell sees them.
            return gpu.run([["python3", example, *rest]], check=False, cwd=gpu.folder)[0].code
    except (lockstep.LockstepError, ValueError) as error:
        print(f"run_on_remote.py: error: {error}", file=sys.stderr)
        return getattr(error, "code", 2) or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
