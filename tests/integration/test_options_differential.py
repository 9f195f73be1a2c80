"""Our option parser against Python's argparse with torchrun's table, on seeded random command lines.

The model is the argparse of Python 3.14. Ours takes more: prefixes that torchrun calls ambiguous only
because an option has a dash and an underscore spelling (`spelled_out` tells argparse what is meant),
and mixed spellings (`allowed`). Older Pythons also look for ambiguous words behind the script, and do
not read `-1_0` as a number nor `--opt=--` as a value, and refuse `-mx` at once.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build" / "release"))
DUMP = BUILD / "src" / "cli" / "options_dump"

TEXT = [
    "nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf",
    "event-log-handler", "role", "log-dir", "log-line-prefix-template", "local-ranks-filter",
    "duplicate-stdout-filters", "duplicate-stderr-filters", "master-addr", "local-addr",
    "logs-specs", "signals-to-handle",
]
LETTERED = {"redirects": "-r", "tee": "-t"}
INTEGER = ["max-restarts", "node-rank", "master-port", "shutdown-timeout"]
NUMBER = ["monitor-interval"]
CHOICE = {
    "start-method": ["spawn", "fork", "forkserver"],
    "numa-binding": ["node", "socket", "exclusive", "core-complex"],
}
FLAGS = ["standalone", "no-python", "run-path", "virtual-local-rank"]
OPTIONS = TEXT + list(LETTERED) + INTEGER + NUMBER + list(CHOICE) + FLAGS + ["module"]
NO_ENVIRONMENT = ["logs-specs", "numa-binding"]


def keeping_text(convert):
    """A type that refuses what `convert` refuses, and keeps the text as given."""

    def check(text):
        convert(text)
        return text

    check.__name__ = convert.__name__
    return check


def reference_parser(environment):
    parser = argparse.ArgumentParser(prog="torchrun")

    def default(name):
        return None if name in NO_ENVIRONMENT else environment.get(variable(name))

    def add(name, *letters, **keywords):
        spellings = dict.fromkeys([f"--{name}", f"--{name.replace('-', '_')}"])
        parser.add_argument(*letters, *spellings, dest=name, **keywords)

    for name in TEXT:
        add(name, default=default(name))
    for name, letter in LETTERED.items():
        add(name, letter, default=default(name))
    for name in INTEGER:
        add(name, type=keeping_text(int), default=default(name))
    for name in NUMBER:
        add(name, type=keeping_text(float), default=default(name))
    for name, choices in CHOICE.items():
        add(name, choices=choices, default=default(name))
    for name in FLAGS + ["module"]:
        on = bool(int(environment.get(variable(name), "0")))
        letters = ["-m"] if name == "module" else []
        add(name, *letters, action="store_const", const="1", default="1" if on else None)
    # argparse offers shells here; torchrun leaves with the script that shtab makes.
    parser.add_argument("--print-completion", "--print_completion", choices=["bash", "zsh", "tcsh"])
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def variable(name):
    return "PET_" + name.upper().replace("-", "_")


def reference(words, environment):
    """(exit code, message or result) of argparse."""
    try:
        parser = reference_parser(environment)
    except ValueError as error:
        return 1, str(error)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            namespace = vars(parser.parse_args(words))
    except SystemExit as end:
        return end.code, errors.getvalue()
    script = namespace.pop("training_script")
    rest = namespace.pop("training_script_args")
    values = {name: value for name, value in namespace.items() if value is not None}
    return 0, {"values": values, "script": script, "rest": rest}


def ours(words, environment):
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PET_")}
    run = subprocess.run([DUMP, *words], env=inherited | environment, capture_output=True, text=True)
    assert run.returncode == 0, (words, run.stderr)
    return json.loads(run.stdout)


VALUES = [
    "0", "1", "2", "-1", "1:2", "0:3,1:1", "auto", "localhost:0", "a=b,c=d", "x", "", "-", "-x",
    "1.5", "-1.5", "-.5", "1e3", "1_0", "--", "spawn", "node", "a b", "-a b", "--a b", "-r", "-1_0",
]
SCRIPTS = ["train.py", "a/b.py", "-", "", "with space.py"]
STRAY = [
    "--", "--bogus", "--bogus=1", "-x", "-mx", "-m", "-mr3", "-mt", "-m=1", "-r=", "-t=3", "-r3",
    "-rm", "--=1", "---x", "--help", "-h", "-mh", "--nnodes=", "--standalone=1", "--standalone=",
    "-m-r", "-1", "--rdzv", "--log", "--nproc", "--dup=1", "--s", "--ma", "-mm", "-tm",
]


def option_words(rng):
    name = rng.choice(OPTIONS)
    spelled = name if rng.random() < 0.6 else name.replace("-", "_")
    if rng.random() < 0.25:
        spelled = spelled[: rng.randint(1, len(spelled))]
    elif rng.random() < 0.05:
        spelled = "".join(rng.choice("-_") if c in "-_" else c for c in spelled)
    if name in FLAGS or name == "module":
        return ["--" + spelled]
    value = rng.choice(VALUES)
    if name in INTEGER and rng.random() < 0.8:
        value = rng.choice(["0", "3", "-1", " 4 "])
    if name in CHOICE and rng.random() < 0.8:
        value = rng.choice(CHOICE[name])
    return [f"--{spelled}={value}"] if rng.random() < 0.4 else ["--" + spelled, value]


def command_line(rng):
    words = []
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5])):
        words += [rng.choice(STRAY)] if rng.random() < 0.12 else option_words(rng)
    if rng.random() < 0.9:
        if rng.random() < 0.1:
            words.append("--")
        words.append(rng.choice(SCRIPTS))
        for _ in range(rng.choice([0, 0, 1, 2, 4])):
            words += rng.choice([[rng.choice(STRAY)], [rng.choice(VALUES)], option_words(rng)])
    return words


def environment_for(rng):
    environment = {}
    if rng.random() < 0.2:
        name = rng.choice(OPTIONS)
        flag = name in FLAGS or name == "module"
        environment[variable(name)] = rng.choice(["0", "1", "-3", "true", ""] if flag else VALUES)
    return environment


def folded(text):
    return text.replace("_", "-")


def unread(words, actual):
    """The words that a parser which went well had no need to look at."""
    if actual["rc"] != 0:
        return []
    return words if actual["ended_by"] else words[len(words) - len(actual["rest"]) :]


def ambiguous_name(expected):
    """Returns the option name that argparse calls ambiguous, and the names that it may mean for us."""
    code, message = expected
    if code != 2 or "ambiguous option: " not in message:
        return None, []
    name = message.split("ambiguous option: ")[1].split(" could match ")[0].split("=")[0]
    return name, [n for n in OPTIONS + ["help", "print-completion"] if n.startswith(folded(name)[2:])]


def named(word, name):
    return word.split("=")[0] == name


def is_mixed(word):
    name = word[2:].split("=")[0]
    return word.startswith("--") and "-" in name and "_" in name


def allowed(words, actual):
    """Returns whether a difference is one of those named at the top."""
    if sys.version_info < (3, 14):
        if any(word in ("-1_0", "-mx") or word.endswith("=--") for word in words):
            return True
    return any(is_mixed(word) for word in words[: len(words) - len(unread(words, actual))])


def spelled_out(words, expected):
    """`words` with the one that is ambiguous to argparse replaced: by the name, if only its two
    spellings are in question, else by what is refused when it is read, and no earlier."""
    name, meant = ambiguous_name(expected)
    if name is None:
        return None
    at = next(i for i, word in enumerate(words) if named(word, name))
    clear = "--" + meant[0] + words[at][len(name) :] if len(meant) == 1 else "--standalone=1"
    return words[:at] + [clear] + words[at + 1 :]


def model(words, environment):
    """Returns reference() as Python 3.14 would give it if each option had a single spelling."""
    asked = words
    expected = reference(asked, environment)
    while (clearer := spelled_out(asked, expected)) is not None:
        asked = clearer
        expected = reference(asked, environment)
    code, result = expected
    if code == 0 and isinstance(result, dict):
        result["rest"] = words[len(words) - len(result["rest"]) :]
    return code, result


def same(expected, actual):
    code, result = expected
    if actual["rc"] == 0 and actual["ended_by"]:
        return code == 0 and isinstance(result, str)
    if code != actual["rc"]:
        return False
    if code != 0:
        return True
    return all(result[key] == actual[key] for key in ("values", "script", "rest"))


def compare(seed, count):
    rng = random.Random(seed)
    differences, skipped = [], 0
    for _ in range(count):
        words, environment = command_line(rng), environment_for(rng)
        actual = ours(words, environment)
        expected = model(words, environment)
        if same(expected, actual):
            continue
        if allowed(words, actual):
            skipped += 1
        else:
            differences.append((words, environment, expected, actual))
    return differences, skipped


needs_dump = pytest.mark.skipif(not DUMP.exists(), reason=f"{DUMP} is not built")


@needs_dump
@pytest.mark.parametrize("seed", range(4))
def test_same_as_argparse(seed):
    differences, skipped = compare(seed, 500)
    assert not differences, "\n".join(map(repr, differences[:5]))
    assert skipped < 25, "the documented superset explains too much"


@needs_dump
@pytest.mark.parametrize(
    "words, expected",
    [
        (["--nproc", "2", "T"], {"nproc-per-node": "2"}),
        (["--nproc_per-node=2", "T"], {"nproc-per-node": "2"}),
        (["--event", "console", "T"], {"event-log-handler": "console"}),
        (["T", "--rdzv", "x"], {}),
    ],
)
def test_superset(words, expected):
    result = ours(words, {})
    assert result["rc"] == 0
    assert result["values"] == expected
    assert result["script"] == "T"


if __name__ == "__main__":  # more of it, by hand: test_options_differential.py FIRST LAST
    for each in range(int(sys.argv[1]), int(sys.argv[2])):
        found, explained = compare(each, 500)
        print(each, "explained:", explained)
        for difference in found:
            print(difference)
